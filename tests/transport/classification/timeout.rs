//! Timeouts, by when they strike.

use std::time::Duration;

use reqwest::{ClientBuilder, Method};
use reqwest_retry_rules::{RetryMiddleware, RetryRule};

use super::{Failed, TARGET, lost, send, via};
use crate::support::client;
use crate::support::h1::H1;
use crate::support::hang::Hang;
use crate::support::proxy::{self, socks5};
use crate::support::raw::Raw;
use crate::support::resolver::Failing;
use crate::support::script::{Act, End};
use crate::support::tls::trusting;

const SHORT: Duration = Duration::from_millis(100);
const NAME: &str = "http://slow.test/";

pub async fn connecting_takes_too_long(method: Method) -> Failed {
    let full = Hang::start().await;
    lost(client().connect_timeout(SHORT), method, full.url("/")).await
}

pub async fn tls_handshake_takes_too_long(method: Method) -> Failed {
    let silent = Raw::answering("", End::Stall).await;
    lost(
        trusting().connect_timeout(SHORT),
        method,
        silent.url("https", "/"),
    )
    .await
}

pub async fn proxy_takes_too_long(method: Method) -> Failed {
    let silent = proxy::connect(proxy::Act::Say(Vec::new(), End::Stall)).await;
    lost(
        via(silent.url("http", "")).connect_timeout(SHORT),
        method,
        TARGET,
    )
    .await
}

pub async fn socks_proxy_takes_too_long(method: Method) -> Failed {
    let silent = socks5(proxy::Act::Say(Vec::new(), End::Stall)).await;
    lost(
        via(silent.url("socks5h", "")).connect_timeout(SHORT),
        method,
        TARGET,
    )
    .await
}

pub async fn resolver_says_nothing(method: Method) -> Failed {
    let client = client().connect_timeout(SHORT);
    lost(client.dns_resolver(Failing::silent()), method, NAME).await
}

pub async fn resolver_times_out(method: Method) -> Failed {
    lost(client().dns_resolver(Failing::timed_out()), method, NAME).await
}

pub async fn resolver_is_timed_out_by_tokio(method: Method) -> Failed {
    lost(client().dns_resolver(Failing::elapsed()), method, NAME).await
}

pub async fn resolver_hickory_times_out(method: Method) -> Failed {
    lost(client().dns_resolver(Failing::hickory()), method, NAME).await
}

pub async fn resolver_times_out_for_a_proxy(method: Method) -> Failed {
    let client = via("http://slow.test:8080".to_owned()).dns_resolver(Failing::timed_out());
    lost(client, method, TARGET).await
}

pub async fn total_timeout_while_connecting(method: Method) -> Failed {
    let full = Hang::start().await;
    lost(client().timeout(SHORT), method, full.url("/")).await
}

pub async fn total_timeout_in_the_tls_handshake(method: Method) -> Failed {
    let silent = Raw::answering("", End::Stall).await;
    lost(trusting().timeout(SHORT), method, silent.url("https", "/")).await
}

pub async fn total_timeout_before_the_head(method: Method) -> Failed {
    at(Act::Silence, client().timeout(SHORT), method).await
}

pub async fn read_timeout_before_the_head(method: Method) -> Failed {
    at(Act::Silence, client().read_timeout(SHORT), method).await
}

pub async fn total_timeout_in_a_flood_of_interim_answers(method: Method) -> Failed {
    at(Act::interim_flood(), client().timeout(SHORT), method).await
}

async fn at(act: Act, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start(act).await;
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

/// How often a name that times out is asked for.
async fn lookups(timeouts: bool, names: Failing) -> usize {
    let rule = RetryRule {
        max_retries: 2,
        unsent_failures: true,
        timeouts,
        ..RetryRule::never()
    };
    let client = client().dns_resolver(names.clone()).build().unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(rule))
        .build();
    client.get(NAME).send().await.unwrap_err();
    names.lookups()
}

#[tokio::test]
async fn a_name_that_times_out_is_asked_for_once_without_timeouts() {
    assert_eq!(lookups(false, Failing::timed_out()).await, 1);
    assert_eq!(lookups(false, Failing::elapsed()).await, 1);
    assert_eq!(lookups(false, Failing::hickory()).await, 1);
}

#[tokio::test]
async fn a_name_that_times_out_is_asked_for_again_with_timeouts() {
    assert_eq!(lookups(true, Failing::timed_out()).await, 3);
    assert_eq!(lookups(true, Failing::elapsed()).await, 3);
    assert_eq!(lookups(true, Failing::hickory()).await, 3);
}
