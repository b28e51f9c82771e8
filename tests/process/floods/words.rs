//! Heads, bodies and what is around them, of HTTP/1.1.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::StopReason;
use reqwest_retry_rules::TransportError::{Protocol, Timeout};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{LITTLE, patient, soon, within};
use crate::TURN;
use crate::support;
use crate::support::h1::H1;
use crate::support::raw::Raw;
use crate::support::script::Answer;
use crate::support::sends::{Went, on_both_runtimes, send};

/// A server that reads a request and writes `first` and then `again` for as long as it is taken.
/// Counts requests, and bytes.
async fn flooding(first: &'static str, again: Vec<u8>) -> (Raw, Arc<AtomicUsize>) {
    let written = Arc::new(AtomicUsize::new(0));
    let counter = written.clone();
    let server = Raw::start(move |mut socket, _, log| {
        let (counter, again) = (counter.clone(), again.clone());
        async move {
            if socket.read(&mut [0; 64 * 1024]).await? == 0 {
                return Ok(());
            }
            log.note_begun();
            socket.write_all(first.as_bytes()).await?;
            let mut moment = Duration::from_millis(10);
            loop {
                socket.write_all(&again).await?;
                counter.fetch_add(again.len(), Ordering::SeqCst);
                // hyper looks up from interim answers only when there are none for a moment, which
                // is longer where the machine is busy.
                if first.is_empty() {
                    tokio::time::sleep(moment).await;
                    moment += moment / 8;
                }
            }
        }
    })
    .await;
    (server, written)
}

/// Many times over, so that it fills the wire.
fn over_and_over(words: &str) -> Vec<u8> {
    words.repeat(16 * 1024 / words.len()).into_bytes()
}

/// What the kernel holds of one connection's on its own account, at most.
const KERNEL: usize = 16 << 20;

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let _turn = TURN.lock().await;
    for (first, again) in [
        ("HTTP/1.1 200 OK\r\n", "x-more: yes\r\n"),
        ("HTTP/1.1 200 OK\r\nx-more: ", "yes"),
        ("HTTP/1.1 200 ", "OK"),
        ("HTTP/1.1 200 OK\r\n", " "),
        ("", "H"),
        ("", "\r\n"),
    ] {
        for (method, attempts) in [(Method::POST, 1), (Method::GET, 3)] {
            let (server, written) = flooding(first, over_and_over(again)).await;
            let client = patient(support::client(), 150);
            let request = client.request(method.clone(), server.url("http", "/"));
            let (_, went) = soon(again, send(request)).await;
            // Which of the two it is may be chance, and differ from attempt to attempt.
            let (last, earlier) = went.results.split_last().unwrap();
            for class in earlier {
                assert_eq!(*class, Failure(Timeout), "{again:?} {went:?}");
            }
            let made = went.results.len();
            assert!(server.begun() <= made, "{again:?} {went:?}");
            if *last == Failure(Protocol) {
                assert!(made <= attempts, "{again:?} {went:?}");
                let bytes = written.load(Ordering::SeqCst);
                assert!(bytes < made * KERNEL, "{again:?}: {bytes} bytes");
            } else {
                assert_eq!(*last, Failure(Timeout), "{again:?} {went:?}");
                assert_eq!(made, attempts, "{again:?} {went:?}");
            }
        }
    }
}

on_both_runtimes! {
    async fn what_comes_without_end_costs_no_memory_and_no_more_time_than_there_is() {
        let _turn = TURN.lock().await;
        let floods = [
            // Interim answers.
            ("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
            ("", "HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n"),
            // A refused answer.
            ("HTTP/1.1 503 No\r\n\r\n", "more"),
            ("HTTP/1.1 503 No\r\ncontent-length: 1000000000000\r\n\r\n", "more"),
            ("HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n", "4\r\nmore\r\n"),
            ("HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n4;", "more"),
            ("HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n", "1;more\r\nx\r\n"),
            ("HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "x-more: yes\r\n"),
            ("HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-more: ", "yes"),
            // A success that is to be completed.
            ("HTTP/1.1 200 OK\r\n\r\n", "more"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;", "more"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "0;"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "x-more: yes\r\n"),
        ];
        for (first, again) in floods {
            for (method, most) in [(Method::POST, 1), (Method::GET, 3)] {
                let (server, _) = flooding(first, over_and_over(again)).await;
                let client = patient(support::client(), 150);
                let request = client.request(method.clone(), server.url("http", "/"));
                let (_, went) = within(LITTLE, soon(again, send(request))).await;
                assert!(went.results.len() <= most, "{first:?} {again:?} {went:?}");
                assert!(server.begun() <= most, "{first:?} {again:?} {went:?}");
                let gone = || server.open() == 0;
                support::eventually(&format!("closed: {first:?} {again:?} {method}"), gone).await;
            }
        }
    }
}

#[tokio::test]
async fn a_bomb_in_a_small_body_goes_off_nowhere() {
    let _turn = TURN.lock().await;
    use std::io::Write;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        gzip.write_all(&[0; 1 << 20]).unwrap();
    }
    let bomb: Bytes = gzip.finish().unwrap().into();
    for status in [200, 503] {
        let answer = Answer::new(status)
            .header("content-encoding", "gzip")
            .body(bomb.clone());
        let server = H1::start(answer).await;
        let sent = send(patient(support::client(), 10_000).get(server.url("/")));
        let (outcome, _) = within(LITTLE, soon("a bomb", sent)).await;
        assert_eq!(outcome.unwrap().status(), status);
    }
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_waited_for_as_long_as_the_timeout_says() {
    let _turn = TURN.lock().await;
    let server = Raw::start(|mut socket, _, log| async move {
        if socket.read(&mut [0; 1024]).await? == 0 {
            return Ok(());
        }
        log.note_begun();
        for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n" {
            tokio::time::sleep(Duration::from_millis(50)).await;
            socket.write_all(&[*byte]).await?;
        }
        Ok(())
    })
    .await;
    let (_, went) = soon(
        "a slow head",
        send(patient(support::client(), 500).post(server.url("http", "/"))),
    )
    .await;
    assert_eq!(
        went,
        Went::stopped([Failure(Timeout)], StopReason::MethodNotAllowed)
    );
    assert_eq!(server.begun(), 1);
}
