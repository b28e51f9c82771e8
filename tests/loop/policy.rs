//! What a policy adds to its rule, setter by setter, and what a policy for passing failures is
//! known to do.

use std::collections::HashSet;
use std::error::Error as StdError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::stream;
use http::{HeaderName, Method};
use reqwest::{Body, Response};
use reqwest_middleware::{ClientWithMiddleware, Error, RequestBuilder};
use reqwest_retry_rules::{
    AttemptOutcome, AttemptResult, Backoff, Jitter, LogLevel, Methods, ReplaySafe, ResponseExt,
    RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource, RetryEvent, RetryObserver,
    RetryPolicy, RetryRule, StatusMatch, StatusRule, StopEvent, StopReason, TransportError,
    WaitFormat, WaitHeader, WaitSource, with_rule,
};

use crate::support;
use crate::support::scripted::{
    Transport, URL, assert_status, bare_client, carrying, client, errors, fail, get, get_with, ms,
    ok, send, status, times,
};

/// The preset, without chance: 100, 200, 400, … up to 1000 milliseconds.
fn rule() -> RetryRule {
    RetryRule {
        backoff: Backoff {
            jitter: Jitter::NoJitter,
            ..RetryRule::transient().backoff
        },
        ..RetryRule::transient()
    }
}

fn policy() -> RetryPolicy {
    RetryPolicy::from(rule())
}

fn post(client: ClientWithMiddleware) -> RequestBuilder {
    client.post(URL).body("body")
}

mod transient {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_their_maximum() {
        let transport = Transport::new(times(6, || status(503)).chain([ok()]));
        let rule = RetryRule {
            max_retries: 6,
            ..rule()
        };
        let (outcome, report) = get(&transport, rule).await;
        assert_status(&outcome, 200);
        let waits: Vec<_> = report
            .records()
            .iter()
            .filter_map(|record| record.wait())
            .collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000].map(ms));
        assert_eq!(transport.times(), [0, 100, 300, 700, 1500, 2500, 3500]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_refusal_comes_back_when_all_retries_are_made() {
        let transport = Transport::new(times(4, || status(502).body("sorry")));
        let (outcome, report) = get(&transport, rule()).await;
        let response = outcome.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (502, 4));
        assert_eq!(response.retry_report(), Some(&report));
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
        assert!(report.retries_exhausted());
        assert_eq!(response.text().await.unwrap(), "sorry");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_after_the_last_retry_is_an_answer() {
        let transport = Transport::new(times(3, || status(503)).chain([status(404)]));
        let (outcome, report) = get(&transport, rule()).await;
        let response = outcome.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (404, 4));
        assert_eq!(report.stop_reason(), None);
        assert!(!report.retries_exhausted());
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_nothing_matches_is_answered_at_once() {
        let transport = Transport::new([status(404)]);
        let (outcome, report) = get(&transport, rule()).await;
        assert_status(&outcome, 404);
        assert_eq!((report.attempts(), report.stop_reason()), (1, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_a_status_that_nothing_matches_is_read_and_not_acted_on() {
        let transport = Transport::new([status(404).header("retry-after", "7")]);
        let response = client(&transport, rule()).get(URL).send().await.unwrap();
        assert_eq!(transport.now(), 0);
        assert_eq!(response.retry_after(None), Some(Duration::from_secs(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_equal_to_the_cap_is_made() {
        let transport = Transport::new([status(429).header("retry-after", "60"), ok()]);
        let (outcome, report) = get(&transport, rule()).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 60_000]);
        assert_eq!(report.records()[0].wait_source(), Some(WaitSource::Server));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_above_the_cap_stops_and_is_told() {
        let transport = Transport::new([status(429).header("retry-after-ms", "60001")]);
        let (outcome, report) = get(&transport, rule()).await;
        assert_status(&outcome, 429);
        let asked = ms(60_001);
        assert_eq!(
            report.stop_reason(),
            Some(StopReason::RetryAfterTooLong(asked))
        );
        assert_eq!(report.retry_after(), Some(asked));
        assert_eq!(outcome.unwrap().retry_after(None), Some(asked));
        assert!(report.retries_exhausted());
        assert_eq!(transport.now(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_equal_to_the_time_left_is_not_made() {
        let asking = || status(503).header("retry-after", "2");
        let transport = Transport::new([asking()]);
        let (outcome, report) = get(&transport, policy().total_timeout(ms(2000))).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::Budget(ms(2000))));
        let transport = Transport::new([asking(), ok()]);
        let (outcome, _) = get(&transport, policy().total_timeout(ms(2001))).await;
        assert_status(&outcome, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unsent_post_is_sent_once_where_the_rule_leaves_it() {
        let transport = Transport::new([fail(errors::refused())]);
        let (outcome, report) = send(&transport, rule(), post).await;
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(report.attempts(), 1);
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unsent_post_is_sent_again_where_the_rule_says_so() {
        let transport = Transport::new(times(3, || fail(errors::refused())));
        let rule = RetryRule {
            max_retries: 2,
            unsent_failures: true,
            ..rule()
        };
        let (outcome, report) = send(&transport, rule, post).await;
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(report.attempts(), 3);
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sent_post_is_never_sent_again_for_being_unsent() {
        let rule = || RetryRule {
            unsent_failures: true,
            ..rule()
        };
        for error in [errors::closed(), errors::timeout()] {
            let transport = Transport::new([fail(error)]);
            let (outcome, report) = send(&transport, rule(), post).await;
            assert!(outcome.is_err());
            assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
        }
    }

    fn floor() -> RetryRule {
        let mut rule = rule();
        rule.retry_after.role = RetryAfterRole::Floor;
        rule
    }

    #[tokio::test(start_paused = true)]
    async fn a_floor_raises_the_backoff_and_never_shortens_it() {
        let asking = |milliseconds| status(503).header("retry-after-ms", milliseconds);
        let acts = || [asking("150"), asking("150"), asking("0"), ok()];
        let transport = Transport::new(acts());
        let (outcome, report) = get(&transport, floor()).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 150, 350, 750]);
        let sources: Vec<_> = report
            .records()
            .iter()
            .map(|record| record.wait_source())
            .collect();
        let (server, backoff) = (Some(WaitSource::Server), Some(WaitSource::Backoff));
        assert_eq!(sources, [server, backoff, backoff, None]);

        let transport = Transport::new(acts());
        get(&transport, rule()).await.0.unwrap();
        assert_eq!(transport.times(), [0, 150, 300, 700]);
    }

    #[tokio::test(start_paused = true)]
    async fn retries_are_switched_off_for_all_for_one_request_and_for_one_task() {
        let refused = || Transport::new([status(503)]);
        let transport = refused();
        client(&transport, RetryRule::never())
            .get(URL)
            .send()
            .await
            .unwrap();

        let transport = refused();
        let off = |own: &mut http::Extensions| own.extend(carrying(RetryRule::never()));
        let (outcome, report) = get_with(&transport, rule(), off).await;
        assert_status(&outcome, 503);
        assert_eq!(report.attempts(), 1);

        let transport = refused();
        let sent = client(&transport, rule()).get(URL).send();
        with_rule(RetryRule::never(), sent).await.unwrap();

        let transport = Transport::new([status(503), ok()]);
        client(&transport, rule()).get(URL).send().await.unwrap();
        assert_eq!(transport.count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn everything_but_timeouts_is_retried_where_the_rule_says_so() {
        let rule = || RetryRule {
            timeouts: false,
            ..rule()
        };
        for error in [errors::timeout(), errors::connect_timeout()] {
            let transport = Transport::new([fail(error)]);
            let (outcome, report) = get(&transport, rule()).await;
            assert!(outcome.unwrap_err().is_timeout());
            assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
        }
        for error in [errors::refused(), errors::closed()] {
            let transport = Transport::new([fail(error), ok()]);
            assert_status(&get(&transport, rule()).await.0, 200);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_is_no_transport_failure_comes_straight_back() {
        let own = || Error::Middleware(std::io::Error::other("no token").into());
        for error in [own(), errors::builder().into()] {
            let transport = Transport::new([fail(error)]);
            let (outcome, report) = get(&transport, rule()).await;
            assert!(outcome.is_err());
            assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
            assert_eq!(report.records()[0].result(), AttemptResult::Error);
        }
    }
}

mod retry_if {
    use super::*;

    const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

    /// 403 means "slow down" where nothing is left of the limit.
    fn slow_down(methods: Methods) -> RetryPolicy {
        let mut rule = rule();
        rule.retry_after.headers = vec![WaitHeader {
            name: RESET,
            format: WaitFormat::UnixSeconds,
            statuses: vec![],
        }];
        RetryPolicy::from(rule)
            .retry_if(methods, |head| {
                let left = head.headers().get("x-ratelimit-remaining");
                head.status() == 403 && left.is_some_and(|left| left == "0")
            })
            .wall_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1000))
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_for_which_the_condition_holds_is_retried() {
        let slow = status(403)
            .header("x-ratelimit-remaining", "0")
            .header("x-ratelimit-reset", "1020");
        let transport = Transport::new([slow, ok()]);
        let (outcome, report) = get(&transport, slow_down(Methods::Idempotent)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 20_000]);
        assert_eq!(report.records()[0].retry_after(), Some(ms(20_000)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_for_which_it_does_not_hold_is_an_answer() {
        let forbidden = status(403)
            .header("x-ratelimit-remaining", "17")
            .header("x-ratelimit-reset", "1020");
        let transport = Transport::new([forbidden]);
        let (outcome, report) = get(&transport, slow_down(Methods::Idempotent)).await;
        assert_status(&outcome, 403);
        assert_eq!(report.stop_reason(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_holds_for_its_methods_only() {
        let slow = || status(403).header("x-ratelimit-remaining", "0");
        let transport = Transport::new([slow()]);
        let (outcome, report) = send(&transport, slow_down(Methods::Idempotent), post).await;
        assert_status(&outcome, 403);
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
        let transport = Transport::new([slow(), ok()]);
        let (outcome, _) = send(&transport, slow_down(Methods::Any), post).await;
        assert_status(&outcome, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_conditions_the_first_that_allows_the_method_counts() {
        let conditions = |second: Methods| {
            policy()
                .retry_if(Methods::Listed(vec![Method::GET]), |head| {
                    head.status() == 409
                })
                .retry_if(second, |head| head.status() == 409)
        };
        let transport = Transport::new([status(409), ok()]);
        let (outcome, _) = send(&transport, conditions(Methods::Any), post).await;
        assert_status(&outcome, 200);
        let transport = Transport::new([status(409)]);
        let (outcome, _) = send(&transport, conditions(Methods::Idempotent), post).await;
        assert_status(&outcome, 409);
        // Any one of them is enough.
        let transport = Transport::new([status(409), ok()]);
        let (outcome, _) = get(&transport, conditions(Methods::Never)).await;
        assert_status(&outcome, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_can_be_refused() {
        let pending = || policy().retry_if(Methods::Idempotent, |head| head.status() == 202);
        let transport = Transport::new([status(202), ok()]);
        assert_status(&get(&transport, pending()).await.0, 200);
        let transport = Transport::new([status(202)]);
        assert_status(&get(&transport, policy()).await.0, 202);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_asked_about_what_the_rule_decides() {
        let never = || policy().retry_if(Methods::Any, |head| panic!("asked of {}", head.status()));
        let transport = Transport::new([
            status(503),
            fail(errors::refused()),
            status(503),
            status(503),
        ]);
        assert_status(&get(&transport, never()).await.0, 503);
        // A rule for the status goes before the condition, even where it is for no method.
        let mut rule = rule();
        rule.statuses.insert(
            0,
            StatusRule {
                statuses: vec![StatusMatch::Code(409)],
                methods: Methods::Never,
                backoff: None,
            },
        );
        let policy = RetryPolicy::from(rule)
            .retry_if(Methods::Any, |head| panic!("asked of {}", head.status()));
        let transport = Transport::new([status(409)]);
        let (outcome, report) = get(&transport, policy).await;
        assert_status(&outcome, 409);
        assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
    }

    /// Nor of anything if there can be no retry: the request passes through.
    #[tokio::test(start_paused = true)]
    async fn it_is_not_asked_if_there_are_no_retries() {
        for (max_retries, asked) in [(0, 0), (1, 2)] {
            let count = Arc::new(AtomicU64::new(0));
            let counting = count.clone();
            let policy = RetryPolicy::from(RetryRule {
                max_retries,
                ..RetryRule::never()
            })
            .retry_if(Methods::Any, move |_| {
                counting.fetch_add(1, Ordering::Relaxed);
                true
            });
            let transport = Transport::choose(|_| status(409));
            let answer = client(&transport, policy).get(URL).send().await.unwrap();
            assert_eq!(answer.retry_report().is_some(), max_retries > 0);
            assert_eq!(count.load(Ordering::Relaxed), asked);
        }
    }

    /// Also if no retry is possible and nobody else asks for the URL.
    #[tokio::test(start_paused = true)]
    async fn it_knows_what_was_asked_for_if_another_answered() {
        for methods in [Methods::Listed(vec![Method::PUT]), Methods::Any] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let note = seen.clone();
            let policy = RetryPolicy::from(rule())
                .log_levels(LogLevel::Off, LogLevel::Off)
                .retry_if(methods, move |head| {
                    note.lock().unwrap().push(head.request_url().to_string());
                    false
                });
            let transport = Transport::new([status(409).answered_by("http://other.test/")]);
            send(&transport, policy, post).await.0.unwrap();
            assert_eq!(*seen.lock().unwrap(), [URL]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_makes_a_method_retryable_that_the_rule_leaves_alone() {
        let rule = RetryRule {
            statuses: Vec::new(),
            sent_failures: Methods::Never,
            ..rule()
        };
        let policy = RetryPolicy::from(rule).retry_if(Methods::Any, |head| head.status() == 503);
        let transport = Transport::new([status(503).header("retry-after", "1"), ok()]);
        let (outcome, _) = send(&transport, policy, post).await;
        assert_status(&outcome, 200);
        let bodies: Vec<_> = transport
            .seen()
            .into_iter()
            .map(|seen| seen.body.unwrap())
            .collect();
        assert_eq!(bodies, ["body", "body"]);
    }

    /// The twin: a condition for no more methods than the row.
    #[tokio::test(start_paused = true)]
    async fn it_makes_a_method_retryable_that_a_row_leaves_alone() {
        let refused = |methods| policy().retry_if(methods, |head| head.status() == 503);
        let transport = Transport::new([status(503), ok()]);
        let (outcome, _) = send(&transport, refused(Methods::Any), post).await;
        assert_status(&outcome, 200);
        let transport = Transport::new([status(503)]);
        let (outcome, report) = send(&transport, refused(Methods::Idempotent), post).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_never_lifts_the_number_of_retries() {
        let rule = RetryRule {
            max_retries: 1,
            ..rule()
        };
        let policy = RetryPolicy::from(rule).retry_if(Methods::Any, |_| true);
        let transport = Transport::new([status(200), status(200)]);
        let (outcome, report) = get(&transport, policy).await;
        assert_status(&outcome, 200);
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
    }

    #[tokio::test(start_paused = true)]
    async fn the_head_says_what_came() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = seen.clone();
        let policy = policy().retry_if(Methods::Any, move |head| {
            let header = head.headers().get("x-reason").cloned();
            note.lock().unwrap().push((
                head.status(),
                head.version(),
                head.url().to_string(),
                header,
            ));
            false
        });
        let transport = Transport::new([status(418).header("x-reason", "teapot")]);
        get(&transport, policy).await.0.unwrap();
        let header = Some(http::HeaderValue::from_static("teapot"));
        assert_eq!(
            *seen.lock().unwrap(),
            [(
                http::StatusCode::IM_A_TEAPOT,
                http::Version::HTTP_11,
                URL.to_string(),
                header
            )]
        );
    }
}

mod server_delay {
    use super::*;

    fn in_tenths(response: &reqwest_retry_rules::ResponseHead<'_>) -> Option<Duration> {
        let tenths = response.headers().get("x-tenths")?.to_str().ok()?;
        Some(ms(100).saturating_mul(tenths.parse().ok()?))
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_before_the_headers() {
        let asking = || {
            status(503)
                .header("x-tenths", "7")
                .header("retry-after", "3")
        };
        let transport = Transport::new([asking(), ok()]);
        let (outcome, report) = get(&transport, policy().server_delay(in_tenths)).await;
        assert_status(&outcome, 200);
        assert_eq!(transport.times(), [0, 700]);
        assert_eq!(report.records()[0].retry_after(), Some(ms(700)));
        assert_eq!(report.records()[0].wait_source(), Some(WaitSource::Server));
        let transport = Transport::new([asking(), ok()]);
        get(&transport, policy()).await.0.unwrap();
        assert_eq!(transport.times(), [0, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn where_it_reads_nothing_the_headers_are_read() {
        let transport = Transport::new([status(503).header("retry-after", "3"), ok()]);
        get(&transport, policy().server_delay(in_tenths))
            .await
            .0
            .unwrap();
        assert_eq!(transport.times(), [0, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cap_holds_for_it() {
        let transport = Transport::new([status(503).header("x-tenths", "601")]);
        let (_, report) = get(&transport, policy().server_delay(in_tenths)).await;
        let asked = ms(60_100);
        assert_eq!(
            report.stop_reason(),
            Some(StopReason::RetryAfterTooLong(asked))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nonsense_is_floored_and_capped() {
        for (asked, times) in [
            // A zero means the backoff.
            (Duration::ZERO, vec![0, 100]),
            (Duration::from_micros(1999), vec![0, 1]),
            (Duration::MAX, vec![0]),
        ] {
            let transport = Transport::choose(move |_| status(503));
            let rule = RetryRule {
                max_retries: 1,
                ..rule()
            };
            let policy = RetryPolicy::from(rule).server_delay(move |_| Some(asked));
            get(&transport, policy).await.0.unwrap();
            assert_eq!(transport.times(), times, "{asked:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_once_of_each_refused_response_and_of_nothing_else() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let policy = policy().server_delay(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            None
        });
        let transport = Transport::new([status(503), fail(errors::refused()), status(503), ok()]);
        get(&transport, policy).await.0.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}

mod classify_with {
    use super::*;

    #[derive(Debug)]
    struct NoCredentials;

    impl std::fmt::Display for NoCredentials {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no credentials")
        }
    }

    impl StdError for NoCredentials {}

    fn no_credentials() -> Error {
        Error::middleware(NoCredentials)
    }

    fn credentials_come(error: &Error) -> Option<TransportError> {
        match error {
            Error::Middleware(error) if error.is::<NoCredentials>() => {
                Some(TransportError::Connect)
            }
            _ => None,
        }
    }

    fn unsent() -> RetryPolicy {
        RetryPolicy::from(RetryRule {
            unsent_failures: true,
            ..rule()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_it_names_is_retried_as_that_class() {
        let transport = Transport::new([fail(no_credentials()), ok()]);
        let policy = unsent().classify_with(credentials_come);
        let (outcome, report) = send(&transport, policy, post).await;
        assert_status(&outcome, 200);
        let connect = AttemptResult::Failure(TransportError::Connect);
        assert_eq!(report.records()[0].result(), connect);
    }

    #[tokio::test(start_paused = true)]
    async fn without_it_that_error_comes_straight_back() {
        let transport = Transport::new([fail(no_credentials())]);
        let (outcome, _) = send(&transport, unsent(), post).await;
        let Err(Error::Middleware(error)) = outcome else {
            panic!("another error");
        };
        assert!(error.is::<NoCredentials>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_does_not_name_is_left_to_the_built_in() {
        let transport = Transport::new([fail(errors::refused()), ok()]);
        let policy = unsent().classify_with(credentials_come);
        let (outcome, _) = send(&transport, policy, post).await;
        assert_status(&outcome, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_before_the_built_in() {
        let transport = Transport::new([fail(errors::refused())]);
        let policy = unsent().classify_with(|_| Some(TransportError::Certificate));
        let (outcome, report) = get(&transport, policy).await;
        assert!(outcome.unwrap_err().is_connect(), "the error is another");
        assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
    }

    #[tokio::test]
    async fn after_a_tracked_redirect_nothing_that_it_names_is_unsent() {
        use reqwest_middleware::ClientBuilder;
        use reqwest_retry_rules::{RetryMiddleware, tracked_redirects};
        use support::script::{Act, Answer};

        let gone = support::refused::Refused::new();
        let onward = Answer::new(303).header("location", &gone.url("/"));
        let server = support::h1::H1::start(Act::from(onward)).await;
        let redirects = tracked_redirects(reqwest::redirect::Policy::default());
        let reqwest = support::client().redirect(redirects).build().unwrap();
        let policy = unsent().classify_with(|_| Some(TransportError::Connect));
        let client = ClientBuilder::new(reqwest)
            .with(RetryMiddleware::new(policy))
            .build();
        client
            .post(server.url("/"))
            .body("body")
            .send()
            .await
            .unwrap_err();
        assert_eq!(server.count(), 1);
    }
}

mod veto {
    use super::*;

    /// Refuses every failure that is no timeout.
    fn no_timeout(outcome: &AttemptOutcome<'_>) -> bool {
        matches!(outcome, AttemptOutcome::Failure(failure) if !failure.is_timeout())
    }

    fn only_timeouts() -> RetryPolicy {
        policy().veto(no_timeout)
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_allows_is_retried_as_the_rule_says() {
        for error in [errors::timeout(), errors::connect_timeout()] {
            let transport = Transport::new([fail(error), ok()]);
            assert_status(&get(&transport, only_timeouts()).await.0, 200);
        }
        // And no more than that.
        let transport = Transport::new([fail(errors::timeout())]);
        let (_, report) = send(&transport, only_timeouts(), post).await;
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_refuses_comes_back_as_not_retryable() {
        for error in [errors::refused(), errors::closed()] {
            let transport = Transport::new([fail(error)]);
            let (outcome, report) = get(&transport, only_timeouts()).await;
            assert!(outcome.is_err());
            assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
            assert!(!report.retries_exhausted());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_refused_likewise() {
        fn is_503(outcome: &AttemptOutcome<'_>) -> bool {
            matches!(outcome, AttemptOutcome::Response { status, .. } if *status == 503)
        }
        let transport = Transport::new([status(503)]);
        let (_, report) = get(&transport, policy().veto(is_503)).await;
        assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
        let transport = Transport::new([status(502), ok()]);
        assert_status(&get(&transport, policy().veto(is_503)).await.0, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_it_is_enough_that_one_refuses() {
        for policy in [
            policy().veto(|_| true).veto(|_| false),
            policy().veto(|_| false).veto(|_| true),
        ] {
            let transport = Transport::new([fail(errors::timeout())]);
            let (_, report) = get(&transport, policy).await;
            assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
        }
        let policy = policy().veto(|_| false).veto(|_| false);
        let transport = Transport::new([fail(errors::timeout()), ok()]);
        assert_status(&get(&transport, policy).await.0, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_hide_that_the_retries_are_used_up() {
        let rule = RetryRule {
            max_retries: 1,
            ..rule()
        };
        let policy = RetryPolicy::from(rule).veto(no_timeout);
        let transport = Transport::new([fail(errors::timeout()), fail(errors::refused())]);
        let (_, report) = get(&transport, policy).await;
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_use_up_the_budget() {
        let budget = reqwest_retry_rules::RetryBudget::new(reqwest_retry_rules::BudgetTerms {
            window: Duration::from_secs(10),
            reserve_per_second: 0,
            ratio: 1000,
        });
        let policy = policy().veto(|_| true).budget(budget.unwrap());
        let transport = Transport::new([fail(errors::refused())]);
        let (_, report) = get(&transport, policy).await;
        assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
    }
}

mod headers {
    use super::*;

    const COUNT: HeaderName = HeaderName::from_static("x-retry-count");
    const KEY: HeaderName = HeaderName::from_static("idempotency-key");

    fn values(transport: &Transport, name: &HeaderName) -> Vec<Option<String>> {
        let seen = transport.seen();
        let values = seen.iter().map(|seen| seen.header(name.as_str()));
        values.map(|value| value.map(str::to_owned)).collect()
    }

    fn some(values: &[&str]) -> Vec<Option<String>> {
        values
            .iter()
            .map(|value| Some((*value).to_owned()))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_a_retry_is_sent_with_it() {
        let transport = Transport::new([status(503), fail(errors::refused()), ok()]);
        get(&transport, policy().attempt_header(COUNT))
            .await
            .0
            .unwrap();
        let expected = [None, Some("1".to_owned()), Some("2".to_owned())];
        assert_eq!(values(&transport, &COUNT), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn without_that_setting_nothing_is_sent() {
        let transport = Transport::new([status(503), ok()]);
        get(&transport, policy()).await.0.unwrap();
        assert!(transport.seen().iter().all(|seen| seen.headers.is_empty()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_callers_own_count_is_kept() {
        let transport = Transport::new([status(503), ok()]);
        let sent = send(&transport, policy().attempt_header(COUNT), |client| {
            client.get(URL).header(COUNT, "mine")
        });
        sent.await.0.unwrap();
        assert_eq!(values(&transport, &COUNT), some(&["mine", "mine"]));
    }

    fn keyed() -> RetryPolicy {
        policy().idempotency_key(KEY)
    }

    #[tokio::test(start_paused = true)]
    async fn a_post_with_a_key_is_retried_with_the_same_key() {
        let transport = Transport::new([status(503), fail(errors::closed()), ok()]);
        let (outcome, _) = send(&transport, keyed(), post).await;
        assert_status(&outcome, 200);
        let keys = values(&transport, &KEY);
        let key = keys[0].clone().unwrap();
        assert_eq!(keys, some(&[&key, &key, &key]));
        assert_eq!(key.len(), 32);
        assert!(key.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_post_without_a_key_is_not() {
        let transport = Transport::new([status(503)]);
        let (outcome, report) = send(&transport, policy(), post).await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
    }

    #[tokio::test(start_paused = true)]
    async fn every_send_has_a_key_of_its_own() {
        let transport = Transport::new(times(50, ok));
        let client = client(&transport, keyed());
        for _ in 0..50 {
            client.post(URL).send().await.unwrap();
        }
        let keys: HashSet<_> = values(&transport, &KEY).into_iter().flatten().collect();
        assert_eq!(keys.len(), 50);
    }

    #[tokio::test(start_paused = true)]
    async fn the_callers_own_key_is_kept_and_counts() {
        let transport = Transport::new([status(503), ok()]);
        let sent = send(&transport, keyed(), |client| {
            client.post(URL).header(KEY, "mine")
        });
        assert_status(&sent.await.0, 200);
        assert_eq!(values(&transport, &KEY), some(&["mine", "mine"]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_alone_does_not_make_a_post_idempotent() {
        let transport = Transport::new([status(503)]);
        let sent = send(&transport, policy(), |client| {
            client.post(URL).header(KEY, "mine")
        });
        assert_status(&sent.await.0, 503);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idempotent_method_gets_no_key() {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let transport = Transport::new([status(503), ok()]);
            let sent = send(&transport, keyed(), |client| client.request(method, URL));
            assert_status(&sent.await.0, 200);
            assert_eq!(values(&transport, &KEY), [None, None]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_request_says_of_itself_goes_before_the_key() {
        let transport = Transport::new([status(503)]);
        let sent = send(&transport, keyed(), |client| {
            post(client).with_extension(ReplaySafe(false))
        });
        let (outcome, report) = sent.await;
        assert_status(&outcome, 503);
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_sent_even_where_nothing_is_retried() {
        let transport = Transport::new([ok()]);
        let policy = RetryPolicy::from(RetryRule::never()).idempotency_key(KEY);
        post(client(&transport, policy)).send().await.unwrap();
        assert!(transport.seen()[0].headers.contains_key(KEY));
    }
}

mod bodies {
    use super::*;

    const KIB: u64 = 1024;

    /// A body of so many KiB in pieces of one, of unknown length, and how many of it were read.
    fn counted(kib: u64) -> (Body, Arc<AtomicU64>) {
        let read = Arc::new(AtomicU64::new(0));
        let count = read.clone();
        let pieces = stream::iter(0..kib).map(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(vec![b'x'; KIB as usize])
        });
        (Body::wrap_stream(pieces), read)
    }

    use futures_util::StreamExt;

    async fn drained(policy: RetryPolicy, kib: u64) -> u64 {
        let (body, read) = counted(kib);
        let transport = Transport::new([status(503).body(body), ok()]);
        get(&transport, policy).await.0.unwrap();
        read.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_body_is_read_to_its_end_within_the_limit() {
        assert_eq!(drained(policy(), 64).await, 64);
        assert_eq!(drained(policy().drain_limit(8 * 1024), 8).await, 8);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reading_of_a_refused_body_stops_beyond_the_limit() {
        assert_eq!(drained(policy(), 1000).await, 65);
        assert_eq!(drained(policy().drain_limit(8 * 1024), 1000).await, 9);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_of_a_refused_body_where_the_limit_is_zero() {
        assert_eq!(drained(policy().drain_limit(0), 8).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_refused_body_is_the_callers_to_read() {
        let (body, read) = counted(8);
        let transport = Transport::new([status(503).body(body)]);
        let rule = RetryRule {
            max_retries: 0,
            ..rule()
        };
        let (outcome, _) = get(&transport, rule).await;
        assert_eq!(read.load(Ordering::Relaxed), 0);
        assert_eq!(
            outcome.unwrap().bytes().await.unwrap().len() as u64,
            8 * KIB
        );
    }

    async fn text(outcome: reqwest_middleware::Result<Response>) -> reqwest::Result<String> {
        outcome.unwrap().text().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_breaks_off_is_retried_where_it_is_completed() {
        let transport = Transport::new([ok().broken_body("half"), ok().body("whole")]);
        let (outcome, report) = get(&transport, policy().complete_body(1024)).await;
        assert_eq!(text(outcome).await.unwrap(), "whole");
        assert_eq!(report.attempts(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_breaks_off_is_the_callers_where_it_is_not_completed() {
        let transport = Transport::new([ok().broken_body("half")]);
        let (outcome, report) = get(&transport, policy()).await;
        assert!(text(outcome).await.is_err());
        assert_eq!(report.attempts(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_breaks_off_and_is_not_retried_comes_back_with_its_error() {
        let transport = Transport::new([ok().broken_body("half")]);
        let (outcome, report) = send(&transport, policy().complete_body(1024), post).await;
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
        let mut response = outcome.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "half");
        assert!(response.chunk().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_longer_than_the_limit_streams_on() {
        let (body, read) = counted(100);
        let transport = Transport::new([ok().body(body)]);
        let (outcome, _) = get(&transport, policy().complete_body(8 * 1024)).await;
        assert_eq!(read.load(Ordering::Relaxed), 9);
        assert_eq!(
            outcome.unwrap().bytes().await.unwrap().len() as u64,
            100 * KIB
        );
    }
}

mod observers {
    use super::*;

    /// Notes what it is told under a name, with the time.
    struct Notes(&'static str, Arc<Mutex<Vec<String>>>, tokio::time::Instant);

    impl RetryObserver for Notes {
        fn on_retry(&self, event: &RetryEvent<'_>) {
            let text = format!(
                "{} at {}: retry {}",
                self.0,
                self.2.elapsed().as_millis(),
                event.retry()
            );
            self.1.lock().unwrap().push(text);
        }

        fn on_stop(&self, event: &StopEvent<'_>) {
            let text = format!(
                "{} at {}: {}",
                self.0,
                self.2.elapsed().as_millis(),
                event.reason()
            );
            self.1.lock().unwrap().push(text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_told_before_each_wait_in_the_order_in_which_they_were_set() {
        let (told, start) = (Arc::default(), tokio::time::Instant::now());
        let rule = RetryRule {
            max_retries: 2,
            ..rule()
        };
        let policy = RetryPolicy::from(rule)
            .observer(Notes("first", Arc::clone(&told), start))
            .observer(Arc::new(Notes("second", Arc::clone(&told), start)));
        let transport = Transport::new(times(3, || status(503).after(10)));
        get(&transport, policy).await.0.unwrap();
        assert_eq!(
            *told.lock().unwrap(),
            [
                "first at 10: retry 1",
                "second at 10: retry 1",
                "first at 120: retry 2",
                "second at 120: retry 2",
                "first at 330: every retry that the rule allows was made",
                "second at 330: every retry that the rule allows was made",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn none_is_told_of_an_answer_at_once() {
        for answer in [ok(), status(404)] {
            let (told, start) = (Arc::default(), tokio::time::Instant::now());
            let policy = policy().observer(Notes("it", Arc::clone(&told), start));
            get(&Transport::new([answer]), policy).await.0.unwrap();
            assert!(told.lock().unwrap().is_empty());
        }
    }
}

mod chance {
    use super::*;

    async fn first_wait(rule: RetryRule, sample: f64, transport: &Transport) -> Duration {
        let policy = RetryPolicy::from(rule).jitter_source(move || sample);
        get(transport, policy).await.1.records()[0].wait().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_sample_pins_the_jitter() {
        for (sample, wait) in [(0.0, 0), (0.5, 50), (0.25, 25), (0.999, 99)] {
            let transport = Transport::new([status(503), ok()]);
            assert_eq!(
                first_wait(RetryRule::transient(), sample, &transport).await,
                ms(wait)
            );
            assert_eq!(transport.times(), [0, u128::from(wait)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sample_that_is_no_number_from_0_to_1_is_taken_for_the_nearest_that_is() {
        let samples = [
            (f64::NAN, 0),
            (-1.0, 0),
            (f64::NEG_INFINITY, 0),
            (1.0, 99),
            (17.0, 99),
            (f64::INFINITY, 99),
        ];
        for (sample, wait) in samples {
            let transport = Transport::new([status(503), ok()]);
            assert_eq!(
                first_wait(RetryRule::transient(), sample, &transport).await,
                ms(wait)
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_spread_of_a_servers_wait_is_drawn_from_it_too() {
        let rule = RetryRule {
            retry_after: RetryAfter {
                spread: 100,
                ..RetryRule::transient().retry_after
            },
            ..RetryRule::transient()
        };
        let transport = Transport::new([status(503).header("retry-after", "10"), ok()]);
        assert_eq!(first_wait(rule, 0.5, &transport).await, ms(10_500));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_source_waits_stay_within_the_jitter_and_differ() {
        let mut waits = HashSet::new();
        for _ in 0..64 {
            let transport = Transport::new([status(503), ok()]);
            let report = get(&transport, RetryRule::transient()).await.1;
            let wait = report.records()[0].wait().unwrap();
            assert!(wait < ms(100));
            waits.insert(wait);
        }
        assert!(waits.len() > 8, "{waits:?}");
    }
}

mod as_a_value {
    use super::*;

    #[test]
    fn a_policy_holds_the_rule_that_it_was_made_of() {
        assert_eq!(policy().rule(), &rule());
        assert_eq!(RetryPolicy::from(Arc::new(rule())).rule(), &rule());
    }

    #[tokio::test(start_paused = true)]
    async fn setting_something_on_a_copy_leaves_the_original_as_it_was() {
        let original = policy();
        let _changed = original
            .clone()
            .retry_if(Methods::Any, |_| true)
            .total_timeout(ms(0));
        let transport = Transport::new([status(404)]);
        assert_status(&get(&transport, original).await.0, 404);
    }

    #[tokio::test(start_paused = true)]
    async fn the_nonsense_of_a_rule_built_in_code_gives_an_answer() {
        let rule = RetryRule {
            max_retries: 2,
            backoff: Backoff {
                base: Duration::MAX,
                max: Duration::from_nanos(999_999),
                growth: u32::MAX,
                jitter: Jitter::Proportional {
                    lo: u32::MAX,
                    hi: 0,
                },
            },
            retry_after: RetryAfter {
                source: RetryAfterSource::Header,
                cap: RetryAfterCap::BackoffAbove(Duration::ZERO),
                ..RetryAfter::default()
            },
            ..rule()
        };
        let transport = Transport::new([status(503), status(503).header("retry-after", "1"), ok()]);
        assert_status(&get(&transport, rule).await.0, 200);
        assert_eq!(transport.times(), [0, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_scripted_transport_alone_retries_nothing() {
        let transport = Transport::new([status(503)]);
        let response = bare_client(&transport).get(URL).send().await.unwrap();
        assert_eq!((response.status().as_u16(), transport.count()), (503, 1));
    }
}

/// A stream that nobody read, of an attempt that may have been processed, is not sent again.
#[tokio::test(start_paused = true)]
async fn an_unread_stream_is_sent_again_only_after_a_failure_that_proves_it_unsent() {
    let put = |client: ClientWithMiddleware| {
        let pieces = stream::iter(["one", "two"].map(Ok::<_, std::io::Error>));
        client.put(URL).body(Body::wrap_stream(pieces))
    };
    let unsent = || RetryRule {
        unsent_failures: true,
        ..rule()
    };
    let transport = Transport::new([fail(errors::closed())]);
    let (outcome, report) = send(&transport, unsent(), put).await;
    assert!(outcome.is_err());
    assert_eq!(report.stop_reason(), Some(StopReason::NotReplayable));
    // The twin.
    let transport = Transport::new([fail(errors::refused()), ok()]);
    assert_status(&send(&transport, unsent(), put).await.0, 200);
}
