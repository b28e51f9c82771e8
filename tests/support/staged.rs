//! A transport that is not there: answers from a queue, with bodies that come when they are told
//! to. For tests of timing, on tokio's paused clock.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, Version};
use http_body::{Body, Frame, SizeHint};
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next, Result};
use tokio::time::{Instant, Sleep};

/// The end of the chain. Clones share the queue; each request takes the next answer.
#[derive(Clone)]
pub struct Stage(Arc<Mutex<Playing>>);

struct Playing {
    answers: VecDeque<Response>,
    at: Vec<Instant>,
}

impl Stage {
    pub fn new(answers: impl IntoIterator<Item = Response>) -> Stage {
        Stage(Arc::new(Mutex::new(Playing {
            answers: answers.into_iter().collect(),
            at: Vec::new(),
        })))
    }

    /// How long after the first request each of the others came.
    pub fn pauses(&self) -> Vec<Duration> {
        let at = &self.0.lock().unwrap().at;
        at.iter().skip(1).map(|moment| *moment - at[0]).collect()
    }
}

#[async_trait::async_trait]
impl Middleware for Stage {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        let mut playing = self.0.lock().unwrap();
        playing.at.push(Instant::now());
        Ok(playing.answers.pop_front().expect("no more answers"))
    }
}

/// What a body does next.
#[derive(Clone, Debug)]
pub enum Step {
    Wait(Duration),
    Data(Bytes),
    Trailers(HeaderMap),
    Fail(&'static str),
    /// Nothing more, ever.
    Stall,
    /// The same piece for as long as it is asked for.
    Endless(Bytes),
}

impl Step {
    pub fn data(piece: impl Into<Bytes>) -> Step {
        Step::Data(piece.into())
    }

    pub fn trailer(name: &'static str, value: &'static str) -> Step {
        let mut trailers = HeaderMap::new();
        trailers.insert(HeaderName::from_static(name), value.parse().unwrap());
        Step::Trailers(trailers)
    }
}

/// An answer over this version of HTTP, with the means to see what became of its body.
pub fn answer(
    version: Version,
    status: u16,
    length: Option<u64>,
    steps: impl IntoIterator<Item = Step>,
) -> (Response, Probe) {
    let probe = Probe::default();
    let body = Paced {
        steps: steps.into_iter().collect(),
        left: length,
        sleep: None,
        probe: probe.clone(),
    };
    let head = http::Response::builder().version(version).status(status);
    let response = head.body(reqwest::Body::wrap(body)).unwrap();
    (Response::from(response), probe)
}

/// What became of a body.
#[derive(Clone, Default)]
pub struct Probe(Arc<Mutex<Fate>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Whether anybody asked for any of it.
    pub begun: bool,
    /// How many bytes were taken.
    pub taken: usize,
    pub dropped: bool,
}

impl Probe {
    pub fn fate(&self) -> Fate {
        *self.0.lock().unwrap()
    }
}

struct Paced {
    steps: VecDeque<Step>,
    left: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
    probe: Probe,
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.probe.0.lock().unwrap().dropped = true;
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, io::Error>>> {
        self.probe.0.lock().unwrap().begun = true;
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            let piece = match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Wait(wait)) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep(wait)));
                    continue;
                }
                Some(Step::Stall) => {
                    self.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
                Some(Step::Fail(why)) => return Poll::Ready(Some(Err(io::Error::other(why)))),
                Some(Step::Trailers(map)) => return Poll::Ready(Some(Ok(Frame::trailers(map)))),
                Some(Step::Endless(piece)) => {
                    self.steps.push_front(Step::Endless(piece.clone()));
                    piece
                }
                Some(Step::Data(piece)) => piece,
            };
            self.probe.0.lock().unwrap().taken += piece.len();
            self.left = self.left.map(|left| left - piece.len() as u64);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
