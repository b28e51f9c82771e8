//! What an attempt leaves for the code around it: the mark by which a second copy of the middleware
//! knows the first, notes of what became of the request on its way, and for a work around it what
//! became of the send.

mod client;
mod in_flight;
mod maybe_processed;
mod nested;
mod redirects;
mod sends;
mod sent;
mod work_call;

pub use self::client::{client_builder, client_builder_with_redirects};
pub use self::redirects::tracked_redirects;

pub(super) use self::in_flight::{EnteredWork, Notes, Running, address, carries, current_work};
pub(super) use self::maybe_processed::MaybeProcessed;
pub(super) use self::nested::{Key, NestedSend};
pub(super) use self::redirects::is_unfollowed;
pub(super) use self::sends::Sends;
pub(super) use self::sent::{EndedWith, SendInWork, Sent, SentRefusal, UNSEEN};
pub(super) use self::work_call::WorkCall;
