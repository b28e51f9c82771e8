//! The pure half: what may be sent again, when, and why not. Nothing here sleeps, sends, reads a
//! clock or draws a random number.

use std::time::Duration;

use http::HeaderName;

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
/// [`transient`](RetryRule::transient). The `..` is the supported form: a rule that lists every
/// field breaks when one is added.
///
/// The guide [choosing a rule](crate::guide::choosing_a_rule) goes through it question by question.
/// With the feature `serde` a rule can be [written in a file](#a-rule-in-a-file).
///
/// # Defaults
///
/// [`RetryRule::never`], which retries nothing.
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
    /// The methods for which a failure is retried although the request may have been processed:
    /// after a connection that closed, or a timeout. [`Methods::Any`] may repeat what was already
    /// done.
    pub sent_failures: Methods,
    /// Whether a failure that proves that the request was not processed
    /// ([`TransportError::is_unsent`]) is retried whatever the method. If not, such a failure is
    /// treated like any other, by `sent_failures`.
    ///
    /// **Redirects make a hole in the proof.** reqwest follows them by itself, and reports a
    /// connect error after a redirect exactly as one before it. A POST that was processed and
    /// answered 303, and whose next address cannot be reached, looks unsent and would be sent
    /// again, up to `max_retries` times. Use a client from
    /// [`client_builder`](crate::client_builder), or wrap your redirect policy in
    /// [`tracked_redirects`](crate::tracked_redirects): then no failure counts as unsent after a
    /// redirect was followed. A later `.redirect(policy)` on that builder undoes this.
    ///
    /// **A middleware further in may make another**, if it hands the request to a client of its own
    /// and then goes on by itself. If that client has this middleware, a request that it lost is
    /// noted. A request that was *answered* is not. For example, a failover gets a 500 to its POST,
    /// throws it away, and cannot reach the second host: the POST was processed, and the failure
    /// looks unsent. Such a middleware has to return the answer, or another error.
    ///
    /// A middleware that runs the rest of the chain twice, to hedge or to retry by itself, is not
    /// seen at all. If its first try is processed and its second reaches no server, the failure looks
    /// unsent. A second copy of this middleware behind it sees both.
    pub unsent_failures: bool,
    /// Whether a timeout may be retried. If not, none is, not even one that proves the request
    /// unsent ([`TransportError::ConnectTimeout`]).
    pub timeouts: bool,
    /// A header in which the service says whether to retry, in responses of status 400 or above:
    /// `true` overrides `statuses` and methods, `false` stops. Case and surrounding white space are
    /// ignored, the first value counts, and any other word has no effect.
    pub override_header: Option<HeaderName>,
    /// A header in which the service may forbid a retry, in responses of status 400 or above: its
    /// `false` stops, and nothing else in it counts. Case and surrounding white space are ignored,
    /// and the first value counts.
    pub veto_header: Option<HeaderName>,
    /// How the wait that the server asks for is treated.
    pub retry_after: RetryAfter,
    /// The wait if the server asks for none, unless the [row](StatusRule::backoff) of the
    /// response's status has a backoff of its own.
    pub backoff: Backoff,
    /// How long one send may go on retrying.
    pub limits: Limits,
}

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
/// A rule gives answers whatever its field values are. [`validate`](RetryRule::validate) names what
/// contradicts itself or can have no effect, and [`advice`](RetryRule::advice) what is valid and
/// rarely meant. Durations count in whole
/// milliseconds; fractions of one are dropped. A `match` on one of the enums in a rule breaks when
/// the enum gets a variant: they are closed on purpose, so that code which shows or stores rules
/// does not miss what is new.
impl RetryRule {
    /// The rule that retries nothing: the base on which to build others.
    ///
    /// # Defaults
    ///
    /// No retries, no statuses, no failures, `timeouts` on (it matters only if failures are
    /// retried), no override header, no veto header, no `Retry-After`, a backoff of zero that
    /// doubles, no limits.
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
    /// The backoff has full jitter; `Retry-After` has **no** spread. Clients that are asked to
    /// come back at the same moment do: for a crowd, set [`RetryAfter::spread`].
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

// Below the rule, so that its documentation begins with `never` and `transient`.
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
