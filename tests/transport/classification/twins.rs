//! The same roads without the fault: the request arrives once and is answered.

use std::time::Duration;

use h2::Reason;
use reqwest::{ClientBuilder, Method};
use rustls::version::{TLS12, TLS13};

use super::{TARGET, exchange, via};
use crate::support::client;
use crate::support::h1::H1;
use crate::support::h2::{Act as StreamAct, H2, Last};
use crate::support::hang::Hang;
use crate::support::log::Log;
use crate::support::proxy;
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::support::script::{Act, Answer, Body, End};
use crate::support::tls::{Cert, Tls, identity, trusting};

#[tokio::test]
async fn an_answer_over_http1() {
    let server = H1::start(Act::ok("well")).await;
    arrives(client, &server.url("/"), &server).await;
}

#[tokio::test]
async fn an_answer_over_http1_before_the_request_was_read() {
    let server = H1::start(Act::RespondEarly(Answer::new(200).body("well"))).await;
    arrives(client, &server.url("/"), &server).await;
}

#[tokio::test]
async fn an_answer_in_chunks() {
    let chunks = Body::Chunked(vec!["we".into(), "ll".into()], Vec::new());
    let server = H1::start(Answer::new(200).send(chunks)).await;
    arrives(client, &server.url("/"), &server).await;
}

#[tokio::test]
async fn an_answer_over_tls() {
    for version in [&TLS12, &TLS13] {
        let server = H1::start_tls(
            Tls::new(Cert::Good).only(version).acceptor(),
            Act::ok("well"),
        )
        .await;
        arrives(trusting, &server.url("/"), &server).await;
    }
}

#[tokio::test]
async fn a_client_certificate_that_is_accepted() {
    for version in [&TLS12, &TLS13] {
        let tls = Tls::new(Cert::Good)
            .only(version)
            .demand_client_certificate();
        let server = H1::start_tls(tls.acceptor(), Act::ok("well")).await;
        arrives(
            || trusting().identity(identity(true)),
            &server.url("/"),
            &server,
        )
        .await;
    }
}

#[tokio::test]
async fn a_client_certificate_that_is_accepted_over_http2() {
    let tls = Tls::new(Cert::Good)
        .only(&TLS13)
        .alpn("h2")
        .demand_client_certificate();
    let server = H2::start_tls(tls.acceptor(), StreamAct::ok("well")).await;
    arrives(
        || trusting().identity(identity(true)),
        &server.url("/"),
        &server,
    )
    .await;
}

#[tokio::test]
async fn an_answer_over_http2() {
    let server = H2::start(StreamAct::ok("well")).await;
    arrives(
        || client().http2_prior_knowledge(),
        &server.url("/"),
        &server,
    )
    .await;
}

#[tokio::test]
async fn an_answer_over_http2_and_tls() {
    let tls = Tls::new(Cert::Good).alpn("h2").acceptor();
    let server = H2::start_tls(tls, StreamAct::ok("well")).await;
    arrives(trusting, &server.url("/"), &server).await;
}

#[tokio::test]
async fn an_answer_after_a_goaway_that_covers_the_request() {
    let then = Box::new(StreamAct::ok("well"));
    let server = H2::start(StreamAct::GoAway(Last::This, Reason::NO_ERROR, then)).await;
    arrives(
        || client().http2_prior_knowledge(),
        &server.url("/"),
        &server,
    )
    .await;
}

#[tokio::test]
async fn an_answer_through_a_proxy() {
    let tls = Tls::new(Cert::Good).acceptor();
    let server = H1::start_tls(tls, Act::ok("well")).await;
    let proxy = proxy::connect(proxy::Act::TunnelTo(server.addr)).await;
    arrives(|| via(proxy.url("http", "")), TARGET, &server).await;
    assert_eq!(proxy.requests()[0].path, "target.test:443");
}

#[tokio::test]
async fn an_answer_through_a_socks_proxy() {
    let server = H1::start(Act::ok("well")).await;
    let proxy = proxy::socks5(proxy::Act::Tunnel).await;
    arrives(|| via(proxy.url("socks5h", "")), &server.url("/"), &server).await;
    assert_eq!(proxy.requests()[0].path, server.addr.to_string());
}

#[tokio::test]
async fn a_name_that_resolves() {
    let server = H1::start(Act::ok("well")).await;
    let names = Names::new();
    names.set("target.test", server.addr);
    let url = server.url_at("target.test", "/");
    arrives(|| client().dns_resolver(names.clone()), &url, &server).await;
    assert_eq!(names.lookups(), 2);
}

#[tokio::test]
async fn a_port_that_came_up() {
    let refused = Refused::new();
    let server = H1::on(refused.come_up(), None, Act::ok("well"));
    arrives(client, &server.url("/"), &server).await;
}

#[tokio::test]
async fn a_port_that_was_released() {
    let full = Hang::start().await;
    let server = H1::on(full.release().await, None, Act::ok("well"));
    arrives(
        || client().connect_timeout(Duration::from_secs(5)),
        &server.url("/"),
        &server,
    )
    .await;
}

#[tokio::test]
async fn one_connection_serves_several_requests() {
    let server = H1::start([Act::status(503), Act::ok("well")]).await;
    let client = client().build().unwrap();
    for status in [503, 200, 200] {
        let response = client.get(server.url("/")).send().await.unwrap();
        assert_eq!(response.status(), status);
        response.bytes().await.unwrap();
    }
    assert_eq!((server.connections(), server.count()), (1, 3));
}

#[tokio::test]
async fn bytes_after_an_answer_do_no_harm_to_the_next() {
    let more = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwelland more";
    let server = H1::start(Act::Raw(more.as_slice().into(), End::Keep)).await;
    let client = client().build().unwrap();
    for _ in 0..3 {
        let response = client.get(server.url("/")).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "well");
    }
    assert_eq!((server.connections(), server.count()), (3, 3));
}

#[tokio::test]
async fn a_long_answer_over_both_versions() {
    let long = Answer::new(200).send(Body::Long(1 << 20));
    let server = H1::start(long.clone()).await;
    let whole = exchange(client(), Method::GET, server.url("/"), "")
        .await
        .unwrap()
        .bytes()
        .await;
    assert_eq!(whole.unwrap().len(), 1 << 20);
    let server = H2::start(long).await;
    let client = client().http2_prior_knowledge();
    let whole = exchange(client, Method::GET, server.url("/"), "")
        .await
        .unwrap()
        .bytes()
        .await;
    assert_eq!(whole.unwrap().len(), 1 << 20);
}

/// A GET and a POST each arrive whole, once, and are answered.
async fn arrives(client: impl Fn() -> ClientBuilder, url: &str, log: &Log) {
    for (method, body) in [(Method::GET, ""), (Method::POST, "what was sent")] {
        let before = log.count();
        let response = exchange(client(), method.clone(), url, body).await.unwrap();
        assert_eq!(response.text().await.unwrap(), "well");
        assert_eq!(log.count(), before + 1);
        let request = &log.requests()[before];
        assert_eq!(
            (&request.method, &request.body[..]),
            (&method, body.as_bytes())
        );
    }
}
