//! The kinds of client that the loop serves, so that one test goes through each: the original chain,
//! the fork's, and a plain client.

use std::error::Error as StdError;
use std::future::Future;

use http::Extensions;
use reqwest::{Client, Request, RequestBuilder, Response};
use reqwest_retry_rules::{ErrorExt, RetryLog, RetryMiddleware, RetryPolicy};

use super::sends::Went;

/// What a client's error can be asked, besides what every error can.
pub trait ClientError: ErrorExt + StdError + From<reqwest::Error> + Send + Sync + 'static {
    fn is_timeout(&self) -> bool;
    fn is_connect(&self) -> bool;
    fn is_builder(&self) -> bool;
    /// The error of reqwest's, if it is one and not wrapped.
    fn reqwest(&self) -> Option<&reqwest::Error>;
    /// The error of a middleware, if it is one of this type and not wrapped.
    fn of_middleware<E: StdError + Send + Sync + 'static>(&self) -> Option<&E>;
}

/// A kind of client.
pub trait Kind {
    type Error: ClientError;

    /// Sends a request through this client, by this policy.
    fn execute(
        client: Client,
        policy: RetryPolicy,
        request: Request,
        map: &mut Extensions,
    ) -> impl Future<Output = Result<Response, Self::Error>> + Send;
}

/// A chain of `reqwest-middleware`.
pub struct Original;

/// A chain of `astral-reqwest-middleware`.
#[cfg(feature = "astral")]
pub struct Fork;

/// No chain.
pub struct Plain;

macro_rules! chains {
    ($($(#[$meta:meta])* $kind:ident: $middleware:ident,)+) => {
        $(
            $(#[$meta])*
            impl ClientError for $middleware::Error {
                fn is_timeout(&self) -> bool {
                    self.is_timeout()
                }

                fn is_connect(&self) -> bool {
                    self.is_connect()
                }

                fn is_builder(&self) -> bool {
                    self.is_builder()
                }

                fn reqwest(&self) -> Option<&reqwest::Error> {
                    match self {
                        Self::Reqwest(error) => Some(error),
                        Self::Middleware(_) => None,
                    }
                }

                fn of_middleware<E: StdError + Send + Sync + 'static>(&self) -> Option<&E> {
                    match self {
                        Self::Middleware(error) => error.downcast_ref(),
                        Self::Reqwest(_) => None,
                    }
                }
            }

            $(#[$meta])*
            impl Kind for $kind {
                type Error = $middleware::Error;

                async fn execute(
                    client: Client,
                    policy: RetryPolicy,
                    request: Request,
                    map: &mut Extensions,
                ) -> Result<Response, Self::Error> {
                    let client = $middleware::ClientBuilder::new(client)
                        .with(RetryMiddleware::new(policy))
                        .build();
                    client.execute_with_extensions(request, map).await
                }
            }
        )+
    };
}

chains! {
    Original: reqwest_middleware,
    #[cfg(feature = "astral")]
    Fork: astral_reqwest_middleware,
}

impl Kind for Plain {
    type Error = reqwest_middleware::Error;

    async fn execute(
        client: Client,
        policy: RetryPolicy,
        request: Request,
        map: &mut Extensions,
    ) -> Result<Response, Self::Error> {
        policy.execute_with(&client, request, map).await
    }
}

/// Sends what was built with a client, by this policy, and says what came of it.
pub async fn send<K: Kind>(
    policy: impl Into<RetryPolicy>,
    request: RequestBuilder,
) -> (Result<Response, K::Error>, Went) {
    send_with::<K>(policy, request, &mut Extensions::new()).await
}

/// Likewise, with this in the request's extensions.
pub async fn send_with<K: Kind>(
    policy: impl Into<RetryPolicy>,
    request: RequestBuilder,
    map: &mut Extensions,
) -> (Result<Response, K::Error>, Went) {
    let log = RetryLog::new();
    map.insert(log.clone());
    let (client, request) = request.build_split();
    let outcome = K::execute(client, policy.into(), request.unwrap(), map).await;
    let report = log.report().expect("a send with a log has a report");
    let results = report.records().iter().map(|record| record.result());
    let went = Went {
        results: results.collect(),
        stop: report.stop_reason(),
    };
    (outcome, went)
}

/// Each test for each kind of client.
macro_rules! with_each_client {
    ($($(#[$meta:meta])* async fn $name:ident<$kind:ident>() $test:block)+) => {
        $($(#[$meta])* mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn test<$kind: crate::support::clients::Kind>() $test

            #[tokio::test]
            async fn original() {
                test::<crate::support::clients::Original>().await;
            }

            #[cfg(feature = "astral")]
            #[tokio::test]
            async fn fork() {
                test::<crate::support::clients::Fork>().await;
            }

            #[tokio::test]
            async fn plain() {
                test::<crate::support::clients::Plain>().await;
            }
        })+
    };
}

pub(crate) use with_each_client;
