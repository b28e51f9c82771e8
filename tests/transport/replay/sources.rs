//! Body sources: a fresh body for every attempt.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use reqwest_retry_rules::AttemptResult::{Error, Failure};
use reqwest_retry_rules::TransportError::*;
use reqwest_retry_rules::{
    BodySource, ErrorExt, FreshBody, RetryError, RetryRule, StopReason, TotalTimeout,
};

use super::{Framing, OK, UNAVAILABLE, framing};
use crate::support::h1::H1;
use crate::support::h2::{Act as Act2, H2};
use crate::support::log::{Log, Received};
use crate::support::script::{Act, Answer, Body as AnswerBody, End};
use crate::support::sends::{Went, at_once, on_both_runtimes, retrying, send};
use crate::support::{self, refused::Refused};

const WHOLE: &str = "one, two, three";

fn pieces() -> Body {
    Body::wrap_stream(stream::iter(
        ["one, ", "two, ", "three"].map(Ok::<_, io::Error>),
    ))
}

/// Counts how often it is asked.
#[derive(Clone, Default)]
struct Asked(Arc<AtomicUsize>);

impl Asked {
    fn again(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A way to make a body, by a sync or an async maker.
struct Kind {
    make: fn() -> FreshBody,
    framed: Framing,
}

fn kinds() -> [Kind; 4] {
    let length = Framing::Length(WHOLE.len() as u64);
    [
        Kind {
            make: || WHOLE.into(),
            framed: length.clone(),
        },
        Kind {
            make: || pieces().into(),
            framed: Framing::Chunked,
        },
        Kind {
            make: || FreshBody::from(pieces()).content_length(15),
            framed: length.clone(),
        },
        Kind {
            make: || FreshBody::from(pieces()).header(CONTENT_LENGTH, 15.into()),
            framed: length,
        },
    ]
}

fn sources(make: fn() -> FreshBody, asked: &Asked) -> [BodySource; 2] {
    let (sync, later) = (asked.clone(), asked.clone());
    [
        BodySource::new(move || {
            sync.again();
            Ok::<_, io::Error>(make())
        }),
        BodySource::from_async(move || {
            later.again();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok::<_, io::Error>(make())
            }
        }),
    ]
}

/// What may happen to the attempts before the last.
fn faults() -> Vec<(Act, reqwest_retry_rules::AttemptResult)> {
    vec![
        (Act::status(503), UNAVAILABLE),
        (Act::CloseAfterReading, Failure(Closed)),
        (Act::CutUpload(1, End::Reset), Failure(Closed)),
        (Act::CloseBeforeReading, Failure(Closed)),
    ]
}

on_both_runtimes! {
    async fn a_source_makes_a_body_for_every_attempt() {
        for Kind { make, framed } in kinds() {
            for (act, result) in faults() {
                let asked = Asked::default();
                for (number, source) in sources(make, &asked).into_iter().enumerate() {
                    let server = H1::start(vec![act.clone(), act.clone(), Act::ok("")]).await;
                    let client = retrying(support::client(), at_once(2));
                    let request = client.put(server.url("/")).with_extension(source);
                    let (_, went) = send(request).await;
                    assert_eq!(went, Went::answered([result, result, OK]), "{act:?}");
                    assert_eq!(asked.times(), 3 * (number + 1), "{act:?}");
                    for request in server.requests() {
                        assert_eq!(request.body, WHOLE, "{act:?}");
                        assert_eq!(framing(&request.headers), framed, "{act:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_source_makes_one_body_where_no_retry_is_possible() {
    for Kind { make, framed } in kinds() {
        let asked = Asked::default();
        for source in sources(make, &asked) {
            let server = H1::start(Act::status(503)).await;
            let client = retrying(support::client(), RetryRule::never());
            let request = client.put(server.url("/")).with_extension(source);
            assert_eq!(request.send().await.unwrap().status(), 503);
            assert_eq!(server.requests()[0].body, WHOLE);
            assert_eq!(framing(&server.requests()[0].headers), framed);
        }
        assert_eq!(asked.times(), 2);
    }
}

#[tokio::test]
async fn a_post_with_a_source_is_sent_once_after_what_may_have_been_processed() {
    for (act, result) in faults() {
        let asked = Asked::default();
        for source in sources(|| WHOLE.into(), &asked) {
            let server = H1::start(act.clone()).await;
            let client = retrying(support::client(), at_once(2));
            let request = client.post(server.url("/")).with_extension(source);
            let (_, went) = send(request).await;
            assert_eq!(went, Went::stopped([result], StopReason::MethodNotAllowed));
            assert_eq!(server.connections(), 1);
        }
        assert_eq!(asked.times(), 2);
    }
}

#[tokio::test]
async fn a_source_makes_bodies_over_http2() {
    for Kind { make, .. } in kinds() {
        for source in sources(make, &Asked::default()) {
            let server = H2::start(vec![Act2::status(503), Act2::ok("")]).await;
            let client = retrying(support::client().http2_prior_knowledge(), at_once(2));
            let request = client.put(server.url("/")).with_extension(source);
            let (_, went) = send(request).await;
            assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
            let bodies: Vec<_> = server.requests().into_iter().map(|r| r.body).collect();
            assert_eq!(bodies, [WHOLE, WHOLE]);
        }
    }
}

// ---- makers that fail ----

#[derive(Debug)]
struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the file is gone")
    }
}

impl std::error::Error for Gone {}

/// Makes so many bodies and then fails, at once and later.
fn failing_after(good: usize) -> [BodySource; 2] {
    let (sync, later) = (Asked::default(), Asked::default());
    let make = move |number: usize| {
        if number < good { Ok(WHOLE) } else { Err(Gone) }
    };
    [
        BodySource::new(move || make(sync.again())),
        BodySource::from_async(move || {
            let number = later.again();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                make(number)
            }
        }),
    ]
}

#[tokio::test]
async fn a_maker_that_fails_first_is_the_error_of_the_send() {
    for rule in [at_once(2), RetryRule::never()] {
        for source in failing_after(0) {
            let server = H1::start(Act::ok("")).await;
            let client = retrying(support::client(), rule.clone());
            let request = client.put(server.url("/")).with_extension(source);
            let error = request.send().await.unwrap_err();
            let Some(RetryError::BodySource { source, .. }) = error.retry_error() else {
                panic!("{error:?}");
            };
            assert!(source.is::<Gone>());
            let reqwest_middleware::Error::Middleware(error) = error else {
                panic!("{error:?}");
            };
            assert!(error.downcast_ref::<RetryError>().is_some());
            assert!(error.chain().any(|link| link.is::<Gone>()));
            assert_eq!(server.connections(), 0);
        }
    }
}

#[tokio::test]
async fn a_maker_that_fails_later_loses_no_answer() {
    for body in [
        AnswerBody::Whole("whole".into()),
        AnswerBody::Later(Duration::from_millis(5), "whole".into()),
        AnswerBody::Chunked(vec!["wh".into(), "ole".into()], Vec::new()),
        AnswerBody::Slow(vec!["wh".into(), "ole".into()], Duration::from_millis(15)),
    ] {
        for source in failing_after(1) {
            let server = H1::start(Answer::new(503).send(body.clone())).await;
            let client = retrying(support::client(), at_once(2));
            let request = client.put(server.url("/")).with_extension(source);
            let (outcome, went) = send(request).await;
            let answer = outcome.unwrap();
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.text().await.unwrap(), "whole", "{body:?}");
            assert_eq!(
                went,
                Went::stopped([UNAVAILABLE], StopReason::NotReplayable)
            );
            assert_eq!(server.count(), 1);
        }
    }
}

#[tokio::test]
async fn a_maker_that_fails_later_loses_no_error() {
    for source in failing_after(2) {
        let nobody = Refused::new();
        let client = retrying(support::client(), at_once(5));
        let request = client.post(nobody.url("/")).with_extension(source);
        let (outcome, went) = send(request).await;
        assert!(outcome.unwrap_err().is_connect());
        assert_eq!(
            went,
            Went::stopped([Failure(Connect); 2], StopReason::NotReplayable)
        );
    }
}

/// Makes so many bodies at once and the next never.
fn hanging_after(good: usize) -> BodySource {
    let asked = Asked::default();
    BodySource::from_async(move || {
        let number = asked.again();
        async move {
            if number >= good {
                std::future::pending::<()>().await;
            }
            Ok::<_, io::Error>(WHOLE)
        }
    })
}

#[tokio::test]
async fn a_first_body_that_takes_longer_than_the_total_timeout_sends_nothing() {
    let server = H1::start(Act::ok("")).await;
    let client = retrying(support::client(), at_once(2));
    let request = client
        .put(server.url("/"))
        .with_extension(hanging_after(0))
        .with_extension(TotalTimeout(Duration::from_millis(50)));
    let (outcome, went) = send(request).await;
    assert!(outcome.unwrap_err().timed_out());
    assert_eq!(went, Went::stopped([], StopReason::TotalTimeout));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_later_body_that_takes_longer_than_the_total_timeout_loses_no_answer() {
    let server = H1::start(Answer::new(503).body("whole")).await;
    let client = retrying(support::client(), at_once(2));
    let request = client
        .put(server.url("/"))
        .with_extension(hanging_after(1))
        .with_extension(TotalTimeout(Duration::from_millis(1000)));
    let (outcome, went) = send(request).await;
    assert_eq!(outcome.unwrap().text().await.unwrap(), "whole");
    assert_eq!(
        went,
        Went::stopped([UNAVAILABLE], StopReason::Budget(Duration::ZERO))
    );
}

// ---- bodies of another length than was stated ----

/// How a length can be wrong: stated too long, too short inside a piece, too short between pieces.
const WRONG: [u64; 5] = [16, 20, 14, 10, 5];

fn misstated(length: u64) -> [FreshBody; 2] {
    [
        FreshBody::from(pieces()).content_length(length),
        FreshBody::from(pieces()).header(CONTENT_LENGTH, length.into()),
    ]
}

#[tokio::test]
async fn a_body_of_another_length_than_was_stated_never_arrives_as_a_whole() {
    for length in WRONG {
        for by in 0..2 {
            let server = H1::start(Act::ok("")).await;
            let client = retrying(support::client(), at_once(2));
            let source = BodySource::new(move || {
                let [setter, header] = misstated(length);
                Ok::<_, io::Error>(if by == 0 { setter } else { header })
            });
            let request = client.put(server.url("/")).with_extension(source);
            let (outcome, went) = send(request).await;
            outcome.unwrap_err();
            assert_eq!(
                went,
                Went::stopped([Error], StopReason::NotRetryable),
                "{length}"
            );
            assert_eq!(server.count(), 0, "{length}");
        }
    }
}

#[tokio::test]
async fn a_body_of_another_length_than_was_stated_never_arrives_as_a_whole_over_http2() {
    for length in WRONG {
        let server = H2::start(Act2::ok("")).await;
        let client = retrying(support::client().http2_prior_knowledge(), at_once(2));
        let source = BodySource::new(move || {
            let [setter, _] = misstated(length);
            Ok::<_, io::Error>(setter)
        });
        let request = client.put(server.url("/")).with_extension(source);
        let (outcome, went) = send(request).await;
        outcome.unwrap_err();
        // Without the feature nobody can tell whose fault it is.
        let attempts = if cfg!(feature = "http2") { 1 } else { 3 };
        assert_eq!(went.results.len(), attempts, "{length} {went:?}");
        assert_eq!(server.count(), 0, "{length}");
    }
}

#[tokio::test]
async fn a_later_body_of_another_length_than_was_stated_never_arrives_as_a_whole() {
    for length in WRONG {
        let asked = Asked::default();
        let server = H1::start(vec![Act::status(503), Act::ok("")]).await;
        let client = retrying(support::client(), at_once(2));
        let source = BodySource::new(move || {
            let length = if asked.again() == 0 { 15 } else { length };
            Ok::<_, io::Error>(FreshBody::from(pieces()).content_length(length))
        });
        let request = client.put(server.url("/")).with_extension(source);
        let (outcome, went) = send(request).await;
        outcome.unwrap_err();
        assert_eq!(
            went,
            Went::stopped([UNAVAILABLE, Error], StopReason::NotRetryable),
            "{length}"
        );
        assert_eq!(server.count(), 1, "{length}");
    }
}

#[tokio::test]
async fn a_length_in_the_head_gives_way_to_what_a_body_knows_of_itself() {
    let server = H1::start(vec![Act::status(503), Act::ok("")]).await;
    let client = retrying(support::client(), at_once(2));
    let asked = Asked::default();
    let source = BodySource::new(move || {
        Ok::<_, io::Error>(if asked.again() == 0 { "four" } else { WHOLE })
    });
    let request = client
        .put(server.url("/"))
        .header(CONTENT_LENGTH, 4)
        .with_extension(source);
    let (_, went) = send(request).await;
    assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
    assert_eq!(bodies(&server), ["four", WHOLE]);
    assert_eq!(framing(&server.requests()[1].headers), Framing::Length(15));
}

fn bodies(log: &Log) -> Vec<bytes::Bytes> {
    log.requests().into_iter().map(|r| r.body).collect()
}

/// A body in one piece, after which the stream says only later that it is over.
#[tokio::test]
async fn a_body_whose_end_comes_late_goes_out_whole() {
    let server = H1::start(Act::ok("")).await;
    let client = retrying(support::client(), at_once(2));
    let source = BodySource::new(|| {
        let pieces = stream::unfold(0, |number| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let piece = ["", "one, two", "", ", three", ""].get(number)?;
            Some((Ok::<_, io::Error>(*piece), number + 1))
        });
        Ok::<_, io::Error>(FreshBody::from(Body::wrap_stream(pieces)).content_length(15))
    });
    let (_, went) = send(client.put(server.url("/")).with_extension(source)).await;
    assert_eq!(went, Went::answered([OK]));
    assert_eq!(bodies(&server), [WHOLE]);
}

#[tokio::test]
async fn an_empty_body_of_stated_length_goes_out() {
    let server = H1::start(vec![Act::status(503), Act::ok("")]).await;
    let client = retrying(support::client(), at_once(2));
    let source = BodySource::new(|| {
        let nothing = stream::iter([Ok::<_, io::Error>(""); 0]);
        Ok::<_, io::Error>(FreshBody::from(Body::wrap_stream(nothing)).content_length(0))
    });
    let (_, went) = send(client.put(server.url("/")).with_extension(source)).await;
    assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
    assert_eq!(bodies(&server), ["", ""]);
    assert_eq!(framing(&server.requests()[1].headers), Framing::Length(0));
}

// ---- a body of the request's own, and a source ----

#[tokio::test]
async fn a_body_of_the_requests_own_goes_first_and_the_source_makes_the_others() {
    let own: [fn() -> Body; 3] = [
        || "own".into(),
        || Body::wrap("own".to_owned()),
        || Body::wrap_stream(stream::iter([Ok::<_, io::Error>("own")])),
    ];
    for own in own {
        for (act, result) in faults() {
            let asked = Asked::default();
            for source in sources(|| WHOLE.into(), &asked) {
                let server = H1::start(vec![act.clone(), act.clone(), Act::ok("")]).await;
                let client = retrying(support::client(), at_once(2));
                let request = client.put(server.url("/")).body(own());
                let (_, went) = send(request.with_extension(source)).await;
                assert_eq!(went, Went::answered([result, result, OK]), "{act:?}");
                let bodies = bodies(&server);
                assert_eq!(bodies.last().unwrap(), WHOLE, "{act:?}");
                if bodies.len() == 3 {
                    assert_eq!(bodies, ["own", WHOLE, WHOLE], "{act:?}");
                }
            }
            assert_eq!(asked.times(), 4);
        }
    }
}

#[tokio::test]
async fn headers_of_a_body_go_with_it_and_with_no_other() {
    let server = H1::start(vec![Act::status(503), Act::status(503), Act::ok("")]).await;
    let client = retrying(support::client(), at_once(2));
    let asked = Asked::default();
    let source = BodySource::new(move || {
        let body = FreshBody::from(WHOLE);
        Ok::<_, io::Error>(match asked.again() {
            0 => body.header(CONTENT_TYPE, HeaderValue::from_static("text/fresh")),
            _ => body,
        })
    });
    let request = client
        .put(server.url("/"))
        .header(CONTENT_TYPE, "text/own")
        .body("own")
        .with_extension(source);
    send(request).await.0.unwrap();
    let kinds: Vec<_> = server
        .requests()
        .into_iter()
        .map(|request| request.headers[CONTENT_TYPE].clone())
        .collect();
    assert_eq!(kinds, ["text/own", "text/fresh", "text/own"]);
}

// ---- a file ----

struct TempFile(PathBuf);

impl TempFile {
    fn new(contents: &[u8]) -> TempFile {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("retry-rules-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, contents).unwrap();
        TempFile(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

on_both_runtimes! {
    async fn a_file_is_opened_again_for_every_attempt() {
        let contents: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let file = Arc::new(TempFile::new(&contents));
        for measured in [false, true] {
            let file = file.clone();
            let source = BodySource::from_async(move || {
                let file = file.clone();
                async move {
                    let opened = tokio::fs::File::open(&file.0).await?;
                    let length = opened.metadata().await?.len();
                    let body = FreshBody::from(opened);
                    Ok::<_, io::Error>(if measured { body.content_length(length) } else { body })
                }
            });
            let server = H1::start(vec![
                Act::CutUpload(100_000, End::Reset),
                Act::CutUpload(1_000_000, End::Close),
                Act::status(503),
                Act::ok(""),
            ])
            .await;
            let client = retrying(support::client(), at_once(5));
            let (_, went) = send(client.put(server.url("/")).with_extension(source)).await;
            assert_eq!(
                went,
                Went::answered([Failure(Closed), Failure(Closed), UNAVAILABLE, OK])
            );
            let requests = server.requests();
            assert_eq!(requests.len(), 2);
            let framed = match measured {
                true => Framing::Length(1_200_000),
                false => Framing::Chunked,
            };
            for request in requests {
                assert!(request.body == contents);
                assert_eq!(framing(&request.headers), framed);
            }
        }
    }
}

#[tokio::test]
async fn a_file_that_is_not_opened_again_is_sent_once() {
    let file = TempFile::new(&[b'x'; 1_000_000]);
    let server = H1::start(Act::CutUpload(100_000, End::Reset)).await;
    let client = retrying(support::client(), at_once(5));
    let opened = tokio::fs::File::open(&file.0).await.unwrap();
    let (outcome, went) = send(client.put(server.url("/")).body(opened)).await;
    outcome.unwrap_err();
    assert_eq!(
        went,
        Went::stopped([Failure(Closed)], StopReason::NotReplayable)
    );
    assert_eq!((server.begun(), server.count()), (1, 0));
}

// ---- multipart ----

fn form() -> Form {
    let lines = stream::iter(["a,b\n", "1,2\n"].map(Ok::<_, io::Error>));
    Form::new().text("title", "Report").part(
        "table",
        Part::stream(Body::wrap_stream(lines)).file_name("t.csv"),
    )
}

/// The parts of a multipart body, by the boundary that its content type names.
fn parts(request: &Received) -> Vec<(String, String)> {
    let kind = request.headers[CONTENT_TYPE].to_str().unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let delimiter = format!("--{boundary}");
    let (parts, end) = body.rsplit_once(&delimiter).unwrap();
    assert_eq!(end, "--\r\n");
    let parts = parts.split(&delimiter).skip(1).map(|part| {
        let part = part
            .strip_prefix("\r\n")
            .unwrap()
            .strip_suffix("\r\n")
            .unwrap();
        let (head, content) = part.split_once("\r\n\r\n").unwrap();
        let name = head.split("name=\"").nth(1).unwrap();
        let name = name.split('"').next().unwrap();
        (name.to_owned(), content.to_owned())
    });
    parts.collect()
}

fn multipart() -> BodySource {
    BodySource::new(|| {
        let form = form();
        let kind = format!("multipart/form-data; boundary={}", form.boundary());
        let kind = HeaderValue::try_from(kind)?;
        let body = Body::wrap_stream(form.into_stream());
        Ok::<_, http::Error>(FreshBody::from(body).header(CONTENT_TYPE, kind))
    })
}

#[tokio::test]
async fn a_multipart_form_is_made_anew_for_every_attempt() {
    let expected = [
        ("title".to_owned(), "Report".to_owned()),
        ("table".to_owned(), "a,b\n1,2\n".to_owned()),
    ];
    let server = H1::start(vec![
        Act::status(503),
        Act::CloseAfterReading,
        Act::CutUpload(20, End::Reset),
        Act::ok(""),
    ])
    .await;
    let client = retrying(support::client(), at_once(3));
    let request = client.put(server.url("/")).with_extension(multipart());
    let (_, went) = send(request).await;
    assert_eq!(
        went,
        Went::answered([UNAVAILABLE, Failure(Closed), Failure(Closed), OK])
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let boundaries: std::collections::HashSet<_> = requests
        .iter()
        .map(|request| request.headers[CONTENT_TYPE].clone())
        .collect();
    assert_eq!(boundaries.len(), 3);
    for request in requests {
        assert_eq!(parts(&request), expected);
    }
}

#[tokio::test]
async fn a_multipart_form_of_the_requests_own_goes_first_with_its_own_boundary() {
    let server = H1::start(vec![Act::status(503), Act::ok("")]).await;
    let client = retrying(support::client(), at_once(3));
    let request = client
        .request(Method::PUT, server.url("/"))
        .multipart(form())
        .with_extension(multipart());
    let (_, went) = send(request).await;
    assert_eq!(went, Went::answered([UNAVAILABLE, OK]));
    let requests = server.requests();
    assert_ne!(
        requests[0].headers[CONTENT_TYPE],
        requests[1].headers[CONTENT_TYPE]
    );
    assert_eq!(parts(&requests[0]), parts(&requests[1]));
}

#[tokio::test]
async fn a_multipart_form_without_a_source_is_sent_once() {
    let server = H1::start(Act::status(503)).await;
    let client = retrying(support::client(), at_once(3));
    let (outcome, went) = send(client.put(server.url("/")).multipart(form())).await;
    assert_eq!(outcome.unwrap().text().await.unwrap(), "refused");
    assert_eq!(
        went,
        Went::stopped([UNAVAILABLE], StopReason::NotReplayable)
    );
    assert_eq!(server.count(), 1);
}
