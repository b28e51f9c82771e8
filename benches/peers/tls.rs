//! What a retry costs over real TLS: a connection that was drained is used again, one that was not
//! is made anew. On loopback a handshake that resumes a session costs next to nothing; `distance`
//! shows what it costs elsewhere.
//!
//! The peer sleeps even if its wait is zero, which is a tick of tokio's timer.

use std::time::{Duration, Instant};

use criterion::Criterion;
use hyper::body::Bytes;
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::{Backoff, RetryPolicy, RetryRule};

use crate::clients;
use crate::server::{Refuses, Server};
use crate::table::{Table, median};

pub const RETRY: &str = "over TLS, a 503 of 40 KB, then the answer";
const PLAIN: &str = "answered at once";
pub const PEER: &str = "reqwest-retry, no wait";
pub const DRAINED: &str = "ours, no wait";
const UNREAD: &str = "ours, no wait, drain_limit 0";
const DRAINED_LATER: &str = "ours, 5 ms";
const UNREAD_LATER: &str = "ours, 5 ms, drain_limit 0";

fn measure(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("one");
    let after = |ms| {
        let wait = Duration::from_millis(ms);
        let backoff = Backoff {
            base: wait,
            max: wait,
            ..Backoff::default()
        };
        let rule = RetryRule {
            backoff,
            ..clients::rule()
        };
        RetryPolicy::from(rule).no_budget()
    };
    let every_other = Refuses::EveryOther;
    let mut group = criterion.benchmark_group(RETRY);
    group.sample_size(20);
    for (who, layer, refuses) in [
        (PLAIN, clients::ours(after(0)), Refuses::First(0)),
        (PEER, clients::peer(), every_other),
        (DRAINED, clients::ours(after(0)), every_other),
        (UNREAD, clients::ours(after(0).drain_limit(0)), every_other),
        (DRAINED_LATER, clients::ours(after(5)), every_other),
        (
            UNREAD_LATER,
            clients::ours(after(5).drain_limit(0)),
            every_other,
        ),
    ] {
        group.bench_function(who, |bencher| {
            bencher.iter_custom(|sends| runtime.block_on(spent(layer.clone(), refuses, sends)));
        });
    }
    group.finish();
}

/// How long so many sends take, one after the other.
async fn spent(layer: clients::Layer, refuses: Refuses, sends: u64) -> Duration {
    let (server, known) = Server::start_tls(refuses, Bytes::from(vec![b'x'; 40_000])).await;
    let client = clients::settings()
        .tls_certs_only([known])
        .build()
        .expect("a client");
    let client = clients::with(ClientBuilder::new(client), layer).build();
    let begun = Instant::now();
    for _ in 0..sends {
        let answer = client.get(&server.url).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.bytes().await.expect("its body");
    }
    begun.elapsed()
}

pub fn report(table: &mut Table) {
    measure(&mut crate::criterion());
    let peer = median(RETRY, PEER);
    for who in [PLAIN, PEER, DRAINED, UNREAD] {
        let goal = if who == DRAINED { "below the peer" } else { "" };
        table.time(RETRY, who, median(RETRY, who), peer, goal);
    }
    let unread = median(RETRY, UNREAD_LATER);
    for who in [UNREAD_LATER, DRAINED_LATER] {
        table.time(RETRY, who, median(RETRY, who), unread, "");
    }
}
