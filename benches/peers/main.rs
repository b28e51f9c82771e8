//! What retries cost, beside the published peers, in one run.
//!
//! `cargo bench` prints the table; `cargo bench -- --quick` prints a rough one in a few minutes, and
//! `cargo bench -- at_once` the sends of 64 tasks alone, `cargo bench -- far` those over a long way. Times are criterion's, each of a whole
//! `execute` without a network unless the row says otherwise; only the ratios mean something on
//! another machine.
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

fn main() {
    let mut table = table::Table::default();
    // First: what others leave behind in the heap would be part of what it measures.
    let only = |part: &str| std::env::args().any(|argument| argument == part);
    if only("far") {
        distance::report(&mut table);
    } else {
        concurrent::report(&mut table);
        if !only("at_once") {
            all_else(&mut table);
        }
    }
    table.print();
    readme::print(&table);
}

fn all_else(table: &mut table::Table) {
    let mut criterion = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2))
        .configure_from_args();
    decisions::measure(&mut criterion);
    tls::measure(&mut criterion);
    criterion.final_summary();

    sends::report(table);
    settings::report(table);
    decisions::report(table);
    counts::report(table);
    tls::report(table);
    distance::report(table);
}
