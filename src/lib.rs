//! Retries for `reqwest`, decided by a rule that is data.
//!
//! **The promise: a request that may have been processed is never sent twice, unless the rule or
//! the caller says that its method may be repeated.**
//!
//! A [`RetryRule`] says which responses and transport failures may be retried, for which methods,
//! how long to wait and when to give up. [`RetryRule::decide`] is pure: it turns one failed attempt
//! into [`Decision::Wait`] or [`Decision::Stop`] with a reason. The [`RetryMiddleware`] is the loop
//! around it, for `reqwest_middleware`: what comes back is the last response or the last error,
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
//! for. With a redirect policy of your own, start from [`client_builder_with_redirects`].
//!
//! [`RetryRule::transient`] makes up to 3 retries of an idempotent method (RFC 9110, 9.2.2): after
//! a status 429, 502, 503 or 504 and after a failure of the transport, timeouts included. It waits
//! as long as the server asks, up to 60 s; otherwise it backs off from 100 ms, doubling up to 1 s,
//! with full jitter. Every POST and PATCH is left alone.
//!
//! # What is retried, and what never is
//!
//! | what happened | counts as | a rule retries it by |
//! | --- | --- | --- |
//! | a response | answered | [`statuses`](RetryRule::statuses), [`override_header`](RetryRule::override_header), [`retry_if`](RetryPolicy::retry_if) |
//! | no name, no connection, no TLS, no tunnel | unsent | [`unsent_failures`](RetryRule::unsent_failures), whatever the method |
//! | the peer says that it did nothing | unsent | likewise |
//! | one of these after a redirect was followed | sent | [`sent_failures`](RetryRule::sent_failures) |
//! | no answer in time, closed or reset, a body that broke off | sent | [`sent_failures`](RetryRule::sent_failures), [`timeouts`](RetryRule::timeouts) |
//! | a bad certificate, a peer that speaks no HTTP | – | never |
//! | an error of the request, of a redirect policy, of the caller's own body | – | never |
//!
//! With `unsent_failures: false` a request that was never sent is retried only if its method allows
//! it, like one that may have been processed. Each failure is one [`TransportError`], and
//! [`classify`] has the whole table, error by error. A body in memory can be sent again. A stream, and
//! so every multipart form, can be only if nothing of it was read, or with a [`BodySource`].
//!
//! # Where things are
//!
//! - **Guides**, the place to start: [choosing a rule](guide::choosing_a_rule), [settings in a
//!   file][in a file], [one request, one task](guide::one_request_one_task), [the
//!   client](guide::the_client) with a picture of the chain, [what is retried and
//!   why](guide::what_is_retried_and_why), [why was my request not
//!   retried?](guide::why_was_my_request_not_retried), [testing your own
//!   rule](guide::testing_your_own_rule), [coming from
//!   reqwest-retry](guide::coming_from_reqwest_retry), [recipes](guide::recipes), [what it leaves
//!   out, and why](guide::what_it_leaves_out), [what it costs](guide::what_it_costs).
//! - **The rule**, pure, on `std`, `http` and `httpdate`: [`RetryRule`], [`StatusRule`],
//!   [`Methods`], [`Backoff`], [`RetryAfter`], [`Limits`]. The facts that it is asked about are
//!   [`Attempt`] and [`AttemptOutcome`] with its [`TransportError`]; its answer is [`Decision`] with
//!   a [`StopReason`]. [`RetryRule::validate`] finds what contradicts itself or can have no effect,
//!   and [`RetryRule::schedule`] makes the [`Schedule`] of waits, limits and worst cases.
//!   [`parse_retry_after`] and [`retry_after_ms`] read what a server asks, by themselves.
//! - **The middleware**: [`RetryMiddleware`]; [`RetryPolicy`] for what is not data, whose closures
//!   see a [`ResponseHead`] and give a [`Judgement`], and whose routes, each with a
//!   [`RoutePattern`], have rules of their own; [`RetryConfig`][config] for what of it stands in a file;
//!   [`RetryBudget`]; [`client_builder`], [`client_builder_with_redirects`] and
//!   [`tracked_redirects`].
//! - **Work beyond one head**, such as a body that is decoded or answers that are joined:
//!   [`RetryPolicy::run`], and [`RetryPolicy::run_judged`] with [`Failure`]. The promise holds for
//!   the whole work, as far as its clients have this middleware. Whoever calls `run` vouches for the
//!   sends of other clients, which are not seen.
//! - **What a request changes**, in its extensions: [`RetryRule`] or an `Arc` of one,
//!   [`RetryPolicy`], [`ReplaySafe`], [`TotalTimeout`], [`Deadline`], [`BodySource`] (which makes a
//!   [`FreshBody`]), [`RetryLog`], [`RetryLabel`], [`Overrides`]. **What a task changes**:
//!   [`with_rule`], and [`with_overrides`] with [`Overrides`]. Nearest wins, kind by kind.
//! - **What happened**: [`RetryReport`] through [`ResponseExt`] and [`RetryLog`],
//!   [`RetryObserver`] and [`LogLevel`]; of an error, [`ErrorExt`] and the few that are this crate's own,
//!   [`RetryError`]; in a middleware further in (nearer the network), [`ResendCount`].
//!
//! # Scope of this crate
//!
//! It retries; it is no circuit breaker, no rate limiter, no hedging and no cache, and it has no
//! presets for vendors. It sends through `reqwest` and nothing else, on tokio, with its time driver
//! on. A retry layer further in that hides its attempts cannot be seen from here; of reqwest's own,
//! [`client_builder`] leaves only what is safe for every method.
//!
//! # Features
//!
//! | feature | default | brings |
//! | --- | --- | --- |
//! | `tracing` | on | retries and stops as events |
//! | `http2` | on | HTTP/2 refusals told apart from other closings |
//! | `rustls` | on | a bad certificate told apart from a TLS failure that may pass |
//! | `serde` | off | `Serialize` and `Deserialize` for a rule and its parts, and [`RetryConfig`][config]: [settings in a file][in a file] |
//! | `astral` | off | [`RetryMiddleware`] for `astral-reqwest-middleware` [too](guide::coming_from_reqwest_retry#coming-from-the-fork) |
//! | `task-local-extensions` | off | overrides found in that crate's map, [with its traps](guide::one_request_one_task#the-map-of-task-local-extensions) |
//!
//! A feature that is off makes an answer less precise, never so that something is processed twice.
//! The minimum supported Rust version is 1.85, that of reqwest; the tests and benchmarks need a
//! newer one.
//!
#![cfg_attr(feature = "serde", doc = "[in a file]: guide::settings_in_a_file")]
#![cfg_attr(feature = "serde", doc = "[config]: RetryConfig")]
#![cfg_attr(not(feature = "serde"), doc = "[in a file]: #features")]
#![cfg_attr(not(feature = "serde"), doc = "[config]: #features")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod guide;
mod middleware;
mod rule;

#[cfg(feature = "serde")]
pub use middleware::RetryConfig;
pub use middleware::{
    AttemptRecord, AttemptResult, BodySource, BudgetTerms, Deadline, ErrorExt, Failure, FreshBody,
    InvalidBudget, InvalidRoute, Judgement, LogLevel, Overrides, PauseTerms, RecoveredEvent,
    ReplaySafe, ResendCount, ResponseExt, ResponseHead, RetryBudget, RetryError, RetryEvent,
    RetryLabel, RetryLog, RetryMiddleware, RetryObserver, RetryPolicy, RetryReport, RoutePattern,
    SharedPolicy, StopEvent, TotalTimeout, classify, client_builder, client_builder_with_redirects,
    tracked_redirects, with_overrides, with_rule,
};
pub use rule::{
    Advice, Attempt, AttemptOutcome, Backoff, Decision, InvalidRule, Jitter, Limits, Methods,
    RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource, RetryRule, RuleFault, Schedule,
    ScheduledRetry, StatusMatch, StatusRule, StopReason, TransportError, WaitFormat, WaitHeader,
    WaitSource, parse_retry_after, retry_after_ms,
};

/// The snippets of the README, as tests. One of them reads a rule from text.
#[cfg(all(doctest, feature = "serde"))]
#[doc = include_str!("../README.md")]
struct Readme;
