//! Whole sends without a network.
//!
//! What is dearer than a middleware that does nothing: the clock, the six looks into the map of the
//! feature `task-local-extensions`, the budget, the copy of the request.

use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use http::{HeaderValue, Method};
use reqwest::{Body, Request};
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::RetryPolicy;
use tokio::runtime::{Builder, Runtime};

use crate::clients::{self, Answers};
use crate::table::{Table, median};

const GET: &str = "GET that succeeds";
const POST: &str = "POST that succeeds";
const RETRIED: &str = "three retries without a wait";
const WORK: &str = "a work of one GET, in `run`";
const ORIGINS: &str = "GETs that succeed, to many origins in turn";

pub fn get() -> Request {
    let url = "http://api.example.com:8080/v1/items?page=2"
        .parse()
        .expect("a URL");
    let mut request = Request::new(Method::GET, url);
    let headers = request.headers_mut();
    headers.insert("accept", HeaderValue::from_static("application/json"));
    headers.insert("user-agent", HeaderValue::from_static("bench/1.0"));
    headers.insert("x-request-id", HeaderValue::from_static("0123456789abcdef"));
    request
}

pub fn post() -> Request {
    let mut request = get();
    *request.method_mut() = Method::POST;
    request
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(Body::from(&br#"{"amount":1200,"currency":"eur"}"#[..]));
    request
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// So many requests are made ready at once.
const BATCH: u64 = 64;

/// Times `execute` alone: the requests are there before.
fn bench(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    client: impl Fn() -> ClientWithMiddleware,
    request: impl Fn(u64) -> Request,
) {
    let runtime = runtime();
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|sends| {
            let client = client();
            let mut spent = Duration::ZERO;
            let mut left = sends;
            while left > 0 {
                let batch = left.min(BATCH);
                left -= batch;
                let requests: Vec<_> = (left..left + batch).map(&request).collect();
                spent += runtime.block_on(async {
                    let begun = Instant::now();
                    for request in requests {
                        drop(client.execute(request).await);
                    }
                    begun.elapsed()
                });
            }
            spent
        });
    });
}

/// Times works of one GET each.
fn bench_works(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    made: impl Fn() -> (RetryPolicy, ClientWithMiddleware),
) {
    let runtime = runtime();
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|works| {
            let (policy, client) = made();
            let mut spent = Duration::ZERO;
            let mut left = works;
            while left > 0 {
                let batch = left.min(BATCH);
                left -= batch;
                let mut requests: Vec<_> = (0..batch).map(|_| get()).collect();
                spent += runtime.block_on(async {
                    let begun = Instant::now();
                    for _ in 0..batch {
                        let work = |_| client.execute(requests.pop().expect("one for each"));
                        drop(policy.run(work).await);
                    }
                    begun.elapsed()
                });
            }
            spent
        });
    });
}

pub fn measure(criterion: &mut Criterion) {
    for (name, request) in [(GET, get as fn() -> Request), (POST, post)] {
        let mut group = criterion.benchmark_group(name);
        for (who, layer) in clients::layers() {
            let client = || clients::without_network(layer.clone(), Answers::new([200]));
            bench(&mut group, who, client, |_| request());
        }
        group.finish();
    }
    let mut group = criterion.benchmark_group(RETRIED);
    group.sample_size(10);
    for who in ["reqwest-retry", "ours"] {
        let layer = if who == "ours" {
            clients::ours(clients::unbudgeted())
        } else {
            clients::peer()
        };
        // The whole send is what is timed, four answers of 503 each.
        let client = || clients::without_network(layer.clone(), Answers::new([503]));
        bench(&mut group, who, client, |_| get());
    }
    group.finish();

    let mut group = criterion.benchmark_group(WORK);
    let layer = || clients::ours(clients::rule());
    let client = || clients::without_network(layer(), Answers::new([200]));
    bench(&mut group, "the GET alone", client, |_| get());
    let policy = RetryPolicy::from(clients::rule());
    let in_run = || {
        let layer = clients::ours(policy.clone());
        (
            policy.clone(),
            clients::without_network(layer, Answers::new([200])),
        )
    };
    bench_works(&mut group, "in `run`", in_run);
    group.finish();

    let mut group = criterion.benchmark_group(ORIGINS);
    for (who, origins) in MANY {
        let client =
            || clients::without_network(clients::ours(clients::rule()), Answers::new([200]));
        bench(&mut group, who, client, |nth| {
            let mut request = get();
            let host = format!("tenant-{}.example.com", nth % origins);
            request.url_mut().set_host(Some(&host)).expect("a host");
            request
        });
    }
    group.finish();
}

/// The last are as many as are remembered.
const MANY: [(&str, u64); 3] = [("1", 1), ("32", 32), ("1024", 1024)];

pub fn report(table: &mut Table) {
    let time = median;
    for what in [GET, POST] {
        let peer = time(what, "reqwest-retry");
        for (who, goal) in [
            ("pass-through", ""),
            ("try_clone kept", ""),
            ("reqwest-retry", "the peer"),
            ("ours", "1.00 of the peer"),
            ("ours, no budget", "0.95 of the peer"),
        ] {
            table.time(what, who, time(what, who), peer, goal);
        }
        let who = "ours, max_retries 0";
        let pass = time(what, "pass-through");
        table.time(what, who, time(what, who), pass, "1.03 of pass-through");
    }
    let peer = time(RETRIED, "reqwest-retry");
    table.time(RETRIED, "reqwest-retry", peer, peer, "");
    table.time(RETRIED, "ours", time(RETRIED, "ours"), peer, "below 10 µs");

    let alone = time(WORK, "the GET alone");
    table.time(WORK, "the GET alone", alone, alone, "");
    table.time(
        WORK,
        "in `run`",
        time(WORK, "in `run`"),
        alone,
        "1.30 of the GET alone",
    );

    let one = time(ORIGINS, "1");
    for (who, _) in MANY {
        table.time(ORIGINS, who, time(ORIGINS, who), one, "");
    }
}
