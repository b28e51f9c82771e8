//! `RetryPolicy::run`: one loop around several sends.
//!
//! What DESIGN 3.6 says, and where it is tested:
//!
//! | sentence | file |
//! | --- | --- |
//! | how a work is called, and what comes back | `shape` |
//! | retries and repetitions are one count | `count` |
//! | what failed is what the error says | `what_failed` |
//! | the promise holds for the whole work | `promise` |
//! | works and sends inside works and sends | `inside_out` |
//! | what a judge wants again | `judged` |
//! | the time of a work, and its overrides | `time` |
//! | observers, events, reports, budget | `events` |
//! | a call that makes more sends than are kept | `many_sends` |
//! | panics, drops, works that never send | `bad_works` |

mod bad_works;
mod count;
mod events;
mod inside_out;
mod judged;
mod many_sends;
mod promise;
mod shape;
mod time;
mod what_failed;

use std::future::Future;

use http::Method;
use reqwest::{Body, Response};
use reqwest_middleware::{ClientWithMiddleware, Error};
use reqwest_retry_rules::{
    Backoff, Methods, Overrides, RetryLog, RetryPolicy, RetryReport, RetryRule, StatusRule,
    StopReason, with_overrides,
};

use crate::support::chain::at_once;
use crate::support::scripted::{Act, Transport, URL, client, ms, ok};

/// What a work that fails comes to.
type Result<T = ()> = std::result::Result<T, Error>;

/// Retries by status for every method, at once.
fn any() -> RetryRule {
    RetryRule {
        statuses: vec![StatusRule::new([503], Methods::Any)],
        ..at_once()
    }
}

/// Retries as often as need be, with a wait.
fn waiting(milliseconds: u64) -> RetryRule {
    RetryRule {
        backoff: Backoff {
            base: ms(milliseconds),
            max: ms(milliseconds),
            ..Backoff::default()
        },
        max_retries: 99,
        ..at_once()
    }
}

/// A client whose sends do not retry by themselves.
fn without_retries(transport: &Transport) -> ClientWithMiddleware {
    client(transport, RetryRule::never())
}

/// Sends a request, and turns a refusal into an error.
async fn send(client: &ClientWithMiddleware, method: Method, path: &str) -> Result<Response> {
    let response = client
        .request(method, format!("{URL}{path}"))
        .send()
        .await?;
    Ok(response.error_for_status()?)
}

async fn get(client: &ClientWithMiddleware, path: &str) -> Result<Response> {
    send(client, Method::GET, path).await
}

async fn post(client: &ClientWithMiddleware, path: &str) -> Result<Response> {
    send(client, Method::POST, path).await
}

/// Sends a GET, and reads its body.
async fn read(client: &ClientWithMiddleware, path: &str) -> Result<String> {
    Ok(get(client, path).await?.text().await?)
}

/// Does a work, and reads its report.
async fn run<T, F>(
    policy: impl Into<RetryPolicy>,
    work: impl FnMut(u32) -> F,
) -> (Result<T>, RetryReport)
where
    F: Future<Output = Result<T>>,
{
    let policy = policy.into();
    logged(policy.run(work)).await
}

/// Waits for a work, and reads its report.
async fn logged<F: Future>(doing: F) -> (F::Output, RetryReport) {
    let log = RetryLog::new();
    let outcome = with_overrides(Overrides::new().log(log.clone()), doing).await;
    (outcome, log.report().expect("a report"))
}

/// Asserts how a work ended, and after how many calls.
#[track_caller]
fn assert_stopped<T>(went: &(Result<T>, RetryReport), calls: u32, reason: StopReason) {
    let (outcome, report) = went;
    assert!(outcome.is_err());
    assert_eq!(
        (report.attempts(), report.stop_reason()),
        (calls, Some(reason))
    );
}

#[track_caller]
fn assert_done<T>(went: &(Result<T>, RetryReport), calls: u32) {
    let (outcome, report) = went;
    assert!(outcome.is_ok(), "{:?}", outcome.as_ref().err());
    assert_eq!((report.attempts(), report.stop_reason()), (calls, None));
}

/// An answer whose body breaks off.
fn broken() -> Act {
    let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let pieces = futures_util::stream::iter([Ok("half"), Err(error)]);
    ok().body(Body::wrap_stream(pieces))
}
