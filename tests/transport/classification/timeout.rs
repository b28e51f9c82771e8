//! Timeouts, by when they strike.

use std::time::Duration;

use reqwest::{ClientBuilder, Method};

use super::{Failed, TARGET, lost, send, via};
use crate::support::client;
use crate::support::h1::H1;
use crate::support::hang::Hang;
use crate::support::proxy::{self, socks5};
use crate::support::raw::Raw;
use crate::support::script::{Act, End};
use crate::support::tls::trusting;

const SHORT: Duration = Duration::from_millis(100);

pub async fn connecting_takes_too_long(method: Method) -> Failed {
    let full = Hang::start().await;
    lost(client().connect_timeout(SHORT), method, full.url("/")).await
}

pub async fn tls_handshake_takes_too_long(method: Method) -> Failed {
    let silent = Raw::answering("", End::Stall).await;
    lost(
        trusting().connect_timeout(SHORT),
        method,
        silent.url("https", "/"),
    )
    .await
}

pub async fn proxy_takes_too_long(method: Method) -> Failed {
    let silent = proxy::connect(proxy::Act::Say(Vec::new(), End::Stall)).await;
    lost(
        via(silent.url("http", "")).connect_timeout(SHORT),
        method,
        TARGET,
    )
    .await
}

pub async fn socks_proxy_takes_too_long(method: Method) -> Failed {
    let silent = socks5(proxy::Act::Say(Vec::new(), End::Stall)).await;
    lost(
        via(silent.url("socks5h", "")).connect_timeout(SHORT),
        method,
        TARGET,
    )
    .await
}

pub async fn total_timeout_while_connecting(method: Method) -> Failed {
    let full = Hang::start().await;
    lost(client().timeout(SHORT), method, full.url("/")).await
}

pub async fn total_timeout_in_the_tls_handshake(method: Method) -> Failed {
    let silent = Raw::answering("", End::Stall).await;
    lost(trusting().timeout(SHORT), method, silent.url("https", "/")).await
}

pub async fn total_timeout_before_the_head(method: Method) -> Failed {
    at(Act::Silence, client().timeout(SHORT), method).await
}

pub async fn read_timeout_before_the_head(method: Method) -> Failed {
    at(Act::Silence, client().read_timeout(SHORT), method).await
}

pub async fn total_timeout_in_a_flood_of_interim_answers(method: Method) -> Failed {
    at(Act::interim_flood(), client().timeout(SHORT), method).await
}

async fn at(act: Act, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start(act).await;
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}
