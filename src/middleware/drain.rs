//! Reading the rest of a refused response, so that its connection is used again.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;

use super::clock;
use super::read_ahead::{Progress, ReadAhead};

/// How long a connection is given to go back into its pool, which it does in tasks of its own. No
/// sign of it reaches us.
const POOLING: Duration = Duration::from_millis(1);

/// A refused response while its retry is waited for.
pub(crate) struct Refused {
    held: Held,
    /// Whether there is a connection that is used again once its answer is read.
    pooled: bool,
}

enum Held {
    Untouched(Response),
    Begun(ReadAhead),
}

impl Refused {
    /// Makes ready to drain the response, where that is worth while: over HTTP/1 (the stream of a
    /// later version is simply dropped), and where the body does not say that it is longer.
    pub(crate) fn new(response: Response, limit: usize) -> Self {
        let drained = limit > 0 && response.version() <= http::Version::HTTP_11;
        let pooled = drained && response.remote_addr().is_some();
        let readable = response
            .content_length()
            .is_none_or(|length| length > 0 && length <= limit as u64);
        let held = if drained && readable {
            Held::Begun(ReadAhead::new(response))
        } else {
            Held::Untouched(response)
        };
        Self { held, pooled }
    }

    /// Reads the body up to `limit` bytes, and until `end` at the longest.
    pub(crate) async fn drain(&mut self, limit: usize, end: Instant) {
        let whole = match &mut self.held {
            Held::Untouched(response) => response.content_length() == Some(0),
            Held::Begun(ahead) => {
                clock::timeout_at(end, ahead.read(limit)).await == Ok(Progress::Whole)
            }
        };
        if whole && self.pooled {
            clock::sleep_until(clock::later(clock::now(), POOLING).min(end)).await;
        }
    }

    /// The response, whole.
    pub(crate) fn into_response(self) -> Response {
        match self.held {
            Held::Untouched(response) => response,
            Held::Begun(ahead) => ahead.into_response(),
        }
    }
}
