//! A mark on a response.

use reqwest::Response;

/// On a response: the request may have been processed before the one that this response answers was
/// sent. A send further out that is given the response as its answer must not take a refusal for
/// all that happened.
#[derive(Clone, Copy)]
pub(in crate::middleware) struct MaybeProcessed;

impl MaybeProcessed {
    pub(in crate::middleware) fn mark(response: &mut Response) {
        response.extensions_mut().insert(Self);
    }

    pub(in crate::middleware) fn marks(response: &Response) -> bool {
        response.extensions().get::<Self>().is_some()
    }
}
