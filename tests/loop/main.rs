//! One send from its first attempt to its last: what the loop makes of each outcome.
//!
//! The clock of most tests is paused, and a transport answers from a queue; a few count what
//! reaches a real server.
#![allow(clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod bad_closures;
mod budget;
mod equal_attempts;
mod extensions;
mod limits;
mod long_reports;
mod nesting;
mod origin_pauses;
mod overrides;
mod overrides_in_request;
mod policy;
mod refusing_at_once;
mod reports;
mod reports_left_behind;
mod retry_after;
mod routes;
mod send_loop;
mod several_at_once;
mod shared_map;
mod shared_policy;
mod stop_events;
#[cfg(feature = "serde")]
mod strategies;
mod total_timeouts;
mod tracing;
mod work;
