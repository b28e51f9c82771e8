use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use reqwest_retry_rules::{Failure, ResponseExt, StopReason};

use super::*;
use crate::support::scripted::{client, ms, status, times};

#[tokio::test(start_paused = true)]
async fn a_work_that_never_sends_is_done_once_and_its_error_comes_back() {
    let went: (Result, _) = run(at_once(), async |_| {
        Err(Error::middleware(std::io::Error::other("no disk")))
    })
    .await;
    assert_stopped(&went, 1, StopReason::NotRetryable);
    assert_eq!(went.0.unwrap_err().to_string(), "no disk");
}

#[tokio::test(start_paused = true)]
async fn a_work_that_never_sends_is_done_again_if_its_judge_says_so() {
    let policy = RetryPolicy::from(at_once());
    let work = |attempt: u32| async move {
        if attempt < 3 {
            Err("not yet")
        } else {
            Ok(attempt)
        }
    };
    let again = |methods: Methods| {
        let policy = &policy;
        async move {
            policy
                .run_judged(|_| Failure::Retry(methods.clone()), work)
                .await
        }
    };
    assert_eq!(again(Methods::Idempotent).await, Ok(3));
    assert_eq!(again(Methods::Listed(vec![Method::GET])).await, Ok(3));
    assert_eq!(again(Methods::Never).await, Err("not yet"));
}

#[tokio::test(start_paused = true)]
async fn a_work_that_fails_after_answers_only_comes_back_unless_the_error_is_of_the_transport() {
    let transport = Transport::new([ok(), ok().body("no number")]);
    let client = client(&transport, at_once());
    let went: (Result<u32>, _) = run(at_once(), async |_| {
        get(&client, "").await?;
        Ok(get(&client, "").await?.json().await?)
    })
    .await;
    assert_stopped(&went, 1, StopReason::NotRetryable);
    assert!(matches!(went.0, Err(Error::Reqwest(error)) if error.is_decode()));
}

/// A send of the same task behaves as if there had never been a work.
async fn assert_nothing_is_left() {
    let transport = Transport::new(times(4, || status(503)));
    let client = client(&transport, at_once());
    let response = client.get(URL).send().await.unwrap();
    assert_eq!(response.attempts(), 4);
    // And it passes through, if nothing is to be done, without a report.
    let response = without_retries(&Transport::new([status(503)]))
        .get(URL)
        .send()
        .await;
    assert!(response.unwrap().retry_report().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_work_goes_on_and_leaves_nothing_behind() {
    let transport = Transport::new([status(503), ok()]);
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let work = policy.run(async |attempt| {
        get(&client, "").await?;
        assert!(attempt < 2, "as it should");
        Ok::<_, Error>(())
    });
    assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
    assert_nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_a_work_gives_its_future_leaves_nothing_behind() {
    let policy = RetryPolicy::from(at_once());
    let work = policy.run(|attempt: u32| {
        assert!(attempt > 9, "as it should");
        async { Ok::<_, Error>(()) }
    });
    assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
    assert_nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_judge_goes_on_and_leaves_nothing_behind() {
    let policy = RetryPolicy::from(at_once());
    let transport = Transport::new([status(503)]);
    let client = without_retries(&transport);
    let work = policy.run_judged(
        |_| panic!("as it should"),
        async |_| get(&client, "").await.map(drop),
    );
    assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
    assert_nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_work_that_is_dropped_inside_another_future_leaves_nothing_behind() {
    let transport = Transport::new([status(200).after(1000)]);
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    {
        let work = policy.run(async |_| get(&client, "").await);
        assert!(tokio::time::timeout(ms(10), work).await.is_err());
    }
    assert_nothing_is_left().await;
}
