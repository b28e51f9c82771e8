//! Reading a body so that the caller's judge can look into it.

use std::time::Duration;

use reqwest::Response;

use super::head::ResponseHead;
use super::kind::is_left_alone;
use super::read_ahead::{ReadAhead, ReadUntil};
use crate::middleware::classify::classify_body;
use crate::rule::TransportError;

/// What a judge of bodies says of a response.
///
/// Its docs say "refused" of a response that is not the answer yet: the rule is asked whether the
/// request is sent again.
///
/// # Examples
///
/// A judge is a function like any other, and is tested like one:
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Judgement, ResponseHead};
///
/// /// A service that says in the body what its status does not.
/// fn judge(head: &ResponseHead<'_>, body: &[u8]) -> Judgement {
///     match body {
///         b"try again" => Judgement::Retry,
///         b"try again in 2 s" => Judgement::RetryAfter(Duration::from_secs(2)),
///         b"no credit left" if head.status() == 429 => Judgement::Stop,
///         _ => Judgement::ByRule,
///     }
/// }
///
/// let response = http::Response::builder().status(429).body("")?;
/// let response = reqwest::Response::from(response);
/// let head = ResponseHead::from(&response);
/// assert_eq!(judge(&head, b"no credit left"), Judgement::Stop);
/// assert_eq!(judge(&head, b"too many"), Judgement::ByRule);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Judgement {
    /// The body says nothing: the rule judges by the head alone.
    #[default]
    ByRule,
    /// The response is refused, whatever its status. The methods that the judge was set with say
    /// which requests may be sent again for it.
    Retry,
    /// Like [`Retry`](Self::Retry), and the server asks for this wait. It counts as a wait that a
    /// header asks for: the cap, the role and the spread of the rule apply.
    RetryAfter(Duration),
    /// The request is not sent again. A response that is refused comes back with
    /// [`StopReason::NotRetryable`](crate::StopReason::NotRetryable); any other is the answer.
    Stop,
}

/// What came of a body that was to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::middleware) enum Judged {
    /// The judge was given the whole body, and this is its answer.
    Asked(Judgement),
    /// The judge was not asked: the body is longer than the limit, or it broke off and the status
    /// is no success. The head alone counts.
    NotAsked,
    /// The body of a success broke off, so there was no answer.
    Failed(TransportError),
}

/// True if a body may be judged, whatever the status: it is not a stream, and does not say that it
/// is longer than `limit` bytes. An empty one may.
pub(in crate::middleware) fn may_be_judged(response: &Response, limit: usize) -> bool {
    let fits = response
        .content_length()
        .is_none_or(|length| length <= limit as u64);
    fits && !is_left_alone(response)
}

/// Reads the body up to `limit` bytes, and asks `judge` if that is all of it.
///
/// The response comes back in any case. Its body is whole, or begins with what was read, or is the
/// part that was read and then the error. The judge sees a head that does not know the request yet:
/// the caller's closure adds the method, the URL and the retries.
pub(in crate::middleware) async fn judge_body(
    response: Response,
    limit: usize,
    judge: impl FnOnce(ResponseHead<'_>, &[u8]) -> Judgement,
) -> (Response, Judged) {
    let is_success = response.status().is_success();
    let mut ahead = ReadAhead::new(response);
    let judged = match ahead.read(limit).await {
        ReadUntil::End => {
            let (head, body) = ahead.head_and_read();
            Judged::Asked(judge(head, &body))
        }
        ReadUntil::PastLimit => Judged::NotAsked,
        ReadUntil::Error => {
            let failure = ahead.error().filter(|_| is_success);
            let failure = failure.and_then(|error| classify_body(error));
            failure.map_or(Judged::NotAsked, Judged::Failed)
        }
    };
    (ahead.into_response(), judged)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;

    use bytes::Bytes;
    use futures_util::{FutureExt, StreamExt, stream};
    use reqwest::{Body, Method, Url};

    use super::*;

    /// A response whose body comes in these pieces, after which it may break off.
    fn response(status: u16, pieces: &[&'static str], breaks_off: bool) -> Response {
        let end = breaks_off.then(|| Err(io::Error::from(io::ErrorKind::UnexpectedEof)));
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from(*piece))).collect();
        let body = Body::wrap_stream(stream::iter(pieces.into_iter().chain(end)));
        let response = http::Response::builder().status(status).body(body);
        Response::from(response.unwrap())
    }

    /// The pieces of a body, and whether it broke off.
    fn read(response: Response) -> (Vec<Bytes>, bool) {
        let pieces = response.bytes_stream().collect::<Vec<_>>();
        let pieces = pieces.now_or_never().unwrap();
        let broke_off = pieces.iter().any(Result::is_err);
        let read = pieces.into_iter().filter_map(Result::ok);
        (read.collect(), broke_off)
    }

    /// What a judge saw of a response that it wants again, what came of it, and what came back.
    struct Case {
        seen: Option<String>,
        judged: Judged,
        back: String,
        broke_off: bool,
    }

    #[track_caller]
    fn case(response: Response, limit: usize) -> Case {
        let seen = RefCell::new(None);
        let judge = |_: ResponseHead<'_>, body: &[u8]| {
            let body = String::from_utf8_lossy(body);
            assert_eq!(seen.replace(Some(body.into_owned())), None, "asked twice");
            Judgement::Retry
        };
        let status = response.status();
        let (response, judged) = judge_body(response, limit, judge).now_or_never().unwrap();
        assert_eq!(response.status(), status);
        let (pieces, broke_off) = read(response);
        Case {
            seen: seen.into_inner(),
            judged,
            back: String::from_utf8(pieces.concat()).unwrap(),
            broke_off,
        }
    }

    const RETRY: Judged = Judged::Asked(Judgement::Retry);

    #[test]
    fn a_body_up_to_the_limit_is_judged_whatever_the_status_and_comes_back_whole() {
        for status in [200, 201, 304, 404, 429, 503] {
            for pieces in [
                &["one, two"] as &[_],
                &["one", ", ", "two"],
                &["", "one, two"],
            ] {
                for limit in [8, 9, usize::MAX] {
                    let case = case(response(status, pieces, false), limit);
                    assert_eq!(case.seen.as_deref(), Some("one, two"), "{status} {limit}");
                    assert_eq!(case.judged, RETRY);
                    assert_eq!((case.back.as_str(), case.broke_off), ("one, two", false));
                }
            }
        }
    }

    #[test]
    fn a_longer_body_is_not_judged_and_comes_back_whole() {
        for limit in [0, 1, 3, 7] {
            let case = case(response(200, &["one", ", ", "two"], false), limit);
            assert_eq!(case.seen, None, "{limit}");
            assert_eq!(case.judged, Judged::NotAsked);
            assert_eq!((case.back.as_str(), case.broke_off), ("one, two", false));
        }
    }

    #[test]
    fn an_empty_body_is_judged() {
        for limit in [0, 1] {
            let case = case(response(200, &[], false), limit);
            assert_eq!(case.seen.as_deref(), Some(""));
            assert_eq!(case.judged, RETRY);
            assert_eq!((case.back.as_str(), case.broke_off), ("", false));
        }
    }

    #[test]
    fn a_success_that_breaks_off_is_a_failure_and_comes_back_with_its_error() {
        let case = case(response(200, &["one"], true), 100);
        assert_eq!(case.seen, None);
        assert_eq!(case.judged, Judged::Failed(TransportError::Body));
        assert_eq!((case.back.as_str(), case.broke_off), ("one", true));
    }

    #[test]
    fn any_other_status_that_breaks_off_is_left_to_the_rule() {
        for status in [302, 404, 503] {
            let case = case(response(status, &["one"], true), 100);
            assert_eq!(case.seen, None, "{status}");
            assert_eq!(case.judged, Judged::NotAsked);
            assert_eq!((case.back.as_str(), case.broke_off), ("one", true));
        }
    }

    #[test]
    fn a_body_that_breaks_off_past_the_limit_is_not_judged() {
        let case = case(response(200, &["one", "two"], true), 4);
        assert_eq!(case.judged, Judged::NotAsked);
        assert_eq!((case.back.as_str(), case.broke_off), ("onetwo", true));
    }

    #[test]
    fn the_judge_sees_the_head_and_may_add_the_request() {
        let asked = Url::parse("http://target.test/asked").unwrap();
        let judge = |head: ResponseHead<'_>, _: &[u8]| {
            let head = head.with_method(&Method::POST).with_request_url(&asked);
            assert_eq!((head.status().as_u16(), head.retries()), (429, 0));
            assert_eq!(head.method(), Method::POST);
            assert_eq!(head.request_url(), &asked);
            assert_eq!(head.headers()["x-answer"], "yes");
            Judgement::Stop
        };
        let mut response = response(429, &["no credit"], false);
        response
            .headers_mut()
            .insert("x-answer", http::HeaderValue::from_static("yes"));
        let (response, judged) = judge_body(response, 100, judge).now_or_never().unwrap();
        assert_eq!(judged, Judged::Asked(Judgement::Stop));
        assert_eq!(response.headers()["x-answer"], "yes");
    }

    #[test]
    fn large_pieces_are_held_once() {
        let large: &'static str = Box::leak("x".repeat(5000).into_boxed_str());
        let judge = |_: ResponseHead<'_>, body: &[u8]| {
            assert_eq!(body.len(), 10_000);
            Judgement::ByRule
        };
        let response = response(200, &[large, large], false);
        let judging = judge_body(response, 10_000, judge).now_or_never();
        let (pieces, _) = read(judging.unwrap().0);
        let lengths: Vec<_> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [10_000]);
    }

    #[test]
    fn streams_upgrades_and_longer_bodies_may_not_be_judged() {
        let may = |status: u16, kind: &str, body: Body| {
            let response = http::Response::builder()
                .status(status)
                .header("content-type", kind)
                .body(body);
            may_be_judged(&Response::from(response.unwrap()), 4)
        };
        let unknown = || Body::wrap_stream(stream::iter([Ok::<_, io::Error>("body!")]));
        for status in [200, 404, 429, 503] {
            assert!(may(status, "application/json", "body".into()));
            assert!(may(status, "application/json", "".into()));
            assert!(may(status, "application/json", unknown()));
            assert!(!may(status, "application/json", "body!".into()));
            assert!(!may(status, "text/event-stream", "body".into()));
            assert!(!may(status, "application/grpc", "body".into()));
        }
        assert!(!may(101, "application/json", "".into()));
    }
}
