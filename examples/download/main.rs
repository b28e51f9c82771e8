//! A large file to disk, over connections that break: each time only the rest is asked for, and a
//! file that has changed meanwhile is begun again.
//!
//! `resume.rs` is the part to be copied. Run it with `cargo run --example download`.
#![allow(clippy::disallowed_methods)] // what clippy.toml bans, it bans from src

mod resume;

use std::io;
use std::time::Duration;

use anyhow::ensure;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::{RetryMiddleware, RetryPolicy, RetryRule, client_builder};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const LENGTH: usize = 8_000_000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/file", listener.local_addr()?);
    tokio::spawn(serve(listener));

    // No `attempt_timeout`: it would end a download that is merely long. A server that says nothing
    // for five seconds is another matter.
    let patience = Duration::from_secs(5);
    let rule = RetryRule {
        max_retries: 10,
        ..RetryRule::transient()
    };
    let policy = RetryPolicy::from(rule).head_timeout(patience);
    let plain = client_builder().no_proxy().read_timeout(patience);
    let client = ClientBuilder::new(plain.build()?)
        .with(RetryMiddleware::new(policy.clone()))
        .build();

    let bar = ProgressBar::new(0);
    bar.set_style(ProgressStyle::with_template(
        "{wide_bar} {bytes}/{total_bytes} {eta}",
    )?);
    let name = format!("reqwest-retry-rules-download-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let digest = resume::download(&policy, &client, &url, &path, &bar).await;
    let on_disk = tokio::fs::read(&path).await;
    let _ = tokio::fs::remove_file(&path).await;
    bar.finish_and_clear();

    let (digest, on_disk) = (digest?, on_disk?);
    println!("\n{} bytes are on disk", on_disk.len());
    // A real server publishes it beside the file.
    let published = Sha256::digest(content(2));
    ensure!(digest == *published, "this is another file");
    ensure!(
        Sha256::digest(&on_disk) == published,
        "the disk has something else"
    );
    println!("the digest is that of the new file");
    Ok(())
}

/// The file, which is another one from the third request on.
fn content(version: u8) -> Vec<u8> {
    (0..LENGTH).map(|n| (n / 251) as u8 ^ version).collect()
}

/// Answers so many requests, each on a connection of its own that breaks before the end, except for
/// the last.
async fn serve(listener: TcpListener) -> io::Result<()> {
    println!("What the server is asked for, and what it sends\n");
    for (version, sends) in [(1, 3_000_000), (1, 2_500_000), (2, 4_000_000), (2, LENGTH)] {
        let (socket, _) = listener.accept().await?;
        answer(socket, version, sends).await?;
    }
    Ok(())
}

async fn answer(socket: TcpStream, version: u8, sends: usize) -> io::Result<()> {
    let (mut range, mut if_range) = (None, None);
    let mut socket = BufReader::new(socket);
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        match line.trim_end().split_once(": ") {
            Some(("range", value)) => range = Some(value.to_owned()),
            Some(("if-range", value)) => if_range = Some(value.to_owned()),
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let etag = format!("\"{version}\"");
    let from = range
        .as_deref()
        .filter(|_| if_range.as_ref() == Some(&etag));
    let from = from.and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    });
    let first = from.unwrap_or(0);
    let rest = &content(version)[first..];
    let head = match from {
        None => "HTTP/1.1 200 OK".to_owned(),
        Some(first) => format!(
            "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {first}-{}/{LENGTH}",
            LENGTH - 1
        ),
    };
    let sends = sends.min(rest.len());
    println!(
        "    {:<16} {}, {sends} of {} bytes",
        range.as_deref().unwrap_or("everything"),
        &head[9..12],
        rest.len(),
    );
    let length = rest.len();
    let head = format!("{head}\r\netag: {etag}\r\ncontent-length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(&rest[..sends]).await?;
    socket.shutdown().await
}
