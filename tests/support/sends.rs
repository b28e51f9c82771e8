//! Sends through the middleware, and what they came to.

use std::sync::Mutex;

use reqwest::{ClientBuilder, Response};
use reqwest_middleware::{ClientWithMiddleware, Error, RequestBuilder};
use reqwest_retry_rules::{
    AttemptResult, Methods, RetryEvent, RetryLog, RetryMiddleware, RetryObserver, RetryPolicy,
    RetryRule, StatusMatch, StatusRule, StopReason, TransportError,
};

/// Retries at once whatever a rule that cares may retry: 429 and 5xx and sent failures for
/// idempotent methods, unsent failures for all.
pub fn at_once(retries: u32) -> RetryRule {
    RetryRule {
        max_retries: retries,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(429), StatusMatch::Range(500, 599)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        sent_failures: Methods::Idempotent,
        unsent_failures: true,
        ..RetryRule::never()
    }
}

/// A client that retries by this policy.
pub fn retrying(client: ClientBuilder, policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    reqwest_middleware::ClientBuilder::new(client.build().unwrap())
        .with(RetryMiddleware::new(policy))
        .build()
}

/// What a send went through: the results of its attempts in turn, and why it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Went {
    pub results: Vec<AttemptResult>,
    pub stop: Option<StopReason>,
}

impl Went {
    /// An attempt for each of these, and then it stopped for this reason.
    pub fn stopped(results: impl IntoIterator<Item = AttemptResult>, reason: StopReason) -> Went {
        Went {
            results: results.into_iter().collect(),
            stop: Some(reason),
        }
    }

    /// An attempt for each of these, the last of which was the answer.
    pub fn answered(results: impl IntoIterator<Item = AttemptResult>) -> Went {
        Went {
            results: results.into_iter().collect(),
            stop: None,
        }
    }
}

/// Sends, and says what came of it.
pub async fn send(request: RequestBuilder) -> (Result<Response, Error>, Went) {
    let log = RetryLog::new();
    let outcome = request.with_extension(log.clone()).send().await;
    let report = log.report().expect("a send with a log has a report");
    let went = Went {
        results: report
            .records()
            .iter()
            .map(|record| record.result())
            .collect(),
        stop: report.stop_reason(),
    };
    (outcome, went)
}

/// What a stream that an HTTP/2 server refuses is in this build.
pub const REFUSED_STREAM: TransportError = if cfg!(feature = "http2") {
    TransportError::NotProcessed
} else {
    TransportError::Closed
};

/// Does something when the first retry is decided.
pub struct OnRetry(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl OnRetry {
    pub fn once(act: impl FnOnce() + Send + 'static) -> OnRetry {
        OnRetry(Mutex::new(Some(Box::new(act))))
    }
}

impl RetryObserver for OnRetry {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        if let Some(act) = self.0.lock().unwrap().take() {
            act();
        }
    }
}

/// Each test on a runtime of one thread and on one of several.
macro_rules! on_both_runtimes {
    ($($(#[$meta:meta])* async fn $name:ident() $test:block)+) => {
        $($(#[$meta])* mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn test() $test

            #[tokio::test]
            async fn current_thread() {
                test().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn multi_thread() {
                tokio::spawn(test()).await.unwrap();
            }

            /// Here the send is polled by a thread that is none of the runtime's workers.
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn multi_thread_blocked_on() {
                test().await;
            }
        })+
    };
}

pub(crate) use on_both_runtimes;
