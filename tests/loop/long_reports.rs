//! Reports of very many attempts keep the first and the last of them.

use std::time::Duration;

use reqwest_retry_rules::{
    Methods, ResponseExt, RetryPolicy, RetryReport, RetryRule, StatusMatch, StatusRule, StopReason,
};

use crate::support::scripted::{Transport, client, get, ms, ok, status};

/// Retries 503 so many times, at once.
fn rule(max_retries: u32) -> RetryRule {
    RetryRule {
        max_retries,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        ..RetryRule::never()
    }
}

fn policy(max_retries: u32) -> RetryPolicy {
    RetryPolicy::from(rule(max_retries)).no_budget()
}

/// Refuses each attempt after as many milliseconds as attempts were made, and answers this one.
fn counting(answers: Option<u64>) -> Transport {
    let mut attempt = 0;
    Transport::choose(move |_| {
        attempt += 1;
        let act = if Some(attempt) == answers {
            ok()
        } else {
            status(503)
        };
        act.after(attempt)
    })
}

/// Which attempts a report has, told by how long they took.
fn kept(report: &RetryReport) -> Vec<Duration> {
    let records = report.records().iter();
    records.map(|record| record.elapsed()).collect()
}

fn attempts(numbers: impl IntoIterator<Item = u64>) -> Vec<Duration> {
    numbers.into_iter().map(ms).collect()
}

#[tokio::test(start_paused = true)]
async fn of_more_than_a_thousand_attempts_the_first_and_the_last_five_hundred_are_kept() {
    for count in [1001, 1002, 1500, 3000] {
        let (outcome, report) = get(&counting(None), policy(count - 1)).await;
        assert_eq!(outcome.unwrap().attempts(), count);
        assert_eq!(report.attempts(), count);
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
        let last = u64::from(count);
        assert_eq!(kept(&report), attempts((1..=500).chain(last - 499..=last)));
        // Of the last the wait is none, of all others the one that was made.
        let waits: Vec<_> = report.records().iter().map(|one| one.wait()).collect();
        assert_eq!(waits[..999], [Some(Duration::ZERO); 999]);
        assert_eq!(waits[999], None);
    }
}

/// The twin.
#[tokio::test(start_paused = true)]
async fn of_a_thousand_attempts_all_are_kept() {
    for count in [1, 2, 500, 999, 1000] {
        let (_, report) = get(&counting(None), policy(count - 1)).await;
        assert_eq!(report.attempts(), count);
        assert_eq!(kept(&report), attempts(1..=u64::from(count)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_very_many_attempts_is_the_last_record() {
    let transport = counting(Some(2000));
    let client = client(&transport, policy(5000));
    let sent = client.get("http://origin.test/").send().await;
    let response = sent.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.attempts()),
        (200, 2000)
    );
    let report = response.retry_report().unwrap();
    assert_eq!(report.stop_reason(), None);
    assert_eq!(kept(report), attempts((1..=500).chain(1501..=2000)));
}
