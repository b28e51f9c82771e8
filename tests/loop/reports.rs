//! What a caller can read of a send afterwards, and what observers get while it happens.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use futures_util::stream;
use http::{Extensions, HeaderName, Method, StatusCode};
use reqwest::{Body, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::{
    AttemptResult, Backoff, BodySource, BudgetTerms, Jitter, Limits, Methods, RecoveredEvent,
    ResendCount, ResponseExt, RetryBudget, RetryError, RetryEvent, RetryLabel, RetryLog,
    RetryMiddleware, RetryObserver, RetryPolicy, RetryReport, RetryRule, StopEvent, StopReason,
    TotalTimeout, TransportError, WaitSource,
};

use crate::support::scripted::{
    Act, Transport, URL, assert_status, carrying, client, errors, fail, get, get_with, hang, ms,
    ok, send, status, times,
};

/// The preset, without chance: 100, 200, 400 milliseconds.
fn rule() -> RetryRule {
    RetryRule {
        backoff: Backoff {
            jitter: Jitter::NoJitter,
            ..RetryRule::transient().backoff
        },
        ..RetryRule::transient()
    }
}

fn request(method: Method) -> Request {
    Request::new(method, URL.parse().unwrap())
}

/// Sends a GET with this map, and leaves in it what there is to read.
async fn get_in(map: &mut Extensions, transport: &Transport) -> Result<Response> {
    let client = client(transport, rule());
    client
        .execute_with_extensions(request(Method::GET), map)
        .await
}

mod records {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_attempt_has_one() {
        let transport = Transport::new([
            status(503).header("retry-after", "2").after(30),
            fail(errors::refused()).after(7),
            status(429).header("retry-after", "soon"),
            ok().header("retry-after", "9").after(5),
        ]);
        let (outcome, report) = get(&transport, rule()).await;
        assert_status(&outcome, 200);
        let seen: Vec<_> = report
            .records()
            .iter()
            .map(|record| {
                let (wait, source) = (record.wait(), record.wait_source());
                (
                    record.result(),
                    record.elapsed(),
                    record.retry_after(),
                    wait,
                    source,
                )
            })
            .collect();
        let of = |status: u16| AttemptResult::Status(StatusCode::from_u16(status).unwrap());
        let refused = AttemptResult::Failure(TransportError::Connect);
        let (server, backoff) = (Some(WaitSource::Server), Some(WaitSource::Backoff));
        assert_eq!(
            seen,
            [
                (of(503), ms(30), Some(ms(2000)), Some(ms(2000)), server),
                (refused, ms(7), None, Some(ms(200)), backoff),
                (of(429), ms(0), None, Some(ms(400)), backoff),
                (of(200), ms(5), None, None, None),
            ]
        );
        assert_eq!(report.attempts(), 4);
        assert_eq!(report.elapsed(), ms(2000 + 200 + 400 + 30 + 7 + 5));
        assert_eq!((report.stop_reason(), report.retry_after()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_last_answer_asked_for_is_the_reports() {
        let asking = |seconds| status(503).header("retry-after", seconds);
        let transport = Transport::new([asking("1"), asking("1"), asking("1"), asking("7")]);
        let (_, report) = get(&transport, rule()).await;
        assert_eq!(report.retry_after(), Some(ms(7000)));
        assert_eq!(report.records()[3].wait(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_another_kind_has_one_too() {
        let transport = Transport::new([status(503), fail(errors::builder())]);
        let (_, report) = get(&transport, rule()).await;
        assert_eq!(report.records()[1].result(), AttemptResult::Error);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempts_time_does_not_count_the_making_of_its_body() {
        let source = BodySource::from_async(|| async {
            tokio::time::sleep(ms(50)).await;
            Ok::<_, std::io::Error>("body")
        });
        let transport = Transport::new([status(503).after(3), ok().after(3)]);
        let (outcome, report) =
            get_with(&transport, rule(), |own| own.extend(carrying(source))).await;
        assert_status(&outcome, 200);
        let elapsed: Vec<_> = report
            .records()
            .iter()
            .map(|record| record.elapsed())
            .collect();
        assert_eq!(elapsed, [ms(3); 2]);
        assert_eq!(transport.times(), [50, 203]);
        assert_eq!(report.elapsed(), ms(206));
    }

    /// At once, so often.
    fn tireless(max_retries: u32) -> RetryPolicy {
        let rule = RetryRule {
            max_retries,
            backoff: Backoff {
                base: Duration::ZERO,
                ..rule().backoff
            },
            ..rule()
        };
        RetryPolicy::from(rule).no_budget()
    }

    #[tokio::test(start_paused = true)]
    async fn of_more_than_a_thousand_the_first_and_the_last_five_hundred_are_kept() {
        for attempts in [1000, 1001, 2345] {
            // The status tells the number of the attempt, modulo 100.
            let mut number = 0;
            let transport = Transport::choose(move |_| {
                number += 1;
                status(500 + number % 100)
            });
            let policy = tireless(u32::from(attempts) - 1);
            let policy = policy.retry_if(Methods::Any, |_| true);
            let (outcome, report) = get(&transport, policy).await;
            assert_status(&outcome, 500 + attempts % 100);
            assert_eq!(transport.count(), usize::from(attempts));
            assert_eq!(report.attempts(), u32::from(attempts));
            assert_eq!(outcome.unwrap().attempts(), u32::from(attempts));

            let kept: Vec<_> = (1..=500).chain(attempts - 499..=attempts).collect();
            let expected = |&number: &u16| StatusCode::from_u16(500 + number % 100).unwrap();
            let expected: Vec<_> = kept
                .iter()
                .map(expected)
                .map(AttemptResult::Status)
                .collect();
            let records = report.records().iter();
            let results: Vec<_> = records.clone().map(|record| record.result()).collect();
            assert_eq!(results, expected);
            // Only the last was followed by no wait.
            let waits: Vec<_> = records.map(|record| record.wait().is_some()).collect();
            assert_eq!(waits, [vec![true; 999], vec![false]].concat());
        }
    }

    /// A middleware further in that sends by itself, and passes on what it gets.
    struct Forwards(ClientWithMiddleware);

    #[async_trait::async_trait]
    impl Middleware for Forwards {
        async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
            self.0.post(URL).send().await
        }
    }

    /// The promise does not depend on what is kept: one attempt in the middle that may have been
    /// processed keeps a send around this one from sending again.
    #[tokio::test(start_paused = true)]
    async fn what_may_have_been_processed_is_known_of_an_attempt_whose_record_is_gone() {
        let unsent = TransportError::Connect;
        for (the_700th, sends) in [(TransportError::Closed, 1), (unsent, 2)] {
            let mut number = 0;
            let transport = Transport::choose(move |_| {
                number += 1;
                let failure = if number == 700 { the_700th } else { unsent };
                fail(reqwest_middleware::Error::middleware(failure))
            });
            let of_its_words = |error: &reqwest_middleware::Error| match error {
                reqwest_middleware::Error::Middleware(error) => error.downcast_ref().copied(),
                reqwest_middleware::Error::Reqwest(_) => None,
            };
            let rule = |max_retries| {
                let rule = tireless(max_retries).rule().clone();
                let rule = RetryRule {
                    sent_failures: Methods::Any,
                    unsent_failures: true,
                    ..rule
                };
                let policy = RetryPolicy::from(rule).no_budget();
                policy.classify_with(of_its_words)
            };
            let outer = RetryRule {
                sent_failures: Methods::Idempotent,
                ..rule(1).rule().clone()
            };
            let outer = RetryPolicy::from(outer).classify_with(of_its_words);
            let nested = ClientBuilder::new(crate::support::client().build().unwrap())
                .with(RetryMiddleware::new(outer))
                .with(Forwards(client(&transport, rule(1999))))
                .build();
            nested.post(URL).send().await.unwrap_err();
            assert_eq!(transport.count(), sends * 2000, "{the_700th:?}");
        }
    }

    #[test]
    fn a_result_reads_as_a_person_would_say_it() {
        let shown = |result: AttemptResult| result.to_string();
        assert_eq!(shown(AttemptResult::Status(StatusCode::BAD_GATEWAY)), "502");
        assert_eq!(
            shown(AttemptResult::Failure(TransportError::Timeout)),
            "no response came in time"
        );
        assert_eq!(
            shown(AttemptResult::Error),
            "an error that is no transport failure"
        );
    }
}

mod where_it_is_found {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn in_the_response_and_in_the_requests_map_after_a_retry() {
        let mut map = Extensions::new();
        let transport = Transport::new([status(503), ok()]);
        let response = get_in(&mut map, &transport).await.unwrap();
        assert_eq!(response.attempts(), 2);
        assert_eq!(response.retry_report(), map.get());
        assert_eq!(map.len(), 1, "more than the report was left");
    }

    #[tokio::test(start_paused = true)]
    async fn nowhere_after_an_answer_at_once() {
        for answer in [ok(), status(404)] {
            let mut map = Extensions::new();
            let response = get_in(&mut map, &Transport::new([answer])).await.unwrap();
            assert_eq!(response.attempts(), 1);
            assert_eq!(response.retry_report(), None);
            assert!(map.is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn in_the_response_where_a_refusal_was_not_retried() {
        let transport = Transport::new([status(503)]);
        // A POST could be retried, but not for this.
        let rule = RetryRule {
            unsent_failures: true,
            ..rule()
        };
        let response = client(&transport, rule).post(URL).send().await.unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(report.stop_reason(), Some(StopReason::MethodNotAllowed));
        assert_eq!(response.attempts(), 1);
    }

    /// The twin, unless the caller holds a log.
    #[tokio::test(start_paused = true)]
    async fn nowhere_where_no_retry_was_possible() {
        let transport = Transport::new([status(503), status(503)]);
        let client = client(&transport, rule());
        let mut map = Extensions::new();
        let posted = client.execute_with_extensions(request(Method::POST), &mut map);
        let response = posted.await.unwrap();
        assert!(response.retry_report().is_none() && map.get::<RetryReport>().is_none());
        assert_eq!(response.attempts(), 1);

        let log = RetryLog::new();
        let response = client.post(URL).with_extension(log.clone()).send().await;
        let reason = Some(StopReason::MethodNotAllowed);
        assert_eq!(
            response.unwrap().retry_report().unwrap().stop_reason(),
            reason
        );
        assert_eq!(log.report().unwrap().stop_reason(), reason);
    }

    #[tokio::test(start_paused = true)]
    async fn in_the_requests_map_after_an_error() {
        let mut map = Extensions::new();
        let transport = Transport::new(times(4, || fail(errors::refused())));
        get_in(&mut map, &transport).await.unwrap_err();
        let report: &RetryReport = map.get().unwrap();
        assert_eq!(report.attempts(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_map_that_is_used_again_it_is_that_of_the_last_send() {
        let mut map = Extensions::new();
        let transport = Transport::new([status(503), ok(), ok(), status(503), status(503), ok()]);
        get_in(&mut map, &transport).await.unwrap();
        assert_eq!(map.get::<RetryReport>().unwrap().attempts(), 2);
        get_in(&mut map, &transport).await.unwrap();
        assert_eq!(map.get::<RetryReport>(), None);
        get_in(&mut map, &transport).await.unwrap();
        assert_eq!(map.get::<RetryReport>().unwrap().attempts(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn nowhere_where_the_send_was_dropped() {
        let mut map = Extensions::new();
        let log = RetryLog::new();
        map.insert(log.clone());
        let transport = Transport::new([status(503), hang()]);
        let sent = get_in(&mut map, &transport);
        assert!(tokio::time::timeout(ms(1000), sent).await.is_err());
        assert_eq!(transport.count(), 2);
        assert_eq!(log.report(), None);
        assert_eq!(map.get::<RetryReport>(), None);
        assert_eq!(map.get::<ResendCount>(), None);
        assert_eq!(map.len(), 1);
    }
}

mod logs {
    use super::*;

    fn with<'a>(log: &'a RetryLog) -> impl FnOnce(&mut Extensions) + use<'a> {
        |own| own.extend(carrying(log.clone()))
    }

    async fn get_noting(transport: &Transport, log: &RetryLog) -> Result<Response> {
        let mut request = client(transport, rule()).get(URL);
        with(log)(request.extensions());
        request.send().await
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_empty_until_a_send_has_ended() {
        let log = RetryLog::new();
        assert_eq!(log.report(), None);
        assert_eq!(RetryLog::default().report(), None);
        get_noting(&Transport::new([ok()]), &log).await.unwrap();
        let report = log.report().unwrap();
        assert_eq!((report.attempts(), report.stop_reason()), (1, None));
    }

    #[tokio::test(start_paused = true)]
    async fn one_holds_what_there_is_no_response_to_read_from() {
        let log = RetryLog::new();
        let transport = Transport::new(times(4, || fail(errors::refused())));
        assert!(get_noting(&transport, &log).await.is_err());
        let report = log.report().unwrap();
        assert_eq!(
            (report.attempts(), report.stop_reason()),
            (4, Some(StopReason::Exhausted))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_holds_the_last_of_several_sends() {
        let log = RetryLog::new();
        let transport = Transport::new([status(503), status(503), ok(), ok()]);
        get_noting(&transport, &log).await.unwrap();
        assert_eq!(log.report().unwrap().attempts(), 3);
        get_noting(&transport, &log).await.unwrap();
        assert_eq!(log.report().unwrap().attempts(), 1);
    }

    /// Such a request never reaches the middleware.
    #[tokio::test(start_paused = true)]
    async fn one_stays_empty_if_the_request_could_not_be_built() {
        let log = RetryLog::new();
        let client = client(&Transport::new([]), rule());
        let request = client.get("no URL").with_extension(log.clone());
        request.send().await.unwrap_err();
        assert_eq!(log.report(), None);
        // The twin: one that is built and cannot be sent does.
        let transport = Transport::new([fail(errors::builder())]);
        get_noting(&transport, &log).await.unwrap_err();
        assert_eq!(log.report().unwrap().attempts(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_filled_even_if_nothing_could_be_retried() {
        let log = RetryLog::new();
        let transport = Transport::new([status(503)]);
        let mut request = client(&transport, RetryRule::never()).get(URL);
        with(&log)(request.extensions());
        request.send().await.unwrap();
        assert_eq!(log.report().unwrap().attempts(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_filled_if_no_first_body_was_made() {
        let log = RetryLog::new();
        let source = BodySource::new(|| Err::<&str, _>(std::io::Error::other("no file")));
        let transport = Transport::new([]);
        let sent = client(&transport, rule())
            .put(URL)
            .with_extension(source)
            .with_extension(log.clone());
        let error = sent.send().await.unwrap_err();
        let reqwest_middleware::Error::Middleware(error) = error else {
            panic!("not ours: {error:?}");
        };
        let RetryError::BodySource { source, .. } = error.downcast_ref().unwrap() else {
            panic!("another error: {error:?}");
        };
        assert_eq!(source.to_string(), "no file");
        let report = log.report().unwrap();
        assert_eq!(report.attempts(), 0);
        assert_eq!(report.stop_reason(), Some(StopReason::NotReplayable));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_from_a_cloned_request_is_the_same() {
        let log = RetryLog::new();
        let transport = Transport::new([status(503), ok()]);
        let mut request = client(&transport, rule()).get(URL);
        with(&log)(request.extensions());
        request.try_clone().unwrap().send().await.unwrap();
        assert_eq!(log.report().unwrap().attempts(), 2);
    }
}

mod reasons {
    use super::*;

    fn limited(limits: Limits) -> RetryRule {
        RetryRule { limits, ..rule() }
    }

    fn total(milliseconds: u64) -> RetryPolicy {
        RetryPolicy::from(rule()).total_timeout(ms(milliseconds))
    }

    #[track_caller]
    fn assert_reason(report: &RetryReport, reason: StopReason, exhausted: bool) {
        assert_eq!(report.stop_reason(), Some(reason));
        assert_eq!(report.retries_exhausted(), exhausted, "{reason:?}");
        assert_eq!(reason.retries_exhausted(), exhausted);
    }

    #[tokio::test(start_paused = true)]
    async fn all_retries_were_made() {
        let transport = Transport::new(times(4, || status(503)));
        let report = get(&transport, rule()).await.1;
        assert_reason(&report, StopReason::Exhausted, true);
    }

    #[tokio::test(start_paused = true)]
    async fn the_request_cannot_be_sent_again() {
        let transport = Transport::new([status(503)]);
        let streaming = |client: reqwest_middleware::ClientWithMiddleware| {
            let pieces = stream::iter([Ok::<_, std::io::Error>("piece")]);
            client.put(URL).body(Body::wrap_stream(pieces))
        };
        let report = send(&transport, rule(), streaming).await.1;
        assert_reason(&report, StopReason::NotReplayable, false);
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_said_no() {
        let header = HeaderName::from_static("x-should-retry");
        let rule = RetryRule {
            override_header: Some(header),
            ..rule()
        };
        let transport = Transport::new([status(503).header("x-should-retry", "false")]);
        let report = get(&transport, rule).await.1;
        assert_reason(&report, StopReason::ServerSaidNo, false);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rule_retries_nothing_of_the_kind() {
        let transport = Transport::new([fail(errors::builder())]);
        let report = get(&transport, rule()).await.1;
        assert_reason(&report, StopReason::NotRetryable, false);
    }

    #[tokio::test(start_paused = true)]
    async fn the_method_is_another() {
        let transport = Transport::new([status(503)]);
        let report = send(&transport, rule(), |client| client.post(URL)).await.1;
        assert_reason(&report, StopReason::MethodNotAllowed, false);
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_asks_for_too_much() {
        let transport = Transport::new([status(503).header("retry-after", "61")]);
        let report = get(&transport, rule()).await.1;
        assert_reason(&report, StopReason::RetryAfterTooLong(ms(61_000)), true);
    }

    #[tokio::test(start_paused = true)]
    async fn the_hard_limit_is_met() {
        let hard_elapsed = Some(ms(100));
        let transport = Transport::new([status(503)]);
        let limits = Limits {
            hard_elapsed,
            ..Limits::default()
        };
        let report = get(&transport, limited(limits)).await.1;
        assert_reason(&report, StopReason::HardLimit(ms(100)), true);
    }

    #[tokio::test(start_paused = true)]
    async fn the_soft_limit_has_passed() {
        let soft_elapsed = Some(ms(100));
        let transport = Transport::new([status(503).after(101)]);
        let limits = Limits {
            soft_elapsed,
            ..Limits::default()
        };
        let report = get(&transport, limited(limits)).await.1;
        assert_reason(&report, StopReason::SoftLimit, true);
    }

    #[tokio::test(start_paused = true)]
    async fn too_little_time_is_left() {
        let report = get(&Transport::new([status(503)]), total(100)).await.1;
        assert_reason(&report, StopReason::Budget(ms(100)), true);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_timeout_ran_out() {
        let report = get(&Transport::new([hang()]), total(100)).await.1;
        assert_reason(&report, StopReason::TotalTimeout, true);
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_too_many_retries_already() {
        let budget = RetryBudget::new(BudgetTerms {
            window: Duration::from_secs(10),
            reserve_per_second: 0,
            ratio: 0,
        })
        .unwrap();
        let policy = RetryPolicy::from(rule()).budget(budget);
        let report = get(&Transport::new([status(503)]), policy).await.1;
        assert_reason(&report, StopReason::Throttled, false);
    }
}

mod retry_after {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[track_caller]
    fn assert_read(headers: &[(&str, &str)], now: Option<SystemTime>, expected: Option<Duration>) {
        for status in [200, 204, 301, 404, 418, 429, 503, 599] {
            let mut response = http::Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            let response = Response::from(response.body("").unwrap());
            assert_eq!(response.retry_after(now), expected, "{status} {headers:?}");
        }
    }

    #[test]
    fn it_is_read_from_any_response() {
        assert_read(&[("retry-after", "7")], None, Some(ms(7000)));
        assert_read(&[("retry-after-ms", "250")], None, Some(ms(250)));
        assert_read(
            &[("retry-after-ms", "250"), ("retry-after", "7")],
            None,
            Some(ms(250)),
        );
        assert_read(
            &[("retry-after-ms", "1m"), ("retry-after", "7")],
            None,
            Some(ms(7000)),
        );
    }

    #[test]
    fn what_does_not_read_is_absent() {
        assert_read(&[], None, None);
        for nonsense in ["", "soon", "-1", "1m0s", "0x10", "1e3", "+1"] {
            assert_read(&[("retry-after", nonsense)], Some(at(0)), None);
        }
    }

    #[test]
    fn a_date_needs_the_time_of_day() {
        let date = [("retry-after", "Thu, 01 Jan 1970 00:10:00 GMT")];
        assert_read(&date, Some(at(590)), Some(ms(10_000)));
        assert_read(&date, Some(at(900)), Some(ms(0)));
        assert_read(&date, None, None);
    }

    #[test]
    fn a_date_is_measured_against_the_servers_own_if_there_is_one() {
        let date = ("retry-after", "Thu, 01 Jan 1970 00:10:00 GMT");
        let headers = [date, ("date", "Thu, 01 Jan 1970 00:09:57 GMT")];
        assert_read(&headers, Some(at(0)), Some(ms(3000)));
        assert_read(&headers, None, Some(ms(3000)));
        let unreadable = [date, ("date", "yesterday")];
        assert_read(&unreadable, Some(at(590)), Some(ms(10_000)));
        assert_read(&unreadable, None, None);
    }
}

mod resends {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_retry_carries_how_often_the_request_was_sent_before() {
        let mut map = Extensions::new();
        let transport = Transport::new([status(503), fail(errors::refused()), status(503), ok()]);
        get_in(&mut map, &transport).await.unwrap();
        let counts: Vec<_> = transport.seen().iter().map(|seen| seen.resent).collect();
        let expected = [None, Some(1), Some(2), Some(3)];
        assert_eq!(counts, expected.map(|count| count.map(ResendCount)));
        assert_eq!(map.get::<ResendCount>(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_that_is_given_up_leaves_no_count_behind() {
        let mut map = Extensions::new();
        let transport = Transport::new(times(4, || status(503)));
        get_in(&mut map, &transport).await.unwrap();
        assert_eq!(map.get::<ResendCount>(), None);
        let transport = Transport::new(times(4, || fail(errors::refused())));
        get_in(&mut map, &transport).await.unwrap_err();
        assert_eq!(map.get::<ResendCount>(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_that_the_caller_put_there_is_given_back() {
        let mut map = carrying(ResendCount(7));
        let transport = Transport::new([status(503), ok()]);
        get_in(&mut map, &transport).await.unwrap();
        assert_eq!(transport.seen()[1].resent, Some(ResendCount(1)));
        assert_eq!(map.get(), Some(&ResendCount(7)));
    }
}

mod observers {
    use super::*;

    /// All that an observer can read of an event, without the times.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Seen {
        Retry {
            method: Method,
            host: Option<String>,
            label: Option<String>,
            elapsed: Duration,
            retry: u32,
            result: AttemptResult,
            wait: Duration,
            source: WaitSource,
        },
        Recovered {
            method: Method,
            host: Option<String>,
            label: Option<String>,
            elapsed: Duration,
            attempts: u32,
            status: u16,
        },
        Stop {
            method: Method,
            host: Option<String>,
            label: Option<String>,
            elapsed: Duration,
            attempts: u32,
            result: Option<AttemptResult>,
            reason: StopReason,
        },
    }

    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<Vec<Seen>>>);

    impl Notes {
        fn all(&self) -> Vec<Seen> {
            self.0.lock().unwrap().clone()
        }

        fn stops(&self) -> Vec<StopReason> {
            let stops = self.all().into_iter().filter_map(|event| match event {
                Seen::Stop { reason, .. } => Some(reason),
                Seen::Retry { .. } | Seen::Recovered { .. } => None,
            });
            stops.collect()
        }
    }

    impl RetryObserver for Notes {
        fn on_retry(&self, event: &RetryEvent<'_>) {
            self.0.lock().unwrap().push(Seen::Retry {
                method: event.method().clone(),
                host: event.host().map(str::to_owned),
                label: event.label().map(ToString::to_string),
                elapsed: event.elapsed(),
                retry: event.retry(),
                result: event.result(),
                wait: event.wait(),
                source: event.wait_source(),
            });
        }

        fn on_recovered(&self, event: &RecoveredEvent<'_>) {
            self.0.lock().unwrap().push(Seen::Recovered {
                method: event.method().clone(),
                host: event.host().map(str::to_owned),
                label: event.label().map(ToString::to_string),
                elapsed: event.elapsed(),
                attempts: event.attempts(),
                status: event.status().as_u16(),
            });
        }

        fn on_stop(&self, event: &StopEvent<'_>) {
            self.0.lock().unwrap().push(Seen::Stop {
                method: event.method().clone(),
                host: event.host().map(str::to_owned),
                label: event.label().map(ToString::to_string),
                elapsed: event.elapsed(),
                attempts: event.attempts(),
                result: event.result(),
                reason: event.reason(),
            });
        }
    }

    /// Sends a GET, and gives back the events.
    async fn events(transport: &Transport, policy: impl Into<RetryPolicy>) -> Notes {
        let notes = Notes::default();
        let policy = policy.into().observer(notes.clone());
        let _ = client(transport, policy)
            .get(URL)
            .with_extension(RetryLabel::from("mine"))
            .send()
            .await;
        notes
    }

    #[tokio::test(start_paused = true)]
    async fn every_retry_and_the_stop_come_with_all_that_is_known() {
        let transport = Transport::new([
            status(503).header("retry-after", "1").after(10),
            fail(errors::refused()).after(20),
            fail(errors::closed()),
        ]);
        let rule = RetryRule {
            max_retries: 2,
            ..rule()
        };
        let (method, host) = (Method::GET, Some("origin.test".to_owned()));
        let label = Some("mine".to_owned());
        assert_eq!(
            events(&transport, rule).await.all(),
            [
                Seen::Retry {
                    method: method.clone(),
                    host: host.clone(),
                    label: label.clone(),
                    elapsed: ms(10),
                    retry: 1,
                    result: AttemptResult::Status(StatusCode::SERVICE_UNAVAILABLE),
                    wait: ms(1000),
                    source: WaitSource::Server,
                },
                Seen::Retry {
                    method: method.clone(),
                    host: host.clone(),
                    label: label.clone(),
                    elapsed: ms(1030),
                    retry: 2,
                    result: AttemptResult::Failure(TransportError::Connect),
                    wait: ms(200),
                    source: WaitSource::Backoff,
                },
                Seen::Stop {
                    method,
                    host,
                    label,
                    elapsed: ms(1230),
                    attempts: 3,
                    result: Some(AttemptResult::Failure(TransportError::Closed)),
                    reason: StopReason::Exhausted,
                },
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_comes_once_however_the_send_is_given_up() {
        let total = || RetryPolicy::from(rule()).total_timeout(ms(500));
        let cases = [
            (
                fail(errors::builder()),
                RetryPolicy::from(rule()),
                StopReason::NotRetryable,
            ),
            (
                status(503).header("retry-after", "90"),
                RetryPolicy::from(rule()),
                StopReason::RetryAfterTooLong(ms(90_000)),
            ),
            (status(503).after(400), total(), StopReason::Budget(ms(100))),
            (hang(), total(), StopReason::TotalTimeout),
        ];
        for (act, policy, reason) in cases {
            assert_eq!(
                events(&Transport::new([act]), policy).await.stops(),
                [reason]
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_that_never_began_has_no_result() {
        let policy = RetryPolicy::from(rule()).total_timeout(ms(0));
        let notes = events(&Transport::new([]), policy).await;
        let [
            Seen::Stop {
                attempts,
                result,
                reason,
                ..
            },
        ] = &notes.all()[..]
        else {
            panic!("{:?}", notes.all());
        };
        assert_eq!(
            (*attempts, *result, *reason),
            (0, None, StopReason::TotalTimeout)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_no_stop() {
        for answer in [ok(), status(404), status(500)] {
            assert_eq!(events(&Transport::new([answer]), rule()).await.all(), []);
        }
        for answer in [ok(), status(404)] {
            let notes = events(&Transport::new([status(503), answer]), rule()).await;
            // A retry and a recovery.
            assert_eq!((notes.all().len(), notes.stops()), (2, vec![]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_recovery_comes_once_with_all_that_is_known() {
        for (answer, code) in [(ok(), 200), (status(404), 404), (status(500), 500)] {
            let transport = Transport::new([
                status(503).after(10),
                fail(errors::closed()),
                answer.after(5),
            ]);
            let events = events(&transport, rule()).await.all();
            assert_eq!(events.len(), 3, "{events:?}");
            assert_eq!(
                events[2],
                Seen::Recovered {
                    method: Method::GET,
                    host: Some("origin.test".to_owned()),
                    label: Some("mine".to_owned()),
                    elapsed: ms(10 + 100 + 200 + 5),
                    attempts: 3,
                    status: code,
                }
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_at_once_and_a_send_that_is_given_up_are_no_recovery() {
        let is_recovery = |event: &Seen| matches!(event, Seen::Recovered { .. });
        let transports = [
            Transport::new([ok()]),
            Transport::new([status(503), fail(errors::builder())]),
            Transport::new(times(4, || status(503))),
        ];
        for transport in transports {
            let events = events(&transport, rule()).await.all();
            assert!(!events.iter().any(is_recovery), "{events:?}");
        }
        // With a log, an answer at once has a report, and was no recovery for that.
        let notes = Notes::default();
        let policy = RetryPolicy::from(rule()).observer(notes.clone());
        let request = client(&Transport::new([ok()]), policy).get(URL);
        let sent = request.with_extension(RetryLog::new()).send().await;
        assert_status(&sent, 200);
        assert_eq!(notes.all(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_that_comes_too_late_is_followed_by_the_stop() {
        let transport = Transport::new([status(503)]);
        let policy = RetryPolicy::from(rule()).total_timeout(ms(10_000));
        let jump = async {
            tokio::task::yield_now().await;
            tokio::time::advance(ms(10_000)).await;
        };
        let (notes, ()) = tokio::join!(events(&transport, policy), jump);
        assert_eq!(
            (notes.all().len(), notes.stops()),
            (2, vec![StopReason::Budget(ms(100))])
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_that_was_dropped_is_no_stop() {
        let notes = Notes::default();
        let transport = Transport::new([status(503)]);
        let client = client(
            &transport,
            RetryPolicy::from(rule()).observer(notes.clone()),
        );
        let mut sent = Box::pin(client.get(URL).send());
        let mut context = Context::from_waker(Waker::noop());
        assert!(sent.as_mut().poll(&mut context).is_pending());
        drop(sent);
        assert_eq!((notes.all().len(), notes.stops()), (1, vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_begins_after_all_observers_were_called() {
        // A slow one holds up its own send, and the wait is not shorter for it.
        struct Slow;
        impl RetryObserver for Slow {
            fn on_retry(&self, _: &RetryEvent<'_>) {
                std::thread::sleep(ms(5));
            }
        }
        let transport = Transport::new([status(503), ok()]);
        let policy = RetryPolicy::from(rule()).observer(Slow);
        assert_status(&get(&transport, policy).await.0, 200);
        assert_eq!(transport.times(), [0, 100]);
    }

    /// The hosts in the events of a POST, which the rule could not retry.
    async fn hosts_of_a_post(act: Act, extensions: Extensions) -> Vec<Option<String>> {
        let notes = Notes::default();
        let policy = RetryPolicy::from(rule()).observer(notes.clone());
        let mut post = client(&Transport::new([act]), policy).post(URL);
        *post.extensions() = extensions;
        let _ = post.send().await;
        let stops = notes.all().into_iter().map(|event| match event {
            Seen::Retry { .. } | Seen::Recovered { .. } => panic!("{event:?}"),
            Seen::Stop { host, .. } => host,
        });
        stops.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_host_that_was_asked_is_known_if_nothing_could_be_retried() {
        let asked = [Some("origin.test".to_owned())];
        for act in [
            fail(errors::builder()),
            fail(errors::refused()),
            status(503),
            status(503).answered_by("http://other.test/"),
        ] {
            assert_eq!(hosts_of_a_post(act, Extensions::new()).await, asked);
        }
        let second = carrying(TotalTimeout(ms(1000)));
        assert_eq!(hosts_of_a_post(hang(), second).await, asked);
    }
}

mod labels {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_names_the_call_in_its_report() {
        let transport = Transport::new([status(503), ok()]);
        let named = |own: &mut Extensions| own.extend(carrying(RetryLabel::from("mine")));
        let (_, report) = get_with(&transport, rule(), named).await;
        assert_eq!(report.label().map(RetryLabel::as_str), Some("mine"));
        let transport = Transport::new([status(503), ok()]);
        assert_eq!(get(&transport, rule()).await.1.label(), None);
    }

    #[test]
    fn one_is_its_text() {
        let label = RetryLabel::from(String::from("create-invoice"));
        assert_eq!(label, RetryLabel::from("create-invoice"));
        assert_eq!(
            (label.to_string().as_str(), label.as_str()),
            ("create-invoice", "create-invoice")
        );
    }
}
