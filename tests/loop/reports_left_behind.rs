//! Where the report of a send is found afterwards, with real servers.

use std::time::Duration;

use http::{Extensions, Method, StatusCode};
use reqwest::Request;
use reqwest_retry_rules::{
    AttemptResult, ResponseExt, RetryLog, RetryReport, RetryRule, StopReason, TransportError,
    WaitSource,
};

use crate::support::chain::{at_once, retrying};
use crate::support::h1::H1;
use crate::support::script::{Act, Answer};

const NO_WAIT: Option<Duration> = Some(Duration::ZERO);

fn answered(status: u16) -> AttemptResult {
    AttemptResult::Status(StatusCode::from_u16(status).unwrap())
}

#[track_caller]
fn results(report: &RetryReport) -> Vec<AttemptResult> {
    report
        .records()
        .iter()
        .map(|record| record.result())
        .collect()
}

#[tokio::test]
async fn the_report_is_in_the_response_and_in_the_requests_extensions() {
    let server = H1::start([Act::status(503), Act::CloseAfterReading, Act::ok("fine")]).await;
    let (log, mut extensions) = (RetryLog::new(), Extensions::new());
    extensions.insert(log.clone());
    let request = Request::new(Method::GET, server.url("/").parse().unwrap());
    let client = retrying(at_once());
    let response = client
        .execute_with_extensions(request, &mut extensions)
        .await
        .unwrap();

    let report = response.retry_report().unwrap();
    assert_eq!(extensions.get(), Some(report));
    assert_eq!(log.report().as_ref(), Some(report));
    assert_eq!((report.attempts(), response.attempts()), (3, 3));
    let closed = AttemptResult::Failure(TransportError::Closed);
    assert_eq!(results(report), [answered(503), closed, answered(200)]);
    let waits: Vec<_> = report
        .records()
        .iter()
        .map(|record| record.wait())
        .collect();
    assert_eq!(waits, [NO_WAIT, NO_WAIT, None]);
    assert_eq!(report.records()[1].wait_source(), Some(WaitSource::Backoff));
    assert_eq!(report.records()[2].wait_source(), None);
    assert_eq!(report.stop_reason(), None);
    assert!(!report.retries_exhausted());
}

#[tokio::test]
async fn an_answer_at_once_has_no_report_and_one_attempt() {
    for status in [200, 404, 500] {
        let server = H1::start(Act::status(status)).await;
        let mut extensions = Extensions::new();
        let request = Request::new(Method::GET, server.url("/").parse().unwrap());
        let client = retrying(at_once());
        let response = client
            .execute_with_extensions(request, &mut extensions)
            .await
            .unwrap();
        assert_eq!((response.attempts(), response.retry_report()), (1, None));
        assert!(extensions.is_empty());
    }
}

#[tokio::test]
async fn what_is_given_up_at_once_says_why() {
    for (method, reason) in [
        (Method::POST, StopReason::MethodNotAllowed),
        (Method::GET, StopReason::Exhausted),
    ] {
        let server = H1::start(Act::status(503)).await;
        // A POST could be retried, but not for this.
        let client = retrying(RetryRule {
            unsent_failures: true,
            ..at_once()
        });
        let response = client
            .request(method, server.url("/"))
            .send()
            .await
            .unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(report.stop_reason(), Some(reason));
        assert_eq!(report.attempts() as usize, server.count());
        assert_eq!(report.retries_exhausted(), reason == StopReason::Exhausted);
    }
}

#[tokio::test]
async fn a_log_holds_what_became_of_an_error() {
    let (server, log) = (H1::start(Act::CloseAfterReading).await, RetryLog::new());
    assert_eq!(log.report(), None);
    let request = retrying(at_once())
        .get(server.url("/"))
        .with_extension(log.clone());
    request.send().await.unwrap_err();
    let report = log.report().unwrap();
    let closed = AttemptResult::Failure(TransportError::Closed);
    assert_eq!(results(&report), [closed; 4]);
    assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
    assert!(report.retries_exhausted());
}

#[tokio::test]
async fn a_log_holds_an_answer_at_once_too() {
    for rule in [at_once(), RetryRule::never()] {
        let (server, log) = (H1::start(Act::ok("fine")).await, RetryLog::new());
        let request = retrying(rule)
            .get(server.url("/"))
            .with_extension(log.clone());
        let response = request.send().await.unwrap();
        let report = log.report().unwrap();
        assert_eq!(results(&report), [answered(200)]);
        assert_eq!(report.stop_reason(), None);
        assert_eq!(response.attempts(), 1);
    }
}

#[tokio::test]
async fn a_wait_is_read_from_any_response() {
    let answer = Answer::new(404).header("retry-after", "7");
    let server = H1::start([answer, Answer::new(404)]).await;
    let client = retrying(at_once());
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.retry_after(None), Some(Duration::from_secs(7)));
    assert_eq!(response.attempts(), 1);

    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.retry_after(None), None);
}
