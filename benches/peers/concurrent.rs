//! Sixty-four tasks at once over loopback, each client right beside plain reqwest, in turning order.
//!
//! Client and server share two workers. A copy that is kept for a retry holds blocks of memory while
//! the request is under way, and glibc's caches hold seven blocks of each size for a thread. Where
//! this was first measured a kept `try_clone` was at 0.80 of plain reqwest; on the machine of the
//! README it is at 0.93 to 0.96, and at 0.98 with `GLIBC_TUNABLES=glibc.malloc.tcache_count=2000`.
//! So the price is that of an allocator and of a machine. Beside the rate is what the processors
//! spent, which other programs disturb less.

use std::time::Instant;

use http::{HeaderValue, Method, header};
use hyper::body::Bytes;
use reqwest::{Body, Request};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

use crate::clients::{self, Layer};
use crate::server::{Refuses, Server};
use crate::table::Table;

const TASKS: usize = 64;
const REQUESTS_EACH: usize = 150;
const ROUNDS: usize = 16;

pub fn report(table: &mut Table) {
    let gets = "64 tasks of 150 GETs, requests a second, of plain reqwest";
    let posts = "64 tasks of 150 POSTs of 1 KB, requests a second, of plain reqwest";
    for (what, request) in [(gets, get as fn(&str) -> Request), (posts, post)] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        for (who, rate, spent) in runtime.block_on(against_plain(request)) {
            let spent = spent.map_or(String::new(), |spent| format!(" (processors {spent:.2})"));
            let goal = if who == "ours" { "0.97" } else { "" };
            table.value(what, who, format!("{rate:.2}{spent}"), goal);
        }
    }
}

/// Of each layer the median rate, in parts of plain reqwest's, and the same of what a second of the
/// processors is good for.
async fn against_plain(request: fn(&str) -> Request) -> Vec<(&'static str, f64, Option<f64>)> {
    let server = Server::start(Refuses::First(0), Bytes::from_static(b"{}")).await;
    let client = |layer| clients::with(ClientBuilder::new(clients::plain()), layer).build();
    let plain = client(None);
    let clients: Vec<_> = layers()
        .into_iter()
        .map(|(who, layer)| (who, client(layer)))
        .collect();
    let mut rates = vec![Vec::new(); clients.len()];
    let mut spent = vec![Vec::new(); clients.len()];
    for round in 0..ROUNDS {
        for turn in 0..clients.len() {
            let at = (round + turn) % clients.len();
            let own = &clients[at].1;
            // Each goes first as often as second.
            let (own, plain) = if (round + turn) % 2 == 0 {
                let plain = run(&plain, &server, request).await;
                (run(own, &server, request).await, plain)
            } else {
                let own = run(own, &server, request).await;
                (own, run(&plain, &server, request).await)
            };
            rates[at].push(plain.elapsed / own.elapsed);
            spent[at].extend(plain.processors.zip(own.processors).map(|(p, o)| p / o));
        }
    }
    let medians = rates.into_iter().zip(spent);
    let all = clients.into_iter().zip(medians);
    all.filter_map(|((who, _), (rates, spent))| Some((who, median(rates)?, median(spent))))
        .collect()
}

/// Plain reqwest beside itself shows how much is chance.
fn layers() -> Vec<(&'static str, Layer)> {
    let mut layers = clients::layers();
    layers.insert(0, ("plain reqwest", None));
    layers
}

fn median(mut ratios: Vec<f64>) -> Option<f64> {
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

fn get(url: &str) -> Request {
    let mut request = Request::new(Method::GET, url.parse().expect("a URL"));
    let token = HeaderValue::from_static("Bearer 0123456789abcdef0123456789abcdef");
    request.headers_mut().insert(header::AUTHORIZATION, token);
    request
}

fn post(url: &str) -> Request {
    let mut request = get(url);
    *request.method_mut() = Method::POST;
    *request.body_mut() = Some(Body::from(vec![b'x'; 1024]));
    request
}

/// What all requests of all tasks took together, in seconds.
struct Took {
    elapsed: f64,
    /// `None` if the system does not say.
    processors: Option<f64>,
}

async fn run(client: &ClientWithMiddleware, server: &Server, request: fn(&str) -> Request) -> Took {
    let spent_before = processors();
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (client, url) = (client.clone(), server.url.clone());
            tokio::spawn(async move {
                for _ in 0..REQUESTS_EACH {
                    let answer = client.execute(request(&url)).await.expect("an answer");
                    answer.bytes().await.expect("its body");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    Took {
        elapsed: begun.elapsed().as_secs_f64(),
        processors: processors().zip(spent_before).map(|(now, then)| now - then),
    }
}

/// What the threads of this process have had of the processors so far, in seconds; Linux only.
fn processors() -> Option<f64> {
    let spent = |thread: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let nanoseconds: f64 = threads.map(spent).sum::<Option<f64>>()?;
    Some(nanoseconds / 1e9)
}
