//! What retries cost, beside the published peers, in one run.
//!
//! `cargo bench` prints the table; `cargo bench -- --quick` prints a rough one in a minute. Times
//! are criterion's, each of a whole `execute` without a network unless the row says otherwise; only
//! the ratios mean something on another machine.
#![allow(clippy::disallowed_methods)]

mod clients;
mod concurrent;
mod counts;
mod decisions;
mod sends;
mod server;
mod table;
mod tls;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2))
        .configure_from_args();
    sends::measure(&mut criterion);
    decisions::measure(&mut criterion);
    tls::measure(&mut criterion);
    criterion.final_summary();

    let mut table = table::Table::default();
    sends::report(&mut table);
    decisions::report(&mut table);
    counts::report(&mut table);
    tls::report(&mut table);
    concurrent::report(&mut table);
    table.print();
}
