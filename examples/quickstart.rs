//! `cargo run --example quickstart`: requests to services that fail in everyday ways, and what
//! became of each.
//!
//! What you need for a client of your own is in `main`. The services, which run on this machine
//! for as long as the example does, are further down.
#![allow(clippy::disallowed_methods)] // the services spawn and sleep

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use reqwest::Body;
use reqwest_middleware::{ClientBuilder, RequestBuilder};
use reqwest_retry_rules::{
    AttemptRecord, AttemptResult, ReplaySafe, RetryLog, RetryMiddleware, RetryRule, TransportError,
    WaitSource, client_builder,
};
use tokio::net::{TcpListener, TcpSocket};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    install_crypto();

    // What usually passes by itself is tried again, up to five times; what provably never reached
    // the service is tried again whatever its method.
    let rule = RetryRule {
        max_retries: 5,
        unsent_failures: true,
        ..RetryRule::transient()
    };
    // (`no_proxy` because the shop is on this machine.)
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(rule))
        .build();
    // From here on it is used as any client is: `client.get(url).send().await?`. To show what
    // happens on the way, `show` below also asks for a report.

    let shop = Shop::open().await?;
    print_head();

    // The shop is busy, and the first time it says for how long.
    show("GET /prices", client.get(shop.url("/prices"))).await?;

    // The connection is cut before the answer comes.
    show("GET /stock", client.get(shop.url("/stock"))).await?;

    // A POST whose answer was lost may have been processed: it is not sent twice.
    let payment = client.post(shop.url("/payments")).body("10 euros");
    show("POST /payments", payment).await?;

    // Nor is a POST that a busy shop turns away: who knows how far it got?
    let order = client.post(shop.url("/orders")).body("a chair");
    show("POST /orders", order).await?;

    // You know: sending this one twice does no harm.
    let search = client.post(shop.url("/search")).body("chairs");
    let search = search.with_extension(ReplaySafe(true));
    show_with("POST /search", "ReplaySafe(true)", search).await?;

    // The port refuses connections for a moment. A POST that never left can be sent again.
    let late = Shop::open_late(Duration::from_millis(30))?;
    let booking = client.post(late.url("/bookings")).body("a table");
    show("POST /bookings", booking).await?;

    // So can a stream of which nothing was read.
    let late = Shop::open_late(Duration::from_millis(30))?;
    let photo = client.put(late.url("/photos/1")).body(a_stream());
    show("PUT /photos/1", photo).await?;

    // A stream that was read is gone.
    let photo = client.put(shop.url("/photos/2")).body(a_stream());
    show("PUT /photos/2", photo).await?;

    // What is not there will not be there in a second.
    show("GET /unicorns", client.get(shop.url("/unicorns"))).await?;

    // The shop asks for an hour, which is longer than the rule waits.
    show("GET /sale", client.get(shop.url("/sale"))).await?;

    // A request may have a rule of its own: here, one without retries.
    let news = client
        .get(shop.url("/news"))
        .with_extension(RetryRule::never());
    show_with("GET /news", "RetryRule::never()", news).await?;

    shop.print_books();
    Ok(())
}

/// A body of which there is only one.
fn a_stream() -> Body {
    let pieces = ["half a photo, ", "the other half"].map(Ok::<_, Infallible>);
    Body::wrap_stream(stream::iter(pieces))
}

/// Sends a request and prints what became of it.
async fn show(name: &str, request: RequestBuilder) -> Result<()> {
    show_with(name, "", request).await
}

/// Sends a request that carries a setting of its own and prints what became of it.
async fn show_with(name: &str, own: &str, request: RequestBuilder) -> Result<()> {
    let log = RetryLog::new();
    let sent = request.with_extension(log.clone()).send().await;
    let report = log.report().ok_or("a send that has ended has a report")?;

    let succeeded = matches!(&sent, Ok(response) if response.status().is_success());
    let came_back = match &sent {
        Ok(response) if succeeded => format!("✓ {}", response.status()),
        Ok(response) => format!("✗ {}", response.status()),
        Err(_) => "✗ the error".to_owned(),
    };
    // The first column: the request, and below it what it carries.
    let mut requests = [name, own].into_iter();
    for (number, record) in (1..).zip(report.records()) {
        let request = requests.next().unwrap_or_default();
        let met = format!("{number}. {}", met(record));
        let last = number == report.attempts();
        let came_back = if last { &came_back } else { "" };
        print_row(request, &met, &waited(record), came_back);
    }
    let why = match report.stop_reason() {
        Some(reason) => format!("└─ given up: {reason}"),
        None if succeeded => String::new(),
        None if own.is_empty() => "└─ not retried: the rule has no such status".to_owned(),
        None => "└─ not retried: this request has a rule of its own".to_owned(),
    };
    let request = requests.next().unwrap_or_default();
    if !request.is_empty() || !why.is_empty() {
        print_row(request, &why, "", "");
    }
    println!();
    Ok(())
}

fn met(record: &AttemptRecord) -> String {
    match record.result() {
        AttemptResult::Status(status) => status.to_string(),
        AttemptResult::Failure(TransportError::Closed) => "connection closed".to_owned(),
        AttemptResult::Failure(TransportError::Connect) => "connection refused".to_owned(),
        other => other.to_string(),
    }
}

fn waited(record: &AttemptRecord) -> String {
    match (record.wait(), record.wait_source()) {
        (Some(wait), Some(WaitSource::Server)) => {
            format!("{} ms, as the shop asked", wait.as_millis())
        }
        (Some(wait), _) => format!("{} ms, the rule's backoff", wait.as_millis()),
        (None, _) => String::new(),
    }
}

/// How wide the first column is.
const WIDTH: usize = 20;

fn print_head() {
    print_row("REQUEST", "MET", "WAITED", "CAME BACK");
    println!("{}", "─".repeat(98));
}

fn print_row(request: &str, met: &str, waited: &str, came_back: &str) {
    let row = format!("{request:WIDTH$}{met:27}{waited:27}{came_back}");
    println!("{}", row.trim_end());
}

/// A service on this machine that fails in everyday ways.
struct Shop {
    addr: SocketAddr,
    books: Books,
}

/// How often each request came.
type Books = Arc<Mutex<HashMap<String, u32>>>;

impl Shop {
    async fn open() -> Result<Shop> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (addr, books) = (listener.local_addr()?, Books::default());
        tokio::spawn(serve(listener, books.clone()));
        Ok(Shop { addr, books })
    }

    /// One whose port refuses connections for so long.
    fn open_late(late: Duration) -> Result<Shop> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let (addr, books) = (socket.local_addr()?, Books::default());
        let kept = books.clone();
        tokio::spawn(async move {
            tokio::time::sleep(late).await;
            if let Ok(listener) = socket.listen(16) {
                serve(listener, kept).await;
            }
        });
        Ok(Shop { addr, books })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    fn print_books(&self) {
        let books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let times = |request| books.get(request).copied().unwrap_or_default();
        println!(
            "The shop received POST /payments {}× and POST /orders {}×: \
             what may have been processed is not sent twice.",
            times("POST /payments"),
            times("POST /orders"),
        );
    }
}

async fn serve(listener: TcpListener, books: Books) {
    while let Ok((socket, _)) = listener.accept().await {
        let books = books.clone();
        let answer = service_fn(move |request| answer(request, books.clone()));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), answer));
    }
}

/// Answers a request, or closes its connection.
async fn answer(
    request: http::Request<Incoming>,
    books: Books,
) -> Result<http::Response<Full<Bytes>>> {
    let name = format!("{} {}", request.method(), request.uri().path());
    request.into_body().collect().await?;
    let time = {
        let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
        let times = books.entry(name.clone()).or_default();
        *times += 1;
        *times
    };
    let answer = http::Response::builder();
    let answer = match (name.as_str(), time) {
        ("GET /prices", 1) => answer.status(503).header("retry-after", "1"),
        ("GET /prices", 2) => answer.status(503),
        ("GET /stock", 1) | ("POST /payments", 1) => return Err("the power went".into()),
        ("POST /search", 1) => answer.status(503),
        ("GET /unicorns", _) => answer.status(404),
        ("GET /sale", _) => answer.status(503).header("retry-after", "3600"),
        ("POST /orders" | "PUT /photos/2" | "GET /news", 1) => answer.status(503),
        _ => answer.status(200),
    };
    Ok(answer.body(Full::default())?)
}

/// This repository builds reqwest without a choice of cryptography; a reqwest with its default
/// features needs no such step.
fn install_crypto() {
    // It can only fail where one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
