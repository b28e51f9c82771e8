use std::time::{Duration, SystemTime};

use http::Method;

use super::Methods;
use super::methods::is_idempotent;

/// The facts by which a failed attempt is judged, besides its outcome:
/// [`RetryRule::decide`](crate::RetryRule::decide) takes both.
///
/// They come in as values, the clock and chance included, so that one rule gives the same answer
/// everywhere.
///
/// # Examples
///
/// ```
/// use http::Method;
/// use reqwest_retry_rules::Attempt;
///
/// let third = Attempt { attempt: 2, ..Attempt::new(&Method::POST) };
/// assert!(!third.idempotent);
/// let vouched_for = Attempt { idempotent: true, ..third };
/// assert_eq!(vouched_for.attempt, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// How many retries were already made: 0 when the first attempt fails.
    pub attempt: u32,
    /// A sample of `[0, 1)` for jitter and spread. Values outside count as the nearest inside; NaN
    /// counts as 0.
    pub random: f64,
    /// The time of day. Without it a date or another moment in a header means nothing.
    pub now: Option<SystemTime>,
    /// How long the send has taken so far, all attempts and waits together.
    pub elapsed: Duration,
    /// How much time is left to the send, if something bounds it.
    pub remaining: Option<Duration>,
    /// A wait that the caller knows the server asks for. It takes precedence over the headers, and
    /// applies to failures too.
    pub server_delay: Option<Duration>,
    /// If the caller's own test of the response held, the methods for which it did. Such a response
    /// is retried for these methods too, whether or not a [`StatusRule`](crate::StatusRule)
    /// contains its status; only a row for [`Methods::Never`] outranks it.
    pub condition: Option<&'a Methods>,
    /// Whether the request may be sent twice without doing more than once (RFC 9110, 9.2.2).
    ///
    /// Take it from the method, or from somebody who knows the service. A request that carries an
    /// `Idempotency-Key` is not idempotent for that alone: a server that does not know the header
    /// ignores it.
    pub idempotent: bool,
    /// Whether the request can be sent again at all, body included.
    pub replayable: bool,
    /// Whether the caller's own test refuses a retry.
    pub vetoed: bool,
    /// Whether the request itself was processed, and the outcome is that of another request that
    /// went in its place: a GET after a POST that was answered 303. Such a request is sent again
    /// only if it is idempotent, or of a method in
    /// [`sent_failures`](crate::RetryRule::sent_failures).
    pub replaced: bool,
    /// How much longer the origin asks everybody to leave it alone, if it does. No retry starts
    /// sooner than that.
    pub paused: Option<Duration>,
}

impl<'a> Attempt<'a> {
    /// The first attempt with `method`, from which to set what is known to be different.
    ///
    /// # Defaults
    ///
    /// No retry made, a `random` of 0, no clock, nothing elapsed, no time limit, nothing asked or
    /// tested by the caller, replayable, neither vetoed nor replaced nor paused.
    ///
    /// Idempotent as the method is: GET, HEAD, OPTIONS, TRACE, PUT, DELETE (RFC 9110, 9.2.2) and
    /// QUERY are.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Method;
    /// use reqwest_retry_rules::Attempt;
    ///
    /// let first = Attempt::new(&Method::PUT);
    /// assert_eq!((first.attempt, first.elapsed), (0, Duration::ZERO));
    /// assert!(first.idempotent && first.replayable);
    /// ```
    pub fn new(method: &'a Method) -> Self {
        Attempt {
            method,
            attempt: 0,
            random: 0.0,
            now: None,
            elapsed: Duration::ZERO,
            remaining: None,
            server_delay: None,
            condition: None,
            idempotent: is_idempotent(method),
            replayable: true,
            vetoed: false,
            replaced: false,
            paused: None,
        }
    }

    /// True if `methods` allow it.
    #[inline]
    pub(super) fn is_among(&self, methods: &Methods) -> bool {
        methods.allows(self.method, self.idempotent)
    }
}
