//! A real server on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
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

/// What it answers with always has the same body.
#[derive(Clone)]
pub struct Server {
    pub url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    refuses: Refuses,
    body: Bytes,
}

impl Server {
    pub async fn start(refuses: Refuses, body: Bytes) -> Server {
        Server::listen(refuses, body, None).await
    }

    /// One that speaks TLS, and the certificate by which a client knows it.
    pub async fn start_tls(refuses: Refuses, body: Bytes) -> (Server, reqwest::Certificate) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let known = reqwest::Certificate::from_der(made.cert.der()).expect("the same");
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::from(key))
            .expect("a certificate with its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        (Server::listen(refuses, body, Some(acceptor)).await, known)
    }

    async fn listen(refuses: Refuses, body: Bytes, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Server {
            url: format!("{scheme}://{address}/v1/items"),
            connections: Arc::default(),
            requests: Arc::default(),
            refuses,
            body,
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
                .body(Full::new(self.body.clone()));
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
