//! Sixty-four clients at once on loopback, each layer right beside plain reqwest, in turning order.
//!
//! A copy that is made on one core and freed on another costs more than it seems to. What costs
//! here is memory that other work has pushed out of the caches by the time an answer is there: a
//! middleware that does nothing loses a hundredth by that, and the budget half as much. Threads
//! count apart for it, each of eight behind a lock of its own, and meet at tower's budget itself
//! with every fifth answer only.

use std::time::{Duration, Instant};

use hyper::body::Bytes;
use reqwest_middleware::ClientBuilder;

use crate::clients;
use crate::sends;
use crate::server::{Refuses, Server};
use crate::table::Table;

const CLIENTS: usize = 64;
const ROUNDS: usize = 30;
const ROUND: Duration = Duration::from_millis(300);

pub fn report(table: &mut Table) {
    let what = "POSTs a second, 64 clients at once, of plain reqwest";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("one");
    runtime.block_on(async {
        let server = Server::start(Refuses::First(0), Bytes::from_static(b"{}")).await;
        let mut layers = clients::layers();
        layers.insert(0, ("plain reqwest", None));
        let mut ratios = vec![Vec::new(); layers.len()];
        for round in 0..ROUNDS {
            for turn in 0..layers.len() {
                let at = (round + turn) % layers.len();
                let client =
                    clients::with(ClientBuilder::new(clients::plain()), layers[at].1.clone());
                let pair = [ClientBuilder::new(clients::plain()), client].map(ClientBuilder::build);
                let [plain, own] = &pair;
                // Each goes first as often as second.
                let (own, plain) = if (round + turn) % 2 == 0 {
                    let plain = run(plain, &server).await;
                    (run(own, &server).await, plain)
                } else {
                    let own = run(own, &server).await;
                    (own, run(plain, &server).await)
                };
                ratios[at].push(own / plain);
            }
        }
        for ((who, _), mut ratios) in layers.into_iter().zip(ratios) {
            ratios.sort_by(f64::total_cmp);
            let goal = if who == "ours" { "0.98" } else { "" };
            table.value(what, who, format!("{:.2}", ratios[ratios.len() / 2]), goal);
        }
    });
}

/// How many requests a second the clients make together.
async fn run(client: &reqwest_middleware::ClientWithMiddleware, server: &Server) -> f64 {
    let url: reqwest::Url = server.url.parse().expect("its URL");
    let begun = Instant::now();
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (client, url) = (client.clone(), url.clone());
            tokio::spawn(async move {
                let mut sent = 0_u32;
                while begun.elapsed() < ROUND {
                    let mut request = sends::post();
                    *request.url_mut() = url.clone();
                    let answer = client.execute(request).await.expect("an answer");
                    answer.bytes().await.expect("its body");
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    let mut sent = 0;
    for task in tasks {
        sent += task.await.expect("no panic");
    }
    f64::from(sent) / begun.elapsed().as_secs_f64()
}
