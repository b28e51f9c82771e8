//! Frames of HTTP/2.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{LITTLE, patient, soon, within};
use crate::TURN;
use crate::support;
use crate::support::raw::Raw;
use crate::support::sends::send;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_without_end_are_cut_off_or_time_out() {
    let _turn = TURN.lock().await;
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
        let client = patient(support::client().http2_prior_knowledge(), 500);
        let request = client.post(server.url("http", "/"));
        let went = within(LITTLE, async {
            let (outcome, went) = soon(what, send(request)).await;
            if let Ok(answer) = outcome {
                let _ = soon(what, answer.text()).await;
            }
            went
        });
        let went = went.await;
        assert_eq!(went.results.len(), 1, "{what} {went:?}");
        assert!(server.begun() <= 1, "{what} {went:?}");
        drop(client);
        support::eventually("the connection is closed", || server.open() == 0).await;
    }
}
