//! Rules by route: which requests have them, and what replaces them.

use reqwest::Method;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{Methods, ResponseExt, RetryPolicy, RetryRule, StatusRule, with_rule};

use crate::support::scripted::{Transport, client, status};

const SEARCH: &str = "http://api.test/search";
const ITEMS: &str = "http://api.test/items";

fn retries(max_retries: u32) -> RetryRule {
    RetryRule {
        max_retries,
        ..RetryRule::transient()
    }
}

/// The preset, and another number of retries below one path.
fn policy(of_search: u32) -> RetryPolicy {
    RetryPolicy::from(RetryRule::transient())
        .route("api.test/search".parse().unwrap(), retries(of_search))
}

/// A server that always refuses.
fn busy() -> Transport {
    Transport::choose(|_| status(503))
}

async fn attempts(client: &ClientWithMiddleware, method: Method, url: &str) -> u32 {
    client.request(method, url).send().await.unwrap().attempts()
}

#[tokio::test(start_paused = true)]
async fn a_request_has_the_rule_of_its_route_and_another_that_of_the_policy() {
    let client = client(&busy(), policy(1));
    assert_eq!(attempts(&client, Method::GET, SEARCH).await, 2);
    assert_eq!(attempts(&client, Method::GET, ITEMS).await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_route_without_retries_sends_once_and_one_with_retries_retries_under_a_rule_without() {
    let none = client(&busy(), policy(0));
    assert_eq!(attempts(&none, Method::GET, SEARCH).await, 1);
    assert_eq!(attempts(&none, Method::GET, ITEMS).await, 4);

    let policy =
        RetryPolicy::from(RetryRule::never()).route("api.test/search".parse().unwrap(), retries(2));
    let some = client(&busy(), policy);
    assert_eq!(attempts(&some, Method::GET, SEARCH).await, 3);
    assert_eq!(attempts(&some, Method::GET, ITEMS).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_post_is_retried_where_its_route_says_so_and_nowhere_else() {
    let any = RetryRule {
        statuses: vec![StatusRule::new([503], Methods::Any)],
        ..RetryRule::transient()
    };
    let policy =
        RetryPolicy::from(RetryRule::transient()).route("api.test/search".parse().unwrap(), any);
    let client = client(&busy(), policy);
    assert_eq!(attempts(&client, Method::POST, SEARCH).await, 4);
    for url in [
        ITEMS,
        "http://api.test/searching",
        "http://api.test/",
        "http://v2.api.test/search",
    ] {
        assert_eq!(attempts(&client, Method::POST, url).await, 1, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_the_request_replaces_that_of_the_route() {
    let client = client(&busy(), policy(1));
    let request = client.get(SEARCH).with_extension(retries(2));
    assert_eq!(request.send().await.unwrap().attempts(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_the_task_replaces_that_of_the_route() {
    let client = client(&busy(), policy(1));
    let sent = with_rule(retries(2), attempts(&client, Method::GET, SEARCH));
    assert_eq!(sent.await, 3);
    assert_eq!(attempts(&client, Method::GET, SEARCH).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_policy_nearer_to_the_request_has_its_own_routes_alone() {
    let client = client(&busy(), policy(1));
    let request = client.get(SEARCH).with_extension(policy(2));
    assert_eq!(request.send().await.unwrap().attempts(), 3);
    let request = client
        .get(SEARCH)
        .with_extension(RetryPolicy::from(RetryRule::transient()));
    assert_eq!(request.send().await.unwrap().attempts(), 4);
}
