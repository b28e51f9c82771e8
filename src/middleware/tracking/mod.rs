//! What an attempt leaves for the code around it: the mark by which a second copy of the middleware
//! knows the first, and notes of what became of the request on its way.

mod client;
mod in_flight;
mod maybe_processed;
mod nested;
mod redirects;

pub use self::client::{client_builder, client_builder_with_redirects};
pub use self::redirects::tracked_redirects;

pub(super) use self::in_flight::{EnteredWork, Notes, Running, address, carries, current_work};
pub(super) use self::maybe_processed::MaybeProcessed;
pub(super) use self::nested::{Key, NestedSend};
pub(super) use self::redirects::is_unfollowed;
