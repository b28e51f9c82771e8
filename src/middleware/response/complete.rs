//! Reading the body of a successful response inside the attempt.

use reqwest::Response;

use super::kind::is_left_alone;
use super::read_ahead::{ReadAhead, ReadUntil};
use crate::middleware::classify::classify_body;
use crate::rule::TransportError;

/// True if the body of this response is to be read: it is a success, not a stream, and does not say
/// that it is longer than `limit`.
pub(in crate::middleware) fn is_to_be_completed(response: &Response, limit: usize) -> bool {
    limit > 0
        && response.status().is_success()
        && ReadAhead::is_worth_while(response, limit)
        && !is_left_alone(response)
}

/// Reads the body up to `limit` bytes, and says what failed if it broke off.
///
/// The response comes back in any case. Its body is whole, or begins with what was read, or is the
/// part that was read and then the error.
pub(in crate::middleware) async fn complete(
    response: Response,
    limit: usize,
) -> (Response, Option<TransportError>) {
    let mut ahead = ReadAhead::new(response);
    let failure = match ahead.read(limit).await {
        ReadUntil::End | ReadUntil::PastLimit => None,
        ReadUntil::Error => ahead.error().and_then(|error| classify_body(error)),
    };
    (ahead.into_response(), failure)
}
