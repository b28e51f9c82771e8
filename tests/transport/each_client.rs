//! The everyday faults, once for each kind of client: what is retried, what never is, and that the
//! error which comes back is the one that went in.

use std::io;
use std::time::Duration;

use futures_util::stream;
use h2::Reason;
use http::{Extensions, StatusCode};
use reqwest::Body;
use reqwest_retry_rules::AttemptResult::{Error, Failure, Status};
use reqwest_retry_rules::TransportError::*;
use reqwest_retry_rules::{
    AttemptResult, Backoff, BodySource, ErrorExt, Overrides, ReplaySafe, ResendCount, ResponseExt,
    RetryError, RetryPolicy, RetryReport, RetryRule, StopReason, TotalTimeout, TransportError,
    classify, client_builder, with_overrides, with_rule,
};

use crate::support;
use crate::support::clients::{ClientError, send, send_with, with_each_client};
use crate::support::h1::H1;
use crate::support::h2::{Act as Act2, H2};
use crate::support::hang::Hang;
use crate::support::refused::Refused;
use crate::support::script::{Act, Answer, Body as AnswerBody, End};
use crate::support::sends::{REFUSED_STREAM, Went, at_once};
use crate::support::tls::{self, Cert, Tls};

const OK: AttemptResult = Status(StatusCode::OK);
const UNAVAILABLE: AttemptResult = Status(StatusCode::SERVICE_UNAVAILABLE);

fn client() -> reqwest::Client {
    support::client().build().unwrap()
}

/// A client of this crate's builder, kept from what is around the test.
fn tracked() -> reqwest::Client {
    support::install_crypto();
    let builder = client_builder().no_proxy().tls_certs_only([]);
    builder.build().unwrap()
}

fn once(result: AttemptResult, reason: StopReason) -> Went {
    Went::stopped([result], reason)
}

fn thrice(result: AttemptResult) -> Went {
    Went::stopped([result; 3], StopReason::Exhausted)
}

with_each_client! {
    async fn a_get_is_sent_again_after_a_503_and_a_post_is_not<K>() {
        let server = H1::start(vec![Act::status(503), Act::ok("fine")]).await;
        let (outcome, went) = send::<K>(at_once(2), client().get(server.url("/"))).await;
        assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
        let response = outcome.unwrap();
        assert_eq!(response.attempts(), 2);
        assert_eq!(response.text().await.unwrap(), "fine");

        let server = H1::start(Act::status(503)).await;
        let request = client().post(server.url("/")).body("order");
        let (outcome, went) = send::<K>(at_once(2), request).await;
        assert_eq!(went, once(UNAVAILABLE, StopReason::MethodNotAllowed));
        assert_eq!(outcome.unwrap().text().await.unwrap(), "refused");
        assert_eq!(server.count(), 1);
    }

    async fn the_last_response_comes_back_with_its_report<K>() {
        let server = H1::start(Act::status(503)).await;
        let mut map = Extensions::new();
        let request = client().get(server.url("/"));
        let (outcome, went) = send_with::<K>(at_once(2), request, &mut map).await;
        assert_eq!(went, thrice(UNAVAILABLE));
        let response = outcome.unwrap();
        let report = map.get::<RetryReport>().unwrap();
        assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
        assert_eq!(response.extensions().get::<RetryReport>().map(RetryReport::attempts), Some(3));
        assert!(map.get::<ResendCount>().is_none());
        assert_eq!(response.text().await.unwrap(), "refused");
    }

    async fn an_answer_and_a_status_that_no_row_has_come_back_at_once<K>() {
        for status in [200, 404] {
            let server = H1::start(Act::status(status)).await;
            let (outcome, went) = send::<K>(at_once(2), client().get(server.url("/"))).await;
            assert_eq!(went, Went::answered([Status(StatusCode::from_u16(status).unwrap())]));
            assert_eq!((outcome.unwrap().attempts(), server.count()), (1, 1));
        }
    }

    async fn a_server_is_given_the_time_that_it_asks_for<K>() {
        let asks = Answer::new(503).header("retry-after", "0.2");
        let server = H1::start(vec![asks.into(), Act::ok("")]).await;
        let rule = RetryRule { max_retries: 2, ..RetryRule::transient() };
        let started = std::time::Instant::now();
        let (outcome, went) = send::<K>(rule, client().get(server.url("/"))).await;
        assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
        assert!(started.elapsed() >= Duration::from_millis(200));
        assert!(outcome.is_ok());

        let server = H1::start(Answer::new(503).header("retry-after", "61")).await;
        let (outcome, went) = send::<K>(RetryRule::transient(), client().get(server.url("/"))).await;
        let reason = StopReason::RetryAfterTooLong(Duration::from_secs(61));
        assert_eq!(went, once(UNAVAILABLE, reason));
        assert_eq!(outcome.unwrap().status(), 503);
    }

    async fn a_refused_connection_is_tried_again_for_every_method_and_its_error_comes_back<K>() {
        let nobody = Refused::new();
        for request in [client().get(nobody.url("/")), client().post(nobody.url("/")).body("order")] {
            let (outcome, went) = send::<K>(at_once(2), request).await;
            assert_eq!(went, thrice(Failure(Connect)));
            let error = outcome.unwrap_err();
            assert!(error.is_connect() && !error.is_timeout() && !error.timed_out());
            assert!(error.retry_error().is_none());
            let own = error.reqwest().expect("reqwest's own, not wrapped");
            assert_eq!(own.url().map(reqwest::Url::as_str), Some(nobody.url("/").as_str()));
            assert_eq!(classify(&error), Some(Connect));
        }
    }

    /// The twin.
    async fn nor_is_it_for_a_post_if_the_rule_says_nothing_of_unsent_requests<K>() {
        let nobody = Refused::new();
        let rule = RetryRule { unsent_failures: false, ..at_once(2) };
        let request = client().post(nobody.url("/")).body("order");
        let (outcome, went) = send::<K>(rule, request).await;
        assert_eq!(went, once(Failure(Connect), StopReason::MethodNotAllowed));
        assert!(outcome.unwrap_err().is_connect());
    }

    async fn a_lost_answer_is_asked_for_again_by_a_get_only<K>() {
        for act in [
            Act::CloseAfterReading,
            Act::ResetAfterReading,
            Act::half_head(End::Close),
        ] {
            let server = H1::start(vec![act.clone(), Act::ok("fine")]).await;
            let (outcome, went) = send::<K>(at_once(2), client().get(server.url("/"))).await;
            assert_eq!(went, Went::answered([Failure(Closed), OK]), "{act:?}");
            assert_eq!(outcome.unwrap().text().await.unwrap(), "fine");

            let server = H1::start(act.clone()).await;
            let request = client().post(server.url("/")).body("order");
            let (outcome, went) = send::<K>(at_once(2), request).await;
            assert_eq!(went, once(Failure(Closed), StopReason::MethodNotAllowed), "{act:?}");
            assert!(outcome.unwrap_err().reqwest().unwrap().is_request());
            assert_eq!(server.count(), 1);
        }
    }

    async fn a_timeout_is_one_still_when_it_comes_back<K>() {
        let server = H1::start(Act::Silence).await;
        let short = Duration::from_millis(50);
        let request = client().get(server.url("/")).timeout(short);
        let (outcome, went) = send::<K>(at_once(2), request).await;
        assert_eq!(went, thrice(Failure(Timeout)));
        let error = outcome.unwrap_err();
        assert!(error.is_timeout() && error.timed_out() && !error.is_connect());

        let request = client().post(server.url("/")).timeout(short).body("order");
        let (outcome, went) = send::<K>(at_once(2), request).await;
        assert_eq!(went, once(Failure(Timeout), StopReason::MethodNotAllowed));
        assert!(outcome.unwrap_err().is_timeout());
        assert_eq!(server.count(), 4);
    }

    async fn no_connection_in_time_proves_that_nothing_was_sent<K>() {
        let hang = Hang::start().await;
        let client = support::client().connect_timeout(Duration::from_millis(50)).build().unwrap();
        let (outcome, went) = send::<K>(at_once(1), client.post(hang.url("/")).body("order")).await;
        assert_eq!(went, Went::stopped([Failure(ConnectTimeout); 2], StopReason::Exhausted));
        let error = outcome.unwrap_err();
        assert!(error.is_timeout() && error.is_connect());
    }

    async fn a_bad_certificate_is_never_tried_again<K>() {
        let server = H1::start_tls(Tls::new(Cert::Expired).acceptor(), Act::ok("")).await;
        let client = tls::trusting().build().unwrap();
        let (outcome, went) = send::<K>(at_once(2), client.get(server.url("/"))).await;
        if cfg!(feature = "rustls") {
            assert_eq!(went, once(Failure(Certificate), StopReason::NotRetryable));
        } else {
            assert_eq!(went, thrice(Failure(TransportError::Tls)));
        }
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(server.count(), 0);
    }

    async fn a_stream_that_the_server_refused_is_sent_again<K>() {
        let refuses = || Act2::Reset(Reason::REFUSED_STREAM);
        let server = H2::start(vec![refuses(), Act2::ok("fine")]).await;
        let client = support::client().http2_prior_knowledge().build().unwrap();
        let (_, went) = send::<K>(at_once(2), client.get(server.url("/"))).await;
        assert_eq!(went, Went::answered([Failure(REFUSED_STREAM), OK]));
    }

    async fn a_request_that_cannot_be_made_fails_as_it_does_without_retries<K>() {
        let request = client().get("ftp://127.0.0.1/");
        let (outcome, went) = send::<K>(at_once(2), request).await;
        assert_eq!(went, once(Error, StopReason::NotRetryable));
        let error = outcome.unwrap_err();
        assert!(error.is_builder());
        assert_eq!(classify(&error), None);
    }

    async fn a_post_that_was_redirected_to_a_port_that_refuses_is_sent_once<K>() {
        let nobody = Refused::new();
        let sends_on = Answer::new(303).header("location", &nobody.url("/next"));
        let server = H1::start(sends_on).await;
        let (outcome, went) = send::<K>(at_once(2), tracked().post(server.url("/"))).await;
        assert_eq!(went, once(Failure(AfterRedirect), StopReason::MethodNotAllowed));
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(server.count(), 1);
    }

    /// The twin, and what is risked with a client whose redirects are not tracked: nothing tells
    /// that the POST was answered.
    async fn a_client_whose_redirects_are_not_tracked_sends_it_again_as_the_docs_say<K>() {
        let nobody = Refused::new();
        let sends_on = Answer::new(303).header("location", &nobody.url("/next"));
        let server = H1::start(sends_on).await;
        let builder = support::client().redirect(reqwest::redirect::Policy::default());
        let untracked = builder.build().unwrap();
        let (_, went) = send::<K>(at_once(2), untracked.post(server.url("/"))).await;
        assert_eq!(went, thrice(Failure(Connect)));
        assert_eq!(server.count(), 3);

        // Without `unsent_failures` it is safe with any client.
        let server = H1::start(Answer::new(303).header("location", &nobody.url("/next"))).await;
        let rule = RetryRule { unsent_failures: false, ..at_once(2) };
        let (_, went) = send::<K>(rule, untracked.post(server.url("/"))).await;
        assert_eq!(went, once(Failure(Connect), StopReason::MethodNotAllowed));
        assert_eq!(server.count(), 1);
    }

    async fn an_idempotency_key_or_a_word_of_the_caller_lets_a_post_go_again<K>() {
        let key = http::HeaderName::from_static("idempotency-key");
        let server = H1::start(vec![Act::CloseAfterReading, Act::ok("")]).await;
        let policy = RetryPolicy::from(at_once(2)).idempotency_key(key.clone());
        let (_, went) = send::<K>(policy, client().post(server.url("/")).body("order")).await;
        assert_eq!(went, Went::answered([Failure(Closed), OK]));
        let keys: Vec<_> = server.requests().iter().map(|seen| seen.headers[&key].clone()).collect();
        assert_eq!(keys[0], keys[1]);

        let server = H1::start(vec![Act::CloseAfterReading, Act::ok("")]).await;
        let mut map = Extensions::new();
        map.insert(ReplaySafe(true));
        let request = client().post(server.url("/")).body("order");
        let (_, went) = send_with::<K>(at_once(2), request, &mut map).await;
        assert_eq!(went, Went::answered([Failure(Closed), OK]));
    }

    async fn a_stream_of_which_nothing_was_read_goes_again_and_one_that_was_read_does_not<K>() {
        let body = || Body::wrap_stream(stream::iter(["one"].map(Ok::<_, io::Error>)));
        let nobody = Refused::new();
        let (_, went) = send::<K>(at_once(2), client().put(nobody.url("/")).body(body())).await;
        assert_eq!(went, thrice(Failure(Connect)));

        let server = H1::start(Act::status(503)).await;
        let (_, went) = send::<K>(at_once(2), client().put(server.url("/")).body(body())).await;
        assert_eq!(went, once(UNAVAILABLE, StopReason::NotReplayable));
    }

    async fn a_body_source_makes_a_body_for_each_attempt<K>() {
        let server = H1::start(vec![Act::status(503), Act::ok("")]).await;
        let mut map = Extensions::new();
        map.insert(BodySource::new(|| Ok::<_, io::Error>("made anew")));
        let request = client().put(server.url("/"));
        let (_, went) = send_with::<K>(at_once(2), request, &mut map).await;
        assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
        let bodies: Vec<_> = server.requests().iter().map(|seen| seen.body.clone()).collect();
        assert_eq!(bodies, ["made anew", "made anew"]);

        // One that fails is an error of this crate's own.
        let mut map = Extensions::new();
        map.insert(BodySource::new(|| Err::<&str, _>(io::Error::other("no file"))));
        let request = client().put(server.url("/"));
        let (outcome, _) = send_with::<K>(at_once(2), request, &mut map).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            error.retry_error().map(ToString::to_string).as_deref(),
            Some("the body source made no body")
        );
        assert!(!error.timed_out());
    }

    async fn overrides_count_in_the_map_and_in_the_task<K>() {
        let server = H1::start(Act::status(503)).await;
        let mut map = Extensions::new();
        map.insert(at_once(1));
        let (_, went) =
            send_with::<K>(RetryRule::never(), client().get(server.url("/")), &mut map).await;
        assert_eq!(went.results, [UNAVAILABLE; 2]);

        let sent = send::<K>(RetryRule::never(), client().get(server.url("/")));
        let (_, went) = with_rule(at_once(2), sent).await;
        assert_eq!(went, thrice(UNAVAILABLE));

        let overrides = Overrides::new().rule(at_once(1));
        let sent = send::<K>(RetryRule::never(), client().get(server.url("/")));
        let (_, went) = with_overrides(overrides, sent).await;
        assert_eq!(went.results.len(), 2);
        assert_eq!(server.count(), 7);
    }

    async fn a_total_timeout_ends_an_attempt_and_says_so<K>() {
        let server = H1::start(vec![Act::CloseAfterReading, Act::Silence]).await;
        let mut map = Extensions::new();
        map.insert(TotalTimeout(Duration::from_millis(200)));
        let request = client().get(server.url("/"));
        let (outcome, went) = send_with::<K>(at_once(5), request, &mut map).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Closed), Failure(Timeout)], StopReason::TotalTimeout)
        );
        let error = outcome.unwrap_err();
        assert!(error.timed_out() && !error.is_timeout());
        assert!(matches!(
            error.of_middleware(),
            Some(RetryError::TotalTimeout { attempts: 2, last: Some(_), .. })
        ));
        assert_eq!(error.to_string(), "the total timeout ran out in attempt 2");
    }

    async fn a_work_is_done_again_if_the_body_of_its_answer_breaks_off<K>() {
        let short = || Answer::new(200).send(AnswerBody::Short(9, "half".into()));
        let server = H1::start(vec![short().into(), Act::status(503), Act::ok("whole")]).await;
        let policy = RetryPolicy::from(at_once(2));
        let work = async |_attempt| -> Result<String, K::Error> {
            let request = client().get(server.url("/")).build()?;
            let mut map = Extensions::new();
            let sent = K::execute(client(), policy.clone(), request, &mut map);
            Ok(sent.await?.error_for_status()?.text().await?)
        };
        assert_eq!(policy.run(work).await.unwrap(), "whole");
        assert_eq!(server.count(), 3);

        // The twin: a POST was processed.
        let server = H1::start(short()).await;
        let work = async |_attempt| -> Result<String, K::Error> {
            let request = client().post(server.url("/")).build()?;
            let mut map = Extensions::new();
            let sent = K::execute(client(), policy.clone(), request, &mut map);
            Ok(sent.await?.error_for_status()?.text().await?)
        };
        let error = policy.run(work).await.unwrap_err();
        assert!(error.reqwest().unwrap().is_decode());
        assert_eq!(server.count(), 1);
    }

    /// The error of a chain is not reqwest's own here.
    async fn a_work_whose_send_ran_out_of_time_is_done_again_as_a_timeout_is<K>() {
        let server = H1::start(Act::Silence).await;
        let work = async |_attempt| -> Result<(), K::Error> {
            let mut map = Extensions::new();
            map.insert(TotalTimeout(Duration::from_millis(100)));
            let request = client().get(server.url("/")).build()?;
            K::execute(client(), RetryPolicy::from(at_once(0)), request, &mut map).await?;
            Ok(())
        };
        let error = RetryPolicy::from(at_once(1)).run(work).await.unwrap_err();
        assert!(error.timed_out() && !error.is_timeout());
        assert_eq!(server.count(), 2);
    }

    async fn a_send_that_is_dropped_sends_no_more<K>() {
        let server = H1::start(Act::status(503)).await;
        let wait = Duration::from_millis(300);
        let rule = RetryRule {
            backoff: Backoff { base: wait, max: wait, ..Backoff::default() },
            ..at_once(9)
        };
        let sent = send::<K>(rule, client().get(server.url("/")));
        assert!(tokio::time::timeout(Duration::from_millis(150), sent).await.is_err());
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(server.count(), 1);
    }
}
