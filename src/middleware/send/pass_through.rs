//! A request with which nothing is to be done.

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::Result;

use super::chain::{Chain, Rest};
use crate::middleware::classify::classify;
use crate::middleware::error_chain::is_of_another_request;
use crate::middleware::tracking::NestedSend;

/// Runs the rest of the chain. Inside the attempt of another send it is noted for that one all the
/// same: a middleware in between may drop this, or forget how it failed.
///
/// It gives a future that is boxed already, so that the one of every send need not hold the request.
#[inline]
pub(super) fn pass_through<'send>(
    request: Request,
    extensions: &'send mut Extensions,
    chain: &'send impl Chain,
    idempotent: bool,
) -> Rest<'send> {
    let nested = if idempotent {
        None
    } else {
        NestedSend::begin(None)
    };
    match nested {
        None => chain.run(request, extensions),
        Some(nested) => Box::pin(run_nested(request, extensions, chain, nested)),
    }
}

async fn run_nested(
    request: Request,
    extensions: &mut Extensions,
    chain: &impl Chain,
    nested: NestedSend,
) -> Result<Response> {
    let url = request.url().clone();
    let outcome = chain.run(request, extensions).await;
    let is_harmless = match &outcome {
        Ok(_) => true,
        Err(error) => {
            classify(error).is_some_and(|class| class.is_unsent())
                && !is_of_another_request(error, &url)
        }
    };
    if is_harmless {
        nested.set_harmless();
    }
    outcome
}
