//! Reading the rest of a refused response.
//!
//! An HTTP/1 connection is used again only once the response is read. A stream of a later version
//! that is left unread fills the window that all streams of its connection share.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;

use super::read_ahead::{ReadAhead, ReadUntil};
use crate::middleware::clock;

/// How long hyper is given to put a connection back into its pool.
///
/// Two tasks of hyper's do that after the last byte is read, and nothing shows when they have. On
/// loopback they took up to four turns of the runtime. A sleep would do as well, but the shortest
/// takes more than a millisecond, and a new connection often less.
const POOLING: Duration = Duration::from_micros(50);

/// A refused response while its retry is waited for.
pub(in crate::middleware) struct Refused {
    held: Held,
    /// True if its connection is used again only once it is read.
    exclusive: bool,
    /// True if a pool waits for that connection.
    pooled: bool,
}

enum Held {
    Untouched(Response),
    Begun(ReadAhead),
}

impl Refused {
    /// Makes ready to drain the response. One whose body says that it is longer is left alone.
    pub(in crate::middleware) fn new(response: Response, limit: usize) -> Self {
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

    /// Reads the body up to `limit` bytes, and until `wake` at the longest, or `grace` if that is
    /// later and saves a connection.
    pub(in crate::middleware) async fn drain(
        &mut self,
        limit: usize,
        wake: Instant,
        grace: Instant,
    ) {
        let end = if self.exclusive {
            wake.max(grace)
        } else {
            wake
        };
        let is_whole = match &mut self.held {
            Held::Untouched(response) => response.content_length() == Some(0),
            Held::Begun(ahead) => {
                clock::timeout_at(end, ahead.read(limit)).await == Ok(ReadUntil::End)
            }
        };
        // If the wait goes on, hyper has time enough. If no grace was given, there is none for it.
        let now = clock::now();
        let is_short = clock::later(now, POOLING) > wake;
        if is_whole && self.pooled && is_short && now < end {
            clock::let_others_run(POOLING).await;
        }
    }

    /// The response, whole.
    pub(in crate::middleware) fn into_response(self) -> Response {
        match self.held {
            Held::Untouched(response) => response,
            Held::Begun(ahead) => ahead.into_response(),
        }
    }
}
