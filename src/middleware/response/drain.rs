//! Reading the rest of a refused response: so that its HTTP/1 connection is used again, and so that
//! what is left unread of it does not fill the window that all streams of a later version share.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;

use super::read_ahead::{Progress, ReadAhead};
use crate::middleware::clock;

/// How long a connection is given to go back into its pool, which it does in tasks of its own: no
/// sign of it reaches us. It is what a zero wait costs over HTTP/1 (a tick or two of tokio's timer),
/// and far from loopback it is less than a new connection.
///
/// Letting the other tasks run instead, be it 64 times, is done in a tenth of that, but where
/// `block_on` runs the send it lets none run, and then every other retry took a new connection.
const POOLING: Duration = Duration::from_millis(1);

/// A refused response while its retry is waited for.
pub(crate) struct Refused {
    held: Held,
    /// Whether its connection is used again only once it is read.
    exclusive: bool,
    /// Whether a pool waits for that connection.
    pooled: bool,
}

enum Held {
    Untouched(Response),
    Begun(ReadAhead),
}

impl Refused {
    /// Makes ready to drain the response; one whose body says that it is longer is left alone.
    pub(crate) fn new(response: Response, limit: usize) -> Self {
        let exclusive = response.version() <= http::Version::HTTP_11;
        let pooled = limit > 0 && exclusive && response.remote_addr().is_some();
        let held = if limit > 0 && ReadAhead::is_worth_while(&response, limit) {
            Held::Begun(ReadAhead::new(response))
        } else {
            Held::Untouched(response)
        };
        Self {
            held,
            exclusive,
            pooled,
        }
    }

    /// Reads the body up to `limit` bytes, and until `wake` at the longest, or `grace` where that
    /// is later and saves a connection.
    pub(crate) async fn drain(&mut self, limit: usize, wake: Instant, grace: Instant) {
        let end = if self.exclusive {
            wake.max(grace)
        } else {
            wake
        };
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
