//! Thousands of sends, each with faults of its own, and what holds when all are over: a fault soak of
//! any length.
//!
//! Run it with `cargo run --release --example soak -- --seed 7 --sends 100000`. Without a seed it
//! takes one by chance, and prints it; `--at-once 500` says how many sends are on their way together.

#[path = "../tests/support/soak/mod.rs"]
mod soak;
#[path = "../tests/support/mod.rs"]
mod support;

use std::env;
use std::process::ExitCode;

use anyhow::Context;

use soak::Soak;

fn main() -> anyhow::Result<ExitCode> {
    let soak = asked(env::args().skip(1))?;
    println!(
        "--seed {} --sends {} --at-once {}",
        soak.seed, soak.sends, soak.at_once
    );
    let tally = soak.run();
    println!("{tally}");
    let wrong = &tally.verdict.wrong;
    for what in wrong.iter().take(20) {
        println!("{what}\n");
    }
    if wrong.is_empty() {
        println!("All of it held.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} are wrong.", wrong.len());
    Ok(ExitCode::FAILURE)
}

/// What the arguments ask for.
fn asked(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Soak> {
    let mut soak = Soak::by_chance();
    while let Some(name) = arguments.next() {
        let value = arguments.next();
        let value = value.with_context(|| format!("{name} wants a number"))?;
        let value: u64 = value.parse().with_context(|| format!("{name} {value}"))?;
        match name.as_str() {
            "--seed" => soak.seed = value,
            "--sends" => soak.sends = usize::try_from(value)?,
            "--at-once" => soak.at_once = usize::try_from(value)?,
            _ => {
                anyhow::bail!("there is no {name}: --seed, --sends and --at-once are all there is")
            }
        }
    }
    Ok(soak)
}
