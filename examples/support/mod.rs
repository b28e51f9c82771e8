//! What the examples share: a small service on this machine to talk to, and the printing of what a
//! send went through.
#![allow(dead_code)] // each example uses a part
#![allow(clippy::disallowed_methods)] // what clippy.toml bans, it bans from src

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use reqwest_retry_rules::{AttemptResult, RetryReport, TransportError, WaitSource};
use tokio::net::{TcpListener, TcpStream};

/// A response, or an error that closes the connection without one.
pub type Answer = io::Result<Response<String>>;

/// A response with these headers and an empty body.
pub fn answer(status: u16, headers: &[(&str, &str)]) -> Answer {
    let response = Response::builder().status(status);
    headers
        .iter()
        .fold(response, |response, (name, value)| {
            response.header(*name, *value)
        })
        .body(String::new())
        .map_err(io::Error::other)
}

/// An HTTP/1.1 service on a free port.
pub struct Service {
    address: SocketAddr,
    seen: Seen,
}

impl Service {
    /// Starts one. `answer` gets each request, and how many there were for its path so far, itself
    /// included.
    pub async fn start<F, A>(answer: F) -> io::Result<Service>
    where
        F: Fn(u32, Request<Incoming>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        // reqwest is built without a TLS provider here. Nothing below uses TLS, but a client wants
        // one; that another was installed before is no harm.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, seen) = (listener.local_addr()?, Seen::default());
        let service = Service {
            address,
            seen: seen.clone(),
        };
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, seen.clone(), answer.clone()));
            }
        });
        Ok(service)
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many requests for this path came.
    pub fn seen(&self, path: &str) -> u32 {
        self.seen.of(path)
    }
}

async fn serve<F, A>(socket: TcpStream, seen: Seen, answer: F)
where
    F: Fn(u32, Request<Incoming>) -> A,
    A: Future<Output = Answer>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let nth = seen.one_more(request.uri().path());
        answer(nth, request)
    });
    // A connection that ends early is the client's to notice.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

/// How many requests came, by path.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<HashMap<String, u32>>>);

impl Seen {
    fn one_more(&self, path: &str) -> u32 {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = seen.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn of(&self, path: &str) -> u32 {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(path).copied().unwrap_or_default()
    }
}

/// Prints a heading, and a line for each attempt: what it came to, what was done then, and why.
pub fn print(heading: &str, report: &RetryReport) {
    println!("{heading}");
    for record in report.records() {
        let (then, why) = match (record.wait(), report.stop_reason()) {
            (Some(wait), _) => (
                format!("wait {:>4} ms", wait.as_millis()),
                source(record.wait_source()).to_owned(),
            ),
            (None, Some(reason)) => ("stop".to_owned(), reason.to_string()),
            (None, None) => ("answer".to_owned(), String::new()),
        };
        let line = format!("    {:<18}{then:<15}{why}", result(record.result()));
        println!("{}", line.trim_end());
    }
    println!();
}

/// What an attempt came to, in few words.
fn result(result: AttemptResult) -> String {
    match result {
        AttemptResult::Failure(TransportError::Closed) => "connection lost".to_owned(),
        AttemptResult::Failure(TransportError::Timeout) => "no answer".to_owned(),
        AttemptResult::Failure(TransportError::Connect) => "no connection".to_owned(),
        other => other.to_string(),
    }
}

fn source(source: Option<WaitSource>) -> &'static str {
    match source {
        Some(WaitSource::Server) => "the service asks for it",
        _ => "backoff",
    }
}
