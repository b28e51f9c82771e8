//! Real servers on loopback, scripted to fail, that count what reached them.
//!
//! Each test program uses a part of this.
#![allow(dead_code, unused_imports, unused_macros, clippy::disallowed_methods)]

pub mod chain;
pub mod clients;
pub mod connector;
pub mod h1;
pub mod h2;
pub mod hang;
pub mod log;
pub mod model;
pub mod noise;
pub mod proxy;
pub mod raw;
pub mod refused;
pub mod resolver;
pub mod rules;
pub mod script;
pub mod scripted;
pub mod sends;
pub mod socket;
pub mod staged;
pub mod tls;

use std::time::{Duration, Instant};

/// Waits until `holds` does; panics after a minute, which is more than a busy machine needs.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "not within a minute: {what}"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What every test's client is built from: nothing resent or redirected behind the test's back, no
/// proxy of the environment, no certificates of the system, and no request that hangs for ever.
pub fn client() -> reqwest::ClientBuilder {
    install_crypto();
    reqwest::Client::builder()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tls_certs_only([])
        .timeout(Duration::from_secs(30))
}

/// Installs rustls's provider for the process; more than once does no harm.
pub fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
