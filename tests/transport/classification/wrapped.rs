//! Errors that a middleware further in wrapped, and errors of its own.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Error, Middleware, Next};
use reqwest_retry_rules::{TransportError, classify};

use crate::support::client;
use crate::support::refused::Refused;

/// A middleware that hands on what it likes instead of the error.
struct Wrapping(fn(Error) -> Error);

#[async_trait]
impl Middleware for Wrapping {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        next.run(request, extensions).await.map_err(self.0)
    }
}

#[derive(Debug)]
struct Wrapper(Box<dyn StdError + Send + Sync>);

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it did not work")
    }
}

impl StdError for Wrapper {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

/// One that is its own source.
#[derive(Debug)]
struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("because")
    }
}

impl StdError for Endless {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self)
    }
}

#[tokio::test]
async fn the_error_of_the_client() {
    assert_eq!(
        refused_through(|error| error).await,
        Some(TransportError::Connect)
    );
}

#[tokio::test]
async fn a_middleware_error_of_a_reqwest_error() {
    let wrap = |error| match error {
        Error::Reqwest(error) => Error::middleware(error),
        other => other,
    };
    assert_eq!(refused_through(wrap).await, Some(TransportError::Connect));
}

#[tokio::test]
async fn a_middleware_error_of_a_middleware_error() {
    let wrap = |error| Error::middleware(Error::middleware(error));
    assert_eq!(refused_through(wrap).await, Some(TransportError::Connect));
}

#[tokio::test]
async fn an_error_with_context() {
    let wrap = |error| {
        anyhow::Error::new(error)
            .context("outer")
            .context("outermost")
            .into()
    };
    assert_eq!(refused_through(wrap).await, Some(TransportError::Connect));
}

#[tokio::test]
async fn an_error_of_a_type_of_its_own() {
    let wrap = |error| Error::middleware(Wrapper(Box::new(Wrapper(Box::new(error)))));
    assert_eq!(refused_through(wrap).await, Some(TransportError::Connect));
}

#[tokio::test]
async fn an_io_error_around_it() {
    let wrap = |error| Error::middleware(io::Error::other(Wrapper(Box::new(error))));
    assert_eq!(refused_through(wrap).await, Some(TransportError::Connect));
}

#[tokio::test]
async fn an_error_without_a_reqwest_error_in_it() {
    let wrap = |_| Error::middleware(io::Error::from(io::ErrorKind::ConnectionRefused));
    assert_eq!(refused_through(wrap).await, None);
}

#[tokio::test]
async fn an_error_that_is_its_own_source() {
    assert_eq!(refused_through(|_| Error::middleware(Endless)).await, None);
}

async fn refused_through(wrap: fn(Error) -> Error) -> Option<TransportError> {
    let nobody = Refused::new();
    let client = ClientBuilder::new(client().build().unwrap())
        .with(Wrapping(wrap))
        .build();
    classify(&client.get(nobody.url("/")).send().await.unwrap_err())
}
