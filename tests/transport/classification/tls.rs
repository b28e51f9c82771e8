//! Faults of TLS.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{ClientBuilder, Method};
use rustls::version::{TLS12, TLS13};

use super::{Failed, TARGET, lost, send, via};
use crate::support::h1::H1;
use crate::support::h2::{Act as StreamAct, H2};
use crate::support::noise;
use crate::support::proxy;
use crate::support::raw::Raw;
use crate::support::script::{Act, End};
use crate::support::tls::{Cert, Tls, alert, identity, trusting};

pub async fn certificate_untrusted(method: Method) -> Failed {
    at(Tls::new(Cert::Untrusted), trusting(), method).await
}

pub async fn certificate_expired(method: Method) -> Failed {
    at(Tls::new(Cert::Expired), trusting(), method).await
}

pub async fn certificate_not_yet_valid(method: Method) -> Failed {
    at(Tls::new(Cert::NotYetValid), trusting(), method).await
}

pub async fn certificate_for_another_name(method: Method) -> Failed {
    at(Tls::new(Cert::WrongName), trusting(), method).await
}

pub async fn certificate_untrusted_behind_a_proxy(method: Method) -> Failed {
    let server = H1::start_tls(Tls::new(Cert::Untrusted).acceptor(), Act::ok("never")).await;
    let failed = tunnel(server.addr, method).await;
    Failed {
        processed: server.count(),
        ..failed
    }
}

pub async fn client_certificate_demanded(method: Method) -> Failed {
    at(
        Tls::new(Cert::Good)
            .only(&TLS12)
            .demand_client_certificate(),
        trusting(),
        method,
    )
    .await
}

pub async fn client_certificate_refused(method: Method) -> Failed {
    let client = trusting().identity(identity(false));
    at(
        Tls::new(Cert::Good)
            .only(&TLS12)
            .demand_client_certificate(),
        client,
        method,
    )
    .await
}

pub async fn client_certificate_demanded_after_the_handshake(method: Method) -> Failed {
    at(
        Tls::new(Cert::Good)
            .only(&TLS13)
            .demand_client_certificate(),
        trusting(),
        method,
    )
    .await
}

pub async fn client_certificate_refused_after_the_handshake(method: Method) -> Failed {
    let client = trusting().identity(identity(false));
    at(
        Tls::new(Cert::Good)
            .only(&TLS13)
            .demand_client_certificate(),
        client,
        method,
    )
    .await
}

pub async fn client_certificate_demanded_over_http2(method: Method) -> Failed {
    over_http2(trusting(), method).await
}

pub async fn client_certificate_refused_over_http2(method: Method) -> Failed {
    over_http2(trusting().identity(identity(false)), method).await
}

/// 40 is `handshake_failure`.
pub async fn alert_in_the_tls_handshake(method: Method) -> Failed {
    alerted(40, method).await
}

pub async fn plain_http_where_tls_was_asked_for(method: Method) -> Failed {
    let server = H1::start(Act::ok("never")).await;
    let url = server.url("/").replace("http:", "https:");
    let error = send(trusting(), method, url).await.unwrap_err();
    Failed::new(error, server.count())
}

pub async fn no_tls_version_in_common(method: Method) -> Failed {
    let client = trusting().tls_version_min(reqwest::tls::Version::TLS_1_3);
    at(Tls::new(Cert::Good).only(&TLS12), client, method).await
}

/// 80 is `internal_error`.
pub async fn internal_error_in_the_tls_handshake(method: Method) -> Failed {
    alerted(80, method).await
}

/// 90 is `user_canceled`.
pub async fn user_canceled_in_the_tls_handshake(method: Method) -> Failed {
    alerted(90, method).await
}

/// 20 is `bad_record_mac`.
pub async fn bad_record_mac_in_the_tls_handshake(method: Method) -> Failed {
    alerted(20, method).await
}

pub async fn closed_in_the_tls_handshake(method: Method) -> Failed {
    let server = Raw::answering("", End::Close).await;
    lost(trusting(), method, server.url("https", "/")).await
}

pub async fn reset_in_the_tls_handshake(method: Method) -> Failed {
    let server = Raw::answering("", End::Reset).await;
    lost(trusting(), method, server.url("https", "/")).await
}

pub async fn closed_in_the_tls_handshake_behind_a_proxy(method: Method) -> Failed {
    let server = Raw::answering("", End::Close).await;
    tunnel(server.addr, method).await
}

pub async fn reset_in_the_tls_handshake_behind_a_proxy(method: Method) -> Failed {
    let granted = proxy::Act::Say(b"HTTP/1.1 200 OK\r\n\r\n".into(), End::Reset);
    let proxy = proxy::connect(granted).await;
    lost(via(proxy.url("http", "")), method, TARGET).await
}

pub async fn closed_in_the_tls_handshake_behind_a_socks_proxy(method: Method) -> Failed {
    let server = Raw::answering("", End::Close).await;
    let proxy = proxy::socks5(proxy::Act::TunnelTo(server.addr)).await;
    lost(via(proxy.url("socks5h", "")), method, TARGET).await
}

async fn alerted(description: u8, method: Method) -> Failed {
    let server = Raw::answering(alert(description), End::Stall).await;
    lost(trusting(), method, server.url("https", "/")).await
}

async fn at(tls: Tls, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start_tls(tls.acceptor(), Act::ok("never")).await;
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

async fn over_http2(client: ClientBuilder, method: Method) -> Failed {
    let tls = Tls::new(Cert::Good)
        .only(&TLS13)
        .alpn("h2")
        .demand_client_certificate();
    let server = H2::start_tls(tls.acceptor(), StreamAct::ok("never")).await;
    // hyper keeps nothing of an alert that comes before it has written the request.
    let late = noise::late(server.addr, Duration::from_millis(50)).await;
    let error = send(client, method, late.url("https", "/"))
        .await
        .unwrap_err();
    Failed::new(error, server.count())
}

async fn tunnel(to: SocketAddr, method: Method) -> Failed {
    let proxy = proxy::connect(proxy::Act::TunnelTo(to)).await;
    lost(via(proxy.url("http", "")), method, TARGET).await
}
