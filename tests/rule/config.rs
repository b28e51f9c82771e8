//! The data format: every shape that is good, there and back, and what is said of every bad one.
#![cfg(feature = "serde")]

use std::fmt::Debug;
use std::time::Duration;

use http::{HeaderName, Method};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reqwest_retry_rules::{
    Backoff, Jitter, Limits, Methods, RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource,
    RetryRule, StatusMatch, StatusRule, WaitFormat, WaitHeader,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Reads `json` as `expected`, and writes and reads that again.
#[track_caller]
fn good<T>(json: Value, expected: T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    assert_eq!(from_value::<T>(json).unwrap(), expected);
    assert_eq!(
        from_value::<T>(serde_json::to_value(&expected).unwrap()).unwrap(),
        expected
    );
}

/// A rule in TOML that cannot be read, and why not; the same in JSON.
#[track_caller]
fn bad(text: &str, why: &str) {
    assert_eq!(
        toml::from_str::<RetryRule>(text).unwrap_err().message(),
        why
    );
    let table: toml::Table = text.parse().unwrap();
    bad_json(&serde_json::to_string(&table).unwrap(), why);
}

/// A `T` in JSON that cannot be read, and why not.
#[track_caller]
fn bad_json_of<T: DeserializeOwned + Debug>(text: &str, why: &str) {
    let error = serde_json::from_str::<T>(text).unwrap_err();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let place = if error.line() == 0 { "" } else { &place };
    assert_eq!(error.to_string(), format!("{why}{place}"));
}

#[track_caller]
fn bad_json(text: &str, why: &str) {
    bad_json_of::<RetryRule>(text, why);
}

/// A rule in which every field differs from `never()`'s.
fn everything() -> RetryRule {
    RetryRule {
        max_retries: 3,
        statuses: vec![
            StatusRule {
                statuses: vec![
                    StatusMatch::Code(429),
                    StatusMatch::Range(500, 599),
                    StatusMatch::Range(500, 599),
                ],
                methods: Methods::Idempotent,
                backoff: None,
            },
            StatusRule {
                statuses: vec![StatusMatch::Code(409)],
                methods: Methods::Listed(vec![Method::GET, Method::PUT]),
                backoff: None,
            },
        ],
        sent_failures: Methods::Idempotent,
        unsent_failures: true,
        timeouts: false,
        override_header: Some(HeaderName::from_static("x-should-retry")),
        veto_header: Some(HeaderName::from_static("x-no-retry")),
        retry_after: RetryAfter {
            headers: vec![WaitHeader {
                name: HeaderName::from_static("x-ratelimit-reset"),
                format: WaitFormat::UnixSeconds,
                statuses: vec![],
            }],
            source: RetryAfterSource::MsThenHeader,
            cap: RetryAfterCap::StopAbove(ms(60_000)),
            zero_means_backoff: true,
            role: RetryAfterRole::Floor,
            spread: 250,
        },
        backoff: Backoff {
            base: ms(100),
            max: ms(1000),
            growth: 1500,
            jitter: Jitter::Proportional { lo: 800, hi: 1200 },
        },
        limits: Limits {
            soft_elapsed: Some(ms(300_000)),
            min_retries: 2,
            hard_elapsed: Some(ms(600_000)),
        },
    }
}

const EVERYTHING: &str = r#"
    max_retries = 3
    statuses = [
        { statuses = [429, "500-599", "5xx"], methods = "idempotent" },
        { statuses = [409], methods = ["GET", "PUT"] },
    ]
    sent_failures = "idempotent"
    unsent_failures = true
    timeouts = false
    override_header = "x-should-retry"
    veto_header = "x-no-retry"
    [retry_after]
    source = "ms_then_header"
    cap = { stop_above_ms = 60000 }
    zero_means_backoff = true
    role = "floor"
    spread = 250
    headers = [ { name = "x-ratelimit-reset", format = "unix_seconds" } ]
    [backoff]
    base_ms = 100
    max_ms = 1000
    growth = 1500
    jitter = { proportional = { lo = 800, hi = 1200 } }
    [limits]
    soft_elapsed_ms = 300000
    min_retries = 2
    hard_elapsed_ms = 600000
"#;

#[test]
fn every_field_is_read_from_toml() {
    assert_eq!(
        toml::from_str::<RetryRule>(EVERYTHING).unwrap(),
        everything()
    );
}

#[test]
fn every_field_is_read_from_json() {
    let table: toml::Table = EVERYTHING.parse().unwrap();
    good(serde_json::to_value(table).unwrap(), everything());
}

#[test]
fn a_rule_is_written_as_it_is_read() {
    let range = json!([429, "500-599", "500-599"]);
    assert_eq!(
        serde_json::to_value(everything()).unwrap(),
        json!({
            "max_retries": 3,
            "statuses": [
                { "statuses": range, "methods": "idempotent" },
                { "statuses": [409], "methods": ["GET", "PUT"] },
            ],
            "sent_failures": "idempotent",
            "unsent_failures": true,
            "timeouts": false,
            "override_header": "x-should-retry",
            "veto_header": "x-no-retry",
            "retry_after": {
                "headers": [{ "name": "x-ratelimit-reset", "format": "unix_seconds" }],
                "source": "ms_then_header",
                "cap": { "stop_above_ms": 60000 },
                "zero_means_backoff": true,
                "role": "floor",
                "spread": 250,
            },
            "backoff": {
                "base_ms": 100,
                "max_ms": 1000,
                "growth": 1500,
                "jitter": { "proportional": { "lo": 800, "hi": 1200 } },
            },
            "limits": {
                "soft_elapsed_ms": 300000,
                "min_retries": 2,
                "hard_elapsed_ms": 600000,
            },
        }),
    );
}

#[test]
fn what_is_absent_is_as_in_never() {
    good(json!({}), RetryRule::never());
    good(
        json!({ "retry_after": {}, "backoff": {}, "limits": {} }),
        RetryRule::never(),
    );
    assert_eq!(toml::from_str::<RetryRule>("").unwrap(), RetryRule::never());
    good(
        json!({ "max_retries": 3 }),
        RetryRule {
            max_retries: 3,
            ..RetryRule::never()
        },
    );
    good(json!({}), RetryAfter::default());
    good(json!({}), Backoff::default());
    good(json!({}), Limits::default());
}

/// A rule that differs from `transient()`, as a file may say it.
#[track_caller]
fn differs_from_transient(text: &str, change: impl FnOnce(&mut RetryRule)) {
    let mut expected = RetryRule::transient();
    change(&mut expected);
    assert_eq!(toml::from_str::<RetryRule>(text).unwrap(), expected);
    let table: toml::Table = text.parse().unwrap();
    good(serde_json::to_value(table).unwrap(), expected);
}

#[test]
fn a_preset_says_from_what_a_file_differs() {
    differs_from_transient("preset = 'transient'", |_| ());
    differs_from_transient("preset = 'transient'\nmax_retries = 5", |rule| {
        rule.max_retries = 5
    });
    differs_from_transient(
        "preset = 'transient'\ntimeouts = false\nunsent_failures = true\nveto_header = 'x-no'",
        |rule| {
            rule.timeouts = false;
            rule.unsent_failures = true;
            rule.veto_header = Some(HeaderName::from_static("x-no"));
        },
    );
    for never in [json!({ "preset": "never" }), json!({ "preset": null })] {
        good(never, RetryRule::never());
    }
}

#[test]
fn a_preset_may_stand_after_what_differs_from_it() {
    let text = r#"{"backoff":{"max_ms":9000},"max_retries":5,"preset":"transient"}"#;
    let mut expected = RetryRule::transient();
    expected.max_retries = 5;
    expected.backoff.max = ms(9000);
    assert_eq!(serde_json::from_str::<RetryRule>(text).unwrap(), expected);
}

#[test]
fn a_table_in_part_differs_from_the_presets() {
    differs_from_transient(
        "preset = 'transient'\nbackoff = { max_ms = 9000 }",
        |rule| rule.backoff.max = ms(9000),
    );
    differs_from_transient(
        "preset = 'transient'\nretry_after = { spread = 250, role = 'floor' }",
        |rule| {
            rule.retry_after.spread = 250;
            rule.retry_after.role = RetryAfterRole::Floor;
        },
    );
    differs_from_transient("preset = 'transient'\nlimits.min_retries = 2", |rule| {
        rule.limits.min_retries = 2
    });
    differs_from_transient(
        "preset = 'transient'\n[retry_after]\n[backoff]\n[limits]",
        |_| (),
    );
}

#[test]
fn lists_and_enums_are_replaced_whole() {
    differs_from_transient(
        "preset = 'transient'
         sent_failures = ['GET']
         statuses = [{ statuses = [429], methods = 'any', backoff = { base_ms = 7, max_ms = 8 } }]
         [retry_after]
         cap = 'no_cap'
         [backoff]
         jitter = 'no_jitter'",
        |rule| {
            rule.sent_failures = Methods::Listed(vec![Method::GET]);
            rule.statuses = vec![StatusRule {
                // A row's own backoff differs from `Backoff::default()`, whatever the preset.
                backoff: Some(Backoff {
                    base: ms(7),
                    max: ms(8),
                    ..Backoff::default()
                }),
                ..StatusRule::new([429], Methods::Any)
            }];
            rule.retry_after.cap = RetryAfterCap::NoCap;
            rule.backoff.jitter = Jitter::NoJitter;
        },
    );
    differs_from_transient("preset = 'transient'\nstatuses = []", |rule| {
        rule.statuses.clear()
    });
}

#[test]
fn a_preset_that_is_none() {
    let preset = r#"expected `preset` to be "never" or "transient""#;
    for word in ["", "Transient", "default"] {
        bad(
            &format!("preset = '{word}'"),
            &format!("invalid value: string \"{word}\", {preset}"),
        );
    }
    bad(
        "preset = 3",
        &format!("invalid type: integer `3`, {preset}"),
    );
    bad(
        "backoff.preset = 'transient'",
        "unknown field `backoff.preset`, \
         expected one of `base_ms`, `max_ms`, `growth`, `jitter`",
    );
}

/// Every key of a table of a rule.
const TABLES: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            "preset",
            "max_retries",
            "statuses",
            "sent_failures",
            "unsent_failures",
            "timeouts",
            "override_header",
            "veto_header",
            "retry_after",
            "backoff",
            "limits",
        ],
    ),
    (
        "retry_after",
        &[
            "headers",
            "source",
            "cap",
            "zero_means_backoff",
            "role",
            "spread",
        ],
    ),
    ("backoff", &["base_ms", "max_ms", "growth", "jitter"]),
    (
        "limits",
        &["soft_elapsed_ms", "min_retries", "hard_elapsed_ms"],
    ),
];

#[test]
fn null_is_as_if_left_out() {
    for (table, keys) in TABLES {
        for key in keys {
            let nothing = json!({ *key: null });
            let mut file = match table {
                "" => nothing,
                table => json!({ table: nothing }),
            };
            good(file.clone(), RetryRule::never());
            if *key != "preset" {
                file["preset"] = json!("transient");
                good(file, RetryRule::transient());
            }
        }
    }
    good(
        json!({ "statuses": [429], "methods": "any", "backoff": null }),
        StatusRule::new([429], Methods::Any),
    );
    bad_json_of::<StatusRule>(
        r#"{"statuses":[429],"methods":null}"#,
        "missing field `methods`",
    );
}

#[test]
fn a_key_that_was_null_does_not_occur_again() {
    bad_json(
        r#"{"max_retries":null,"max_retries":2}"#,
        "duplicate field `max_retries`",
    );
}

#[test]
fn what_is_not_there_is_not_written() {
    assert_eq!(
        serde_json::to_value(Limits::default()).unwrap(),
        json!({ "min_retries": 0 })
    );
}

#[test]
fn methods_are_a_word_or_a_list() {
    good(json!("never"), Methods::Never);
    good(json!("idempotent"), Methods::Idempotent);
    good(json!("any"), Methods::Any);
    good(json!([]), Methods::Listed(vec![]));
    good(
        json!(["GET", "PUT"]),
        Methods::Listed(vec![Method::GET, Method::PUT]),
    );
    let purge = Method::from_bytes(b"PURGE").unwrap();
    good(json!(["PURGE"]), Methods::Listed(vec![purge]));
    let purge = Method::from_bytes(b"purge").unwrap();
    good(
        json!({ "sent_failures": ["purge"] }),
        RetryRule {
            sent_failures: Methods::Listed(vec![purge]),
            ..RetryRule::never()
        },
    );
}

#[test]
fn statuses_are_numbers_ranges_or_classes() {
    good(json!(429), StatusMatch::Code(429));
    good(json!("429"), StatusMatch::Code(429));
    good(json!("500-599"), StatusMatch::Range(500, 599));
    good(json!("1xx"), StatusMatch::Range(100, 199));
    good(json!("9xx"), StatusMatch::Range(900, 999));
    good(
        json!({ "statuses": [], "methods": "any" }),
        StatusRule {
            statuses: vec![],
            methods: Methods::Any,
            backoff: None,
        },
    );
    good(
        json!({ "statuses": ["5XX", "4xX"], "methods": "any", "backoff": { "base_ms": 7 } }),
        StatusRule {
            backoff: Some(Backoff {
                base: ms(7),
                ..Backoff::default()
            }),
            ..StatusRule::new([500..=599, 400..=499], Methods::Any)
        },
    );
}

#[test]
fn caps_are_a_word_or_a_duration() {
    good(json!("no_cap"), RetryAfterCap::NoCap);
    good(
        json!({ "stop_above_ms": 60000 }),
        RetryAfterCap::StopAbove(ms(60_000)),
    );
    good(
        json!({ "backoff_above_ms": 0 }),
        RetryAfterCap::BackoffAbove(ms(0)),
    );
    good(json!({ "clamp_to_ms": 5 }), RetryAfterCap::ClampTo(ms(5)));
}

#[test]
fn jitters_are_a_word_or_two_numbers() {
    good(json!("no_jitter"), Jitter::NoJitter);
    good(json!("full"), Jitter::Full);
    let proportional = Jitter::Proportional { lo: 1200, hi: 800 };
    good(
        json!({ "proportional": { "lo": 1200, "hi": 800 } }),
        proportional,
    );
}

#[test]
fn the_words_for_a_wait() {
    good(json!("ignore"), RetryAfterSource::Ignore);
    good(json!("header"), RetryAfterSource::Header);
    good(json!("ms_then_header"), RetryAfterSource::MsThenHeader);
    good(json!("replace"), RetryAfterRole::Replace);
    good(json!("floor"), RetryAfterRole::Floor);
    good(json!("seconds"), WaitFormat::Seconds);
    good(json!("millis"), WaitFormat::Millis);
    good(json!("unix_seconds"), WaitFormat::UnixSeconds);
    good(json!("unix_millis"), WaitFormat::UnixMillis);
    good(json!("http_date"), WaitFormat::HttpDate);
}

#[test]
fn a_headers_name_is_read_in_any_case() {
    let name = HeaderName::from_static("x-wait");
    let header = WaitHeader {
        name,
        format: WaitFormat::Millis,
        statuses: vec![],
    };
    good(
        json!({ "name": "X-Wait", "format": "millis" }),
        header.clone(),
    );
    good(
        json!({ "name": "x-wait", "format": "millis", "statuses": [429, "5xx"] }),
        WaitHeader {
            statuses: vec![429.into(), (500..=599).into()],
            ..header
        },
    );
}

#[test]
fn durations_are_whole_milliseconds_and_saturate() {
    good(
        json!({ "base_ms": u64::MAX, "max_ms": 0 }),
        Backoff {
            base: ms(u64::MAX),
            ..Backoff::default()
        },
    );
    let written = |base| {
        serde_json::to_value(Backoff {
            base,
            ..Backoff::default()
        })
        .unwrap()
    };
    assert_eq!(
        written(Duration::from_nanos(1_999_999))["base_ms"],
        json!(1)
    );
    for too_long in [Duration::MAX, Duration::from_secs(u64::MAX / 1000 + 1)] {
        assert_eq!(written(too_long)["base_ms"], json!(u64::MAX));
    }
}

/// What a text can say can be written as text. A [`toml::Table`], whose numbers end at `i64::MAX`,
/// can neither hold such a duration nor be given one.
#[test]
fn a_duration_above_i64_goes_there_and_back_as_text_and_through_no_table() {
    for (number, fits_a_table) in [
        (9_223_372_036_854_775_807, true),
        (9_223_372_036_854_775_808, false),
        (13_328_734_074_803_118_969, false),
        (u64::MAX, false),
    ] {
        let text = format!("[limits]\nsoft_elapsed_ms = {number}\n");
        let rule: RetryRule = toml::from_str(&text).unwrap();
        assert_eq!(rule.limits.soft_elapsed, Some(ms(number)));

        let written = toml::to_string(&rule).unwrap();
        assert!(written.contains(&number.to_string()), "{written}");
        assert_eq!(toml::from_str::<RetryRule>(&written).unwrap(), rule);
        good(serde_json::to_value(&rule).unwrap(), rule.clone());

        assert_eq!(text.parse::<toml::Table>().is_ok(), fits_a_table);
        assert_eq!(toml::Table::try_from(&rule).is_ok(), fits_a_table);
    }
}

#[test]
fn a_rule_can_stand_in_a_larger_configuration() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Service {
        url: String,
        retry: Option<RetryRule>,
    }
    let service: Service = toml::from_str("url = 'a'\n[retry]\nmax_retries = 2").unwrap();
    let retry = Some(RetryRule {
        max_retries: 2,
        ..RetryRule::never()
    });
    assert_eq!(
        service,
        Service {
            url: "a".to_owned(),
            retry
        }
    );
    assert_eq!(
        toml::from_str::<Service>("url = 'a'\n[retry]\ntimeouts = 1")
            .unwrap_err()
            .message(),
        "invalid type: integer `1`, expected `timeouts` to be true or false",
    );
}

#[test]
fn toml_shows_the_line() {
    let text = "max_retries = 3\n[backoff]\nbase_ms = \"100ms\"\n";
    assert_eq!(
        toml::from_str::<RetryRule>(text).unwrap_err().to_string(),
        "TOML parse error at line 3, column 11\n  \
           |\n\
         3 | base_ms = \"100ms\"\n  \
           |           ^^^^^^^\n\
         invalid type: string \"100ms\", expected `backoff.base_ms` to be a whole number of \
         milliseconds, 0 or more\n",
    );
}

#[test]
fn toml_shows_the_line_of_an_unknown_key_and_the_table_of_a_missing_one() {
    fn line(text: &str) -> &str {
        let error = toml::from_str::<RetryRule>(text).unwrap_err();
        &text[error.span().unwrap()]
    }
    assert_eq!(line("max_retries = 3\nmax_retry = 3\n"), "max_retry");
    assert_eq!(line("[backoff]\nmax_ms = 3\nbase = 3\n"), "base");
    let row = "{ statuses = [429] }";
    assert_eq!(line(&format!("statuses = [{row}]\n")), row);
}

#[test]
fn a_number_that_is_none() {
    let max_retries = "expected `max_retries` to be a whole number from 0 to 4294967295";
    bad(
        "max_retries = -1",
        &format!("invalid value: integer `-1`, {max_retries}"),
    );
    bad(
        "max_retries = 4294967296",
        &format!("invalid value: integer `4294967296`, {max_retries}"),
    );
    bad(
        "max_retries = 1.5",
        &format!("invalid type: floating point `1.5`, {max_retries}"),
    );
    bad(
        "max_retries = '3'",
        &format!("invalid type: string \"3\", {max_retries}"),
    );
    bad(
        "max_retries = true",
        &format!("invalid type: boolean `true`, {max_retries}"),
    );
    bad(
        "max_retries = [3]",
        &format!("invalid type: sequence, {max_retries}"),
    );
    bad(
        "max_retries = {}",
        &format!("invalid type: map, {max_retries}"),
    );
    bad_json(
        r#"{"max_retries":[null]}"#,
        &format!("invalid type: sequence, {max_retries}"),
    );
    bad(
        "backoff.growth = -2",
        "invalid value: integer `-2`, \
         expected `backoff.growth` to be a whole number from 0 to 4294967295",
    );
    bad(
        "retry_after.spread = '10%'",
        "invalid type: string \"10%\", \
         expected `retry_after.spread` to be a whole number from 0 to 4294967295",
    );
    bad(
        "limits.min_retries = 0.5",
        "invalid type: floating point `0.5`, \
         expected `limits.min_retries` to be a whole number from 0 to 4294967295",
    );
}

#[test]
fn a_duration_that_is_none() {
    for field in [
        "backoff.base_ms",
        "backoff.max_ms",
        "retry_after.cap.stop_above_ms",
    ] {
        let expected =
            format!("expected `{field}` to be a whole number of milliseconds, 0 or more");
        bad(
            &format!("{field} = -1"),
            &format!("invalid value: integer `-1`, {expected}"),
        );
        bad(
            &format!("{field} = '1s'"),
            &format!("invalid type: string \"1s\", {expected}"),
        );
    }
    for field in ["soft_elapsed_ms", "hard_elapsed_ms"] {
        bad(
            &format!("limits.{field} = 0.5"),
            &format!(
                "invalid type: floating point `0.5`, \
                 expected `limits.{field}` to be a whole number of milliseconds, 0 or more",
            ),
        );
    }
    // How such a number is shown is serde's: with a plus in the exponent, or without.
    let too_large = r#"{"backoff":{"base_ms":18446744073709551616}}"#;
    let error = serde_json::from_str::<RetryRule>(too_large).unwrap_err();
    let error = error.to_string().replace("e+19", "e19");
    let expected = "invalid type: floating point `1.8446744073709552e19`, \
        expected `backoff.base_ms` to be a whole number of milliseconds, 0 or more";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_truth_that_is_none() {
    for field in [
        "unsent_failures",
        "timeouts",
        "retry_after.zero_means_backoff",
    ] {
        bad(
            &format!("{field} = 'yes'"),
            &format!("invalid type: string \"yes\", expected `{field}` to be true or false"),
        );
    }
}

#[test]
fn methods_that_are_none() {
    let methods =
        r#"to be "never", "idempotent", "any" or a list of methods such as ["GET", "PUT"]"#;
    bad(
        "sent_failures = 'safe'",
        &format!("invalid value: string \"safe\", expected `sent_failures` {methods}"),
    );
    bad(
        "statuses = [{ statuses = [429], methods = 'GET' }]",
        &format!("invalid value: string \"GET\", expected `statuses[0].methods` {methods}"),
    );
    bad(
        "sent_failures = ['GET', 'P UT']",
        "invalid value: string \"P UT\", \
         expected `sent_failures[1]` to be a method such as \"GET\"",
    );
    bad(
        "sent_failures = [1]",
        "invalid type: integer `1`, expected `sent_failures[0]` to be a method such as \"GET\"",
    );
    bad(
        "sent_failures = ['any']
         statuses = [{ statuses = [429], methods = ['GET', 'Post'] }]",
        "invalid retry rule: `statuses[0].methods[1]` is \"Post\", \
         expected \"POST\": methods are case-sensitive; \
         `sent_failures[0]` is \"any\", expected a method, or \"any\" in place of the list",
    );
    bad_json_of::<Methods>(
        "3",
        "invalid type: integer `3`, expected \"never\", \"idempotent\", \"any\" \
         or a list of methods such as [\"GET\", \"PUT\"]",
    );
}

#[test]
fn statuses_that_are_none() {
    let status =
        r#"to be a status such as 429, a range such as "500-599" or a class such as "5xx""#;
    for text in [
        "",
        "x",
        "xx",
        "0xx",
        "01xx",
        "10xx",
        "5xxx",
        "+429",
        "-429",
        "429-",
        "500-",
        "500 - 599",
        "500-599-600",
        "65536",
        "500-65536",
        "abc",
    ] {
        bad(
            &format!("statuses = [{{ statuses = [429, '{text}'], methods = 'any' }}]"),
            &format!(
                "invalid value: string \"{text}\", expected `statuses[0].statuses[1]` {status}"
            ),
        );
    }
    bad(
        "statuses = [{ statuses = [65536], methods = 'any' }]",
        &format!("invalid value: integer `65536`, expected `statuses[0].statuses[0]` {status}"),
    );
    bad(
        "statuses = [{ statuses = [-1], methods = 'any' }]",
        &format!("invalid value: integer `-1`, expected `statuses[0].statuses[0]` {status}"),
    );
    bad(
        "statuses = [{ statuses = 429, methods = 'any' }]",
        "invalid type: integer `429`, expected `statuses[0].statuses` to be a list",
    );
    bad(
        "statuses = '5xx'",
        "invalid type: string \"5xx\", expected `statuses` to be a list",
    );
    bad(
        "statuses = [429]",
        "invalid type: integer `429`, \
         expected `statuses[0]` to be a table of `statuses` and `methods`",
    );
}

#[test]
fn a_header_that_is_none() {
    let name = "to be the name of a header, such as \"x-should-retry\"";
    bad(
        "override_header = 'x should retry'",
        &format!("invalid value: string \"x should retry\", expected `override_header` {name}"),
    );
    bad(
        "override_header = true",
        &format!("invalid type: boolean `true`, expected `override_header` {name}"),
    );
    bad(
        "retry_after.headers = [{ name = '', format = 'millis' }]",
        &format!("invalid value: string \"\", expected `retry_after.headers[0].name` {name}"),
    );
    bad(
        "retry_after.headers = ['x-wait']",
        "invalid type: string \"x-wait\", \
         expected `retry_after.headers[0]` to be a table of `name` and `format`",
    );
}

#[test]
fn words_that_are_none() {
    for (field, words) in [
        ("source", r#""ignore", "header" or "ms_then_header""#),
        ("role", r#""replace" or "floor""#),
        (
            "cap",
            r#""no_cap" or a table with one of `stop_above_ms`, `backoff_above_ms` and `clamp_to_ms`"#,
        ),
    ] {
        bad(
            &format!("retry_after.{field} = 'Header'"),
            &format!(
                "invalid value: string \"Header\", expected `retry_after.{field}` to be {words}"
            ),
        );
    }
    bad(
        "retry_after.headers = [{ name = 'x-wait', format = 'date' }]",
        "invalid value: string \"date\", expected `retry_after.headers[0].format` to be \
         \"seconds\", \"millis\", \"unix_seconds\", \"unix_millis\" or \"http_date\"",
    );
    bad(
        "backoff.jitter = 'none'",
        "invalid value: string \"none\", expected `backoff.jitter` to be \
         \"no_jitter\", \"full\" or a table with `proportional`, of `lo` and `hi`",
    );
}

#[test]
fn a_cap_with_both_durations_or_neither() {
    let why = "invalid type: map, expected `retry_after.cap` to be \
               \"no_cap\" or a table with one of `stop_above_ms`, `backoff_above_ms` and `clamp_to_ms`";
    bad("retry_after.cap = {}", why);
    bad(
        "retry_after.cap = { stop_above_ms = 1, backoff_above_ms = 1 }",
        why,
    );
}

#[test]
fn tables_that_are_none() {
    for (field, what) in [
        ("retry_after", "a table of settings for Retry-After"),
        ("backoff", "a table of backoff settings"),
        ("limits", "a table of limits"),
    ] {
        bad(
            &format!("{field} = 3"),
            &format!("invalid type: integer `3`, expected `{field}` to be {what}"),
        );
    }
    bad_json(
        "[]",
        "invalid type: sequence, expected a table of retry settings",
    );
}

#[test]
fn fields_that_are_unknown() {
    bad(
        "max_retry = 3",
        "unknown field `max_retry`, expected one of `preset`, `max_retries`, `statuses`, \
         `sent_failures`, `unsent_failures`, `timeouts`, `override_header`, `veto_header`, \
         `retry_after`, `backoff`, `limits`",
    );
    bad(
        "backoff.base = 3",
        "unknown field `backoff.base`, expected one of `base_ms`, `max_ms`, `growth`, `jitter`",
    );
    bad(
        "retry_after.cap.stop_above = 3",
        "unknown field `retry_after.cap.stop_above`, \
         expected one of `stop_above_ms`, `backoff_above_ms`, `clamp_to_ms`",
    );
    bad(
        "limits.elapsed_ms = 3",
        "unknown field `limits.elapsed_ms`, \
         expected one of `soft_elapsed_ms`, `min_retries`, `hard_elapsed_ms`",
    );
    bad(
        "statuses = [{ status = 429 }]",
        "unknown field `statuses[0].status`, expected one of `statuses`, `methods`, `backoff`",
    );
}

#[test]
fn fields_that_are_missing() {
    bad(
        "statuses = [{ statuses = [429] }]",
        "missing field `statuses[0].methods`",
    );
    bad(
        "statuses = [{ methods = 'any' }]",
        "missing field `statuses[0].statuses`",
    );
    bad(
        "retry_after.headers = [{ name = 'x-wait' }]",
        "missing field `retry_after.headers[0].format`",
    );
    bad(
        "backoff.jitter = {}",
        "missing field `backoff.jitter.proportional`",
    );
    bad(
        "backoff.jitter.proportional.lo = 1",
        "missing field `backoff.jitter.proportional.hi`",
    );
}

#[test]
fn fields_that_occur_twice() {
    bad_json(
        r#"{"max_retries":1,"max_retries":2}"#,
        "duplicate field `max_retries`",
    );
    bad_json(
        r#"{"backoff":{"max_ms":1,"max_ms":1}}"#,
        "duplicate field `backoff.max_ms`",
    );
}

#[test]
fn a_rule_with_faults_is_not_read() {
    bad(
        "statuses = [{ statuses = ['599-500', 42], methods = 'any' }]
         max_retries = 1
         backoff.max_ms = 5
         limits.soft_elapsed_ms = 1
         limits.hard_elapsed_ms = 0",
        "invalid retry rule: \
         `statuses[0].statuses[0]` is 599-500, expected the lower status first; \
         `statuses[0].statuses[1]` is 42, expected statuses from 100 to 999; \
         `backoff.base_ms` is 0, expected 1 or more where there are retries and \
         `backoff.max_ms` is not 0; \
         `limits.hard_elapsed_ms` is 0, expected 1 or more, or no limit; \
         `limits.hard_elapsed_ms` is 0, expected no less than `limits.soft_elapsed_ms`",
    );
}

fn millis() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), 1_u64..100_000, 1..u64::MAX, Just(u64::MAX)]
}

pub(super) fn durations() -> impl Strategy<Value = Duration> {
    millis().prop_map(ms)
}

fn methods() -> impl Strategy<Value = Methods> {
    // None of these is a word or a standard method in another case.
    let method = "GET|PATCH|x[A-Za-z]{0,20}";
    let method = method.prop_map(|name| Method::from_bytes(name.as_bytes()).unwrap());
    prop_oneof![
        Just(Methods::Never),
        Just(Methods::Idempotent),
        Just(Methods::Any),
        vec(method, 0..3).prop_map(Methods::Listed),
    ]
}

pub(super) fn header_names() -> impl Strategy<Value = HeaderName> {
    "[a-z][a-z0-9-]{0,20}".prop_map(|name| HeaderName::from_bytes(name.as_bytes()).unwrap())
}

fn statuses() -> impl Strategy<Value = Vec<StatusMatch>> {
    let status = prop_oneof![
        (100_u16..=999).prop_map(StatusMatch::Code),
        (100_u16..=999, 100_u16..=999).prop_map(|(a, b)| StatusMatch::Range(a.min(b), a.max(b))),
    ];
    vec(status, 0..4)
}

fn status_rules() -> impl Strategy<Value = StatusRule> {
    let rule = (statuses(), methods());
    (rule, option::of(backoffs())).prop_map(|((statuses, methods), backoff)| StatusRule {
        statuses,
        methods,
        backoff,
    })
}

prop_compose! {
    fn retry_afters()(
        headers in vec((header_names(), select(vec![
            WaitFormat::Seconds,
            WaitFormat::Millis,
            WaitFormat::UnixSeconds,
            WaitFormat::UnixMillis,
            WaitFormat::HttpDate,
        ]), statuses()), 0..3),
        source in select(vec![
            RetryAfterSource::Ignore,
            RetryAfterSource::Header,
            RetryAfterSource::MsThenHeader,
        ]),
        cap in prop_oneof![
            durations().prop_map(RetryAfterCap::StopAbove),
            durations().prop_map(RetryAfterCap::BackoffAbove),
            durations().prop_map(RetryAfterCap::ClampTo),
            Just(RetryAfterCap::NoCap),
        ],
        zero_means_backoff: bool,
        role in select(vec![RetryAfterRole::Replace, RetryAfterRole::Floor]),
        spread: u32,
    ) -> RetryAfter {
        let header = |(name, format, statuses)| WaitHeader { name, format, statuses };
        let headers = headers.into_iter().map(header);
        RetryAfter { headers: headers.collect(), source, cap, zero_means_backoff, role, spread }
    }
}

prop_compose! {
    fn backoffs()(
        (base, max) in (millis(), millis()),
        growth in 1000..=u32::MAX,
        jitter in prop_oneof![
            Just(Jitter::NoJitter),
            Just(Jitter::Full),
            (any::<u32>(), 10..=u32::MAX)
                .prop_map(|(lo, hi)| Jitter::Proportional { lo: lo.min(hi), hi }),
        ],
    ) -> Backoff {
        let max = max.max(base);
        Backoff { base: ms(base), max: ms(max), growth, jitter }
    }
}

prop_compose! {
    fn limits()(soft in option::of(millis()), hard in option::of(millis()), min_retries: u32)
    -> Limits {
        let hard = hard.map(|hard| hard.max(soft.unwrap_or(0)));
        Limits { soft_elapsed: soft.map(ms), min_retries, hard_elapsed: hard.map(ms) }
    }
}

prop_compose! {
    /// Rules with which `validate` finds no fault.
    pub(super) fn rules()(
        max_retries: u32,
        statuses in vec(status_rules(), 0..3),
        sent_failures in methods(),
        (unsent_failures, timeouts) in any::<(bool, bool)>(),
        (override_header, veto_header) in (option::of(header_names()), option::of(header_names())),
        retry_after in retry_afters(),
        backoff in backoffs(),
        limits in limits(),
    ) -> RetryRule {
        RetryRule {
            max_retries,
            statuses,
            sent_failures,
            unsent_failures,
            timeouts,
            override_header,
            veto_header,
            retry_after,
            backoff,
            limits,
        }
    }
}

proptest! {
    #[test]
    fn a_rule_goes_there_and_back(rule in rules()) {
        let json = serde_json::to_string(&rule).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RetryRule>(&json).unwrap(), &rule);
        let value = serde_json::to_value(&rule).unwrap();
        prop_assert_eq!(&from_value::<RetryRule>(value).unwrap(), &rule);
        for text in [toml::to_string(&rule).unwrap(), toml::to_string_pretty(&rule).unwrap()] {
            prop_assert_eq!(&toml::from_str::<RetryRule>(&text).unwrap(), &rule);
        }
    }

    #[test]
    fn a_status_goes_there_and_back_even_if_it_is_none(first: u16, last: u16) {
        for status in [StatusMatch::Code(first), StatusMatch::Range(first, last)] {
            let value = serde_json::to_value(status).unwrap();
            prop_assert_eq!(from_value::<StatusMatch>(value).unwrap(), status);
        }
    }

    #[test]
    fn any_text_is_a_status_or_an_error(text in "\\PC{0,8}|[0-9x-]{0,8}") {
        if let Ok(status) = from_value::<StatusMatch>(json!(&text)) {
            prop_assert!(text.bytes().all(|byte| b"0123456789-x".contains(&byte)));
            prop_assert_ne!(status, StatusMatch::Range(0, 99));
        }
    }
}
