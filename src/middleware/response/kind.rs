//! Bodies that nobody but the caller may read: they may have no end.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use reqwest::Response;

/// The media types of bodies that come piece by piece for as long as the server likes. Who reads
/// one to its end keeps each piece from the caller until the last has come.
const STREAMS: [&str; 9] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonl",
    "application/jsonlines",
    "application/x-jsonlines",
    "application/json-seq",
    "multipart/x-mixed-replace",
];

/// A media type with this ending is a sequence of JSON texts too (RFC 8091).
const SEQUENCE: &str = "+json-seq";

/// All the media types of gRPC begin like this: `application/grpc`, `application/grpc+proto`,
/// `application/grpc-web-text`.
const GRPC: &str = "application/grpc";

/// True if the body is left alone, because it may be a stream without an end or the bytes of
/// another protocol (RFC 9110, 15.2.2).
pub(super) fn is_left_alone(response: &Response) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
        || response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| is_stream(value.as_bytes()))
}

/// True if a `Content-Type` (RFC 9110, 8.3) names a stream. Its parameters do not matter.
fn is_stream(content_type: &[u8]) -> bool {
    let essence = content_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let begins_with = |start: &str| {
        essence
            .get(..start.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
    };
    let ends_with = |end: &str| {
        let start = essence.len().checked_sub(end.len());
        start
            .and_then(|start| essence.get(start..))
            .is_some_and(|found| found.eq_ignore_ascii_case(end.as_bytes()))
    };
    STREAMS
        .iter()
        .any(|stream| essence.eq_ignore_ascii_case(stream.as_bytes()))
        || begins_with(GRPC)
        || ends_with(SEQUENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_stream(content_type: &str, expected: bool) {
        let found = is_stream(content_type.as_bytes());
        assert_eq!(found, expected, "{content_type:?}");
    }

    #[test]
    fn streams_are_known_by_their_media_type() {
        for stream in STREAMS {
            assert_stream(stream, true);
            assert_stream(&stream.to_uppercase(), true);
            assert_stream(&format!(" {stream} ; charset=utf-8"), true);
        }
        for stream in [
            "application/grpc",
            "Application/gRPC+proto",
            "application/grpc-web-text",
            "application/geo+json-seq",
        ] {
            assert_stream(stream, true);
        }
    }

    #[test]
    fn other_media_types_are_no_streams() {
        for whole in [
            "",
            ";",
            "text/event",
            "text/event-streams",
            "text/plain; x=text/event-stream",
            "application/json",
            "application/json; boundary=+json-seq",
            "application/grp",
            "json-seq",
            "multipart/mixed",
            "text/plain",
        ] {
            assert_stream(whole, false);
        }
    }

    #[test]
    fn a_media_type_of_other_bytes_is_no_stream() {
        assert!(!is_stream(b"text/event-stream\xff"));
    }
}
