//! What is counted instead of timed: connections and requests. (Allocations are asserted by the tests.)

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry_rules::{Backoff, RetryRule};
use tokio::net::TcpListener;

use crate::clients::{self, Layer};
use crate::table::Table;

/// A real server that answers 503 with a body of this length, so many times, and then 200.
#[derive(Clone, Default)]
pub struct Server {
    pub url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start(refusals: usize, body: Bytes) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let server = Server {
            url: format!("http://{address}/v1/items"),
            ..Server::default()
        };
        let counters = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counters.connections.fetch_add(1, Ordering::Relaxed);
                socket.set_nodelay(true).ok();
                let (requests, body) = (counters.requests.clone(), body.clone());
                let service = service_fn(move |_: Request<Incoming>| {
                    let refused = requests.fetch_add(1, Ordering::Relaxed) < refusals;
                    let status = if refused { 503 } else { 200 };
                    let response = Response::builder()
                        .status(status)
                        .body(Full::new(body.clone()));
                    async { response }
                });
                let serving = hyper::server::conn::http1::Builder::new();
                tokio::spawn(serving.serve_connection(TokioIo::new(socket), service));
            }
        });
        server
    }
}

fn client(layer: Layer) -> ClientWithMiddleware {
    clients::with(ClientBuilder::new(clients::plain()), layer).build()
}

pub fn report(table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("one");
    runtime.block_on(async {
        connections(table).await;
        outage(table).await;
    });
}

async fn connections(table: &mut Table) {
    let what = "connections for 503, 503, 503, 200 with 40 KB bodies";
    let layers = [
        ("reqwest-retry", clients::peer(), ""),
        ("ours", clients::ours(clients::rule()), "1"),
    ];
    for (who, layer, goal) in layers {
        let server = Server::start(3, Bytes::from(vec![b'x'; 40_000])).await;
        let answer = client(layer)
            .get(&server.url)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200);
        table.value(what, who, server.connections.load(Ordering::Relaxed), goal);
    }
}

async fn outage(table: &mut Table) {
    let what = "requests for 500 GETs, 50 at a time, in an outage";
    let short = Backoff {
        base: Duration::from_millis(1),
        max: Duration::from_millis(10),
        ..RetryRule::transient().backoff
    };
    let rule = RetryRule {
        backoff: short,
        ..RetryRule::transient()
    };
    let layers = [
        ("reqwest-retry", clients::peer(), ""),
        ("ours", clients::ours(rule), "below 650"),
    ];
    for (who, layer, goal) in layers {
        let server = Server::start(usize::MAX, Bytes::new()).await;
        let client = client(layer);
        futures_util::stream::iter(0..500)
            .for_each_concurrent(50, |_| async {
                client.get(&server.url).send().await.expect("an answer");
            })
            .await;
        table.value(what, who, server.requests.load(Ordering::Relaxed), goal);
    }
}
