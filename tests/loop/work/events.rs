use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest_retry_rules::{
    AttemptResult, BudgetTerms, Failure, PauseTerms, RecoveredEvent, RetryBudget, RetryEvent,
    RetryObserver, StopEvent, StopReason, TransportError,
};

use super::*;
use crate::support::scripted::{client, ms, status, times};

/// Writes down what it is called with.
#[derive(Default)]
struct Events(Mutex<Vec<String>>);

impl Events {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl RetryObserver for Events {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        let host = event.host().unwrap_or("none");
        self.note(format!(
            "retry {} {} {host} {}",
            event.retry(),
            event.method(),
            event.result()
        ));
    }

    fn on_recovered(&self, event: &RecoveredEvent<'_>) {
        let host = event.host().unwrap_or("none");
        self.note(format!(
            "recovered {} {} {host} {}",
            event.attempts(),
            event.method(),
            event.status()
        ));
    }

    fn on_stop(&self, event: &StopEvent<'_>) {
        let reason = event.reason().name();
        self.note(format!(
            "stop {} {} {reason}",
            event.attempts(),
            event.method()
        ));
    }
}

fn watched() -> (RetryPolicy, Arc<Events>) {
    let events = Arc::new(Events::default());
    (
        RetryPolicy::from(at_once()).observer(events.clone()),
        events,
    )
}

const BROKEN: &str = "the response's body broke off";

#[tokio::test(start_paused = true)]
async fn retries_of_sends_and_repetitions_are_events_and_the_end_is_one() {
    assert_eq!(TransportError::Body.to_string(), BROKEN);
    let (policy, events) = watched();
    let transport = Transport::new([status(503), broken(), status(503), ok().body("whole")]);
    let client = client(&transport, policy.clone());
    let went = run(policy, async |_| read(&client, "").await).await;
    assert_done(&went, 2);
    let expected = [
        "retry 1 GET origin.test 503".to_owned(),
        format!("retry 2 GET origin.test {BROKEN}"),
        "retry 3 GET origin.test 503".to_owned(),
        "recovered 4 GET origin.test 200 OK".to_owned(),
    ];
    assert_eq!(events.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_work_that_is_given_up_makes_one_event_of_the_work_alone() {
    let (policy, events) = watched();
    let transport = Transport::choose(|_| status(503));
    let client = client(&transport, policy.clone());
    let went = run(policy.clone(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::Exhausted);
    let expected = [
        "retry 1 GET origin.test 503",
        "retry 2 GET origin.test 503",
        "retry 3 GET origin.test 503",
        "stop 4 GET exhausted",
    ];
    assert_eq!(events.take(), expected);
    // A send that is given up in a work that succeeds is no end.
    let went = run(policy, async |_| Ok(client.post(URL).send().await?)).await;
    assert_done(&went, 1);
    assert_eq!(events.take(), [""; 0]);
}

/// Nobody need hold a log.
#[tokio::test(start_paused = true)]
async fn a_work_that_recovered_names_its_last_send() {
    let (policy, events) = watched();
    let transport = Transport::new([status(503), ok(), status(201)]);
    let client = without_retries(&transport);
    let work = policy.run(async |_| {
        get(&client, "").await?;
        let put = client.put("http://other.test/").send().await?;
        Ok::<_, Error>(put)
    });
    work.await.unwrap();
    let expected = [
        "retry 1 GET origin.test 503",
        "recovered 2 PUT other.test 201 Created",
    ];
    assert_eq!(events.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_work_that_succeeds_at_once_makes_no_event() {
    let (policy, events) = watched();
    let transport = Transport::new([ok()]);
    let client = client(&transport, policy.clone());
    policy.run(async |_| get(&client, "").await).await.unwrap();
    assert_eq!(events.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_nested_work_is_no_event() {
    let (policy, events) = watched();
    let transport = Transport::new([status(503), ok(), status(404)]);
    let client = without_retries(&transport);
    let went = run(policy.clone(), async |_| {
        policy.run(async |_| get(&client, "").await).await?;
        policy.run(async |_| get(&client, "").await).await
    })
    .await;
    assert_stopped(&went, 1, StopReason::NotRetryable);
    assert_eq!(
        events.take(),
        ["retry 1 GET origin.test 503", "stop 2 GET not_retryable"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_work_whose_sends_were_not_seen_has_a_method_that_says_so() {
    let (policy, events) = watched();
    let outcome = policy
        .run_judged(|_| Failure::Stop, async |_| Err::<(), _>("no sends"))
        .await;
    assert!(outcome.is_err());
    assert_eq!(events.take(), ["stop 1 UNSEEN not_retryable"]);
}

#[tokio::test(start_paused = true)]
async fn the_report_has_a_record_for_each_call() {
    let transport = Transport::new([
        status(503).header("retry-after-ms", "30").after(7),
        broken(),
        ok(),
    ]);
    let client = without_retries(&transport);
    let (policy, log) = (RetryPolicy::from(at_once()), RetryLog::new());
    let overrides = Overrides::new().log(log.clone()).label("index");
    let work = policy.run(async |_| read(&client, "").await);
    with_overrides(overrides, work).await.unwrap();
    let report = log.report().unwrap();
    let records: Vec<_> = report
        .records()
        .iter()
        .map(|record| (record.result(), record.elapsed(), record.wait()))
        .collect();
    let status = |code| AttemptResult::Status(http::StatusCode::from_u16(code).unwrap());
    let zero = Duration::ZERO;
    assert_eq!(
        records,
        [
            (status(503), ms(7), Some(ms(30))),
            (
                AttemptResult::Failure(TransportError::Body),
                zero,
                Some(zero)
            ),
            (status(200), zero, None),
        ]
    );
    assert_eq!((report.attempts(), report.elapsed()), (3, ms(37)));
    assert_eq!(report.label().map(|label| label.as_str()), Some("index"));
    assert_eq!(report.stop_reason(), None);
}

fn budget(reserve: u32, ratio: u32) -> RetryBudget {
    let terms = BudgetTerms {
        reserve_per_second: reserve,
        ratio,
        window: Duration::from_secs(1),
    };
    RetryBudget::new(terms).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_repetition_withdraws_at_the_origin_of_the_send_that_failed() {
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let budget = budget(1, 0);
    let policy = RetryPolicy::from(at_once()).budget(budget.clone());
    let went = run(policy.clone(), async |_| get(&client, "").await).await;
    // The reserve is one retry.
    assert_stopped(&went, 2, StopReason::Throttled);
    assert_eq!(budget.origins(), 1);
    // Another origin has another.
    let went = run(policy, async |_| {
        let response = client.get("http://other.test/").send().await?;
        Ok(response.error_for_status()?)
    })
    .await;
    assert_stopped(&went, 2, StopReason::Throttled);
    assert_eq!(budget.origins(), 2);
}

#[tokio::test(start_paused = true)]
async fn only_sends_deposit() {
    // Each answer pays for one retry.
    let budget = budget(0, 1000);
    let rule = RetryRule {
        max_retries: 99,
        ..at_once()
    };
    let policy = RetryPolicy::from(rule).budget(budget);
    let transport = Transport::choose(|_| ok());
    let client = client(&transport, policy.clone());
    // A work that succeeds with one send pays once.
    policy.run(async |_| get(&client, "").await).await.unwrap();
    let mut failures = 0;
    let outcome = policy
        .run_judged(
            |_: &&str| Failure::Retry(Methods::Any),
            async |attempt| {
                if attempt == 1 {
                    // Pays for one more.
                    get(&client, "").await.map_err(|_| "sent")?;
                } else {
                    let _ = without_retries(&transport).get(URL).send().await;
                }
                Err::<(), _>("again")
            },
        )
        .await;
    failures += usize::from(outcome.is_err());
    assert_eq!((failures, transport.count()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn a_repetition_waits_for_the_rest_that_the_origin_asks_for() {
    let terms = PauseTerms {
        spread: 0,
        ..PauseTerms::default()
    };
    let policy = RetryPolicy::from(at_once()).pause_origins(terms);
    let transport = Transport::new([status(429).header("retry-after", "3"), broken(), ok()]);
    let client = client(&transport, policy.clone());
    // The POST is refused and not sent again; what it was events holds for the GET.
    let went = run(policy, async |attempt| {
        if attempt == 1 {
            let _ = post(&client, "").await;
        }
        read(&client, "").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    assert_eq!(transport.times(), [0, 3000]);
}

#[tokio::test(start_paused = true)]
async fn a_send_that_the_time_cannot_hold_for_a_paused_origin_is_unsent() {
    let terms = PauseTerms {
        spread: 0,
        ..PauseTerms::default()
    };
    let rule = RetryRule {
        unsent_failures: true,
        ..at_once()
    };
    let policy = RetryPolicy::from(rule).pause_origins(terms);
    let transport = Transport::new([status(429).header("retry-after", "3"), ok()]);
    let of_client = policy.clone().total_timeout(ms(500));
    let client = client(&transport, of_client);
    assert_eq!(post(&client, "").await.unwrap_err().status().unwrap(), 429);
    let went = run(policy, async |_| post(&client, "").await).await;
    assert_done(&went, 2);
    assert_eq!(transport.times(), [0, 3000]);
    assert_eq!(went.1.records()[0].wait(), Some(ms(3000)));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_no_log_asks_for_is_not_kept() {
    let transport = Transport::new(times(4, || status(503)));
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let error = policy
        .run(async |_| get(&client, "").await)
        .await
        .unwrap_err();
    assert_eq!(error.status().unwrap(), 503);
}
