//! Guides: short reads, from choosing a rule to testing it.
//!
//! This module is there to be read: it has no items. Every snippet in it is compiled and, if it
//! sends nothing, run.
//!
//! - [Choosing a rule](choosing_a_rule): what to decide, in which order.
//! - [Settings in a file][in a file]: a rule or a whole policy without code, rules
//!   for single routes.
//! - [One request, one task](one_request_one_task): settings of its own for a call, and which wins.
//! - [The client](the_client): the chain of middlewares, redirects, TLS, and a client that is handed
//!   in.
//! - [What is retried and why](what_is_retried_and_why): what a failure proves about a request.
//! - [Why was my request not retried?](why_was_my_request_not_retried) The reason of each stop, and
//!   what to do.
//! - [Testing your own rule](testing_your_own_rule): without a network and without waiting.
//! - [Coming from reqwest-retry](coming_from_reqwest_retry): call by call, and what then behaves
//!   differently.
//! - [Recipes](recipes): what people build around retries, each short enough to be copied.
//! - [What it leaves out, and why](what_it_leaves_out): what others have, and what to use in its
//!   place.
//! - [What it costs](what_it_costs): what the middleware adds to a request, and what grows.
//!
#![cfg_attr(feature = "serde", doc = "[in a file]: settings_in_a_file")]
#![cfg_attr(not(feature = "serde"), doc = "[in a file]: crate#features")]

// The guides name the crate's types as its own docs do.
#[cfg(doc)]
use crate::*;

#[doc = include_str!("choosing_a_rule.md")]
pub mod choosing_a_rule {}

// Its snippets and links need the feature.
#[cfg(feature = "serde")]
#[doc = include_str!("settings_in_a_file.md")]
pub mod settings_in_a_file {}

#[doc = include_str!("one_request_one_task.md")]
pub mod one_request_one_task {}

/// The client: the chain of middlewares, redirects, TLS, and a client that is handed in.
///
#[doc = include_str!("../../docs/chain.svg")]
///
#[doc = include_str!("the_client.md")]
pub mod the_client {}

#[doc = include_str!("what_is_retried_and_why.md")]
pub mod what_is_retried_and_why {}

#[doc = include_str!("why_was_my_request_not_retried.md")]
pub mod why_was_my_request_not_retried {}

#[doc = include_str!("testing_your_own_rule.md")]
pub mod testing_your_own_rule {}

#[doc = include_str!("coming_from_reqwest_retry.md")]
pub mod coming_from_reqwest_retry {}

#[doc = include_str!("what_it_costs.md")]
pub mod what_it_costs {}

#[doc = include_str!("recipes.md")]
pub mod recipes {}

#[doc = include_str!("what_it_leaves_out.md")]
pub mod what_it_leaves_out {}
