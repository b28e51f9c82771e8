//! How long one send may take: the limits of the rule, total timeouts and deadlines, what ends an
//! attempt in flight, and what clocks that do not behave come to.

use std::error::Error as StdError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::FutureExt;
use http::{Extensions, Method, StatusCode};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use reqwest_retry_rules::{
    AttemptResult, Backoff, BodySource, Deadline, ErrorExt, Jitter, Limits, Methods, Overrides,
    ResponseExt, RetryAfter, RetryAfterCap, RetryAfterSource, RetryError, RetryEvent,
    RetryMiddleware, RetryObserver, RetryPolicy, RetryReport, RetryRule, StatusMatch, StatusRule,
    StopReason, TotalTimeout, TransportError, WaitSource, classify, with_overrides,
};

use crate::support;
use crate::support::scripted::{
    Transport, URL, assert_status, carrying, client, errors, fail, get, get_with, hang, ms, ok,
    send, status, time_out, times,
};

/// Retries 503 and failures after 100, 150, 200, 200, … milliseconds, up to ten times.
fn rule() -> RetryRule {
    RetryRule {
        max_retries: 10,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        sent_failures: Methods::Idempotent,
        backoff: backoff(100),
        ..RetryRule::never()
    }
}

fn backoff(base: u64) -> Backoff {
    Backoff {
        base: ms(base),
        max: ms(200),
        growth: 1500,
        jitter: Jitter::NoJitter,
    }
}

/// The rule under a soft limit, a floor and a hard limit.
fn limited(soft: Option<u64>, floor: u32, hard: Option<u64>) -> RetryRule {
    RetryRule {
        limits: Limits {
            soft_elapsed: soft.map(ms),
            min_retries: floor,
            hard_elapsed: hard.map(ms),
        },
        ..rule()
    }
}

#[track_caller]
fn total_timeout(outcome: &Result<Response>) -> (u32, Option<&(dyn StdError + 'static)>) {
    let Err(Error::Middleware(error)) = outcome else {
        panic!("not ours: {outcome:?}");
    };
    match error.downcast_ref::<RetryError>() {
        Some(RetryError::TotalTimeout { attempts, last, .. }) => {
            (*attempts, last.as_deref().map(|last| last as _))
        }
        other => panic!("no total timeout: {other:?}"),
    }
}

mod rule_limits {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_attempt_beyond_the_soft_limit_is_retried_up_to_the_floor() {
        let transport = Transport::new([status(503).after(6000), ok()]);
        let (outcome, _) = get(&transport, limited(Some(5000), 2, None)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 6100]);
        assert_eq!(transport.now(), 6100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_attempt_beyond_the_soft_limit_without_a_floor_is_the_last() {
        let transport = Transport::new([status(503).after(6000)]);
        let (outcome, report) = get(&transport, limited(Some(5000), 0, None)).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::SoftLimit));
        assert!(report.retries_exhausted());
        assert_eq!(transport.now(), 6000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_soft_limit_itself_is_within_it() {
        let transport = Transport::new([status(503).after(5000), ok()]);
        let (outcome, _) = get(&transport, limited(Some(5000), 0, None)).await;
        assert_status(&outcome, 200);
        let transport = Transport::new([status(503).after(5001)]);
        let (outcome, _) = get(&transport, limited(Some(5000), 0, None)).await;
        assert_status(&outcome, 503);
    }

    #[tokio::test(start_paused = true)]
    async fn a_floor_is_no_ceiling() {
        let transport = Transport::new(times(5, || status(503)).chain([ok()]));
        let (outcome, report) = get(&transport, limited(Some(5000), 2, None)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 100, 250, 450, 650, 850]);
        let waits: Vec<_> = report
            .records()
            .iter()
            .map(|record| record.wait())
            .collect();
        assert_eq!(
            waits,
            [100, 150, 200, 200, 200]
                .map(|wait| Some(ms(wait)))
                .into_iter()
                .chain([None])
                .collect::<Vec<_>>()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_hard_limit_beats_the_floor() {
        let transport = Transport::new([status(503).after(11_000)]);
        let (outcome, report) = get(&transport, limited(Some(5000), 2, Some(10_000))).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::HardLimit(ms(100))));
        assert!(report.retries_exhausted());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_hard_limit_the_floor_holds_however_late_it_is() {
        let transport = Transport::new([status(503).after(11_000), ok()]);
        let (outcome, _) = get(&transport, limited(Some(5000), 2, None)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 11_100]);
    }

    /// Sends with waits of 200 under a hard limit of 10 000, the first attempt taking so long.
    async fn with_waits_of_200(transport: &Transport) -> (Result<Response>, RetryReport) {
        let rule = RetryRule {
            backoff: backoff(200),
            ..limited(None, 0, Some(10_000))
        };
        get(transport, rule).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_would_cross_the_hard_limit_is_not_begun() {
        let transport = Transport::new([status(503).after(9950)]);
        let (outcome, report) = with_waits_of_200(&transport).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::HardLimit(ms(200))));
        assert_eq!(report.records()[0].wait(), None);
        assert_eq!(transport.now(), 9950);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_would_end_at_the_hard_limit_is_not_begun() {
        let transport = Transport::new([status(503).after(9800)]);
        let (outcome, report) = with_waits_of_200(&transport).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::HardLimit(ms(200))));
        assert_eq!(transport.now(), 9800);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_ends_before_the_hard_limit_is_made() {
        let transport = Transport::new([status(503).after(9799), ok().after(60_000)]);
        let (outcome, _) = with_waits_of_200(&transport).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 9999]);
        assert_eq!(
            transport.now(),
            69_999,
            "the limit ended an attempt in flight"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn slow_attempts_stop_when_the_floor_is_reached() {
        let transport = Transport::new(times(3, || status(503).after(6000)));
        let (outcome, report) = get(&transport, limited(Some(5000), 2, None)).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::SoftLimit));
        assert_eq!(transport.times(), [0, 6100, 12_250]);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_attempts_stop_at_the_hard_limit_before_the_floor_is_reached() {
        let transport = Transport::new(times(2, || status(503).after(6000)));
        let (outcome, report) = get(&transport, limited(Some(5000), 2, Some(10_000))).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::HardLimit(ms(150))));
        assert_eq!(transport.times(), [0, 6100]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_floor_does_not_lift_the_number_of_retries() {
        let transport = Transport::new(times(2, || status(503).after(6000)));
        let rule = RetryRule {
            max_retries: 1,
            ..limited(Some(5000), 5, None)
        };
        let (outcome, report) = get(&transport, rule).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_gives_a_refused_response_back_whole() {
        for limits in [limited(Some(5000), 0, None), limited(None, 0, Some(6000))] {
            let body = "come back later";
            let transport = Transport::new([status(503).after(6000).body(body)]);
            let (outcome, _) = get(&transport, limits).await;
            assert_status(&outcome, 503);
            assert_eq!(outcome.unwrap().text().await.unwrap(), body);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_gives_an_error_back_as_it_came() {
        for limits in [limited(Some(5000), 0, None), limited(None, 0, Some(6000))] {
            let transport = Transport::new([fail(errors::timeout()).after(6000)]);
            let (outcome, report) = get(&transport, limits).await;
            let error = outcome.unwrap_err();
            assert!(error.is_timeout() && error.url().is_some());
            assert!(report.retries_exhausted());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn limits_say_nothing_of_what_is_not_retried() {
        let transport = Transport::new([status(503).after(11_000)]);
        let limits = limited(Some(5000), 0, Some(10_000));
        let (outcome, report) = send(&transport, limits, |client| client.post(URL)).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
    }
}

mod whole_send {
    use super::*;

    fn patient_for(milliseconds: u64) -> RetryPolicy {
        RetryPolicy::from(rule()).total_timeout(ms(milliseconds))
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_as_long_as_the_time_left_is_not_begun() {
        let transport = Transport::new([status(503).after(400).body("busy")]);
        let (outcome, report) = get(&transport, patient_for(500)).await;
        assert_status(&outcome, 503);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "busy");
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(100))));
        assert!(report.retries_exhausted());
        assert_eq!(transport.now(), 400);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_shorter_than_the_time_left_is_made() {
        let transport = Transport::new([status(503).after(400), ok()]);
        let (outcome, _) = get(&transport, patient_for(501)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 500]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_comes_back_as_it_came_where_no_wait_fits() {
        let transport = Transport::new([fail(errors::refused())]);
        let (outcome, report) = get(&transport, patient_for(100)).await;
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(100))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_attempt_is_ended_where_it_outlasts_the_timeout() {
        let transport = Transport::new([hang()]);
        let (outcome, report) = get(&transport, patient_for(1000)).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 1);
        assert!(last.is_none());
        let error = outcome.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the total timeout ran out in the first attempt"
        );
        assert!(error.timed_out() && !error.is_timeout());
        assert_eq!(transport.now(), 1000);

        assert_eq!(report.stop_reason(), Some(StopReason::TotalTimeout));
        assert!(report.retries_exhausted());
        assert_eq!((report.attempts(), report.elapsed()), (1, ms(1000)));
        let record = &report.records()[0];
        let timeout = AttemptResult::Failure(TransportError::Timeout);
        assert_eq!((record.result(), record.elapsed()), (timeout, ms(1000)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_answers_in_time_is_not_touched() {
        let transport = Transport::new([ok().after(999)]);
        let (outcome, _) = get(&transport, patient_for(1000)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.now(), 999);
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_that_is_ended_tells_of_the_response_that_was_refused() {
        let transport = Transport::new([status(503).after(200), hang()]);
        let (outcome, report) = get(&transport, patient_for(1000)).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 2);
        let last: &reqwest::Error = last.unwrap().downcast_ref().unwrap();
        assert_eq!(last.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
        assert_eq!(last.url().map(|url| url.as_str()), Some(URL));
        let error = outcome.unwrap_err();
        assert_eq!(error.to_string(), "the total timeout ran out in attempt 2");
        assert!(error.timed_out());
        assert_eq!(transport.times(), [0, 300]);
        assert_eq!(transport.now(), 1000);
        assert_eq!(report.attempts(), 2);
        assert_eq!(report.records()[1].elapsed(), ms(700));
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_that_is_ended_tells_of_the_error_before_it() {
        let transport = Transport::new([fail(errors::refused()), hang()]);
        let (outcome, _) = get(&transport, patient_for(1000)).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 2);
        let last: &reqwest::Error = last.expect("a source").downcast_ref().unwrap();
        assert!(last.is_connect());
        // The chain of the error that comes back has it, too.
        let Err(Error::Middleware(error)) = outcome else {
            panic!("not ours");
        };
        assert!(error.chain().any(|link| link.is::<reqwest::Error>()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_that_is_ended_tells_of_the_last_failure_only() {
        let acts = [
            fail(errors::refused()),
            status(503),
            fail(errors::closed()),
            hang(),
        ];
        let transport = Transport::new(acts);
        let (outcome, _) = get(&transport, patient_for(5000)).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 4);
        let last: &reqwest::Error = last.expect("a source").downcast_ref().unwrap();
        assert!(last.is_request() && !last.is_connect());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_success_is_no_error_to_tell_of() {
        let transport = Transport::new([status(202), hang()]);
        let policy = patient_for(1000).retry_if(Methods::Any, |head| head.status() == 202);
        let (outcome, _) = get(&transport, policy).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 2);
        assert!(last.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_a_middleware_is_told_of_where_it_was_retried() {
        let own = Error::Middleware(std::io::Error::other("no token").into());
        let transport = Transport::new([fail(own), hang()]);
        let policy = patient_for(1000).classify_with(|_| Some(TransportError::Connect));
        let (outcome, _) = get(&transport, policy).await;
        let (_, last) = total_timeout(&outcome);
        assert_eq!(last.expect("a source").to_string(), "no token");
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_that_is_already_over_sends_nothing() {
        let transport = Transport::new([]);
        let (outcome, report) = get(&transport, patient_for(0)).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 0);
        assert!(last.is_none());
        let error = outcome.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the total timeout was over before the first attempt"
        );
        assert!(error.timed_out());
        assert_eq!(report.attempts(), 0);
        assert_eq!(report.stop_reason(), Some(StopReason::TotalTimeout));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_in_the_past_sends_nothing() {
        let moment = Deadline::from(std::time::Instant::now());
        tokio::time::advance(ms(1000)).await;
        for deadline in [Deadline::after(Duration::ZERO), moment] {
            let transport = Transport::new([]);
            let (outcome, report) =
                get_with(&transport, rule(), |own| own.extend(carrying(deadline))).await;
            assert_eq!(total_timeout(&outcome).0, 0);
            assert_eq!(report.attempts(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_that_is_already_over_makes_no_first_body() {
        let made = std::sync::Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let source = BodySource::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>("body")
        });
        let transport = Transport::new([]);
        let (outcome, report) = get_with(&transport, patient_for(0), |own| {
            own.extend(carrying(source))
        })
        .await;
        assert_eq!(total_timeout(&outcome).0, 0);
        assert_eq!(report.stop_reason(), Some(StopReason::TotalTimeout));
        assert_eq!(made.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_body_that_is_not_made_in_time_ends_the_send_with_a_report() {
        let source = BodySource::from_async(std::future::pending::<std::io::Result<&str>>);
        let transport = Transport::new([]);
        let (outcome, report) = get_with(&transport, patient_for(1000), |own| {
            own.extend(carrying(source))
        })
        .await;
        assert_eq!(total_timeout(&outcome).0, 0);
        assert_eq!(report.attempts(), 0);
        assert_eq!(report.stop_reason(), Some(StopReason::TotalTimeout));
        assert_eq!(transport.now(), 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_body_that_is_not_made_in_time_gives_back_what_is_in_hand() {
        let made = AtomicUsize::new(0);
        let source = BodySource::from_async(move || {
            let first = made.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if !first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, std::io::Error>("body")
            }
        });
        let transport = Transport::new([status(503).body("busy")]);
        let (outcome, report) = get_with(&transport, patient_for(1000), |own| {
            own.extend(carrying(source))
        })
        .await;
        assert_status(&outcome, 503);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "busy");
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(100))));
        assert_eq!(transport.now(), 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_durations_are_no_limit_and_no_panic() {
        for less in [ms(0), ms(1), Duration::from_secs(u64::MAX / 4)] {
            let longest = whole_clock() - less;
            let transport = Transport::new([status(503).after(5), ok().after(1_000_000)]);
            let policy = RetryPolicy::from(rule()).total_timeout(longest);
            let (outcome, _) = get_with(&transport, policy, |own| {
                own.insert(TotalTimeout(longest));
                own.insert(Deadline::after(longest));
            })
            .await;
            assert_status(&outcome, 200);
            assert_eq!(transport.times(), [0, 105]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_duration_that_the_clock_cannot_hold_is_no_limit() {
        let transport = Transport::new([status(503).after(5), ok().after(1_000_000)]);
        let policy = RetryPolicy::from(rule()).total_timeout(Duration::MAX);
        let (outcome, _) = get_with(&transport, policy, |own| {
            own.insert(TotalTimeout(Duration::MAX));
            own.insert(Deadline::after(Duration::MAX));
        })
        .await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 105]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_moment_of_the_clock_is_no_limit_and_no_panic() {
        let last = (tokio::time::Instant::now() + whole_clock()).into_std();
        let transport = Transport::new([status(503).after(5), ok()]);
        let (outcome, _) = get_with(&transport, rule(), |own| {
            own.insert(Deadline::from(last));
        })
        .await;
        assert_status(&outcome, 200);
    }

    /// The longest duration that still fits into the clock.
    fn whole_clock() -> Duration {
        let now = tokio::time::Instant::now();
        let (mut fits, mut spills) = (Duration::ZERO, Duration::MAX);
        while spills - fits > Duration::from_nanos(1) {
            let middle = fits + (spills - fits) / 2;
            match now.checked_add(middle) {
                Some(_) => fits = middle,
                None => spills = middle,
            }
        }
        fits
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_the_nearest_timeout_and_all_deadlines_holds() {
        for earliest in 0..3 {
            let bound = |number| ms(if number == earliest { 1000 } else { 2000 });
            let transport = Transport::new([hang()]);
            let policy = RetryPolicy::from(rule()).total_timeout(ms(500));
            let overrides = Overrides::new()
                .total_timeout(ms(500))
                .deadline(Deadline::after(bound(0)));
            let sent = get_with(&transport, policy, |own| {
                own.insert(TotalTimeout(bound(1)));
                own.insert(Deadline::after(bound(2)));
            });
            let (outcome, _) = with_overrides(overrides, sent).await;
            assert_eq!(total_timeout(&outcome).0, 1);
            assert_eq!(transport.now(), 1000, "bound {earliest}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_deadline_bounds_several_sends_and_one_timeout_each_of_them() {
        let both = async |overrides: Overrides| {
            let transport = Transport::new([ok().after(600), ok().after(600)]);
            let client = client(&transport, rule());
            let two = async {
                let first = client.get(URL).send().await;
                (first.is_ok(), client.get(URL).send().await.is_ok())
            };
            with_overrides(overrides, two).await
        };
        let deadline = Deadline::after(ms(1000));
        assert_eq!(
            both(Overrides::new().deadline(deadline)).await,
            (true, false)
        );
        assert_eq!(
            both(Overrides::new().total_timeout(ms(1000))).await,
            (true, true)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_timeout_is_kept_where_nothing_is_retried() {
        for rule in [RetryRule::never(), RetryRule::transient()] {
            let transport = Transport::new([hang()]);
            let outcome = client(&transport, rule)
                .post(URL)
                .with_extension(TotalTimeout(ms(1000)))
                .send()
                .await;
            assert_eq!(total_timeout(&outcome).0, 1);
            assert_eq!(transport.now(), 1000);
        }
    }
}

mod each_attempt {
    use super::*;

    async fn timeouts(policy: RetryPolicy, own: Option<Duration>) -> Vec<Option<Duration>> {
        let transport = Transport::new([status(503), ok()]);
        let mut request = client(&transport, policy).get(URL);
        if let Some(own) = own {
            request = request.timeout(own);
        }
        request.send().await.unwrap();
        transport.seen().iter().map(|seen| seen.timeout).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_smaller_of_the_policys_and_the_requests_own_holds_for_every_attempt() {
        let policy = RetryPolicy::from(rule()).attempt_timeout(ms(500));
        let both = |timeout| [Some(timeout); 2];
        assert_eq!(timeouts(policy.clone(), None).await, both(ms(500)));
        assert_eq!(timeouts(policy.clone(), Some(ms(499))).await, both(ms(499)));
        assert_eq!(timeouts(policy.clone(), Some(ms(501))).await, both(ms(500)));
        assert_eq!(timeouts(policy, Some(Duration::MAX)).await, both(ms(500)));
    }

    #[tokio::test(start_paused = true)]
    async fn without_one_the_requests_own_is_left_alone() {
        let policy = RetryPolicy::from(rule());
        assert_eq!(timeouts(policy.clone(), None).await, [None; 2]);
        assert_eq!(timeouts(policy, Some(ms(700))).await, [Some(ms(700)); 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_holds_where_nothing_is_retried() {
        let transport = Transport::new([ok()]);
        let policy = RetryPolicy::from(RetryRule::never()).attempt_timeout(ms(500));
        client(&transport, policy).get(URL).send().await.unwrap();
        assert_eq!(transport.seen()[0].timeout, Some(ms(500)));
    }

    #[tokio::test(start_paused = true)]
    async fn each_attempt_has_its_own_time_within_the_whole() {
        let transport = Transport::new(times(3, time_out));
        let policy = RetryPolicy::from(rule())
            .attempt_timeout(ms(300))
            .total_timeout(ms(1000));
        let (outcome, report) = get(&transport, policy).await;
        // 300 each, with waits of 100 and 150 between: the third has 150 left.
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 3);
        let last: &reqwest::Error = last.expect("a source").downcast_ref().unwrap();
        assert!(last.is_timeout());
        assert_eq!(transport.times(), [0, 400, 850]);
        assert_eq!(transport.now(), 1000);
        let elapsed: Vec<_> = report
            .records()
            .iter()
            .map(|record| record.elapsed())
            .collect();
        assert_eq!(elapsed, [ms(300), ms(300), ms(150)]);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_head_timeout_and_the_total_the_one_that_ran_out_counts() {
        for (head, total, attempts, ended, expected) in [
            (50, 10, 1, 10, "total_timeout"),
            (50, 10_000, 11, 2_400, "head_timeout"),
        ] {
            let transport = Transport::choose(|_| hang());
            let policy = RetryPolicy::from(rule());
            let policy = policy.head_timeout(ms(head)).total_timeout(ms(total));
            let (outcome, report) = get(&transport, policy).await;
            assert_eq!(report.attempts(), attempts, "{head} {total}");
            assert_eq!(transport.now(), ended, "{head} {total}");
            let error = outcome.unwrap_err();
            let name = error.retry_error().map(RetryError::name);
            assert_eq!(name, Some(expected), "{head} {total}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_that_time_out_come_back_as_they_came_where_no_time_is_left() {
        let transport = Transport::new(times(2, time_out));
        let policy = RetryPolicy::from(rule())
            .attempt_timeout(ms(300))
            .total_timeout(ms(850));
        let (outcome, report) = get(&transport, policy).await;
        assert!(outcome.unwrap_err().is_timeout());
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(150))));
    }

    #[tokio::test]
    async fn nonsense_timeouts_do_not_panic() {
        let server = support::h1::H1::start(support::script::Act::ok("fine")).await;
        for timeout in [Duration::MAX, Duration::from_secs(u64::MAX >> 1)] {
            let policy = RetryPolicy::from(rule()).attempt_timeout(timeout);
            let client = ClientBuilder::new(support::client().build().unwrap())
                .with(RetryMiddleware::new(policy))
                .build();
            let response = client.get(server.url("/")).send().await.unwrap();
            assert_eq!(response.text().await.unwrap(), "fine");
        }
        let server = support::h1::H1::start(support::script::Act::Silence).await;
        let policy = RetryPolicy::from(RetryRule::never()).attempt_timeout(Duration::ZERO);
        let client = ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(policy))
            .build();
        assert!(
            client
                .get(server.url("/"))
                .send()
                .await
                .unwrap_err()
                .timed_out()
        );
    }
}

mod bodies {
    use super::*;

    fn complete(total: u64) -> RetryPolicy {
        RetryPolicy::from(rule())
            .complete_body(1000)
            .total_timeout(ms(total))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_read_inside_the_attempt_is_bounded_with_it() {
        let transport = Transport::new([ok().slow_body(300, ["one", "two"])]);
        let (outcome, report) = get(&transport, complete(500)).await;
        assert_eq!(total_timeout(&outcome).0, 1);
        assert_eq!(report.attempts(), 1);
        assert_eq!(transport.now(), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_ends_in_time_comes_whole() {
        let transport = Transport::new([ok().slow_body(300, ["one", "two"])]);
        // The end comes 300 ms after the last piece.
        let (outcome, report) = get(&transport, complete(901)).await;
        assert_eq!(outcome.unwrap().text().await.unwrap(), "onetwo");
        assert_eq!(report.records()[0].elapsed(), ms(900));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_asked_to_read_is_not_bounded() {
        let transport = Transport::new([ok().slow_body(300, ["one", "two"])]);
        let policy = RetryPolicy::from(rule()).total_timeout(ms(500));
        let (outcome, _) = get(&transport, policy).await;
        assert_eq!(transport.now(), 0);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "onetwo");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_broke_off_is_told_of_by_a_retry_that_is_ended() {
        let transport = Transport::new([ok().broken_body("half"), hang()]);
        let (outcome, report) = get(&transport, complete(1000)).await;
        let (attempts, last) = total_timeout(&outcome);
        assert_eq!(attempts, 2);
        let last: &TransportError = last.expect("a source").downcast_ref().unwrap();
        assert_eq!(AttemptResult::Failure(*last), report.records()[0].result());
    }

    #[tokio::test]
    async fn the_connection_of_an_attempt_that_is_ended_is_closed() {
        let server = support::h1::H1::start(support::script::Act::Silence).await;
        let policy = RetryPolicy::from(rule()).total_timeout(ms(100));
        let client = ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(policy))
            .build();
        let outcome = client.get(server.url("/")).send().await;
        assert_eq!(total_timeout(&outcome).0, 1);
        assert_eq!(server.connections(), 1);
        support::eventually("it is closed", || server.open() == 0).await;
    }

    #[tokio::test]
    async fn a_real_body_is_bounded_with_its_attempt() {
        use support::script::{Act, Answer, Body};

        let slow = Answer::new(200).send(Body::Slow(vec!["piece".into(); 1000], ms(20)));
        let server = support::h1::H1::start(Act::from(slow)).await;
        let client = ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(complete(200)))
            .build();
        let outcome = client.get(server.url("/")).send().await;
        assert_eq!(total_timeout(&outcome).0, 1);
        assert_eq!(server.count(), 1);
    }
}

mod told_apart {
    use super::*;

    /// An error of another middleware, around the one from further in.
    #[derive(Debug)]
    struct Wrapped(Error);

    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("wrapped")
        }
    }

    impl StdError for Wrapped {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    struct Wrapping;

    #[async_trait]
    impl Middleware for Wrapping {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let outcome = next.run(request, extensions).await;
            outcome.map_err(|error| Error::middleware(Wrapped(error)))
        }
    }

    /// What a send comes to with a middleware around ours that wraps every error.
    async fn wrapped(transport: &Transport, policy: RetryPolicy) -> Error {
        ClientBuilder::new(support::client().build().unwrap())
            .with(Wrapping)
            .with(RetryMiddleware::new(policy))
            .with(transport.clone())
            .build()
            .get(URL)
            .send()
            .await
            .unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn reqwests_own_timeouts_are_timeouts() {
        for error in [errors::timeout(), errors::connect_timeout()] {
            assert!(Error::from(error).timed_out());
        }
        for error in [errors::refused(), errors::closed(), errors::builder()] {
            assert!(!Error::from(error).timed_out());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_is_seen_through_what_another_middleware_makes_of_it() {
        let policy = RetryPolicy::from(RetryRule::never());
        let error = wrapped(&Transport::new([fail(errors::timeout())]), policy.clone()).await;
        assert!(error.timed_out() && error.retry_error().is_none());
        let error = wrapped(&Transport::new([fail(errors::refused())]), policy.clone()).await;
        assert!(!error.timed_out());
        let context = anyhow::Error::from(errors::timeout()).context("while paying");
        assert!(Error::Middleware(context).timed_out());
        let context = anyhow::Error::from(errors::refused()).context("while paying");
        assert!(!Error::Middleware(context).timed_out());
    }

    #[tokio::test(start_paused = true)]
    async fn our_own_is_seen_through_what_another_middleware_makes_of_it() {
        let policy = RetryPolicy::from(rule()).total_timeout(ms(1000));
        let error = wrapped(&Transport::new([hang()]), policy.clone()).await;
        assert!(error.timed_out());
        assert_eq!(
            error.retry_error().expect("ours").to_string(),
            "the total timeout ran out in the first attempt"
        );
        let error = wrapped(&Transport::new([fail(errors::builder())]), policy).await;
        assert!(!error.timed_out() && error.retry_error().is_none());
    }

    /// Sends everything by a client of its own.
    struct Forwarding(ClientWithMiddleware);

    #[async_trait]
    impl Middleware for Forwarding {
        async fn handle(
            &self,
            request: Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> Result<Response> {
            self.0.execute(request).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_ended_another_send_in_flight_is_not_taken_for_its_last_failure() {
        // The inner send was refused, then sent, and ended before it was answered: for the outer
        // one it is neither unsent nor to be sent again.
        let transport = Transport::new([fail(errors::refused()), hang()]);
        let inner = client(
            &transport,
            RetryPolicy::from(rule()).total_timeout(ms(1000)),
        );
        let outer = ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(RetryRule {
                unsent_failures: true,
                ..rule()
            }))
            .with(Forwarding(inner))
            .build();
        let error = outer.get(URL).send().await.unwrap_err();
        assert!(error.timed_out());
        assert_eq!(classify(&error), None);
        assert_eq!(transport.times(), [0, 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_send_failed_with_counts_as_a_failure_of_this_one() {
        let transport = Transport::new([fail(errors::refused()), ok()]);
        let inner = client(&transport, RetryRule::never());
        let outer = ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(rule()))
            .with(Forwarding(inner))
            .build();
        assert_eq!(outer.get(URL).send().await.unwrap().status(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_timeout_is_one_whatever_failed_before_it() {
        let policy = RetryPolicy::from(rule()).total_timeout(ms(1000));
        for act in [
            status(503),
            fail(errors::refused()),
            fail(errors::timeout()),
        ] {
            let transport = Transport::new([act, hang()]);
            let (outcome, _) = get(&transport, policy.clone()).await;
            assert!(outcome.unwrap_err().timed_out());
        }
    }
}

mod clocks {
    use super::*;

    /// Sends a GET and lets the clock jump while its first wait runs.
    async fn with_a_jump(
        transport: &Transport,
        policy: impl Into<RetryPolicy>,
        jump: u64,
    ) -> (Result<Response>, RetryReport) {
        let jumps = async {
            tokio::task::yield_now().await;
            tokio::time::advance(ms(jump)).await;
        };
        tokio::join!(get(transport, policy), jumps).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_beyond_the_hard_limit_makes_no_attempt() {
        let transport = Transport::new([status(503).body("busy")]);
        let (outcome, report) =
            with_a_jump(&transport, limited(None, 0, Some(10_000)), 20_000).await;
        assert_status(&outcome, 503);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "busy");
        assert_eq!(report.stop_reason(), Some(StopReason::HardLimit(ms(100))));
        assert_eq!((report.attempts(), report.elapsed()), (1, ms(20_000)));
        // That wait was made.
        assert_eq!(report.records()[0].wait(), Some(ms(100)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_within_the_hard_limit_goes_on() {
        let transport = Transport::new([status(503), ok()]);
        let (outcome, _) = with_a_jump(&transport, limited(None, 0, Some(10_000)), 9_999).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 9_999]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_at_the_hard_limit_is_too_late() {
        let transport = Transport::new([status(503)]);
        let (outcome, _) = with_a_jump(&transport, limited(None, 0, Some(10_000)), 10_000).await;
        assert_status(&outcome, 503);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_beyond_the_total_timeout_makes_no_attempt() {
        let transport = Transport::new([status(503).body("busy")]);
        let policy = RetryPolicy::from(rule()).total_timeout(ms(10_000));
        let (outcome, report) = with_a_jump(&transport, policy, 10_000).await;
        assert_status(&outcome, 503);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "busy");
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(100))));
        assert_eq!(report.elapsed(), ms(10_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_within_the_total_timeout_goes_on() {
        let transport = Transport::new([status(503), ok()]);
        let policy = RetryPolicy::from(rule()).total_timeout(ms(10_000));
        let (outcome, _) = with_a_jump(&transport, policy, 9_999).await;
        assert_status(&outcome, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_gives_an_error_back_as_it_came() {
        let transport = Transport::new([fail(errors::refused())]);
        let policy = RetryPolicy::from(rule()).total_timeout(ms(10_000));
        let (outcome, report) = with_a_jump(&transport, policy, 20_000).await;
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(100))));
    }

    /// Takes so many milliseconds of the clock whenever it is told of a retry.
    struct Slow(u64);

    impl RetryObserver for Slow {
        fn on_retry(&self, _: &RetryEvent<'_>) {
            // The clock is moved when this is first polled.
            assert!(tokio::time::advance(ms(self.0)).now_or_never().is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_observer_takes_of_the_wait_and_of_the_time_that_is_left() {
        let total = RetryPolicy::from(rule()).total_timeout(ms(1000));
        let hard = RetryPolicy::from(limited(None, 0, Some(1000)));
        for (policy, reason) in [
            (total, StopReason::Budget(ms(100))),
            (hard, StopReason::HardLimit(ms(100))),
        ] {
            let transport = Transport::new([status(503).body("busy")]);
            let (outcome, report) = get(&transport, policy.clone().observer(Slow(1000))).await;
            assert_status(&outcome, 503);
            assert_eq!(outcome.unwrap().text().await.unwrap(), "busy");
            assert_eq!(report.stop_reason(), Some(reason));
            assert_eq!(transport.now(), 1000);

            let transport = Transport::new([status(503), ok()]);
            let (outcome, _) = get(&transport, policy.observer(Slow(999))).await;
            assert_status(&outcome, 200);
            assert_eq!(transport.now(), 999);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_was_half_read_when_the_clock_jumped_comes_back_whole() {
        let transport =
            Transport::new([status(503).slow_body(30, ["one", "two", "three", "four"])]);
        let jumps = async {
            tokio::time::sleep(ms(70)).await;
            tokio::time::advance(ms(20_000)).await;
        };
        let sent = get(&transport, limited(None, 0, Some(10_000)));
        let ((outcome, report), ()) = tokio::join!(sent, jumps);
        assert_status(&outcome, 503);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "onetwothreefour");
        assert_eq!(report.stop_reason(), Some(StopReason::HardLimit(ms(100))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_reading_of_a_refused_body_does_not_make_a_wait_longer() {
        let transport = Transport::new([status(503).slow_body(70, ["one", "two", "three"]), ok()]);
        let (outcome, _) = get(&transport, rule()).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reading_of_a_refused_body_never_crosses_a_limit() {
        // A wait of zero gives it 20 ms, but not where those would meet a limit.
        let instantly = |limits| RetryRule {
            backoff: Backoff::default(),
            ..limits
        };
        let slow = || status(503).slow_body(70, ["one", "two", "three"]);
        let transport = Transport::new([slow(), ok()]);
        get(&transport, instantly(rule())).await.0.unwrap();
        assert_eq!(transport.times(), [0, 20]);
        let transport = Transport::new([slow(), ok()]);
        let hard = instantly(limited(None, 0, Some(20)));
        get(&transport, hard).await.0.unwrap();
        assert_eq!(transport.times(), [0, 0]);
        let transport = Transport::new([slow(), ok()]);
        let total = RetryPolicy::from(instantly(rule())).total_timeout(ms(20));
        get(&transport, total).await.0.unwrap();
        assert_eq!(transport.times(), [0, 0]);
        let transport = Transport::new([slow(), ok()]);
        let total = RetryPolicy::from(instantly(rule())).total_timeout(ms(21));
        get(&transport, total).await.0.unwrap();
        assert_eq!(transport.times(), [0, 20]);
    }

    const NOON: Duration = Duration::from_secs(784_080_000);

    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + NOON
    }

    fn date(moment: SystemTime) -> String {
        httpdate::fmt_http_date(moment)
    }

    /// Waits as the server asks, up to a minute.
    fn obeying() -> RetryRule {
        RetryRule {
            retry_after: RetryAfter {
                source: RetryAfterSource::Header,
                cap: RetryAfterCap::StopAbove(Duration::from_secs(60)),
                ..RetryAfter::default()
            },
            ..rule()
        }
    }

    /// A policy to whom it is these times of day, one after another.
    fn at(moments: impl Into<Vec<SystemTime>>) -> RetryPolicy {
        let moments = Mutex::new(moments.into().into_iter());
        RetryPolicy::from(obeying())
            .wall_clock(move || moments.lock().unwrap().next().expect("a moment"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_date_is_measured_against_the_wall_clock() {
        let until = date(noon() + ms(3000));
        let transport = Transport::new([status(503).header("retry-after", until), ok()]);
        let (outcome, report) = get(&transport, at([noon()])).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 3000]);
        assert_eq!(report.records()[0].wait_source(), Some(WaitSource::Server));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_jumps_ahead_makes_a_date_the_past_and_no_limit_shorter() {
        let until = || status(503).header("retry-after", date(noon() + ms(3000)));
        let transport = Transport::new([until(), until(), ok()]);
        let policy = at([noon(), noon() + Duration::from_secs(86_400)]);
        let policy = policy.total_timeout(ms(10_000));
        let (outcome, _) = get(&transport, policy).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 3000, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_jumps_back_makes_a_date_too_far() {
        let until = || status(503).header("retry-after", date(noon() + ms(3000)));
        let transport = Transport::new([until(), until()]);
        let policy = at([noon(), noon() - Duration::from_secs(600)]);
        let (outcome, report) = get(&transport, policy).await;
        assert_status(&outcome, 503);
        let asked = Duration::from_secs(603);
        assert_eq!(
            report.stop_reason(),
            Some(StopReason::RetryAfterTooLong(asked))
        );
        assert_eq!(report.retry_after(), Some(asked));
        assert_eq!(transport.times(), [0, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_before_the_epoch_does_no_harm() {
        let until = date(noon());
        let transport = Transport::new([status(503).header("retry-after", until)]);
        let ancient = SystemTime::UNIX_EPOCH - Duration::from_secs(86_400);
        let (outcome, report) = get(&transport, at([ancient])).await;
        assert_status(&outcome, 503);
        let asked = NOON + Duration::from_secs(86_400);
        assert_eq!(
            report.stop_reason(),
            Some(StopReason::RetryAfterTooLong(asked))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_clock_is_ten_minutes_off_is_believed() {
        let ten_minutes = Duration::from_secs(600);
        for servers in [noon() - ten_minutes, noon() + ten_minutes] {
            let refused = status(503)
                .header("date", date(servers))
                .header("retry-after", date(servers + ms(3000)));
            let transport = Transport::new([refused, ok()]);
            // Our own clock is not asked.
            let (outcome, _) = get(&transport, at([])).await;
            assert_status(&outcome, 200);
            assert_eq!(transport.times(), [0, 3000]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_tell_its_time_is_measured_against_ours() {
        let ten_minutes = Duration::from_secs(600);
        for unreadable in ["", "noon", "Sun, 06 Nov 1994 08:49:37 PST"] {
            let behind = noon() - ten_minutes + ms(3000);
            let refused = status(503)
                .header("date", unreadable)
                .header("retry-after", date(behind));
            let transport = Transport::new([refused, ok()]);
            get(&transport, at([noon()])).await.0.unwrap();
            assert_eq!(transport.times(), [0, 0]);
        }
        let ahead = noon() + ten_minutes + ms(3000);
        let transport = Transport::new([status(503).header("retry-after", date(ahead))]);
        let (_, report) = get(&transport, at([noon()])).await;
        let asked = Duration::from_secs(603);
        assert_eq!(
            report.stop_reason(),
            Some(StopReason::RetryAfterTooLong(asked))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_date_that_is_read_later_is_measured_against_the_servers_clock_too() {
        let servers = noon() - Duration::from_secs(600);
        let found = status(404)
            .header("date", date(servers))
            .header("retry-after", date(servers + ms(3000)));
        let transport = Transport::new([found]);
        let response = client(&transport, obeying()).get(URL).send().await.unwrap();
        assert_eq!(response.retry_after(Some(noon())), Some(ms(3000)));
        assert_eq!(response.retry_after(None), Some(ms(3000)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_servers_wait_of_ages_ends_in_no_panic() {
        for asked in [
            "18446744073709551615",
            "99999999999999999999999999",
            "18446744073709551",
        ] {
            let transport = Transport::new([status(503).header("retry-after", asked)]);
            let rule = RetryRule {
                retry_after: RetryAfter {
                    cap: RetryAfterCap::NoCap,
                    ..obeying().retry_after
                },
                ..obeying()
            };
            let sent = client(&transport, rule).get(URL).send();
            let waited = tokio::time::timeout(Duration::from_secs(86_400), sent).await;
            assert!(waited.is_err(), "it came back");
            assert_eq!(transport.count(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleep_of_the_tests_own_is_on_the_same_clock() {
    let transport = Transport::new([status(503), ok()]);
    let policy = rule();
    let sent = tokio::join!(
        async {
            client(&transport, policy)
                .request(Method::GET, URL)
                .send()
                .await
        },
        tokio::time::sleep(ms(50)),
    );
    assert_eq!(sent.0.unwrap().status(), 200);
    assert_eq!(transport.now(), 100);
}
