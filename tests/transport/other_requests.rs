//! The failure of another request, which a middleware further in passes on, says nothing of this
//! one.

use http::{Extensions, StatusCode};
use reqwest::{ClientBuilder, Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::AttemptResult::{Failure, Status};
use reqwest_retry_rules::TransportError::{self, AfterRedirect, Connect};
use reqwest_retry_rules::{RetryMiddleware, StopReason};

use crate::support;
use crate::support::chain::Look;
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::support::script::Act;
use crate::support::sends::{Went, at_once, send};

/// When a middleware makes its own request.
#[derive(Clone, Copy, Debug)]
enum When {
    Before,
    After,
}

/// Reports every request to an audit of its own, and fails if that fails.
struct Audit {
    client: reqwest::Client,
    url: String,
    when: When,
}

#[async_trait::async_trait]
impl Middleware for Audit {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        match self.when {
            When::Before => {
                self.client.get(&self.url).send().await?;
                next.run(request, extensions).await
            }
            When::After => {
                let answer = next.run(request, extensions).await?;
                self.client.get(&self.url).send().await?;
                Ok(answer)
            }
        }
    }
}

/// A client that retries twice around an audit at this URL.
fn audited(client: ClientBuilder, url: String, when: When) -> ClientWithMiddleware {
    let audit = Audit {
        client: support::client().build().unwrap(),
        url,
        when,
    };
    around(client, audit)
}

fn around(client: ClientBuilder, further_in: impl Middleware) -> ClientWithMiddleware {
    reqwest_middleware::ClientBuilder::new(client.build().unwrap())
        .with(RetryMiddleware::new(at_once(2)))
        .with(further_in)
        .build()
}

fn thrice(class: TransportError) -> Went {
    Went::stopped([Failure(class); 3], StopReason::Exhausted)
}

fn once(class: TransportError) -> Went {
    Went::stopped([Failure(class)], StopReason::MethodNotAllowed)
}

#[tokio::test]
async fn a_post_that_was_answered_is_not_sent_again_because_the_audit_was_refused() {
    let (server, nobody) = (H1::start(Act::ok("fine")).await, Refused::new());
    let client = audited(support::client(), nobody.url("/audit"), When::After);
    let (outcome, went) = send(client.post(server.url("/orders")).body("order")).await;
    assert!(outcome.unwrap_err().is_connect());
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 1);
}

/// The server has the same name, but the audit's client does not find it.
#[tokio::test]
async fn nor_because_the_audit_of_the_same_server_failed() {
    let server = H1::start(Act::ok("fine")).await;
    let nowhere = support::client().dns_resolver(Names::new());
    let audit = Audit {
        client: nowhere.build().unwrap(),
        url: "http://target.test/audit".to_owned(),
        when: When::After,
    };
    let names = Names::new();
    names.set("target.test", server.addr);
    let client = around(support::client().dns_resolver(names), audit);
    let (_, went) = send(client.post("http://target.test/orders").body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 1);
}

/// A service that has one path for everything, and tells its requests apart by the query.
#[tokio::test]
async fn nor_because_another_call_to_the_same_path_failed() {
    let server = H1::start(Act::ok("fine")).await;
    let nowhere = support::client().dns_resolver(Names::new());
    let audit = Audit {
        client: nowhere.build().unwrap(),
        url: "http://target.test/?action=audit".to_owned(),
        when: When::After,
    };
    let names = Names::new();
    names.set("target.test", server.addr);
    let client = around(support::client().dns_resolver(names), audit);
    let order = client
        .post("http://target.test/?action=order")
        .body("order");
    let (_, went) = send(order).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 1);
}

/// What came before the send cannot be told from what came after it.
#[tokio::test]
async fn nor_where_the_audit_comes_first() {
    let (server, nobody) = (H1::start(Act::ok("fine")).await, Refused::new());
    let client = audited(support::client(), nobody.url("/audit"), When::Before);
    let (_, went) = send(client.post(server.url("/orders")).body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 0);
}

/// The twin: a GET may go again, and an audit that works is in nobody's way.
#[tokio::test]
async fn a_get_is_sent_again_and_an_audit_that_works_changes_nothing() {
    let (server, nobody) = (H1::start(Act::ok("fine")).await, Refused::new());
    let client = audited(support::client(), nobody.url("/audit"), When::After);
    let (_, went) = send(client.get(server.url("/orders"))).await;
    assert_eq!(went, thrice(AfterRedirect));
    assert_eq!(server.count(), 3);

    let audit = H1::start(Act::ok("noted")).await;
    for when in [When::Before, When::After] {
        let client = audited(support::client(), audit.url("/audit"), when);
        let (_, went) = send(client.post(server.url("/orders")).body("order")).await;
        assert_eq!(went, Went::answered([Status(StatusCode::OK)]), "{when:?}");
    }
    assert_eq!((server.count(), audit.count()), (5, 2));
}

/// The twin: a POST that nobody took goes again, whatever its URL looks like.
#[tokio::test]
async fn a_post_that_was_refused_itself_is_sent_again() {
    let (nobody, audit) = (Refused::new(), H1::start(Act::ok("noted")).await);
    let port = nobody.addr.port();
    for url in [
        format!("http://127.0.0.1:{port}"),
        format!("HTTP://127.0.0.1:{port}/a/../b%20c?d=e&f=#g"),
        format!("http://user:word@127.0.0.1:{port}/orders"),
        format!("http://127.1:{port}/orders?"),
    ] {
        for when in [When::Before, When::After] {
            let client = audited(support::client(), audit.url("/audit"), when);
            let (_, went) = send(client.post(&url).body("order")).await;
            assert_eq!(went, thrice(Connect), "{url} {when:?}");
        }
    }
}

/// The twin: a middleware that signs by the query asks the same URL.
#[tokio::test]
async fn a_query_that_is_changed_further_in_is_no_other_request() {
    let nobody = Refused::new();
    let sign = Look(|request: &mut Request, _: &mut Extensions| {
        request
            .url_mut()
            .query_pairs_mut()
            .append_pair("signature", "abc");
    });
    let client = around(support::client(), sign);
    let (_, went) = send(client.post(nobody.url("/orders?id=7")).body("order")).await;
    assert_eq!(went, thrice(Connect));
    // Another path is another request.
    let elsewhere = Look(|request: &mut Request, _: &mut Extensions| {
        request.url_mut().set_path("/elsewhere");
    });
    let client = around(support::client(), elsewhere);
    let (_, went) = send(client.post(nobody.url("/orders")).body("order")).await;
    assert_eq!(went, once(AfterRedirect));
}
