//! A token that runs out: a 401 renews it once, and the request goes again.
//!
//! Run it with `cargo run --example token`.

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderValue, Method, StatusCode};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use reqwest_retry_rules::{
    Methods, ResponseExt, RetryMiddleware, RetryPolicy, RetryRule, client_builder,
};
use tokio::sync::Mutex;

use support::{Service, answer};

/// Puts a token on each attempt, and fetches a new one for the next if it is refused.
///
/// It stands further in than the retries, so that a retry goes out with the new token.
struct Bearer {
    issuer: String,
    /// A client of its own: the fetching of a token is retried by itself.
    client: ClientWithMiddleware,
    token: Mutex<Option<HeaderValue>>,
}

impl Bearer {
    /// The token that is known, or a new one. Whoever comes meanwhile waits for the same.
    async fn token(&self) -> Result<HeaderValue> {
        let mut known = self.token.lock().await;
        if let Some(token) = &*known {
            return Ok(token.clone());
        }
        let issued = self.client.get(&self.issuer).send().await?;
        let issued = issued.error_for_status()?.text().await?;
        let mut token =
            HeaderValue::try_from(format!("Bearer {issued}")).map_err(Error::middleware)?;
        token.set_sensitive(true);
        Ok(known.insert(token).clone())
    }

    /// Forgets a token that was refused, unless another has taken its place already.
    async fn forget(&self, refused: &HeaderValue) {
        let mut known = self.token.lock().await;
        if known.as_ref() == Some(refused) {
            *known = None;
        }
    }
}

#[async_trait]
impl Middleware for Bearer {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let token = self.token().await?;
        request.headers_mut().insert(AUTHORIZATION, token.clone());
        let response = next.run(request, extensions).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.forget(&token).await;
        }
        Ok(response)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = start().await?;
    let plain = client_builder().no_proxy().build()?;

    let bearer = Bearer {
        issuer: service.url("/token"),
        client: ClientBuilder::new(plain.clone())
            .with(RetryMiddleware::new(RetryRule::transient()))
            .build(),
        token: Mutex::default(),
    };
    // Whatever the method: a request that was refused by its token was not processed. Only once: a
    // new token that is refused too will not get better.
    let policy = RetryPolicy::from(RetryRule::transient()).retry_if(Methods::Any, |head| {
        head.status() == StatusCode::UNAUTHORIZED && head.retries() == 0
    });
    let client = ClientBuilder::new(plain)
        .with(RetryMiddleware::new(policy))
        .with(bearer)
        .build();

    println!("The service takes only the second token that it issues, and nobody's for /admin\n");
    for (method, path) in [
        (Method::POST, "/orders"),
        (Method::GET, "/orders"),
        (Method::GET, "/admin"),
    ] {
        let response = client
            .request(method.clone(), service.url(path))
            .send()
            .await?;
        println!(
            "    {:<5}{path:<9}{} after {} attempts, {} tokens issued so far",
            method.as_str(),
            response.status().as_u16(),
            response.attempts(),
            service.seen("/token"),
        );
    }
    Ok(())
}

/// An issuer and a service in one.
async fn start() -> io::Result<Service> {
    let issued = Arc::new(AtomicU32::new(0));
    Service::start(move |_, request| {
        let issued = issued.clone();
        async move {
            let token = request.headers().get(AUTHORIZATION);
            let is_known = token.is_some_and(|token| token != "Bearer token-1");
            match request.uri().path() {
                "/token" => {
                    let nth = issued.fetch_add(1, Ordering::Relaxed) + 1;
                    Ok(http::Response::new(format!("token-{nth}")))
                }
                "/orders" if is_known => answer(200, &[]),
                _ => answer(401, &[]),
            }
        }
    })
    .await
}
