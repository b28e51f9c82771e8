//! A rule from a file: what it will do, and what is said of a bad file.
//!
//! Run it with `cargo run --example rule_from_toml --features serde`. The file is `rule.toml`,
//! beside this one, which has every key that there is.

use std::fs;
use std::path::Path;

use reqwest_retry_rules::RetryRule;

fn main() -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rule.toml");
    let rule: RetryRule = toml::from_str(&fs::read_to_string(file)?)?;

    // It is a rule like any other now: `RetryMiddleware::new(rule)` goes by it.
    println!("What it will do\n\n{}", rule.schedule());

    // A file need not say everything: a preset says from what it differs.
    let rule: RetryRule = toml::from_str("preset = 'transient'\nbackoff.max_ms = 10000")?;
    println!("The preset, but waits of up to 10 s\n\n{}", rule.schedule());

    println!("What is said of a bad file\n");
    for file in [
        "max_retries = \"three\"",
        "sent_failures = \"sometimes\"",
        "sent_failures = [\"get\", \"any\"]",
        "statuses = [{ statuses = [429, \"50x\"], methods = \"any\" }]",
        "retry_after.cap = { stop_above = 60 }",
        "backoff.base_ms = -1",
        "backof.base_ms = 1",
        "limits = { soft_elapsed_ms = 5000, hard_elapsed_ms = 500 }",
    ] {
        if let Err(error) = toml::from_str::<RetryRule>(file) {
            // The whole text of the error says the line and the column too.
            println!("    {file}\n        {}", error.message());
        }
    }
    Ok(())
}
