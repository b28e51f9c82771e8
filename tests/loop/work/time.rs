use reqwest_retry_rules::{
    Deadline, ErrorExt, Jitter, Limits, StopReason, TotalTimeout, with_rule,
};
use tokio::time::{Instant, sleep};

use super::*;
use crate::support::scripted::{client, hang, ms, status};

#[tokio::test(start_paused = true)]
async fn the_total_timeout_of_a_work_ends_a_send_in_it_and_then_the_work() {
    let transport = Transport::choose(|_| hang());
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once()).total_timeout(ms(200));
    let went = run(policy, async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::TotalTimeout);
    assert!(went.0.unwrap_err().timed_out());
    assert_eq!(transport.now(), 200);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_send_that_is_shorter_than_that_of_the_work_leaves_the_rest_to_repetitions() {
    let transport = Transport::choose(|_| hang());
    let of_client = RetryPolicy::from(RetryRule::never()).total_timeout(ms(80));
    let client = client(&transport, of_client);
    let policy = RetryPolicy::from(at_once()).total_timeout(ms(200));
    let went = run(policy, async |_| get(&client, "").await).await;
    assert_stopped(&went, 3, StopReason::TotalTimeout);
    assert_eq!(
        (transport.times(), transport.now()),
        (vec![0, 80, 160], 200)
    );
}

#[tokio::test(start_paused = true)]
async fn no_wait_is_begun_that_the_time_left_cannot_hold() {
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(waiting(80)).total_timeout(ms(200));
    let went = run(policy, async |_| get(&client, "").await).await;
    assert_stopped(&went, 3, StopReason::Budget(ms(80)));
    assert_eq!(transport.now(), 160);
}

#[tokio::test(start_paused = true)]
async fn the_time_left_is_shared_with_the_retries_of_the_sends() {
    let transport = Transport::choose(|_| status(503));
    let client = client(&transport, waiting(80));
    let policy = RetryPolicy::from(waiting(80)).total_timeout(ms(200));
    let went = run(policy, async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::Budget(ms(80)));
    assert_eq!(transport.times(), [0, 80, 160]);
}

#[tokio::test(start_paused = true)]
async fn the_total_timeout_does_not_bound_the_reading_of_a_body() {
    let transport = Transport::new([ok().slow_body(500, ["one", "two", "three", "four"])]);
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once()).total_timeout(ms(200));
    let went = run(policy, async |_| read(&client, "").await).await;
    assert_done(&went, 1);
    assert!(transport.now() >= 2000);
}

#[tokio::test(start_paused = true)]
async fn tokios_timeout_around_a_work_does() {
    let transport = Transport::new([ok().slow_body(500, ["one", "two", "three", "four"])]);
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let work = policy.run(async |_| read(&client, "").await);
    assert!(tokio::time::timeout(ms(200), work).await.is_err());
    assert_eq!(transport.now(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_work_whose_time_is_over_as_a_body_fails_is_not_done_again() {
    let transport = Transport::choose(|_| broken());
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once()).total_timeout(ms(200));
    let went = run(policy, async |_| {
        let response = get(&client, "").await?;
        sleep(ms(300)).await;
        Ok(response.text().await?)
    })
    .await;
    assert_stopped(&went, 1, StopReason::Budget(ms(0)));
}

#[tokio::test(start_paused = true)]
async fn limits_take_the_time_of_the_work_for_repetitions_and_of_the_send_for_its_retries() {
    let limits = |hard| Limits {
        hard_elapsed: Some(ms(hard)),
        ..Limits::default()
    };
    let limited = RetryRule {
        limits: limits(100),
        ..waiting(10)
    };
    // Each send starts 90 ms into its call, so the second is beyond 100 ms of the work.
    let transport = Transport::choose(|_| status(503));
    let client = client(&transport, limited.clone());
    let begun = Instant::now();
    let went = run(limited, async |_| {
        sleep(ms(90)).await;
        get(&client, "").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::HardLimit(ms(10)));
    // The wait was not begun.
    assert_eq!(begun.elapsed(), ms(180));
    // The send itself had its own 100 ms: nine retries, 10 ms apart.
    assert_eq!(transport.count(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_a_repetition_has_jitter() {
    let transport = Transport::new([status(503), ok()]);
    let client = without_retries(&transport);
    let mut rule = waiting(1000);
    rule.backoff.jitter = Jitter::Full;
    let policy = RetryPolicy::from(rule).jitter_source(|| 0.25);
    assert_done(&run(policy, async |_| get(&client, "").await).await, 2);
    assert_eq!(transport.times(), [0, 250]);
}

#[tokio::test(start_paused = true)]
async fn the_hard_limit_is_looked_at_again_after_the_wait() {
    let transport = Transport::choose(|_| status(503).header("retry-after-ms", "40"));
    let client = without_retries(&transport);
    let rule = RetryRule {
        limits: Limits {
            hard_elapsed: Some(ms(50)),
            ..Limits::default()
        },
        ..at_once()
    };
    let policy = RetryPolicy::from(rule);
    let mut work = std::pin::pin!(run(policy, async |_| get(&client, "").await));
    assert!(futures_util::poll!(&mut work).is_pending());
    // The task wakes late.
    tokio::time::advance(ms(60)).await;
    assert_stopped(&work.await, 1, StopReason::HardLimit(ms(40)));
}

#[tokio::test(start_paused = true)]
async fn a_nested_work_has_the_time_of_the_outermost() {
    let transport = Transport::choose(|_| hang());
    let client = without_retries(&transport);
    let inner = RetryPolicy::from(at_once()).total_timeout(ms(80));
    let outer = RetryPolicy::from(at_once()).total_timeout(ms(200));
    let went = run(outer.clone(), async |_| {
        inner.run(async |_| get(&client, "").await).await
    })
    .await;
    assert_stopped(&went, 3, StopReason::TotalTimeout);
    assert_eq!(transport.now(), 200);
    // A longer one inside does not help.
    let transport = Transport::choose(|_| hang());
    let client = without_retries(&transport);
    let inner = RetryPolicy::from(at_once()).total_timeout(ms(999));
    let went = run(outer, async |_| {
        inner.run(async |_| get(&client, "").await).await
    })
    .await;
    assert_stopped(&went, 1, StopReason::TotalTimeout);
    assert_eq!(transport.now(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_work_without_any_time_sends_nothing() {
    let transport = Transport::new([]);
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once()).total_timeout(ms(0));
    let went = run(policy, async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::TotalTimeout);
}

#[tokio::test(start_paused = true)]
async fn overrides_of_the_task_hold_for_a_work() {
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(RetryRule::never());
    let mut calls = 0;
    let work = policy.run(|_| {
        calls += 1;
        get(&client, "")
    });
    // The rule holds for the send too, and both are one count.
    assert!(with_rule(at_once(), work).await.is_err());
    assert_eq!((calls, transport.count()), (1, 4));

    let hanging = Transport::choose(|_| hang());
    let client = without_retries(&hanging);
    let begun = Instant::now();
    let policy = RetryPolicy::from(at_once());
    let deadline = Overrides::new().deadline(Deadline::after(ms(50)));
    let work = policy.run(async |_| get(&client, "").await);
    assert!(with_overrides(deadline, work).await.is_err());
    assert_eq!(begun.elapsed(), ms(50));

    let timeout = Overrides::new().total_timeout(ms(70));
    let work = policy.run(async |_| get(&client, "").await);
    assert!(with_overrides(timeout, work).await.is_err());
    assert_eq!(begun.elapsed(), ms(120));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_lifts_its_own_bound_is_still_bounded_by_the_work() {
    let transport = Transport::choose(|_| hang());
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once()).total_timeout(ms(200));
    let went = run(policy, async |_| {
        let endless = TotalTimeout(std::time::Duration::MAX);
        client.get(URL).with_extension(endless).send().await
    })
    .await;
    assert_stopped(&went, 1, StopReason::TotalTimeout);
    assert_eq!(transport.now(), 200);
}
