//! Guides: four short reads, from choosing a rule to testing it.
//!
//! This module is there to be read: it has no items. Every snippet in it is compiled and, where it
//! sends nothing, run.
//!
//! - [Choosing a rule](choosing_a_rule): what to decide, in which order.
//! - [Coming from reqwest-retry](coming_from_reqwest_retry): call by call, and what then behaves
//!   differently.
//! - [What is retried and why](what_is_retried_and_why): what a failure proves about a request.
//! - [Testing your own rule](testing_your_own_rule): without a network and without waiting.

// The guides name the crate's types as its own docs do.
#[cfg(doc)]
use crate::*;

#[doc = include_str!("choosing_a_rule.md")]
pub mod choosing_a_rule {}

#[doc = include_str!("coming_from_reqwest_retry.md")]
pub mod coming_from_reqwest_retry {}

#[doc = include_str!("what_is_retried_and_why.md")]
pub mod what_is_retried_and_why {}

#[doc = include_str!("testing_your_own_rule.md")]
pub mod testing_your_own_rule {}
