//! Redirects: once an answer has sent a request on, no failure says that it was never processed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join;
use futures_util::stream;
use h2::Reason;
use http::{StatusCode, Version};
use reqwest::redirect::Policy;
use reqwest::{Body, ClientBuilder, Method};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, RequestBuilder};
use reqwest_retry_rules::AttemptResult::{Error, Failure, Status};
use reqwest_retry_rules::TransportError::*;
use reqwest_retry_rules::{
    AttemptRecord, Backoff, Methods, ReplaySafe, ResponseExt, RetryMiddleware, RetryPolicy,
    RetryRule, StatusMatch, StopReason, TransportError, client_builder, tracked_redirects,
};

use crate::support;
use crate::support::h1::H1;
use crate::support::h2::{Act as Act2, H2};
use crate::support::hang::Hang;
use crate::support::log::Log;
use crate::support::proxy;
use crate::support::raw::Raw;
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::support::script::{Act, Answer};
use crate::support::sends::{OnRetry, Went, at_once, on_both_runtimes, retrying, send};
use crate::support::tls::{self, Cert, Tls};

/// A server of either version.
enum Server {
    One(H1),
    Two(H2),
}

impl Server {
    /// Answers each request with this.
    async fn answering(version: Version, answer: Answer) -> Server {
        match version {
            Version::HTTP_2 => Server::Two(H2::start(answer).await),
            _ => Server::One(H1::start(answer).await),
        }
    }

    /// Sends each request on.
    async fn redirecting(version: Version, status: u16, to: &str) -> Server {
        Server::answering(version, Answer::new(status).header("location", to)).await
    }

    fn url(&self) -> String {
        match self {
            Server::One(server) => server.url("/"),
            Server::Two(server) => server.url("/"),
        }
    }

    fn log(&self) -> &Log {
        match self {
            Server::One(server) => server,
            Server::Two(server) => server,
        }
    }
}

const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

/// The builder that this crate gives, kept from what is around the test.
fn tracked(version: Version) -> ClientBuilder {
    support::install_crypto();
    speaking(
        version,
        client_builder().no_proxy().tls_certs_only([tls::root()]),
    )
}

fn speaking(version: Version, client: ClientBuilder) -> ClientBuilder {
    match version {
        Version::HTTP_2 => client.http2_prior_knowledge(),
        _ => client,
    }
}

fn following() -> Policy {
    Policy::custom(|attempt| attempt.follow())
}

fn once(failure: TransportError) -> Went {
    Went::stopped([Failure(failure)], StopReason::MethodNotAllowed)
}

fn thrice(failure: TransportError) -> Went {
    Went::stopped([Failure(failure); 3], StopReason::Exhausted)
}

// ---- the next hop refuses ----

#[tokio::test]
async fn a_post_that_was_sent_on_to_a_port_that_refuses_is_sent_once() {
    for version in VERSIONS {
        for status in [301, 302, 303, 307, 308] {
            let nobody = Refused::new();
            let server = Server::redirecting(version, status, &nobody.url("/next")).await;
            for policy in [Policy::default(), Policy::limited(3), following()] {
                let sent = server.log().count();
                let client = tracked(version).redirect(tracked_redirects(policy));
                let client = retrying(client, at_once(2));
                let (outcome, went) = send(client.post(server.url()).body("order")).await;
                assert!(outcome.unwrap_err().is_connect());
                assert_eq!(went, once(AfterRedirect), "{version:?} {status}");
                assert_eq!(server.log().count() - sent, 1, "{version:?} {status}");
            }
        }
    }
}

#[tokio::test]
async fn a_get_that_was_sent_on_to_a_port_that_refuses_is_retried() {
    for version in VERSIONS {
        for status in [301, 302, 303, 307, 308] {
            let nobody = Refused::new();
            let server = Server::redirecting(version, status, &nobody.url("/next")).await;
            for policy in [Policy::default(), Policy::limited(3), following()] {
                let sent = server.log().count();
                let client = tracked(version).redirect(tracked_redirects(policy));
                let client = retrying(client, at_once(2));
                let (outcome, went) = send(client.get(server.url())).await;
                assert!(outcome.unwrap_err().is_connect());
                assert_eq!(went, thrice(AfterRedirect), "{version:?} {status}");
                assert_eq!(server.log().count() - sent, 3, "{version:?} {status}");
            }
        }
    }
}

#[tokio::test]
async fn a_get_whose_next_hop_comes_up_is_answered() {
    for version in VERSIONS {
        let nobody = Refused::new();
        let server = Server::redirecting(version, 302, &nobody.url("/next")).await;
        let (up, came_up) = std::sync::mpsc::channel();
        let come_up = OnRetry::once(move || {
            let listener = nobody.come_up();
            let next = match version {
                Version::HTTP_2 => Server::Two(H2::on(listener, None, Act2::ok("there"))),
                _ => Server::One(H1::on(listener, None, Act::ok("there"))),
            };
            up.send(next).unwrap();
        });
        let policy = RetryPolicy::from(at_once(2)).observer(come_up);
        let client = retrying(tracked(version), policy);
        let (outcome, went) = send(client.get(server.url())).await;
        let answer = outcome.unwrap();
        let next = came_up.recv().unwrap();
        assert_eq!(answer.url().as_str(), next.url() + "next");
        assert_eq!(answer.text().await.unwrap(), "there");
        assert_eq!(
            went,
            Went::answered([Failure(AfterRedirect), Status(StatusCode::OK)])
        );
        assert_eq!(server.log().count(), 2);
    }
}

#[tokio::test]
async fn a_post_that_is_refused_at_once_is_retried() {
    for version in VERSIONS {
        for policy in [
            Policy::default(),
            Policy::limited(3),
            Policy::none(),
            following(),
        ] {
            let client = tracked(version).redirect(tracked_redirects(policy));
            let client = retrying(client, at_once(2));
            let nobody = Refused::new();
            let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
            assert_eq!(went, thrice(Connect), "{version:?}");
        }
    }
}

#[tokio::test]
async fn a_post_that_is_refused_at_once_is_not_retried_where_unsent_failures_are_off() {
    let rule = RetryRule {
        unsent_failures: false,
        ..at_once(2)
    };
    let client = retrying(tracked(Version::HTTP_11), rule);
    let nobody = Refused::new();
    let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
    assert_eq!(went, once(Connect));
}

#[tokio::test]
async fn without_tracking_a_post_that_was_processed_and_sent_on_is_taken_for_unsent() {
    for version in VERSIONS {
        for status in [303, 307] {
            let nobody = Refused::new();
            let server = Server::redirecting(version, status, &nobody.url("/next")).await;
            let client = speaking(version, support::client()).redirect(Policy::default());
            let client = retrying(client, at_once(2));
            let (_, went) = send(client.post(server.url()).body("order")).await;
            assert_eq!(went, thrice(Connect), "{version:?} {status}");
            assert_eq!(
                server.log().count_of(&Method::POST),
                3,
                "{version:?} {status}"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_that_was_answered_303_is_gone_and_sent_once() {
    for version in VERSIONS {
        let nobody = Refused::new();
        let server = Server::redirecting(version, 303, &nobody.url("/next")).await;
        let client = retrying(tracked(version), at_once(2));
        let (_, went) = send(client.put(server.url()).body(one_chunk())).await;
        assert_eq!(
            went,
            Went::stopped([Failure(AfterRedirect)], StopReason::NotReplayable)
        );
        assert_eq!(server.log().count(), 1, "{version:?}");
    }
}

#[tokio::test]
async fn a_stream_that_was_answered_307_comes_back_with_that_answer() {
    for version in VERSIONS {
        let nobody = Refused::new();
        let server = Server::redirecting(version, 307, &nobody.url("/next")).await;
        let client = retrying(tracked(version), at_once(2));
        let (outcome, _) = send(client.post(server.url()).body(one_chunk())).await;
        assert_eq!(outcome.unwrap().status(), 307);
        assert_eq!(server.log().count(), 1, "{version:?}");
    }
}

fn one_chunk() -> Body {
    Body::wrap_stream(stream::iter([Ok::<_, std::io::Error>("order")]))
}

// ---- other faults of a later hop ----

/// What stands between a client and an answer: the client for it, where it is met, what it is, and
/// whatever must live as long.
struct Fault {
    client: ClientBuilder,
    url: String,
    first: TransportError,
    later: TransportError,
    _alive: Box<dyn std::any::Any + Send>,
}

/// Every fault of the connect stage and every refusal, made by a real peer.
async fn unsent_faults(version: Version) -> Vec<Fault> {
    let plain = || tracked(version);
    let fault = |client, url: String, first, alive| Fault {
        client,
        url,
        first,
        later: AfterRedirect,
        _alive: alive,
    };
    let cut = Raw::start(|_, _, _| async { Ok(()) }).await;
    let hang = Hang::start().await;
    let via = |proxy: &Raw| plain().proxy(reqwest::Proxy::https(proxy.url("http", "")).unwrap());
    let wants_password = proxy::connect(proxy::Act::Refuse(407)).await;
    let broken = proxy::connect(proxy::Act::Refuse(502)).await;
    let no_proxy = Refused::new();
    let mut faults = vec![
        fault(
            plain().dns_resolver(Names::new()),
            "http://nowhere.test/".to_owned(),
            Dns,
            Box::new(()) as Box<dyn std::any::Any + Send>,
        ),
        fault(plain(), cut.url("https", "/"), Tls, Box::new(cut)),
        fault(
            via(&wants_password),
            "https://target.test/".to_owned(),
            Proxy {
                status: Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED),
            },
            Box::new(wants_password),
        ),
        fault(
            via(&broken),
            "https://target.test/".to_owned(),
            Proxy { status: None },
            Box::new(broken),
        ),
        fault(
            plain().proxy(reqwest::Proxy::https(no_proxy.url("")).unwrap()),
            "https://target.test/".to_owned(),
            Connect,
            Box::new(no_proxy),
        ),
        Fault {
            later: Timeout,
            ..fault(
                plain().connect_timeout(Duration::from_millis(100)),
                hang.url("/"),
                ConnectTimeout,
                Box::new(hang),
            )
        },
    ];
    if version == Version::HTTP_2 && cfg!(feature = "http2") {
        let refusing = H2::start(Act2::ResetUnread(Reason::REFUSED_STREAM)).await;
        faults.push(fault(
            plain(),
            refusing.url("/"),
            NotProcessed,
            Box::new(refusing),
        ));
    }
    faults
}

/// Retries what a proxy refuses too: a refusal with a status only where a status rule says so.
fn patient() -> RetryRule {
    let mut rule = at_once(2);
    rule.statuses[0].statuses.push(StatusMatch::Code(407));
    rule
}

#[tokio::test]
async fn on_a_later_hop_no_fault_counts_as_unsent() {
    for version in VERSIONS {
        for fault in unsent_faults(version).await {
            let server = Server::redirecting(version, 303, &fault.url).await;
            let client = retrying(fault.client, patient());
            let (_, went) = send(client.post(server.url()).body("order")).await;
            assert_eq!(went, once(fault.later), "{version:?} {:?}", fault.first);
            assert_eq!(server.log().count(), 1, "{version:?} {:?}", fault.first);

            let (_, went) = send(client.get(server.url())).await;
            assert_eq!(went, thrice(fault.later), "{version:?} {:?}", fault.first);
            assert_eq!(server.log().count(), 4, "{version:?} {:?}", fault.first);
        }
    }
}

#[tokio::test]
async fn on_the_first_hop_the_same_faults_count_as_unsent() {
    for version in VERSIONS {
        for fault in unsent_faults(version).await {
            let client = retrying(fault.client, patient());
            let (_, went) = send(client.post(&fault.url).body("order")).await;
            assert_eq!(went, thrice(fault.first), "{version:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_unsent_failure_stays_what_it_is_on_a_later_hop() {
    let expired = H1::start_tls(Tls::new(Cert::Expired).acceptor(), Act::ok("")).await;
    let cut = H1::start(Act::CloseAfterReading).await;
    let garbage = H1::start(Act::garbage()).await;
    let mut cases = vec![
        (garbage.url("/"), Protocol, StopReason::NotRetryable),
        (cut.url("/"), Closed, StopReason::MethodNotAllowed),
    ];
    if cfg!(feature = "rustls") {
        cases.push((expired.url("/"), Certificate, StopReason::NotRetryable));
    }
    for (url, failure, reason) in cases {
        let server = Server::redirecting(Version::HTTP_11, 303, &url).await;
        let client = retrying(tracked(Version::HTTP_11), at_once(2));
        let (_, went) = send(client.post(server.url()).body("order")).await;
        assert_eq!(went, Went::stopped([Failure(failure)], reason));
        assert_eq!(server.log().count(), 1);
    }
}

#[tokio::test]
async fn a_connect_timeout_on_a_later_hop_is_a_timeout_to_a_rule_without_timeouts() {
    let hang = Hang::start().await;
    let server = Server::redirecting(Version::HTTP_11, 303, &hang.url("/")).await;
    let client = tracked(Version::HTTP_11).connect_timeout(Duration::from_millis(100));
    let rule = RetryRule {
        timeouts: false,
        ..at_once(2)
    };
    let (_, went) = send(retrying(client, rule).get(server.url())).await;
    assert_eq!(
        went,
        Went::stopped([Failure(Timeout)], StopReason::NotRetryable)
    );
}

#[tokio::test]
async fn a_class_of_the_callers_own_is_not_unsent_after_a_redirect_either() {
    let nobody = Refused::new();
    let server = Server::redirecting(Version::HTTP_11, 303, &nobody.url("/")).await;
    let policy = RetryPolicy::from(at_once(2)).classify_with(|_| Some(NotProcessed));
    let client = retrying(tracked(Version::HTTP_11), policy);
    let (_, went) = send(client.post(server.url()).body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    // The twin: no redirect.
    let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
    assert_eq!(went, thrice(NotProcessed));
}

#[tokio::test]
async fn a_refusal_after_a_redirect_is_retried_by_the_method_that_was_asked_for() {
    for version in VERSIONS {
        let busy = Server::answering(version, Answer::new(503)).await;
        let server = Server::redirecting(version, 303, &busy.url()).await;
        let client = retrying(tracked(version), at_once(2));
        let refused = Status(StatusCode::SERVICE_UNAVAILABLE);

        let (_, went) = send(client.post(server.url()).body("order")).await;
        assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
        assert_eq!(server.log().count(), 1, "{version:?}");

        let (_, went) = send(client.get(server.url())).await;
        assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));
        assert_eq!(server.log().count(), 4, "{version:?}");
    }
}

/// Retries a refusal whatever the method, as for a status that says that nothing was done.
fn refusals_for_all() -> RetryRule {
    let mut rule = at_once(2);
    rule.statuses[0].methods = Methods::Any;
    rule
}

/// The POST was answered; what is refused is the GET that went in its place.
#[tokio::test]
async fn a_post_that_was_replaced_is_not_sent_again_for_what_was_refused_to_the_other() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    for version in VERSIONS {
        let busy = Server::answering(version, Answer::new(429)).await;
        for status in [301, 302, 303] {
            let server = Server::redirecting(version, status, &busy.url()).await;
            let client = retrying(tracked(version), refusals_for_all());
            let (outcome, went) = send(client.post(server.url()).body("order")).await;
            assert_eq!(outcome.unwrap().status(), 429);
            assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
            assert_eq!(server.log().count(), 1, "{version:?} {status}");

            let (_, went) = send(client.get(server.url())).await;
            assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));

            let rule = RetryRule {
                sent_failures: Methods::Never,
                ..refusals_for_all()
            };
            let unsure = retrying(tracked(version), rule);
            let (_, went) = send(unsure.get(server.url())).await;
            assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));

            let safe = client.post(server.url()).with_extension(ReplaySafe(true));
            let (_, went) = send(safe).await;
            assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));

            let rule = RetryRule {
                sent_failures: Methods::Any,
                ..refusals_for_all()
            };
            let client = retrying(tracked(version), rule);
            let (_, went) = send(client.post(server.url())).await;
            assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));
        }
    }
}

/// Whatever the status: there is a redirect that says where to no one, and one that is not followed.
#[tokio::test]
async fn nor_for_a_redirect_that_the_other_was_answered_with() {
    let mut rule = refusals_for_all();
    rule.statuses[0].statuses = vec![StatusMatch::Range(300, 399)];
    let one_hop = || {
        tracked_redirects(Policy::custom(|hop| {
            if hop.previous().len() > 1 {
                hop.stop()
            } else {
                hop.follow()
            }
        }))
    };
    let nowhere = || Answer::new(302).header("location", "http://[");
    for version in VERSIONS {
        for answer in [
            Answer::new(304),
            Answer::new(300),
            nowhere(),
            Answer::new(302).header("location", "/third"),
            Answer::new(307).header("location", "/third"),
        ] {
            let status = StatusCode::from_u16(answer.status).unwrap();
            let other = Server::answering(version, answer).await;
            let server = Server::redirecting(version, 303, &other.url()).await;
            let client = tracked(version).redirect(one_hop());
            let post = retrying(client, rule.clone()).post(server.url());
            let (_, went) = send(post.body("order")).await;
            let refused = Status(status);
            assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
            assert_eq!(server.log().count(), 1, "{version:?} {status}");
        }
    }

    // To the same place, and from there to no one.
    for answer in [Answer::new(304), nowhere()] {
        let status = StatusCode::from_u16(answer.status).unwrap();
        let server = H1::start(Act::ask(move |asked| {
            if asked.method == Method::POST {
                Answer::new(303).header("location", &asked.path).into()
            } else {
                answer.clone().into()
            }
        }))
        .await;
        let post = retrying(tracked(Version::HTTP_11), rule.clone()).post(server.url("/here"));
        let (_, went) = send(post.body("order")).await;
        assert_eq!(
            went,
            Went::stopped([Status(status)], StopReason::MethodNotAllowed)
        );
        assert_eq!(server.count_of(&Method::POST), 1, "{status}");
    }
}

/// Puts a query on each request.
struct Key;

#[async_trait::async_trait]
impl Middleware for Key {
    async fn handle(
        &self,
        mut request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        request.url_mut().set_query(Some("key=1"));
        next.run(request, extensions).await
    }
}

/// The other comes from the place that was asked, where it is sent on to no one.
#[tokio::test]
async fn nor_where_the_redirects_led_back_to_where_they_began() {
    let mut rule = refusals_for_all();
    rule.statuses[0].statuses = vec![StatusMatch::Range(300, 399)];
    let refused = [Status(StatusCode::FOUND)];
    for (nowhere, with_key) in [
        ("http://[", false),
        ("http://a.b c/", false),
        ("//h:port/", false),
        ("http://[", true),
    ] {
        for to_itself in [true, false] {
            let server = H1::start(Act::ask(move |asked| {
                let at_first = asked.path.starts_with("/first");
                let (status, to) = match (&asked.method, at_first) {
                    (&Method::POST, true) if to_itself => (303, "/first"),
                    (&Method::POST, true) => (307, "/second"),
                    (&Method::POST, false) => (303, "/first"),
                    _ => (302, nowhere),
                };
                Answer::new(status).header("location", to).into()
            }))
            .await;
            let client = tracked(Version::HTTP_11).build().unwrap();
            let client = reqwest_middleware::ClientBuilder::new(client)
                .with(RetryMiddleware::new(rule.clone()));
            let client = if with_key { client.with(Key) } else { client };
            // User info is no part of where it goes.
            let url = server.url("/first").replace("://", "://user:word@");
            let post = reqwest::Request::new(Method::POST, url.parse().unwrap());
            let answer = client.build().execute(post).await.unwrap();
            assert_eq!(answer.status(), 302);
            let report = answer.retry_report().unwrap();
            let results = report.records().iter().map(AttemptRecord::result);
            assert_eq!(results.collect::<Vec<_>>(), refused);
            let posts = server.count_of(&Method::POST);
            assert_eq!(posts, if to_itself { 1 } else { 2 }, "{nowhere}");
        }
    }
}

/// Nor is it told of a wait or a limit: it would not have been sent again.
#[tokio::test]
async fn what_is_not_sent_again_for_its_method_is_told_of_no_limit() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    let busy = Answer::new(429).header("retry-after", "3600");
    let busy = Server::answering(Version::HTTP_11, busy).await;
    let server = Server::redirecting(Version::HTTP_11, 303, &busy.url()).await;
    let rule = RetryRule {
        retry_after: RetryRule::transient().retry_after,
        ..refusals_for_all()
    };
    let client = retrying(tracked(Version::HTTP_11), rule);
    let (_, went) = send(client.post(server.url()).body("order")).await;
    assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
    // The twin.
    let (_, went) = send(client.get(server.url())).await;
    let asked = Duration::from_secs(3600);
    assert_eq!(
        went,
        Went::stopped([refused], StopReason::RetryAfterTooLong(asked))
    );
}

/// It is the POST itself that is refused, in the other place.
#[tokio::test]
async fn a_post_that_was_sent_elsewhere_is_sent_again_where_it_was_refused() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    for version in VERSIONS {
        let busy = Server::answering(version, Answer::new(429)).await;
        for status in [307, 308] {
            let server = Server::redirecting(version, status, &busy.url()).await;
            let client = retrying(tracked(version), refusals_for_all());
            let (_, went) = send(client.post(server.url()).body("order")).await;
            assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));
        }
        // Without any hop.
        let client = retrying(tracked(version), refusals_for_all());
        let (_, went) = send(client.post(busy.url()).body("order")).await;
        assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));
    }
}

#[tokio::test]
async fn a_redirect_that_is_not_followed_is_retried_where_a_rule_says_so() {
    let nobody = Refused::new();
    let server = Server::redirecting(Version::HTTP_11, 303, &nobody.url("/")).await;
    let mut rule = refusals_for_all();
    rule.statuses[0].statuses.push(StatusMatch::Code(303));
    let client = tracked(Version::HTTP_11).redirect(tracked_redirects(Policy::none()));
    let (_, went) = send(retrying(client, rule).post(server.url())).await;
    let refused = Status(StatusCode::SEE_OTHER);
    assert_eq!(went, Went::stopped([refused; 3], StopReason::Exhausted));
}

// ---- whose hop it was ----

/// A client, and a request that is sent on to nobody and one that nobody takes in the first place.
fn two_posts(
    client: &ClientWithMiddleware,
    redirecting: &str,
    refusing: &str,
) -> (RequestBuilder, RequestBuilder) {
    (
        client.post(redirecting).body("sent on"),
        client.post(refusing).body("never sent"),
    )
}

on_both_runtimes! {
    async fn sends_at_the_same_time_do_not_see_each_others_hops() {
        for version in VERSIONS {
            let nobody = Refused::new();
            let server = Server::redirecting(version, 303, &nobody.url("/next")).await;
            let client = retrying(tracked(version), RetryPolicy::from(at_once(2)).no_budget());
            for _ in 0..10 {
                let (redirected, refused) =
                    two_posts(&client, &server.url(), &nobody.url("/first"));
                let (redirected, refused) = join(send(redirected), send(refused)).await;
                assert_eq!(redirected.1, once(AfterRedirect));
                assert_eq!(refused.1, thrice(Connect));

                let (redirected, refused) =
                    two_posts(&client, &server.url(), &nobody.url("/first"));
                let redirected = tokio::spawn(send(redirected));
                let refused = tokio::spawn(send(refused));
                assert_eq!(redirected.await.unwrap().1, once(AfterRedirect));
                assert_eq!(refused.await.unwrap().1, thrice(Connect));
            }
            assert_eq!(server.log().count(), 20);
        }
    }
}

#[tokio::test]
async fn a_retry_starts_with_no_hop_noted() {
    for version in VERSIONS {
        let (names, nobody) = (Names::new(), Refused::new());
        let server = Server::redirecting(version, 303, &nobody.url("/next")).await;
        let addr = server.url().parse::<reqwest::Url>().unwrap();
        names.set("target.test", addr.socket_addrs(|| None).unwrap()[0]);
        let lost = {
            let names = names.clone();
            OnRetry::once(move || names.fail_next(1))
        };
        // Each attempt connects anew, and so asks for the name.
        let client = tracked(version)
            .dns_resolver(names)
            .pool_max_idle_per_host(0);
        let rule = RetryRule {
            sent_failures: Methods::Any,
            ..at_once(2)
        };
        let client = retrying(client, RetryPolicy::from(rule).observer(lost));
        let (_, went) = send(client.post("http://target.test/").body("order")).await;
        assert_eq!(
            went.results,
            [Failure(AfterRedirect), Failure(Dns), Failure(AfterRedirect)],
            "{version:?}"
        );
    }
}

/// Fetches a token with a client of its own before each request.
struct Token(ClientWithMiddleware, String);

#[async_trait::async_trait]
impl Middleware for Token {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        self.0.get(&self.1).send().await?;
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn a_hop_of_another_client_on_the_way_is_its_own() {
    let issuer = Server::answering(Version::HTTP_11, Answer::new(200)).await;
    let moved = Server::redirecting(Version::HTTP_11, 302, &issuer.url()).await;
    let token = Token(retrying(tracked(Version::HTTP_11), at_once(2)), moved.url());
    let nobody = Refused::new();
    let client = retrying_around(tracked(Version::HTTP_11), at_once(2), token);
    let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
    assert_eq!(went, thrice(Connect));
    assert_eq!(moved.log().count(), 3);
}

/// Hands each request on to another client, and what comes of it back.
struct Forward(ClientWithMiddleware);

#[async_trait::async_trait]
impl Middleware for Forward {
    async fn handle(
        &self,
        request: reqwest::Request,
        _: &mut http::Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        self.0.execute(request).await
    }
}

/// A client that retries, around another one.
fn around(rule: RetryRule, inner: ClientWithMiddleware) -> ClientWithMiddleware {
    retrying_around(support::client(), rule, Forward(inner))
}

/// A client that retries, around a middleware further in.
fn retrying_around(
    client: ClientBuilder,
    rule: RetryRule,
    further_in: impl Middleware,
) -> ClientWithMiddleware {
    reqwest_middleware::ClientBuilder::new(client.build().unwrap())
        .with(RetryMiddleware::new(rule))
        .with(further_in)
        .build()
}

/// What leads to this server by the name `target.test`.
fn leading_to(server: &H1) -> ClientBuilder {
    let names = Names::new();
    names.set("target.test", server.addr);
    support::client().dns_resolver(names)
}

#[tokio::test]
async fn a_hop_that_another_client_met_with_this_request_counts_for_it_too() {
    for inner in [at_once(2), RetryRule::never()] {
        let nobody = Refused::new();
        let server = Server::redirecting(Version::HTTP_11, 303, &nobody.url("/next")).await;
        let client = around(at_once(2), retrying(tracked(Version::HTTP_11), inner));
        let (_, went) = send(client.post(server.url()).body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.log().count(), 1);
        // The twin.
        let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
        assert_eq!(went, thrice(Connect));
    }
}

#[tokio::test]
async fn what_was_refused_to_another_client_after_a_hop_is_not_sent_again() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    for inner in [refusals_for_all(), RetryRule::never()] {
        let busy = Server::answering(Version::HTTP_11, Answer::new(429)).await;
        let server = Server::redirecting(Version::HTTP_11, 303, &busy.url()).await;
        let inner = retrying(tracked(Version::HTTP_11), inner);
        let client = around(refusals_for_all(), inner);
        let (_, went) = send(client.post(server.url()).body("order")).await;
        assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
        assert_eq!(server.log().count(), 1);
    }
}

/// To the other client the 429 is an answer, and so is the POST's to a send around it.
#[tokio::test]
async fn what_another_client_passes_on_after_a_hop_is_not_sent_again_either() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    let busy = Server::answering(Version::HTTP_11, Answer::new(429)).await;
    let server = Server::redirecting(Version::HTTP_11, 303, &busy.url()).await;
    let content = RetryRule {
        statuses: vec![],
        ..at_once(2)
    };
    let inner = retrying(tracked(Version::HTTP_11), content);
    // However many clients it goes through.
    for client in [
        around(refusals_for_all(), inner.clone()),
        around(refusals_for_all(), around(RetryRule::never(), inner)),
    ] {
        let before = server.log().count();
        let (_, went) = send(client.post(server.url()).body("order")).await;
        assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
        assert_eq!(server.log().count(), before + 1);
    }
}

/// Of the other client's two attempts the first may have been processed; this one may not repeat.
#[tokio::test]
async fn what_another_client_sent_before_the_answer_it_passes_on_is_not_forgotten() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    for statuses in [vec![], refusals_for_all().statuses] {
        let asked = AtomicUsize::new(0);
        let server = H1::start(Act::ask(move |_| {
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Act::CloseAfterReading,
                _ => Act::status(429),
            }
        }))
        .await;
        let eager = RetryRule {
            sent_failures: Methods::Any,
            max_retries: 2,
            statuses,
            ..at_once(2)
        };
        let attempts = if eager.statuses.is_empty() { 2 } else { 3 };
        let inner = retrying(tracked(Version::HTTP_11), eager);
        let client = around(refusals_for_all(), inner);
        let (_, went) = send(client.post(server.url("/")).body("order")).await;
        assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
        assert_eq!(server.count(), attempts);
    }
}

/// The other client may repeat a POST; this one may not.
#[tokio::test]
async fn what_another_client_sent_before_it_was_refused_is_not_unsent() {
    let names = Names::new();
    let server = H1::start(Act::CloseAfterReading).await;
    names.set("target.test", server.addr);
    let lost = {
        let names = names.clone();
        OnRetry::once(move || names.fail_next(1))
    };
    let rule = RetryRule {
        sent_failures: Methods::Any,
        ..at_once(1)
    };
    let inner = support::client().dns_resolver(names);
    let inner = retrying(inner, RetryPolicy::from(rule).observer(lost));
    let client = around(at_once(2), inner);
    let (_, went) = send(client.post("http://target.test/").body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 1);
}

/// Hands each request to another client for a moment, and then goes on by itself.
struct Race(ClientWithMiddleware);

#[async_trait::async_trait]
impl Middleware for Race {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let copy = request.try_clone().unwrap();
        let raced = self.0.execute(copy);
        match tokio::time::timeout(Duration::from_millis(100), raced).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => next.run(request, extensions).await,
        }
    }
}

#[tokio::test]
async fn what_another_client_was_sending_when_it_was_dropped_is_not_unsent() {
    let a_while = Duration::from_secs(60);
    let slow_body = Answer::new(200).body_later(a_while, "late");
    let waiting = RetryRule {
        backoff: Backoff {
            base: a_while,
            max: a_while,
            ..Backoff::default()
        },
        ..refusals_for_all()
    };
    // In an attempt, in the reading of an answer, in the wait after a failure.
    for (act, policy) in [
        (Act::Silence, RetryPolicy::from(at_once(2))),
        (
            slow_body.into(),
            RetryPolicy::from(at_once(2)).complete_body(100),
        ),
        (Act::status(429), RetryPolicy::from(waiting)),
    ] {
        let server = H1::start(act).await;
        let inner = retrying(leading_to(&server), policy);
        let nowhere = support::client().dns_resolver(Names::new());
        let client = retrying_around(nowhere, at_once(2), Race(inner));
        let (_, went) = send(client.post("http://target.test/").body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.count(), 1);
    }
}

/// What the send around it is answered is not all that became of the POST.
#[tokio::test]
async fn what_another_client_sent_to_no_good_end_is_not_forgotten_for_a_refusal() {
    let refused = Status(StatusCode::TOO_MANY_REQUESTS);
    for act in [Act::Silence, Act::CloseAfterReading] {
        let lost = H1::start(act).await;
        let inner = retrying(leading_to(&lost), at_once(1));
        let busy = H1::start(Act::status(429)).await;
        let client = retrying_around(leading_to(&busy), refusals_for_all(), Race(inner));
        let (_, went) = send(client.post("http://target.test/").body("order")).await;
        assert_eq!(went, Went::stopped([refused], StopReason::MethodNotAllowed));
        assert_eq!((lost.count(), busy.count()), (1, 1));
    }
}

/// A token that is fetched with a GET does no harm when it is fetched twice.
#[tokio::test]
async fn a_get_that_was_dropped_or_lost_on_the_way_does_not_count_for_a_post() {
    struct Impatient(ClientWithMiddleware, String);

    #[async_trait::async_trait]
    impl Middleware for Impatient {
        async fn handle(
            &self,
            request: reqwest::Request,
            extensions: &mut http::Extensions,
            next: Next<'_>,
        ) -> reqwest_middleware::Result<reqwest::Response> {
            let token = self.0.get(&self.1).send();
            let _ = tokio::time::timeout(Duration::from_millis(50), token).await;
            next.run(request, extensions).await
        }
    }

    for act in [Act::Silence, Act::CloseAfterReading] {
        let issuer = H1::start(act).await;
        let tokens = retrying(tracked(Version::HTTP_11), at_once(1));
        let nobody = Refused::new();
        let token = Impatient(tokens, issuer.url("/token"));
        let client = retrying_around(tracked(Version::HTTP_11), at_once(2), token);
        let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
        assert_eq!(went, thrice(Connect));
    }
}

/// A middleware that keeps the other client's send until it is dropped itself.
#[tokio::test]
async fn what_is_dropped_with_the_attempt_counts_for_the_attempt() {
    struct Beside(ClientWithMiddleware);

    impl Middleware for Beside {
        fn handle<'own, 'map, 'chain, 'send>(
            &'own self,
            request: reqwest::Request,
            extensions: &'map mut http::Extensions,
            next: Next<'chain>,
        ) -> Pin<
            Box<dyn Future<Output = reqwest_middleware::Result<reqwest::Response>> + Send + 'send>,
        >
        where
            'own: 'send,
            'map: 'send,
            'chain: 'send,
            Self: 'send,
        {
            let copy = request.try_clone().unwrap();
            let mut beside = Box::pin(self.0.execute(copy));
            let mut own = Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                next.run(request, extensions).await
            });
            Box::pin(std::future::poll_fn(move |cx| {
                match beside.as_mut().poll(cx) {
                    Poll::Ready(answer) => Poll::Ready(answer),
                    Poll::Pending => own.as_mut().poll(cx),
                }
            }))
        }
    }

    let server = H1::start(Act::Silence).await;
    let inner = retrying(leading_to(&server), at_once(1));
    let nowhere = support::client().dns_resolver(Names::new());
    let client = retrying_around(nowhere, at_once(2), Beside(inner));
    let (_, went) = send(client.post("http://target.test/").body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_second_copy_further_in_leaves_the_hops_to_the_first() {
    let nobody = Refused::new();
    let server = Server::redirecting(Version::HTTP_11, 303, &nobody.url("/next")).await;
    let second = RetryMiddleware::new(at_once(2));
    let client = retrying_around(tracked(Version::HTTP_11), at_once(2), second);
    let (_, went) = send(client.post(server.url()).body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.log().count(), 1);
    // The twin.
    let (_, went) = send(client.get(server.url())).await;
    assert_eq!(went, thrice(AfterRedirect));
    assert_eq!(server.log().count(), 4);
}

// ---- the policy inside ----

#[tokio::test]
async fn a_tracked_policy_decides_as_it_would_alone() {
    for version in VERSIONS {
        let policies: [fn() -> Policy; 5] = [
            Policy::default,
            || Policy::limited(1),
            Policy::none,
            || Policy::custom(|attempt| attempt.stop()),
            || Policy::custom(|attempt| attempt.error("not there")),
        ];
        let end = Server::answering(version, Answer::new(200)).await;
        let hop = Server::redirecting(version, 302, &end.url()).await;
        let start = Server::redirecting(version, 302, &hop.url()).await;
        for (number, policy) in policies.into_iter().enumerate() {
            let alone = speaking(version, support::client()).redirect(policy());
            let wrapped = tracked(version).redirect(tracked_redirects(policy()));
            let alone = alone.build().unwrap().get(start.url()).send().await;
            let (wrapped, went) = send(retrying(wrapped, at_once(2)).get(start.url())).await;
            match (alone, wrapped) {
                (Ok(alone), Ok(wrapped)) => {
                    assert_eq!(wrapped.status(), alone.status(), "{version:?} {number}");
                    assert_eq!(wrapped.url(), alone.url(), "{version:?} {number}");
                    assert_eq!(went, Went::answered([Status(alone.status())]));
                }
                (Err(alone), Err(reqwest_middleware::Error::Reqwest(wrapped))) => {
                    assert!(alone.is_redirect() && wrapped.is_redirect());
                    assert_eq!(wrapped.url(), alone.url(), "{version:?} {number}");
                    assert_eq!(wrapped.to_string(), alone.to_string());
                    assert_eq!(went, Went::stopped([Error], StopReason::NotRetryable));
                }
                other => panic!("{version:?} {number}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_that_is_not_followed_is_the_answer_and_no_retry() {
    for version in VERSIONS {
        let nobody = Refused::new();
        let server = Server::redirecting(version, 303, &nobody.url("/next")).await;
        let client = tracked(version).redirect(tracked_redirects(Policy::none()));
        let (outcome, went) = send(retrying(client, at_once(2)).post(server.url())).await;
        assert_eq!(outcome.unwrap().headers()["location"], nobody.url("/next"));
        assert_eq!(went, Went::answered([Status(StatusCode::SEE_OTHER)]));
        assert_eq!(server.log().count(), 1);
    }
}

#[tokio::test]
async fn a_tracked_policy_works_outside_of_any_send_of_this_crate() {
    let end = H1::start(Act::ok("there")).await;
    let start = Server::redirecting(Version::HTTP_11, 302, &end.url("/")).await;
    let client = tracked(Version::HTTP_11).build().unwrap();
    let answer = client.get(start.url()).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "there");
}

#[tokio::test]
async fn a_tracked_policy_is_asked_once_for_each_hop() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = {
        let asked = asked.clone();
        Policy::custom(move |attempt| {
            asked.fetch_add(1, Ordering::SeqCst);
            attempt.follow()
        })
    };
    let end = H1::start(Act::ok("there")).await;
    let hop = Server::redirecting(Version::HTTP_11, 302, &end.url("/")).await;
    let start = Server::redirecting(Version::HTTP_11, 302, &hop.url()).await;
    let client = tracked(Version::HTTP_11).redirect(tracked_redirects(counting));
    let (outcome, _) = send(retrying(client, at_once(2)).get(start.url())).await;
    assert_eq!(outcome.unwrap().text().await.unwrap(), "there");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

// ---- reqwest's own retries ----

#[tokio::test]
async fn a_client_of_reqwests_own_making_sends_a_refused_stream_again_by_itself() {
    let refusing = H2::start(Act2::ResetUnread(Reason::REFUSED_STREAM)).await;
    support::install_crypto();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .http2_prior_knowledge()
        .build()
        .unwrap();
    client.get(refusing.url("/")).send().await.unwrap_err();
    assert_eq!(refusing.begun(), 3);
}
