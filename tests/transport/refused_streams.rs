//! Streams that an HTTP/2 server refuses are sent again by the clients of this crate, below every
//! middleware, and nothing else is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use h2::Reason;
use http::{Method, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::ClientBuilder;
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::{RetryRule, StopReason, TransportError, client_builder};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support;
use crate::support::h2::{Act, H2, Last};
use crate::support::raw::Raw;
use crate::support::sends::{REFUSED_STREAM, Went, at_once, retrying, send};

/// How late the client learns how many streams it may open.
const LATE: Duration = Duration::from_millis(300);

const RESENDS: bool = cfg!(feature = "http2");

/// A server that allows one stream at a time and says so late, in front of which nothing else is
/// held back. It counts the requests that it answers.
async fn one_stream() -> (Raw, Arc<AtomicUsize>) {
    let processed = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(accept(listener, Arc::clone(&processed)));
    let late = Raw::start(move |client, _, _| relay(client, addr)).await;
    (late, processed)
}

async fn accept(listener: TcpListener, processed: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let processed = Arc::clone(&processed);
        let answer = service_fn(move |request: http::Request<Incoming>| {
            let processed = Arc::clone(&processed);
            async move {
                request.into_body().collect().await?;
                processed.fetch_add(1, Ordering::SeqCst);
                Ok::<_, hyper::Error>(Response::new(Empty::<Bytes>::new()))
            }
        });
        let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(1)
            .serve_connection(TokioIo::new(socket), answer);
        connections.spawn(served);
    }
}

/// Hands on what the client says at once, and what the server says from a later moment on.
async fn relay(client: TcpStream, addr: SocketAddr) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let server = TcpStream::connect(addr).await?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_server) = server.into_split();
    let late = async {
        tokio::time::sleep(LATE).await;
        tokio::io::copy(&mut from_server, &mut to_client).await
    };
    tokio::try_join!(tokio::io::copy(&mut from_client, &mut to_server), late)?;
    Ok(())
}

fn speaking_http2(client: ClientBuilder) -> ClientBuilder {
    client
        .no_proxy()
        .tls_certs_only([])
        .http2_prior_knowledge()
        .timeout(Duration::from_secs(60))
}

fn of_this_crate() -> ClientBuilder {
    support::install_crypto();
    speaking_http2(client_builder())
}

fn of_reqwests_own_making() -> ClientBuilder {
    support::install_crypto();
    speaking_http2(reqwest::Client::builder())
}

/// How many of a hundred POSTs that are sent at once over a fresh connection are answered.
async fn burst(client: ClientBuilder, url: &str) -> usize {
    let client = retrying(client, RetryRule::transient());
    let sends = (0..100).map(|_| client.post(url).body("order").send());
    let outcomes = join_all(sends).await;
    outcomes
        .iter()
        .filter(|outcome| outcome.as_ref().is_ok_and(|answer| answer.status() == 200))
        .count()
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn a_burst_of_posts_over_a_fresh_connection_is_answered_whole() {
    let (server, processed) = one_stream().await;
    let url = server.url("http", "/orders");
    assert_eq!(burst(of_this_crate(), &url).await, 100);
    assert_eq!(processed.load(Ordering::SeqCst), 100);
    assert_eq!(server.connections(), 1);
}

/// As with plain reqwest.
#[tokio::test]
async fn a_client_of_reqwests_own_making_answers_it_whole_too() {
    let (server, processed) = one_stream().await;
    let url = server.url("http", "/orders");
    assert_eq!(burst(of_reqwests_own_making(), &url).await, 100);
    assert_eq!(processed.load(Ordering::SeqCst), 100);
}

/// The twin: the server does refuse.
#[tokio::test]
async fn without_resends_most_of_it_is_lost() {
    let (server, processed) = one_stream().await;
    let url = server.url("http", "/orders");
    let client = of_this_crate().retry(reqwest::retry::never());
    let answered = burst(client, &url).await;
    assert!(answered < 50, "{answered}");
    assert_eq!(processed.load(Ordering::SeqCst), answered);
}

#[tokio::test]
async fn a_stream_that_is_always_refused_is_sent_three_times_in_each_attempt() {
    let each = if RESENDS { 3 } else { 1 };
    for method in [Method::GET, Method::POST] {
        let server = H2::start(Act::ResetUnread(Reason::REFUSED_STREAM)).await;
        let client = of_this_crate().build().unwrap();
        let sent = client.request(method.clone(), server.url("/")).send();
        sent.await.unwrap_err();
        assert_eq!(server.begun(), each, "{method}");

        let server = H2::start(Act::ResetUnread(Reason::REFUSED_STREAM)).await;
        let client = retrying(of_this_crate(), at_once(3));
        let (_, went) = send(client.request(method.clone(), server.url("/"))).await;
        let attempts = if RESENDS || method == Method::GET {
            4
        } else {
            1
        };
        let reason = match attempts {
            4 => StopReason::Exhausted,
            _ => StopReason::MethodNotAllowed,
        };
        let results = vec![Failure(REFUSED_STREAM); attempts];
        assert_eq!(went, Went::stopped(results, reason), "{method}");
        assert_eq!(server.begun(), attempts * each, "{method}");
    }
}

/// The twin: what does not prove that nothing was processed is sent once by a client of this crate.
/// reqwest's own clients send it again after a GOAWAY.
#[tokio::test]
async fn a_goaway_and_other_resets_are_not_sent_again() {
    let goaway = |last| Act::GoAwayUnread(last, Reason::NO_ERROR, Box::new(Act::Silence));
    for act in [
        goaway(Last::Below),
        Act::GoAway(Last::Below, Reason::NO_ERROR, Box::new(Act::Silence)),
        Act::ResetUnread(Reason::CANCEL),
        Act::ResetUnread(Reason::INTERNAL_ERROR),
        Act::ResetUnread(Reason::ENHANCE_YOUR_CALM),
        Act::Reset(Reason::CANCEL),
    ] {
        for method in [Method::GET, Method::POST] {
            let server = H2::start(act.clone()).await;
            let client = of_this_crate().build().unwrap();
            let request = client
                .request(method.clone(), server.url("/"))
                .body("order");
            request.send().await.unwrap_err();
            assert_eq!(server.begun(), 1, "{method} {act:?}");
        }
        let server = H2::start(act.clone()).await;
        let client = retrying(of_this_crate(), RetryRule::transient());
        let (_, went) = send(client.post(server.url("/")).body("order")).await;
        let closed = [Failure(TransportError::Closed)];
        let stopped = Went::stopped(closed, StopReason::MethodNotAllowed);
        assert_eq!(went, stopped, "{act:?}");
        assert_eq!(server.begun(), 1, "{act:?}");
    }
    let server = H2::start(goaway(Last::Below)).await;
    let client = of_reqwests_own_making().build().unwrap();
    client.post(server.url("/")).send().await.unwrap_err();
    assert_eq!(server.begun(), 3);
}
