//! Streams, of which there is only one: taken back unread, or gone.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream;
use h2::Reason;
use reqwest::{Body, ClientBuilder, Method};
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::TransportError::{self, *};
use reqwest_retry_rules::{RetryPolicy, RetryRule, StopReason};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::{Framing, OK, UNAVAILABLE, framing};
use crate::support::h1::H1;
use crate::support::h2::{Act as Act2, H2};
use crate::support::hang::Hang;
use crate::support::proxy;
use crate::support::raw::Raw;
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::support::script::{Act, Answer, Body as AnswerBody, End};
use crate::support::sends::{
    OnRetry, REFUSED_STREAM, Went, at_once, on_both_runtimes, retrying, send,
};
use crate::support::tls::{Cert, Tls, trusting};
use crate::support::{self, log::Log};

const PIECES: [&str; 3] = ["one, ", "two, ", "three"];
const WHOLE: &str = "one, two, three";

/// The two kinds of stream, and how each is framed.
const KINDS: [(fn() -> Body, Framing); 2] = [
    (chunked, Framing::Chunked),
    (measured, Framing::Length(WHOLE.len() as u64)),
];

fn chunked() -> Body {
    Body::wrap_stream(stream::iter(PIECES.map(Ok::<_, io::Error>)))
}

/// A stream too, but one that knows its length.
fn measured() -> Body {
    Body::wrap(WHOLE.to_owned())
}

#[track_caller]
fn assert_sent_whole(log: &Log, framed: &Framing) {
    let requests = log.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body, WHOLE);
    assert_eq!(framing(&requests[0].headers), *framed);
}

// ---- the connect stage ----

/// A way to a server that leads nowhere until it is mended.
struct Road {
    client: ClientBuilder,
    url: &'static str,
    names: Names,
    /// The name that leads astray, and where it leads once mended.
    mended: (&'static str, SocketAddr),
    class: TransportError,
    server: H1,
    _alive: Box<dyn std::any::Any + Send>,
}

impl Road {
    async fn plain(client: ClientBuilder, class: TransportError, nowhere: Nowhere) -> Road {
        Road::to(
            "target.test",
            H1::start(Act::ok("")).await,
            "http://target.test/",
            client,
            class,
            nowhere,
        )
    }

    fn to(
        name: &'static str,
        server: H1,
        url: &'static str,
        client: ClientBuilder,
        class: TransportError,
        nowhere: Nowhere,
    ) -> Road {
        let names = Names::new();
        if let Some(addr) = nowhere.addr {
            names.set(name, addr);
        }
        Road {
            client: client.dns_resolver(names.clone()),
            url,
            names,
            mended: (name, server.addr),
            class,
            server,
            _alive: nowhere.alive,
        }
    }

    /// Sends a stream down the road, which is mended when the first retry is decided.
    async fn send(self, method: Method, body: Body) -> (Went, H1) {
        let (names, (name, addr)) = (self.names, self.mended);
        let mend = OnRetry::once(move || names.set(name, addr));
        let client = retrying(self.client, RetryPolicy::from(at_once(2)).observer(mend));
        let (outcome, went) = send(client.request(method, self.url).body(body)).await;
        assert_eq!(outcome.unwrap().status(), 200);
        (went, self.server)
    }
}

struct Nowhere {
    addr: Option<SocketAddr>,
    alive: Box<dyn std::any::Any + Send>,
}

fn nowhere(addr: SocketAddr, alive: impl Send + 'static) -> Nowhere {
    Nowhere {
        addr: Some(addr),
        alive: Box::new(alive),
    }
}

async fn refused() -> Road {
    let port = Refused::new();
    Road::plain(support::client(), Connect, nowhere(port.addr, port)).await
}

async fn not_resolved() -> Road {
    let nowhere = Nowhere {
        addr: None,
        alive: Box::new(()),
    };
    Road::plain(support::client(), Dns, nowhere).await
}

async fn connecting_times_out() -> Road {
    let hang = Hang::start().await;
    let client = support::client().connect_timeout(Duration::from_millis(200));
    Road::plain(client, ConnectTimeout, nowhere(hang.addr, hang)).await
}

async fn tls_cut() -> Road {
    let cut = Raw::start(|_, _, _| async { Ok(()) }).await;
    let server = H1::start_tls(Tls::new(Cert::Good).acceptor(), Act::ok("")).await;
    let url = "https://target.test/";
    Road::to(
        "target.test",
        server,
        url,
        trusting(),
        Tls,
        nowhere(cut.addr, cut),
    )
}

/// The way leads through a proxy, and it is the proxy's name that leads astray.
async fn behind_a_proxy(class: TransportError, nowhere: Nowhere) -> Road {
    let server = H1::start_tls(Tls::new(Cert::Good).acceptor(), Act::ok("")).await;
    let tunnel = proxy::connect(proxy::Act::TunnelTo(server.addr)).await;
    let by = reqwest::Proxy::https("http://proxy.test").unwrap();
    let client = trusting().proxy(by);
    let addr = tunnel.addr;
    let nowhere = Nowhere {
        alive: Box::new((nowhere.alive, tunnel)),
        ..nowhere
    };
    let mut road = Road::to(
        "proxy.test",
        server,
        "https://target.test/",
        client,
        class,
        nowhere,
    );
    road.mended.1 = addr;
    road
}

async fn proxy_refuses() -> Road {
    let refusing = proxy::connect(proxy::Act::Refuse(502)).await;
    behind_a_proxy(Proxy { status: None }, nowhere(refusing.addr, refusing)).await
}

async fn proxy_refused() -> Road {
    let port = Refused::new();
    behind_a_proxy(Connect, nowhere(port.addr, port)).await
}

/// Sends streams of each kind, with each method, over this many roads.
macro_rules! taken_back {
    ($($times:literal times $test:ident: $road:ident;)+) => {
        on_both_runtimes! {
            $(async fn $test() {
                for run in 0..$times {
                    let (body, framed) = &KINDS[run % 2];
                    for method in [Method::POST, Method::PUT] {
                        let road = $road().await;
                        let class = road.class;
                        let (went, server) = road.send(method, body()).await;
                        assert_eq!(went, Went::answered([Failure(class), OK]));
                        assert_sent_whole(&server, framed);
                    }
                }
            })+
        }
    };
}

taken_back! {
    50 times a_stream_goes_out_whole_after_a_refused_connection: refused;
    50 times a_stream_goes_out_whole_after_a_name_did_not_resolve: not_resolved;
    4 times a_stream_goes_out_whole_after_connecting_timed_out: connecting_times_out;
    20 times a_stream_goes_out_whole_after_the_tls_handshake_was_cut: tls_cut;
    20 times a_stream_goes_out_whole_after_the_proxy_refused: proxy_refuses;
    20 times a_stream_goes_out_whole_after_the_proxy_was_not_there: proxy_refused;
}

#[tokio::test]
async fn a_stream_is_taken_back_as_often_as_it_takes() {
    for (body, _) in KINDS {
        let nobody = Refused::new();
        let client = retrying(support::client(), at_once(5));
        let (_, went) = send(client.post(nobody.url("/")).body(body())).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Connect); 6], StopReason::Exhausted)
        );
    }
}

#[tokio::test]
async fn a_post_whose_stream_came_back_is_not_retried_where_unsent_failures_are_off() {
    for (body, _) in KINDS {
        let nobody = Refused::new();
        let rule = RetryRule {
            unsent_failures: false,
            ..at_once(2)
        };
        let client = retrying(support::client(), rule);
        let (_, went) = send(client.post(nobody.url("/")).body(body())).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Connect)], StopReason::MethodNotAllowed)
        );
        // The twin.
        let (_, went) = send(client.put(nobody.url("/")).body(body())).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Connect); 3], StopReason::Exhausted)
        );
    }
}

// ---- before a byte was written ----

/// Whether the connection is found dead before the request is written is a race. Where it is, the
/// stream is taken back; where it is not, it is gone.
#[tokio::test]
async fn a_stream_is_taken_back_from_a_connection_that_was_gone_before_a_byte_was_written() {
    let mut taken_back = 0;
    for run in 0.. {
        let (body, framed) = &KINDS[run % 2];
        let impatient = Raw::start(|mut socket, _, _| async move {
            let early = b"HTTP/1.1 408 Too Slow\r\ncontent-length: 0\r\n\r\n";
            socket.write_all(early).await?;
            std::future::pending().await
        })
        .await;
        let names = Names::new();
        names.set("target.test", impatient.addr);
        let server = H1::start(Act::ok("")).await;
        let mend = {
            let (names, addr) = (names.clone(), server.addr);
            OnRetry::once(move || names.set("target.test", addr))
        };
        let client = retrying(
            support::client().dns_resolver(names),
            RetryPolicy::from(at_once(2)).observer(mend),
        );
        let (_, went) = send(client.post("http://target.test/").body(body())).await;
        match went.results[0] {
            Failure(NotProcessed) => {
                assert_eq!(went, Went::answered([Failure(NotProcessed), OK]));
                assert_sent_whole(&server, framed);
                taken_back += 1;
            }
            other => {
                assert_eq!(went.results, [other]);
                assert_eq!(server.begun(), 0);
            }
        }
        if taken_back == 10 {
            break;
        }
    }
}

// ---- after something was read ----

/// What an HTTP/1.1 server may do to a stream that it has begun to read.
fn acts() -> Vec<(Act, reqwest_retry_rules::AttemptResult)> {
    vec![
        (Act::status(503), UNAVAILABLE),
        (Act::RespondEarly(Answer::new(503)), UNAVAILABLE),
        (Act::CloseAfterReading, Failure(Closed)),
        (Act::ResetAfterReading, Failure(Closed)),
        (Act::CutUpload(1, End::Close), Failure(Closed)),
        (Act::CutUpload(1, End::Reset), Failure(Closed)),
        (Act::CloseBeforeReading, Failure(Closed)),
        (Act::half_head(End::Close), Failure(Closed)),
        (Act::interim_then_close(100), Failure(Closed)),
    ]
}

on_both_runtimes! {
    async fn a_stream_that_was_begun_is_sent_once() {
        for (act, result) in acts() {
            for run in 0..30 {
                let (body, _) = &KINDS[run % 2];
                let server = H1::start(act.clone()).await;
                let client = retrying(support::client(), at_once(2));
                let (outcome, went) = send(client.put(server.url("/")).body(body())).await;
                let expected = Went::stopped([result], StopReason::NotReplayable);
                assert_eq!(went, expected, "{act:?}");
                match result {
                    Failure(_) => drop(outcome.unwrap_err()),
                    _ => assert_eq!(outcome.unwrap().status(), 503, "{act:?}"),
                }
                assert_eq!(server.connections(), 1, "{act:?}");
                assert!(server.begun() <= 1, "{act:?}");
            }
        }
    }

    async fn a_body_in_memory_is_sent_again_after_the_same_faults() {
        for (act, result) in acts() {
            for _ in 0..10 {
                let server = H1::start(vec![act.clone(), Act::ok("")]).await;
                let client = retrying(support::client(), at_once(2));
                let (_, went) = send(client.put(server.url("/")).body(WHOLE)).await;
                assert_eq!(went, Went::answered([result, OK]), "{act:?}");
                assert_eq!(server.requests().last().unwrap().body, WHOLE, "{act:?}");
            }
        }
    }

    async fn a_stream_that_was_begun_over_http2_is_sent_once() {
        let acts = [
            (Act2::status(503), UNAVAILABLE),
            (Act2::Reset(Reason::REFUSED_STREAM), Failure(REFUSED_STREAM)),
            (Act2::ResetUnread(Reason::INTERNAL_ERROR), Failure(Closed)),
            (Act2::End(End::Close), Failure(Closed)),
        ];
        for (act, result) in acts {
            for run in 0..20 {
                let (body, _) = &KINDS[run % 2];
                let server = H2::start(act.clone()).await;
                let client = support::client().http2_prior_knowledge();
                let client = retrying(client, at_once(2));
                let (_, went) = send(client.put(server.url("/")).body(body())).await;
                let expected = Went::stopped([result], StopReason::NotReplayable);
                assert_eq!(went, expected, "{act:?}");
                assert_eq!(server.begun(), 1, "{act:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_answer_to_a_stream_that_is_gone_comes_back_with_its_whole_body() {
    let refused = Answer::new(503).send(AnswerBody::Chunked(
        vec!["no ".into(), "more".into()],
        Vec::new(),
    ));
    let server = H1::start(refused).await;
    let client = retrying(support::client(), at_once(2));
    let (outcome, _) = send(client.put(server.url("/")).body(chunked())).await;
    assert_eq!(outcome.unwrap().text().await.unwrap(), "no more");
}

on_both_runtimes! {
    /// A reset that comes soon enough finds it unread; then it is taken back, which does no harm.
    async fn a_stream_that_the_peer_refuses_unread_is_not_processed_and_never_half_sent() {
        for run in 0..20 {
            let (body, _) = &KINDS[run % 2];
            let server = H2::start(Act2::ResetUnread(Reason::REFUSED_STREAM)).await;
            let client = retrying(support::client().http2_prior_knowledge(), at_once(2));
            let (_, went) = send(client.post(server.url("/")).body(body())).await;
            assert_eq!(went.results, vec![Failure(REFUSED_STREAM); server.begun()]);
            assert_eq!(server.count(), 0);
        }
    }
}

/// A server that lets no byte of the first body through and does this to its stream, whose head it
/// has; the second it takes.
async fn closed_window(
    act: impl Fn(&mut h2::server::SendResponse<bytes::Bytes>) + Send + 'static,
) -> (SocketAddr, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, log) = (listener.local_addr().unwrap(), Log::default());
    let seen = log.clone();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::Builder::new()
            .initial_window_size(0)
            .handshake::<_, bytes::Bytes>(socket)
            .await
            .unwrap();
        let mut first = None;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            seen.note_begun();
            if first.is_none() {
                act(&mut respond);
                let _ = connection.set_initial_window_size(1 << 16);
                first = Some(request);
                continue;
            }
            // The first time was too early where the client had not yet agreed to the settings.
            let _ = connection.set_initial_window_size(1 << 16);
            let seen = seen.clone();
            tokio::spawn(async move {
                let (parts, mut stream) = request.into_parts();
                let mut body = Vec::new();
                while let Some(Ok(piece)) = stream.data().await {
                    body.extend_from_slice(&piece);
                }
                seen.note(support::log::Received {
                    connection: 0,
                    method: parts.method,
                    path: parts.uri.path().to_owned(),
                    headers: parts.headers,
                    body: body.into(),
                });
                let answer = http::Response::new(());
                respond.send_response(answer, true).unwrap();
            });
        }
    });
    (addr, log)
}

on_both_runtimes! {
    /// hyper drops the unread stream in a task of its own, so it may come back too late.
    async fn a_stream_that_was_refused_before_a_byte_of_it_could_go_out_is_never_half_sent() {
        for run in 0..20 {
            let (body, _) = &KINDS[run % 2];
            let refuse = |stream: &mut h2::server::SendResponse<_>| {
                stream.send_reset(Reason::REFUSED_STREAM);
            };
            let (addr, log) = closed_window(refuse).await;
            let client = retrying(support::client().http2_prior_knowledge(), at_once(2));
            let (_, went) = send(client.post(format!("http://{addr}/")).body(body())).await;
            match went.stop {
                None => {
                    assert_eq!(went.results, [Failure(NotProcessed), OK]);
                    assert_eq!(log.requests()[0].body, WHOLE);
                }
                Some(reason) => {
                    assert_eq!(reason, StopReason::NotReplayable);
                    assert_eq!((log.begun(), log.count()), (1, 0));
                }
            }
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_still_unread_when_its_head_is_answered_is_gone() {
    for run in 0..10 {
        let (body, _) = &KINDS[run % 2];
        let answer = |stream: &mut h2::server::SendResponse<_>| {
            let refused = http::Response::builder().status(503).body(()).unwrap();
            stream.send_response(refused, true).unwrap();
        };
        let (addr, log) = closed_window(answer).await;
        let client = retrying(support::client().http2_prior_knowledge(), at_once(2));
        let (_, went) = send(client.put(format!("http://{addr}/")).body(body())).await;
        assert_eq!(
            went,
            Went::stopped([UNAVAILABLE], StopReason::NotReplayable)
        );
        assert_eq!(log.begun(), 1);
    }
}

/// Nobody reads a stream that says that it is at its end before it has begun.
#[tokio::test]
async fn an_empty_stream_comes_back_after_connecting_failed_and_at_no_other_time() {
    let empty = || Body::wrap(String::new());
    let (road, server) = refused().await.send(Method::POST, empty()).await;
    assert_eq!(road, Went::answered([Failure(Connect), OK]));
    assert_eq!(server.requests()[0].body, "");

    for (act, result) in [
        (Act::status(503), UNAVAILABLE),
        (Act::CloseAfterReading, Failure(Closed)),
    ] {
        let server = H1::start(act).await;
        let client = retrying(support::client(), at_once(2));
        let (_, went) = send(client.put(server.url("/")).body(empty())).await;
        assert_eq!(went, Went::stopped([result], StopReason::NotReplayable));
        assert_eq!(server.count(), 1);
    }
}

// ---- whose error it is ----

#[tokio::test]
async fn a_stream_that_fails_by_itself_is_no_failure_of_the_transport() {
    let server = H1::start(Act::ok("")).await;
    let client = retrying(support::client(), at_once(2));
    let broken = stream::iter([Ok("one, "), Err(io::Error::other("disk on fire"))]);
    let request = client.put(server.url("/")).body(Body::wrap_stream(broken));
    let (outcome, went) = send(request).await;
    assert_eq!(
        went,
        Went::stopped(
            [reqwest_retry_rules::AttemptResult::Error],
            StopReason::NotRetryable
        )
    );
    let error = outcome.unwrap_err();
    let mut chain = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
    assert!(chain.any(|link| link.to_string() == "disk on fire"));
    assert_eq!(server.count(), 0);
}
