//! How well-known clients send again, each in a file of settings, and what each decides:
//! `cargo run --features serde --example strategies`
//!
//! The facts are those of their public sources in 2026, in the files that each names. None of these
//! reads `Retry-After`, and none limits how many requests are sent again in all: hence
//! `budget = "off"` in each. What a file cannot say, it names.

mod decisions;

use std::error::Error;

use reqwest_retry_rules::RetryConfig;

const STRATEGIES: [(&str, &str); 7] = [
    ("uv", include_str!("uv.toml")),
    ("rattler", include_str!("rattler.toml")),
    ("hf-hub", include_str!("hf_hub.toml")),
    ("codex", include_str!("codex.toml")),
    ("turborepo", include_str!("turborepo.toml")),
    ("datadog", include_str!("datadog.toml")),
    ("object_store", include_str!("object_store.toml")),
];

fn main() -> Result<(), Box<dyn Error>> {
    for (name, settings) in STRATEGIES {
        let config: RetryConfig = toml::from_str(settings)?;
        let rule = config.rule();
        println!("{name}: after {:?}", decisions::waits(rule));
        println!("{}", decisions::decisions(rule));
    }
    Ok(())
}
