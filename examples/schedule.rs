//! What the rule in a file will do, to be read beside it:
//! `cargo run --features serde --example schedule -- rule.toml`
//!
//! Without a file it shows a rule of its own.

use std::time::Duration;

use reqwest_retry_rules::{Backoff, Jitter, Limits, RetryRule};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rule = match std::env::args().nth(1) {
        Some(file) => toml::from_str(&std::fs::read_to_string(file)?)?,
        None => patient(),
    };
    print!("{}", rule.schedule());
    Ok(())
}

/// As long as ten minutes, a minute apart in the end.
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
