//! Thousands of sends, each with faults of its own, and what holds when all are over: nothing that
//! may not be repeated was processed twice, and whatever could succeed did.
//!
//! `SOAK_SEED` and `SOAK_SENDS` choose what is run; the seed is printed. `cargo run --release
//! --example soak` runs it for longer.

use std::env;

use reqwest::redirect::Policy;
use reqwest_retry_rules::tracked_redirects;

use crate::TURN;
use crate::soaking::fault::KINDS;
use crate::soaking::works::{SoakOfWorks, TallyOfWorks};
use crate::soaking::{Soak, Tally};

/// Runs it and shows the seed and what was found, where the test fails.
fn run(soak: Soak) -> Tally {
    let _turn = TURN.blocking_lock();
    println!("SOAK_SEED={} SOAK_SENDS={}", soak.seed, soak.sends);
    let tally = soak.run();
    println!("{tally}");
    tally
}

/// What is run, if not by default.
fn asked() -> Soak {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let usual = Soak::by_chance();
    Soak {
        seed: number("SOAK_SEED").unwrap_or(usual.seed),
        sends: number("SOAK_SENDS").map_or(usual.sends, |sends| sends as usize),
        ..usual
    }
}

#[test]
fn whatever_goes_wrong_nothing_is_processed_twice_and_what_can_succeed_does() {
    let soak = asked();
    let tally = run(soak);
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
    if soak.sends >= Soak::by_chance().sends {
        assert_eq!(missed, [] as [&&str; 0], "with SOAK_SEED={}", soak.seed);
    }
}

/// Runs a few sends, the same each time, with clients that are made as they should not be.
#[track_caller]
fn finds(what: &str, client: fn() -> reqwest::ClientBuilder) {
    let tally = run(Soak {
        seed: 1,
        sends: 500,
        client,
        ..Soak::by_chance()
    });
    let found = |wrong: &String| wrong.contains(what);
    assert!(
        tally.verdict.wrong.iter().any(found),
        "no send of which {what:?} is said"
    );
}

#[test]
fn a_client_that_does_not_track_redirects_is_found_to_have_a_request_processed_twice() {
    finds("it was processed 2 times", || {
        reqwest::Client::builder().retry(reqwest::retry::never())
    });
}

#[test]
fn a_client_that_resends_by_itself_is_found_out() {
    finds("was sent twice", || {
        reqwest::Client::builder().redirect(tracked_redirects(Policy::default()))
    });
}

/// Runs a soak of works, and shows the seed and what was found, where the test fails.
fn run_works(lies: bool) -> TallyOfWorks {
    let _turn = TURN.blocking_lock();
    let asked = asked();
    let soak = SoakOfWorks {
        seed: asked.seed,
        works: asked.sends / 3,
        at_once: asked.at_once / 3,
        lies,
    };
    println!("SOAK_SEED={} SOAK_SENDS={}", soak.seed, asked.sends);
    let tally = soak.run();
    println!("{tally}");
    tally
}

#[test]
fn whatever_goes_wrong_in_a_work_nothing_is_processed_twice_and_what_can_succeed_does() {
    let tally = run_works(false);
    let wrong = &tally.wrong;
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n\n")
    );
    assert!(tally.must > 0, "no work had to succeed");
}

#[test]
fn a_work_that_vouches_for_what_it_must_not_is_found_out() {
    let tally = run_works(true);
    let found = |wrong: &String| wrong.contains("it was processed");
    assert!(
        tally.wrong.iter().any(found),
        "no work of which that is said"
    );
}
