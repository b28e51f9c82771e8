//! On many threads what the client notices first is a race. However it ends, what the server may
//! have processed never counts as unsent.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h2::Reason;
use reqwest::{Client, ClientBuilder, Method};
use reqwest_retry_rules::{TransportError, classify};
use tokio::task::JoinSet;

use super::http1::impatient;
use super::{exchange, send, unsent};
use crate::support::client;
use crate::support::h1::H1;
use crate::support::h2::{self as http2, H2, Last};
use crate::support::log::Log;
use crate::support::script::{Act, Answer, End, Script};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_close_while_requests_go_out() {
    let server = H1::start(Script::choose(|turn| {
        match (turn.connection + turn.request) % 7 {
            0 => Act::CloseAfterReading,
            1 => Act::CloseBeforeReading,
            2 => Act::ResetAfterReading,
            3 => Act::half_head(End::Reset),
            4 => Act::CutUpload(0, End::Close),
            _ => Act::ok("well"),
        }
    }))
    .await;
    crowd(client().build().unwrap(), &server.url(""), &server, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_that_are_refused_while_others_go_out() {
    let server = H2::start(Script::choose(|turn| match turn.request % 5 {
        0 => http2::Act::ResetUnread(Reason::REFUSED_STREAM),
        1 => http2::Act::Reset(Reason::INTERNAL_ERROR),
        _ => http2::Act::ok("well"),
    }))
    .await;
    crowd(
        client().http2_prior_knowledge().build().unwrap(),
        &server.url(""),
        &server,
        50,
    )
    .await;
}

/// A server that is about to stop: it takes no new streams and finishes those that it has. hyper
/// hands its GOAWAY to a request that is going out just then.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn goaways_that_cover_everything() {
    let requests = AtomicUsize::new(0);
    let server = H2::start(Script::choose(move |_| {
        match requests.fetch_add(1, Ordering::Relaxed) % 13 {
            12 => {
                let then = Box::new(http2::Act::ok("well"));
                http2::Act::GoAwayUnread(Last::Max, Reason::NO_ERROR, then)
            }
            _ => http2::Act::ok("well"),
        }
    }))
    .await;
    crowd(
        client().http2_prior_knowledge().build().unwrap(),
        &server.url(""),
        &server,
        150,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn idle_connections_that_close() {
    let server = H1::start(Answer::new(200).body("well").end(End::Close)).await;
    crowd(client().build().unwrap(), &server.url(""), &server, 50).await;
}

/// The client reads the answer, or finds that it cannot write any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_that_come_while_the_upload_goes_on() {
    let too_large = Answer::new(413).end(End::Close);
    let server = H1::start(Act::RespondEarly(too_large)).await;
    for _ in 0..10 {
        match exchange(client(), Method::POST, server.url("/"), vec![b'x'; 4 << 20]).await {
            Ok(answer) => assert_eq!(answer.status(), 413),
            Err(error) => assert_eq!(classify(&error), Some(TransportError::Closed), "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_close_at_once() {
    let server = H1::start(Act::CloseOnAccept).await;
    for _ in 0..100 {
        let error = send(patient(), Method::POST, server.url("/"))
            .await
            .unwrap_err();
        assert!(is_right_unread(classify(&error)), "{error:?}");
    }
    assert_eq!(server.begun(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_that_come_before_the_request() {
    let server = impatient().await;
    for _ in 0..100 {
        if let Err(error) = send(patient(), Method::POST, server.url("http", "/")).await {
            assert!(is_right_unread(classify(&error)), "{error:?}");
        }
    }
}

/// Once in a great while hyper's client does not notice that its connection is gone, and then only
/// a timeout ends the request.
fn patient() -> ClientBuilder {
    client().timeout(Duration::from_secs(2))
}

/// What a request that nobody read may be called: a timeout is right too, for it proves nothing.
fn is_right_unread(class: Option<TransportError>) -> bool {
    class == Some(TransportError::Timeout) || super::NEVER_READ.contains(&class)
}

/// Sends so many requests one after the other, sixteen times at once, each to its own path.
async fn crowd(client: Client, url: &str, log: &Log, requests: usize) {
    let mut senders = JoinSet::new();
    for sender in 0..16 {
        let (client, url) = (client.clone(), url.to_owned());
        senders.spawn(async move {
            let mut unsent_paths = Vec::new();
            for request in 0..requests {
                let path = format!("/{sender}/{request}");
                let request = client
                    .post(format!("{url}{path}"))
                    .timeout(Duration::from_secs(1));
                if let Err(error) = request.send().await {
                    if unsent(classify(&error)) {
                        unsent_paths.push(path);
                    }
                }
            }
            unsent_paths
        });
    }
    let unsent_paths = senders.join_all().await.concat();
    let processed: HashSet<String> = log
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    let both: Vec<String> = unsent_paths
        .into_iter()
        .filter(|path| processed.contains(path))
        .collect();
    assert_eq!(both, Vec::<String>::new());
}
