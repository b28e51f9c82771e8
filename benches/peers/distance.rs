//! What a retry costs where the server is far: a connection that is made anew takes a round trip
//! for TCP and one for TLS, one that is used again takes none.
//!
//! reqwest-retry drops the response that it refused after its wait. A small body has come by then,
//! and hyper keeps the connection. If the wait is too short for that, or if a loop around the client
//! drops the response first, the connection is closed, unless the body came with the head.
//!
//! With 50 ms of backoff, 110 ms are the least that a send takes (two round trips and the wait), and
//! 170 ms are what it takes with a new connection: no more than a third can be saved.

use std::time::{Duration, Instant};

use hyper::body::Bytes;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

use crate::clients::{self, Layer};
use crate::far;
use crate::server::{Content, Refuses, Server};
use crate::table::{Table, in_words};

const ONE_WAY: Duration = Duration::from_millis(15);
const BACKOFF: Duration = Duration::from_millis(50);
/// Enough for the body not to be read together with the head.
const LATER: Duration = Duration::from_millis(5);
const ROUNDS: usize = 10;

pub const APART: &str =
    "over TLS, 30 ms there and back: 503, its 64 bytes 5 ms later, 50 ms of backoff, 200";
pub const APART_AT_ONCE: &str =
    "over TLS, 30 ms there and back: 503, its 64 bytes 5 ms later, no wait, 200";
const TOGETHER: &str =
    "over TLS, 30 ms there and back: 503 and its 64 bytes at once, 50 ms of backoff, 200";

pub fn report(table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("one");
    let small = Content::from(Bytes::from(vec![b'x'; 64]));
    let apart = small.clone().sent_after_the_head(LATER);
    for (what, content, wait, goal) in [
        (APART, apart.clone(), BACKOFF, "0.6 of the peer"),
        (APART_AT_ONCE, apart, Duration::ZERO, ""),
        (TOGETHER, small, BACKOFF, ""),
    ] {
        let callers = runtime.block_on(in_turn(content, wait));
        let peer = callers.first().map_or(f64::NAN, Caller::median);
        for caller in callers {
            let goal = if caller.who == "ours" { goal } else { "" };
            let opened = caller.server.connections() - caller.opened_before;
            let took = caller.median();
            let measured = format!("{}, {opened} of {ROUNDS} reconnect", in_words(took));
            table.row(what, caller.who, measured, Some(took / peer), goal);
        }
    }
}

/// Each sends once a round, and each goes first as often as the others.
async fn in_turn(content: Content, wait: Duration) -> Vec<Caller> {
    let layers = [
        ("reqwest-retry", clients::peer_after(wait)),
        ("backon", None),
        ("ours", clients::ours_after(wait)),
    ];
    let mut callers = Vec::new();
    for (who, layer) in layers {
        callers.push(Caller::new(who, layer, wait, content.clone()).await);
    }
    for round in 0..ROUNDS {
        for turn in 0..callers.len() {
            let at = (round + turn) % callers.len();
            let took = callers[at].send().await;
            callers[at].took.push(took);
        }
    }
    for caller in &callers {
        // With the send that made the first connection, two requests each.
        assert_eq!(caller.server.requests(), 2 * (1 + ROUNDS), "{}", caller.who);
        if caller.who == "ours" {
            assert_eq!(caller.server.connections(), 1);
        }
    }
    callers
}

struct Caller {
    who: &'static str,
    client: ClientWithMiddleware,
    wait: Duration,
    url: String,
    server: Server,
    opened_before: usize,
    took: Vec<Duration>,
}

impl Caller {
    /// One that has a connection already.
    async fn new(who: &'static str, layer: Layer, wait: Duration, content: Content) -> Self {
        let (server, known) = Server::start_tls(Refuses::EveryOther, content).await;
        let address = far::away(server.address, ONE_WAY).await;
        let client = clients::settings()
            .tls_certs_only([known])
            .build()
            .expect("a client");
        let mut caller = Self {
            who,
            client: clients::with(ClientBuilder::new(client), layer).build(),
            wait,
            url: format!("https://{address}/v1/items"),
            server,
            opened_before: 0,
            took: Vec::new(),
        };
        caller.send().await;
        caller.opened_before = caller.server.connections();
        caller
    }

    /// Sends, and says how long it took up to the end of the body.
    async fn send(&self) -> Duration {
        let begun = Instant::now();
        let answer = match self.who {
            "backon" => clients::in_backon(&self.client, &self.url, self.wait).await,
            _ => self.client.get(&self.url).send().await,
        };
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.bytes().await.expect("its body");
        begun.elapsed()
    }

    fn median(&self) -> f64 {
        let mut sorted = self.took.clone();
        sorted.sort();
        sorted[sorted.len() / 2].as_nanos() as f64
    }
}
