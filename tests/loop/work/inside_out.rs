use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::future::join_all;
use http::Extensions;
use reqwest::Request;
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use reqwest_retry_rules::{ResponseExt, RetryMiddleware, StopReason};

use super::*;
use crate::support;
use crate::support::scripted::{bare_client, client, status, times};

/// Sends a POST by a client of its own, and hands on what comes of it.
struct Fetching(ClientWithMiddleware);

#[async_trait]
impl Middleware for Fetching {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        post(&self.0, "token").await?;
        next.run(request, extensions).await
    }
}

/// A client with retries that fetches a token for each attempt, further in or further out.
fn fetching(transport: &Transport, token: &Transport, inside: bool) -> ClientWithMiddleware {
    let fetching = Fetching(client(token, at_once()));
    let builder = ClientBuilder::new(support::client().build().unwrap());
    let retries = RetryMiddleware::new(RetryRule::never());
    let builder = match inside {
        true => builder.with(retries).with(fetching),
        false => builder.with(fetching).with(retries),
    };
    builder.with(transport.clone()).build()
}

#[tokio::test(start_paused = true)]
async fn a_send_inside_an_attempt_is_the_affair_of_its_send() {
    let (transport, token) = (
        Transport::choose(|_| status(503)),
        Transport::choose(|_| ok()),
    );
    let client = fetching(&transport, &token, true);
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 4, StopReason::Exhausted);
    assert_eq!((transport.count(), token.count()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_send_of_a_layer_further_out_is_one_of_the_work() {
    let (transport, token) = (
        Transport::choose(|_| status(503)),
        Transport::choose(|_| ok()),
    );
    let client = fetching(&transport, &token, false);
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    assert_eq!((transport.count(), token.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_send_inside_an_attempt_has_a_count_of_its_own() {
    // The token's client retries three times, in the second call too.
    let token = Transport::choose(|_| status(503));
    let transport = Transport::choose(|_| ok());
    let rule = RetryRule {
        statuses: vec![StatusRule::new([503], Methods::Any)],
        ..at_once()
    };
    let inner = Fetching(client(&token, rule));
    let outer = ClientBuilder::new(support::client().build().unwrap())
        .with(RetryMiddleware::new(RetryRule::never()))
        .with(inner)
        .with(transport.clone())
        .build();
    let once = RetryRule {
        max_retries: 1,
        ..any()
    };
    let policy = RetryPolicy::from(once);
    let outcome = policy
        .run_judged(
            |_: &Error| reqwest_retry_rules::Failure::Retry(Methods::Any),
            async |_| get(&outer, "").await,
        )
        .await;
    assert!(outcome.is_err());
    assert_eq!((token.count(), transport.count()), (8, 0));
}

#[tokio::test(start_paused = true)]
async fn nested_works_are_one_count() {
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let went = run(at_once(), async |_| {
        policy.run(async |_| get(&client, "").await).await
    })
    .await;
    assert_stopped(&went, 1, StopReason::Exhausted);
    assert_eq!(transport.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_nested_work_repeats_by_its_own_rule() {
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let inner = RetryPolicy::from(RetryRule {
        max_retries: 1,
        ..at_once()
    });
    let went = run(at_once(), async |_| {
        inner.run(async |_| get(&client, "").await).await
    })
    .await;
    // Twice in the first call; from then on the inner rule has no retry left.
    assert_stopped(&went, 3, StopReason::Exhausted);
    assert_eq!(transport.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_sends_of_a_nested_work_count_in_both() {
    for (method, calls) in [(Method::POST, 1), (Method::PUT, 4)] {
        let transport = Transport::choose(|request| match *request.method() {
            Method::GET => status(503),
            _ => ok(),
        });
        let client = without_retries(&transport);
        let inner = RetryPolicy::from(RetryRule::never());
        let went = run(at_once(), async |_| {
            inner
                .run(async |_| send(&client, method.clone(), "").await)
                .await?;
            get(&client, "").await
        })
        .await;
        assert_eq!(went.1.attempts(), calls, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_other_sends_of_the_outer_work_are_none_of_a_nested_one() {
    let transport = Transport::new([ok(), status(503), ok()]);
    let client = without_retries(&transport);
    let inner = RetryPolicy::from(at_once());
    let went = run(at_once(), async |_| {
        post(&client, "").await?;
        inner.run(async |_| get(&client, "").await).await
    })
    .await;
    // The GET alone is done again, and so the POST need not be.
    assert_done(&went, 1);
    assert_eq!(transport.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_work_inside_an_attempt_is_the_affair_of_its_send() {
    /// Asks for a token in a work of its own.
    struct Working(RetryPolicy, ClientWithMiddleware);

    #[async_trait]
    impl Middleware for Working {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            self.0
                .run(async |_| get(&self.1, "token").await.map(drop))
                .await?;
            next.run(request, extensions).await
        }
    }

    let token = Transport::new([status(503), status(503), status(503), ok(), ok()]);
    let transport = Transport::new([status(503), ok()]);
    let inner = Working(at_once().into(), without_retries(&token));
    let client = ClientBuilder::new(support::client().build().unwrap())
        .with(RetryMiddleware::new(RetryRule::never()))
        .with(inner)
        .with(transport.clone())
        .build();
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_done(&went, 2);
    assert_eq!((token.count(), transport.count()), (5, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_that_move_between_threads_keep_to_themselves() {
    let works = (0..300).map(|number| {
        tokio::spawn(async move {
            let posts = number % 3 == 0;
            let transport = Transport::choose(move |request| match *request.method() {
                Method::GET => status(503).yielding(),
                _ => ok().yielding(),
            });
            let client = without_retries(&transport);
            let policy = RetryPolicy::from(at_once()).no_budget();
            let went = run(policy, async |_| {
                tokio::task::yield_now().await;
                if posts {
                    post(&client, "").await?;
                }
                tokio::join!(get(&client, "a"), get(&client, "b")).0
            })
            .await;
            (posts, went.1.attempts(), transport.count())
        })
    });
    for work in join_all(works).await {
        let (posts, calls, sent) = work.unwrap();
        assert_eq!((calls, sent), if posts { (1, 3) } else { (4, 8) });
    }
}

#[tokio::test(start_paused = true)]
async fn works_in_one_task_keep_to_themselves() {
    let transport = Transport::choose(|request| match *request.method() {
        Method::GET => status(503).yielding(),
        _ => ok().yielding(),
    });
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let (created, asked) = (Mutex::new(0), Mutex::new(0));
    let creating = policy.run(async |attempt| {
        *created.lock().unwrap() = attempt;
        post(&client, "").await?;
        get(&client, "").await
    });
    let asking = policy.run(async |attempt| {
        *asked.lock().unwrap() = attempt;
        get(&client, "").await
    });
    let outcomes = tokio::join!(creating, asking);
    assert!(outcomes.0.is_err() && outcomes.1.is_err());
    assert_eq!((*created.lock().unwrap(), *asked.lock().unwrap()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_work_spawns_is_not_seen() {
    let transport = Transport::choose(|request| match *request.method() {
        Method::GET => status(503),
        _ => ok(),
    });
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| {
        let of_task = client.clone();
        tokio::spawn(async move { post(&of_task, "").await })
            .await
            .unwrap()?;
        get(&client, "").await
    })
    .await;
    // Whoever calls `run` vouches for it.
    assert_stopped(&went, 4, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn a_plain_client_is_seen_if_the_policy_sends_through_it() {
    let refused = support::refused::Refused::new();
    let policy = RetryPolicy::from(RetryRule {
        unsent_failures: true,
        max_retries: 2,
        ..at_once()
    });
    let plain = support::client().build().unwrap();
    let went = run(policy.clone(), async |_| {
        let request = plain.get(refused.url("/")).build()?;
        policy.execute(&plain, request).await
    })
    .await;
    assert_stopped(&went, 1, StopReason::Exhausted);
    assert!(went.0.unwrap_err().is_connect());
}

#[tokio::test(start_paused = true)]
async fn a_response_keeps_the_report_of_its_own_send() {
    let transport = Transport::new([broken(), status(503), ok().body("whole")]);
    let client = client(&transport, at_once());
    let went = run(at_once(), async |_| {
        let response = get(&client, "").await?;
        let attempts = response.attempts();
        response.text().await?;
        Ok(attempts)
    })
    .await;
    assert_done(&went, 2);
    assert_eq!(went.0.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_retries_and_without_a_work_passes_requests_through() {
    let transport = Transport::new(times(2, || status(503)));
    let response = without_retries(&transport).get(URL).send().await.unwrap();
    assert!(response.retry_report().is_none());
    let response = bare_client(&transport).get(URL).send().await.unwrap();
    assert!(response.retry_report().is_none());
}
