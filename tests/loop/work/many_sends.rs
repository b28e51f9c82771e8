//! A call that makes more sends than are kept.

use http::Method;
use reqwest_retry_rules::{Failure, StopReason};

use super::*;
use crate::support::scripted::{client, ms, status};

/// Answers all but what is asked at `/last`.
fn only_last_fails() -> Transport {
    Transport::choose(|request| match request.url().path() {
        "/last" => status(503).header("retry-after", "2"),
        _ => ok(),
    })
}

/// One retry, a second later at the least.
fn once() -> RetryRule {
    RetryRule {
        max_retries: 1,
        ..RetryRule::transient()
    }
}

/// How many sends a call makes.
const COUNT: usize = 1300;

/// Many GETs, with one other request at this place among them. The last send fails.
async fn many(
    client: &ClientWithMiddleware,
    method: &Method,
    place: usize,
    path: &str,
) -> Result<()> {
    for number in 0..COUNT {
        match number == place {
            true => send(client, method.clone(), path).await?,
            false => get(client, "").await?,
        };
    }
    get(client, "last").await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_post_among_many_keeps_a_work_from_being_done_again_wherever_it_is() {
    for place in [0, 1, 650, COUNT - 1] {
        for (method, calls, reason) in [
            (Method::POST, 1, StopReason::MethodNotAllowed),
            (Method::PUT, 2, StopReason::Exhausted),
        ] {
            let transport = only_last_fails();
            let client = without_retries(&transport);
            let went = run(once(), async |_| many(&client, &method, place, "").await).await;
            assert_stopped(&went, calls, reason);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_headers_of_the_one_that_failed_are_found() {
    let transport = only_last_fails();
    let client = without_retries(&transport);
    let went = run(once(), async |_| many(&client, &Method::GET, 0, "").await).await;
    assert_stopped(&went, 2, StopReason::Exhausted);
    assert_eq!(went.1.records()[0].wait(), Some(ms(2000)));
}

#[tokio::test(start_paused = true)]
async fn a_post_among_many_may_be_repeated_if_every_rule_that_it_may_have_says_so() {
    let posts = RetryRule {
        sent_failures: Methods::Listed(vec![Method::POST]),
        ..once()
    };
    let policy = RetryPolicy::from(posts.clone());
    let same = posts.clone();
    let elsewhere = RetryRule {
        sent_failures: Methods::Idempotent,
        ..posts
    };
    let route = || "origin.test/orders".parse().unwrap();
    for (policy, calls, reason) in [
        (policy.clone(), 2, StopReason::Exhausted),
        (
            policy.clone().route(route(), same),
            2,
            StopReason::Exhausted,
        ),
        (
            policy.route(route(), elsewhere),
            1,
            StopReason::MethodNotAllowed,
        ),
    ] {
        let transport = only_last_fails();
        let client = without_retries(&transport);
        let went = run(policy, async |_| {
            many(&client, &Method::POST, 1, "orders").await
        })
        .await;
        assert_stopped(&went, calls, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_judge_is_held_to_each_of_many_sends() {
    let methods = |methods: &[Method]| Methods::Listed(methods.to_vec());
    for (allowed, calls) in [
        (methods(&[Method::GET]), 1),
        (methods(&[Method::GET, Method::PUT]), 2),
        (Methods::Idempotent, 2),
    ] {
        let transport = only_last_fails();
        let client = without_retries(&transport);
        let policy = RetryPolicy::from(once());
        let doing = policy.run_judged(
            |_: &Error| Failure::Retry(allowed.clone()),
            async |_| many(&client, &Method::PUT, 1, "").await,
        );
        let (outcome, report) = logged(doing).await;
        assert!(outcome.is_err());
        assert_eq!(report.attempts(), calls, "{allowed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_failed_too_long_ago_counts_as_one_that_was_not_seen() {
    for (count, calls) in [(100, 2), (COUNT, 1)] {
        let transport = Transport::choose(|request| match request.url().path() {
            "/first" => status(503),
            _ => status(404),
        });
        let client = client(&transport, RetryRule::never());
        let went = run(once(), async |_| {
            // The first is always kept.
            client.get(URL).send().await?;
            let failed = get(&client, "first").await;
            for _ in 0..count {
                client.get(URL).send().await?;
            }
            failed
        })
        .await;
        assert_eq!(went.1.attempts(), calls);
    }
}
