//! A response that is looked at before the caller has it: its head, and its body if that is
//! wanted.
//!
//! - `head`: the view of a response that the closures of a policy get.
//! - `kind`: which bodies are left to the caller alone.
//! - `read_ahead`: a response whose body is read and comes back whole.
//! - `drain`, `complete`, `judge`: the three reasons to read one.

mod complete;
mod drain;
mod head;
mod judge;
mod kind;
mod read_ahead;

pub use head::ResponseHead;
pub use judge::Judgement;

pub(super) use complete::{complete, is_to_be_completed};
pub(super) use drain::Refused;
pub(super) use head::answered_at;
pub(super) use judge::{Judged, judge_body, may_be_judged};
