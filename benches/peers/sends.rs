//! Whole sends without a network.
//!
//! What is dearer than a middleware that does nothing: the clock, the budget, what is kept of the
//! request.

use std::time::Instant;

use http::{Extensions, HeaderValue, Method};
use reqwest::{Body, Request};
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::RetryPolicy;
use tokio::runtime::{Builder, Runtime};

use crate::clients::{self, Answers};
use crate::rounds::{Rounds, Runs, Turn};
use crate::table::Table;

pub const GET: &str = "GET that succeeds";
pub const POST: &str = "POST that succeeds";
pub const RETRIED: &str = "three retries without a wait";
pub const WORK: &str = "a work of one GET";
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

fn post() -> Request {
    let mut request = get();
    *request.method_mut() = Method::POST;
    request
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(Body::from(&br#"{"amount":1200,"currency":"eur"}"#[..]));
    request
}

pub fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// So many requests are made ready at once, before the clock runs.
const BATCH: u64 = 64;
/// So many sends are a turn, which is about a millisecond.
pub const SENDS: u64 = 1024;
/// In each process.
pub const ROUNDS: usize = 30;

/// Times so many `execute`s, each with what `fill` puts into its extensions.
pub fn sends<'a>(
    runtime: &'a Runtime,
    client: ClientWithMiddleware,
    sends: u64,
    request: impl Fn(u64) -> Request + 'a,
    fill: impl Fn(&mut Extensions) + 'a,
) -> Turn<'a> {
    Box::new(move || {
        let mut spent = 0.0;
        for from in (0..sends).step_by(BATCH as usize) {
            let requests: Vec<_> = (from..sends.min(from + BATCH)).map(&request).collect();
            spent += runtime.block_on(async {
                let begun = Instant::now();
                for request in requests {
                    let mut extensions = Extensions::new();
                    fill(&mut extensions);
                    drop(
                        client
                            .execute_with_extensions(request, &mut extensions)
                            .await,
                    );
                }
                begun.elapsed().as_nanos() as f64
            });
        }
        spent / sends as f64
    })
}

/// Times works of one GET each.
fn works(runtime: &Runtime, policy: RetryPolicy, client: ClientWithMiddleware) -> Turn<'_> {
    Box::new(move || {
        let mut spent = 0.0;
        for _ in 0..SENDS / BATCH {
            let mut requests: Vec<_> = (0..BATCH).map(|_| get()).collect();
            spent += runtime.block_on(async {
                let begun = Instant::now();
                for _ in 0..BATCH {
                    let work = |_| client.execute(requests.pop().expect("one for each"));
                    drop(policy.run(work).await);
                }
                begun.elapsed().as_nanos() as f64
            });
        }
        spent / SENDS as f64
    })
}

pub fn report(table: &mut Table) {
    succeed(table, GET);
    succeed(table, POST);
    retried(table);
    work(table);
    origins(table);
}

/// What a process of its own measures, by its name; `None` if it is none of these.
pub fn alone(what: &str) -> Option<Rounds> {
    let runtime = runtime();
    let runs = match what {
        GET => succeeding(&runtime, get),
        POST => succeeding(&runtime, post),
        WORK => in_works(&runtime),
        ORIGINS => to_origins(&runtime),
        _ => return None,
    };
    Some(Rounds::run(ROUNDS, runs))
}

fn succeeding(runtime: &Runtime, request: fn() -> Request) -> Runs<'_> {
    let layers = clients::layers().into_iter().map(|(who, layer)| {
        let client = clients::without_network(layer, Answers::new([200]));
        let turn = sends(runtime, client, SENDS, move |_| request(), |_| ());
        (who, turn)
    });
    layers.collect()
}

fn succeed(table: &mut Table, what: &'static str) {
    let rounds = Rounds::of_processes(what);
    for (who, goal) in [
        ("pass-through", ""),
        ("try_clone kept", ""),
        ("reqwest-retry", ""),
        ("ours", "1.00 of the peer"),
        ("ours, no budget", "0.95 of the peer"),
    ] {
        table.side(what, who, &rounds, "reqwest-retry", goal);
    }
    let goal = "1.03 of pass-through";
    table.side(what, "ours, max_retries 0", &rounds, "pass-through", goal);
    if what == POST {
        // Which retries no POST.
        table.side(what, "ours, transient", &rounds, "pass-through", goal);
    }
}

fn retried(table: &mut Table) {
    let runtime = runtime();
    let layers = [
        ("reqwest-retry", clients::peer()),
        ("ours", clients::ours(clients::unbudgeted())),
    ];
    // The whole send is what is timed, four answers of 503 each. The peer sleeps, so few will do.
    let runs = layers.into_iter().map(|(who, layer)| {
        let client = clients::without_network(layer, Answers::new([503]));
        (who, sends(&runtime, client, 8, |_| get(), |_| ()))
    });
    let rounds = Rounds::run(20, runs.collect());
    table.side(RETRIED, "reqwest-retry", &rounds, "reqwest-retry", "");
    table.side(RETRIED, "ours", &rounds, "reqwest-retry", "below 10 µs");
}

fn in_works(runtime: &Runtime) -> Runs<'_> {
    let policy = RetryPolicy::from(clients::rule());
    let client = || clients::without_network(clients::ours(policy.clone()), Answers::new([200]));
    let alone = sends(runtime, client(), SENDS, |_| get(), |_| ());
    let in_run = works(runtime, policy.clone(), client());
    vec![("the GET alone", alone), ("in `run`", in_run)]
}

fn work(table: &mut Table) {
    let rounds = Rounds::of_processes(WORK);
    let goal = "below 1.30 of the GET alone";
    table.side(WORK, "the GET alone", &rounds, "the GET alone", "");
    table.side(WORK, "in `run`", &rounds, "the GET alone", goal);
}

/// The last are as many as are remembered.
const MANY: [(&str, u64); 3] = [("1", 1), ("32", 32), ("1024", 1024)];

fn to_origins(runtime: &Runtime) -> Runs<'_> {
    let runs = MANY.into_iter().map(|(who, origins)| {
        let layer = clients::ours(clients::rule());
        let client = clients::without_network(layer, Answers::new([200]));
        let request = move |nth| {
            let mut request = get();
            let host = format!("tenant-{}.example.com", nth % origins);
            request.url_mut().set_host(Some(&host)).expect("a host");
            request
        };
        (who, sends(runtime, client, SENDS, request, |_| ()))
    });
    runs.collect()
}

fn origins(table: &mut Table) {
    let rounds = Rounds::of_processes(ORIGINS);
    for (who, _) in MANY {
        table.side(ORIGINS, who, &rounds, "1", "");
    }
}
