//! What is counted instead of timed: connections and requests. (Allocations are asserted by the tests.)

use std::time::Duration;

use futures_util::StreamExt;
use hyper::body::Bytes;
use reqwest::Response;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Result};
use reqwest_retry_rules::{Backoff, RetryRule};

use crate::clients::{self, Layer};
use crate::server::{Refuses, Server};
use crate::table::Table;

pub const CONNECTIONS: &str = "connections for 503, 503, 503, 200 with 40 KB bodies";
pub const OUTAGE: &str = "requests for 500 GETs, 50 at a time, in an outage";

fn client(layer: Layer) -> ClientWithMiddleware {
    clients::with(ClientBuilder::new(clients::plain()), layer).build()
}

pub fn report(table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("one");
    runtime.block_on(async {
        connections(table).await;
        outage(table).await;
    });
}

async fn get(who: &str, client: &ClientWithMiddleware, url: &str) -> Result<Response> {
    match who {
        "backon" => clients::in_backon(client, url, Duration::ZERO).await,
        _ => client.get(url).send().await,
    }
}

async fn connections(table: &mut Table) {
    let layers = [
        ("reqwest-retry", clients::peer(), ""),
        ("backon", None, ""),
        ("ours", clients::ours(clients::rule()), "1"),
    ];
    for (who, layer, goal) in layers {
        let server = Server::start(Refuses::First(3), Bytes::from(vec![b'x'; 40_000])).await;
        let client = client(layer);
        let answer = get(who, &client, &server.url).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(server.requests(), 4, "{who}");
        if who == "ours" {
            assert_eq!(server.connections(), 1);
        }
        table.value(CONNECTIONS, who, server.connections(), goal);
    }
}

async fn outage(table: &mut Table) {
    let short = Backoff {
        base: Duration::from_millis(1),
        max: Duration::from_millis(10),
        ..RetryRule::transient().backoff
    };
    let rule = RetryRule {
        backoff: short,
        ..RetryRule::transient()
    };
    let layers = [
        ("reqwest-retry", clients::peer(), ""),
        ("backon", None, ""),
        ("ours", clients::ours(rule), "below 650"),
    ];
    for (who, layer, goal) in layers {
        let server = Server::start(Refuses::First(usize::MAX), Bytes::new()).await;
        let client = client(layer);
        futures_util::stream::iter(0..500)
            .for_each_concurrent(50, |_| async {
                // backon's gives the error, the others the response.
                get(who, &client, &server.url).await.ok();
            })
            .await;
        if who == "ours" {
            assert!(server.requests() < 650);
        }
        table.value(OUTAGE, who, server.requests(), goal);
    }
}
