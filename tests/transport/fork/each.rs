//! What holds for a chain of either kind; `own` is the kind under test, `other` the other one, and
//! `across` is this module for that.

use std::io;
use std::time::Duration;

use http::{Extensions, Method, StatusCode};
use reqwest::{Request, Response};
use reqwest_retry_rules::AttemptResult::{self, Error, Failure, Status};
use reqwest_retry_rules::TransportError::{AfterRedirect, Closed, Connect, NotProcessed};
use reqwest_retry_rules::{
    ErrorExt, ResendCount, ResponseExt, RetryLog, RetryMiddleware, RetryPolicy, RetryRule,
    StopReason, classify,
};

use super::own::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use super::{across, other, own};
use crate::support;
use crate::support::chain::Notes;
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::script::Act;
use crate::support::sends::{Went, at_once};

const UNAVAILABLE: AttemptResult = Status(StatusCode::SERVICE_UNAVAILABLE);

fn client() -> reqwest::Client {
    support::client().build().unwrap()
}

pub type Failed = own::Error;

/// A chain that retries by this, around a middleware further in.
pub fn around(policy: impl Into<RetryPolicy>, inner: impl Middleware) -> ClientWithMiddleware {
    ClientBuilder::new(client())
        .with(RetryMiddleware::new(policy))
        .with(inner)
        .build()
}

/// A chain that retries by this.
pub fn retrying(policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    ClientBuilder::new(client())
        .with(RetryMiddleware::new(policy))
        .build()
}

/// Sends, and says what came of it.
pub async fn send(
    client: ClientWithMiddleware,
    method: Method,
    url: String,
) -> (Result<Response>, Went) {
    let log = RetryLog::new();
    let request = client.request(method, url).with_extension(log.clone());
    let outcome = request.send().await;
    let report = log.report().unwrap();
    let results = report.records().iter().map(|record| record.result());
    let went = Went {
        results: results.collect(),
        stop: report.stop_reason(),
    };
    (outcome, went)
}

/// Notes what each attempt carries.
pub struct Counts(pub Notes<Option<ResendCount>>);

#[async_trait::async_trait]
impl Middleware for Counts {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        self.0.note(extensions.get().copied());
        extensions.insert("left behind by an attempt");
        next.run(request, extensions).await
    }
}

/// Turns the error of the network into another.
pub struct Fails(pub fn(Failed) -> Failed);

#[async_trait::async_trait]
impl Middleware for Fails {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        next.run(request, extensions).await.map_err(self.0)
    }
}

/// Hands every request to a chain of the other kind, with the request's own extensions
/// or with others.
pub struct Across {
    pub to: other::ClientWithMiddleware,
    pub same_map: bool,
}

#[async_trait::async_trait]
impl Middleware for Across {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        _: Next<'_>,
    ) -> Result<Response> {
        let outcome = if self.same_map {
            self.to.execute_with_extensions(request, extensions).await
        } else {
            self.to.execute(request).await
        };
        // As a whole, for want of anything better.
        outcome.map_err(Failed::middleware)
    }
}

/// Sends something of its own through a chain of the other kind before each request, and
/// does not mind if that fails.
pub struct Asks {
    pub through: other::ClientWithMiddleware,
    pub method: Method,
    pub url: String,
}

#[async_trait::async_trait]
impl Middleware for Asks {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let asked = self.through.request(self.method.clone(), &self.url);
        let _ = asked.send().await;
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn each_attempt_begins_with_the_same_extensions_and_says_which_it_is() {
    let server = H1::start(Act::status(503)).await;
    let notes = Notes::new();
    let client = around(at_once(2), Counts(notes.clone()));
    let (outcome, went) = send(client, Method::GET, server.url("/")).await;
    assert_eq!(went, Went::stopped([UNAVAILABLE; 3], StopReason::Exhausted));
    assert_eq!(outcome.unwrap().attempts(), 3);
    let counts = notes
        .take()
        .into_iter()
        .map(|count| count.map(|count| count.0));
    assert_eq!(counts.collect::<Vec<_>>(), [None, Some(1), Some(2)]);
}

#[tokio::test]
async fn an_error_of_a_middleware_further_in_comes_back_as_it_was() {
    let nobody = Refused::new();
    let fails = Fails(|_| {
        Failed::Middleware(anyhow::Error::new(io::Error::other("no token")).context("signing"))
    });
    let (outcome, went) = send(around(at_once(2), fails), Method::GET, nobody.url("/")).await;
    assert_eq!(went, Went::stopped([Error], StopReason::NotRetryable));
    let Failed::Middleware(error) = outcome.unwrap_err() else {
        panic!("another kind of error");
    };
    assert_eq!(format!("{error:#}"), "signing: no token");
    assert_eq!(
        error.downcast_ref::<io::Error>().map(io::Error::kind),
        Some(io::ErrorKind::Other)
    );
}

/// The twin: one with an error of reqwest's behind it is that failure.
#[tokio::test]
async fn a_failure_that_is_wrapped_is_retried_and_comes_back_wrapped_as_it_was() {
    let nobody = Refused::new();
    for fails in [
        Fails(|error| Failed::Middleware(anyhow::Error::new(error).context("signing"))),
        Fails(|error| Failed::middleware(Failed::middleware(error))),
    ] {
        let client = around(at_once(2), fails);
        let (outcome, went) = send(client, Method::POST, nobody.url("/")).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Connect); 3], StopReason::Exhausted)
        );
        let error = outcome.unwrap_err();
        assert_eq!(classify(&error), Some(Connect));
        let Failed::Middleware(error) = error else {
            panic!("another kind of error");
        };
        assert!(error.is::<Failed>());
    }
}

#[tokio::test]
async fn closures_see_the_error_as_one_of_the_original() {
    let nobody = Refused::new();
    let fails = || Fails(|_| Failed::middleware(io::Error::other("no token")));
    let unsent = |error: &reqwest_middleware::Error| match error {
        reqwest_middleware::Error::Middleware(error) if error.is::<io::Error>() => {
            Some(NotProcessed)
        }
        _ => None,
    };
    let policy = RetryPolicy::from(at_once(2)).classify_with(unsent);
    let (_, went) = send(around(policy, fails()), Method::POST, nobody.url("/")).await;
    assert_eq!(
        went,
        Went::stopped([Failure(NotProcessed); 3], StopReason::Exhausted)
    );
    // The twin.
    let (_, went) = send(around(at_once(2), fails()), Method::POST, nobody.url("/")).await;
    assert_eq!(went, Went::stopped([Error], StopReason::NotRetryable));
}

#[tokio::test]
async fn a_chain_of_the_other_kind_further_in_is_the_same_chain_if_it_has_the_same_extensions() {
    for (same_map, requests) in [(true, 3), (false, 6)] {
        let server = H1::start(Act::status(503)).await;
        let across = Across {
            to: across::retrying(at_once(1)),
            same_map,
        };
        let (outcome, went) = send(around(at_once(2), across), Method::GET, server.url("/")).await;
        assert_eq!(went, Went::stopped([UNAVAILABLE; 3], StopReason::Exhausted));
        assert_eq!((outcome.unwrap().attempts(), server.count()), (3, requests));
    }
}

/// An error of the other kind, which it wraps.
#[tokio::test]
async fn a_failure_of_a_chain_of_the_other_kind_is_told_by_what_it_wraps() {
    let nobody = Refused::new();
    let across = Across {
        to: across::retrying(RetryRule::never()),
        same_map: true,
    };
    let (outcome, went) = send(around(at_once(2), across), Method::POST, nobody.url("/")).await;
    assert_eq!(
        went,
        Went::stopped([Failure(Connect); 3], StopReason::Exhausted)
    );
    let error = outcome.unwrap_err();
    assert!(!error.timed_out() && error.retry_error().is_none());
    let Failed::Middleware(error) = error else {
        panic!("another kind of error");
    };
    assert!(error.is::<across::Failed>());

    let server = H1::start(Act::Silence).await;
    let across = Across {
        to: across::retrying(RetryRule::never()),
        same_map: true,
    };
    let log = RetryLog::new();
    let request = around(at_once(1), across)
        .get(server.url("/"))
        .timeout(Duration::from_millis(50))
        .with_extension(log);
    let error = request.send().await.unwrap_err();
    assert!(error.timed_out() && !error.is_timeout());
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_post_that_a_chain_of_the_other_kind_lost_inside_an_attempt_counts() {
    for (method, expected) in [
        (
            Method::POST,
            Went::stopped([Failure(AfterRedirect)], StopReason::MethodNotAllowed),
        ),
        (
            Method::GET,
            Went::stopped([Failure(Connect); 3], StopReason::Exhausted),
        ),
    ] {
        let (server, nobody) = (H1::start(Act::CloseAfterReading).await, Refused::new());
        let asks = Asks {
            through: across::retrying(at_once(1)),
            method,
            url: server.url("/session"),
        };
        let (_, went) = send(around(at_once(2), asks), Method::POST, nobody.url("/")).await;
        assert_eq!(went, expected);
    }
}

/// What the chain further in lost itself is no failure before it was sent, either.
#[tokio::test]
async fn a_post_that_was_lost_further_in_is_not_sent_again_further_out() {
    for same_map in [true, false] {
        let server = H1::start(Act::CloseAfterReading).await;
        let across = Across {
            to: across::retrying(at_once(2)),
            same_map,
        };
        let (_, went) = send(around(at_once(2), across), Method::POST, server.url("/")).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Closed)], StopReason::MethodNotAllowed)
        );
        assert_eq!(server.count(), 1);
    }
}
