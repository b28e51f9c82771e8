//! What every send is to meet, all of it drawn from the seed.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use reqwest_retry_rules::AttemptResult;

use super::body::{Content, Stretch};
use super::fault::{Client, Fault};

/// How many retries the rule has.
pub const RETRIES: u32 = 4;

/// How long the clients take to connect, at the longest.
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(1500);

/// How long an attempt may take that meets a server which is too slow.
pub const SHORT: Duration = Duration::from_millis(800);

/// The longest wait that the rule accepts of a server.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// One send: the request, what each of its attempts meets, and how patient the caller is.
#[derive(Clone, Debug)]
pub struct Plan {
    pub id: usize,
    pub road: Road,
    pub method: Method,
    pub content: Content,
    pub claim: Claim,
    pub patience: Patience,
    /// How much of the body of an answer the policy reads inside the attempt.
    pub completes: usize,
    /// How much of a refused answer it reads.
    pub drains: usize,
    /// What goes wrong with each attempt in turn; those after them are answered.
    pub faults: Vec<Fault>,
    pub answer: Answer,
}

/// The way to the server, and what is spoken on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    /// HTTP/1.1 to one server that all share.
    Shared1,
    /// The same, but the server closes connections that it has just answered on.
    Stale1,
    /// HTTP/1.1 to a name of the send's own.
    Own1,
    /// The same over TLS.
    Tls1,
    /// The same through a CONNECT proxy.
    Proxied1,
    /// HTTP/2 to one server that all share.
    Shared2,
    /// HTTP/2 to a name of the send's own.
    Own2,
    /// The same over TLS.
    Tls2,
    /// The same through a CONNECT proxy.
    Proxied2,
}

impl Road {
    pub fn is_http2(self) -> bool {
        matches!(
            self,
            Road::Shared2 | Road::Own2 | Road::Tls2 | Road::Proxied2
        )
    }

    pub fn is_tls(self) -> bool {
        matches!(
            self,
            Road::Tls1 | Road::Tls2 | Road::Proxied1 | Road::Proxied2
        )
    }

    pub fn is_proxied(self) -> bool {
        matches!(self, Road::Proxied1 | Road::Proxied2)
    }

    /// Whether no other send uses its connections.
    pub fn is_own(self) -> bool {
        !matches!(self, Road::Shared1 | Road::Stale1 | Road::Shared2)
    }
}

/// What the caller says of sending twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Nothing,
    /// `ReplaySafe`.
    Vouched(bool),
    /// The policy sends an idempotency key, which the server honours.
    Keyed,
}

impl Claim {
    /// Whether a request of this method may then be processed more than once.
    pub fn makes_repeatable(self, method: &Method) -> bool {
        match self {
            Claim::Nothing => method.is_idempotent(),
            Claim::Vouched(safe) => safe,
            Claim::Keyed => true,
        }
    }
}

/// How long the caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as it takes.
    Endless,
    /// [`SHORT`] for each attempt, as the policy says.
    Attempt,
    /// The same, as the request says.
    Request,
    /// So long for the whole send.
    Total(Duration),
    /// So long, then the send is dropped.
    Leaves(Duration),
}

/// The good answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Stretch,
    pub framing: Framing,
    /// Whether an interim answer comes first.
    pub hint: bool,
    /// Whether the server wants no more on this connection, and says so after it answered or not.
    pub parting: bool,
}

/// How an answer says where its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    /// By the end of the connection, where that is to end anyway.
    UntilClose,
}

impl Plan {
    /// Whether the request may be processed more than once.
    pub fn is_repeatable(&self) -> bool {
        self.claim.makes_repeatable(&self.method)
    }

    /// What goes wrong with the attempt of this number, counted from 0.
    pub fn fault(&self, attempt: u32) -> Option<&Fault> {
        self.faults.get(attempt as usize)
    }

    /// Whether the server keeps an HTTP/1.1 connection after its answer to this attempt. One that is
    /// kept would carry a request past whatever waits on the road.
    pub fn keeps_connection(&self, attempt: u32) -> bool {
        let rest = self.faults.iter().skip(attempt as usize);
        let is_last = self.fault(attempt).is_none() && self.road.is_own();
        !is_last && !rest.into_iter().any(Fault::is_on_the_road)
    }

    /// All that the attempt of this number may come to by what the plan does to it.
    pub fn results(&self, attempt: u32) -> Vec<AttemptResult> {
        let answered = AttemptResult::Status(
            StatusCode::from_u16(self.answer.status).expect("a status of the plan's"),
        );
        let Some(fault) = self.fault(attempt) else {
            return vec![answered];
        };
        let follows = match fault {
            Fault::Redirect(code, _) => {
                self.content.made.follows_redirects() || !self.keeps_method(*code)
            }
            _ => false,
        };
        fault.results(Client {
            short: matches!(self.patience, Patience::Attempt | Patience::Request),
            proxied: self.road.is_proxied(),
            completes: self.completes,
            answer: self.answer.body.length,
            head: self.method == Method::HEAD,
            follows,
            http2: self.road.is_http2(),
        })
    }

    /// The body of an answer to the attempt of this number.
    pub fn body_of(&self, status: StatusCode, attempt: Option<u32>) -> Bytes {
        let fault = attempt.and_then(|attempt| self.fault(attempt));
        match fault {
            _ if self.method == Method::HEAD => Bytes::new(),
            Some(Fault::Refusal(refusal)) if refusal.status == status => refusal.body.bytes(),
            Some(Fault::Early | Fault::EarlyBusy) => Bytes::new(),
            Some(Fault::Redirect(code, _)) if *code == status => Bytes::new(),
            _ => self.answer.body.bytes(),
        }
    }

    /// Whether a redirect with this status leaves the method, and so the body, as it is.
    pub fn keeps_method(&self, code: u16) -> bool {
        match code {
            301 | 302 => self.method != Method::POST,
            303 => false,
            _ => true,
        }
    }

    /// How long an attempt takes at the longest.
    pub fn attempt_timeout(&self) -> Option<Duration> {
        matches!(self.patience, Patience::Attempt | Patience::Request).then_some(SHORT)
    }
}
