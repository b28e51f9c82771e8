//! A rule from a configuration file: what it says, what it decides, and what is said of a bad one.
//!
//! Run it with `cargo run --example rule_from_toml --features serde`. The file is `rule.toml`,
//! beside this one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Backoff, Decision, Jitter, Limits, Methods, RetryAfterCap,
    RetryAfterRole, RetryAfterSource, RetryRule, StatusMatch, StatusRule, TransportError,
};

fn main() -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rule.toml");
    let rule: RetryRule = toml::from_str(&fs::read_to_string(file)?)?;

    // It is a rule like any other now: `RetryMiddleware::new(rule)` goes by it.
    println!("What the file says\n");
    print_in_words(&rule);

    println!("\nHow long it waits, as chance decides\n");
    println!("                     least     middle       most");
    for retry in 0..rule.max_retries {
        print!("    before retry {}", retry + 1);
        for random in [0.0, 0.5, 0.999] {
            print!("{:>8} ms", rule.backoff.delay(retry, random).as_millis());
        }
        println!();
    }

    println!("\nWhat it decides, in the middle of the jitter\n");
    print_decisions(&rule)?;

    println!("\nWhat is said of a bad file\n");
    for file in [
        "max_retries = \"three\"",
        "sent_failures = \"sometimes\"",
        "sent_failures = [\"get\", \"any\"]",
        "statuses = [{ statuses = [429, \"50x\"], methods = \"any\" }]",
        "retry_after.cap = { stop_above = 60 }",
        "backoff.base_ms = -1",
        "backof.base_ms = 1",
        "limits = { soft_elapsed_ms = 5000, hard_elapsed_ms = 500 }",
    ] {
        if let Err(error) = toml::from_str::<RetryRule>(file) {
            // The whole text of the error says the line and the column too.
            println!("    {file}\n        {}", error.message());
        }
    }

    // A rule that is built in code is not checked by itself. This names every fault of it.
    println!("\nWhat is said of a bad rule in code\n");
    if let Err(invalid) = faulty().validate() {
        for fault in invalid.faults() {
            let (field, found, expected) = (fault.field(), fault.found(), fault.expected());
            println!("    {field} is {found}\n        expected {expected}");
        }
    }
    Ok(())
}

fn faulty() -> RetryRule {
    let transient = RetryRule::transient();
    RetryRule {
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(42), StatusMatch::Range(599, 500)],
            methods: Methods::Any,
            backoff: None,
        }],
        backoff: Backoff {
            base: Duration::ZERO,
            ..transient.backoff
        },
        limits: Limits {
            soft_elapsed: Some(Duration::from_secs(60)),
            hard_elapsed: Some(Duration::from_secs(6)),
            ..Limits::default()
        },
        ..transient
    }
}

/// Asks the rule about attempts that failed, which takes neither a network nor time.
fn print_decisions(rule: &RetryRule) -> anyhow::Result<()> {
    let first = |method| Attempt {
        random: 0.5,
        ..Attempt::new(method)
    };
    let (get, post) = (first(&Method::GET), first(&Method::POST));

    for (attempt, status, header) in [
        (get, 503, None),
        (post, 503, None),
        (get, 501, None),
        (post, 429, Some(("retry-after", "7"))),
        (post, 429, Some(("retry-after", "3600"))),
        (post, 500, Some(("x-should-retry", "true"))),
        (get, 503, Some(("x-should-retry", "false"))),
    ] {
        let mut headers = HeaderMap::new();
        let mut what = status.to_string();
        if let Some((name, value)) = header {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
            what = format!("{what}, {name}: {value}");
        }
        let outcome = AttemptOutcome::Response {
            status: StatusCode::from_u16(status)?,
            headers: &headers,
        };
        print_decision(&what, rule, &outcome, &attempt);
    }

    let late = |retries, seconds| Attempt {
        attempt: retries,
        elapsed: Duration::from_secs(seconds),
        ..get
    };
    for (what, failure, attempt) in [
        ("no answer in time", TransportError::Timeout, get),
        ("no answer in time", TransportError::Timeout, post),
        ("no connection", TransportError::Connect, post),
        ("a bad certificate", TransportError::Certificate, get),
        (
            "no connection, 6 s after the start",
            TransportError::Connect,
            late(0, 6),
        ),
        (
            "no connection, after 1 retry and 6 s",
            TransportError::Connect,
            late(1, 6),
        ),
        (
            "no connection, after 4 retries",
            TransportError::Connect,
            late(4, 3),
        ),
    ] {
        print_decision(what, rule, &AttemptOutcome::Failure(failure), &attempt);
    }
    Ok(())
}

fn print_decision(what: &str, rule: &RetryRule, outcome: &AttemptOutcome, attempt: &Attempt) {
    let method = attempt.method.as_str();
    match rule.decide(outcome, attempt) {
        Decision::Wait(wait) => println!("    {method:<6}{what:<38}wait {} ms", wait.as_millis()),
        Decision::Stop(reason) => println!("    {method:<6}{what:<38}stop: {reason}"),
    }
}

/// Prints a rule for people. Its fields are public, so whoever shows settings can do the same.
fn print_in_words(rule: &RetryRule) {
    let line = |name: &str, text: &str| println!("    {name:<26}{text}");

    line("retries", &format!("at most {}", rule.max_retries));
    for each in &rule.statuses {
        let statuses: Vec<_> = each.statuses.iter().map(status).collect();
        line(&statuses.join(", "), &methods(&each.methods));
    }
    line("no answer", &methods(&rule.sent_failures));
    line(
        "certainly not processed",
        if rule.unsent_failures {
            "for every method"
        } else {
            "as where there is no answer"
        },
    );
    line(
        "timeouts",
        if rule.timeouts {
            "among these"
        } else {
            "never"
        },
    );
    if let Some(header) = &rule.override_header {
        line(
            "unless the service says",
            &format!("{header}: true, or false"),
        );
    }

    let Backoff {
        base,
        max,
        growth,
        jitter,
    } = rule.backoff;
    let growth = f64::from(growth) / 1000.0;
    let backoff = format!(
        "{} ms, times {growth} each time, up to {} ms",
        base.as_millis(),
        max.as_millis()
    );
    line("backoff", &backoff);
    line(
        "jitter",
        &match jitter {
            Jitter::NoJitter => "none".to_owned(),
            Jitter::Full => "anything from 0 up to it".to_owned(),
            Jitter::Proportional { lo, hi } => format!("{} % to {} %", percent(lo), percent(hi)),
        },
    );

    let asked = &rule.retry_after;
    let headers = asked.headers.iter().map(|header| header.name.as_str());
    let standard: &[&str] = match asked.source {
        RetryAfterSource::Ignore => &[],
        RetryAfterSource::Header => &["retry-after"],
        RetryAfterSource::MsThenHeader => &["retry-after-ms", "retry-after"],
    };
    let headers: Vec<_> = headers.chain(standard.iter().copied()).collect();
    line("wait asked for in", &headers.join(", "));
    line(
        "    if it is shorter",
        match asked.role {
            RetryAfterRole::Replace => "than the backoff: is waited for",
            RetryAfterRole::Floor => "than the backoff: the backoff",
        },
    );
    line(
        "    if it is longer",
        &match asked.cap {
            RetryAfterCap::StopAbove(cap) => format!("than {} s: no retry", cap.as_secs_f64()),
            RetryAfterCap::BackoffAbove(cap) => {
                format!("than {} s: the backoff", cap.as_secs_f64())
            }
            RetryAfterCap::ClampTo(cap) => format!("than {} s: that", cap.as_secs_f64()),
            RetryAfterCap::NoCap => "than anything: is waited for".to_owned(),
        },
    );
    line(
        "    if it is 0",
        if asked.zero_means_backoff {
            "the backoff"
        } else {
            "at once"
        },
    );
    line(
        "    chance adds",
        &format!("up to {} %", percent(asked.spread)),
    );

    let Limits {
        soft_elapsed,
        min_retries,
        hard_elapsed,
    } = &rule.limits;
    if let Some(soft) = soft_elapsed {
        let soft = soft.as_secs_f64();
        let after = match min_retries {
            0 => format!("{soft} s"),
            1 => format!("{soft} s, but 1 retry is made in any case"),
            _ => format!("{soft} s, but {min_retries} retries are made in any case"),
        };
        line("no retry after", &after);
    }
    if let Some(hard) = hard_elapsed {
        line("none at all after", &format!("{} s", hard.as_secs_f64()));
    }
}

fn status(status: &StatusMatch) -> String {
    match status {
        StatusMatch::Code(code) => code.to_string(),
        StatusMatch::Range(first, last) => format!("{first} to {last}"),
    }
}

fn methods(methods: &Methods) -> String {
    match methods {
        Methods::Never => "for no method".to_owned(),
        Methods::Idempotent => "for methods that may be repeated".to_owned(),
        Methods::Any => "for every method".to_owned(),
        Methods::Listed(listed) => {
            let listed: Vec<_> = listed.iter().map(Method::as_str).collect();
            format!("for {}", listed.join(", "))
        }
    }
}

fn percent(per_mille: u32) -> f64 {
    f64::from(per_mille) / 10.0
}
