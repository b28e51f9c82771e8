#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Retry rules for reqwest.

mod middleware;
mod rule;

pub use middleware::{
    AttemptRecord, AttemptResult, BodySource, Deadline, ErrorExt, FreshBody, InvalidBudget,
    Overrides, ReplaySafe, ResendCount, ResponseExt, ResponseHead, RetryBudget, RetryError,
    RetryEvent, RetryLabel, RetryLog, RetryMiddleware, RetryObserver, RetryPolicy, RetryReport,
    StopEvent, TotalTimeout, classify, client_builder, tracked_redirects, with_overrides,
    with_retry,
};
pub use rule::{
    Attempt, AttemptOutcome, Backoff, Decision, InvalidRule, Jitter, Limits, Methods, RetryAfter,
    RetryAfterCap, RetryAfterRole, RetryAfterSource, RetryRule, RuleFault, StatusMatch, StatusRule,
    StopReason, TransportError, WaitFormat, WaitHeader, WaitSource, parse_retry_after,
    retry_after_ms,
};
