//! What retries cost, beside the published peers, in one run of two or three minutes.
//!
//! `cargo bench` prints two tables: everything, with the goals, and what the README holds of it.
//! `cargo bench -- --quick` prints rough ones, and `cargo bench -- far` only one part: the parts are
//! [`PARTS`]. Only the ratios mean something on another machine. Sends are timed in turning order,
//! so that a machine that is slow for a while is so for all; decisions are criterion's.
#![allow(clippy::disallowed_methods)]

mod clients;
mod concurrent;
mod counts;
mod decisions;
mod distance;
mod far;
mod readme;
mod rounds;
mod sends;
mod server;
mod settings;
mod table;
mod tls;

use criterion::Criterion;
use table::Table;

type Report = fn(&mut Table);

/// In the order in which they run. What others leave behind in the heap would be part of what
/// `at_once` measures, so it is first.
const PARTS: [(&str, Report); 7] = [
    ("at_once", concurrent::report),
    ("sends", sends::report),
    ("settings", settings::report),
    ("decisions", decisions::report),
    ("counts", counts::report),
    ("tls", tls::report),
    ("far", distance::report),
];

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let Some(at) = arguments
        .iter()
        .position(|argument| argument == rounds::ALONE)
    {
        let what = &arguments[at + 1];
        let rounds = sends::alone(what).or_else(|| settings::alone(what));
        rounds.expect("the name of a measurement").print();
        return;
    }
    let named: Vec<_> = arguments
        .into_iter()
        .filter(|argument| PARTS.iter().any(|(part, _)| part == argument))
        .collect();
    let mut table = Table::default();
    for (part, report) in PARTS {
        if named.is_empty() || named.iter().any(|name| name == part) {
            report(&mut table);
        }
    }
    table.print();
    readme::print(&table);
}

fn criterion() -> Criterion {
    Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2))
        .configure_from_args()
        // What it would take for a filter is the name of a part.
        .with_filter("")
}
