//! An idempotency key that was made further in is another one next time: it proves nothing to the
//! send around it. A key that the request around it carries does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Extensions, HeaderName, HeaderValue, StatusCode};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, RequestBuilder, Result};
use reqwest_retry_rules::AttemptResult::{Failure, Status};
use reqwest_retry_rules::TransportError::{AfterRedirect, Dns};
use reqwest_retry_rules::{RetryMiddleware, RetryPolicy, StopReason};

use crate::support;
use crate::support::h1::H1;
use crate::support::resolver::Names;
use crate::support::script::Act;
use crate::support::sends::{OnRetry, Went, at_once, retrying, send};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Hands each request on to another client, and what comes of it back.
struct Forward(ClientWithMiddleware);

#[async_trait::async_trait]
impl Middleware for Forward {
    async fn handle(&self, request: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        self.0.execute(request).await
    }
}

/// As [`Forward`], with a key of its own for each request.
struct Keying(ClientWithMiddleware, AtomicUsize);

#[async_trait::async_trait]
impl Middleware for Keying {
    async fn handle(
        &self,
        mut request: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> Result<Response> {
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        let key = HeaderValue::from(number);
        request.headers_mut().insert(KEY, key);
        self.0.execute(request).await
    }
}

/// Hands each request to another client for a moment, and then goes on by itself.
struct Race(ClientWithMiddleware);

#[async_trait::async_trait]
impl Middleware for Race {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let raced = self.0.execute(request.try_clone().unwrap());
        match tokio::time::timeout(Duration::from_millis(100), raced).await {
            Ok(answer) => answer,
            Err(_) => next.run(request, extensions).await,
        }
    }
}

/// A client that retries twice, around a middleware further in. By itself it finds no name.
fn around(further_in: impl Middleware) -> ClientWithMiddleware {
    let nowhere = support::client().dns_resolver(Names::new());
    reqwest_middleware::ClientBuilder::new(nowhere.build().unwrap())
        .with(RetryMiddleware::new(at_once(2)))
        .with(further_in)
        .build()
}

/// A nested client that retries once and gives each POST a key in this header. Each time that it
/// retries, the name of the server is not found.
fn keyed(server: &H1, header: HeaderName) -> ClientWithMiddleware {
    let names = Names::new();
    names.set("target.test", server.addr);
    let lost = {
        let names = names.clone();
        OnRetry::once(move || names.fail_next(1))
    };
    let policy = RetryPolicy::from(at_once(1))
        .idempotency_key(header)
        .observer(lost);
    retrying(support::client().dns_resolver(names), policy)
}

fn post(client: &ClientWithMiddleware) -> RequestBuilder {
    client.post("http://target.test/").body("order")
}

/// The keys that reached a server, in this header.
fn keys(server: &H1, header: &HeaderName) -> Vec<String> {
    let requests = server.requests();
    let values = requests.iter().map(|request| &request.headers[header]);
    values
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

/// One attempt, of which nobody knows what became.
fn once() -> Went {
    Went::stopped([Failure(AfterRedirect)], StopReason::MethodNotAllowed)
}

/// The nested POST is read and lost, and its retry finds no server.
#[tokio::test]
async fn what_was_lost_under_a_key_that_the_nested_client_made_is_not_unsent() {
    let server = H1::start([Act::CloseAfterReading, Act::ok("fine")]).await;
    let client = around(Forward(keyed(&server, KEY)));
    let (_, went) = send(post(&client)).await;
    assert_eq!(went, once());
    assert_eq!(server.count(), 1);
}

/// The nested POST is dropped in flight, and then this client's own finds no server.
#[tokio::test]
async fn what_was_dropped_under_a_key_that_the_nested_client_made_is_not_unsent() {
    let server = H1::start(Act::Silence).await;
    let client = around(Race(keyed(&server, KEY)));
    let (_, went) = send(post(&client)).await;
    assert_eq!(went, once());
    assert_eq!(server.count(), 1);
}

/// A middleware makes a key for each request that it hands on.
#[tokio::test]
async fn what_was_lost_under_a_key_that_is_made_for_each_attempt_is_not_unsent() {
    let server = H1::start([Act::CloseAfterReading, Act::ok("fine")]).await;
    let client = around(Keying(keyed(&server, KEY), AtomicUsize::new(0)));
    let (_, went) = send(post(&client)).await;
    assert_eq!(went, once());
    assert_eq!(keys(&server, &KEY), ["0"]);
}

/// Nor is it if the request around it has another key there, or this one elsewhere.
#[tokio::test]
async fn a_key_counts_only_with_its_header_and_its_value() {
    for (header, value) in [(KEY, "mine"), (HeaderName::from_static("x-key"), "0")] {
        let server = H1::start([Act::CloseAfterReading, Act::ok("fine")]).await;
        let client = around(Keying(keyed(&server, KEY), AtomicUsize::new(0)));
        let (_, went) = send(post(&client).header(header, value)).await;
        assert_eq!(went, once());
        assert_eq!(keys(&server, &KEY), ["0"]);
    }
}

/// The request around it has a key, but the nested client's is in another header.
#[tokio::test]
async fn a_key_in_another_header_does_not_make_it_unsent_either() {
    let header = HeaderName::from_static("x-key");
    let server = H1::start([Act::CloseAfterReading, Act::ok("fine")]).await;
    let client = around(Forward(keyed(&server, header)));
    let (_, went) = send(post(&client).header(KEY, "mine")).await;
    assert_eq!(went, once());
    assert_eq!(server.count(), 1);
}

/// The twin: under the caller's key the service takes both for one.
#[tokio::test]
async fn what_was_lost_under_the_callers_key_is_sent_again_under_it() {
    let server = H1::start([Act::CloseAfterReading, Act::ok("fine")]).await;
    let client = around(Forward(keyed(&server, KEY)));
    let (outcome, went) = send(post(&client).header(KEY, "mine")).await;
    assert_eq!(outcome.unwrap().status(), StatusCode::OK);
    let answered = [Failure(Dns), Status(StatusCode::OK)];
    assert_eq!(went, Went::answered(answered));
    assert_eq!(keys(&server, &KEY), ["mine", "mine"]);
}

#[tokio::test]
async fn what_was_dropped_under_the_callers_key_is_sent_again_under_it() {
    let server = H1::start([Act::Silence, Act::ok("fine")]).await;
    let client = around(Race(keyed(&server, KEY)));
    let (outcome, went) = send(post(&client).header(KEY, "mine")).await;
    assert_eq!(outcome.unwrap().status(), StatusCode::OK);
    let answered = [Failure(Dns), Status(StatusCode::OK)];
    assert_eq!(went, Went::answered(answered));
    assert_eq!(keys(&server, &KEY), ["mine", "mine"]);
}

/// The twin: without a nested send that was lost, "no server" proves what it says.
#[tokio::test]
async fn what_reached_no_server_in_any_attempt_is_sent_again() {
    let server = H1::start(Act::ok("fine")).await;
    let names = Names::new();
    names.set("target.test", server.addr);
    names.fail_next(2);
    let policy = RetryPolicy::from(at_once(0)).idempotency_key(KEY);
    let nested = retrying(support::client().dns_resolver(names), policy);
    let client = around(Forward(nested));
    let (outcome, went) = send(post(&client)).await;
    assert_eq!(outcome.unwrap().status(), StatusCode::OK);
    let answered = [Failure(Dns), Failure(Dns), Status(StatusCode::OK)];
    assert_eq!(went, Went::answered(answered));
    assert_eq!(server.count(), 1);
}
