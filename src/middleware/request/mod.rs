//! How a request is sent again: what of it is kept, and where the body of the next attempt comes
//! from.

mod body_source;
mod kept;
mod returning;

pub use self::body_source::{BodySource, FreshBody};

pub(super) use self::body_source::BoxError;
pub(super) use self::kept::KeptRequest;
