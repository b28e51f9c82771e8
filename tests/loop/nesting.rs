//! More than one copy of the middleware: in one chain, and in one task.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use http::{Extensions, HeaderValue, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Error, Middleware, Next, Result};
use reqwest_retry_rules::{
    Methods, ReplaySafe, ResendCount, ResponseExt, RetryMiddleware, RetryPolicy, RetryRule,
    StatusMatch, StatusRule, TotalTimeout,
};

use crate::support;
use crate::support::chain::{Look, Notes, at_once, builder, retrying};
use crate::support::h1::H1;
use crate::support::script::{Act, Answer};

fn retries(max_retries: u32) -> RetryMiddleware {
    RetryMiddleware::new(RetryRule {
        max_retries,
        ..at_once()
    })
}

/// A bound that the clock cannot hold is none, and a copy that passes requests through hides none.
#[tokio::test]
async fn a_copy_without_retries_and_with_an_endless_timeout_leaves_them_to_the_next() {
    for timeout in [None, Some(TotalTimeout(Duration::MAX))] {
        let server = H1::start(Act::status(503)).await;
        let client = builder(RetryRule::never()).with(retries(2)).build();
        let mut request = client.get(server.url("/"));
        if let Some(timeout) = timeout {
            request = request.with_extension(timeout);
        }
        let response = request.send().await.unwrap();
        assert_eq!((server.count(), response.attempts()), (3, 3), "{timeout:?}");
    }
}

#[tokio::test]
async fn a_second_copy_in_the_chain_does_not_multiply() {
    let between = || {
        Look(|_: &mut Request, extensions: &mut Extensions| {
            extensions.insert("something in between");
        })
    };
    for (name, client) in [
        ("one", builder(at_once()).build()),
        ("two", builder(at_once()).with(retries(3)).build()),
        (
            "three",
            builder(at_once()).with(retries(3)).with(retries(3)).build(),
        ),
        (
            "apart",
            builder(at_once()).with(between()).with(retries(3)).build(),
        ),
        (
            "an eager one inside",
            builder(at_once()).with(retries(9)).build(),
        ),
    ] {
        let server = H1::start(Act::status(503)).await;
        let response = client.get(server.url("/")).send().await.unwrap();
        assert_eq!((server.count(), response.attempts()), (4, 4), "{name}");
    }
}

#[tokio::test]
async fn the_outer_copy_is_the_one_that_counts() {
    for (outer, inner, requests) in [(1, 3, 2), (3, 1, 4), (3, 0, 4)] {
        let server = H1::start(Act::status(503)).await;
        let rule = RetryRule {
            max_retries: outer,
            ..at_once()
        };
        let client = builder(rule).with(retries(inner)).build();
        client.get(server.url("/")).send().await.unwrap();
        assert_eq!(server.count(), requests, "{outer} around {inner}");
    }
}

#[tokio::test]
async fn what_the_outer_copy_passes_through_is_the_inner_ones() {
    let any = RetryRule {
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Any,
            backoff: None,
        }],
        ..at_once()
    };
    // A rule that could retry a POST, if not for this, has it, as one that retries GETs has these.
    let unsent_too = RetryRule {
        unsent_failures: true,
        ..at_once()
    };
    for (outer, method, attempts) in [
        (at_once(), Method::POST, 4),
        (unsent_too, Method::POST, 1),
        (RetryRule::never(), Method::GET, 4),
        (at_once(), Method::GET, 4),
    ] {
        let server = H1::start(Act::status(503)).await;
        let client = builder(outer)
            .with(RetryMiddleware::new(any.clone()))
            .build();
        let request = client.request(method.clone(), server.url("/"));
        let response = request.send().await.unwrap();
        assert_eq!(server.count(), attempts, "{method}");
        assert_eq!(response.attempts() as usize, attempts, "{method}");
    }
}

#[tokio::test]
async fn a_middleware_between_two_copies_sees_each_attempt_once() {
    let notes = Notes::new();
    let noted = notes.clone();
    let between = Look(move |_: &mut Request, extensions: &mut Extensions| {
        noted.note(extensions.get().map(|&ResendCount(count)| count));
    });
    let client = builder(at_once()).with(between).with(retries(3)).build();
    let server = H1::start([503, 503, 200].map(Act::status)).await;
    client.get(server.url("/")).send().await.unwrap();
    assert_eq!(notes.take(), [None, Some(1), Some(2)]);
}

/// Fetches a token for each attempt, by a client of its own in the same task.
struct Tokens {
    client: ClientWithMiddleware,
    url: String,
}

#[async_trait::async_trait]
impl Middleware for Tokens {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let token = self.client.get(&self.url).send().await?;
        let token = token.error_for_status()?.text().await?;
        let token = HeaderValue::try_from(token).map_err(Error::middleware)?;
        request.headers_mut().insert("authorization", token);
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn a_token_is_fetched_with_retries_of_its_own() {
    let tokens = H1::start([
        Act::status(503),
        Act::ok("first"),
        Act::status(503),
        Act::CloseAfterReading,
        Act::ok("second"),
    ])
    .await;
    let server = H1::start([Act::status(503), Act::ok("fine")]).await;
    let client = builder(at_once())
        .with(Tokens {
            client: retrying(at_once()),
            url: tokens.url("/token"),
        })
        .with(retries(3))
        .build();
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.attempts()), (200, 2));
    assert_eq!((tokens.count(), server.count()), (5, 2));
    let requests = server.requests();
    let sent: Vec<_> = requests
        .iter()
        .map(|request| &request.headers["authorization"])
        .collect();
    assert_eq!(sent, ["first", "second"]);
}

#[tokio::test]
async fn what_one_request_carries_is_not_for_the_token() {
    let tokens = H1::start([Act::status(503), Act::ok("first")]).await;
    let server = H1::start([Act::status(503), Act::ok("fine")]).await;
    let client = builder(at_once())
        .with(Tokens {
            client: retrying(at_once()),
            url: tokens.url("/token"),
        })
        .build();
    let request = client
        .get(server.url("/"))
        .with_extension(ReplaySafe(false));
    assert_eq!(request.send().await.unwrap().status(), 503);
    assert_eq!((tokens.count(), server.count()), (2, 1));
}

#[tokio::test]
async fn sends_that_share_a_task_are_each_their_own() {
    let script = || [503, 503, 200].map(Act::status);
    let (one, other) = (H1::start(script()).await, H1::start(script()).await);
    let client = retrying(at_once());
    let (first, second) = futures_util::join!(
        client.get(one.url("/")).send(),
        client.get(other.url("/")).send(),
    );
    assert_eq!(first.unwrap().attempts(), 3);
    assert_eq!(second.unwrap().attempts(), 3);
    assert_eq!((one.count(), other.count()), (3, 3));
}

#[tokio::test]
async fn a_send_that_was_dropped_does_not_pass_for_the_outer_one() {
    let later = Answer::new(200).after(Duration::from_secs(60));
    let slow = H1::start(later).await;
    let client = retrying(at_once());
    for dropped in 0..3 {
        tokio::select! {
            _ = client.get(slow.url("/")).send() => panic!("60 s have passed"),
            () = support::eventually("it arrived", || slow.begun() > dropped) => {}
        }
        let server = H1::start([503, 503, 200].map(Act::status)).await;
        let response = client.get(server.url("/")).send().await.unwrap();
        assert_eq!((response.attempts(), server.count()), (3, 3));
    }
}

#[tokio::test]
async fn a_panic_in_an_attempt_leaves_nothing_behind() {
    let panics = Arc::new(AtomicBool::new(true));
    let still = panics.clone();
    let bomb = Look(move |_: &mut Request, _: &mut Extensions| {
        assert!(
            !still.load(Ordering::Relaxed),
            "a middleware further in panics"
        );
    });
    let server = H1::start([503, 503, 200].map(Act::status)).await;
    let client = builder(at_once()).with(bomb).build();
    let mut extensions = Extensions::new();
    let mut get = async || {
        let request = Request::new(Method::GET, server.url("/").parse().unwrap());
        client
            .execute_with_extensions(request, &mut extensions)
            .await
    };
    assert!(AssertUnwindSafe(get()).catch_unwind().await.is_err());
    assert_eq!(server.count(), 0);

    // The same map at the same place is that of a send of its own.
    panics.store(false, Ordering::Relaxed);
    let response = get().await.unwrap();
    assert_eq!((response.attempts(), server.count()), (3, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn attempts_that_move_between_threads_are_known_again() {
    /// Gives way to other tasks before and after.
    struct Yields;

    #[async_trait::async_trait]
    impl Middleware for Yields {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            tokio::task::yield_now().await;
            let response = next.run(request, extensions).await;
            tokio::task::yield_now().await;
            response
        }
    }

    let tokens = H1::start(Act::ok("token")).await;
    let server = H1::start(Act::status(503)).await;
    let client = builder(RetryPolicy::from(at_once()).no_budget())
        .with(Yields)
        .with(Tokens {
            client: retrying(at_once()),
            url: tokens.url("/token"),
        })
        .with(Yields)
        .with(retries(3))
        .build();
    let sends = (0..40).map(|_| {
        let request = client.get(server.url("/"));
        tokio::spawn(async move { request.send().await.unwrap().attempts() })
    });
    for attempts in futures_util::future::join_all(sends).await {
        assert_eq!(attempts.unwrap(), 4);
    }
    assert_eq!((server.count(), tokens.count()), (160, 160));
}
