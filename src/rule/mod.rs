//! The pure half: what may be sent again, when, and why not.

use std::time::Duration;

use http::HeaderName;

mod backoff;
mod decide;
mod limits;
mod methods;
mod millis;
mod outcome;
mod retry_after;
mod status;
mod validate;

pub use backoff::{Backoff, Jitter};
pub use decide::{Attempt, Decision, StopReason, WaitSource};
pub use limits::Limits;
pub use methods::Methods;
pub use outcome::{AttemptOutcome, TransportError};
pub use retry_after::{
    RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource, WaitFormat, WaitHeader,
    parse_retry_after, retry_after_ms,
};
pub use status::{StatusMatch, StatusRule};
pub use validate::{InvalidRule, RuleFault};

/// What may be sent again, when, and when to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// The most retries, the first attempt not counted.
    pub max_retries: u32,
    /// Which statuses are retried, for which methods; the first that contains a status decides.
    pub statuses: Vec<StatusRule>,
    /// The methods for which a failure is retried that the server may have processed.
    pub sent_failures: Methods,
    /// Whether a failure that proves that nothing was processed is retried for every method.
    pub unsent_failures: bool,
    /// Whether a timeout counts as a failure that can be retried.
    pub timeouts: bool,
    /// A response header in which the server says `true` or `false`.
    pub override_header: Option<HeaderName>,
    /// What is made of the wait that the server asks for.
    pub retry_after: RetryAfter,
    /// The wait where the server asks for none.
    pub backoff: Backoff,
    /// How long retrying may go on.
    pub limits: Limits,
}

impl RetryRule {
    /// The rule that retries nothing.
    pub fn never() -> Self {
        RetryRule {
            max_retries: 0,
            statuses: Vec::new(),
            sent_failures: Methods::Never,
            unsent_failures: false,
            timeouts: true,
            override_header: None,
            retry_after: RetryAfter::default(),
            backoff: Backoff::default(),
            limits: Limits::default(),
        }
    }

    /// The rule for what usually passes by itself.
    pub fn transient() -> Self {
        RetryRule {
            max_retries: 3,
            statuses: vec![StatusRule {
                statuses: [429, 502, 503, 504].map(StatusMatch::Code).to_vec(),
                methods: Methods::Idempotent,
            }],
            sent_failures: Methods::Idempotent,
            backoff: Backoff {
                base: Duration::from_millis(100),
                max: Duration::from_millis(1000),
                growth: 2000,
                jitter: Jitter::Full,
            },
            retry_after: RetryAfter {
                source: RetryAfterSource::MsThenHeader,
                cap: RetryAfterCap::StopAbove(Duration::from_secs(60)),
                ..RetryAfter::default()
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
