//! How a request is sent again: a copy, an unread stream, a fresh body for every attempt.

mod copies;
mod sources;
mod streams;

use http::{HeaderMap, StatusCode};
use reqwest_retry_rules::AttemptResult;

/// How a request said where its body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    Unsaid,
}

fn framing(headers: &HeaderMap) -> Framing {
    match (
        headers.get("content-length"),
        headers.get("transfer-encoding"),
    ) {
        (Some(length), None) => Framing::Length(length.to_str().unwrap().parse().unwrap()),
        (None, Some(coding)) if coding == "chunked" => Framing::Chunked,
        (None, None) => Framing::Unsaid,
        both => panic!("two ways at once: {both:?}"),
    }
}

const OK: AttemptResult = AttemptResult::Status(StatusCode::OK);
const UNAVAILABLE: AttemptResult = AttemptResult::Status(StatusCode::SERVICE_UNAVAILABLE);
