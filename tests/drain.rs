#![allow(clippy::disallowed_methods)]
#[path = "support/sends.rs"]
mod sends;
mod support;
use reqwest_retry_rules::*;
use sends::*;
use std::time::Duration;
use support::h1::H1;
use support::script::{Act, Answer};

fn waits(ms: u64) -> RetryPolicy {
    RetryRule {
        backoff: Backoff {
            base: Duration::from_millis(ms),
            max: Duration::from_millis(ms),
            growth: 1000,
            jitter: Jitter::NoJitter,
        },
        ..at_once(3)
    }
    .into()
}

on_both_runtimes! {
    async fn probe() {
        for (what, ms, size, later) in [("none", 0, 0, 0), ("4k", 0, 4096, 0), ("40k", 0, 40_000, 0), ("40k wait 1", 1, 40_000, 0), ("40k wait 3", 3, 40_000, 0), ("later", 100, 40_000, 30)] {
            let mut counts = Vec::new();
            for _ in 0..20 {
                let refused = Answer::new(503);
                let refused = if later > 0 { refused.body_later(Duration::from_millis(later), vec![b'x'; size]) } else { refused.body(vec![b'x'; size]) };
                let server = H1::start(vec![refused.clone().into(), refused.clone().into(), refused.into(), Act::ok("done")]).await;
                let client = retrying(support::client(), waits(ms));
                let (answer, _) = send(client.get(server.url("/"))).await;
                assert_eq!(answer.unwrap().text().await.unwrap(), "done");
                counts.push(server.connections());
            }
            println!("{what}: {counts:?}");
        }
    }
}
