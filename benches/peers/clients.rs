//! The clients that are compared, and a transport that is none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_retry_rules::{
    Backoff, Methods, RetryMiddleware, RetryPolicy, RetryRule, StatusMatch, StatusRule,
};
use retry_policies::Jitter;

/// What stands between the caller and the transport.
pub type Layer = Option<Arc<dyn Middleware>>;

/// Passes on what it gets: what any middleware costs.
pub struct PassThrough;

#[async_trait::async_trait]
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

/// Makes a copy and keeps it until the answer is there: the least that a retry layer made of
/// `try_clone` can do.
pub struct KeepClone;

#[async_trait::async_trait]
impl Middleware for KeepClone {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let kept = request.try_clone();
        let answer = next.run(request, extensions).await;
        drop(kept);
        answer
    }
}

/// Answers with these statuses in turn, the last for ever, without a network.
pub struct Answers(Mutex<VecDeque<u16>>);

impl Answers {
    pub fn new(statuses: impl IntoIterator<Item = u16>) -> Self {
        Self(Mutex::new(statuses.into_iter().collect()))
    }
}

#[async_trait::async_trait]
impl Middleware for Answers {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        let mut statuses = self.0.lock().expect("nothing panics while it holds this");
        let status = match statuses.len() {
            0 | 1 => statuses.front().copied().unwrap_or(200),
            _ => statuses.pop_front().unwrap_or(200),
        };
        drop(statuses);
        let mut response = http::Response::new("");
        *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
        Ok(Response::from(response))
    }
}

pub fn settings() -> reqwest::ClientBuilder {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    reqwest_retry_rules::client_builder().no_proxy()
}

pub fn plain() -> reqwest::Client {
    settings().tls_certs_only([]).build().expect("a client")
}

/// A client whose transport is `answers`.
pub fn without_network(layer: Layer, answers: impl Middleware) -> ClientWithMiddleware {
    with(ClientBuilder::new(plain()), layer)
        .with(answers)
        .build()
}

pub fn with(builder: ClientBuilder, layer: Layer) -> ClientBuilder {
    match layer {
        Some(layer) => builder.with_arc(layer),
        None => builder,
    }
}

/// Every method is retried after a 503, without a wait.
pub fn rule() -> RetryRule {
    let again = StatusRule {
        statuses: vec![StatusMatch::Code(503)],
        methods: Methods::Any,
        backoff: None,
    };
    RetryRule {
        statuses: vec![again],
        backoff: Backoff::default(),
        ..RetryRule::transient()
    }
}

pub fn unbudgeted() -> RetryPolicy {
    RetryPolicy::from(rule()).no_budget()
}

pub fn ours(policy: impl Into<RetryPolicy>) -> Layer {
    Some(Arc::new(RetryMiddleware::new(policy)))
}

/// The peer, with waits as short as it makes them.
pub fn peer() -> Layer {
    peer_after(Duration::ZERO)
}

/// The peer, with the same wait before each retry.
pub fn peer_after(wait: Duration) -> Layer {
    let policy = ExponentialBackoff::builder()
        .retry_bounds(wait, wait)
        .jitter(Jitter::None)
        .build_with_max_retries(3);
    Some(Arc::new(RetryTransientMiddleware::new_with_policy(policy)))
}

/// Ours, with the same wait before each retry.
pub fn ours_after(wait: Duration) -> Layer {
    let backoff = Backoff {
        base: wait,
        max: wait,
        ..Backoff::default()
    };
    ours(RetryRule { backoff, ..rule() })
}

/// A GET in a loop of backon's around a client, as its users write it: a status is made an error,
/// and the response is dropped with that.
pub async fn in_backon(
    client: &ClientWithMiddleware,
    url: &str,
    wait: Duration,
) -> Result<Response> {
    let get = async || Ok(client.get(url).send().await?.error_for_status()?);
    let waits = ConstantBuilder::default()
        .with_delay(wait)
        .with_max_times(3);
    get.retry(waits).sleep(tokio::time::sleep).await
}

/// The layers in the order in which they are shown.
pub fn layers() -> Vec<(&'static str, Layer)> {
    vec![
        ("pass-through", Some(Arc::new(PassThrough))),
        ("try_clone kept", Some(Arc::new(KeepClone))),
        ("reqwest-retry", peer()),
        ("ours", ours(rule())),
        ("ours, no budget", ours(unbudgeted())),
        ("ours, max_retries 0", ours(RetryRule::never())),
        ("ours, transient", ours(RetryRule::transient())),
    ]
}
