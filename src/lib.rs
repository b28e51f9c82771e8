//! Retries for [`reqwest`], decided by a rule that is data.
//!
//! **The promise: a request that may have been processed is never sent twice, unless the rule or
//! the caller says that its method may be repeated.**
//!
//! A [`RetryRule`] says which responses and transport failures may be retried, for which methods,
//! how long to wait and when to give up. [`RetryRule::decide`] is pure: it turns one failed attempt
//! into [`Decision::Wait`] or [`Decision::Stop`] with a reason. The [`RetryMiddleware`] is the loop
//! around it, for [`reqwest_middleware`]: what comes back is the last response or the last error,
//! unchanged.
//!
//! # Examples
//!
//! ```no_run
//! use reqwest_middleware::ClientBuilder;
//! use reqwest_retry_rules::{ResponseExt, RetryMiddleware, RetryRule, client_builder};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ClientBuilder::new(client_builder().build()?)
//!     .with(RetryMiddleware::new(RetryRule::transient()))
//!     .build();
//! let response = client.get("https://api.example.com/items").send().await?;
//! println!("{} after {} attempts", response.status(), response.attempts());
//! # Ok(())
//! # }
//! ```
//!
//! A later `.redirect(policy)` or `.retry(..)` on the builder undoes what [`client_builder`] is
//! for; its docs say what to write instead.
//!
//! [`RetryRule::transient`] makes up to 3 retries of an idempotent method (RFC 9110, 9.2.2): after
//! a status 429, 502, 503 or 504 and after a failure of the transport, timeouts included. It waits
//! as long as the server asks, up to 60 s; otherwise it backs off from 100 ms, doubling up to 1 s,
//! with full jitter. Every POST and PATCH is left alone.
//!
//! # What is retried, and what never is
//!
//! | what happened | as a class | counts as | a rule retries it |
//! | --- | --- | --- | --- |
//! | a response | | answered | by [`statuses`](RetryRule::statuses), the server's [`override_header`](RetryRule::override_header), or [`RetryPolicy::retry_if`] |
//! | no name, no connection, no TLS, no tunnel | [`Dns`](TransportError::Dns), [`Connect`](TransportError::Connect), [`ConnectTimeout`](TransportError::ConnectTimeout), [`Tls`](TransportError::Tls), [`Proxy`](TransportError::Proxy) | unsent | by [`unsent_failures`](RetryRule::unsent_failures), whatever the method, else like what was sent |
//! | the peer says that it did nothing | [`NotProcessed`](TransportError::NotProcessed) | unsent | likewise |
//! | any of these after a redirect, or after another client sent something on the way | [`AfterRedirect`](TransportError::AfterRedirect) | sent | by [`sent_failures`](RetryRule::sent_failures) |
//! | no answer in time, closed or reset before it, a body that broke off | [`Timeout`](TransportError::Timeout), [`Closed`](TransportError::Closed), [`Body`](TransportError::Body) | sent | by [`sent_failures`](RetryRule::sent_failures) |
//! | a certificate that does not verify, a peer that speaks no HTTP | [`Certificate`](TransportError::Certificate), [`Protocol`](TransportError::Protocol) | | never |
//! | an error of the request, of a redirect policy, of the caller's own body | none | | never |
//!
//! [`classify`] has the whole table, error by error.
//!
//! # Choosing a rule
//!
//! Start from [`RetryRule::transient`] and write what differs; [`RetryRule::never`] is the empty
//! base. Three things to know:
//!
//! 1. Always add jitter or spread: if all wait equally long, clients that failed together come back
//!    together. `transient()` has full jitter on its backoff and **no** spread on `Retry-After`:
//!    set [`RetryAfter::spread`] for a crowd of clients.
//! 2. Let [`backoff.max`](Backoff::max) grow with the number of clients: while a service is down,
//!    its load is their number divided by their mean wait.
//! 3. Keep the [`RetryBudget`], unless the request has to succeed in the end. With it any rule
//!    costs little more than no retries; without it immediate retries can turn a ten-minute outage
//!    into one without end.
//!
//! The guide [choosing a rule](guide::choosing_a_rule) has the rest, question by question.
//!
//! # Where things are
//!
//! - **The rule**, pure, on `std`, `http` and `httpdate`: [`RetryRule`], [`StatusRule`],
//!   [`Methods`], [`Backoff`], [`RetryAfter`], [`Limits`]; the facts it is asked about, [`Attempt`]
//!   and [`AttemptOutcome`] with its [`TransportError`]; its answer, [`Decision`] and
//!   [`StopReason`]. [`RetryRule::validate`] finds what cannot be meant, and
//!   [`RetryRule::schedule`] makes the [`Schedule`] of waits, limits and worst cases.
//!   [`parse_retry_after`] and [`retry_after_ms`] read what a server asks, by themselves.
//! - **The middleware**: [`RetryMiddleware`], [`RetryPolicy`] for what is not data,
//!   [`client_builder`] and [`tracked_redirects`], [`RetryBudget`].
//! - **What a request changes**, in its extensions: [`RetryRule`] or an `Arc` of one,
//!   [`RetryPolicy`], [`ReplaySafe`], [`TotalTimeout`], [`Deadline`], [`BodySource`] (which makes a
//!   [`FreshBody`]), [`RetryLog`], [`RetryLabel`]. **What a task changes**: [`with_rule`], and
//!   [`with_overrides`] with [`Overrides`]. Nearest wins, type by type.
//! - **What happened**: [`RetryReport`] through [`ResponseExt`] and [`RetryLog`],
//!   [`RetryObserver`]; of an error, [`ErrorExt`] and the few that are this crate's own,
//!   [`RetryError`]; in a middleware further in, [`ResendCount`].
//! - **Guides**: [choosing a rule](guide::choosing_a_rule), [coming from
//!   reqwest-retry](guide::coming_from_reqwest_retry), [what is retried and
//!   why](guide::what_is_retried_and_why), [testing your own rule](guide::testing_your_own_rule).
//!
//! # Scope of this crate
//!
//! It retries; it is no circuit breaker, no rate limiter, no hedging and no cache, and it has no
//! presets for vendors. It sends through `reqwest` and nothing else. A retry layer further in that
//! hides its attempts cannot be seen from here: switch reqwest's own off, as [`client_builder`]
//! does.
//!
//! # Features
//!
//! | feature | default | brings |
//! | --- | --- | --- |
//! | `tracing` | on | retries and stops as events |
//! | `task-local-extensions` | on | overrides found in that crate's map |
//! | `http2` | on | HTTP/2 refusals told apart from other closings |
//! | `rustls` | on | a bad certificate told apart from a TLS failure that may pass |
//! | `serde` | off | `Serialize` and `Deserialize` for a rule and its parts |
//!
//! A feature that is off makes an answer less precise, never so that something is processed twice.
//! The minimum supported Rust version is 1.85, that of reqwest; the tests and benchmarks need a
//! newer one.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod guide;
mod middleware;
mod rule;

pub use middleware::{
    AttemptRecord, AttemptResult, BodySource, BudgetTerms, Deadline, ErrorExt, FreshBody,
    InvalidBudget, Judgement, LogLevel, Overrides, PauseTerms, RecoveredEvent, ReplaySafe,
    ResendCount, ResponseExt, ResponseHead, RetryBudget, RetryError, RetryEvent, RetryLabel,
    RetryLog, RetryMiddleware, RetryObserver, RetryPolicy, RetryReport, StopEvent, TotalTimeout,
    classify, client_builder, client_builder_with_redirects, tracked_redirects, with_overrides,
    with_rule,
};
pub use rule::{
    Attempt, AttemptOutcome, Backoff, Decision, InvalidRule, Jitter, Limits, Methods, RetryAfter,
    RetryAfterCap, RetryAfterRole, RetryAfterSource, RetryRule, RuleFault, Schedule,
    ScheduledRetry, StatusMatch, StatusRule, StopReason, TransportError, WaitFormat, WaitHeader,
    WaitSource, parse_retry_after, retry_after_ms,
};

/// The snippets of the README, as tests. One of them reads a rule from text.
#[cfg(all(doctest, feature = "serde"))]
#[doc = include_str!("../README.md")]
struct Readme;
