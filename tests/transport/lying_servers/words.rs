//! Answers that are wrong, word by word.

use bytes::Bytes;
use futures_util::future::join_all;
use reqwest::Method;
use reqwest_retry_rules::AttemptResult::{Failure, Status};
use reqwest_retry_rules::TransportError::{self, Body as BrokenBody, Closed, Protocol, Timeout};

use super::{client, soon};
use crate::support::h1::H1;
use crate::support::script::{Act, End};
use crate::support::sends::{Went, send};

/// What a lie comes to, with what is read of the body afterwards, where it is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// An answer of this status with this body.
    Answer(u16, &'static str),
    /// An answer of this status whose body breaks off.
    Broken(u16),
    Failed(TransportError),
}

use Fate::{Answer as Comes, Broken, Failed};

/// What is written after the request was read, how it ends, and what comes of it.
type Lie = (&'static str, End, Fate);

const LIES: &[Lie] = &[
    // Lengths that are none.
    (
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: four\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: +4\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 0x4\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 4, 5\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\nbody",
        End::Stall,
        Failed(Protocol),
    ),
    // Lengths that are wrong.
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody",
        End::Close,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody",
        End::Reset,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody",
        End::Stall,
        Failed(Timeout),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551000\r\n\r\nbody",
        End::Close,
        Broken(200),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbody",
        End::Stall,
        Comes(200, "bod"),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nbody",
        End::Stall,
        Comes(200, ""),
    ),
    // Chunks.
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nbody\r\n0\r\n\r\n",
        End::Stall,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nbody\r\n0\r\n\r\n",
        End::Stall,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nbody",
        End::Close,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\nbody",
        End::Stall,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbodyXX0\r\n\r\n",
        End::Stall,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n",
        End::Close,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n",
        End::Close,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nno trailer\r\n\r\n",
        End::Stall,
        Failed(BrokenBody),
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        End::Stall,
        Comes(200, "body"),
    ),
    // Heads.
    ("", End::Stall, Failed(Timeout)),
    ("HTTP/1.1 200 OK\r\ncontent-le", End::Stall, Failed(Timeout)),
    ("HTTP/1.1 200 OK\r\ncontent-le", End::Close, Failed(Closed)),
    ("hello", End::Close, Failed(Protocol)),
    ("HTTP/1.1 20\r\n\r\n", End::Stall, Failed(Protocol)),
    ("HTTP/1.1 099 Low\r\n\r\n", End::Stall, Failed(Protocol)),
    ("HTTP/1.1 1000 High\r\n\r\n", End::Stall, Failed(Protocol)),
    (
        "HTTP/1.1 999 High\r\ncontent-length: 0\r\n\r\n",
        End::Stall,
        Comes(999, ""),
    ),
    (
        "HTTP/9.9 200 OK\r\ncontent-length: 0\r\n\r\n",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\nx y: z\r\n\r\n",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\r\nx: \0\r\n\r\n",
        End::Stall,
        Failed(Protocol),
    ),
    (
        "HTTP/1.1 200 OK\ncontent-length: 4\n\nbody",
        End::Stall,
        Comes(200, "body"),
    ),
    (
        "HTTP/1.0 200 OK\r\n\r\nbody",
        End::Close,
        Comes(200, "body"),
    ),
    // Answers that have no body, with one.
    (
        "HTTP/1.1 204 No\r\ncontent-length: 4\r\n\r\nbody",
        End::Stall,
        Comes(204, ""),
    ),
    (
        "HTTP/1.1 304 No\r\ncontent-length: 4\r\n\r\nbody",
        End::Stall,
        Comes(304, ""),
    ),
    // Interim answers.
    (
        "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 On\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
        End::Stall,
        Comes(200, "body"),
    ),
    (
        "HTTP/1.1 103 On\r\ncontent-length: 4\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
        End::Stall,
        Comes(200, "body"),
    ),
    ("HTTP/1.1 100 Go\r\n\r\n", End::Stall, Failed(Timeout)),
    ("HTTP/1.1 100 Go\r\n\r\n", End::Close, Failed(Closed)),
    ("HTTP/1.1 199 What\r\n\r\n", End::Reset, Failed(Closed)),
    // Compressed.
    (
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nbody",
        End::Stall,
        Broken(200),
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n",
        End::Stall,
        Comes(200, ""),
    ),
];

async fn fate_of(outcome: reqwest_middleware::Result<reqwest::Response>, went: &Went) -> Fate {
    let result = *went.results.last().unwrap();
    match (outcome, result) {
        (Ok(answer), Status(status)) => match answer.text().await {
            Ok(text) => Comes(status.as_u16(), text.leak()),
            Err(_) => Broken(status.as_u16()),
        },
        (_, Failure(failure)) => Failed(failure),
        other => panic!("{other:?}"),
    }
}

/// Sends to a server that tells the same lie again and again; says what came of the last attempt,
/// of how many, and how many requests the server saw.
async fn told(act: Act, method: Method, what: &str) -> (Fate, Went, usize) {
    let server = H1::start(act).await;
    let request = client()
        .request(method.clone(), server.url("/"))
        .body("order");
    let (outcome, went) = soon(what, send(request)).await;
    let fate = soon(what, fate_of(outcome, &went)).await;
    (fate, went, server.count())
}

#[tokio::test]
async fn a_lie_costs_a_post_one_sending_and_is_what_it_is() {
    let told = LIES.iter().map(|(words, end, fate)| async move {
        let act = Act::Raw(Bytes::from_static(words.as_bytes()), *end);
        let (came, went, sent) = told(act, Method::POST, words).await;
        assert_eq!(came, *fate, "{words:?}");
        assert_eq!((went.results.len(), sent), (1, 1), "{words:?}");
    });
    join_all(told).await;
}

#[tokio::test]
async fn a_lie_costs_a_get_three_sendings_at_most() {
    let told = LIES.iter().map(|(words, end, fate)| async move {
        let act = Act::Raw(Bytes::from_static(words.as_bytes()), *end);
        let (came, went, sent) = told(act, Method::GET, words).await;
        assert_eq!(came, *fate, "{words:?}");
        let attempts = match fate {
            Failed(Closed | Timeout | BrokenBody) => 3,
            _ => 1,
        };
        assert_eq!(
            (went.results.len(), sent),
            (attempts, attempts),
            "{words:?}"
        );
    });
    join_all(told).await;
}

#[tokio::test]
async fn a_head_that_is_answered_with_a_body_has_none() {
    let words = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
    let act = Act::Raw(Bytes::from_static(words.as_bytes()), End::Keep);
    let server = H1::start(act).await;
    let client = client();
    for sent in 1..=5 {
        let answer = client.head(server.url("/")).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "");
        assert_eq!(server.count(), sent);
    }
}
