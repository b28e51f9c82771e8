//! What a server does with its requests, one act each.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;

use super::log::Received;

/// What an HTTP/1.1 server does with one request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Reads the request and answers.
    Respond(Answer),
    /// Answers as soon as the head is read. Under [`End::Keep`] the body is read afterwards, else
    /// never.
    RespondEarly(Answer),
    /// Closes a new connection at once, before any byte came. First in the queue only.
    CloseOnAccept,
    /// Resets a new connection at once. First in the queue only.
    ResetOnAccept,
    /// Waits for the first byte and closes with the rest unread, which the kernel makes a reset.
    CloseBeforeReading,
    /// Reads the head and so many bytes of the body, then ends.
    CutUpload(usize, End),
    /// Reads the request whole, then closes without a word.
    CloseAfterReading,
    /// Reads the request whole, then resets the connection.
    ResetAfterReading,
    /// Reads the request whole, then does nothing for as long as the client stays.
    Silence,
    /// Reads the request, writes these bytes, and ends.
    Raw(Bytes, End),
    /// Reads the request, writes the first bytes and then the second for as long as the client
    /// takes them.
    Flood(Bytes, Bytes),
    /// Reads the request and lets it choose. The acts that come before reading make no sense here.
    Ask(Chooser),
}

/// Chooses an act by the request.
#[derive(Clone)]
pub struct Chooser(pub Arc<dyn Fn(&Received) -> Act + Send + Sync>);

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chooser")
    }
}

impl Act {
    /// 200 and this body.
    pub fn ok(body: impl Into<Bytes>) -> Act {
        Answer::new(200).body(body).into()
    }

    /// This status and a short body.
    pub fn status(status: u16) -> Act {
        Answer::new(status).body("refused").into()
    }

    /// What no HTTP client can read.
    pub fn garbage() -> Act {
        Act::Raw(Bytes::from_static(b"\x00\x01garbage\r\n\r\n"), End::Close)
    }

    /// Half an answer's head, then the end.
    pub fn half_head(end: End) -> Act {
        Act::Raw(Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-le"), end)
    }

    /// An interim answer such as 100 or 103, and then never the real one.
    pub fn interim_then_close(status: u16) -> Act {
        Act::Raw(
            format!("HTTP/1.1 {status} Interim\r\n\r\n").into(),
            End::Close,
        )
    }

    /// A head that never ends.
    pub fn endless_head() -> Act {
        Act::Flood(
            Bytes::from_static(b"HTTP/1.1 200 OK\r\n"),
            Bytes::from_static(b"x-more: yes\r\n"),
        )
    }

    /// Interim answers without end.
    pub fn interim_flood() -> Act {
        Act::Flood(
            Bytes::new(),
            Bytes::from_static(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        )
    }

    /// Reads the request and lets it choose.
    pub fn ask(choose: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Act {
        Act::Ask(Chooser(Arc::new(choose)))
    }
}

impl From<Answer> for Act {
    fn from(answer: Answer) -> Act {
        Act::Respond(answer)
    }
}

/// What becomes of the connection after an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It waits for the next request.
    Keep,
    /// It is closed, without having said so.
    Close,
    /// It is reset.
    Reset,
    /// It is held and nothing more is written, until the client goes.
    Stall,
}

/// An answer: status, headers, a body and how that body is sent.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Body,
    /// How long the head is held back.
    pub after: Duration,
    pub end: End,
}

/// How the body of an answer is sent. One that breaks off is followed by [`Answer::end`], where
/// [`End::Keep`] means [`End::Close`].
#[derive(Clone, Debug)]
pub enum Body {
    /// With its length, in one write with the head.
    Whole(Bytes),
    /// With its length, so long after the head.
    Later(Duration, Bytes),
    /// In chunks, with trailers.
    Chunked(Vec<Bytes>, Vec<(String, String)>),
    /// Up to the end of the connection.
    UntilClose(Bytes),
    /// One piece after another in chunks, with pauses.
    Slow(Vec<Bytes>, Duration),
    /// So many bytes, with their length, none of which is kept.
    Long(u64),
    /// Breaks off: fewer bytes than the length that was declared.
    Short(u64, Bytes),
    /// Breaks off: chunks without the last one.
    ShortChunks(Vec<Bytes>),
    /// A chunk whose size is no number.
    BadChunk,
    /// Chunks for as long as the client takes them.
    Endless,
}

impl Answer {
    /// An answer without a body that leaves the connection open.
    pub fn new(status: u16) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: Body::Whole(Bytes::new()),
            after: Duration::ZERO,
            end: End::Keep,
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A body with its length, sent with the head.
    pub fn body(self, body: impl Into<Bytes>) -> Answer {
        self.send(Body::Whole(body.into()))
    }

    /// A body with its length that comes so long after the head.
    pub fn body_later(self, wait: Duration, body: impl Into<Bytes>) -> Answer {
        self.send(Body::Later(wait, body.into()))
    }

    pub fn send(mut self, body: Body) -> Answer {
        self.body = body;
        self
    }

    /// Holds the whole answer back.
    pub fn after(mut self, wait: Duration) -> Answer {
        self.after = wait;
        self
    }

    pub fn end(mut self, end: End) -> Answer {
        self.end = end;
        self
    }
}

/// Which act comes next.
pub struct Script<A = Act>(Arc<Mutex<Source<A>>>);

enum Source<A> {
    /// In turn; the last one repeats.
    Queue(VecDeque<A>),
    /// Chosen when a request comes.
    Choose(Box<dyn FnMut(Turn) -> A + Send>),
}

/// Which request this is, both counted from 0.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub connection: usize,
    /// On this connection.
    pub request: usize,
}

impl<A: Clone> Script<A> {
    /// One act after the other; the last one repeats.
    pub fn queue(acts: impl IntoIterator<Item = impl Into<A>>) -> Script<A> {
        let acts: VecDeque<A> = acts.into_iter().map(Into::into).collect();
        assert!(!acts.is_empty(), "a script has at least one act");
        Script(Arc::new(Mutex::new(Source::Queue(acts))))
    }

    /// An act for each request, chosen when its first byte comes. To choose by the request itself
    /// see [`Act::ask`].
    pub fn choose(choose: impl FnMut(Turn) -> A + Send + 'static) -> Script<A> {
        Script(Arc::new(Mutex::new(Source::Choose(Box::new(choose)))))
    }

    /// Replaces what is left.
    pub fn replace(&self, script: impl Into<Script<A>>) {
        let Ok(new) = Arc::try_unwrap(script.into().0) else {
            panic!("the script is in use")
        };
        *self.0.lock().unwrap() = new.into_inner().unwrap();
    }

    pub(super) fn next(&self, turn: Turn) -> A {
        match &mut *self.0.lock().unwrap() {
            Source::Queue(acts) => pop(acts),
            Source::Choose(choose) => choose(turn),
        }
    }
}

impl Script<Act> {
    /// The next act where it is for a connection that was just accepted.
    pub(super) fn on_accept(&self) -> Option<Act> {
        match &mut *self.0.lock().unwrap() {
            Source::Queue(acts) => match acts.front()? {
                Act::CloseOnAccept | Act::ResetOnAccept => Some(pop(acts)),
                _ => None,
            },
            Source::Choose(_) => None,
        }
    }
}

fn pop<A: Clone>(acts: &mut VecDeque<A>) -> A {
    match acts.len() {
        1 => acts[0].clone(),
        _ => acts.pop_front().expect("a script has at least one act"),
    }
}

impl<A> Clone for Script<A> {
    fn clone(&self) -> Script<A> {
        Script(self.0.clone())
    }
}

/// One act or several are a script.
macro_rules! acts_are_a_script {
    ($act:ty) => {
        impl<A: Into<$act>> From<A> for $crate::support::script::Script<$act> {
            fn from(act: A) -> Self {
                Self::queue([act])
            }
        }

        impl<A: Into<$act>> From<Vec<A>> for $crate::support::script::Script<$act> {
            fn from(acts: Vec<A>) -> Self {
                Self::queue(acts)
            }
        }

        impl<A: Into<$act>, const N: usize> From<[A; N]> for $crate::support::script::Script<$act> {
            fn from(acts: [A; N]) -> Self {
                Self::queue(acts)
            }
        }
    };
}

pub(super) use acts_are_a_script;

acts_are_a_script!(Act);
