#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Retry rules for reqwest.

mod rule;

pub use rule::{AttemptOutcome, TransportError};
