//! Frames of HTTP/2 that are wrong.

use std::time::Duration;

use super::{policy, soon};
use crate::support;
use crate::support::h2::{Act, H2};
use crate::support::sends::{retrying, send};

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
            .timeout(Duration::from_millis(500));
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
