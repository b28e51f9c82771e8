//! Redirect tracking: after an answer has sent the request on, no failure proves it unsent.

use http::header::LOCATION;
use http::{StatusCode, Uri};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use url::Position;

use super::in_flight::{note_redirect, note_replaced};

/// Wraps a redirect policy so that [`RetryMiddleware`](crate::RetryMiddleware) knows that a redirect
/// was met.
///
/// reqwest reports a connection that could not be opened after a redirect exactly as one that could
/// not be opened at first: the same flags, the same sources, the original URL. Yet a POST that was
/// answered 303 has been processed, whatever becomes of the request that follows. With a tracked
/// policy such a failure is [`TransportError::AfterRedirect`](crate::TransportError::AfterRedirect)
/// and never counts as unsent. The answer to the request that follows is no answer to the POST
/// either: if it is refused with a status, the POST is retried only if the rule retries sent
/// failures of its method, or if it is idempotent ([`ReplaySafe`](crate::ReplaySafe)), whatever the
/// rule says of the status.
///
/// The wrapped policy decides as it would alone. That it is asked at all shows that an answer came,
/// so a policy that stops or refuses the redirect is tracked as well.
///
/// What is noted belongs to the task. If a middleware further in sends the request from a task that
/// it spawns, the redirect stays unseen, and so does what was processed. A redirect that a client
/// without retries meets inside the attempt counts as one of the request around it.
///
/// # Examples
///
/// ```
/// use reqwest::redirect::Policy;
/// use reqwest_retry_rules::tracked_redirects;
///
/// let client = reqwest::Client::builder()
///     .redirect(tracked_redirects(Policy::limited(3)))
///     .retry(reqwest::retry::never());
/// # let _ = client;
/// ```
pub fn tracked_redirects(policy: Policy) -> Policy {
    Policy::custom(move |attempt| {
        let replaces = replaces(attempt.status());
        let leads_back = |before: &Url| place(before) == place(attempt.url());
        if replaces && attempt.previous().iter().any(leads_back) {
            // If this is followed, what comes back is from a place that was asked before.
            note_replaced();
        } else {
            note_redirect(replaces);
        }
        policy.redirect(attempt)
    })
}

/// True if a redirect has another request sent: a POST goes on as a GET. The others have the same
/// request sent once more, elsewhere (RFC 9110, 15.4.8 and 15.4.9). reqwest does so with a PATCH
/// whatever the redirect; here that counts as another request, to be on the safe side.
fn replaces(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    )
}

/// True if the one redirect that was met is the answer itself, since it was not followed.
///
/// If it had been, the answer would come from elsewhere, or be no redirect that a policy is asked
/// about.
pub(in crate::middleware) fn is_unfollowed(response: &Response, asked: &Url) -> bool {
    matches!(response.status().as_u16(), 301..=303)
        && place(response.url()) == place(asked)
        && leads_somewhere(response)
}

/// True if a redirect can be followed: it names a URL, in characters that a URL may have (RFC 3986,
/// 2), so that no two parsers read it differently.
fn leads_somewhere(response: &Response) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok());
    location
        .filter(|location| location.bytes().all(is_plain))
        .and_then(|location| response.url().join(location).ok())
        .is_some_and(|target| Uri::try_from(target.as_str()).is_ok())
}

/// What of a URL is sent.
fn place(url: &Url) -> (&str, &str) {
    (
        url.scheme(),
        &url[Position::BeforeHost..Position::AfterQuery],
    )
}
