//! Retries of calls whose requests one cannot touch: an SDK keeps its client to itself, and the
//! task that calls it says what is to be different.
//!
//! Run it with `cargo run --example ambient`, or with `--features task-local-extensions` to see the
//! map of that crate too.

#![allow(clippy::disallowed_methods)] // what clippy.toml bans, it bans from src

mod support;

use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use reqwest_retry_rules::{Overrides, RetryRule, with_overrides, with_rule};
use task_local_extensions::{Extensions, with_extensions};

use support::{Answer, Service, answer};
use weather::Weather;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(unavailable).await?;
    let weather = Weather::new(service.url("/"))?;
    println!("An SDK that makes up to three retries, of a service that is down:\n");

    let _ = weather.forecast("oslo").await;
    line("called as it is", service.seen("/oslo"));

    // A rule for every send inside, whichever client makes it.
    let _ = with_rule(RetryRule::never(), weather.forecast("rome")).await;
    line("with_rule(RetryRule::never(), ..)", service.seen("/rome"));

    // More than a rule. Scopes nest: what the inner one leaves unset comes from around it.
    let patience = Overrides::new().total_timeout(Duration::from_secs(5));
    let one_retry = Overrides::new().rule(RetryRule {
        max_retries: 1,
        ..RetryRule::transient()
    });
    let nested = with_overrides(one_retry, weather.forecast("lima"));
    let _ = with_overrides(patience, nested).await;
    line(
        "with_overrides: a limit, and in it a rule",
        service.seen("/lima"),
    );

    // A task that is spawned starts without what is set around it, as with every task-local...
    with_rule(RetryRule::never(), async {
        let weather = weather.clone();
        tokio::spawn(async move { weather.forecast("bern").await.is_ok() }).await
    })
    .await?;
    line("with_rule, and in it a spawned task", service.seen("/bern"));

    // ...unless it is carried over.
    with_rule(RetryRule::never(), async {
        let (weather, carried) = (weather.clone(), Overrides::current());
        let call = async move { weather.forecast("kyiv").await.is_ok() };
        tokio::spawn(with_overrides(carried, call)).await
    })
    .await?;
    line(
        "the same, carrying Overrides::current()",
        service.seen("/kyiv"),
    );

    if cfg!(feature = "task-local-extensions") {
        shared_map(&weather, &service).await;
    }
    Ok(())
}

/// The crate `task-local-extensions` has a map for each task. If an application keeps its context
/// there, a `RetryRule`, a `RetryPolicy`, a `TotalTimeout` and so on may be part of it. A scope of
/// `with_overrides` is nearer.
async fn shared_map(weather: &Weather, service: &Service) {
    let map = Extensions::new().with(RetryRule::never());
    let _ = with_extensions(map, weather.forecast("cork")).await;
    line(
        "with_extensions, and a RetryRule in the map",
        service.seen("/cork"),
    );

    // That crate has two traps, which is why the feature is off by default. Its scopes do not
    // merge: an inner map hides the outer one whole, so here the SDK goes by its own rule again.
    // And if the future inside panics, the map stays behind on the thread, and a rule in it then
    // holds for whatever else runs there. The scopes of `with_overrides` do neither.
    let outer = Extensions::new().with(RetryRule::never());
    let inner = Extensions::new().with("a tenant's name");
    let nested = with_extensions(inner, weather.forecast("nice"));
    let _ = with_extensions(outer, nested).await;
    line("the same, and in it another map", service.seen("/nice"));
}

fn line(what: &str, requests: u32) {
    let plural = if requests == 1 { "" } else { "s" };
    println!("    {what:<46}{requests} request{plural}");
}

/// Somebody else's crate: no way to get at its requests.
mod weather {
    use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
    use reqwest_retry_rules::{RetryMiddleware, RetryRule, client_builder};

    #[derive(Clone)]
    pub struct Weather {
        client: ClientWithMiddleware,
        url: String,
    }

    impl Weather {
        pub fn new(url: String) -> reqwest::Result<Weather> {
            let client = ClientBuilder::new(client_builder().no_proxy().build()?)
                .with(RetryMiddleware::new(RetryRule::transient()))
                .build();
            Ok(Weather { client, url })
        }

        pub async fn forecast(&self, city: &str) -> reqwest_middleware::Result<String> {
            let url = format!("{}{city}", self.url);
            let response = self.client.get(url).send().await?.error_for_status()?;
            Ok(response.text().await?)
        }
    }
}

/// A service that is down.
async fn unavailable(_nth: u32, _request: Request<Incoming>) -> Answer {
    answer(503, &[])
}
