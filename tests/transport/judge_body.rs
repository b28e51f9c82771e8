//! Judges that look into bodies: what they see, what follows, and what comes back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, StatusCode};
use reqwest_retry_rules::AttemptResult::{Failure, Status};
use reqwest_retry_rules::TransportError::{Body as BrokenBody, Timeout};
use reqwest_retry_rules::{
    Judgement, Methods, ReplaySafe, ResponseExt, ResponseHead, RetryAfter, RetryAfterCap,
    RetryPolicy, RetryRule, StopReason, TotalTimeout, WaitSource,
};

use crate::support;
use crate::support::h1::H1;
use crate::support::h2::H2;
use crate::support::script::{Answer, Body, End};
use crate::support::sends::{Went, at_once, retrying, send};

const OK: StatusCode = StatusCode::OK;
const LIMIT: usize = 100;

const CREATED: StatusCode = StatusCode::CREATED;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The body says by a word what to do.
fn by_word(_: &ResponseHead<'_>, body: &[u8]) -> Judgement {
    match body {
        b"again" => Judgement::Retry,
        b"again in 30 ms" => Judgement::RetryAfter(ms(30)),
        b"again in an hour" => Judgement::RetryAfter(Duration::from_secs(3600)),
        b"never" => Judgement::Stop,
        _ => Judgement::ByRule,
    }
}

fn judging(methods: Methods) -> RetryPolicy {
    RetryPolicy::from(at_once(2)).judge_body(methods, LIMIT, by_word)
}

fn says(status: u16, word: &'static str) -> Answer {
    Answer::new(status).body(word)
}

#[tokio::test]
async fn a_success_that_says_again_is_retried() {
    for body in [
        Body::Whole("again".into()),
        Body::UntilClose("again".into()),
        Body::Chunked(vec!["ag".into(), "ain".into()], Vec::new()),
        Body::Slow(vec!["ag".into(), "ain".into()], ms(5)),
    ] {
        let again = Answer::new(200).send(body);
        let server = H1::start(vec![again, says(200, "done")]).await;
        let client = retrying(support::client(), judging(Methods::Idempotent));
        let (outcome, went) = send(client.get(server.url("/"))).await;
        assert_eq!(went, Went::answered([Status(OK), Status(OK)]));
        assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
        assert_eq!(server.count(), 2);
    }
}

#[tokio::test]
async fn a_success_that_says_nothing_is_the_answer() {
    let server = H1::start(says(200, "done")).await;
    let client = retrying(support::client(), judging(Methods::Idempotent));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([Status(OK)]));
    let answer = outcome.unwrap();
    assert_eq!(answer.remote_addr(), Some(server.addr));
    assert_eq!(answer.url().as_str(), server.url("/"));
    assert_eq!(answer.text().await.unwrap(), "done");
}

#[tokio::test]
async fn a_post_that_says_again_was_processed_and_comes_back_whole() {
    let server = H1::start(says(200, "again")).await;
    let client = retrying(support::client(), judging(Methods::Idempotent));
    let (outcome, went) = send(client.post(server.url("/"))).await;
    let expected = Went::stopped([Status(OK)], StopReason::MethodNotAllowed);
    assert_eq!(went, expected);
    assert_eq!(outcome.unwrap().text().await.unwrap(), "again");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_post_that_the_judge_or_the_caller_vouches_for_is_sent_again() {
    for (methods, vouched) in [
        (Methods::Any, false),
        (Methods::Listed(vec![Method::POST]), false),
        (Methods::Idempotent, true),
    ] {
        let server = H1::start(vec![says(200, "again"), says(200, "done")]).await;
        let client = retrying(support::client(), judging(methods));
        let mut request = client.post(server.url("/")).body("order");
        if vouched {
            request = request.with_extension(ReplaySafe(true));
        }
        let (outcome, went) = send(request).await;
        assert_eq!(went, Went::answered([Status(OK), Status(OK)]));
        assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
    }
}

/// A judge that wants it again, for other methods, does not keep a condition from allowing it.
#[tokio::test]
async fn a_post_that_a_condition_allows_is_sent_again_whatever_the_methods_of_the_judge() {
    let server = H1::start(vec![says(200, "again"), says(201, "done")]).await;
    let policy = judging(Methods::Idempotent).retry_if(Methods::Any, |head| head.status() == 200);
    let client = retrying(support::client(), policy);
    let (outcome, went) = send(client.post(server.url("/")).body("order")).await;
    assert_eq!(went, Went::answered([Status(OK), Status(CREATED)]));
    assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
}

#[tokio::test]
async fn where_the_retries_are_used_up_the_last_body_comes_back_whole() {
    let server = H1::start(says(200, "again")).await;
    let client = retrying(support::client(), judging(Methods::Idempotent));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    let expected = Went::stopped([Status(OK); 3], StopReason::Exhausted);
    assert_eq!(went, expected);
    assert_eq!(outcome.unwrap().text().await.unwrap(), "again");
    assert_eq!((server.count(), server.connections()), (3, 1));
}

#[tokio::test]
async fn a_wait_that_stands_in_the_body_is_waited_for() {
    for status in [200, 429, 404] {
        let server = H1::start(vec![says(status, "again in 30 ms"), says(200, "done")]).await;
        let client = retrying(support::client(), judging(Methods::Idempotent));
        let (outcome, _) = send(client.get(server.url("/"))).await;
        let answer = outcome.unwrap();
        let first = &answer.retry_report().unwrap().records()[0];
        assert_eq!(first.wait(), Some(ms(30)), "{status}");
        assert_eq!(first.wait_source(), Some(WaitSource::Server));
        assert_eq!(first.retry_after(), Some(ms(30)));
        assert_eq!(answer.text().await.unwrap(), "done");
    }
}

#[tokio::test]
async fn a_wait_in_the_body_is_capped_like_one_in_a_header() {
    let rule = RetryRule {
        retry_after: RetryAfter {
            cap: RetryAfterCap::StopAbove(Duration::from_secs(60)),
            ..RetryAfter::default()
        },
        ..at_once(2)
    };
    let policy = RetryPolicy::from(rule).judge_body(Methods::Idempotent, LIMIT, by_word);
    let server = H1::start(says(200, "again in an hour")).await;
    let (outcome, went) = send(retrying(support::client(), policy).get(server.url("/"))).await;
    let reason = StopReason::RetryAfterTooLong(Duration::from_secs(3600));
    assert_eq!(went, Went::stopped([Status(OK)], reason));
    assert_eq!(outcome.unwrap().text().await.unwrap(), "again in an hour");
}

#[tokio::test]
async fn a_refused_response_that_says_never_stops() {
    let server = H1::start(says(429, "never")).await;
    let client = retrying(support::client(), judging(Methods::Idempotent));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    let limited = Status(StatusCode::TOO_MANY_REQUESTS);
    let expected = Went::stopped([limited], StopReason::NotRetryable);
    assert_eq!(went, expected);
    assert_eq!(outcome.unwrap().text().await.unwrap(), "never");
    assert_eq!(server.count(), 1);

    // The twin.
    let server = H1::start(vec![says(429, "slow down"), says(200, "done")]).await;
    let (_, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([limited, Status(OK)]));
}

#[tokio::test]
async fn a_response_that_nothing_refuses_and_that_says_never_is_the_answer() {
    for status in [200, 404] {
        let server = H1::start(says(status, "never")).await;
        let client = retrying(support::client(), judging(Methods::Idempotent));
        let (outcome, went) = send(client.get(server.url("/"))).await;
        assert_eq!(went.stop, None, "{status}");
        assert_eq!(outcome.unwrap().text().await.unwrap(), "never");
        assert_eq!(server.count(), 1);
    }
}

/// A judge that fails the test if it is asked.
fn nobody_asks() -> RetryPolicy {
    let panics = |_: &ResponseHead<'_>, _: &[u8]| panic!("the judge was asked");
    RetryPolicy::from(at_once(2)).judge_body(Methods::Any, LIMIT, panics)
}

#[tokio::test]
async fn a_longer_body_streams_on_unjudged() {
    let piece = bytes::Bytes::from(vec![b'x'; 60]);
    for answer in [
        Answer::new(200).body(vec![b'x'; 120]),
        Answer::new(200).send(Body::Chunked(vec![piece.clone(); 2], Vec::new())),
        Answer::new(200).send(Body::Slow(vec![piece.clone(); 2], ms(5))),
    ] {
        let server = H1::start(answer).await;
        let client = retrying(support::client(), nobody_asks());
        let (outcome, went) = send(client.get(server.url("/"))).await;
        assert_eq!(went, Went::answered([Status(OK)]));
        assert_eq!(outcome.unwrap().bytes().await.unwrap(), vec![b'x'; 120]);
    }
}

#[tokio::test]
async fn a_stream_comes_as_it_is_sent_unjudged() {
    for (status, kind) in [
        (200, "text/event-stream"),
        (200, "application/x-ndjson"),
        (404, "application/grpc"),
    ] {
        let stalling = Answer::new(status)
            .header("content-type", kind)
            .send(Body::ShortChunks(vec!["one".into()]))
            .end(End::Stall);
        let server = H1::start(stalling).await;
        let client = retrying(support::client(), nobody_asks());
        let (outcome, went) = send(client.get(server.url("/"))).await;
        assert_eq!(went.stop, None);
        assert_eq!(outcome.unwrap().chunk().await.unwrap().unwrap(), "one");
    }
}

#[tokio::test]
async fn a_success_that_breaks_off_is_a_failure_unjudged() {
    let broken = Answer::new(200).send(Body::Short(50, "again".into()));
    let server = H1::start(broken.clone()).await;
    let client = retrying(support::client(), nobody_asks());
    let (outcome, went) = send(client.post(server.url("/"))).await;
    let expected = Went::stopped([Failure(BrokenBody)], StopReason::MethodNotAllowed);
    assert_eq!(went, expected);
    let mut answer = outcome.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "again");
    answer.chunk().await.unwrap_err();

    // The twin.
    let server = H1::start(vec![broken, says(200, "done")]).await;
    let client = retrying(support::client(), judging(Methods::Idempotent));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([Failure(BrokenBody), Status(OK)]));
    assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
}

#[tokio::test]
async fn another_status_that_breaks_off_is_left_to_the_rule() {
    let broken = |status| Answer::new(status).send(Body::Short(50, "again".into()));
    // Of a 404 the rule says nothing: it is the answer.
    let server = H1::start(broken(404)).await;
    let client = retrying(support::client(), nobody_asks());
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went.stop, None);
    let mut answer = outcome.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "again");
    answer.chunk().await.unwrap_err();

    // A 503 is retried as ever.
    let server = H1::start(vec![broken(503), says(200, "done")]).await;
    let client = retrying(support::client(), judging(Methods::Any));
    let (_, went) = send(client.get(server.url("/"))).await;
    let unavailable = Status(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(went, Went::answered([unavailable, Status(OK)]));
}

#[tokio::test]
async fn a_total_timeout_bounds_the_reading() {
    let stalling = Answer::new(200)
        .send(Body::Short(50, "again".into()))
        .end(End::Stall);
    let server = H1::start(stalling).await;
    let client = retrying(support::client(), nobody_asks());
    let request = client
        .get(server.url("/"))
        .with_extension(TotalTimeout(ms(400)));
    let (outcome, went) = send(request).await;
    outcome.unwrap_err();
    let expected = Went::stopped([Failure(Timeout)], StopReason::TotalTimeout);
    assert_eq!(went, expected);
}

#[tokio::test]
async fn over_http2_a_body_is_judged_too() {
    let server = H2::start(vec![says(200, "again"), says(200, "done")]).await;
    let client = support::client().http2_prior_knowledge();
    let client = retrying(client, judging(Methods::Idempotent));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([Status(OK), Status(OK)]));
    assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
}

#[tokio::test]
async fn a_body_that_the_judge_read_may_be_completed_beyond() {
    // 150 bytes: too long for the judge, not for the completing.
    let server = H1::start(vec![
        Answer::new(200).send(Body::ShortChunks(vec![vec![b'x'; 150].into()])),
        Answer::new(200).body(vec![b'y'; 150]),
    ])
    .await;
    let client = retrying(support::client(), nobody_asks().complete_body(1000));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([Failure(BrokenBody), Status(OK)]));
    assert_eq!(outcome.unwrap().bytes().await.unwrap(), vec![b'y'; 150]);
}

/// What a judge saw of each response.
type Seen = Arc<Mutex<Vec<(String, Method, u32, String)>>>;

#[tokio::test]
async fn the_judge_sees_the_request_and_the_retries() {
    let end = H1::start(vec![says(200, "again"), says(200, "")]).await;
    let start = H1::start(Answer::new(307).header("location", &end.url("/end"))).await;
    support::install_crypto();
    let client = reqwest_retry_rules::client_builder()
        .no_proxy()
        .tls_certs_only([]);
    let seen = Seen::default();
    let notes = seen.clone();
    let policy =
        RetryPolicy::from(at_once(2)).judge_body(Methods::Any, LIMIT, move |head, body| {
            let asked = format!("{} {}", head.request_url().path(), head.url().path());
            let body = String::from_utf8_lossy(body).into_owned();
            let note = (asked, head.method().clone(), head.retries(), body);
            notes.lock().unwrap().push(note);
            match head.retries() {
                0 => Judgement::Retry,
                _ => Judgement::ByRule,
            }
        });
    let client = retrying(client, policy);
    send(client.put(start.url("/start"))).await.0.unwrap();
    let note = |retries, body: &str| {
        let asked = "/start /end".to_owned();
        (asked, Method::PUT, retries, body.to_owned())
    };
    assert_eq!(*seen.lock().unwrap(), [note(0, "again"), note(1, "")]);
}
