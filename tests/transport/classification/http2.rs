//! Faults of HTTP/2, frame by frame.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::Response;
use reqwest::{ClientBuilder, Method};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Failed, send};
use crate::support::h1::H1;
use crate::support::h2::{Act, H2, Last};
use crate::support::log::Log;
use crate::support::raw::{Raw, finish};
use crate::support::script::{self, End};
use crate::support::{client, eventually};

pub async fn stream_refused(method: Method) -> Failed {
    refused(Act::Reset(Reason::REFUSED_STREAM), method).await
}

pub async fn stream_refused_unread(method: Method) -> Failed {
    refused(Act::ResetUnread(Reason::REFUSED_STREAM), method).await
}

pub async fn goaway_that_leaves_the_request_out(method: Method) -> Failed {
    let then = Box::new(Act::Silence);
    refused(Act::GoAway(Last::Below, Reason::NO_ERROR, then), method).await
}

pub async fn goaway_with_an_error_that_leaves_the_request_out(method: Method) -> Failed {
    let then = Box::new(Act::End(End::Close));
    refused(
        Act::GoAway(Last::Below, Reason::INTERNAL_ERROR, then),
        method,
    )
    .await
}

pub async fn goaway_that_leaves_the_request_out_unread(method: Method) -> Failed {
    let then = Box::new(Act::Silence);
    refused(
        Act::GoAwayUnread(Last::Below, Reason::ENHANCE_YOUR_CALM, then),
        method,
    )
    .await
}

pub async fn goaway_that_covers_the_request(method: Method) -> Failed {
    let then = Box::new(Act::End(End::Close));
    at(
        Act::GoAway(Last::This, Reason::NO_ERROR, then),
        client(),
        method,
    )
    .await
}

pub async fn goaway_with_an_error_that_covers_the_request(method: Method) -> Failed {
    let then = Box::new(Act::End(End::Close));
    at(
        Act::GoAway(Last::This, Reason::INTERNAL_ERROR, then),
        client(),
        method,
    )
    .await
}

pub async fn goaway_that_covers_everything(method: Method) -> Failed {
    let then = Box::new(Act::End(End::Close));
    at(
        Act::GoAway(Last::Max, Reason::NO_ERROR, then),
        client(),
        method,
    )
    .await
}

pub async fn stream_reset_with_an_error(method: Method) -> Failed {
    at(Act::Reset(Reason::INTERNAL_ERROR), client(), method).await
}

pub async fn stream_reset_as_canceled(method: Method) -> Failed {
    at(Act::Reset(Reason::CANCEL), client(), method).await
}

pub async fn stream_reset_for_calm(method: Method) -> Failed {
    at(Act::Reset(Reason::ENHANCE_YOUR_CALM), client(), method).await
}

pub async fn stream_reset_for_http_1_1(method: Method) -> Failed {
    at(Act::Reset(Reason::HTTP_1_1_REQUIRED), client(), method).await
}

pub async fn goaway_for_http_1_1(method: Method) -> Failed {
    let then = Box::new(Act::Silence);
    refused(
        Act::GoAway(Last::Below, Reason::HTTP_1_1_REQUIRED, then),
        method,
    )
    .await
}

pub async fn http2_connection_closed(method: Method) -> Failed {
    at(Act::End(End::Close), client(), method).await
}

pub async fn http2_connection_reset(method: Method) -> Failed {
    at(Act::End(End::Reset), client(), method).await
}

pub async fn connection_closed_while_the_request_waits_for_a_stream(method: Method) -> Failed {
    waiting_for_a_stream(End::Close, method).await
}

pub async fn connection_reset_while_the_request_waits_for_a_stream(method: Method) -> Failed {
    waiting_for_a_stream(End::Reset, method).await
}

pub async fn pings_unanswered(method: Method) -> Failed {
    let client = client()
        .http2_keep_alive_interval(Duration::from_millis(150))
        .http2_keep_alive_timeout(Duration::from_millis(150));
    at(Act::Freeze, client, method).await
}

/// A PING of one byte; it has eight.
pub async fn frame_that_is_not_valid(method: Method) -> Failed {
    at(
        Act::Raw(Bytes::from_static(&[0, 0, 1, 6, 0, 0, 0, 0, 0, 1])),
        client(),
        method,
    )
    .await
}

pub async fn http2_spoken_to_an_http_1_1_server(method: Method) -> Failed {
    let server = H1::start(script::Act::ok("never")).await;
    let client = client().http2_prior_knowledge();
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

/// The server allows one stream at a time, which another request has when the connection ends.
async fn waiting_for_a_stream(end: End, method: Method) -> Failed {
    let over = Arc::new(Notify::new());
    let told = over.clone();
    let server = Raw::start(move |socket, _, log| {
        let told = told.clone();
        async move { one_at_a_time(socket, &log, end, &told).await }
    })
    .await;
    let client = client().http2_prior_knowledge().build().unwrap();
    let get = || client.get(server.url("http", "/")).send();
    // From its answer the client knows of the limit.
    get().await.unwrap();
    let holding = tokio::spawn(get());
    eventually("the only stream is taken", || server.begun() == 2).await;
    let waiting = tokio::spawn(client.request(method, server.url("http", "/")).send());
    tokio::time::sleep(Duration::from_millis(50)).await;
    over.notify_one();
    holding.await.unwrap().unwrap_err();
    let error = waiting.await.unwrap().unwrap_err();
    Failed::new(error, server.begun() - 2)
}

/// Answers the first request, and no other until it is told to end.
async fn one_at_a_time(
    mut socket: TcpStream,
    log: &Log,
    end: End,
    told: &Notify,
) -> io::Result<()> {
    let mut connection = h2::server::Builder::new()
        .max_concurrent_streams(1)
        .handshake::<_, Bytes>(&mut socket)
        .await
        .map_err(io::Error::other)?;
    let mut held = Vec::new();
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = told.notified() => break,
        };
        let Some(Ok((_, mut respond))) = accepted else {
            return Ok(());
        };
        log.note_begun();
        if log.begun() == 1 {
            let _ = respond.send_response(Response::new(()), true);
        }
        held.push(respond);
    }
    drop(connection);
    finish(socket, end).await
}

async fn at(act: Act, client: ClientBuilder, method: Method) -> Failed {
    let server = H2::start(act).await;
    let client = client.http2_prior_knowledge();
    let error = send(client, method, server.url("/")).await.unwrap_err();
    assert_eq!(server.begun(), 1);
    Failed::new(error, server.count())
}

/// The server says that it did not act on what it read.
async fn refused(act: Act, method: Method) -> Failed {
    Failed {
        processed: 0,
        ..at(act, client(), method).await
    }
}
