//! Redirect tracking: what a connect error is worth once an answer has sent the request on.

use http::header::LOCATION;
use http::{StatusCode, Uri};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use url::Position;

use super::in_flight;

/// Wraps a redirect policy so that [`RetryMiddleware`](crate::RetryMiddleware) knows when a
/// redirect was met.
///
/// reqwest reports a connection that could not be opened on a later hop exactly as one on the
/// first: the same flags, the same sources, the original URL. Yet a POST that was answered 303 has
/// been processed, whatever becomes of the hop. With a tracked policy such a failure is
/// [`TransportError::AfterRedirect`](crate::TransportError::AfterRedirect) and never counts as
/// unsent. What comes of the hop is no answer to that POST either: where the hop is refused with a
/// status, the POST is retried only if the rule retries sent failures of its method, or if it is
/// idempotent ([`ReplaySafe`](crate::ReplaySafe)), whatever the rule says of the status.
///
/// The wrapped policy decides as it would alone. Being consulted at all shows that an answer came,
/// so a policy that stops or refuses the hop is tracked as well.
///
/// The note goes by the task. A middleware further in that sends the request from a task which it
/// spawns hides the hop, and with it what was processed; and a redirect that a client without
/// retries meets on the way counts as one of the request around it.
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
            // Where this is followed, what comes back is from a place that was asked before.
            in_flight::note_replaced();
        } else {
            in_flight::note_redirect(replaces);
        }
        policy.redirect(attempt)
    })
}

/// Whether a redirect has another request sent: a POST goes on as a GET. The others have the same
/// sent once more, elsewhere (RFC 9110, 15.4.8 and 15.4.9); reqwest does so with a PATCH whatever
/// the redirect, which here counts as another to be on the safe side.
fn replaces(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    )
}

/// Whether the one redirect that was met is the answer itself: it was not followed.
///
/// Had it been, what came back would be from elsewhere, or be no redirect that a policy is asked
/// about.
pub(crate) fn is_unfollowed(response: &Response, asked: &Url) -> bool {
    matches!(response.status().as_u16(), 301..=303)
        && place(response.url()) == place(asked)
        && leads_somewhere(response)
}

/// Whether a redirect can be followed: it names a URL, in characters that a URL may have (RFC 3986,
/// 2), of which no two parsers make something different.
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

/// A fresh [`reqwest::ClientBuilder`] for use with this crate: reqwest's default redirect policy,
/// [tracked](tracked_redirects), and reqwest's own retries switched off.
///
/// reqwest resends refused HTTP/2 streams by itself, up to twice a send, below every middleware;
/// two layers that retry multiply, and the one below is seen by no report.
///
/// A later `.redirect(policy)` or `.retry(..)` on this builder undoes that: write
/// `.redirect(tracked_redirects(policy))`, or with
/// [`RetryRule::unsent_failures`](crate::RetryRule::unsent_failures) a POST that was answered and
/// redirected may be sent again.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{RetryMiddleware, RetryRule, client_builder};
///
/// let client = ClientBuilder::new(client_builder().user_agent("shop/1.0").build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// # let _ = client;
///
/// // With a redirect policy of one's own:
/// use reqwest::redirect::Policy;
/// use reqwest_retry_rules::tracked_redirects;
///
/// let builder = client_builder().redirect(tracked_redirects(Policy::limited(3)));
/// # let _ = builder;
/// # Ok(())
/// # }
/// ```
pub fn client_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(tracked_redirects(Policy::default()))
        .retry(reqwest::retry::never())
}
