//! Works over real sockets: bodies that break, redirects, several clients.

use std::future::Future;
use std::time::Duration;

use futures_util::future::join;
use http::{HeaderName, Method};
use reqwest::Response;
use reqwest_middleware::{ClientWithMiddleware, Error};
use reqwest_retry_rules::AttemptResult::{Failure, Status};
use reqwest_retry_rules::TransportError::{
    AfterRedirect, Body as BrokenBody, Closed, Connect, Timeout,
};
use reqwest_retry_rules::{
    AttemptResult, Overrides, ReplaySafe, RetryLog, RetryPolicy, RetryReport, RetryRule,
    StatusRule, StopReason, TransportError, client_builder, with_overrides,
};

use crate::support;
use crate::support::h1::H1;
use crate::support::h2::H2;
use crate::support::refused::Refused;
use crate::support::script::{Act, Answer, Body, End};
use crate::support::sends::{at_once, on_both_runtimes, retrying};

type Result<T> = std::result::Result<T, Error>;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A client that tracks redirects, kept from what is around the test.
fn client(policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    support::install_crypto();
    retrying(client_builder().no_proxy().tls_certs_only([]), policy)
}

fn unsent(retries: u32) -> RetryRule {
    RetryRule {
        unsent_failures: true,
        ..at_once(retries)
    }
}

/// Does a work of one request whose body is read, and tells what each call came to.
async fn works<F: Future<Output = Result<String>>>(
    policy: impl Into<RetryPolicy>,
    mut work: impl FnMut() -> F,
) -> (Result<String>, Vec<AttemptResult>, Option<StopReason>) {
    let (policy, log) = (policy.into(), RetryLog::new());
    let doing = policy.run(|_| work());
    let outcome = with_overrides(Overrides::new().log(log.clone()), doing).await;
    let report: RetryReport = log.report().unwrap();
    let results = report.records().iter().map(|record| record.result());
    (outcome, results.collect(), report.stop_reason())
}

async fn send(client: &ClientWithMiddleware, method: Method, url: &str) -> Result<Response> {
    Ok(client
        .request(method, url)
        .send()
        .await?
        .error_for_status()?)
}

async fn read(client: &ClientWithMiddleware, method: Method, url: &str) -> Result<String> {
    Ok(send(client, method, url).await?.text().await?)
}

const OK: AttemptResult = Status(http::StatusCode::OK);

fn broken() -> Vec<Answer> {
    let ok = || Answer::new(200);
    let mut broken = vec![ok().send(Body::BadChunk)];
    for end in [End::Close, End::Reset] {
        broken.push(ok().send(Body::Short(15, "one, ".into())).end(end));
        broken.push(ok().send(Body::ShortChunks(vec!["one, ".into()])).end(end));
    }
    broken
}

on_both_runtimes! {
    async fn a_body_that_breaks_off_is_read_again_whole() {
        for broken in broken() {
            let server = H1::start(vec![broken.clone(), broken.clone(), Answer::new(200).body("whole")]).await;
            let client = client(at_once(2));
            let url = server.url("/a?b");
            let (outcome, results, _) = works(at_once(2), async || read(&client, Method::GET, &url).await).await;
            assert_eq!(results, [Failure(BrokenBody), Failure(BrokenBody), OK], "{broken:?}");
            assert_eq!((outcome.unwrap(), server.count()), ("whole".to_owned(), 3));
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_after_a_post_is_not_read_again() {
    for broken in broken() {
        let server = H1::start(broken).await;
        let client = client(at_once(2));
        let url = server.url("/");
        let (_, results, stop) =
            works(unsent(2), async || read(&client, Method::POST, &url).await).await;
        assert_eq!(results, [Failure(BrokenBody)]);
        assert_eq!(
            (stop, server.count()),
            (Some(StopReason::MethodNotAllowed), 1)
        );
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_over_http2_is_read_again() {
    let again = Answer::new(200).send(Body::ShortChunks(vec!["one, ".into()]));
    let server = H2::start(vec![again, Answer::new(200).body("whole")]).await;
    let client = retrying(support::client().http2_prior_knowledge(), at_once(2));
    let url = server.url("/");
    let (outcome, results, _) =
        works(at_once(2), async || read(&client, Method::GET, &url).await).await;
    assert_eq!(results, [Failure(BrokenBody), OK]);
    assert_eq!(outcome.unwrap(), "whole");
}

#[tokio::test]
async fn a_json_body_that_breaks_off_is_read_again_and_one_that_is_no_json_is_not() {
    for (first, calls) in [
        (Answer::new(200).send(Body::Short(99, "[1, 2".into())), 2),
        (Answer::new(200).body("[1, 2"), 1),
    ] {
        let server = H1::start(vec![first, Answer::new(200).body("[1, 2]")]).await;
        let client = client(at_once(2));
        let url = server.url("/");
        let (_, results, _) = works(at_once(2), async || {
            let response = send(&client, Method::GET, &url).await?;
            let numbers: Vec<u32> = response.json().await?;
            Ok(format!("{numbers:?}"))
        })
        .await;
        assert_eq!((results.len(), server.count()), (calls, calls));
    }
}

#[tokio::test]
async fn a_compressed_body_that_is_cut_is_read_again() {
    use std::io::Write;

    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(&[b'x'; 5000]).unwrap();
    let whole = coder.finish().unwrap();
    let answer = |body: &[u8]| {
        let body = Body::UntilClose(body.to_vec().into());
        Answer::new(200)
            .header("content-encoding", "gzip")
            .send(body)
    };
    let cut = answer(&whole[..whole.len() - 9]);
    let server = H1::start(vec![cut, answer(&whole)]).await;
    let client = client(at_once(2));
    let url = server.url("/");
    let (outcome, results, _) =
        works(at_once(2), async || read(&client, Method::GET, &url).await).await;
    assert_eq!(results, [Failure(BrokenBody), OK]);
    assert_eq!(outcome.unwrap().len(), 5000);
}

#[tokio::test]
async fn a_body_that_is_too_slow_is_a_timeout() {
    let slow = Answer::new(200).body_later(ms(2000), "late");
    let server = H1::start(vec![slow, Answer::new(200).body("in time")]).await;
    let client = retrying(support::client().read_timeout(ms(200)), at_once(2));
    let url = server.url("/");
    let (outcome, results, _) =
        works(at_once(2), async || read(&client, Method::GET, &url).await).await;
    assert_eq!(results, [Failure(Timeout), OK]);
    assert_eq!(outcome.unwrap(), "in time");
}

#[tokio::test]
async fn a_body_that_the_policy_reads_ahead_is_the_sends_affair_first() {
    let short = Answer::new(200).send(Body::Short(15, "one, ".into()));
    let server = H1::start(vec![short.clone(), short.clone(), short]).await;
    let policy = RetryPolicy::from(at_once(2)).complete_body(1 << 20);
    let client = client(policy);
    let url = server.url("/");
    let (_, results, stop) =
        works(at_once(2), async || read(&client, Method::GET, &url).await).await;
    // The send makes both retries, and none is left for the work.
    assert_eq!(
        (results, stop),
        (vec![Failure(BrokenBody)], Some(StopReason::Exhausted))
    );
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn a_post_whose_body_was_read_ahead_and_broke_off_is_not_sent_again() {
    let server = H1::start(Answer::new(200).send(Body::Short(15, "one, ".into()))).await;
    let client = client(RetryPolicy::from(unsent(2)).complete_body(1 << 20));
    let url = server.url("/");
    let (_, _, stop) = works(unsent(2), async || read(&client, Method::POST, &url).await).await;
    assert_eq!(
        (stop, server.count()),
        (Some(StopReason::MethodNotAllowed), 1)
    );
}

#[tokio::test]
async fn a_post_that_was_answered_with_a_redirect_to_nowhere_is_not_sent_again() {
    let nowhere = Refused::new();
    for (method, sent) in [(Method::POST, 1), (Method::GET, 3)] {
        let redirect = Answer::new(303).header("location", &nowhere.url("/"));
        let server = H1::start(redirect).await;
        let client = client(RetryRule::never());
        let url = server.url("/");
        let (_, results, _) = works(unsent(2), async || {
            read(&client, method.clone(), &url).await
        })
        .await;
        assert_eq!(results[0], Failure(AfterRedirect));
        assert_eq!((results.len(), server.count()), (sent, sent));
    }
}

#[tokio::test]
async fn a_refusal_after_a_redirect_is_found_by_where_it_came_from() {
    for (method, calls) in [(Method::POST, 1), (Method::GET, 3)] {
        let busy = H1::start(Answer::new(503).header("retry-after-ms", "1")).await;
        let server = H1::start(Answer::new(303).header("location", &busy.url("/there"))).await;
        let client = client(RetryRule::never());
        let url = server.url("/");
        let rule = RetryRule {
            statuses: vec![StatusRule::new([503], reqwest_retry_rules::Methods::Any)],
            ..at_once(2)
        };
        let (_, results, _) = works(rule, async || read(&client, method.clone(), &url).await).await;
        assert_eq!((results.len(), server.count()), (calls, calls));
    }
}

#[tokio::test]
async fn a_post_that_found_nobody_is_sent_again_by_the_work_and_one_that_was_lost_is_not() {
    let refused = Refused::new();
    let url = refused.url("/");
    let of_client = client(RetryRule::never());
    let (_, results, stop) = works(unsent(2), async || {
        read(&of_client, Method::POST, &url).await
    })
    .await;
    assert_eq!(results, [Failure(Connect); 3]);
    assert_eq!(stop, Some(StopReason::Exhausted));

    let server = H1::start(Act::ResetAfterReading).await;
    let url = server.url("/");
    let (_, results, stop) = works(unsent(2), async || {
        read(&of_client, Method::POST, &url).await
    })
    .await;
    assert_eq!(results, [Failure(Closed)]);
    assert_eq!(
        (stop, server.count()),
        (Some(StopReason::MethodNotAllowed), 1)
    );
}

#[tokio::test]
async fn a_post_in_front_of_a_read_keeps_the_work_from_being_done_again() {
    for (safe, posts) in [(false, 1), (true, 3)] {
        let server = H1::start(Act::ask(|request| match request.method {
            Method::GET => Answer::new(200)
                .send(Body::Short(15, "one, ".into()))
                .into(),
            _ => Answer::new(201).into(),
        }))
        .await;
        let client = client(at_once(2));
        let (orders, order) = (server.url("/orders"), server.url("/orders/1"));
        let (_, results, _) = works(at_once(2), async || {
            let mut request = client.post(&orders);
            if safe {
                request = request.with_extension(ReplaySafe(true));
            }
            request.send().await?.error_for_status()?;
            read(&client, Method::GET, &order).await
        })
        .await;
        assert_eq!(results, vec![Failure(BrokenBody); posts]);
        assert_eq!(server.count_of(&Method::POST), posts);
    }
}

#[tokio::test]
async fn a_generated_key_does_not_make_a_work_repeatable() {
    let server = H1::start(Act::ask(|request| match request.method {
        Method::GET => Answer::new(200)
            .send(Body::Short(15, "one, ".into()))
            .into(),
        _ => Answer::new(201).into(),
    }))
    .await;
    let key = HeaderName::from_static("idempotency-key");
    let client = client(RetryPolicy::from(at_once(2)).idempotency_key(key));
    let url = server.url("/");
    let (_, _, stop) = works(at_once(2), async || {
        send(&client, Method::POST, &url).await?;
        read(&client, Method::GET, &url).await
    })
    .await;
    assert_eq!(stop, Some(StopReason::MethodNotAllowed));
    assert_eq!(server.count_of(&Method::POST), 1);
}

#[tokio::test]
async fn a_plain_client_is_not_seen_and_one_with_the_policy_is() {
    let short = || Answer::new(200).send(Body::Short(15, "one, ".into()));
    let server = H1::start(short()).await;
    let plain = support::client().build().unwrap();
    let url = server.url("/");
    let policy = RetryPolicy::from(at_once(2));
    let (_, results, stop) = works(policy.clone(), async || {
        Ok(plain.get(&url).send().await?.text().await?)
    })
    .await;
    assert_eq!(
        (results.len(), stop),
        (1, Some(StopReason::MethodNotAllowed))
    );

    let server = H1::start(vec![short(), Answer::new(200).body("whole")]).await;
    let url = server.url("/");
    let (outcome, ..) = works(policy.clone(), async || {
        let request = plain.get(&url).build()?;
        Ok(policy.execute(&plain, request).await?.text().await?)
    })
    .await;
    assert_eq!(outcome.unwrap(), "whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joined_reads_of_two_clients_come_back_together() {
    let short = || Answer::new(200).send(Body::Short(15, "one, ".into()));
    let one = H1::start(vec![
        short(),
        Answer::new(200).body("1"),
        Answer::new(200).body("1"),
    ])
    .await;
    let two = H1::start(vec![
        Answer::new(503),
        Answer::new(200).body("2"),
        Answer::new(200).body("2"),
    ])
    .await;
    let (of_one, of_two) = (client(at_once(2)), client(at_once(2)));
    let (url_one, url_two) = (one.url("/"), two.url("/"));
    let (outcome, results, _) = works(at_once(2), async || {
        let (one, two) = join(
            read(&of_one, Method::GET, &url_one),
            read(&of_two, Method::GET, &url_two),
        )
        .await;
        Ok(one? + &two?)
    })
    .await;
    assert_eq!(outcome.unwrap(), "12");
    assert_eq!(results, [Failure(TransportError::Body), OK]);
    assert_eq!((one.count(), two.count()), (2, 3));
}
