//! Settings in layers: a file, and environment variables that change single values of it.
//!
//! `figment` merges them, key by key and into the nested tables, before this crate reads the
//! result. Run it with and without a variable:
//!
//! ```text
//! cargo run --example layers --features serde
//! SHOP_RETRY_MAX_RETRIES=5 SHOP_RETRY_BACKOFF__MAX_MS=8000 \
//!     cargo run --example layers --features serde
//! SHOP_RETRY_MAX_RETRIES=many cargo run --example layers --features serde
//! ```

use figment::Figment;
use figment::providers::{Env, Format, Toml};
use reqwest_retry_rules::{RetryConfig, RetryMiddleware};

/// What a file would hold.
const FILE: &str = r#"
    preset = "transient"
    total_timeout_ms = 15000

    [backoff]
    max_ms = 2000
"#;

fn main() -> anyhow::Result<()> {
    let layers = Figment::from(Toml::string(FILE))
        // `SHOP_RETRY_BACKOFF__MAX_MS` is `max_ms` in `[backoff]`.
        .merge(Env::prefixed("SHOP_RETRY_").split("__"));
    // A bad value is an error that names the key and the layer that it came from.
    let config: RetryConfig = layers.extract()?;

    let rule = config.rule();
    println!("max_retries = {}", rule.max_retries);
    println!("backoff.max_ms = {}", rule.backoff.max.as_millis());
    for key in ["max_retries", "backoff.max_ms"] {
        match layers.find_metadata(key) {
            Some(layer) => println!("{key} comes from {}", layer.name),
            None => println!("{key} comes from the preset"),
        }
    }

    // What `reqwest_middleware::ClientBuilder::with` takes.
    let _middleware = RetryMiddleware::new(config);
    Ok(())
}
