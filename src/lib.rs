#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Retry rules for reqwest.

#[allow(dead_code)]
mod rule;

pub use rule::{
    Attempt, AttemptOutcome, Decision, RetryRule, StopReason, TransportError, WaitSource,
};
pub use rule::{Backoff, Jitter, Limits, Methods, StatusMatch, StatusRule};
pub use rule::{InvalidRule, RuleFault};
pub use rule::{
    RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource, WaitFormat, WaitHeader,
};
pub use rule::{parse_retry_after, retry_after_ms};
