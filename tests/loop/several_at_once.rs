//! `Overrides` in a request's extensions: several overrides at once.

use http::Method;
use reqwest_retry_rules::{
    Deadline, Methods, Overrides, ReplaySafe, RetryLabel, RetryLog, RetryPolicy, RetryReport,
    RetryRule, StatusMatch, StatusRule, StopReason, TotalTimeout, with_overrides,
};

use crate::support::scripted::{Transport, URL, client, hang, ms, status};

/// Retries 503 so many times, at once.
fn retries(count: u32) -> RetryRule {
    RetryRule {
        max_retries: count,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        ..RetryRule::never()
    }
}

/// The report of a send that carries this and is always refused, by a client that retries once.
async fn refused(method: Method, put: impl FnOnce(&mut http::Extensions)) -> RetryReport {
    let transport = Transport::choose(|_| status(503).yielding());
    report(&transport, method, put).await
}

async fn report(
    transport: &Transport,
    method: Method,
    put: impl FnOnce(&mut http::Extensions),
) -> RetryReport {
    let log = RetryLog::new();
    let policy = RetryPolicy::from(retries(1)).no_budget();
    let mut request = client(transport, policy).request(method, URL);
    request.extensions().insert(log.clone());
    put(request.extensions());
    // Where no bound holds, the test fails in place of going on for ever.
    let _ = tokio::time::timeout(ms(100_000), request.send()).await;
    log.report().expect("a report")
}

#[tokio::test]
async fn each_of_them_counts() {
    let get = async |own: Overrides| refused(Method::GET, |map| drop(map.insert(own))).await;
    let plain = get(Overrides::new()).await;
    assert_eq!((plain.attempts(), plain.label()), (2, None));
    assert_eq!(get(Overrides::new().rule(retries(3))).await.attempts(), 4);
    let policy = RetryPolicy::from(retries(4)).no_budget();
    assert_eq!(get(Overrides::new().policy(policy)).await.attempts(), 5);
    let not_safe = get(Overrides::new().replay_safe(false)).await;
    assert_eq!(not_safe.stop_reason(), Some(StopReason::MethodNotAllowed));
    let all = Overrides::new().rule(retries(2)).label("search");
    let all = get(all).await;
    let label = all.label().map(RetryLabel::as_str);
    assert_eq!((all.attempts(), label), (3, Some("search")));
}

#[tokio::test]
async fn a_post_that_they_vouch_for_is_sent_again() {
    let vouched = Overrides::new().replay_safe(true);
    let report = refused(Method::POST, |map| drop(map.insert(vouched))).await;
    assert_eq!(report.attempts(), 2);
    // The twin.
    let report = refused(Method::POST, |map| drop(map.insert(Overrides::new()))).await;
    assert_eq!(report.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn their_bounds_end_a_send() {
    let bounds: [(fn() -> Overrides, _); 2] = [
        (|| Overrides::new().total_timeout(ms(300)), 300),
        (|| Overrides::new().deadline(Deadline::after(ms(200))), 200),
    ];
    for (own, ends) in bounds {
        let transport = Transport::new([hang()]);
        let report = report(&transport, Method::GET, |map| drop(map.insert(own()))).await;
        assert_eq!(report.stop_reason(), Some(StopReason::TotalTimeout));
        assert_eq!(transport.now(), ends);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_in_them_has_the_report() {
    let log = RetryLog::new();
    let own = Overrides::new().log(log.clone());
    let transport = Transport::choose(|_| status(503));
    let mut request = client(&transport, retries(1)).get(URL);
    request.extensions().insert(own);
    request.send().await.unwrap();
    assert_eq!(log.report().unwrap().attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_single_value_in_the_same_map_counts_before_them() {
    let several = || {
        Overrides::new()
            .rule(retries(3))
            .label("several")
            .replay_safe(true)
    };
    let report = refused(Method::POST, |map| {
        map.insert(several());
        map.insert(ReplaySafe(false));
    })
    .await;
    let label = report.label().map(RetryLabel::as_str);
    assert_eq!((report.attempts(), label), (1, Some("several")));
    let report = refused(Method::POST, |map| {
        map.insert(several());
        map.insert(retries(2));
        map.insert(RetryLabel::from("single"));
    })
    .await;
    let label = report.label().map(RetryLabel::as_str);
    assert_eq!((report.attempts(), label), (3, Some("single")));

    let transport = Transport::new([hang()]);
    self::report(&transport, Method::GET, |map| {
        map.insert(Overrides::new().total_timeout(ms(100)));
        map.insert(TotalTimeout(ms(900)));
    })
    .await;
    assert_eq!(transport.now(), 900);
}

#[tokio::test]
async fn they_count_before_those_of_the_task() {
    let task = || Overrides::new().rule(retries(5)).label("task");
    let own = || Overrides::new().rule(retries(2));
    let sent = refused(Method::GET, |map| drop(map.insert(own())));
    let report = with_overrides(task(), sent).await;
    let label = report.label().map(RetryLabel::as_str);
    assert_eq!((report.attempts(), label), (3, Some("task")));
    // The twin.
    let sent = refused(Method::GET, |_| {});
    assert_eq!(with_overrides(task(), sent).await.attempts(), 6);
}
