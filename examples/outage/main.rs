//! A service fails for ten minutes, and a hundred thousand clients retry: what each rule does to
//! it, and to them.
//!
//! ```sh
//! cargo run --release --example outage                 # 100 000 clients, target/outage.svg
//! cargo run --release --example outage -- 1000000 million.svg
//! ```
//!
//! # What one learns
//!
//! 1. If all wait equally long, clients that failed together come back together, be it by a backoff
//!    without jitter or a `Retry-After` without spread: they come back as one, at forty times the
//!    capacity, minute after minute, and the service needs seven to nine minutes more to recover;
//!    with full jitter it needs three and with a spread little more than one, and nothing is lost,
//!    so take `Jitter::Full` and set `RetryAfter::spread`.
//! 2. Let the longest wait fit the crowd: as long as the service is down the load is the number of
//!    clients divided by their mean wait, so waits of up to a minute (half of it on average) are
//!    2.9 times what this service can answer, while waits of 60 to 90 seconds are 1.4 times.
//! 3. Immediate retries turn ten minutes into an outage without end; a `RetryBudget` bounds any
//!    rule to little more than no retries at all, and gives up as much as they do, so keep it,
//!    unless the requests have to succeed in the end: then take it off and wait long, with jitter
//!    and a hard limit.
//! 4. Let the sends of a process wait together once the service asks for rest
//!    (`RetryPolicy::pause_origins`), and it refuses a twentieth of what it had to refuse; but they
//!    come back together too, so spread them over longer than the service needs to answer them all
//!    (80 seconds here): over two minutes nothing is lost and nothing is left to recover from, over
//!    half a minute it takes nine minutes, and without spread it is worse than without the pause.
//!
//! # The model
//!
//! Half of the clients listen on an open connection, which the outage cuts, so that they all ask
//! for a new one at once; the other half ask once a minute on average, at any time, which is two
//! thirds of what the service can answer. A client that gave up asks again a minute later.
//!
//! In the outage the service refuses everything at once with a 503, at no cost. Otherwise it has a
//! queue of one second of work and refuses what does not fit; a refusal costs a fifth of an answer,
//! so that enough of them leave no time for answers.
//!
//! [`RetryRule::decide`] decides about every refusal, and nothing else of the crate takes part. The
//! budget is that of tower, and the pause is this crate's, but both in simulated time, since the
//! originals read a clock; each holds for the five thousand clients of a process. Chance is seeded:
//! each run gives the same figures.

use std::error::Error;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};
use reqwest_retry_rules::{Backoff, Jitter, Limits, RetryAfter, RetryAfterSource, RetryRule};

use self::model::{Policy, Run};

mod chart;
mod model;

const SEED: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let clients = match arguments.next() {
        Some(number) => match number.parse::<NonZeroU32>() {
            Ok(clients) => clients.get(),
            Err(_) => return Err(format!("a number of clients is wanted, not {number}").into()),
        },
        None => 100_000,
    };
    let path = arguments.next().unwrap_or("target/outage.svg".to_owned());

    let policies = policies();
    let runs = run_all(&policies, clients);
    print_table(&policies, &runs, clients);
    if let Some(folder) = Path::new(&path).parent() {
        std::fs::create_dir_all(folder)?;
    }
    chart::draw(&path, &policies, &runs, clients)?;
    println!("\n{path} shows the load second by second.");
    Ok(())
}

/// The rules that are compared, two by two.
fn policies() -> [Policy; 10] {
    let never = RetryRule::never();
    let at_once = RetryRule {
        max_retries: 5,
        retry_after: RetryAfter::default(),
        backoff: Backoff::default(),
        ..RetryRule::transient()
    };
    // Patient enough to outlast the outage.
    let backoff = |jitter| RetryRule {
        max_retries: u32::MAX,
        backoff: Backoff {
            base: Duration::from_secs(1),
            max: Duration::from_secs(60),
            growth: 2000,
            jitter,
        },
        limits: Limits {
            hard_elapsed: Some(Duration::from_secs(15 * 60)),
            ..Limits::default()
        },
        ..at_once.clone()
    };
    let obedient = |spread| RetryRule {
        retry_after: RetryAfter {
            source: RetryAfterSource::Header,
            spread,
            ..RetryAfter::default()
        },
        ..backoff(Jitter::Full)
    };
    let in_a_minute = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("60"))]);

    let plain = |name, rule| Policy {
        name,
        rule,
        refusal: HeaderMap::new(),
        budget: false,
        pause: None,
    };
    let budgeted = |name, rule| Policy {
        budget: true,
        ..plain(name, rule)
    };
    let told = |name, rule| Policy {
        refusal: in_a_minute.clone(),
        ..plain(name, rule)
    };
    let pausing = |name, spread| Policy {
        pause: Some(spread),
        ..told(name, obedient(0))
    };
    [
        plain("no retry", never),
        plain("5 retries at once", at_once.clone()),
        plain("backoff, no jitter", backoff(Jitter::NoJitter)),
        plain("backoff, full jitter", backoff(Jitter::Full)),
        budgeted("5 at once, with a budget", at_once.clone()),
        budgeted("full jitter, with a budget", backoff(Jitter::Full)),
        told("Retry-After: 60, no spread", obedient(0)),
        told("Retry-After: 60, spread by half", obedient(500)),
        pausing("60 s of pause, no spread", 0),
        pausing("60 s of pause, spread by 120 s", 2000),
    ]
}

/// Runs all policies, as many at a time as there are processors.
fn run_all(policies: &[Policy], clients: u32) -> Vec<Run> {
    let next = AtomicUsize::new(0);
    let runs = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, |number| number.get());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(policies.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(policy) = policies.get(index) else {
                        break;
                    };
                    let run = model::run(policy, clients, SEED);
                    runs.lock().unwrap().push((index, run));
                }
            });
        }
    });
    let mut runs = runs.into_inner().unwrap();
    runs.sort_by_key(|(index, _)| *index);
    runs.into_iter().map(|(_, run)| run).collect()
}

fn print_table(policies: &[Policy], runs: &[Run], clients: u32) {
    println!(
        "{} clients, {} answers a second, an outage of ten minutes\n",
        grouped(clients.into()),
        grouped(model::capacity(clients) as u64),
    );
    println!(
        "{:32}     peak load        requests     time to          sends",
        ""
    );
    println!(
        "{:32}in it     after it     wasted      recover        given up",
        ""
    );
    let capacity = model::capacity(clients);
    for (policy, run) in policies.iter().zip(runs) {
        println!(
            "{:<31} {:>5.1}× {:>7.1}× {:>14} {:>11} {:>12} {:>5.1} %",
            policy.name,
            f64::from(run.peak_in_outage()) / capacity,
            f64::from(run.peak_after()) / capacity,
            grouped(run.refused()),
            recovery(run),
            grouped(run.lost),
            100.0 * run.lost as f64 / run.sends as f64,
        );
    }
}

fn recovery(run: &Run) -> String {
    match run.recovery() {
        None => "never".to_owned(),
        Some(seconds) if seconds < 60 => format!("{seconds} s"),
        Some(seconds) => format!("{} min {:>2} s", seconds / 60, seconds % 60),
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
