//! What well-known clients send again, told as rules: the files of the example `strategies`, and what
//! each decides.

use std::time::Duration;

use reqwest_retry_rules::{Advice, RetryConfig};

#[path = "../../examples/strategies/decisions.rs"]
mod decisions;

/// Compares the waits of these settings, in milliseconds, and the decisions; gives the advice.
#[track_caller]
fn decides(settings: &str, waits: &[u64], expected: &str) -> Vec<Advice> {
    let config: RetryConfig = toml::from_str(settings).unwrap();
    let rule = config.rule();
    let in_ms: Vec<_> = waits.iter().copied().map(Duration::from_millis).collect();
    assert_eq!(decisions::waits(rule), in_ms);
    let shown = decisions::decisions(rule);
    assert_eq!(shown, expected.trim_start_matches('\n'), "\n{shown}");
    rule.advice()
}

#[test]
fn uv() {
    let advice = decides(
        include_str!("../../examples/strategies/uv.toml"),
        &[500, 1000, 2000],
        r"
               GET     PUT     POST
404            -       -       -
408            500ms   500ms   500ms
409            -       -       -
429            500ms   500ms   500ms
500            500ms   500ms   500ms
501            500ms   500ms   500ms
503            500ms   500ms   500ms
429, in 7 s    500ms   500ms   500ms
Connect        500ms   500ms   500ms
ConnectTimeout 500ms   500ms   500ms
NotProcessed   500ms   500ms   500ms
Timeout        500ms   500ms   500ms
Closed         500ms   500ms   500ms
Certificate    -       -       -
Protocol       -       -       -
",
    );
    assert_eq!(advice, []);
}

#[test]
fn rattler() {
    let advice = decides(
        include_str!("../../examples/strategies/rattler.toml"),
        &[500, 1000, 2000],
        r"
               GET     PUT     POST
404            -       -       -
408            500ms   500ms   500ms
409            -       -       -
429            500ms   500ms   500ms
500            500ms   500ms   500ms
501            500ms   500ms   500ms
503            500ms   500ms   500ms
429, in 7 s    500ms   500ms   500ms
Connect        500ms   500ms   500ms
ConnectTimeout 500ms   500ms   500ms
NotProcessed   500ms   500ms   500ms
Timeout        500ms   500ms   500ms
Closed         500ms   500ms   500ms
Certificate    -       -       -
Protocol       -       -       -
",
    );
    assert_eq!(advice, []);
}

#[test]
fn hf_hub() {
    let advice = decides(
        include_str!("../../examples/strategies/hf_hub.toml"),
        &[100, 200, 400, 800, 1600],
        r"
               GET     PUT     POST
404            -       -       -
408            100ms   100ms   100ms
409            -       -       -
429            100ms   100ms   100ms
500            100ms   100ms   100ms
501            -       -       -
503            100ms   100ms   100ms
429, in 7 s    100ms   100ms   100ms
Connect        100ms   100ms   100ms
ConnectTimeout 100ms   100ms   100ms
NotProcessed   100ms   100ms   100ms
Timeout        100ms   100ms   100ms
Closed         100ms   100ms   100ms
Certificate    -       -       -
Protocol       -       -       -
",
    );
    assert_eq!(advice, []);
}

#[test]
fn codex() {
    let advice = decides(
        include_str!("../../examples/strategies/codex.toml"),
        &[200, 400, 800, 1600],
        r"
               GET     PUT     POST
404            -       -       -
408            -       -       -
409            -       -       -
429            -       -       -
500            200ms   200ms   200ms
501            200ms   200ms   200ms
503            200ms   200ms   200ms
429, in 7 s    -       -       -
Connect        200ms   200ms   200ms
ConnectTimeout 200ms   200ms   200ms
NotProcessed   200ms   200ms   200ms
Timeout        200ms   200ms   200ms
Closed         200ms   200ms   200ms
Certificate    -       -       -
Protocol       -       -       -
",
    );
    assert_eq!(advice, []);
}

#[test]
fn turborepo() {
    let advice = decides(
        include_str!("../../examples/strategies/turborepo.toml"),
        &[2000],
        r"
               GET     PUT     POST
404            -       -       -
408            -       -       -
409            -       -       -
429            2s      2s      2s
500            2s      2s      2s
501            -       -       -
503            2s      2s      2s
429, in 7 s    2s      2s      2s
Connect        2s      2s      2s
ConnectTimeout 2s      2s      2s
NotProcessed   2s      2s      2s
Timeout        -       -       -
Closed         -       -       -
Certificate    -       -       -
Protocol       -       -       -
",
    );
    // Builds that failed together come back together, as they do there.
    let no_jitter = Advice::NoJitter {
        fields: vec!["backoff".to_owned()],
    };
    assert_eq!(advice, [no_jitter]);
}

#[test]
fn datadog() {
    let advice = decides(
        include_str!("../../examples/strategies/datadog.toml"),
        &[500, 1000, 2000],
        r"
               GET     PUT     POST
404            -       -       -
408            500ms   500ms   500ms
409            -       -       -
429            500ms   500ms   500ms
500            500ms   500ms   500ms
501            500ms   500ms   500ms
503            500ms   500ms   500ms
429, in 7 s    500ms   500ms   500ms
Connect        -       -       -
ConnectTimeout -       -       -
NotProcessed   -       -       -
Timeout        -       -       -
Closed         -       -       -
Certificate    -       -       -
Protocol       -       -       -
",
    );
    assert_eq!(advice, []);
}

#[test]
fn object_store() {
    let advice = decides(
        include_str!("../../examples/strategies/object_store.toml"),
        &[50, 100, 200, 400, 800, 1600, 3200, 6400, 7500, 7500],
        r"
               GET     PUT     POST
404            -       -       -
408            -       -       -
409            -       -       -
429            -       -       -
500            50ms    50ms    50ms
501            50ms    50ms    50ms
503            50ms    50ms    50ms
429, in 7 s    -       -       -
Connect        50ms    50ms    50ms
ConnectTimeout 50ms    50ms    50ms
NotProcessed   50ms    50ms    50ms
Timeout        50ms    50ms    -
Closed         50ms    50ms    -
Certificate    -       -       -
Protocol       -       -       -
",
    );
    assert_eq!(advice, []);
}
