//! The examples run as they stand and show what they promise.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest_retry_rules::StopReason;

/// One example at a time. They are processes of their own, so the tests that look at the memory of
/// this one need not wait for them.
static TURN: Mutex<()> = Mutex::new(());

/// Runs an example with the features of this test, and gives what it prints.
fn run(example: &str) -> String {
    run_with(example, &[])
}

/// The same, with these environment variables.
fn run_with(example: &str, variables: &[(&str, &str)]) -> String {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let features = [
        ("astral", cfg!(feature = "astral")),
        ("http2", cfg!(feature = "http2")),
        ("rustls", cfg!(feature = "rustls")),
        ("serde", cfg!(feature = "serde")),
        (
            "task-local-extensions",
            cfg!(feature = "task-local-extensions"),
        ),
        ("tracing", cfg!(feature = "tracing")),
    ];
    let features: Vec<_> = features
        .into_iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| name)
        .collect();
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo says to a test of the test's own package makes other packages build anew.
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let output = cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "run",
            "--quiet",
            "--no-default-features",
            "--features",
            &features.join(","),
        ])
        .args(["--example", example])
        // A proxy that is not there: an example speaks to this machine alone.
        .env("http_proxy", "http://127.0.0.1:9")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    printed
}

/// What is printed for one request, without the numbers that differ from run to run.
fn block(printed: &str, request: &str) -> Vec<String> {
    let block = printed
        .split("\n\n")
        .find(|block| block.lines().any(|line| line.starts_with(request)));
    let lines = block
        .unwrap_or_else(|| panic!("no {request} in\n{printed}"))
        .lines();
    let lines = lines.skip_while(|line| !line.starts_with(request));
    lines
        .map(|line| {
            let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
            match words.split_once(" ms, the rule's backoff") {
                Some((met, _)) => {
                    let met = met.trim_end_matches(|last: char| last.is_ascii_digit());
                    format!("{met}backoff")
                }
                None => words,
            }
        })
        .collect()
}

/// The requests to a port that is not there yet.
const TOO_SOON: [&str; 2] = ["POST /bookings", "PUT /photos/1"];

/// A run in which both came too soon: on a busy machine the port may be there first.
fn quickstart() -> String {
    for _ in 0..20 {
        let printed = run("quickstart");
        let too_late =
            |request: &&str| block(&printed, request) == [format!("{request} 1. 200 OK ✓ 200 OK")];
        if !TOO_SOON.iter().any(too_late) {
            return printed;
        }
    }
    panic!("no request came too soon in any run");
}

#[cfg(feature = "serde")]
#[test]
fn the_strategies_show_what_each_decides() {
    let printed = run("strategies");
    assert!(
        printed.starts_with("uv: after [500ms, 1s, 2s]\n"),
        "{printed}"
    );
    assert_eq!(
        printed.matches("Certificate    -       -       -").count(),
        7
    );
}

#[test]
fn the_quickstart_shows_what_became_of_each_request() {
    let printed = quickstart();
    let given_up = |reason: StopReason| format!("└─ given up: {reason}");
    let hour = Duration::from_secs(3600);
    for (request, expected) in [
        (
            "GET /prices",
            vec![
                "GET /prices 1. 503 Service Unavailable 1000 ms, as the shop asked",
                "2. 503 Service Unavailable backoff",
                "3. 200 OK ✓ 200 OK",
            ],
        ),
        (
            "GET /stock",
            vec![
                "GET /stock 1. connection closed backoff",
                "2. 200 OK ✓ 200 OK",
            ],
        ),
        (
            "POST /payments",
            vec![
                "POST /payments 1. connection closed ✗ the error",
                &given_up(StopReason::MethodNotAllowed),
            ],
        ),
        (
            "POST /orders",
            vec![
                "POST /orders 1. 503 Service Unavailable ✗ 503 Service Unavailable",
                &given_up(StopReason::MethodNotAllowed),
            ],
        ),
        (
            "POST /search",
            vec![
                "POST /search 1. 503 Service Unavailable backoff",
                "ReplaySafe(true) 2. 200 OK ✓ 200 OK",
            ],
        ),
        (
            "PUT /photos/2",
            vec![
                "PUT /photos/2 1. 503 Service Unavailable ✗ 503 Service Unavailable",
                &given_up(StopReason::NotReplayable),
            ],
        ),
        (
            "GET /unicorns",
            vec![
                "GET /unicorns 1. 404 Not Found ✗ 404 Not Found",
                "└─ not retried: the rule has no such status",
            ],
        ),
        (
            "GET /sale",
            vec![
                "GET /sale 1. 503 Service Unavailable ✗ 503 Service Unavailable",
                &given_up(StopReason::RetryAfterTooLong(hour)),
            ],
        ),
        (
            "GET /news",
            vec![
                "GET /news 1. 503 Service Unavailable ✗ 503 Service Unavailable",
                "RetryRule::never() └─ not retried: this request has a rule of its own",
            ],
        ),
    ] {
        assert_eq!(block(&printed, request), expected);
    }
    // How many attempts it takes until the port is there differs from run to run.
    for request in TOO_SOON {
        let met = block(&printed, request);
        assert_eq!(met[0], format!("{request} 1. connection refused backoff"));
        assert_eq!(
            met.last().unwrap(),
            &format!("{}. 200 OK ✓ 200 OK", met.len())
        );
    }
    assert!(
        printed.contains("received POST /payments 1× and POST /orders 1×"),
        "{printed}"
    );

    let columns = |mark: &str| -> Vec<usize> {
        let lines = printed.lines().filter_map(|line| line.split_once(mark));
        lines.map(|(before, _)| before.chars().count()).collect()
    };
    let first = columns("CAME BACK")[0];
    assert_eq!(columns("✓"), [first; 5]);
    assert_eq!(columns("✗"), [first; 6]);
    for line in printed.lines() {
        assert_eq!(line, line.trim_end());
        assert!(
            line.starts_with("The shop") || line.chars().count() <= 100,
            "{line}"
        );
    }
}

#[test]
fn the_rules_for_services_do_what_their_services_ask() {
    let printed = run("vendor_rules");
    let last_line = |request: &str| block(&printed, request).pop().unwrap();
    // Of Stripe's header only `false` counts.
    assert_eq!(
        block(&printed, "POST /locked"),
        [
            "POST /locked: 409, and stripe-should-retry: false",
            &format!("409 stop {}", StopReason::ServerSaidNo),
        ]
    );
    assert_eq!(last_line("POST /declined"), "402 answer");
    assert!(printed.contains("charges made: 1\n"), "{printed}");
    // The service's clock is ahead of this machine's, and its moments are on that clock: counted
    // from here, this wait would be ten minutes and above the cap.
    assert_eq!(last_line("GET /issues"), "200 answer");
    let hour = StopReason::RetryAfterTooLong(Duration::from_secs(3600));
    assert_eq!(last_line("GET /commits"), format!("403 stop {hour}"));
}

#[test]
fn the_ambient_example_shows_how_far_a_scope_reaches() {
    let printed = run("ambient");
    let requests = |call: &str| {
        let line = printed.lines().find(|line| line.trim().starts_with(call));
        line.and_then(|line| line.split_whitespace().rev().nth(1))
            .map(str::to_owned)
    };
    let expected = |requests: &str| Some(requests.to_owned());
    assert_eq!(requests("called as it is"), expected("4"));
    assert_eq!(requests("with_rule(RetryRule::never()"), expected("1"));
    assert_eq!(requests("with_overrides: a limit"), expected("2"));
    assert_eq!(requests("with_rule, and in it"), expected("4"));
    assert_eq!(requests("the same, carrying"), expected("1"));
    // Without its feature the map of that crate is not read, and the example does not use it.
    let in_the_map = cfg!(feature = "task-local-extensions").then(|| "1".to_owned());
    assert_eq!(requests("with_extensions, and"), in_the_map);
}

#[cfg(feature = "tracing")]
#[test]
fn the_observer_counts_what_happened() {
    let printed = run("observe");
    assert_eq!(
        block(&printed, "    recoveries"),
        ["recoveries", "1 2 attempts", "1 3 attempts"]
    );
    assert!(printed.contains("1  exhausted\n"), "{printed}");
    // The query of a URL is in no event and in no report.
    assert!(!printed.contains("secret"), "{printed}");
}

#[cfg(feature = "serde")]
#[test]
fn an_environment_variable_changes_one_value_of_a_file() {
    let file = run("layers");
    assert!(
        file.starts_with("max_retries = 3\nbackoff.max_ms = 2000\n"),
        "{file}"
    );
    let merged = run_with(
        "layers",
        &[
            ("SHOP_RETRY_MAX_RETRIES", "5"),
            ("SHOP_RETRY_BACKOFF__MAX_MS", "8000"),
        ],
    );
    assert!(
        merged.starts_with("max_retries = 5\nbackoff.max_ms = 8000\n"),
        "{merged}"
    );
}

#[cfg(feature = "serde")]
#[test]
fn each_route_shows_its_schedule() {
    let printed = run("routes");
    for (url, retries) in [
        ("https://catalogue.example.com/search", "1 retry."),
        ("https://catalogue.example.com/items", "Up to 3 retries."),
        ("https://eu.mail.example.com/send", "Up to 6 retries."),
        ("http://localhost:9000/health", "No retries."),
    ] {
        let (_, after) = printed.split_once(url).unwrap();
        let schedule = after.lines().find(|line| line.contains("retr")).unwrap();
        assert!(schedule.starts_with(retries), "{url}: {schedule}");
    }
}

/// How many attempts a block shows after its heading, and what its last line says.
fn attempts_and_end(printed: &str, request: &str) -> (usize, String) {
    let mut lines = block(printed, request);
    let end = lines.pop().unwrap_or_default();
    (lines.len(), end)
}

#[test]
fn what_a_body_says_is_done() {
    let printed = run("json_errors");
    for (call, attempts, end) in [
        ("search: ", 2, "200 answer".to_owned()),
        ("prices: ", 2, "200 answer".to_owned()),
        ("stock: ", 2, "200 answer".to_owned()),
        (
            "translate: ",
            1,
            format!("429 stop {}", StopReason::NotRetryable),
        ),
        (
            "transfer: ",
            1,
            format!("200 stop {}", StopReason::MethodNotAllowed),
        ),
    ] {
        assert_eq!(attempts_and_end(&printed, call), (attempts, end), "{call}");
    }
    for (call, wait) in [
        ("prices: ", "200 wait 250 ms"),
        ("stock: ", "429 wait 120 ms"),
    ] {
        let asked = &block(&printed, call)[1];
        assert!(asked.starts_with(wait), "{asked}");
    }
    // The bodies that were judged came back whole.
    assert_eq!(
        printed.matches("came back: \"done\"").count(),
        3,
        "{printed}"
    );
    assert_eq!(
        printed.matches("came back: {\"code\"").count(),
        2,
        "{printed}"
    );
}

#[test]
fn a_token_is_renewed_once() {
    let printed = run("token");
    for line in [
        "POST /orders  200 after 2 attempts, 2 tokens issued so far",
        "GET  /orders  200 after 1 attempts, 2 tokens issued so far",
        "GET  /admin   401 after 2 attempts, 3 tokens issued so far",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
}

#[test]
fn a_poll_ends_by_its_own_limit_and_takes_nothing_from_the_budget() {
    let printed = run("poll");
    let ready = attempts_and_end(&printed, "GET /exports/small");
    assert_eq!(ready, (5, "200 answer".to_owned()));
    let (_, endless) = attempts_and_end(&printed, "GET /exports/endless");
    assert!(endless.ends_with("would reach the hard limit"), "{endless}");
    let others = attempts_and_end(&printed, "The budget is still there");
    assert_eq!(others, (2, "200 answer".to_owned()));
}

#[test]
fn a_scrape_shows_retries_recoveries_and_waits() {
    let printed = run("metrics");
    for line in [
        "http_client_retries_total{call=\"list-orders\",after=\"503\"} 1",
        "http_client_retries_total{call=\"list-orders\",after=\"429\"} 1",
        "http_client_retries_total{call=\"list-orders\",after=\"closed\"} 1",
        "http_client_retries_total{call=\"year-report\",after=\"502\"} 3",
        "http_client_recoveries_total{attempts=\"2\"} 1",
        "http_client_recoveries_total{attempts=\"3\"} 1",
        "http_client_given_up_total{call=\"create-order\",reason=\"method_not_allowed\"} 1",
        "http_client_given_up_total{call=\"price-list\",reason=\"retry_after_too_long\"} 1",
        "http_client_given_up_total{call=\"year-report\",reason=\"exhausted\"} 1",
        "http_client_retry_wait_seconds_sum{source=\"server\"} 0.15",
        "http_client_retry_wait_seconds_count{source=\"backoff\"} 5",
    ] {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line}\n{printed}"
        );
    }
}

#[cfg(feature = "serde")]
#[test]
fn settings_are_read_again_when_their_file_changes_and_kept_if_it_does_not_read() {
    let printed = run("reload");
    let sent: Vec<_> = printed
        .lines()
        .filter(|line| line.contains(" after ") || line.starts_with("kept"))
        .map(|line| line.split(':').next().unwrap_or_default())
        .collect();
    let twice = "503 Service Unavailable after 2 attempts";
    let four = "503 Service Unavailable after 4 attempts";
    assert_eq!(sent, [twice, "kept the settings", twice, four]);
}

#[test]
fn the_work_example_does_again_what_may_be_and_places_one_order() {
    let printed = run("work");
    let index = block(&printed, "An index");
    assert_eq!(
        index[1..],
        [
            "call: the response's body broke off",
            "call: 200",
            "[1, 2, 3]"
        ]
    );
    let order = block(&printed, "An order");
    let stop = format!("stop: {}", StopReason::MethodNotAllowed);
    let expected = [
        "call: the response's body broke off",
        &stop,
        "orders placed: 1",
    ];
    assert_eq!(order[1..], expected);
}

#[test]
fn a_download_goes_on_and_begins_again_if_the_file_has_changed() {
    let printed = run("download");
    for line in [
        "everything       200, 3000000 of 8000000 bytes",
        "bytes=3000000-   206, 2500000 of 5000000 bytes",
        "bytes=5500000-   200, 4000000 of 8000000 bytes",
        "bytes=4000000-   206, 4000000 of 4000000 bytes",
        "8000000 bytes are on disk",
        "the digest is that of the new file",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
}
