// For the examples in the docs of the middleware, which include this file: a client that gets its
// answers from a function in place of the network.

struct Answers<F>(F);

#[async_trait::async_trait]
impl<F, B> reqwest_middleware::Middleware for Answers<F>
where
    F: Fn(&reqwest::Request) -> http::Response<B> + Send + Sync + 'static,
    B: Into<reqwest::Body> + 'static,
{
    async fn handle(
        &self,
        request: reqwest::Request,
        _: &mut http::Extensions,
        _: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        Ok((self.0)(&request).into())
    }
}

/// The retries come first, the answers last.
fn client<F, B>(
    policy: impl Into<reqwest_retry_rules::RetryPolicy>,
    answer: F,
) -> reqwest_middleware::ClientWithMiddleware
where
    F: Fn(&reqwest::Request) -> http::Response<B> + Send + Sync + 'static,
    B: Into<reqwest::Body> + 'static,
{
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
        .with(reqwest_retry_rules::RetryMiddleware::new(policy))
        .with(Answers(answer))
        .build()
}

/// An answer without a body.
#[allow(dead_code)]
fn status(status: u16) -> http::Response<&'static str> {
    http::Response::builder().status(status).body("").unwrap()
}
