//! What is no failure of the transport: the caller's own doing, and what comes after the head.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Body, ClientBuilder, Method};
use reqwest_middleware::Error;
use tower::Service;

use super::{Failed, TARGET, exchange, lost, send};
use crate::support::client;
use crate::support::connector::FailingConnector;
use crate::support::h1::H1;
use crate::support::h2::{self, H2};
use crate::support::refused::Refused;
use crate::support::script::{self, Act, Answer, End};

pub async fn body_stream_failed(method: Method) -> Failed {
    let server = H1::start(Act::ok("never")).await;
    let body = failing(io::Error::from(io::ErrorKind::ConnectionReset));
    let error = upload(client(), method, server.url("/"), body).await;
    Failed::new(error, server.count())
}

/// The stream's own failure looks like one of connecting.
pub async fn body_stream_failed_to_connect(method: Method) -> Failed {
    let nobody = Refused::new();
    let server = H1::start(Act::ok("never")).await;
    let refused = client()
        .build()
        .unwrap()
        .get(nobody.url("/"))
        .send()
        .await
        .unwrap_err();
    let error = upload(client(), method, server.url("/"), failing(refused)).await;
    Failed::new(error, server.count())
}

pub async fn body_stream_failed_over_http2(method: Method) -> Failed {
    let server = H2::start(h2::Act::ok("never")).await;
    let body = failing(io::Error::other("no more"));
    let client = client().http2_prior_knowledge();
    let error = exchange(client, method, server.url("/"), body)
        .await
        .unwrap_err();
    Failed::new(error, server.count())
}

/// In the task of the connection, which goes with it.
pub async fn body_stream_panicked(method: Method) -> Failed {
    let server = H1::start(Act::ok("never")).await;
    let pieces = stream::iter([Ok::<_, io::Error>("piece")]);
    let body = Body::wrap_stream(pieces.chain(stream::once(async { panic!("as it should") })));
    let error = upload(client(), method, server.url("/"), body).await;
    Failed::new(error, server.count())
}

pub async fn body_stream_ended_early(method: Method) -> Failed {
    let server = H1::start(Act::ok("never")).await;
    let body = Body::wrap_stream(stream::iter([Ok::<_, io::Error>("short")]));
    let client = client().build().unwrap();
    let request = client
        .request(method, server.url("/"))
        .header("content-length", 10)
        .body(body);
    Failed::new(request.send().await.unwrap_err(), server.count())
}

/// hyper-util's own connector as reqwest uses it when it is built without TLS.
pub async fn https_from_a_client_without_tls(method: Method) -> Failed {
    let plain = FailingConnector::new(|| async {
        HttpConnector::new()
            .call(TARGET.parse().unwrap())
            .await
            .unwrap_err()
            .into()
    });
    lost(client().connector_layer(plain), method, TARGET).await
}

pub async fn http2_asked_of_an_http_1_1_connection(method: Method) -> Failed {
    let server = H1::start(Act::ok("never")).await;
    let client = client().http1_only().build().unwrap();
    let request = client
        .request(method, server.url("/"))
        .version(reqwest::Version::HTTP_2);
    Failed::new(request.send().await.unwrap_err(), server.count())
}

pub async fn url_that_is_none(method: Method) -> Failed {
    lost(client(), method, "no URL").await
}

pub async fn url_of_another_scheme(method: Method) -> Failed {
    lost(client(), method, "ftp://target.test/").await
}

pub async fn redirect_loop(method: Method) -> Failed {
    let client = client().redirect(reqwest::redirect::Policy::limited(2));
    at(Answer::new(307).header("location", "/"), client, method).await
}

pub async fn redirect_to_another_scheme(method: Method) -> Failed {
    let client = client().redirect(reqwest::redirect::Policy::limited(2));
    at(
        Answer::new(307).header("location", "ftp://127.0.0.1/"),
        client,
        method,
    )
    .await
}

pub async fn status_turned_into_an_error(method: Method) -> Failed {
    let server = H1::start(Act::status(503)).await;
    let response = send(client(), method, server.url("/")).await.unwrap();
    Failed::new(response.error_for_status().unwrap_err(), server.count())
}

pub async fn body_of_the_answer_cut_off(method: Method) -> Failed {
    let body = script::Body::Short(100, "part".into());
    read(Answer::new(200).send(body), client(), method).await
}

pub async fn body_of_the_answer_timed_out(method: Method) -> Failed {
    let body = script::Body::Short(100, "part".into());
    let client = client().timeout(Duration::from_millis(500));
    read(Answer::new(200).send(body).end(End::Stall), client, method).await
}

pub async fn body_of_the_answer_corrupt(method: Method) -> Failed {
    let answer = Answer::new(200)
        .header("content-encoding", "gzip")
        .body("not gzip at all");
    read(answer, client(), method).await
}

/// A GET with a body of unknown length sends none unless it says so.
async fn upload(client: ClientBuilder, method: Method, url: String, body: Body) -> Error {
    let client = client.build().unwrap();
    let request = client
        .request(method, url)
        .header("transfer-encoding", "chunked")
        .body(body);
    request.send().await.unwrap_err().into()
}

async fn at(answer: Answer, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start(answer).await;
    let error = send(client, method, server.url("/")).await.unwrap_err();
    Failed::new(error, server.count())
}

async fn read(answer: Answer, client: ClientBuilder, method: Method) -> Failed {
    let server = H1::start(answer).await;
    let response = send(client, method, server.url("/")).await.unwrap();
    Failed::new(response.bytes().await.unwrap_err(), server.count())
}

/// A body that yields a piece and then fails.
fn failing<E>(error: E) -> Body
where
    E: std::error::Error + Send + Sync + 'static,
{
    let piece = stream::iter([Ok(Bytes::from_static(b"piece"))]);
    let failure = stream::once(async {
        // Only once the piece was sent.
        tokio::time::sleep(Duration::from_millis(5)).await;
        Err(error)
    });
    Body::wrap_stream(piece.chain(failure))
}
