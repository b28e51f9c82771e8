//! Two services behind one client, each with a rule of its own, and what each rule will do.
//!
//! Run it with `cargo run --example routes --features serde`. The file is `routes.toml`, beside
//! this one.

use std::fs;
use std::path::Path;

use reqwest::Url;
use reqwest_retry_rules::{RetryConfig, RetryMiddleware, RetryPolicy, RetryRule, RoutePattern};

fn main() -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/routes.toml");
    let config: RetryConfig = toml::from_str(&fs::read_to_string(file)?)?;

    // Code adds to the table what only it knows.
    let own: RoutePattern = "localhost:9000".parse()?;
    let policy = RetryPolicy::from(config).route(own, RetryRule::never());

    // Which rule a URL has can be looked at, and tested, without sending anything.
    for url in [
        "https://catalogue.example.com/search/books?q=rust",
        "https://catalogue.example.com/items",
        "https://eu.mail.example.com/send",
        "http://localhost:9000/health",
    ] {
        println!("{url}\n\n{}", policy.rule_for(&Url::parse(url)?).schedule());
    }

    // What `reqwest_middleware::ClientBuilder::with` takes.
    let _middleware = RetryMiddleware::new(policy);
    Ok(())
}
