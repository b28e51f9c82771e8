//! Work beyond one head: a body that is read and decoded, two requests whose answers are joined, and
//! an order that is never placed twice.
//!
//! Run it with `cargo run --example work`.

#![allow(clippy::disallowed_methods)] // what clippy.toml bans, it bans from src

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest_middleware::{ClientBuilder, Error};
use reqwest_retry_rules::{
    Overrides, RetryLog, RetryMiddleware, RetryPolicy, RetryRule, client_builder, with_overrides,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start().await?;
    // The client and the works have one policy, and so one budget.
    let policy = RetryPolicy::from(RetryRule::transient());
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(policy.clone()))
        .build();
    let get = async |path: &str| -> Result<reqwest::Response, Error> {
        let response = client.get(service.url(path)).send().await?;
        Ok(response.error_for_status()?)
    };

    // The first body breaks off. No retry of a send could see that: its head was fine.
    let index = policy.run(async |_| Ok::<Vec<u32>, Error>(get("/index").await?.json().await?));
    let index = told("An index is read and decoded", index).await?;
    println!("    {index:?}\n");

    // Each is retried by itself, and the work is done again if one of them fails for good.
    let both = policy.run(async |_| {
        let price = async { Ok::<f64, Error>(get("/price").await?.json().await?) };
        let stock = async { Ok::<u32, Error>(get("/stock").await?.json().await?) };
        tokio::try_join!(price, stock)
    });
    let (price, stock) = told("A price and a stock are asked for at once", both).await?;
    println!("    {stock} at {price}\n");

    // The receipt breaks off as the index did. But by then there is an order.
    let order = policy.run(async |_| {
        let created = client.post(service.url("/orders")).send().await?;
        created.error_for_status()?;
        Ok::<String, Error>(get("/orders/1").await?.text().await?)
    });
    let order = told("An order is placed, and its receipt is lost", order).await;
    anyhow::ensure!(order.is_err(), "there was to be no receipt");
    let placed = service.seen("POST /orders");
    println!("    orders placed: {placed}");
    anyhow::ensure!(placed == 1, "one order was to be placed");
    Ok(())
}

/// Does a work, and tells what each call of it came to.
async fn told<T>(what: &str, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let log = RetryLog::new();
    let outcome = with_overrides(Overrides::new().log(log.clone()), work).await;
    println!("{what}");
    if let Some(report) = log.report() {
        for record in report.records() {
            println!("    call: {}", record.result());
        }
        if let Some(reason) = report.stop_reason() {
            println!("    stop: {reason}");
        }
    }
    outcome
}

/// What the service answers a request of this number with: a status, and how long a body it says that
/// it sends. A body that is shorter breaks off.
fn answer(request: &str, nth: u32) -> (&'static str, usize, &'static str) {
    let whole = |body: &'static str| ("200 OK", body.len(), body);
    match (request, nth) {
        ("GET /index", 1) | ("GET /orders/1", _) => ("200 OK", 99, "[1, 2"),
        ("GET /index", _) => whole("[1, 2, 3]"),
        ("GET /stock", 1) => ("503 Busy", 0, ""),
        ("GET /stock", _) => whole("7"),
        ("GET /price", _) => whole("12.5"),
        _ => ("201 Created", 0, ""),
    }
}

/// A small service on this machine, which closes each connection after its answer.
struct Service {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<HashMap<String, u32>>>,
}

impl Service {
    async fn start() -> anyhow::Result<Service> {
        // reqwest is built without a TLS provider here, and a client wants one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, seen) = (listener.local_addr()?, Arc::default());
        let service = Service { address, seen };
        let seen = service.seen.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let length = socket.read(&mut head).await.unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..length]);
                let request = head.split(" HTTP").next().unwrap_or_default();
                let nth = {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    let count: &mut u32 =
                        HashMap::entry(&mut seen, request.to_owned()).or_default();
                    *count += 1;
                    *count
                };
                let (status, length, body) = answer(request, nth);
                let answer = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                );
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        Ok(service)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn seen(&self, request: &str) -> u32 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(request).copied().unwrap_or_default()
    }
}
