//! An origin that asks for rest, seen from its side of real sockets.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::redirect;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{
    ErrorExt, PauseTerms, ReplaySafe, RetryError, RetryPolicy, RetryRule, TotalTimeout,
    tracked_redirects,
};
use tokio::task::JoinSet;

use crate::support;
use crate::support::h1::H1;
use crate::support::script::{Act, Answer};
use crate::support::sends::{on_both_runtimes, retrying};

const REST: Duration = Duration::from_millis(300);

const SENDS: usize = 300;

/// Each waits for up to as long again.
fn policy() -> RetryPolicy {
    let drawn = AtomicU32::new(0);
    RetryPolicy::from(RetryRule::transient())
        .no_budget()
        .pause_origins(PauseTerms {
            max: Duration::from_secs(10),
            spread: 1000,
        })
        .jitter_source(move || {
            // The multiples of the golden ratio fill the unit interval without gaps.
            let nth = f64::from(drawn.fetch_add(1, Ordering::Relaxed));
            (nth * 0.618_033_988_749_894_9).fract()
        })
}

/// A server that refuses its first request, and when each came.
async fn refusing_the_first() -> (H1, Arc<Mutex<Vec<Instant>>>) {
    let came = Arc::new(Mutex::new(Vec::new()));
    let noted = came.clone();
    let server = H1::start(Act::ask(move |_| {
        let mut came = noted.lock().unwrap();
        came.push(Instant::now());
        match came.len() {
            1 => rest(REST),
            _ => Act::ok("here"),
        }
    }))
    .await;
    (server, came)
}

fn rest(wait: Duration) -> Act {
    let wait = wait.as_millis().to_string();
    Answer::new(429).header("retry-after-ms", &wait).into()
}

/// Has the origin ask for rest; nobody retries it.
async fn ask_for_rest(client: &ClientWithMiddleware, server: &H1) {
    let request = client
        .post(server.url("/"))
        .with_extension(ReplaySafe(false));
    assert_eq!(request.send().await.unwrap().status(), 429);
}

/// Sends so many GETs at once, and says how many were answered 200.
async fn all_at_once(client: &ClientWithMiddleware, url: &str) -> usize {
    let mut tasks = JoinSet::new();
    for _ in 0..SENDS {
        let sent = client.get(url).send();
        tasks.spawn(async move { sent.await.unwrap().status() == 200 });
    }
    tasks
        .join_all()
        .await
        .into_iter()
        .filter(|answered| *answered)
        .count()
}

on_both_runtimes! {
    async fn a_crowd_leaves_it_alone_until_its_time_is_over() {
        let (server, came) = refusing_the_first().await;
        let client = retrying(support::client(), policy());
        ask_for_rest(&client, &server).await;
        assert_eq!(all_at_once(&client, &server.url("/")).await, SENDS);
        let came = came.lock().unwrap();
        assert_eq!(came.len(), 1 + SENDS);
        let since: Vec<_> = came.iter().map(|at| *at - came[0]).collect();
        assert!(since[1] >= REST, "{:?}", since[1]);
        // They come one after the other, over as long again: nine tenths are later than a tenth.
        let early = since[1..].iter().filter(|at| **at < REST + REST / 10).count();
        assert!(early <= SENDS / 5, "{early}");
        assert!(since[SENDS] >= REST + REST * 9 / 10, "{:?}", since[SENDS]);
    }

    /// The twin.
    async fn without_pauses_a_crowd_does_not_wait() {
        let (server, came) = refusing_the_first().await;
        let client = retrying(support::client(), RetryPolicy::from(RetryRule::transient()));
        ask_for_rest(&client, &server).await;
        client.get(server.url("/")).send().await.unwrap();
        let came = came.lock().unwrap();
        assert!(came[1] - came[0] < REST);
    }

    async fn one_that_cannot_wait_opens_no_connection() {
        let (server, _) = refusing_the_first().await;
        let client = retrying(support::client(), policy());
        ask_for_rest(&client, &server).await;
        let (begun, before) = (Instant::now(), server.connections());
        let request = client.get(server.url("/")).with_extension(TotalTimeout(REST / 3));
        let error = request.send().await.unwrap_err();
        let paused = matches!(error.retry_error(), Some(RetryError::OriginPaused { .. }));
        assert!(paused, "{error:?}");
        assert!(begun.elapsed() < REST / 3);
        assert_eq!((server.connections(), server.begun()), (before, 1));
    }

    async fn dropped_waiters_send_nothing() {
        let (server, _) = refusing_the_first().await;
        let client = retrying(support::client(), policy());
        ask_for_rest(&client, &server).await;
        let mut tasks = JoinSet::new();
        for _ in 0..SENDS {
            tasks.spawn(client.get(server.url("/")).send());
        }
        tokio::time::sleep(REST / 3).await;
        tasks.shutdown().await;
        tokio::time::sleep(REST * 2).await;
        assert_eq!(server.begun(), 1);
        client.get(server.url("/")).send().await.unwrap();
        assert_eq!(server.begun(), 2);
    }
}

/// The origin that asks is the one that answers. The one that sent there asked for nothing.
#[tokio::test]
async fn after_a_redirect_was_followed_the_origin_that_asked_rests() {
    let (far, _) = refusing_the_first().await;
    let near = H1::start(Act::from(
        Answer::new(302).header("location", &far.url("/file")),
    ))
    .await;
    let tracked = support::client().redirect(tracked_redirects(redirect::Policy::limited(5)));
    let rule = RetryRule {
        max_retries: 0,
        ..RetryRule::transient()
    };
    let policy = RetryPolicy::from(rule).pause_origins(PauseTerms {
        max: Duration::from_secs(10),
        spread: 0,
    });
    let client = retrying(tracked, policy);
    let asked = Instant::now();
    assert_eq!(
        client.get(near.url("/")).send().await.unwrap().status(),
        429
    );
    // The near one is asked at once, which leads to the far one again.
    let hurried = client
        .get(near.url("/"))
        .with_extension(TotalTimeout(REST * 2 / 3));
    assert_eq!(hurried.send().await.unwrap().status(), 200);
    // The far one is not.
    let hurried = client
        .get(far.url("/"))
        .with_extension(TotalTimeout(REST / 3));
    let outcome = hurried.send().await;
    if asked.elapsed() < REST * 2 / 3 {
        let error = outcome.unwrap_err();
        let paused = matches!(error.retry_error(), Some(RetryError::OriginPaused { .. }));
        assert!(paused, "{error:?}");
        assert_eq!(far.begun(), 2);
    }
    client.get(far.url("/")).send().await.unwrap();
    assert!(asked.elapsed() >= REST);
}
