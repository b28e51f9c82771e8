//! Clients around the middleware under test, and middlewares to put further in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::{Backoff, RetryMiddleware, RetryPolicy, RetryRule};
use tokio::time::Instant;

use crate::support::client;
use crate::support::script::{Answer, Body};

/// [`RetryRule::transient`], whose retries are made at once.
pub fn at_once() -> RetryRule {
    RetryRule {
        backoff: Backoff::default(),
        ..RetryRule::transient()
    }
}

/// A client that retries by this.
pub fn retrying(policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    builder(policy).build()
}

/// A client that retries by this around a middleware further in.
pub fn retrying_around(
    policy: impl Into<RetryPolicy>,
    inner: impl Middleware,
) -> ClientWithMiddleware {
    builder(policy).with(inner).build()
}

/// The builder of a client that retries by this, for more middlewares further in.
pub fn builder(policy: impl Into<RetryPolicy>) -> ClientBuilder {
    ClientBuilder::new(client().build().unwrap()).with(RetryMiddleware::new(policy))
}

/// Looks at each attempt, or changes it, and lets it go on.
pub struct Look<F>(pub F);

#[async_trait]
impl<F> Middleware for Look<F>
where
    F: Fn(&mut Request, &mut Extensions) + Send + Sync + 'static,
{
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        self.0(&mut request, extensions);
        next.run(request, extensions).await
    }
}

/// What a middleware further in wrote down, one entry for each attempt.
pub struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Notes<T> {
    pub fn new() -> Notes<T> {
        Notes(Arc::default())
    }

    pub fn note(&self, entry: T) {
        self.0.lock().unwrap().push(entry);
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Notes<T> {
        Notes(self.0.clone())
    }
}

/// A transport without a network, for tokio's paused clock: the last middleware of a chain, which
/// answers in turn and repeats its last answer. Of an [`Answer`] it takes status, headers, a whole
/// body and how long the head is held back.
#[derive(Clone)]
pub struct Scripted {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    sent: Notes<Instant>,
}

impl Scripted {
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Scripted {
        Scripted {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            sent: Notes::new(),
        }
    }

    /// How many requests were sent.
    pub fn count(&self) -> usize {
        self.sent.0.lock().unwrap().len()
    }

    /// The pauses between one request and the next, in whole milliseconds.
    pub fn pauses(&self) -> Vec<Duration> {
        let sent = self.sent.0.lock().unwrap();
        sent.windows(2)
            .map(|pair| Duration::from_millis((pair[1] - pair[0]).as_millis() as u64))
            .collect()
    }
}

#[async_trait]
impl Middleware for Scripted {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        self.sent.note(Instant::now());
        let answer = {
            let mut answers = self.answers.lock().unwrap();
            match answers.len() {
                1 => answers[0].clone(),
                _ => answers
                    .pop_front()
                    .expect("a script has at least one answer"),
            }
        };
        if !answer.after.is_zero() {
            tokio::time::sleep(answer.after).await;
        }
        let mut response = http::Response::builder().status(answer.status);
        for (name, value) in &answer.headers {
            response = response.header(name, value);
        }
        let Body::Whole(body) = answer.body else {
            panic!("a scripted answer has a whole body");
        };
        Ok(response.body(body).unwrap().into())
    }
}
