//! What the rule in a file will do, to be read beside it:
//! `cargo run --features serde --example schedule -- rule.toml`
//!
//! Without a file it shows a rule of its own.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use reqwest_retry_rules::{Backoff, Jitter, Limits, RetryRule};

fn main() -> ExitCode {
    let rule = match std::env::args().nth(1) {
        Some(file) => match read(&file) {
            Ok(rule) => rule,
            // `{error}` points at the fault, where `{error:?}` would be the whole file in one line.
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        },
        None => patient(),
    };
    print!("{}", rule.schedule());
    ExitCode::SUCCESS
}

fn read(file: &str) -> Result<RetryRule, Box<dyn Error>> {
    Ok(toml::from_str(&std::fs::read_to_string(file)?)?)
}

/// For up to ten minutes, a minute apart in the end.
fn patient() -> RetryRule {
    RetryRule {
        max_retries: 100,
        backoff: Backoff {
            base: Duration::from_secs(1),
            max: Duration::from_secs(60),
            growth: 2000,
            jitter: Jitter::Proportional { lo: 500, hi: 1000 },
        },
        limits: Limits {
            hard_elapsed: Some(Duration::from_secs(600)),
            ..Limits::default()
        },
        ..RetryRule::transient()
    }
}
