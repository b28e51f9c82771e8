//! What a retry costs where the server is far: a connection that is made anew takes a round trip
//! for TCP and one for TLS, one that is used again takes none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{ConstantBuilder, Retryable};
use hyper::body::Bytes;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_retry_rules::{Backoff, RetryRule};
use retry_policies::Jitter;

use crate::clients::{self, Layer};
use crate::far;
use crate::server::{Content, Refuses, Server};
use crate::table::Table;

const ONE_WAY: Duration = Duration::from_millis(15);
const BACKOFF: Duration = Duration::from_millis(50);
/// Enough for the body not to be read together with the head.
const LATER: Duration = Duration::from_millis(5);
const ROUNDS: usize = 10;

const APART: &str = "over TLS, 30 ms there and back: 503, its 64 bytes 5 ms later, 50 ms, 200";
const TOGETHER: &str = "over TLS, 30 ms there and back: 503 and its 64 bytes at once, 50 ms, 200";

pub fn report(table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("one");
    let small = Content::from(Bytes::from(vec![b'x'; 64]));
    let apart = small.clone().sent_after_the_head(LATER);
    for (what, content, goal) in [(APART, apart, "0.6 of the peer"), (TOGETHER, small, "")] {
        let callers = runtime.block_on(in_turn(content));
        let peer = callers.first().map(Caller::median);
        for caller in callers {
            let goal = if caller.who == "ours" { goal } else { "" };
            table.time(what, caller.who, Some(caller.median()), peer, goal);
            let opened = caller.server.connections() - caller.opened_before;
            let opened = format!("{opened} new connections in {ROUNDS} sends");
            table.value(what, caller.who, opened, "");
        }
    }
}

/// Each sends once a round, and each goes first as often as the others.
async fn in_turn(content: Content) -> Vec<Caller> {
    let mut callers = vec![
        Caller::new("reqwest-retry", peer(), false, content.clone()).await,
        Caller::new("backon", None, true, content.clone()).await,
        Caller::new("ours", ours(), false, content).await,
    ];
    for round in 0..ROUNDS {
        for turn in 0..callers.len() {
            let at = (round + turn) % callers.len();
            let took = callers[at].send().await;
            callers[at].took.push(took);
        }
    }
    for caller in &callers {
        // With the one that warmed the connection, each of two requests.
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
    /// Whether it retries in a loop around the client, as one does with backon.
    loops: bool,
    url: String,
    server: Server,
    opened_before: usize,
    took: Vec<Duration>,
}

impl Caller {
    /// One that has a connection already.
    async fn new(who: &'static str, layer: Layer, loops: bool, content: Content) -> Self {
        let (server, known) = Server::start_tls(Refuses::EveryOther, content).await;
        let url = format!(
            "https://{}/v1/items",
            far::away(server.address, ONE_WAY).await
        );
        let client = clients::settings()
            .tls_certs_only([known])
            .build()
            .expect("a client");
        let client = clients::with(ClientBuilder::new(client), layer).build();
        let (opened_before, took) = (0, Vec::new());
        let mut caller = Self {
            who,
            client,
            loops,
            url,
            server,
            opened_before,
            took,
        };
        caller.send().await;
        caller.opened_before = caller.server.connections();
        caller
    }

    /// Sends, and says how long it took up to the end of the body.
    async fn send(&self) -> Duration {
        let begun = Instant::now();
        let once = async || {
            self.client
                .get(&self.url)
                .send()
                .await?
                .error_for_status()
                .map_err(Into::into)
        };
        let answer: reqwest_middleware::Result<_> = if self.loops {
            let waits = ConstantBuilder::default().with_delay(BACKOFF);
            once.retry(waits).sleep(tokio::time::sleep).await
        } else {
            once().await
        };
        answer.expect("a success").bytes().await.expect("its body");
        begun.elapsed()
    }

    fn median(&self) -> f64 {
        let mut sorted = self.took.clone();
        sorted.sort();
        sorted[sorted.len() / 2].as_nanos() as f64
    }
}

fn peer() -> Layer {
    let policy = ExponentialBackoff::builder()
        .retry_bounds(BACKOFF, BACKOFF)
        .jitter(Jitter::None)
        .build_with_max_retries(3);
    Some(Arc::new(RetryTransientMiddleware::new_with_policy(policy)))
}

fn ours() -> Layer {
    let backoff = Backoff {
        base: BACKOFF,
        max: BACKOFF,
        ..Backoff::default()
    };
    clients::ours(RetryRule {
        backoff,
        ..clients::rule()
    })
}
