//! Rules for services with habits of their own: a model service like OpenAI's, a payment service
//! like Stripe's, a code host like GitHub's, and an SDK that only reads.
//!
//! Run it with `cargo run --example vendor_rules`. The services are small ones on this machine; the
//! numbers to go by are in the documentation of the real ones.

#![allow(clippy::disallowed_methods)] // what clippy.toml bans, it bans from src

mod support;

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderName, Method, Request};
use hyper::body::Incoming;
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::StatusMatch::{Code, Range};
use reqwest_retry_rules::{
    Backoff, Jitter, Methods, ResponseHead, RetryAfter, RetryAfterCap, RetryAfterRole,
    RetryAfterSource, RetryLog, RetryMiddleware, RetryPolicy, RetryReport, RetryRule, StatusRule,
    WaitFormat, WaitHeader, client_builder,
};

use support::{Answer, Service, answer};

/// A model service: it says itself whether to try again, and how soon, to the millisecond.
fn models() -> RetryRule {
    RetryRule {
        max_retries: 2,
        override_header: Some(HeaderName::from_static("x-should-retry")),
        // Every call is a POST, and one that fails is not billed...
        statuses: vec![StatusRule::new(
            [Code(408), Code(409), Code(429), Range(500, 599)],
            Methods::Any,
        )],
        // ...which nobody knows of one whose connection was lost.
        sent_failures: Methods::Never,
        unsent_failures: true,
        retry_after: RetryAfter {
            source: RetryAfterSource::MsThenHeader,
            cap: RetryAfterCap::BackoffAbove(Duration::from_secs(60)),
            ..RetryAfter::default()
        },
        backoff: Backoff {
            base: Duration::from_millis(500),
            max: Duration::from_secs(8),
            growth: 2000,
            jitter: Jitter::Proportional { lo: 750, hi: 1000 },
        },
        ..RetryRule::never()
    }
}

/// A payment service: it knows a repeated request by its key, so a POST may be repeated.
fn payments() -> RetryPolicy {
    let rule = RetryRule {
        max_retries: 2,
        // Of this header only `false` counts: its `true` forces nothing.
        veto_header: Some(HeaderName::from_static("stripe-should-retry")),
        statuses: vec![StatusRule::new(
            [Code(409), Range(500, 599)],
            Methods::Idempotent,
        )],
        sent_failures: Methods::Idempotent,
        unsent_failures: true,
        backoff: Backoff {
            base: Duration::from_millis(500),
            max: Duration::from_secs(5),
            growth: 2000,
            jitter: Jitter::Proportional { lo: 500, hi: 1000 },
        },
        ..RetryRule::never()
    };
    // Makes a key for each POST, the same on all its attempts, and counts it as idempotent.
    RetryPolicy::from(rule).idempotency_key(HeaderName::from_static("idempotency-key"))
}

/// A code host: it answers 403 when too many requests came, and says when to come back.
fn code_host() -> RetryPolicy {
    let rule = RetryRule {
        max_retries: 3,
        statuses: vec![
            StatusRule::new([Code(429)], Methods::Any),
            StatusRule::new([Range(500, 599)], Methods::Idempotent),
        ],
        sent_failures: Methods::Idempotent,
        unsent_failures: true,
        retry_after: RetryAfter {
            source: RetryAfterSource::Header,
            cap: RetryAfterCap::StopAbove(Duration::from_secs(120)),
            // Not everybody at the very second.
            spread: 100,
            ..RetryAfter::default()
        },
        ..RetryRule::transient()
    };
    RetryPolicy::from(rule)
        .retry_if(Methods::Any, |head| {
            head.status() == 403 && is_limited(head)
        })
        .server_delay(until_reset)
}

/// A 403 is a limit if the answer says so; else it means what it says.
fn is_limited(head: &ResponseHead<'_>) -> bool {
    let left = head.headers().get("x-ratelimit-remaining");
    head.headers().contains_key(RETRY_AFTER) || left.is_some_and(|left| left == "0")
}

/// The moment of the reset is in every answer, and means something only if nothing is left. That is
/// why it is not among the rule's `retry_after.headers`: these go by the status alone.
///
/// The moment is on the service's clock, so it is counted from the service's own time of day.
fn until_reset(head: &ResponseHead<'_>) -> Option<Duration> {
    if head.headers().contains_key(RETRY_AFTER) || !is_limited(head) {
        return None;
    }
    let reset = WaitHeader {
        name: HeaderName::from_static("x-ratelimit-reset"),
        format: WaitFormat::UnixSeconds,
        statuses: vec![],
    };
    reset.read(
        head.headers(),
        head.date().or_else(|| Some(SystemTime::now())),
    )
}

/// An SDK that only reads: two retries, 200 ms to 5 s, anything up to that, and never sooner than
/// the service asks.
fn reader() -> RetryRule {
    let reads = Methods::Listed(vec![Method::GET, Method::HEAD]);
    RetryRule {
        max_retries: 2,
        statuses: vec![StatusRule::new(
            [Code(408), Code(429), Range(500, 599)],
            reads.clone(),
        )],
        sent_failures: reads,
        unsent_failures: true,
        retry_after: RetryAfter {
            source: RetryAfterSource::Header,
            cap: RetryAfterCap::StopAbove(Duration::from_secs(60)),
            role: RetryAfterRole::Floor,
            ..RetryAfter::default()
        },
        backoff: Backoff {
            base: Duration::from_millis(200),
            max: Duration::from_secs(5),
            growth: 2000,
            jitter: Jitter::Full,
        },
        ..RetryRule::never()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let ledger = Ledger::default();
    let entries = ledger.clone();
    let payment_service = move |_nth, request| entries.clone().answer(request);

    println!("Four services, and waits as they would be: two seconds or so.\n");
    let (models, payments, code_host, reader) = tokio::try_join!(
        send(models().into(), Service::start(model_service), MODELS),
        send(payments(), Service::start(payment_service), PAYMENTS),
        send(code_host(), Service::start(code_service), CODE_HOST),
        send(reader().into(), Service::start(read_service), READER),
    )?;

    print("A model service, like OpenAI's", &models);
    print("A payment service, like Stripe's", &payments);
    println!("    charges made: {}\n", ledger.charges());
    print("A code host, like GitHub's", &code_host);
    print("An SDK that only reads", &reader);
    Ok(())
}

/// Method and path of a call, and what the service does then.
type Call = (Method, &'static str, &'static str);

/// Sends each of the calls, and keeps its report.
async fn send(
    policy: RetryPolicy,
    service: impl Future<Output = io::Result<Service>>,
    calls: &[Call],
) -> anyhow::Result<Vec<(String, RetryReport)>> {
    let service = service.await?;
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(policy))
        .build();
    let mut sent = Vec::new();
    for (method, path, what) in calls {
        let log = RetryLog::new();
        client
            .request(method.clone(), service.url(path))
            .with_extension(log.clone())
            .send()
            .await?;
        sent.extend(
            log.report()
                .map(|report| (format!("{method} {path}: {what}"), report)),
        );
    }
    Ok(sent)
}

fn print(title: &str, sent: &[(String, RetryReport)]) {
    println!("== {title} ==\n");
    for (heading, report) in sent {
        support::print(heading, report);
    }
}

const MODELS: &[Call] = &[
    (Method::POST, "/busy", "429, and retry-after-ms: 250"),
    (Method::POST, "/hopeless", "500, and x-should-retry: false"),
    (Method::POST, "/unlucky", "400, and x-should-retry: true"),
    (Method::POST, "/down", "503, and a Retry-After of an hour"),
];

async fn model_service(nth: u32, request: Request<Incoming>) -> Answer {
    match (request.uri().path(), nth) {
        ("/busy", 1) => answer(429, &[("retry-after-ms", "250"), ("retry-after", "1")]),
        ("/hopeless", _) => answer(500, &[("x-should-retry", "false")]),
        ("/unlucky", 1) => answer(400, &[("x-should-retry", "true")]),
        ("/down", _) => answer(503, &[("retry-after", "3600")]),
        _ => answer(200, &[]),
    }
}

const PAYMENTS: &[Call] = &[
    (
        Method::POST,
        "/charges",
        "the charge is made, and the connection lost",
    ),
    (
        Method::POST,
        "/locked",
        "409, and stripe-should-retry: false",
    ),
    (
        Method::POST,
        "/declined",
        "402, and stripe-should-retry: true",
    ),
];

/// The keys of the charges that were made.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<HashSet<Vec<u8>>>>);

impl Ledger {
    async fn answer(self, request: Request<Incoming>) -> Answer {
        let key = request.headers().get("idempotency-key");
        match (request.uri().path(), key) {
            ("/charges", Some(key)) => {
                let mut charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if charges.insert(key.as_bytes().to_vec()) {
                    Err(io::Error::other("the answer is lost"))
                } else {
                    answer(200, &[])
                }
            }
            ("/charges", None) => answer(400, &[]),
            ("/locked", _) => answer(409, &[("stripe-should-retry", "false")]),
            _ => answer(402, &[("stripe-should-retry", "true")]),
        }
    }

    fn charges(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

const CODE_HOST: &[Call] = &[
    (
        Method::GET,
        "/issues",
        "403, nothing left until a reset soon",
    ),
    (Method::GET, "/commits", "403, nothing left for an hour"),
    (Method::GET, "/secrets", "403, and plenty left"),
    (Method::GET, "/pulls", "502, and plenty left"),
];

/// How far the clock of the code host is ahead of this machine's.
const AHEAD: Duration = Duration::from_secs(600);

async fn code_service(nth: u32, request: Request<Incoming>) -> Answer {
    let now = SystemTime::now() + AHEAD;
    let date = httpdate::fmt_http_date(now);
    let now = now.duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_err(io::Error::other)?.as_secs();
    let (soon, later) = ((now + 2).to_string(), (now + 3600).to_string());
    let limit = |status, left, reset: &str| {
        answer(
            status,
            &[
                ("date", date.as_str()),
                ("x-ratelimit-remaining", left),
                ("x-ratelimit-reset", reset),
            ],
        )
    };
    match (request.uri().path(), nth) {
        ("/issues", 1) => limit(403, "0", &soon),
        ("/commits", _) => limit(403, "0", &later),
        ("/secrets", _) => limit(403, "4999", &later),
        ("/pulls", 1) => limit(502, "4999", &later),
        _ => limit(200, "4999", &later),
    }
}

const READER: &[Call] = &[
    (Method::GET, "/slow-down", "429, and Retry-After: 1"),
    (Method::GET, "/now", "503, and Retry-After: 0"),
    (Method::GET, "/down", "503"),
];

async fn read_service(nth: u32, request: Request<Incoming>) -> Answer {
    match (request.uri().path(), nth) {
        ("/slow-down", 1) => answer(429, &[("retry-after", "1")]),
        ("/now", 1) => answer(503, &[("retry-after", "0")]),
        ("/down", _) => answer(503, &[]),
        _ => answer(200, &[]),
    }
}
