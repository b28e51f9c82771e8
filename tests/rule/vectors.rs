//! The expected answers of `tests/vectors/`, row by row; the model has to give them too.
#![cfg(feature = "serde")]

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Backoff, Decision, Methods, RetryRule, StopReason, TransportError,
    parse_retry_after, retry_after_ms,
};
use serde_json::{Value, json};

use crate::support::model;

/// Answers every row of `text` and compares with what it expects under `expect`.
#[track_caller]
fn every_row(text: &str, expect: &str, answer: impl Fn(&Value) -> Value) {
    let rows: Vec<Value> = serde_json::from_str(text).unwrap();
    assert!(!rows.is_empty());
    let wrong: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| (index, row, answer(row)))
        .filter(|(_, row, answer)| *answer != row[expect])
        .map(|(index, row, answer)| format!("row {index} gives {answer}: {row}"))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

fn ms(duration: Duration) -> Value {
    json!(u64::try_from(duration.as_millis()).unwrap())
}

fn some_ms(duration: Option<Duration>) -> Value {
    duration.map_or(Value::Null, ms)
}

fn duration(value: &Value) -> Option<Duration> {
    value.as_u64().map(Duration::from_millis)
}

fn moment(value: &Value) -> Option<SystemTime> {
    duration(value).map(|since| SystemTime::UNIX_EPOCH + since)
}

fn headers(value: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for pair in value.as_array().unwrap() {
        let name = HeaderName::from_bytes(pair[0].as_str().unwrap().as_bytes()).unwrap();
        headers.append(
            name,
            HeaderValue::from_str(pair[1].as_str().unwrap()).unwrap(),
        );
    }
    headers
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn status(value: &Value) -> Option<StatusCode> {
    value
        .as_u64()
        .map(|code| StatusCode::from_u16(u16::try_from(code).unwrap()).unwrap())
}

fn failure(value: &Value) -> TransportError {
    if let Some(proxy) = value.get("proxy") {
        return TransportError::Proxy {
            status: status(proxy),
        };
    }
    match value.as_str().unwrap() {
        "dns" => TransportError::Dns,
        "connect" => TransportError::Connect,
        "connect_timeout" => TransportError::ConnectTimeout,
        "tls" => TransportError::Tls,
        "not_processed" => TransportError::NotProcessed,
        "after_redirect" => TransportError::AfterRedirect,
        "timeout" => TransportError::Timeout,
        "closed" => TransportError::Closed,
        "body" => TransportError::Body,
        "certificate" => TransportError::Certificate,
        "protocol" => TransportError::Protocol,
        other => panic!("no failure is called {other}"),
    }
}

fn decision(decision: Decision) -> Value {
    let reason = match decision {
        Decision::Wait(wait) => return json!({ "wait_ms": ms(wait) }),
        Decision::Stop(reason) => reason,
    };
    let told = match reason {
        StopReason::Exhausted => json!("exhausted"),
        StopReason::NotReplayable => json!("not_replayable"),
        StopReason::ServerSaidNo => json!("server_said_no"),
        StopReason::NotRetryable => json!("not_retryable"),
        StopReason::MethodNotAllowed => json!("method_not_allowed"),
        StopReason::RetryAfterTooLong(asked) => json!({ "retry_after_too_long_ms": ms(asked) }),
        StopReason::HardLimit(wait) => json!({ "hard_limit_ms": ms(wait) }),
        StopReason::SoftLimit => json!("soft_limit"),
        StopReason::Budget(wait) => json!({ "budget_ms": ms(wait) }),
        other => panic!("no rule decides {other:?}"),
    };
    json!({ "stop": told })
}

type Decide = fn(&RetryRule, &AttemptOutcome<'_>, &Attempt<'_>) -> Decision;

fn decide(row: &Value, decide: Decide) -> Value {
    let rule: RetryRule = serde_json::from_value(row["rule"].clone()).unwrap();
    let facts = &row["facts"];
    let method = Method::from_bytes(facts["method"].as_str().unwrap().as_bytes()).unwrap();
    let condition: Option<Methods> = serde_json::from_value(facts["condition"].clone()).unwrap();
    let attempt = Attempt {
        method: &method,
        attempt: number(&facts["attempt"]),
        random: facts["random"].as_f64().unwrap(),
        now: moment(&facts["now_unix_ms"]),
        elapsed: duration(&facts["elapsed_ms"]).unwrap_or_default(),
        remaining: duration(&facts["remaining_ms"]),
        server_delay: duration(&facts["server_delay_ms"]),
        condition: condition.as_ref(),
        idempotent: facts["idempotent"].as_bool().unwrap(),
        replayable: facts["replayable"].as_bool().unwrap(),
        vetoed: facts["vetoed"].as_bool().unwrap_or(false),
        replaced: facts["replaced"].as_bool().unwrap_or(false),
        paused: duration(&facts["paused_ms"]),
    };
    let outcome = &row["outcome"];
    let headers = outcome.get("headers").map(headers).unwrap_or_default();
    let outcome = match status(&outcome["status"]) {
        Some(status) => AttemptOutcome::Response {
            status,
            headers: &headers,
        },
        None => AttemptOutcome::Failure(failure(&outcome["failure"])),
    };
    decision(decide(&rule, &outcome, &attempt))
}

#[test]
fn every_decision() {
    for answer in [RetryRule::decide as Decide, model::decide] {
        every_row(include_str!("../vectors/decide.json"), "expect", |row| {
            decide(row, answer)
        });
    }
}

#[test]
fn every_backoff() {
    for delay in [Backoff::delay, model::delay] {
        every_row(
            include_str!("../vectors/backoff.json"),
            "expect_ms",
            |row| {
                let backoff: Backoff = serde_json::from_value(row["backoff"].clone()).unwrap();
                ms(delay(
                    &backoff,
                    number(&row["attempt"]),
                    row["random"].as_f64().unwrap(),
                ))
            },
        );
    }
}

#[test]
fn every_retry_after() {
    for parse in [parse_retry_after, model::parse_retry_after] {
        every_row(
            include_str!("../vectors/parse_retry_after.json"),
            "expect_ms",
            |row| {
                some_ms(parse(
                    row["value"].as_str().unwrap(),
                    moment(&row["now_unix_ms"]),
                ))
            },
        );
    }
}

#[test]
fn every_retry_after_ms() {
    for read in [retry_after_ms, model::retry_after_ms] {
        every_row(
            include_str!("../vectors/retry_after_ms.json"),
            "expect_ms",
            |row| some_ms(read(&headers(&row["headers"]), moment(&row["now_unix_ms"]))),
        );
    }
}

#[test]
fn no_file_is_left_out() {
    let mut files: Vec<String> = std::fs::read_dir("tests/vectors")
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let run = [
        "backoff.json",
        "decide.json",
        "parse_retry_after.json",
        "retry_after_ms.json",
    ];
    assert_eq!(files, run);
}
