//! TLS that breaks after the handshake, by what happens on the way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use reqwest::{ClientBuilder, Method};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{Failed, exchange, lost, send};
use crate::support::h1::H1;
use crate::support::h2::{Act as StreamAct, H2};
use crate::support::noise::{self, Noise, Spoilt};
use crate::support::raw::Raw;
use crate::support::script::Act;
use crate::support::tls::{Cert, Tls, trusting};

pub async fn bit_flipped_on_the_way_to_the_server(method: Method) -> Failed {
    to_the_server(Noise::Flip, &TLS13, method).await
}

pub async fn bit_flipped_on_the_way_to_the_server_under_tls12(method: Method) -> Failed {
    to_the_server(Noise::Flip, &TLS12, method).await
}

pub async fn bit_flipped_on_the_way_back(method: Method) -> Failed {
    on_the_way_back(Noise::Flip, &TLS13, method).await
}

pub async fn bit_flipped_on_the_way_back_under_tls12(method: Method) -> Failed {
    on_the_way_back(Noise::Flip, &TLS12, method).await
}

pub async fn bit_flipped_on_the_way_back_over_http2(method: Method) -> Failed {
    on_the_way_back_over_http2(Noise::Flip, method).await
}

pub async fn plain_text_on_the_way_to_the_server(method: Method) -> Failed {
    to_the_server(Noise::PlainText, &TLS13, method).await
}

pub async fn plain_text_on_the_way_to_the_server_under_tls12(method: Method) -> Failed {
    to_the_server(Noise::PlainText, &TLS12, method).await
}

pub async fn plain_text_on_the_way_back(method: Method) -> Failed {
    on_the_way_back(Noise::PlainText, &TLS13, method).await
}

pub async fn plain_text_on_the_way_back_under_tls12(method: Method) -> Failed {
    on_the_way_back(Noise::PlainText, &TLS12, method).await
}

pub async fn plain_text_on_the_way_back_over_http2(method: Method) -> Failed {
    on_the_way_back_over_http2(Noise::PlainText, method).await
}

/// The server cannot decrypt the request's first record and says so.
pub async fn bad_record_mac_after_the_tls_handshake(method: Method) -> Failed {
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

async fn to_the_server(
    noise: Noise,
    version: &'static SupportedProtocolVersion,
    method: Method,
) -> Failed {
    let tls = Tls::new(Cert::Good).only(version).acceptor();
    let server = H1::start_tls(tls, Act::ok("never")).await;
    let request = Spoilt::Request(if version == &TLS12 { 1 } else { 2 });
    let between = noise::before(server.addr, noise, request).await;
    let error = send(trusting(), method, between.url("https", "/"))
        .await
        .unwrap_err();
    assert_eq!(server.connections(), 1);
    Failed::new(error, server.count())
}

async fn on_the_way_back(
    noise: Noise,
    version: &'static SupportedProtocolVersion,
    method: Method,
) -> Failed {
    let tls = Tls::new(Cert::Good).only(version).acceptor();
    let server = H1::start_tls(tls, Act::ok("never")).await;
    let answer = Spoilt::Answer((*server).clone());
    let between = noise::before(server.addr, noise, answer).await;
    let error = send(trusting(), method, between.url("https", "/"))
        .await
        .unwrap_err();
    assert_eq!(server.count(), 1);
    Failed::new(error, 1)
}

async fn on_the_way_back_over_http2(noise: Noise, method: Method) -> Failed {
    let tls = Tls::new(Cert::Good).alpn("h2").acceptor();
    let server = H2::start_tls(tls, StreamAct::ok("never")).await;
    let answer = Spoilt::Answer((*server).clone());
    let between = noise::before(server.addr, noise, answer).await;
    let error = send(trusting(), method, between.url("https", "/"))
        .await
        .unwrap_err();
    assert_eq!(server.count(), 1);
    Failed::new(error, 1)
}

/// The twin: what is only passed on arrives and is answered.
#[tokio::test]
async fn what_nobody_spoils_arrives() {
    for version in [&TLS12, &TLS13] {
        let tls = Tls::new(Cert::Good).only(version).acceptor();
        let server = H1::start_tls(tls, Act::ok("well")).await;
        let between = noise::before(server.addr, Noise::Flip, Spoilt::Nothing).await;
        answered(trusting(), &between.url("https", "/")).await;
        assert_eq!(server.count(), 1);
    }
    let tls = Tls::new(Cert::Good).alpn("h2").acceptor();
    let server = H2::start_tls(tls, StreamAct::ok("well")).await;
    let between = noise::before(server.addr, Noise::Flip, Spoilt::Nothing).await;
    answered(trusting(), &between.url("https", "/")).await;
    assert_eq!(server.count(), 1);
}

async fn answered(client: ClientBuilder, url: &str) {
    let answer = exchange(client, Method::POST, url, "order").await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "well");
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
