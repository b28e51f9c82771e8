//! Frames of HTTP/2 that are wrong, or too many.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::sends::{retrying, send};
use crate::support::h2::{Act, H2};
use crate::support::raw::Raw;
use crate::{assert_no_more_than, held, policy, soon, support};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// `:status 200`, and nothing else.
const STATUS_200: &[u8] = &[0x88];

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let answer = frame(1, 0x4, 1, STATUS_200);
    let with_length = frame(1, 0x4, 1, &[&[0x88, 0x0f, 0x0d, 1], &b"9"[..]].concat());
    vec![
        (
            "an answer shorter than its length",
            [with_length.clone(), frame(0, 1, 1, b"body")].concat(),
        ),
        (
            "an answer longer than its length",
            [with_length, frame(0, 1, 1, b"more than nine")].concat(),
        ),
        ("a body before its head", frame(0, 0, 1, b"body")),
        (
            "an answer to a stream that was not asked for",
            frame(1, 0x5, 3, STATUS_200),
        ),
        ("a stream of the server's own", frame(1, 0x5, 2, STATUS_200)),
        (
            "a push that was not allowed",
            frame(5, 0x4, 1, &[0, 0, 0, 2, 0x82]),
        ),
        ("a head that does not unpack", frame(1, 0x4, 1, &[0xff; 20])),
        (
            "a head without a status",
            frame(1, 0x5, 1, &[0x40, 1, b'a', 1, b'b']),
        ),
        ("a head that is never continued", frame(1, 0, 1, STATUS_200)),
        ("a frame that is too large", frame(0, 0, 1, &[b'x'; 20_000])),
        (
            "a window that is too large",
            frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        ),
        ("a window that grows by nothing", frame(8, 0, 1, &[0; 4])),
        ("settings of a broken length", frame(4, 0, 0, &[0; 5])),
        ("a head twice", [answer.clone(), answer].concat()),
    ]
}

/// Whatever it is taken for, it is taken for sent.
#[tokio::test]
async fn frames_that_lie_cost_a_post_one_sending() {
    for (what, bytes) in frames() {
        let server = H2::start(Act::Raw(bytes.into())).await;
        let client = support::client()
            .http2_prior_knowledge()
            .timeout(Duration::from_millis(200));
        let client = retrying(client, policy());
        let request = client.post(server.url("/")).body("order");
        let (outcome, went) = soon(what, send(request)).await;
        if let Ok(answer) = outcome {
            let _ = soon(what, answer.text()).await;
        }
        assert_eq!(
            (went.results.len(), server.begun()),
            (1, 1),
            "{what} {went:?}"
        );
    }
}

#[tokio::test]
async fn frames_without_end_are_cut_off_or_time_out() {
    let floods = [
        ("pings", frame(6, 0, 0, &[0; 8])),
        ("settings", frame(4, 0, 0, &[])),
        ("empty pieces of a body", frame(0, 0, 1, &[])),
        (
            "a head that is continued",
            frame(9, 0, 1, &[0x40, 1, b'a', 1, b'b']),
        ),
        ("resets", frame(3, 0, 1, &[0, 0, 0, 2])),
    ];
    let before = held();
    for (what, again) in floods {
        let first = match what {
            "empty pieces of a body" => frame(1, 0x4, 1, STATUS_200),
            "a head that is continued" => frame(1, 0, 1, STATUS_200),
            _ => Vec::new(),
        };
        let server = Raw::start(move |mut socket, _, log| {
            let (first, again) = (first.clone(), again.repeat(1000));
            async move {
                if socket.read(&mut [0; 64 * 1024]).await? == 0 {
                    return Ok(());
                }
                log.note_begun();
                socket.write_all(&frame(4, 0, 0, &[])).await?;
                // The request may come a little after the client's preface.
                tokio::time::sleep(Duration::from_millis(50)).await;
                socket.write_all(&first).await?;
                let (mut reader, mut writer) = socket.into_split();
                let reading = async move {
                    while reader.read(&mut [0; 4096]).await? > 0 {}
                    std::io::Result::Ok(())
                };
                let writing = async move {
                    loop {
                        writer.write_all(&again).await?
                    }
                };
                tokio::select! {
                    done = reading => done,
                    done = writing => done,
                }
            }
        })
        .await;
        let client = support::client()
            .http2_prior_knowledge()
            .timeout(Duration::from_millis(500));
        let client = retrying(client, policy());
        let request = client.post(server.url("http", "/"));
        let (outcome, went) = soon(what, send(request)).await;
        if let Ok(answer) = outcome {
            let _ = soon(what, answer.text()).await;
        }
        // On a busy machine time may be up before the server has read a byte.
        assert!(server.begun() <= 1, "{what} {went:?}");
        assert_eq!(went.results.len(), 1, "{what} {went:?}");
    }
    assert_no_more_than(64 << 20, before);
}
