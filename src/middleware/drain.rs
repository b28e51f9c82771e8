//! Reading the rest of a refused response, so that its connection is used again.

use reqwest::Response;
use tokio::time::Instant;

use super::clock;
use super::read_ahead::{Progress, ReadAhead};

/// A refused response while its retry is waited for.
pub(crate) enum Refused {
    Untouched(Response),
    Drained(ReadAhead),
}

impl Refused {
    /// Makes ready to drain the response, where that is worth while: over HTTP/1 (the stream of a
    /// later version is simply dropped), and where the body does not say that it is longer.
    pub(crate) fn new(response: Response, limit: usize) -> Self {
        let multiplexed = response.version() > http::Version::HTTP_11;
        let longer = response
            .content_length()
            .is_some_and(|length| length > limit as u64);
        let empty = response.content_length() == Some(0);
        if limit == 0 || multiplexed || longer || empty {
            Self::Untouched(response)
        } else {
            Self::Drained(ReadAhead::new(response))
        }
    }

    /// Reads the body up to `limit` bytes, and until `end` at the longest.
    pub(crate) async fn drain(&mut self, limit: usize, end: Instant) {
        if let Self::Drained(ahead) = self {
            if let Ok(Progress::Whole) = clock::timeout_at(end, ahead.read(limit)).await {
                // The connection's own task puts it back into the pool: let it run.
                tokio::task::yield_now().await;
            }
        }
    }

    /// The response, whole.
    pub(crate) fn into_response(self) -> Response {
        match self {
            Self::Untouched(response) => response,
            Self::Drained(ahead) => ahead.into_response(),
        }
    }
}
