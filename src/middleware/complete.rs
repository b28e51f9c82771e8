//! Reading the body of a successful response inside the attempt.

use http::header::CONTENT_TYPE;
use reqwest::Response;

use super::classify::classify_body;
use super::read_ahead::{Progress, ReadAhead};
use crate::rule::TransportError;

/// Whether the body of this response is to be read: it is a success, not a stream of events, and
/// does not say that it is longer than `limit`.
pub(crate) fn wanted(response: &Response, limit: usize) -> bool {
    limit > 0
        && response.status().is_success()
        && ReadAhead::is_worth_while(response, limit)
        && !is_event_stream(response)
}

/// Reads the body up to `limit` bytes. The response comes back in any case: whole, with the rest
/// behind what was read, or with the part that was read and then the error. The failure is there
/// where it broke off.
pub(crate) async fn complete(
    response: Response,
    limit: usize,
) -> (Response, Option<TransportError>) {
    let mut ahead = ReadAhead::new(response);
    let failure = match ahead.read(limit).await {
        Progress::Whole | Progress::Longer => None,
        Progress::Broken => ahead.error().and_then(|error| classify_body(error)),
    };
    (ahead.into_response(), failure)
}

fn is_event_stream(response: &Response) -> bool {
    const KIND: &[u8] = b"text/event-stream";
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.as_bytes().get(..KIND.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(KIND))
}
