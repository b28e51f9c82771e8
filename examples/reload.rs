//! Settings that are read again when their file changes, while the client goes on.
//!
//! ```text
//! cargo run --example reload --features serde
//! ```
//!
//! `notify` watches the folder of the file, since an editor may put a new file in its place. A file
//! that does not read is reported, and the settings that were in force stay.

mod support;

use std::path::Path;
use std::{env, fs, process};

use notify::{RecursiveMode, Watcher};
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::{
    ResponseExt, RetryConfig, RetryMiddleware, SharedPolicy, client_builder,
};
use support::{Service, answer};
use tokio::sync::mpsc;

fn read(file: &Path) -> anyhow::Result<RetryConfig> {
    Ok(toml::from_str(&fs::read_to_string(file)?)?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(|_, _| async { answer(503, &[]) }).await?;
    let folder = env::temp_dir().join(format!("reload-{}", process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("retry.toml");
    fs::write(&file, "preset = \"transient\"\nmax_retries = 1\n")?;

    let policy = SharedPolicy::new(read(&file)?);
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::shared(policy.clone()))
        .build();

    let (changes, mut changed) = mpsc::unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| event.kind.is_modify() || event.kind.is_create()) {
            let _ = changes.send(());
        }
    })?;
    watcher.watch(&folder, RecursiveMode::NonRecursive)?;

    let url = service.url("/");
    let sent = client.get(&url).send().await?;
    println!("{} after {} attempts", sent.status(), sent.attempts());

    for text in [
        "max_retries = \"many\"",
        "preset = \"transient\"\nmax_retries = 3\n",
    ] {
        // In one step, so that nobody reads half a file.
        let draft = folder.join("draft");
        fs::write(&draft, text)?;
        fs::rename(&draft, &file)?;
        changed.recv().await;
        match read(&file) {
            Ok(config) => policy.replace(config),
            Err(error) => println!("kept the settings: {error:#}"),
        }
        let sent = client.get(&url).send().await?;
        println!("{} after {} attempts", sent.status(), sent.attempts());
    }

    drop(watcher);
    fs::remove_dir_all(&folder)?;
    Ok(())
}
