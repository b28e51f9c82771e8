//! What the caller's own judge says of a failed work.

use std::error::Error as StdError;
use std::time::Duration;

use crate::rule::Methods;

/// What a failed piece of work means: the answer of the judge of
/// [`RetryPolicy::run_judged`](crate::RetryPolicy::run_judged).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Failure, Methods};
///
/// #[derive(Debug)]
/// enum Error {
///     Http(reqwest::Error),
///     Busy { wait: Duration },
///     NoSuchUser,
/// }
///
/// fn judge(error: &Error) -> Failure<'_> {
///     match error {
///         Error::Http(error) => Failure::ByRule(error),
///         // The work is done again only if everything that it sent may be repeated.
///         Error::Busy { wait } => Failure::RetryAfter(Methods::Idempotent, *wait),
///         Error::NoSuchUser => Failure::Stop,
///     }
/// }
///
/// let busy = Error::Busy { wait: Duration::from_secs(2) };
/// assert!(matches!(judge(&busy), Failure::RetryAfter(Methods::Idempotent, _)));
/// assert!(matches!(judge(&Error::NoSuchUser), Failure::Stop));
/// # let _ = Error::Http;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure<'a> {
    /// The rule judges this error, or what is behind it: see
    /// [what failed](crate::RetryPolicy::run).
    ByRule(&'a (dyn StdError + 'static)),
    /// The work is done again, if these methods allow every send of it that may have been processed.
    /// The count, the limits, the backoff and the budget of the rule apply.
    ///
    /// **Sends of a client without this middleware are not looked at**, whatever the methods. So
    /// [`Methods::Idempotent`] does not hold back a POST of such a client: it is sent again. With
    /// [`Methods::Any`] a POST that was processed is sent again by any client.
    Retry(Methods),
    /// Like [`Retry`](Self::Retry), and the server asks for this wait: the cap, the role and the
    /// spread of the rule apply to it.
    RetryAfter(Methods, Duration),
    /// The error comes back at once.
    Stop,
}
