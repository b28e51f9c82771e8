//! What concerns a whole process: how much memory it takes, the examples as programs, and the
//! public types.
#![allow(clippy::disallowed_methods)]

#[path = "../support/soak/mod.rs"]
mod soaking;
#[path = "../support/mod.rs"]
mod support;

mod examples;
mod floods;
mod public_api;
mod soak;

use tokio::sync::Mutex;

/// One at a time: a test that holds it may look at all of the memory.
static TURN: Mutex<()> = Mutex::const_new(());
