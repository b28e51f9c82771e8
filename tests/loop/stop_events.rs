//! Observers are called for every failed send, also where no retry is possible.

use std::sync::{Arc, Mutex};

use http::Method;
use reqwest_retry_rules::{
    AttemptResult, RecoveredEvent, RetryEvent, RetryObserver, RetryPolicy, RetryRule, StopEvent,
    StopReason, TransportError,
};

use crate::support::scripted::{Act, Transport, URL, client, errors, fail, ok, send, status};

/// The stops that it was called for; any other call is one too many.
#[derive(Default)]
struct Stops(Mutex<Vec<(u32, Option<AttemptResult>, StopReason)>>);

impl RetryObserver for Stops {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        panic!("{event:?}");
    }

    fn on_recovered(&self, event: &RecoveredEvent<'_>) {
        panic!("{event:?}");
    }

    fn on_stop(&self, event: &StopEvent<'_>) {
        let stop = (event.attempts(), event.result(), event.reason());
        self.0.lock().unwrap().push(stop);
    }
}

/// The stops of one send with this method that meets this act.
async fn stops(
    rule: RetryRule,
    method: Method,
    act: Act,
) -> Vec<(u32, Option<AttemptResult>, StopReason)> {
    let stops = Arc::new(Stops::default());
    let policy = RetryPolicy::from(rule).observer(Arc::clone(&stops));
    let _ = client(&Transport::new([act]), policy)
        .request(method, URL)
        .send()
        .await;
    std::mem::take(&mut stops.0.lock().unwrap())
}

/// The preset without retries.
fn no_retries() -> RetryRule {
    RetryRule {
        max_retries: 0,
        ..RetryRule::transient()
    }
}

fn answered(status: u16) -> AttemptResult {
    AttemptResult::Status(http::StatusCode::from_u16(status).unwrap())
}

const REFUSED: AttemptResult = AttemptResult::Failure(TransportError::Connect);

#[tokio::test(start_paused = true)]
async fn a_send_that_fails_without_retries_is_one() {
    for method in [Method::GET, Method::POST] {
        assert_eq!(
            stops(no_retries(), method.clone(), status(503)).await,
            [(1, Some(answered(503)), StopReason::Exhausted)]
        );
        assert_eq!(
            stops(no_retries(), method.clone(), fail(errors::refused())).await,
            [(1, Some(REFUSED), StopReason::Exhausted)]
        );
    }
}

/// The twins: what is not retried whatever the number of retries, and what nothing is wrong with.
#[tokio::test(start_paused = true)]
async fn an_answer_that_no_rule_refuses_is_none() {
    for method in [Method::GET, Method::POST] {
        for answer in [ok, || status(404), || status(500)] {
            assert_eq!(stops(no_retries(), method.clone(), answer()).await, []);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_of_a_method_that_no_rule_retries_is_one_if_it_fails() {
    let transient = RetryRule::transient;
    assert_eq!(
        stops(transient(), Method::POST, status(503)).await,
        [(1, Some(answered(503)), StopReason::MethodNotAllowed)]
    );
    assert_eq!(
        stops(transient(), Method::POST, fail(errors::refused())).await,
        [(1, Some(REFUSED), StopReason::MethodNotAllowed)]
    );
    assert_eq!(stops(transient(), Method::POST, ok()).await, []);
}

/// With `never()` no status is refused, and every failure is one.
#[tokio::test(start_paused = true)]
async fn under_a_rule_that_retries_nothing_a_failure_is_one_and_an_answer_none() {
    let never = RetryRule::never;
    assert_eq!(stops(never(), Method::GET, status(503)).await, []);
    assert_eq!(
        stops(never(), Method::GET, fail(errors::refused())).await,
        [(1, Some(REFUSED), StopReason::Exhausted)]
    );
}

/// The report says the same as the observer.
#[tokio::test(start_paused = true)]
async fn a_log_without_an_observer_has_the_reason_too() {
    let transport = Transport::new([status(503)]);
    let (outcome, report) = send(&transport, no_retries(), |client| client.get(URL)).await;
    assert_eq!(outcome.unwrap().status(), 503);
    assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
    assert_eq!(report.attempts(), 1);
    let (_, report) = send(&Transport::new([ok()]), no_retries(), |client| {
        client.get(URL)
    })
    .await;
    assert_eq!((report.stop_reason(), report.attempts()), (None, 1));
}
