//! The error of another request than the one that was asked for: it proves nothing.

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Client, Method, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::{AttemptResult, RetryLog, RetryMiddleware, RetryRule, TransportError};

use crate::support::client;
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::script::Act;

/// Sends an audit after each answer, and fails if that does.
struct Audit {
    client: Client,
    url: String,
}

#[async_trait]
impl Middleware for Audit {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let response = next.run(request, extensions).await?;
        self.client.get(&self.url).send().await?;
        Ok(response)
    }
}

/// Sends whatever fails unsent again, and audits what is answered at this URL.
fn audited(url: String) -> ClientWithMiddleware {
    let rule = RetryRule {
        max_retries: 2,
        unsent_failures: true,
        ..RetryRule::never()
    };
    let client = client().build().unwrap();
    ClientBuilder::new(client.clone())
        .with(RetryMiddleware::new(rule))
        .with(Audit { client, url })
        .build()
}

async fn failures(client: ClientWithMiddleware, url: String) -> Vec<TransportError> {
    let log = RetryLog::new();
    let request = client
        .request(Method::POST, url)
        .with_extension(log.clone());
    request.send().await.unwrap_err();
    let report = log.report().unwrap();
    report
        .records()
        .iter()
        .map(|record| match record.result() {
            AttemptResult::Failure(failure) => failure,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn a_post_that_was_answered_is_not_sent_again_when_its_audit_is_refused() {
    let (server, nobody) = (H1::start(Act::ok("well")).await, Refused::new());
    let client = audited(nobody.url("/audit"));
    let failures = failures(client, server.url("/orders")).await;
    assert_eq!(failures, [TransportError::AfterRedirect]);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_post_that_is_refused_itself_is_sent_again() {
    let (server, nobody) = (H1::start(Act::ok("well")).await, Refused::new());
    let client = audited(server.url("/audit"));
    let failures = failures(client, nobody.url("/orders?page=1#top")).await;
    assert_eq!(failures, [TransportError::Connect; 3]);
    assert_eq!(server.count(), 0);
}
