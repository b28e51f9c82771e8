//! Faults of TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use reqwest::{ClientBuilder, Method};
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::{Failed, TARGET, lost, send, via};
use crate::support::h1::H1;
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

/// 40 is `handshake_failure`.
pub async fn alert_in_the_tls_handshake(method: Method) -> Failed {
    let server = Raw::answering(alert(40), End::Stall).await;
    lost(trusting(), method, server.url("https", "/")).await
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

/// The server cannot make sense of the request's first record and says so.
pub async fn alert_after_the_tls_handshake(method: Method) -> Failed {
    let acceptor = Tls::new(Cert::Good).acceptor();
    let server = Raw::start(move |socket, _, _| {
        let acceptor = acceptor.clone();
        async move {
            let garbled = Arc::new(AtomicBool::new(false));
            let mut stream = acceptor
                .accept(Noisy {
                    socket,
                    garbled: garbled.clone(),
                })
                .await?;
            garbled.store(true, Ordering::Relaxed);
            let refused = stream.read_u8().await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
            let (noisy, _) = stream.get_mut();
            while noisy.socket.read(&mut [0; 1024]).await? > 0 {}
            Ok(())
        }
    })
    .await;
    lost(trusting(), method, server.url("https", "/")).await
}

pub async fn garbage_after_the_tls_handshake(method: Method) -> Failed {
    let acceptor = Tls::new(Cert::Good).acceptor();
    let server = Raw::start(move |socket, _, _| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(socket).await?;
            stream.read_u8().await?;
            let (socket, _) = stream.get_mut();
            socket.write_all(b"this is no record at all").await?;
            while socket.read(&mut [0; 1024]).await? > 0 {}
            Ok(())
        }
    })
    .await;
    lost(trusting(), method, server.url("https", "/")).await
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

async fn at(tls: Tls, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start_tls(tls.acceptor(), Act::ok("never")).await;
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

async fn tunnel(to: SocketAddr, method: Method) -> Failed {
    let proxy = proxy::connect(proxy::Act::TunnelTo(to)).await;
    lost(via(proxy.url("http", "")), method, TARGET).await
}

/// A line that garbles what comes in from some moment on.
struct Noisy {
    socket: TcpStream,
    garbled: Arc<AtomicBool>,
}

impl AsyncRead for Noisy {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        if self.garbled.load(Ordering::Relaxed) {
            // The first five bytes are the record's own head.
            buf.filled_mut()[before..]
                .iter_mut()
                .skip(5)
                .for_each(|byte| *byte ^= 0xff);
        }
        read
    }
}

impl AsyncWrite for Noisy {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
