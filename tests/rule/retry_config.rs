//! A policy in a file: what it sets, which rule each route has, and what is said of a bad file.
#![cfg(feature = "serde")]

use std::fmt::Write;
use std::time::Duration;

use http::HeaderName;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reqwest_retry_rules::{
    BudgetTerms, Jitter, Methods, PauseTerms, RetryBudget, RetryConfig, RetryPolicy, RetryRule,
};
use serde_json::{Map, Value, from_value, json};

use super::config::{header_names, rules};

#[track_caller]
fn config(text: &str) -> RetryConfig {
    toml::from_str(text).unwrap()
}

/// Writes and reads a configuration in every way.
#[track_caller]
fn goes_there_and_back(config: &RetryConfig) {
    let value = serde_json::to_value(config).unwrap();
    assert_eq!(&from_value::<RetryConfig>(value).unwrap(), config);
    let text = serde_json::to_string(config).unwrap();
    assert_eq!(&serde_json::from_str::<RetryConfig>(&text).unwrap(), config);
    for text in [toml::to_string(config), toml::to_string_pretty(config)] {
        assert_eq!(
            &toml::from_str::<RetryConfig>(&text.unwrap()).unwrap(),
            config
        );
    }
}

/// A file in TOML that makes this policy, which is compared by all that it shows of itself.
#[track_caller]
fn sets(text: &str, expected: RetryPolicy) {
    let config = config(text);
    let policy = RetryPolicy::from(config.clone());
    assert_eq!(format!("{policy:#?}"), format!("{expected:#?}"));
    goes_there_and_back(&config);
}

/// A file in TOML that cannot be read, and why not; the same in JSON.
#[track_caller]
fn bad(text: &str, why: &str) {
    let error = toml::from_str::<RetryConfig>(text).unwrap_err();
    assert_eq!(error.message(), why);
    let table: toml::Table = text.parse().unwrap();
    let error = serde_json::to_value(table).and_then(from_value::<RetryConfig>);
    assert_eq!(error.unwrap_err().to_string(), why);
}

/// The rule that the file has for this URL.
#[track_caller]
fn rule_for(text: &str, url: &str) -> RetryRule {
    let config = config(text);
    goes_there_and_back(&config);
    let policy = RetryPolicy::from(config);
    policy.rule_for(&url.parse().unwrap()).clone()
}

fn never() -> RetryPolicy {
    RetryPolicy::from(RetryRule::never())
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn an_empty_file_is_a_policy_that_never_retries() {
    sets("", never());
    assert_eq!(config(""), RetryConfig::default());
    assert_eq!(config("").rule(), &RetryRule::never());
}

#[test]
fn the_rule_stands_at_the_top() {
    sets(
        "max_retries = 5\npreset = 'transient'\nbackoff.max_ms = 9000",
        {
            let mut rule = RetryRule::transient();
            rule.max_retries = 5;
            rule.backoff.max = ms(9000);
            rule.into()
        },
    );
}

#[test]
fn each_key_sets_what_it_is_named_for() {
    let name = HeaderName::from_static;
    for (text, policy) in [
        ("total_timeout_ms = 15", never().total_timeout(ms(15))),
        ("attempt_timeout_ms = 15", never().attempt_timeout(ms(15))),
        ("head_timeout_ms = 15", never().head_timeout(ms(15))),
        ("drain_limit = 0", never().drain_limit(0)),
        ("drain_limit = 1048576", never().drain_limit(1 << 20)),
        ("complete_body = 7", never().complete_body(7)),
        (
            "attempt_header = 'X-Retry'",
            never().attempt_header(name("x-retry")),
        ),
        (
            "idempotency_key = 'idempotency-key'",
            never().idempotency_key(name("idempotency-key")),
        ),
        ("budget = 'off'", never().no_budget()),
    ] {
        assert_ne!(format!("{policy:?}"), format!("{:?}", never()), "{text}");
        sets(text, policy);
    }
}

#[test]
fn a_budget_in_part_differs_from_the_default() {
    let default = BudgetTerms::default();
    for (text, terms) in [
        ("budget = {}", default),
        (
            "[budget]\nratio = 100",
            BudgetTerms {
                ratio: 100,
                ..default
            },
        ),
        (
            "budget = { reserve_per_second = 0, window_ms = 1000, ratio = 1000000 }",
            BudgetTerms {
                window: ms(1000),
                reserve_per_second: 0,
                ratio: 1_000_000,
            },
        ),
    ] {
        sets(text, never().budget(RetryBudget::new(terms).unwrap()));
    }
}

#[test]
fn a_budget_that_is_none() {
    let budget = r#"expected `budget` to be "off" or a table of `ratio`, `reserve_per_second` and `window_ms`"#;
    bad(
        "budget = 'none'",
        &format!("invalid value: string \"none\", {budget}"),
    );
    bad(
        "budget = false",
        &format!("invalid type: boolean `false`, {budget}"),
    );
    for (text, found, expected) in [
        (
            "budget.ratio = 1000001",
            "integer `1000001`",
            "`budget.ratio` to be a whole number from 0 to 1000000",
        ),
        (
            "budget.reserve_per_second = 2147483647",
            "integer `2147483647`",
            "`budget.reserve_per_second` to be a whole number from 0 to 2147483646",
        ),
        (
            "budget.window_ms = 999",
            "integer `999`",
            "`budget.window_ms` to be a whole number from 1000 to 60000",
        ),
    ] {
        bad(
            text,
            &format!("invalid value: {found}, expected {expected}"),
        );
    }
    bad(
        "budget.window = 1",
        "unknown field `budget.window`, \
         expected one of `ratio`, `reserve_per_second`, `window_ms`",
    );
}

#[test]
fn a_pause_in_part_differs_from_the_default() {
    let default = PauseTerms::default();
    for (text, terms) in [
        ("pause_origins = {}", default),
        (
            "pause_origins = { max_ms = 5000 }",
            PauseTerms {
                max: ms(5000),
                ..default
            },
        ),
        (
            "pause_origins = { max_ms = 0, spread = 0 }",
            PauseTerms {
                max: ms(0),
                spread: 0,
            },
        ),
    ] {
        sets(text, never().pause_origins(terms));
    }
}

#[test]
fn a_pause_that_is_none() {
    bad(
        "pause_origins = true",
        "invalid type: boolean `true`, \
         expected `pause_origins` to be a table with the keys `max_ms`, `spread`",
    );
    bad(
        "pause_origins.spread = -1",
        "invalid value: integer `-1`, \
         expected `pause_origins.spread` to be a whole number from 0 to 4294967295",
    );
}

#[test]
fn null_is_as_if_left_out() {
    for key in [
        "total_timeout_ms",
        "attempt_timeout_ms",
        "head_timeout_ms",
        "budget",
        "drain_limit",
        "complete_body",
        "attempt_header",
        "idempotency_key",
        "pause_origins",
        "routes",
        "preset",
        "backoff",
    ] {
        let file = json!({ key: null });
        assert_eq!(
            from_value::<RetryConfig>(file).unwrap(),
            RetryConfig::default()
        );
    }
    let route = json!({ "hosts": ["a.test"], "paths": null, "preset": null, "limits": null });
    let same = json!({ "hosts": ["a.test"] });
    let read = |route: Value| from_value::<RetryConfig>(json!({ "routes": [route] }));
    assert_eq!(read(route).unwrap(), read(same).unwrap());
    let error = read(json!({ "hosts": null })).unwrap_err();
    assert_eq!(error.to_string(), "missing field `routes[0].hosts`");
}

const ROUTES: &str = r#"
    preset = "transient"
    total_timeout_ms = 15000

    [[routes]]
    hosts = ["api.example.com"]
    paths = ["/search", "/v2/search/"]
    max_retries = 7
    [routes.backoff]
    jitter = "no_jitter"

    [[routes]]
    hosts = ["*.Example.com", "localhost:8080"]
    preset = "never"
    max_retries = 1
    sent_failures = "any"

    [[routes]]
    hosts = ["bücher.example", "[::1]"]
"#;

#[test]
fn a_route_differs_from_the_files_rule() {
    let mut expected = RetryRule::transient();
    expected.max_retries = 7;
    expected.backoff.jitter = Jitter::NoJitter;
    for path in ["search", "search/", "search/x?y", "v2/search"] {
        let url = format!("https://api.example.com/{path}");
        assert_eq!(rule_for(ROUTES, &url), expected);
    }
}

#[test]
fn a_route_with_a_preset_differs_from_that() {
    let expected = RetryRule {
        max_retries: 1,
        sent_failures: Methods::Any,
        ..RetryRule::never()
    };
    // The first of these is no path of the first route, and the second route has its host.
    for url in [
        "https://api.example.com/searching",
        "https://eu.example.com",
        "http://localhost:8080/x",
    ] {
        assert_eq!(rule_for(ROUTES, url), expected);
    }
}

#[test]
fn a_route_that_says_nothing_more_has_the_files_rule() {
    let text = "max_retries = 2\nroutes = [{ hosts = ['a.test'] }]\nunsent_failures = true";
    let expected = RetryRule {
        max_retries: 2,
        unsent_failures: true,
        ..RetryRule::never()
    };
    assert_eq!(rule_for(text, "http://a.test"), expected);
    for url in ["http://xn--bcher-kva.example", "http://[0::1]:81"] {
        assert_eq!(rule_for(ROUTES, url), RetryRule::transient());
    }
}

#[test]
fn what_no_route_has_goes_by_the_files_rule() {
    for url in [
        "https://example.com/",
        "http://localhost/",
        "http://localhost:8081/",
        "https://other.test/search",
    ] {
        assert_eq!(rule_for(ROUTES, url), RetryRule::transient());
    }
}

#[test]
fn the_first_route_counts() {
    let text = "
        [[routes]]
        hosts = ['a.test']
        max_retries = 1
        [[routes]]
        hosts = ['a.test', 'b.test']
        max_retries = 2
        [[routes]]
        hosts = ['*.test']
        paths = ['/']
        max_retries = 3";
    for (url, max_retries) in [
        ("http://a.test/x", 1),
        ("http://b.test/x", 2),
        ("http://c.test/x", 3),
        ("http://test/", 0),
    ] {
        assert_eq!(rule_for(text, url).max_retries, max_retries);
    }
}

#[test]
fn an_option_of_the_files_rule_is_unset_by_a_preset() {
    let text = "
        override_header = 'x-should-retry'
        limits.hard_elapsed_ms = 5
        [[routes]]
        hosts = ['a.test']
        [[routes]]
        hosts = ['b.test']
        preset = 'never'";
    let [a, b] = ["http://a.test", "http://b.test"].map(|url| rule_for(text, url));
    assert_eq!(a.limits.hard_elapsed, Some(ms(5)));
    assert_eq!(b, RetryRule::never());
}

#[test]
fn routes_in_code_are_those_of_a_file() {
    let rule = RetryRule {
        max_retries: 2,
        ..RetryRule::never()
    };
    sets(
        "routes = [
            { hosts = ['*.A.test:81'], paths = ['/x/'], max_retries = 2 },
            { hosts = ['b.test'] },
        ]",
        never()
            .route("*.a.test:81/x".parse().unwrap(), rule)
            .route("b.test".parse().unwrap(), RetryRule::never()),
    );
}

#[test]
fn a_route_is_written_with_a_preset_so_that_it_is_read_the_same() {
    let written = serde_json::to_value(config(ROUTES)).unwrap();
    let [first, ..] = written["routes"].as_array().unwrap().as_slice() else {
        panic!("no routes: {written}");
    };
    assert_eq!(first["preset"], "never");
    assert_eq!(first["hosts"], json!(["api.example.com"]));
    assert_eq!(first["paths"], json!(["/search", "/v2/search"]));
    assert_eq!(first["max_retries"], 7);
    assert_eq!(written["routes"][1].get("paths"), None);
    assert_eq!(written["routes"][2]["hosts"][0], "xn--bcher-kva.example");
    assert_eq!(written.get("preset"), None);
    assert_eq!(written.get("budget"), None);
}

#[test]
fn a_route_that_cannot_be_meant() {
    bad(
        "routes = [{ max_retries = 1 }]",
        "missing field `routes[0].hosts`",
    );
    bad(
        "routes = [{ hosts = ['a.test'] }, { hosts = [] }]",
        "invalid length 0, expected `routes[1].hosts` to be a list of at least one host",
    );
    bad(
        "routes = [{ hosts = 'a.test' }]",
        "invalid type: string \"a.test\", \
         expected `routes[0].hosts` to be a list of at least one host",
    );
    bad(
        "routes = { hosts = ['a.test'] }",
        "invalid type: map, expected `routes` to be a list",
    );
    bad(
        "routes = ['a.test']",
        "invalid type: string \"a.test\", \
         expected `routes[0]` to be a table of `hosts` and settings of a rule",
    );
    for (host, expected) in [
        ("https://a.test", "a host without a scheme"),
        ("a.test/search", "a host without a path"),
        ("a.test?x", "a host without query and fragment"),
        ("user:word@a.test", "a host without user information"),
        ("a.test:http", "a host with a port from 1 to 65535"),
        ("*", "`*.` and a name, such as `*.example.com`"),
        ("", "a host such as `api.example.com`"),
        ("a b", "a host such as `api.example.com`"),
    ] {
        bad(
            &format!("routes = [{{ hosts = ['ok.test', '{host}'] }}]"),
            &format!(
                "invalid value: string \"{host}\", \
                 expected `routes[0].hosts[1]` to be {expected}"
            ),
        );
    }
    for (path, expected) in [
        ("search", "a path that starts with a slash"),
        ("", "a path that starts with a slash"),
        ("/x?y", "a path without query and fragment"),
        ("/x y", "a path without white space and backslashes"),
        ("/../x", "a path without `.` and `..`"),
    ] {
        bad(
            &format!("routes = [{{ hosts = ['a.test'], paths = ['/', '{path}'] }}]"),
            &format!(
                "invalid value: string \"{path}\", \
                 expected `routes[0].paths[1]` to be {expected}"
            ),
        );
    }
    bad(
        "routes = [{ hosts = ['a.test', 3] }]",
        "invalid type: integer `3`, \
         expected `routes[0].hosts[1]` to be a host such as \"api.example.com\"",
    );
}

#[test]
fn a_value_in_a_route_that_is_none() {
    bad(
        "routes = [{ hosts = ['a.test'] }, { hosts = ['b.test'], backoff = { jitter = 'none' } }]",
        "invalid value: string \"none\", expected `routes[1].backoff.jitter` to be \
         \"no_jitter\", \"full\" or a table with `proportional`, of `lo` and `hi`",
    );
    bad(
        "routes = [{ hosts = ['a.test'], preset = 'default' }]",
        "invalid value: string \"default\", \
         expected `routes[0].preset` to be \"never\" or \"transient\"",
    );
    bad(
        "routes = [{ hosts = ['a.test'], total_timeout_ms = 5 }]",
        "unknown field `routes[0].total_timeout_ms`, expected one of `hosts`, `paths`, `preset`, \
         `max_retries`, `statuses`, `sent_failures`, `unsent_failures`, `timeouts`, \
         `override_header`, `veto_header`, `retry_after`, `backoff`, `limits`",
    );
    bad(
        "routes = [{ hosts = ['a.test'], limits = { hard = 5 } }]",
        "unknown field `routes[0].limits.hard`, \
         expected one of `soft_elapsed_ms`, `min_retries`, `hard_elapsed_ms`",
    );
}

#[test]
fn a_fault_of_a_rule_names_the_way_to_it() {
    bad(
        "limits.soft_elapsed_ms = 5\nlimits.hard_elapsed_ms = 3",
        "invalid retry rule: \
         `limits.hard_elapsed_ms` is 3, expected no less than `limits.soft_elapsed_ms`",
    );
    bad(
        "limits.soft_elapsed_ms = 5
         [[routes]]
         hosts = ['a.test']
         [[routes]]
         hosts = ['b.test']
         statuses = [{ statuses = [42], methods = 'any' }]
         limits.hard_elapsed_ms = 3",
        "invalid retry rule: \
         `routes[1].statuses[0].statuses[0]` is 42, expected statuses from 100 to 999; \
         `routes[1].limits.hard_elapsed_ms` is 3, expected no less than `limits.soft_elapsed_ms`",
    );
}

#[test]
fn a_number_that_is_none() {
    let timeout = "to be a whole number of milliseconds, 1 or more";
    for key in ["total_timeout_ms", "attempt_timeout_ms", "head_timeout_ms"] {
        for (number, found) in [
            ("0", "invalid value: integer `0`"),
            ("-1", "invalid value: integer `-1`"),
            ("0.5", "invalid type: floating point `0.5`"),
            ("'5s'", "invalid type: string \"5s\""),
        ] {
            bad(
                &format!("{key} = {number}"),
                &format!("{found}, expected `{key}` {timeout}"),
            );
        }
    }
    for key in ["drain_limit", "complete_body"] {
        bad(
            &format!("{key} = -1"),
            &format!(
                "invalid value: integer `-1`, \
                 expected `{key}` to be a whole number of bytes, 0 or more"
            ),
        );
    }
    let beyond = toml::from_str::<RetryConfig>("total_timeout_ms = 18446744073709551616");
    assert_eq!(
        beyond.unwrap_err().message(),
        format!(
            "invalid type: integer `18446744073709551616` as i128, \
             expected `total_timeout_ms` {timeout}"
        ),
    );
}

#[test]
fn an_unknown_key_at_the_top() {
    bad(
        "total_timeout = 5",
        "unknown field `total_timeout`, expected one of `total_timeout_ms`, \
         `attempt_timeout_ms`, `head_timeout_ms`, `budget`, `drain_limit`, `complete_body`, \
         `attempt_header`, `idempotency_key`, `pause_origins`, `routes`, `preset`, \
         `max_retries`, `statuses`, `sent_failures`, `unsent_failures`, `timeouts`, \
         `override_header`, `veto_header`, `retry_after`, `backoff`, `limits`",
    );
}

#[test]
fn toml_shows_the_line() {
    let text = "
[[routes]]
hosts = ['a.test']

[[routes]]
hosts = ['b.test']
[routes.backoff]
jitter = 'none'
";
    assert_eq!(
        toml::from_str::<RetryConfig>(text).unwrap_err().to_string(),
        "TOML parse error at line 8, column 10\n  \
           |\n\
         8 | jitter = 'none'\n  \
           |          ^^^^^^\n\
         invalid value: string \"none\", expected `routes[1].backoff.jitter` to be \
         \"no_jitter\", \"full\" or a table with `proportional`, of `lo` and `hi`\n",
    );
    let error = toml::from_str::<RetryConfig>("drain_limit = 0\n[[routes]]\npaths = ['/x']\n");
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("TOML parse error at line 2, column 1\n"),
        "{error}"
    );
}

#[test]
fn a_configuration_can_stand_in_a_larger_one() {
    #[derive(Debug, serde::Deserialize)]
    struct Flat {
        url: String,
        #[serde(flatten)]
        retry: RetryConfig,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Nested {
        #[serde(default)]
        retry: RetryConfig,
    }
    let text = "preset = 'transient'\ntotal_timeout_ms = 5\nroutes = [{ hosts = ['a.test'] }]";
    let flat: Flat = toml::from_str(&format!("url = 'x'\n{text}")).unwrap();
    assert_eq!((flat.url.as_str(), flat.retry), ("x", config(text)));
    let nested: Nested = toml::from_str(&format!("[retry]\n{text}")).unwrap();
    assert_eq!(nested.retry, config(text));
    let none: Nested = toml::from_str("").unwrap();
    assert_eq!(none.retry, RetryConfig::default());
}

#[test]
fn a_megabyte_of_routes_is_read() {
    let mut text = "preset = 'transient'\n".to_owned();
    let mut count = 0;
    while text.len() < 1_000_000 {
        write!(
            text,
            "[[routes]]\nhosts = ['host-{count}.example.com']\npaths = ['/a/{count}']\n\
             max_retries = {count}\n"
        )
        .unwrap();
        count += 1;
    }
    let policy = RetryPolicy::from(config(&text));
    let last = count - 1;
    let url = format!("https://host-{last}.example.com/a/{last}/x");
    assert_eq!(policy.rule_for(&url.parse().unwrap()).max_retries, last);
}

/// Some of the keys of a rule. Boxed, or a strategy of several overflows a test's stack.
fn partial_rules() -> BoxedStrategy<Map<String, Value>> {
    let whole = rules()
        .boxed()
        .prop_map(|rule| match serde_json::to_value(rule).unwrap() {
            Value::Object(table) => table,
            other => panic!("a rule is no table: {other}"),
        });
    (whole, any::<u16>())
        .prop_map(|(whole, kept)| {
            let keys = whole.into_iter().enumerate();
            let keys = keys.filter(|(index, _)| kept >> index & 1 == 1);
            keys.map(|(_, key_and_value)| key_and_value).collect()
        })
        .boxed()
}

prop_compose! {
    fn routes()(
        rule in partial_rules(),
        hosts in vec("(\\*\\.)?[a-zA-Zü]{1,9}(\\.[a-z]{1,5}){0,2}(:[1-9][0-9]{0,3})?|\\[::[1-9]\\]", 1..4),
        paths in option::of(vec("(/[a-zA-Zé]{0,3}){1,3}", 0..3)),
        preset in option::of(select(vec!["never", "transient"])),
    ) -> Value {
        let mut route = rule;
        route.insert("hosts".to_owned(), json!(hosts));
        route.insert("paths".to_owned(), json!(paths));
        route.insert("preset".to_owned(), json!(preset));
        Value::Object(route)
    }
}

prop_compose! {
    fn files()(
        rule in partial_rules(),
        preset in option::of(select(vec!["never", "transient"])),
        timeouts in (option::of(1..=u64::MAX), option::of(1..=u64::MAX), option::of(1..=u64::MAX)),
        budget in option::of(prop_oneof![
            Just(json!("off")),
            (0_u32..=1_000_000, 0_u32..i32::MAX.unsigned_abs(), 1000_u64..=60_000).prop_map(
                |(ratio, reserve, window)| json!({
                    "ratio": ratio, "reserve_per_second": reserve, "window_ms": window,
                })
            ),
        ]),
        bytes in any::<(Option<usize>, Option<usize>)>(),
        headers in (option::of(header_names()), option::of(header_names())),
        pause in option::of(any::<(u64, u32)>()),
        routes in vec(routes().boxed(), 0..4),
    ) -> Value {
        let mut file = rule;
        let mut set = |key: &str, value: Value| file.insert(key.to_owned(), value);
        set("preset", json!(preset));
        set("total_timeout_ms", json!(timeouts.0));
        set("attempt_timeout_ms", json!(timeouts.1));
        set("head_timeout_ms", json!(timeouts.2));
        set("budget", json!(budget));
        set("drain_limit", json!(bytes.0));
        set("complete_body", json!(bytes.1));
        set("attempt_header", json!(headers.0.as_ref().map(HeaderName::as_str)));
        set("idempotency_key", json!(headers.1.as_ref().map(HeaderName::as_str)));
        set("pause_origins", json!(pause.map(|(max, spread)| json!({
            "max_ms": max, "spread": spread,
        }))));
        set("routes", json!(routes));
        Value::Object(file)
    }
}

proptest! {
    #[test]
    fn whatever_loads_is_written_as_what_loads_as_equal(file in files()) {
        // A part of a rule over another base may be no rule that can be meant.
        let read = from_value::<RetryConfig>(file);
        prop_assume!(read.is_ok());
        goes_there_and_back(&read.unwrap());
    }
}
