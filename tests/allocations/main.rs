//! What a send allocates that is answered at once: reports, observers and budgets cost nothing
//! until there is something to tell.
#![allow(clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

use async_trait::async_trait;
use http::{Extensions, HeaderValue, Method};
use reqwest::{Body, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::{
    Methods, RetryEvent, RetryMiddleware, RetryObserver, RetryPolicy, RetryRule,
};

/// Answers everything with 200, and allocates the same each time.
struct Transport;

#[async_trait]
impl Middleware for Transport {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        Ok(Response::from(http::Response::new(Body::from(""))))
    }
}

struct PassThrough;

#[async_trait]
impl Middleware for PassThrough {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        next.run(request, extensions).await
    }
}

fn client(middleware: impl Middleware) -> ClientWithMiddleware {
    ClientBuilder::new(support::client().build().unwrap())
        .with(middleware)
        .with(Transport)
        .build()
}

fn retrying(policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    client(RetryMiddleware::new(policy))
}

/// A GET with three headers.
fn get() -> Request {
    let mut request = Request::new(Method::GET, "http://origin.test/path".parse().unwrap());
    for name in ["accept", "user-agent", "authorization"] {
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static("a value"));
    }
    request
}

/// A POST with four headers and a body.
fn post() -> Request {
    let mut request = get();
    *request.method_mut() = Method::POST;
    request
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(r#"{"name":"value"}"#.into());
    request
}

/// How many allocations one send costs, once the first has warmed everything up.
fn allocations(
    client: &ClientWithMiddleware,
    request: fn() -> Request,
    mut extensions: Extensions,
) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut send = |request| {
        let sent = client.execute_with_extensions(request, &mut extensions);
        let response = runtime.block_on(sent).unwrap();
        assert_eq!(response.status(), 200);
    };
    send(request());
    let request = request();
    allocation_counter::measure(|| send(request)).count_total
}

/// How many more than with a middleware that does nothing.
fn extra(policy: impl Into<RetryPolicy>, request: fn() -> Request) -> u64 {
    extra_with(&Extensions::new(), policy, request)
}

fn extra_with(
    extensions: &Extensions,
    policy: impl Into<RetryPolicy>,
    request: fn() -> Request,
) -> u64 {
    let alone = allocations(&client(PassThrough), request, extensions.clone());
    assert!(alone > 0);
    let ours = allocations(&retrying(policy), request, extensions.clone());
    ours.checked_sub(alone).expect("no fewer than alone")
}

/// A rule that retries every method.
fn any() -> RetryRule {
    RetryRule {
        sent_failures: Methods::Any,
        ..RetryRule::transient()
    }
}

struct Observer;

impl RetryObserver for Observer {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        panic!("{event:?}");
    }
}

/// The URL, three that reqwest's `try_clone` makes of a request without a timeout, and the
/// list of headers.
const KEPT: u64 = 5;

#[test]
fn a_get_that_could_be_retried_costs_what_is_kept_of_it() {
    assert_eq!(extra(RetryRule::transient(), get), KEPT);
}

#[test]
fn a_post_that_could_be_retried_costs_what_is_kept_of_it() {
    assert_eq!(extra(any(), post), KEPT);
}

#[test]
fn a_request_that_no_rule_could_retry_costs_nothing() {
    assert_eq!(extra(RetryRule::never(), get), 0);
    assert_eq!(extra(RetryRule::never(), post), 0);
    let never = RetryRule {
        max_retries: 0,
        ..any()
    };
    assert_eq!(extra(never, post), 0);
    assert_eq!(extra(RetryRule::transient(), post), 0);
}

#[test]
fn it_costs_its_url_in_a_box_if_an_observer_may_ask_for_it() {
    let observed = |rule| RetryPolicy::from(rule).observer(Observer);
    assert_eq!(extra(observed(RetryRule::transient()), post), 2);
    assert_eq!(extra(observed(RetryRule::never()), post), 2);
}

/// What others have put into the request's extensions is of no concern.
#[test]
fn nothing_costs_nothing_whatever_a_request_carries() {
    let mut foreign = Extensions::new();
    foreign.insert("of no concern");
    assert_eq!(extra_with(&foreign, RetryRule::never(), get), 0);
    assert_eq!(extra_with(&foreign, RetryRule::transient(), post), 0);
}

#[test]
fn what_is_there_to_tell_of_retries_costs_nothing_without_one() {
    let policy = RetryPolicy::from(any());
    let telling = policy
        .clone()
        .observer(Observer)
        .attempt_header(http::header::AGE)
        .retry_if(Methods::Any, |head| head.status() == 202)
        .jitter_source(|| 0.5);
    for request in [get, post] {
        let plain = extra(policy.clone(), request);
        assert_eq!(extra(telling.clone(), request), plain);
        assert_eq!(extra(policy.clone().no_budget(), request), plain);
    }
}
