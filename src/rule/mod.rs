//! The pure half: what may be sent again, when, and why not. Nothing here sleeps, sends, reads a
//! clock or draws a random number.

use std::time::Duration;

use http::HeaderName;

mod advice;
mod attempt;
mod backoff;
#[cfg(feature = "serde")]
pub(crate) mod config;
mod decide;
mod limits;
mod methods;
mod millis;
mod outcome;
mod retry_after;
mod schedule;
mod status;
mod stop;
mod validate;
mod wait;

pub use advice::Advice;
pub use attempt::Attempt;
pub use backoff::{Backoff, Jitter};
pub use decide::Decision;
pub use limits::Limits;
pub use methods::Methods;
pub(crate) use methods::is_idempotent;
pub use outcome::{AttemptOutcome, TransportError};
pub(crate) use retry_after::http_date;
pub use retry_after::{
    RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource, WaitFormat, WaitHeader,
    parse_retry_after, retry_after_ms,
};
pub use schedule::{Schedule, ScheduledRetry};
pub use status::{StatusMatch, StatusRule};
pub use stop::StopReason;
pub use validate::{InvalidRule, RuleFault};
pub use wait::WaitSource;

/// Which failed requests are sent again, after what wait, and when to give up: data from which
/// [`decide`](RetryRule::decide) answers.
///
/// A rule is written as its difference from one of two others, [`never`](RetryRule::never) and
/// [`transient`](RetryRule::transient): `RetryRule { max_retries: 5, ..RetryRule::transient() }`.
/// The `..` is the supported form; a rule that lists every field breaks when one is added. So does
/// a `match` when one of the enums in a rule gets a variant: they are closed on purpose, so that
/// code which shows or stores rules is told what is new.
///
/// Durations count in whole milliseconds; fractions of one are dropped. A rule gives answers
/// whatever its field values are, and [`validate`](RetryRule::validate) names what cannot be meant.
///
/// # Choosing a rule
///
/// Start from `transient` and write what differs; `never` is the empty base.
///
/// 1. Always add jitter ([`Backoff::jitter`]) or spread ([`RetryAfter::spread`]): if all wait
///    equally long, clients that failed together come back together.
/// 2. Let [`Backoff::max`] grow with the number of clients: while a service is down, its load is
///    their number divided by their mean wait.
/// 3. Keep the [`RetryBudget`](crate::RetryBudget), unless the request has to succeed in the end.
///    Without one, wait long, with jitter and a hard limit.
///
/// The guide [choosing a rule](crate::guide::choosing_a_rule) has the rest, question by question.
///
/// # Defaults
///
/// [`RetryRule::never`], which retries nothing.
///
/// # Configuration
///
/// With the feature `serde` a rule can be written in TOML, JSON or any other format that says
/// what its values are. A field that is left out is as in `never`, one that is unknown is an
/// error, and so is a rule that [`validate`](RetryRule::validate) finds fault with. Durations are
/// whole milliseconds in fields that end in `_ms`; one that is longer than `u64::MAX` of them is
/// written as `u64::MAX`.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use std::time::Duration;
/// use reqwest_retry_rules::{Jitter, Methods, RetryAfterCap, RetryRule};
///
/// let rule: RetryRule = toml::from_str(r#"
///     max_retries = 3
///     statuses = [                            # the first that contains a status decides
///         { statuses = [429], methods = "any" },
///         { statuses = ["502-504", "6xx"], methods = ["GET", "PUT"] },
///     ]
///     sent_failures = "idempotent"            # or "never", "any", a list as above
///     unsent_failures = true
///     timeouts = true
///     override_header = "x-should-retry"
///
///     [retry_after]
///     source = "ms_then_header"               # or "ignore", "header"
///     cap = { stop_above_ms = 60000 }         # or { backoff_above_ms = 60000 }, "no_cap"
///     zero_means_backoff = false
///     role = "replace"                        # or "floor"
///     spread = 0
///     ## or "seconds", "millis", "unix_millis", "http_date"
///     headers = [{ name = "x-ratelimit-reset", format = "unix_seconds" }]
///
///     [backoff]
///     base_ms = 100
///     max_ms = 1000
///     growth = 2000
///     jitter = { proportional = { lo = 800, hi = 1200 } }   # or "full", "no_jitter"
///
///     [limits]
///     soft_elapsed_ms = 300000
///     min_retries = 2
///     hard_elapsed_ms = 600000
/// "#)
/// .unwrap();
/// assert_eq!(rule.statuses[0].methods, Methods::Any);
/// assert_eq!(rule.retry_after.cap, RetryAfterCap::StopAbove(Duration::from_secs(60)));
/// assert_eq!(rule.backoff.jitter, Jitter::Proportional { lo: 800, hi: 1200 });
///
/// let error = toml::from_str::<RetryRule>("max_retries = -1").unwrap_err();
/// assert_eq!(
///     error.message(),
///     "invalid value: integer `-1`, \
///      expected `max_retries` to be a whole number from 0 to 4294967295",
/// );
/// # }
/// ```
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::Method;
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, Methods, RetryRule, StopReason, TransportError,
/// };
///
/// let rule = RetryRule {
///     max_retries: 1,
///     sent_failures: Methods::Idempotent,
///     ..RetryRule::never()
/// };
/// let closed = AttemptOutcome::Failure(TransportError::Closed);
///
/// let first = Attempt::new(&Method::GET);
/// assert_eq!(rule.decide(&closed, &first), Decision::Wait(Duration::ZERO));
/// let second = Attempt { attempt: 1, ..first };
/// assert_eq!(rule.decide(&closed, &second), Decision::Stop(StopReason::Exhausted));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryRule {
    /// The most retries that are made; the first attempt is not counted.
    pub max_retries: u32,
    /// The statuses for which a response is retried, each with its methods. The first entry that
    /// contains a status decides about it.
    pub statuses: Vec<StatusRule>,
    /// The methods for which a failure is retried where the request may have been processed: after
    /// a connection that closed, or a timeout. [`Methods::Any`] may repeat what was already done.
    pub sent_failures: Methods,
    /// Whether a failure that proves that the request was not processed
    /// ([`TransportError::is_unsent`]) is retried whatever the method. Without it such a failure
    /// is treated like any other, by `sent_failures`.
    ///
    /// With a client that does not track redirects the proof has a hole. reqwest follows
    /// redirects by itself and reports a connect error on a later hop exactly as one on the
    /// first: a POST that was processed and answered 303, whose next hop cannot be reached, looks
    /// unsent and would be sent again, up to `max_retries` times. A client from
    /// [`client_builder`](crate::client_builder), or one whose redirect policy is wrapped in
    /// [`tracked_redirects`](crate::tracked_redirects), notes that a hop was taken, and no failure
    /// after it counts as unsent. The same builder switches off reqwest's own retries, which send a
    /// refused HTTP/2 stream again, up to twice, below everything that this rule decides and
    /// counts.
    ///
    /// A later `.redirect(policy)` or `.retry(..)` on that builder undoes this: write
    /// `.redirect(tracked_redirects(policy))`, and no `.retry`.
    ///
    /// A middleware further in that hands the request to another client and then goes on by itself
    /// makes a second hole. What that client sent is noted only if it has this middleware, with
    /// retries.
    pub unsent_failures: bool,
    /// Whether a timeout may be retried. If not, none is, not even one that proves the request
    /// unsent ([`TransportError::ConnectTimeout`]).
    pub timeouts: bool,
    /// A header in which the service says whether to retry, in responses of status 400 or above:
    /// `true` overrides `statuses` and methods, `false` stops. Case and surrounding white space
    /// are ignored; any other value has no effect.
    pub override_header: Option<HeaderName>,
    /// A header in which the service may forbid a retry, in responses of status 400 or above: its
    /// `false` stops, and nothing else in it counts. Case and surrounding white space are ignored.
    pub veto_header: Option<HeaderName>,
    /// How the wait that the server asks for is treated.
    pub retry_after: RetryAfter,
    /// The wait where the server asks for none.
    pub backoff: Backoff,
    /// How long one send may go on retrying.
    pub limits: Limits,
}

impl RetryRule {
    /// The rule that retries nothing: the base on which to build others.
    ///
    /// # Defaults
    ///
    /// No retries, no statuses, no failures, `timeouts` on (it matters only where failures are
    /// retried), no override header, no veto header, no `Retry-After`, a backoff of zero that doubles, no limits.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{Methods, RetryRule};
    ///
    /// let rule = RetryRule { max_retries: 3, unsent_failures: true, ..RetryRule::never() };
    /// assert_eq!(rule.sent_failures, Methods::Never);
    /// assert_eq!(RetryRule::default(), RetryRule::never());
    /// ```
    pub fn never() -> Self {
        RetryRule {
            max_retries: 0,
            statuses: Vec::new(),
            sent_failures: Methods::Never,
            unsent_failures: false,
            timeouts: true,
            override_header: None,
            veto_header: None,
            retry_after: RetryAfter::default(),
            backoff: Backoff::default(),
            limits: Limits::default(),
        }
    }

    /// The rule for failures that usually pass by themselves.
    ///
    /// # Defaults
    ///
    /// - 3 retries;
    /// - statuses 429 (RFC 6585, 4), 502, 503 and 504 (RFC 9110, 15.6), and failures, timeouts
    ///   included, for idempotent methods; none for others, not even what was never sent;
    /// - a backoff of 100 ms that doubles up to 1 s, with full jitter;
    /// - `retry-after-ms` and `Retry-After` up to 60 s; the send stops if they ask for more, and a
    ///   zero, or a moment that has passed, means the backoff;
    /// - no override header, no veto header, no limits.
    ///
    /// The backoff has full jitter; `Retry-After` has **no** spread. Clients that are told to come
    /// back at the same moment do: for a crowd, set [`RetryAfter::spread`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::{HeaderMap, Method, StatusCode};
    /// use reqwest_retry_rules::{Attempt, AttemptOutcome, Decision, RetryRule, StopReason};
    ///
    /// let rule = RetryRule::transient();
    /// let headers = HeaderMap::new();
    /// let outcome =
    ///     AttemptOutcome::Response { status: StatusCode::SERVICE_UNAVAILABLE, headers: &headers };
    ///
    /// let get = Attempt { random: 0.5, ..Attempt::new(&Method::GET) };
    /// assert_eq!(rule.decide(&outcome, &get), Decision::Wait(Duration::from_millis(50)));
    /// let post = Attempt::new(&Method::POST);
    /// assert_eq!(rule.decide(&outcome, &post), Decision::Stop(StopReason::MethodNotAllowed));
    /// ```
    pub fn transient() -> Self {
        RetryRule {
            max_retries: 3,
            statuses: vec![StatusRule::new([429, 502, 503, 504], Methods::Idempotent)],
            sent_failures: Methods::Idempotent,
            retry_after: RetryAfter {
                source: RetryAfterSource::MsThenHeader,
                cap: RetryAfterCap::StopAbove(Duration::from_secs(60)),
                zero_means_backoff: true,
                ..RetryAfter::default()
            },
            backoff: Backoff {
                base: Duration::from_millis(100),
                max: Duration::from_secs(1),
                growth: 2000,
                jitter: Jitter::Full,
            },
            ..RetryRule::never()
        }
    }
}

impl Default for RetryRule {
    fn default() -> Self {
        RetryRule::never()
    }
}
