//! Clients whose redirects are tracked, and whose refused streams are sent again.

use reqwest::redirect::Policy;
use reqwest::retry;

use super::redirects::tracked_redirects;
use crate::middleware::classify::is_refused_stream;

/// How often reqwest sends a refused stream again, as it does by default.
const RESENDS: u32 = 2;

/// A fresh [`reqwest::ClientBuilder`] for use with this crate: reqwest's default redirect policy,
/// [tracked](tracked_redirects), and a retry policy of reqwest's for refused HTTP/2 streams only.
///
/// A stream that the peer refuses (REFUSED_STREAM; RFC 9113, 8.7) was not processed, whatever its
/// method. reqwest sends it again, up to twice, below every middleware. Without that a burst of
/// requests over a fresh connection fails as soon as the server allows fewer streams than were
/// opened. reqwest's own default also sends a request again after a GOAWAY, which can reach a request
/// that was processed; this builder does not. Without this crate's feature `http2` nothing is sent
/// again here.
///
/// So under a server that refuses every stream, a rule with three retries makes twelve streams of one
/// request. The report counts four attempts.
///
/// A later `.redirect(policy)` or `.retry(..)` on this builder undoes all this. For a redirect policy
/// of your own use [`client_builder_with_redirects`]: otherwise, with
/// [`RetryRule::unsent_failures`](crate::RetryRule::unsent_failures), a POST that was answered and
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
/// # Ok(())
/// # }
/// ```
pub fn client_builder() -> reqwest::ClientBuilder {
    client_builder_with_redirects(Policy::default())
}

/// [`client_builder`] around a redirect policy of the caller's, which is [tracked](tracked_redirects).
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest::redirect::Policy;
/// use reqwest_retry_rules::client_builder_with_redirects;
///
/// let client = client_builder_with_redirects(Policy::limited(3)).build()?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
pub fn client_builder_with_redirects(policy: Policy) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(tracked_redirects(policy))
        .retry(refused_streams())
}

fn refused_streams() -> retry::Builder {
    retry::for_host(AnyHost)
        .no_budget()
        .max_retries_per_request(RESENDS)
        .classify_fn(|attempt| match attempt.error() {
            Some(error) if is_refused_stream(error) => attempt.retryable(),
            _ => attempt.success(),
        })
}

/// Equal to every host, since reqwest's retry policies are for one.
struct AnyHost;

impl PartialEq<&str> for AnyHost {
    fn eq(&self, _: &&str) -> bool {
        true
    }
}
