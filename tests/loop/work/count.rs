use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{join_all, try_join_all};
use reqwest_retry_rules::{ResponseExt, StopReason};

use super::*;
use crate::support::scripted::{client, errors, fail, status, times};

#[tokio::test(start_paused = true)]
async fn no_request_goes_more_often_than_without_run() {
    let transport = Transport::choose(|_| status(503));
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| get(&client, "").await).await;
    // Three retries are made by the send, and none is left for the work.
    assert_stopped(&went, 1, StopReason::Exhausted);
    assert_eq!(transport.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_adds_one_to_the_count_that_its_sends_begin_with() {
    let transport = Transport::new([
        // The send retries once, and then the body breaks off: the work has come to one.
        status(503),
        broken(),
        // The repetition is the second retry, so one is left.
        status(503),
        status(503),
    ]);
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| read(&client, "").await).await;
    assert_stopped(&went, 2, StopReason::Exhausted);
    assert_eq!(transport.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_work_that_needs_all_its_retries_has_them() {
    let transport = Transport::new([broken(), status(503), broken(), ok().body("whole")]);
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| read(&client, "").await).await;
    assert_done(&went, 3);
    assert_eq!(
        (went.0.unwrap(), transport.count()),
        ("whole".to_owned(), 4)
    );
}

#[tokio::test(start_paused = true)]
async fn twenty_joined_gets_of_which_four_fail_once_all_come_back() {
    let failures = AtomicU32::new(0);
    let transport = Transport::choose(move |request| {
        let number: u32 = request.url().path()[1..].parse().unwrap();
        let fails =
            number < 4 && failures.fetch_or(1 << number, Ordering::Relaxed) >> number & 1 == 0;
        if fails { status(503) } else { ok() }
    });
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| {
        try_join_all((0..20).map(async |number| get(&client, &number.to_string()).await)).await
    })
    .await;
    assert_done(&went, 1);
    assert_eq!(transport.count(), 24);
}

#[tokio::test(start_paused = true)]
async fn the_count_of_a_work_is_the_largest_of_its_sends() {
    let transport = Transport::new([
        // Two sends with a retry each: the work has come to one, not to two.
        status(503),
        ok(),
        status(503),
        ok(),
        broken(),
        // The next call begins with two, the one after it with three.
        ok(),
        ok(),
        broken(),
        ok(),
        ok(),
        broken(),
    ]);
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| {
        get(&client, "one").await?;
        get(&client, "two").await?;
        read(&client, "three").await
    })
    .await;
    assert_stopped(&went, 3, StopReason::Exhausted);
    assert_eq!(transport.count(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_retry_counts_from_the_moment_it_is_decided() {
    // One send waits for its retry as the other fails and takes the work with it.
    let transport = Transport::choose(|request| match request.url().path() {
        "/slow" => status(503).header("retry-after", "10"),
        _ => broken().after(1),
    });
    let patient = client(&transport, at_once());
    let rule = RetryRule {
        max_retries: 2,
        ..at_once()
    };
    let went = run(rule, async |_| {
        tokio::try_join!(read(&patient, "slow"), read(&patient, "fails"))
    })
    .await;
    // One retry of the slow send and one repetition; in the second call nothing is left.
    assert_stopped(&went, 2, StopReason::Exhausted);
    assert_eq!(transport.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_second_call_of_a_work_whose_count_is_used_up_sends_without_retries() {
    let transport = Transport::new([broken(), status(503)]);
    let rule = RetryRule {
        max_retries: 1,
        ..at_once()
    };
    let client = client(&transport, rule.clone());
    let policy = RetryPolicy::from(rule);
    // `Ok` with a 503 means what it means without `run`.
    let response = policy
        .run(async |attempt| {
            if attempt == 1 {
                read(&client, "").await?;
            }
            client.get(URL).send().await
        })
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), response.attempts()), (503, 1));
    assert_eq!(transport.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn sends_after_a_work_begin_with_none() {
    let transport = Transport::new(
        [broken(), broken(), ok()]
            .into_iter()
            .chain(times(4, || status(503))),
    );
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| read(&client, "").await).await;
    assert_done(&went, 3);
    let outcomes = join_all([client.get(URL).send()]).await;
    assert_eq!(outcomes[0].as_ref().unwrap().attempts(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_counts_resends_counts_those_of_its_own_send() {
    let transport = Transport::new([broken(), status(503), ok()]);
    let policy =
        RetryPolicy::from(at_once()).attempt_header(http::HeaderName::from_static("x-retry"));
    let client = client(&transport, policy);
    let went = run(at_once(), async |_| read(&client, "").await).await;
    assert_done(&went, 2);
    let seen = transport.seen();
    let resent: Vec<_> = seen
        .iter()
        .map(|seen| seen.resent.map(|count| count.0))
        .collect();
    assert_eq!(resent, [None, None, Some(1)]);
    let headers: Vec<_> = seen.iter().map(|seen| seen.header("x-retry")).collect();
    assert_eq!(headers, [None, None, Some("1")]);
}

/// A condition of the client, so that it can say "once".
#[tokio::test(start_paused = true)]
async fn a_condition_is_asked_with_the_retries_of_the_work() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = asked.clone();
    let policy = RetryPolicy::from(RetryRule {
        max_retries: 9,
        ..RetryRule::never()
    })
    .retry_if(Methods::Any, move |head| {
        note.lock().unwrap().push(head.retries());
        false
    });
    let transport = Transport::new([status(409), fail(errors::closed()), status(409)]);
    let client = client(&transport, policy);
    let went = run(at_once(), async |call| {
        if call == 1 {
            let _ = get(&client, "").await;
        }
        get(&client, "").await
    })
    .await;
    assert_stopped(&went, 2, StopReason::NotRetryable);
    assert_eq!(*asked.lock().unwrap(), [0, 1]);
}
