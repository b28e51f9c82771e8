//! What a judge wants again goes by the limits, the jitter and the pauses of the rule like all else.

use std::time::Duration;

use reqwest_retry_rules::{Failure, Jitter, Limits, PauseTerms, ReplaySafe};
use tokio::time::{Instant, sleep};

use super::*;
use crate::support::scripted::{errors, fail, ms, status};

const BUSY: &str = "busy";

/// Does a work whose every error is `busy`, and asks for it again as `failure` says.
async fn judged<F>(
    policy: impl Into<RetryPolicy>,
    failure: impl Fn() -> Failure<'static>,
    work: impl FnMut(u32) -> F,
) -> RetryReport
where
    F: Future<Output = std::result::Result<(), &'static str>>,
{
    let policy = policy.into();
    logged(policy.run_judged(|_| failure(), work)).await.1
}

fn again() -> Failure<'static> {
    Failure::Retry(Methods::Any)
}

fn ended(report: &RetryReport) -> (u32, Option<StopReason>) {
    (report.attempts(), report.stop_reason())
}

/// A work that is done at the second call.
async fn at_the_second(attempt: u32) -> std::result::Result<(), &'static str> {
    if attempt == 1 { Err(BUSY) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn the_wait_has_jitter() {
    let mut rule = waiting(1000);
    rule.backoff.jitter = Jitter::Full;
    let policy = RetryPolicy::from(rule).jitter_source(|| 0.25);
    let begun = Instant::now();
    let report = judged(policy, again, at_the_second).await;
    assert_eq!(ended(&report), (2, None));
    assert_eq!(begun.elapsed(), ms(250));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_a_limit_or_the_time_left_cannot_hold_is_not_begun() {
    let limited = RetryRule {
        limits: Limits {
            hard_elapsed: Some(ms(100)),
            ..Limits::default()
        },
        ..waiting(20)
    };
    let bounded = RetryPolicy::from(waiting(20)).total_timeout(ms(100));
    for (policy, reason) in [
        (limited.into(), StopReason::HardLimit(ms(20))),
        (bounded, StopReason::Budget(ms(20))),
    ] {
        for (call, end) in [(85, (1, Some(reason))), (75, (2, None))] {
            let begun = Instant::now();
            let report = judged(policy.clone(), again, async |attempt| {
                if attempt == 1 {
                    sleep(ms(call)).await;
                }
                at_the_second(attempt).await
            })
            .await;
            assert_eq!(ended(&report), end, "{reason:?}");
            let waited = if end.0 == 1 { 0 } else { 20 };
            assert_eq!(begun.elapsed(), ms(call + waited), "{reason:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stated_of_a_send_counts() {
    for (method, stated, calls, reason) in [
        (Method::GET, Some(false), 1, StopReason::MethodNotAllowed),
        (Method::GET, None, 4, StopReason::Exhausted),
        (Method::POST, Some(true), 4, StopReason::Exhausted),
        (Method::POST, None, 1, StopReason::MethodNotAllowed),
    ] {
        let transport = Transport::choose(|_| ok());
        let client = without_retries(&transport);
        let idempotent = || Failure::Retry(Methods::Idempotent);
        let report = judged(at_once(), idempotent, async |_| {
            let mut request = client.request(method.clone(), URL);
            if let Some(safe) = stated {
                request = request.with_extension(ReplaySafe(safe));
            }
            request.send().await.map_err(|_| "not sent")?;
            Err(BUSY)
        })
        .await;
        assert_eq!(ended(&report), (calls, Some(reason)), "{method} {stated:?}");
    }
}

/// The wait before the second call of a work in which an origin asked for a rest of two seconds,
/// and another request to it then failed.
async fn wait_after_a_rest(terms: Option<PauseTerms>, by_judge: bool) -> Duration {
    let mut policy = RetryPolicy::from(at_once());
    if let Some(terms) = terms {
        policy = policy.pause_origins(terms);
    }
    let transport = Transport::new([
        status(503).header("retry-after", "2"),
        fail(errors::closed()),
        ok(),
    ]);
    let client = client(&transport, policy.clone());
    let never = RetryRule {
        max_retries: 0,
        ..at_once()
    };
    let unpaused = without_retries(&transport);
    let doing = policy.run_judged(
        |error: &Error| match by_judge {
            true => again(),
            false => Failure::ByRule(error),
        },
        async |attempt| {
            if attempt == 1 {
                client.get(URL).with_extension(never.clone()).send().await?;
            }
            get(&unpaused, "").await
        },
    );
    let (outcome, report) = logged(doing).await;
    outcome.expect("an answer");
    assert_eq!(report.attempts(), 2);
    report.records()[0].wait().expect("a wait")
}

#[tokio::test(start_paused = true)]
async fn a_repetition_waits_while_its_origin_asks_for_rest() {
    let terms = PauseTerms {
        spread: 0,
        ..PauseTerms::default()
    };
    for by_judge in [true, false] {
        assert_eq!(wait_after_a_rest(Some(terms), by_judge).await, ms(2000));
        assert_eq!(wait_after_a_rest(None, by_judge).await, ms(0));
    }
}
