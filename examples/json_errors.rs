//! A service that says in the body what its status does not: JSON-RPC over POST.
//!
//! Run it with `cargo run --example json_errors`.

mod support;

use std::io;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry_rules::{
    Judgement, Methods, ReplaySafe, ResponseHead, RetryLog, RetryMiddleware, RetryPolicy,
    RetryRule, client_builder,
};
use serde::Deserialize;
use serde_json::{Value, json};

use support::{Answer, Service};

#[derive(Deserialize)]
struct RpcAnswer {
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    /// How long to wait, which this service says in no header.
    retry_after_ms: Option<u64>,
}

const BUSY: i64 = -32_001;
const OUT_OF_CREDIT: i64 = -32_002;

/// What an answer means, whatever its status. It is a function like any other, so it can be tested
/// without a network.
fn judge(_: &ResponseHead<'_>, body: &[u8]) -> Judgement {
    let Ok(RpcAnswer { error: Some(error) }) = serde_json::from_slice(body) else {
        return Judgement::ByRule;
    };
    match (error.code, error.retry_after_ms) {
        (BUSY, Some(wait)) => Judgement::RetryAfter(Duration::from_millis(wait)),
        (BUSY, None) => Judgement::Retry,
        // No wait will cure it, though it comes with a 429.
        (OUT_OF_CREDIT, _) => Judgement::Stop,
        _ => Judgement::ByRule,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(rpc).await?;
    // Every call is a POST. `Idempotent` means those that say by `ReplaySafe` that they only read.
    let policy =
        RetryPolicy::from(RetryRule::transient()).judge_body(Methods::Idempotent, 64 * 1024, judge);
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(policy))
        .build();

    for (what, method, reads) in [
        ("a 200 that says \"busy\"", "search", true),
        ("a 200 that says how long", "prices", true),
        ("a 429 that will pass", "stock", true),
        ("a 429, out of credit", "translate", true),
        (
            "a 200 that says \"busy\", of a call that changes something",
            "transfer",
            false,
        ),
    ] {
        call(&client, &service, what, method, reads).await?;
    }
    Ok(())
}

async fn call(
    client: &ClientWithMiddleware,
    service: &Service,
    what: &str,
    method: &str,
    reads: bool,
) -> anyhow::Result<()> {
    // Without a log nothing is noted of a call that could not be made again anyway.
    let log = RetryLog::new();
    let mut request = client
        .post(service.url(&format!("/{method}")))
        .with_extension(log.clone())
        .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": method }));
    if reads {
        request = request.with_extension(ReplaySafe(true));
    }
    let response = request.send().await?;
    if let Some(report) = log.report() {
        support::print(&format!("{method}: {what}"), &report);
    }
    // The body that was judged is still there to be read.
    let answer: Value = response.json().await?;
    println!(
        "    came back: {}\n",
        answer.get("error").unwrap_or(&answer["result"])
    );
    Ok(())
}

async fn rpc(nth: u32, request: Request<Incoming>) -> Answer {
    let (status, body) = match (request.uri().path(), nth) {
        ("/search", 1) | ("/transfer", _) => (200, error(BUSY, Value::Null)),
        ("/prices", 1) => (200, error(BUSY, json!(250))),
        ("/stock", 1) => (429, error(BUSY, json!(120))),
        ("/translate", _) => (429, error(OUT_OF_CREDIT, Value::Null)),
        _ => (200, json!({ "jsonrpc": "2.0", "id": 1, "result": "done" })),
    };
    http::Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(body.to_string())
        .map_err(io::Error::other)
}

fn error(code: i64, retry_after_ms: Value) -> Value {
    let error = json!({ "code": code, "retry_after_ms": retry_after_ms });
    json!({ "jsonrpc": "2.0", "id": 1, "error": error })
}
