//! Texts of headers and of configurations.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Methods, RetryAfter, RetryAfterSource, RetryRule, StatusRule,
    WaitFormat, WaitHeader, parse_retry_after, retry_after_ms,
};

use crate::model;
use crate::retry_config::check_retry_config_text;

/// Takes the lines for the values of three headers in turn, and reads them at several times of day.
pub fn check_header_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = || data.split(|byte| *byte == b'\n');
    let mut headers = HeaderMap::new();
    for (line, name) in lines().zip(["retry-after", "retry-after-ms", "x-wait"].iter().cycle()) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    for now in times() {
        for text in text.split('\n').chain([&*text]) {
            assert_eq!(
                parse_retry_after(text, now),
                model::parse_retry_after(text, now)
            );
        }
        assert_eq!(
            retry_after_ms(&headers, now),
            model::retry_after_ms(&headers, now)
        );
        for format in [
            WaitFormat::Seconds,
            WaitFormat::Millis,
            WaitFormat::UnixSeconds,
            WaitFormat::UnixMillis,
            WaitFormat::HttpDate,
        ] {
            let name = HeaderName::from_static("x-wait");
            let header = WaitHeader {
                name,
                format,
                statuses: vec![],
            };
            assert_eq!(
                header.read(&headers, now),
                model::wait_header(&header, &headers, now)
            );
            check_wait(header, &headers, now);
        }
    }
}

/// None, and moments before, at and after the ones that dates name.
fn times() -> [Option<SystemTime>; 5] {
    let epoch = SystemTime::UNIX_EPOCH;
    let after = |ms| epoch.checked_add(Duration::from_millis(ms));
    [
        None,
        after(784_111_776_123),
        after(1_483_228_799_999),
        epoch.checked_sub(Duration::from_micros(1_500)),
        after(u64::MAX),
    ]
}

/// What is read is what is waited.
fn check_wait(header: WaitHeader, headers: &HeaderMap, now: Option<SystemTime>) {
    let rule = RetryRule {
        max_retries: 1,
        statuses: vec![StatusRule::new([100..=999], Methods::Any)],
        retry_after: RetryAfter {
            headers: vec![header],
            source: RetryAfterSource::MsThenHeader,
            ..RetryAfter::default()
        },
        ..RetryRule::never()
    };
    let attempt = Attempt {
        now,
        ..Attempt::new(&Method::POST)
    };
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let outcome = AttemptOutcome::Response { status, headers };
    assert_eq!(
        rule.decide(&outcome, &attempt),
        model::decide(&rule, &outcome, &attempt)
    );
}

/// Reads a rule from TOML and from JSON; what can be read is good, and goes out and in again. The same
/// text may also be a whole configuration.
pub fn check_config_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check_retry_config_text(text);
    match toml::from_str::<RetryRule>(text) {
        Ok(rule) => {
            check_rule(&rule);
            // The long way round, by a table; its numbers end at `i64::MAX`, those of a text do not.
            if let Ok(table) = text.parse::<toml::Table>() {
                assert_eq!(rule, serde_json::from_value(json(&table)).unwrap());
                assert_eq!(rule, table.try_into().unwrap());
            }
        }
        Err(error) => assert_ne!(error.to_string(), ""),
    }
    match serde_json::from_str::<RetryRule>(text) {
        Ok(rule) => {
            check_rule(&rule);
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(rule, serde_json::from_value(value).unwrap());
        }
        Err(error) => assert_ne!(error.to_string(), ""),
    }
}

fn check_rule(rule: &RetryRule) {
    assert_eq!(rule.validate(), Ok(()));
    assert!(model::is_valid(rule));
    assert_eq!(rule, &serde_json::from_value(json(rule)).unwrap());
    assert_eq!(
        rule,
        &serde_json::from_str(&json(rule).to_string()).unwrap()
    );
    for text in [toml::to_string(rule), toml::to_string_pretty(rule)] {
        assert_eq!(rule, &toml::from_str(&text.unwrap()).unwrap());
    }
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}
