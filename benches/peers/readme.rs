//! The table of the README: what its readers want to know, in few lines.

use crate::distance::{APART, APART_AT_ONCE};
use crate::sends::{GET, POST, RETRIED, WORK};
use crate::table::{Row, Table};
use crate::{counts, decisions, tls};

const GETS_AT_ONCE: &str = "64 tasks of 150 GETs";
const POSTS_AT_ONCE: &str = "64 tasks of 150 POSTs";

/// What it says of whom, and the rows that are summed up in it.
type Line = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const LINES: &[Line] = &[
    (
        "GET that succeeds, no network",
        "a middleware that does nothing",
        &[(GET, "pass-through")],
    ),
    (
        "",
        "one that keeps a `try_clone`",
        &[(GET, "try_clone kept")],
    ),
    ("", "reqwest-retry 0.9", &[(GET, "reqwest-retry")]),
    (
        "",
        "ours; without a budget",
        &[(GET, "ours"), (GET, "ours, no budget")],
    ),
    (
        "POST that succeeds, no network",
        "reqwest-retry 0.9",
        &[(POST, "reqwest-retry")],
    ),
    (
        "",
        "ours, every method retried; without a budget",
        &[(POST, "ours"), (POST, "ours, no budget")],
    ),
    (
        "`max_retries: 0`, GET; POST; a POST under `transient()`",
        "ours, against a middleware that does nothing",
        &[
            (GET, "ours, max_retries 0"),
            (POST, "ours, max_retries 0"),
            (POST, "ours, transient"),
        ],
    ),
    (
        "three retries without a wait, no network",
        "reqwest-retry 0.9",
        &[(RETRIED, "reqwest-retry")],
    ),
    ("", "ours", &[(RETRIED, "ours")]),
    (
        "over TLS, a 503 of 40 KB, no wait, an answer",
        "reqwest-retry 0.9",
        &[(tls::RETRY, tls::PEER)],
    ),
    ("", "ours", &[(tls::RETRY, tls::DRAINED)]),
    (
        "over TLS, 30 ms there and back, a 503 of 64 bytes, no wait; 50 ms",
        "reqwest-retry 0.9",
        &[(APART_AT_ONCE, "reqwest-retry"), (APART, "reqwest-retry")],
    ),
    (
        "",
        "a loop with backon 1.6",
        &[(APART_AT_ONCE, "backon"), (APART, "backon")],
    ),
    ("", "ours", &[(APART_AT_ONCE, "ours"), (APART, "ours")]),
    (
        "one decision",
        "retry-policies 0.5; backon 1.6",
        &[
            (decisions::DECISION, "retry-policies"),
            (decisions::DECISION, "backon"),
        ],
    ),
    (
        "",
        "ours, after a failure; after a 503",
        &[
            (decisions::DECISION, "ours, after a failure"),
            (decisions::DECISION, "ours, after a 503"),
        ],
    ),
    (
        "a date in `Retry-After`",
        "httpdate alone",
        &[(decisions::DATE, "httpdate")],
    ),
    ("", "ours", &[(decisions::DATE, "ours")]),
    ("one GET, no network", "alone", &[(WORK, "the GET alone")]),
    ("", "ours, as a work in `run`", &[(WORK, "in `run`")]),
    (
        "64 tasks at once, GETs; POSTs of 1 KB, against plain reqwest",
        "one that keeps a `try_clone`",
        &[
            (GETS_AT_ONCE, "try_clone kept"),
            (POSTS_AT_ONCE, "try_clone kept"),
        ],
    ),
    (
        "",
        "reqwest-retry 0.9",
        &[
            (GETS_AT_ONCE, "reqwest-retry"),
            (POSTS_AT_ONCE, "reqwest-retry"),
        ],
    ),
    (
        "",
        "ours",
        &[(GETS_AT_ONCE, "ours"), (POSTS_AT_ONCE, "ours")],
    ),
    (
        "connections for 503, 503, 503, 200, 40 KB each",
        "reqwest-retry 0.9; backon 1.6; ours",
        &[
            (counts::CONNECTIONS, "reqwest-retry"),
            (counts::CONNECTIONS, "backon"),
            (counts::CONNECTIONS, "ours"),
        ],
    ),
    (
        "requests for 500 GETs in an outage",
        "reqwest-retry 0.9; backon 1.6; ours",
        &[
            (counts::OUTAGE, "reqwest-retry"),
            (counts::OUTAGE, "backon"),
            (counts::OUTAGE, "ours"),
        ],
    ),
];

/// Prints it, without the lines of which something was not measured, and says how many those are.
pub fn print(table: &Table) {
    println!("\nMeasured on {}:", machine());
    println!("\n| what | who | measured | ratio |");
    println!("| --- | --- | ---: | ---: |");
    let mut left_out = 0;
    for (what, who, of) in LINES {
        let found = of.iter().map(|(what, who)| table.find(what, who));
        let Some(rows) = found.collect::<Option<Vec<&Row>>>() else {
            left_out += 1;
            continue;
        };
        // How many requests a second is a ratio and nothing else.
        let is_rate = of[0].0.starts_with("64 tasks");
        let all = |field: fn(&Row) -> &str| rows.iter().map(|row| field(row)).collect();
        let (measured, mut ratio) = match is_rate {
            true => (String::new(), joined(all(|row| first_word(&row.value)))),
            false => (
                joined(all(|row| before_comma(&row.value))),
                joined(all(|row| &row.ratio)),
            ),
        };
        if who.starts_with("ours") && !ratio.is_empty() {
            ratio = format!("**{ratio}**");
        }
        println!("| {what} | {who} | {measured} | {ratio} |");
    }
    if left_out > 0 {
        println!("\n{left_out} of {} lines were not measured.", LINES.len());
    }
}

/// How many processors it has and of which kind, as far as Linux says, and the compiler.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = text.lines();
    let model = lines.find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    let model = model.map_or("unknown processors", |(_, model)| model);
    let compiler = std::process::Command::new("rustc")
        .arg("--version")
        .output();
    let compiler = compiler.map_or(String::new(), |said| {
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    });
    format!("{cores} cores of {model}, {compiler}")
}

fn before_comma(text: &str) -> &str {
    text.split(',').next().unwrap_or(text)
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

/// A unit that all have is said once: "896; 851 ns".
fn joined(values: Vec<&str>) -> String {
    let unit = values.first().and_then(|value| value.split_once(' '));
    let unit = unit.map_or("", |(_, unit)| unit);
    let shared = !unit.is_empty() && values.iter().all(|value| value.ends_with(unit));
    let last = values.len().saturating_sub(1);
    let said = values
        .into_iter()
        .enumerate()
        .map(|(at, value)| match shared && at < last {
            true => first_word(value),
            false => value,
        });
    let said: Vec<_> = said.filter(|value| !value.is_empty()).collect();
    said.join("; ")
}
