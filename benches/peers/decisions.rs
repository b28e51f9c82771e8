//! One decision, and the reading of a date, without a send.

use std::hint::black_box;
use std::sync::Arc;
use std::time::SystemTime;

use backon::BackoffBuilder;
use criterion::Criterion;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, RetryRule, StatusMatch, StatusRule, TransportError, WaitFormat,
    WaitHeader, parse_retry_after,
};
use retry_policies::RetryPolicy;

use crate::table::{Table, median};

pub const DECISION: &str = "one decision";
pub const DATE: &str = "a date in Retry-After";
const GROWTH: &str = "one decision, with more to look at";

const ROUTES: &str = "which rule a URL has";

const TODAY: &str = "Sat, 29 Nov 2025 20:00:05 GMT";

fn measure(criterion: &mut Criterion) {
    let rule = RetryRule::transient();
    let facts = Attempt {
        attempt: 2,
        random: 0.5,
        ..Attempt::new(&Method::GET)
    };
    let headers = HeaderMap::new();
    let refused = AttemptOutcome::Response {
        status: StatusCode::SERVICE_UNAVAILABLE,
        headers: &headers,
    };
    let failed = AttemptOutcome::Failure(TransportError::Closed);

    let mut group = criterion.benchmark_group(DECISION);
    group.bench_function("ours, after a failure", |bencher| {
        bencher.iter(|| black_box(&rule).decide(black_box(&failed), black_box(&facts)));
    });
    group.bench_function("ours, after a 503", |bencher| {
        bencher.iter(|| black_box(&rule).decide(black_box(&refused), black_box(&facts)));
    });
    let peer = retry_policies::policies::ExponentialBackoff::builder().build_with_max_retries(3);
    let now = SystemTime::now();
    group.bench_function("retry-policies", |bencher| {
        bencher.iter(|| black_box(&peer).should_retry(black_box(now), black_box(2)));
    });
    let peer = backon::ExponentialBuilder::default().with_jitter();
    group.bench_function("backon", |bencher| {
        // Of an iterator the third wait; what is measured is a third of all three.
        bencher.iter_custom(|decisions| {
            let begun = std::time::Instant::now();
            for _ in 0..decisions.div_ceil(3) {
                black_box(black_box(peer).build().map(black_box).last());
            }
            begun.elapsed()
        });
    });
    group.finish();

    let now = httpdate::parse_http_date("Sat, 29 Nov 2025 20:00:00 GMT").ok();
    let mut group = criterion.benchmark_group(DATE);
    group.bench_function("httpdate", |bencher| {
        bencher.iter(|| httpdate::parse_http_date(black_box(TODAY)));
    });
    group.bench_function("ours", |bencher| {
        bencher.iter(|| parse_retry_after(black_box(TODAY), black_box(now)));
    });
    group.finish();

    let mut group = criterion.benchmark_group(GROWTH);
    for (name, statuses, waits) in [
        ("none", 0, 0),
        ("32 statuses", 32, 0),
        ("8 wait headers", 0, 8),
    ] {
        let mut rule = RetryRule::transient();
        let last = rule.statuses.clone();
        rule.statuses = (0..statuses)
            .map(|at| StatusRule {
                statuses: vec![StatusMatch::Code(600 + at)],
                methods: reqwest_retry_rules::Methods::Any,
                backoff: None,
            })
            .chain(last)
            .collect();
        rule.retry_after.headers = (0..waits)
            .filter_map(|at| {
                let name = http::HeaderName::try_from(format!("x-wait-{at}")).ok()?;
                Some(WaitHeader {
                    name,
                    format: WaitFormat::Seconds,
                    statuses: vec![],
                })
            })
            .collect();
        group.bench_function(name, |bencher| {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static("text/plain"));
            let outcome = AttemptOutcome::Response {
                status: StatusCode::SERVICE_UNAVAILABLE,
                headers: &headers,
            };
            bencher.iter(|| black_box(&rule).decide(black_box(&outcome), black_box(&facts)));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group(ROUTES);
    for (name, routes, host, path) in ROUTE_TABLES {
        let mut policy = reqwest_retry_rules::RetryPolicy::from(RetryRule::transient());
        let rule = Arc::new(RetryRule::never());
        for at in 0..routes {
            let pattern = format!("{host}service-{at}.example.com{path}").parse();
            let pattern = pattern.unwrap_or_else(|error| panic!("{error}"));
            policy = policy.route(pattern, Arc::clone(&rule));
        }
        // The last of the routes has it.
        let last = routes.max(1) - 1;
        let below = host.replace('*', "eu");
        let url = format!("https://{below}service-{last}.example.com/search/x").parse();
        let url: reqwest::Url = url.unwrap_or_else(|error| panic!("{error}"));
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(black_box(&policy).rule_for(black_box(&url))));
        });
    }
    group.finish();
}

/// How many routes there are, and what stands before and after the host of each.
const ROUTE_TABLES: [(&str, usize, &str, &str); 5] = [
    ("no route", 0, "", ""),
    ("1 route", 1, "", ""),
    ("the last of 100 hosts", 100, "", ""),
    ("the last of 100 hosts with a path", 100, "", "/search"),
    ("the last of 100 with a star", 100, "*.", ""),
];

pub fn report(table: &mut Table) {
    measure(&mut crate::criterion());
    let time = median;
    let peer = time(DECISION, "retry-policies");
    table.time(DECISION, "retry-policies", peer, peer, "");
    table.time(DECISION, "backon", time(DECISION, "backon"), peer, "");
    for who in ["ours, after a failure", "ours, after a 503"] {
        table.time(DECISION, who, time(DECISION, who), peer, "below 15 ns");
    }
    let alone = time(DATE, "httpdate");
    table.time(DATE, "httpdate", alone, alone, "");
    table.time(
        DATE,
        "ours",
        time(DATE, "ours"),
        alone,
        "below 1.30 of httpdate",
    );
    let none = time(GROWTH, "none");
    for who in ["none", "32 statuses", "8 wait headers"] {
        table.time(GROWTH, who, time(GROWTH, who), none, "");
    }
    let none = time(ROUTES, "no route");
    for (who, ..) in ROUTE_TABLES {
        table.time(ROUTES, who, time(ROUTES, who), none, "");
    }
}
