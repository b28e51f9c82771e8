//! The middleware for `astral-reqwest-middleware`, a fork of `reqwest-middleware` with types of its
//! own. The loop knows the original's alone: an error is moved from the one enum to the other.

use std::future::Future;
use std::pin::Pin;

use astral_reqwest_middleware::{Error as AstralError, Middleware, Next, Result as AstralResult};
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::Error;

use super::RetryMiddleware;
use super::send;
use super::send::chain::{Chain, Rest};

/// The same for the clients of `astral-reqwest-middleware`. What comes back is what came in, as
/// ever.
///
/// [`classify`](crate::classify) takes the errors of both. The closures of a policy are given each
/// error as one of the original, with the same content.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// // reqwest-middleware = { package = "astral-reqwest-middleware", version = "0.5.1" }
/// # use astral_reqwest_middleware as reqwest_middleware;
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{RetryLog, RetryMiddleware, RetryRule, client_builder};
///
/// # let refused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let client = ClientBuilder::new(client_builder().build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// let log = RetryLog::new();
/// let request = client.get(format!("http://{refused}/")).with_extension(log.clone());
/// assert!(request.send().await.unwrap_err().is_connect());
/// assert_eq!(log.report().map(|report| report.attempts()), Some(4));
/// # Ok(())
/// # }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "astral")))]
impl Middleware for RetryMiddleware {
    // Written out, as for the original.
    fn handle<'own, 'map, 'chain, 'send>(
        &'own self,
        request: Request,
        extensions: &'map mut Extensions,
        next: Next<'chain>,
    ) -> Pin<Box<dyn Future<Output = AstralResult<Response>> + Send + 'send>>
    where
        'own: 'send,
        'map: 'send,
        'chain: 'send,
        Self: 'send,
    {
        let sent = Box::pin(send::send(|| self.policy(), request, extensions, next));
        Box::pin(async { sent.await.map_err(into_astral) })
    }
}

impl Chain for Next<'_> {
    fn run<'send>(&'send self, request: Request, extensions: &'send mut Extensions) -> Rest<'send> {
        let rest = self.clone().run(request, extensions);
        Box::pin(async { rest.await.map_err(from_astral) })
    }
}

fn from_astral(error: AstralError) -> Error {
    match error {
        AstralError::Middleware(error) => Error::Middleware(error),
        AstralError::Reqwest(error) => Error::Reqwest(error),
    }
}

fn into_astral(error: Error) -> AstralError {
    match error {
        Error::Middleware(error) => AstralError::Middleware(error),
        Error::Reqwest(error) => AstralError::Reqwest(error),
    }
}
