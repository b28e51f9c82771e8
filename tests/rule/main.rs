//! The rule alone: what it decides, reads and writes, without a clock, a network or a runtime.

#[path = "../support/mod.rs"]
mod support;

mod config;
mod model;
mod retry_config;
mod rule_properties;
mod schedule;
#[cfg(feature = "serde")]
mod strategies;
mod vectors;
