//! Bodies whose every byte is known from the plan, and how a request gets them.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::Full;
use reqwest::Body;
use reqwest_middleware::RequestBuilder;
use reqwest_retry_rules::{BodySource, FreshBody};

use super::dice::Dice;

/// No two stretches of it are alike, so that a piece that is lost, doubled or another's shows.
static PATTERN: LazyLock<Bytes> = LazyLock::new(|| {
    let mut dice = Dice::new(0, 0);
    let words = (0..PATTERN_LENGTH / 8).flat_map(|_| dice.roll().to_le_bytes());
    words.collect()
});

const PATTERN_LENGTH: usize = 1 << 20;

/// Bytes that are known by where they start and how many they are. They share the pattern's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    start: usize,
    pub length: usize,
}

impl Stretch {
    pub fn new(dice: &mut Dice, length: usize) -> Stretch {
        let start = dice.below(PATTERN_LENGTH - length);
        Stretch { start, length }
    }

    pub fn bytes(&self) -> Bytes {
        PATTERN.slice(self.start..self.start + self.length)
    }
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    pub made: Made,
    pub bytes: Stretch,
}

/// Where the body of a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Absent,
    /// From bytes in memory.
    Whole,
    /// A stream of unknown length, in pieces of this size.
    Stream(usize),
    /// A stream that knows its length.
    Measured,
    /// A source whose bodies are bytes in memory.
    Source,
    /// A source whose bodies are streams.
    SourceOfStreams(usize),
    /// A source whose bodies are streams of known length.
    SourceOfMeasured(usize),
    /// A source that takes its time.
    SlowSource(usize),
    /// A source that makes so many bodies and then fails.
    FailingSource(u32),
}

impl Made {
    /// Whether there is only one of it, which is gone once anything of it was read.
    pub fn is_stream(self) -> bool {
        matches!(self, Made::Stream(_) | Made::Measured)
    }

    /// Whether reqwest can send it to a next hop.
    pub fn follows_redirects(self) -> bool {
        matches!(
            self,
            Made::Absent | Made::Whole | Made::Source | Made::FailingSource(_)
        )
    }
}

impl Content {
    pub fn put_into(&self, request: RequestBuilder) -> RequestBuilder {
        let bytes = self.bytes.bytes();
        let source = match self.made {
            Made::Absent => return request,
            Made::Whole => return request.body(bytes),
            Made::Stream(piece) => return request.body(in_pieces(bytes, piece)),
            Made::Measured => return request.body(Body::wrap(Full::new(bytes))),
            Made::Source => BodySource::new(move || Ok::<_, io::Error>(bytes.clone())),
            Made::SourceOfStreams(piece) => {
                BodySource::new(move || Ok::<_, io::Error>(in_pieces(bytes.clone(), piece)))
            }
            Made::SourceOfMeasured(piece) => BodySource::new(move || {
                let body = FreshBody::from(in_pieces(bytes.clone(), piece));
                Ok::<_, io::Error>(body.content_length(bytes.len() as u64))
            }),
            Made::SlowSource(piece) => BodySource::from_async(move || {
                let bytes = bytes.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    Ok::<_, io::Error>(in_pieces(bytes, piece))
                }
            }),
            Made::FailingSource(bodies) => {
                let made = AtomicU32::new(0);
                BodySource::new(move || {
                    if made.fetch_add(1, Ordering::Relaxed) < bodies {
                        Ok(bytes.clone())
                    } else {
                        Err(io::Error::other("the source is dry"))
                    }
                })
            }
        };
        request.with_extension(source)
    }
}

fn in_pieces(bytes: Bytes, piece: usize) -> Body {
    Body::wrap_stream(stream::unfold(bytes, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        let next = rest.split_to(piece.min(rest.len()));
        if next.len() % 2 == 1 {
            tokio::task::yield_now().await;
        }
        Some((Ok::<_, io::Error>(next), rest))
    }))
}
