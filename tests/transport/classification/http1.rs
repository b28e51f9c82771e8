//! Faults of HTTP/1.1.

use std::time::Duration;

use reqwest::{ClientBuilder, Method};
use reqwest_retry_rules::{TransportError, classify};
use tokio::io::AsyncWriteExt;
use tokio::runtime;

use super::{Failed, TARGET, exchange, lost, send, via};
use crate::support::h1::H1;
use crate::support::proxy;
use crate::support::raw::Raw;
use crate::support::script::{Act, End};
use crate::support::tls::{Cert, Tls, trusting};
use crate::support::{client, eventually};

pub async fn connection_closed_at_once(method: Method) -> Failed {
    in_time(async || Some(at(Act::CloseOnAccept, client(), method.clone()).await)).await
}

pub async fn connection_reset_at_once(method: Method) -> Failed {
    in_time(async || Some(at(Act::ResetOnAccept, client(), method.clone()).await)).await
}

/// The connection was made in another runtime, which ends while the answer is waited for in this one.
pub async fn runtime_of_the_connection_dropped(method: Method) -> Failed {
    // The connection takes a moment to be free for the next request, and no sign of that is seen.
    for moment in [20, 200, 2000, 20_000] {
        if let Some(failed) = left_behind(method.clone(), Duration::from_millis(moment)).await {
            return failed;
        }
    }
    panic!("the connection is never free");
}

/// `None` is for a second request that was sent on a connection of this runtime's own.
async fn left_behind(method: Method, moment: Duration) -> Option<Failed> {
    let server = H1::start(vec![Act::ok(""), Act::Silence]).await;
    let client = client().build().unwrap();
    let other = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let first = client.get(server.url("/"));
    let first = other.spawn(async { first.send().await?.bytes().await });
    first.await.unwrap().unwrap();
    tokio::time::sleep(moment).await;
    let waiting = tokio::spawn(client.request(method, server.url("/")).send());
    eventually("the second arrived", || server.count() == 2).await;
    other.shutdown_background();
    if server.connections() > 1 {
        waiting.abort();
        return None;
    }
    let error = waiting.await.unwrap().unwrap_err();
    Some(Failed::new(error, server.count() - 1))
}

/// The server speaks before it is spoken to.
pub async fn answer_to_nothing(method: Method) -> Failed {
    in_time(async || {
        let server = impatient().await;
        let answer = send(client(), method.clone(), server.url("http", "/")).await;
        Some(Failed::new(answer.err()?, 0))
    })
    .await
}

/// What hyper notices first is a race, and a request that was written when it did is as any other:
/// lost, or, where the server spoke too soon, answered. A reset may even come before the client
/// looks up from connecting. In a runtime of one thread all that is rare.
async fn in_time(attempt: impl AsyncFn() -> Option<Failed>) -> Failed {
    for _ in 0..100 {
        let Some(failed) = attempt().await else {
            continue;
        };
        match classify(&failed.error) {
            Some(TransportError::Closed | TransportError::Connect) => {}
            _ => return failed,
        }
    }
    panic!("always too late, or too soon");
}

/// A server that answers before it is asked.
pub async fn impatient() -> Raw {
    Raw::start(|mut socket, _, _| async move {
        socket
            .write_all(b"HTTP/1.1 408 Too Slow\r\ncontent-length: 0\r\n\r\n")
            .await?;
        std::future::pending().await
    })
    .await
}

/// The server leaves the request in the kernel and closes its side only, or it would be a reset.
pub async fn closed_before_the_request_was_read(method: Method) -> Failed {
    let server = Raw::start(|mut socket, _, _| async move {
        socket.peek(&mut [0]).await?;
        socket.shutdown().await?;
        std::future::pending().await
    })
    .await;
    lost(client(), method, server.url("http", "/")).await
}

pub async fn closed_after_the_request_was_read(method: Method) -> Failed {
    at(Act::CloseAfterReading, client(), method).await
}

pub async fn closed_in_the_head(method: Method) -> Failed {
    at(Act::half_head(End::Close), client(), method).await
}

pub async fn closed_after_an_interim_answer(method: Method) -> Failed {
    at(Act::interim_then_close(103), client(), method).await
}

pub async fn closed_over_tls(method: Method) -> Failed {
    let server = H1::start_tls(Tls::new(Cert::Good).acceptor(), Act::CloseAfterReading).await;
    let error = send(trusting(), method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

pub async fn closed_behind_a_proxy(method: Method) -> Failed {
    let server = H1::start_tls(Tls::new(Cert::Good).acceptor(), Act::CloseAfterReading).await;
    let proxy = proxy::connect(proxy::Act::TunnelTo(server.addr)).await;
    let error = send(via(proxy.url("http", "")), method, TARGET)
        .await
        .unwrap_err();
    Failed::new(error, server.count())
}

pub async fn reset_before_the_request_was_read(method: Method) -> Failed {
    at(Act::CloseBeforeReading, client(), method).await
}

pub async fn reset_after_the_request_was_read(method: Method) -> Failed {
    at(Act::ResetAfterReading, client(), method).await
}

pub async fn reset_in_the_head(method: Method) -> Failed {
    at(Act::half_head(End::Reset), client(), method).await
}

pub async fn upload_closed(method: Method) -> Failed {
    upload(End::Close, method).await
}

pub async fn upload_reset(method: Method) -> Failed {
    upload(End::Reset, method).await
}

pub async fn garbage_instead_of_a_head(method: Method) -> Failed {
    at(Act::garbage(), client(), method).await
}

pub async fn head_without_end(method: Method) -> Failed {
    at(Act::endless_head(), client(), method).await
}

async fn at(act: Act, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start(act).await;
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

async fn upload(end: End, method: Method) -> Failed {
    let server = H1::start(Act::CutUpload(1000, end)).await;
    let error = exchange(client(), method, server.url("/"), vec![b'x'; 4 << 20])
        .await
        .unwrap_err();
    Failed::new(error, server.count())
}
