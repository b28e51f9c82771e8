//! The request's `Extensions` over a send: what each attempt finds in them, and what is left.

use std::sync::{Arc, Mutex};

use http::Extensions;
use reqwest::{Method, Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Result};
use reqwest_retry_rules::{
    ResendCount, ResponseExt, RetryEvent, RetryObserver, RetryPolicy, RetryReport, RetryRule,
    StopReason,
};

use crate::support::chain::{Look, Notes, at_once, retrying, retrying_around};
use crate::support::eventually;
use crate::support::h1::H1;
use crate::support::script::{Act, Answer};

/// What an inner middleware counts in the extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Count(u32);

/// What the caller may have put there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tenant(&'static str);

fn request(method: Method, server: &H1) -> Request {
    Request::new(method, server.url("/").parse().unwrap())
}

async fn get(
    client: &ClientWithMiddleware,
    server: &H1,
    extensions: &mut Extensions,
) -> Result<Response> {
    let request = request(Method::GET, server);
    client.execute_with_extensions(request, extensions).await
}

/// Notes the resend count that each attempt finds.
fn counting() -> (ClientWithMiddleware, Notes<Option<u32>>) {
    let notes = Notes::new();
    let noted = notes.clone();
    let look = Look(move |_: &mut Request, extensions: &mut Extensions| {
        noted.note(extensions.get().map(|&ResendCount(count)| count));
    });
    (retrying_around(at_once(), look), notes)
}

#[tokio::test]
async fn each_attempt_finds_them_as_the_caller_gave_them() {
    let found = Notes::new();
    let noted = found.clone();
    let look = Look(move |_: &mut Request, extensions: &mut Extensions| {
        let count = extensions.get().map_or(0, |&Count(count)| count);
        noted.note((extensions.remove::<Tenant>(), count));
        extensions.insert(Count(count + 1));
    });
    let client = retrying_around(at_once(), look);
    let script = || [503, 503, 200].map(Act::status);

    let server = H1::start(script()).await;
    let mut extensions = Extensions::new();
    extensions.insert(Tenant("a"));
    extensions.insert(Count(10));
    get(&client, &server, &mut extensions).await.unwrap();
    assert_eq!(found.take(), vec![(Some(Tenant("a")), 10); 3]);
    // What the last attempt left is what the caller sees.
    assert_eq!(extensions.get(), Some(&Count(11)));
    assert_eq!(extensions.get::<Tenant>(), None);

    let server = H1::start(script()).await;
    let mut extensions = Extensions::new();
    get(&client, &server, &mut extensions).await.unwrap();
    assert_eq!(found.take(), vec![(None, 0); 3]);
    assert_eq!(extensions.get(), Some(&Count(1)));
}

#[tokio::test]
async fn what_the_last_attempt_left_is_there_after_an_error_too() {
    let look = Look(|_: &mut Request, extensions: &mut Extensions| {
        let count = extensions.get().map_or(0, |&Count(count)| count);
        extensions.insert(Count(count + 1));
    });
    let client = retrying_around(at_once(), look);
    let server = H1::start(Act::CloseAfterReading).await;
    let mut extensions = Extensions::new();
    get(&client, &server, &mut extensions).await.unwrap_err();
    assert_eq!(server.count(), 4);
    assert_eq!(extensions.get(), Some(&Count(1)));
    let report: &RetryReport = extensions.get().unwrap();
    assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
}

#[tokio::test]
async fn the_resend_count_is_there_on_resends_alone() {
    let (client, counts) = counting();
    for (script, expected) in [
        (vec![Act::status(200)], vec![None]),
        (
            vec![Act::status(503), Act::status(200)],
            vec![None, Some(1)],
        ),
        (
            vec![Act::status(503)],
            vec![None, Some(1), Some(2), Some(3)],
        ),
        (
            vec![Act::CloseAfterReading],
            vec![None, Some(1), Some(2), Some(3)],
        ),
    ] {
        let server = H1::start(script).await;
        let mut extensions = Extensions::new();
        let _ = get(&client, &server, &mut extensions).await;
        assert_eq!(counts.take(), expected);
        assert_eq!(extensions.get::<ResendCount>(), None);
    }
}

#[tokio::test]
async fn a_resend_count_of_the_callers_own_survives() {
    let (client, counts) = counting();
    let server = H1::start([503, 503, 200].map(Act::status)).await;
    let mut extensions = Extensions::new();
    extensions.insert(ResendCount(9));
    get(&client, &server, &mut extensions).await.unwrap();
    assert_eq!(counts.take(), [Some(9), Some(1), Some(2)]);
    assert_eq!(extensions.get(), Some(&ResendCount(9)));
}

#[tokio::test]
async fn the_resend_count_goes_when_the_send_is_dropped_in_flight() {
    let (client, counts) = counting();
    for callers in [None, Some(ResendCount(9))] {
        let server = H1::start([Act::status(503), Act::Silence]).await;
        let mut extensions = Extensions::new();
        if let Some(callers) = callers {
            extensions.insert(callers);
        }
        tokio::select! {
            _ = get(&client, &server, &mut extensions) => panic!("nobody answered"),
            () = eventually("the retry arrived", || server.count() == 2) => {}
        }
        assert_eq!(counts.take()[1], Some(1));
        assert_eq!(extensions.get::<ResendCount>(), callers.as_ref());
    }
}

/// Writes down that a wait began.
#[derive(Default)]
struct Begun(Mutex<u32>);

impl RetryObserver for Begun {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        *self.0.lock().unwrap() = event.retry();
    }
}

#[tokio::test]
async fn the_resend_count_goes_when_the_send_is_dropped_in_its_wait() {
    let begun = Arc::new(Begun::default());
    let policy = RetryPolicy::from(at_once()).observer(begun.clone());
    let later = Answer::new(503).header("retry-after", "30");
    let server = H1::start([Answer::new(503), later]).await;
    let mut extensions = Extensions::new();
    let client = retrying(policy);
    tokio::select! {
        _ = get(&client, &server, &mut extensions) => panic!("30 s have passed"),
        () = eventually("the second wait began", || *begun.0.lock().unwrap() == 2) => {}
    }
    assert_eq!(server.count(), 2);
    assert_eq!(extensions.get::<ResendCount>(), None);
}

#[tokio::test]
async fn a_map_is_good_for_a_second_send() {
    let (client, counts) = counting();
    let mut extensions = Extensions::new();
    let server = H1::start([503, 503, 200, 503, 200, 200].map(Act::status)).await;
    for (sent, report) in [(3, Some(3)), (2, Some(2)), (1, None)] {
        let response = get(&client, &server, &mut extensions).await.unwrap();
        assert_eq!(response.status(), 200);
        let found = counts.take();
        assert_eq!((found.len(), found[0]), (sent, None));
        // No report of the send before.
        assert_eq!(extensions.get().map(RetryReport::attempts), report);
        assert_eq!(response.retry_report().map(RetryReport::attempts), report);
    }
}

#[tokio::test]
async fn a_send_that_passes_through_leaves_no_report_of_the_one_before() {
    let server = H1::start(Act::status(503)).await;
    let mut extensions = Extensions::new();
    get(&retrying(at_once()), &server, &mut extensions)
        .await
        .unwrap();
    assert!(extensions.get::<RetryReport>().is_some());

    let never = retrying(RetryRule::never());
    let response = get(&never, &server, &mut extensions).await.unwrap();
    assert_eq!(response.retry_report(), None);
    assert_eq!(extensions.get::<RetryReport>(), None);
}

#[tokio::test]
async fn a_map_is_good_for_a_second_send_after_one_was_dropped() {
    let (client, counts) = counting();
    let server = H1::start([
        Act::status(503),
        Act::Silence,
        Act::status(503),
        Act::ok(""),
    ])
    .await;
    let mut extensions = Extensions::new();
    tokio::select! {
        _ = get(&client, &server, &mut extensions) => panic!("nobody answered"),
        () = eventually("the retry arrived", || server.count() == 2) => {}
    }
    counts.take();
    let response = get(&client, &server, &mut extensions).await.unwrap();
    assert_eq!((response.status().as_u16(), response.attempts()), (200, 2));
    assert_eq!(counts.take(), [None, Some(1)]);
}

#[tokio::test]
async fn what_is_put_in_with_the_request_is_there_for_every_attempt() {
    let found = Notes::new();
    let noted = found.clone();
    let look = Look(move |_: &mut Request, extensions: &mut Extensions| {
        noted.note(extensions.remove::<Tenant>());
    });
    let server = H1::start([503, 200].map(Act::status)).await;
    let request = retrying_around(at_once(), look).get(server.url("/"));
    let response = request.with_extension(Tenant("b")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(found.take(), vec![Some(Tenant("b")); 2]);
}
