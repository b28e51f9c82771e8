//! A real server on loopback.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Which requests are answered with 503; the others are with 200.
#[derive(Clone, Copy)]
pub enum Refuses {
    First(usize),
    EveryOther,
}

impl Refuses {
    fn nth(self, request: usize) -> bool {
        match self {
            Refuses::First(refused) => request < refused,
            Refuses::EveryOther => request % 2 == 0,
        }
    }
}

/// The body of every answer.
#[derive(Clone)]
pub struct Content {
    bytes: Bytes,
    /// How long after the head it is sent; `None` sends both at once.
    later: Option<Duration>,
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, later: None }
    }
}

impl Content {
    pub fn sent_after_the_head(self, later: Duration) -> Self {
        let later = Some(later);
        Self { later, ..self }
    }

    /// One that waits is boxed. The other is not: what a request costs is measured with it.
    fn body(&self) -> Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>> {
        let bytes = self.bytes.clone();
        match self.later {
            None => Either::Left(Full::new(bytes)),
            Some(later) => {
                let waited = tokio::time::sleep(later);
                let sent = waited.map(|()| Ok(Frame::data(bytes)));
                Either::Right(StreamBody::new(sent.into_stream().boxed()).boxed_unsync())
            }
        }
    }
}

#[derive(Clone)]
pub struct Server {
    pub url: String,
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    refuses: Refuses,
    content: Content,
}

impl Server {
    pub async fn start(refuses: Refuses, content: impl Into<Content>) -> Server {
        Server::listen(refuses, content.into(), None).await
    }

    /// One that speaks TLS, and the certificate by which a client knows it.
    pub async fn start_tls(
        refuses: Refuses,
        content: impl Into<Content>,
    ) -> (Server, reqwest::Certificate) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let known = reqwest::Certificate::from_der(made.cert.der()).expect("the same");
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::from(key))
            .expect("a certificate with its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let server = Server::listen(refuses, content.into(), Some(acceptor)).await;
        (server, known)
    }

    async fn listen(refuses: Refuses, content: Content, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Server {
            url: format!("{scheme}://{address}/v1/items"),
            address,
            connections: Arc::default(),
            requests: Arc::default(),
            refuses,
            content,
        };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                own.connections.fetch_add(1, Ordering::Relaxed);
                socket.set_nodelay(true).ok();
                let (own, tls) = (own.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => own.serve(socket).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(socket).await {
                                own.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let service = service_fn(|_: Request<Incoming>| {
            let refused = self
                .refuses
                .nth(self.requests.fetch_add(1, Ordering::Relaxed));
            let status = if refused { 503 } else { 200 };
            let response = Response::builder()
                .status(status)
                .header("content-length", self.content.bytes.len())
                .body(self.content.body());
            async { response }
        });
        let serving = hyper::server::conn::http1::Builder::new();
        serving
            .serve_connection(TokioIo::new(stream), service)
            .await
            .ok();
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}
