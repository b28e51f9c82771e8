use std::error::Error as StdError;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use reqwest_retry_rules::{Failure, Methods, RetryPolicy, StopReason};

use super::*;
use crate::support::scripted::{ms, status, times};

#[tokio::test(start_paused = true)]
async fn a_work_is_called_with_one_first_and_then_with_two_until_it_succeeds() {
    let transport = Transport::new([status(503), status(503), ok()]);
    let client = without_retries(&transport);
    let calls = Mutex::new(Vec::new());
    let went = run(at_once(), async |attempt| {
        calls.lock().unwrap().push(attempt);
        get(&client, "").await?;
        Ok(attempt)
    })
    .await;
    assert_done(&went, 3);
    assert_eq!(went.0.unwrap(), 3);
    assert_eq!(calls.into_inner().unwrap(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_work_that_succeeds_at_once_is_called_once_whatever_was_answered() {
    let transport = Transport::new([status(503)]);
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| Ok(client.get(URL).send().await?)).await;
    assert_done(&went, 1);
    assert_eq!(went.0.unwrap().status(), 503);
}

/// An error that is known again by its number.
#[derive(Debug)]
struct Numbered(u32, reqwest::Error);

impl std::fmt::Display for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "number {}", self.0)
    }
}

impl StdError for Numbered {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.1)
    }
}

async fn numbered(client: &ClientWithMiddleware, number: u32) -> Result<(), Numbered> {
    let response = client.get(URL).send().await.unwrap();
    let refused = response.error_for_status().map(drop);
    refused.map_err(|error| Numbered(number, error))
}

use std::result::Result;

#[tokio::test(start_paused = true)]
async fn the_last_error_comes_back_unchanged_of_whatever_type() {
    let transport = Transport::new(times(4, || status(503)));
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let work = |attempt| numbered(&client, attempt);
    let error = policy.run(work).await.unwrap_err();
    assert_eq!((error.0, transport.count()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_work_may_change_what_it_owns_and_need_not_be_static() {
    let transport = Transport::new([status(503), ok()]);
    let client = without_retries(&transport);
    let (policy, mut calls) = (RetryPolicy::from(at_once()), 0);
    let outcome = policy.run(|_| {
        calls += 1;
        get(&client, "")
    });
    outcome.await.unwrap();
    assert_eq!(calls, 2);
}

#[async_trait]
trait Sdk {
    async fn index(&self, policy: &RetryPolicy) -> anyhow::Result<u32>;
}

struct OfClient(ClientWithMiddleware);

#[async_trait]
impl Sdk for OfClient {
    async fn index(&self, policy: &RetryPolicy) -> anyhow::Result<u32> {
        let done = policy.run_judged(
            |error: &anyhow::Error| Failure::ByRule(error.as_ref()),
            async |attempt| {
                get(&self.0, "").await?;
                anyhow::Ok(attempt)
            },
        );
        done.await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_work_can_be_spawned_and_hidden_behind_async_trait() {
    let transport = Transport::new([status(503), ok()]);
    let sdk: Box<dyn Sdk + Send + Sync> = Box::new(OfClient(without_retries(&transport)));
    let done = tokio::spawn(async move { sdk.index(&RetryPolicy::from(at_once())).await });
    assert_eq!(done.await.unwrap().unwrap(), 2);

    let transport = Transport::new([status(503).after(2), ok()]);
    let client = without_retries(&transport);
    let done = tokio::spawn(async move {
        let policy = RetryPolicy::from(at_once());
        policy
            .run(async |attempt| get(&client, "").await.map(|_| attempt))
            .await
    });
    assert_eq!(done.await.unwrap().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_judge_sees_errors_of_every_type() {
    let policy = RetryPolicy::from(at_once());
    let transport = Transport::new([status(503), ok(), status(503), ok()]);
    let client = without_retries(&transport);

    type Boxed = Box<dyn StdError + Send + Sync>;
    let boxed = policy.run_judged(
        |error: &Boxed| Failure::ByRule(error.as_ref()),
        async |attempt| Ok::<_, Boxed>(get(&client, "").await.map(|_| attempt)?),
    );
    assert_eq!(boxed.await.unwrap(), 2);

    let shared = policy.run_judged(
        |error: &Arc<Error>| Failure::ByRule(error.as_ref()),
        async |attempt| get(&client, "").await.map(|_| attempt).map_err(Arc::new),
    );
    assert_eq!(shared.await.unwrap(), 2);
}

/// Does a work of one request that is answered, and whose answer the judge does not like.
async fn judged(
    method: Method,
    policy: impl Into<RetryPolicy>,
    judge: impl Fn() -> Failure<'static>,
) -> (usize, Vec<u128>, RetryReport) {
    let transport = Transport::new(times(9, ok));
    let client = without_retries(&transport);
    let policy = policy.into();
    let work = policy.run_judged(
        |_: &&str| judge(),
        async |_| -> Result<(), &str> {
            send(&client, method.clone(), "").await.unwrap();
            Err("not what was wanted")
        },
    );
    let (outcome, report) = logged(work).await;
    assert_eq!(outcome, Err("not what was wanted"));
    (transport.count(), transport.times(), report)
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_wants_it_again_has_it_again_as_often_as_the_rule_allows() {
    let again = || Failure::Retry(Methods::Idempotent);
    let (sent, _, report) = judged(Method::GET, at_once(), again).await;
    assert_eq!(
        (sent, report.stop_reason()),
        (4, Some(StopReason::Exhausted))
    );
}

#[tokio::test(start_paused = true)]
async fn the_methods_of_a_judge_must_allow_every_send_that_was_processed() {
    for methods in [Methods::Idempotent, Methods::Listed(vec![Method::GET])] {
        let again = || Failure::Retry(methods.clone());
        let (sent, _, report) = judged(Method::POST, at_once(), again).await;
        assert_eq!(
            (sent, report.stop_reason()),
            (1, Some(StopReason::MethodNotAllowed))
        );
    }
    for methods in [Methods::Any, Methods::Listed(vec![Method::POST])] {
        let again = || Failure::Retry(methods.clone());
        let (sent, ..) = judged(Method::POST, at_once(), again).await;
        assert_eq!(sent, 4);
    }
    let never = || Failure::Retry(Methods::Never);
    let (sent, _, report) = judged(Method::GET, at_once(), never).await;
    assert_eq!(
        (sent, report.stop_reason()),
        (1, Some(StopReason::NotRetryable))
    );
}

#[tokio::test(start_paused = true)]
async fn a_row_for_the_status_of_the_answer_says_nothing_of_what_a_judge_names() {
    let rule = RetryRule {
        statuses: vec![StatusRule::new([200], Methods::Any)],
        ..at_once()
    };
    let again = || Failure::Retry(Methods::Idempotent);
    let (sent, ..) = judged(Method::POST, rule, again).await;
    assert_eq!(sent, 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_a_judge_names_is_the_servers_under_the_cap() {
    let wait = |wait| move || Failure::RetryAfter(Methods::Idempotent, ms(wait));
    let (_, times, report) = judged(Method::GET, at_once(), wait(70)).await;
    assert_eq!(times, [0, 70, 140, 210]);
    assert_eq!(report.retry_after(), Some(ms(70)));
    let (sent, _, report) = judged(Method::GET, at_once(), wait(90_000)).await;
    let reason = StopReason::RetryAfterTooLong(ms(90_000));
    assert_eq!((sent, report.stop_reason()), (1, Some(reason)));
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_says_stop_stops() {
    let (sent, _, report) = judged(Method::GET, at_once(), || Failure::Stop).await;
    assert_eq!(
        (sent, report.stop_reason()),
        (1, Some(StopReason::NotRetryable))
    );
}

#[tokio::test(start_paused = true)]
async fn a_work_that_is_dropped_ends_at_once() {
    let transport = Transport::new([status(503).header("retry-after", "1"), ok()]);
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let work = policy.run(async |_| get(&client, "").await);
    let outcome = tokio::time::timeout(ms(500), work).await;
    assert!(outcome.is_err());
    tokio::time::sleep(ms(2000)).await;
    assert_eq!(transport.count(), 1);
}
