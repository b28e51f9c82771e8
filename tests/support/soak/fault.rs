//! What can go wrong with one attempt, and all that a client may rightly say of it.

use std::time::Duration;

use http::StatusCode;
use reqwest_retry_rules::{AttemptResult, TransportError};

use super::body::Stretch;

/// What goes wrong with one attempt.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The name does not resolve.
    NoName,
    /// Nobody listens.
    Refused,
    /// Connecting never comes to an end.
    Hang,
    /// The connection is ended as soon as it is there.
    Dropped(End),
    /// The TLS handshake fails.
    Handshake(Handshake),
    /// The proxy does not open the tunnel.
    Proxy(Proxy),
    /// The connection is ended with nothing but the head read.
    Unread(End),
    /// The connection is ended with half of the body read.
    HalfRead(End),
    /// The request is processed and the connection ended without a word.
    Lost(End),
    /// The request is processed and the connection ended in the head of the answer.
    HalfHead(End),
    /// The request is read, and then nothing is said for as long as the client waits.
    Slow { processed: bool },
    /// The request is processed, and what is said is no HTTP.
    Garbage,
    /// The request is refused before its body was read, and the connection ended.
    Early,
    /// The request is refused before its body was read, and then its body read.
    EarlyBusy,
    /// The request is read and refused.
    Refusal(Refusal),
    /// The request is processed, and the client sent on with this status.
    Redirect(u16, Hop),
    /// The request is processed, and the body of the answer breaks off.
    BrokenBody { chunked: bool, end: End },
    /// The stream is reset with REFUSED_STREAM, its body read or not.
    StreamRefused { read: bool },
    /// A GOAWAY leaves the request out.
    LeftOut { reason: u32, read: bool },
    /// The request is processed, covered by a GOAWAY, and the connection ended.
    GoneAway { reason: u32 },
    /// The request is read and its stream reset for another reason.
    StreamReset { reason: u32, processed: bool },
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Close,
    Reset,
}

/// How a TLS handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    Ends(End),
    /// The peer speaks no TLS.
    Garbage,
    /// The certificate is nobody's.
    Stranger,
}

/// How a proxy does not open a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    Refuses(u16),
    Ends(End),
    Silent,
}

/// Where a redirect leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    Works,
    /// To a port where nobody listens.
    Refused,
    /// To a name that does not resolve.
    NoName,
    /// To a server that reads the request and closes.
    Cut,
}

/// A status that the rule may retry, and what is said with it.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub status: u16,
    pub processed: bool,
    pub asked: Asked,
    /// The override header.
    pub said: Option<bool>,
    pub body: Stretch,
    /// How long after the head the body comes.
    pub late: Option<Duration>,
}

/// The wait that a refusal asks for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Nothing,
    /// `retry-after-ms`.
    Millis(u64),
    /// `Retry-After`, a part of a second.
    Seconds(u64),
    /// `Retry-After`, the moment of the answer.
    Date,
    /// An unreadable `retry-after-ms`, and a `Retry-After` beside it.
    Unreadable(u64),
    /// More than the rule would wait.
    TooLong,
}

pub const TOO_LONG: Duration = Duration::from_secs(3600);

impl Asked {
    pub fn headers(self) -> Vec<(&'static str, String)> {
        let date = "Thu, 01 Jan 2026 00:00:00 GMT";
        match self {
            Asked::Nothing => vec![],
            Asked::Millis(wait) => vec![("retry-after-ms", wait.to_string())],
            Asked::Seconds(wait) => vec![("retry-after", format!("0.{wait:03}"))],
            Asked::Date => vec![("date", date.into()), ("retry-after", date.into())],
            Asked::Unreadable(wait) => vec![
                ("retry-after-ms", "soon".into()),
                ("retry-after", format!("0.{wait:03}")),
            ],
            Asked::TooLong => vec![("retry-after", TOO_LONG.as_secs().to_string())],
        }
    }

    pub fn wait(self) -> Option<Duration> {
        match self {
            Asked::Nothing => None,
            Asked::Millis(wait) | Asked::Seconds(wait) | Asked::Unreadable(wait) => {
                Some(Duration::from_millis(wait))
            }
            Asked::Date => Some(Duration::ZERO),
            Asked::TooLong => Some(TOO_LONG),
        }
    }
}

/// What of the client's makes a difference to what it may say.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Whether an attempt's own timeout is shorter than that of connecting.
    pub short: bool,
    pub proxied: bool,
    /// How much of the body of an answer is read inside the attempt.
    pub completes: usize,
    /// How long the body of the answer is.
    pub answer: usize,
    /// Whether the request's method is HEAD.
    pub head: bool,
    /// Whether a redirect with this fault's status can be followed.
    pub follows: bool,
    pub http2: bool,
}

impl Fault {
    /// Whether it strikes before there is a connection that a request could go to.
    pub fn is_on_the_road(&self) -> bool {
        matches!(
            self,
            Fault::NoName
                | Fault::Refused
                | Fault::Hang
                | Fault::Dropped(_)
                | Fault::Handshake(_)
                | Fault::Proxy(_)
        )
    }

    /// Whether nothing comes of it until the client gives up.
    pub fn takes_a_timeout(&self) -> bool {
        matches!(
            self,
            Fault::Hang | Fault::Proxy(Proxy::Silent) | Fault::Slow { .. }
        )
    }

    /// Whether it ends a connection on which there may be others.
    pub fn ends_connection(&self) -> bool {
        match self {
            Fault::Unread(_)
            | Fault::HalfRead(_)
            | Fault::Lost(_)
            | Fault::HalfHead(_)
            | Fault::Garbage
            | Fault::LeftOut { .. }
            | Fault::GoneAway { .. } => true,
            Fault::BrokenBody { end, .. } => *end == End::Reset,
            _ => self.is_on_the_road(),
        }
    }

    /// All that an attempt with this fault may come to.
    pub fn results(&self, client: Client) -> Vec<AttemptResult> {
        use TransportError as E;

        let no_answer = if client.short {
            E::Timeout
        } else {
            E::ConnectTimeout
        };
        let failures = match *self {
            Fault::NoName => vec![E::Dns],
            Fault::Refused if client.proxied => vec![E::Proxy { status: None }],
            Fault::Refused => vec![E::Connect],
            Fault::Hang | Fault::Proxy(Proxy::Silent) => vec![no_answer],
            // How far the client had come by then is chance.
            Fault::Dropped(_) => vec![E::Connect, E::NotProcessed, E::Closed],
            Fault::Handshake(Handshake::Ends(_)) => vec![E::Tls],
            Fault::Handshake(_) if !cfg!(feature = "rustls") => vec![E::Tls],
            Fault::Handshake(Handshake::Garbage) => vec![E::Protocol],
            Fault::Handshake(Handshake::Stranger) => vec![E::Certificate],
            Fault::Proxy(Proxy::Refuses(407)) => vec![E::Proxy {
                status: Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED),
            }],
            Fault::Proxy(_) => vec![E::Proxy { status: None }],
            Fault::Unread(_) | Fault::HalfRead(_) | Fault::Lost(_) | Fault::HalfHead(_) => {
                vec![E::Closed]
            }
            Fault::Slow { .. } => vec![E::Timeout],
            Fault::Garbage if client.http2 && !cfg!(feature = "http2") => vec![E::Closed],
            Fault::Garbage => vec![E::Protocol],
            Fault::Early => return vec![failure(E::Closed), status(503)],
            Fault::EarlyBusy => return vec![status(429)],
            Fault::Refusal(refusal) => return vec![status(refusal.status)],
            Fault::Redirect(code, _) if !client.follows => return vec![status(code)],
            Fault::Redirect(_, Hop::Works) => return vec![status(200)],
            Fault::Redirect(_, Hop::Refused | Hop::NoName) => vec![E::AfterRedirect],
            Fault::Redirect(_, Hop::Cut) => vec![E::Closed],
            Fault::BrokenBody { .. } if client.head => return vec![status(200)],
            Fault::BrokenBody { chunked, end } => {
                // The length that is said is one more, and read is what says no more than the limit.
                let unread = client.completes < client.answer + usize::from(!chunked);
                let longer = client.completes == 0 || unread;
                return match end {
                    End::Close if !client.http2 && longer => vec![status(200)],
                    End::Close if !client.http2 => vec![failure(E::Body)],
                    // A reset may overtake what was sent before it, all of it or some.
                    _ if client.completes == 0 => vec![status(200), failure(E::Closed)],
                    _ => vec![status(200), failure(E::Body), failure(E::Closed)],
                };
            }
            Fault::StreamRefused { .. } if cfg!(feature = "http2") => vec![E::NotProcessed],
            // hyper does not tell a GOAWAY that leaves a request out from one that covers it.
            Fault::StreamRefused { .. }
            | Fault::LeftOut { .. }
            | Fault::GoneAway { .. }
            | Fault::StreamReset { .. } => vec![E::Closed],
        };
        failures.into_iter().map(failure).collect()
    }

    /// Which kind it is, to count them.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::NoName => "name not resolved",
            Fault::Refused => "connection refused",
            Fault::Hang => "connecting hangs",
            Fault::Dropped(_) => "dropped when accepted",
            Fault::Handshake(Handshake::Ends(_)) => "TLS handshake cut",
            Fault::Handshake(Handshake::Garbage) => "no TLS",
            Fault::Handshake(Handshake::Stranger) => "bad certificate",
            Fault::Proxy(Proxy::Refuses(_)) => "tunnel refused",
            Fault::Proxy(Proxy::Ends(_)) => "tunnel cut",
            Fault::Proxy(Proxy::Silent) => "proxy silent",
            Fault::Unread(_) => "unread",
            Fault::HalfRead(_) => "half read",
            Fault::Lost(_) => "processed and lost",
            Fault::HalfHead(_) => "cut in the head",
            Fault::Slow { .. } => "too slow",
            Fault::Garbage => "garbage",
            Fault::Early => "refused early",
            Fault::EarlyBusy => "refused early, then read",
            Fault::Refusal(Refusal { said: Some(_), .. }) => "the server says",
            Fault::Refusal(Refusal { status: 429, .. }) => "429",
            Fault::Refusal(_) => "5xx",
            Fault::Redirect(_, Hop::Works) => "redirect",
            Fault::Redirect(..) => "redirect to a fault",
            Fault::BrokenBody { .. } => "body breaks off",
            Fault::StreamRefused { .. } => "REFUSED_STREAM",
            Fault::LeftOut { .. } => "GOAWAY that leaves out",
            Fault::GoneAway { .. } => "GOAWAY that covers",
            Fault::StreamReset { .. } => "stream reset",
        }
    }
}

/// All the kinds.
pub const KINDS: [&str; 28] = [
    "name not resolved",
    "connection refused",
    "connecting hangs",
    "dropped when accepted",
    "TLS handshake cut",
    "no TLS",
    "bad certificate",
    "tunnel refused",
    "tunnel cut",
    "proxy silent",
    "unread",
    "half read",
    "processed and lost",
    "cut in the head",
    "too slow",
    "garbage",
    "refused early",
    "refused early, then read",
    "the server says",
    "429",
    "5xx",
    "redirect",
    "redirect to a fault",
    "body breaks off",
    "REFUSED_STREAM",
    "GOAWAY that leaves out",
    "GOAWAY that covers",
    "stream reset",
];

pub fn failure(failure: TransportError) -> AttemptResult {
    AttemptResult::Failure(failure)
}

pub fn status(code: u16) -> AttemptResult {
    AttemptResult::Status(StatusCode::from_u16(code).expect("a status of the plan's"))
}
