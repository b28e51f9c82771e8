//! Chains of `reqwest-middleware` and of its fork: what their middlewares see and fail with, and
//! chains of the two kinds inside one another.
#![allow(clippy::duplicate_mod)] // the same tests for each kind

mod astral;
mod original;
