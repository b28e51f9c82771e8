//! Thousands of sends, each with faults of its own, and what holds when all are over: nothing that
//! may not be repeated was processed twice, and whatever could succeed did.
//!
//! `SOAK_SEED` and `SOAK_SENDS` choose what is run; the seed is printed. `cargo run --release
//! --example soak` runs it for longer.
#![allow(clippy::disallowed_methods)]

#[path = "support/soak/mod.rs"]
mod soak;
mod support;

use std::env;

use soak::Soak;
use soak::fault::KINDS;

#[test]
fn whatever_goes_wrong_nothing_is_processed_twice_and_what_can_succeed_does() {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let usual = Soak::by_chance();
    let soak = Soak {
        seed: number("SOAK_SEED").unwrap_or(usual.seed),
        sends: number("SOAK_SENDS").map_or(usual.sends, |sends| sends as usize),
        ..usual
    };
    println!("SOAK_SEED={} SOAK_SENDS={}", soak.seed, soak.sends);
    let tally = soak.run();
    println!("{tally}");
    let wrong = &tally.verdict.wrong;
    assert!(
        wrong.is_empty(),
        "with SOAK_SEED={}, {} are wrong:\n\n{}",
        soak.seed,
        wrong.len(),
        wrong[..wrong.len().min(10)].join("\n\n")
    );
    let missed = |kind: &&&str| !tally.verdict.met.contains_key(**kind);
    let missed: Vec<_> = KINDS.iter().filter(missed).collect();
    if soak.sends >= usual.sends {
        assert_eq!(missed, [] as [&&str; 0], "with SOAK_SEED={}", soak.seed);
    }
}
