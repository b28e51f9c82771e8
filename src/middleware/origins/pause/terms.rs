//! How long a pause may be, and how sends come back after it.

use std::time::Duration;

/// How long sends wait for an origin that asked for rest.
///
/// Once an origin has asked for a wait, with `Retry-After` for instance (RFC 9110, 10.2.3), every
/// send to it waits until then, first attempts included, and does not find out for itself.
///
/// All who share a policy wait together. If the service limits each of your tenants by itself, one
/// tenant's 429 stops the others too: give each tenant a policy of its own, or leave pauses off.
///
/// # Defaults
///
/// At most 60 seconds, and each send adds up to half of the wait that was asked.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::PauseTerms;
///
/// let default = PauseTerms { max: Duration::from_secs(60), spread: 500 };
/// assert_eq!(PauseTerms::default(), default);
/// ```
///
/// # In a file
///
/// With the feature `serde`, the keys are `max_ms` and `spread`. One that is left out has its
/// default; one that is unknown is an error.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use std::time::Duration;
/// use reqwest_retry_rules::PauseTerms;
///
/// let terms: PauseTerms = serde_json::from_str(r#"{ "max_ms": 5000 }"#).unwrap();
/// assert_eq!(terms, PauseTerms { max: Duration::from_secs(5), ..PauseTerms::default() });
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PauseTerms {
    /// The longest pause, whatever the origin asks for: floored to milliseconds; zero for none. The
    /// [`cap`](crate::RetryAfter::cap) of the rule makes no pause shorter.
    pub max: Duration,
    /// How much later than the end of the pause a send may go, in thousandths of the wait that was
    /// asked: each waits for a random part of that, so that they do not come back together. With
    /// 500, a pause of 10 seconds ends for each send after 10 to 15; with 0, all go at once.
    ///
    /// A crowd that is still too large for the service is refused and waits again, all of it: let
    /// the spread be longer than the service needs to answer everybody once. [*Choosing a
    /// rule*](crate::guide::choosing_a_rule#4-how-many-are-you-and-how-long-is-the-outage-to-outlast)
    /// has the figures.
    pub spread: u32,
}

impl Default for PauseTerms {
    fn default() -> Self {
        Self {
            max: Duration::from_secs(60),
            spread: 500,
        }
    }
}
