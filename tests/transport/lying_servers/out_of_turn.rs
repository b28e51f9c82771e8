//! Answers that come too early, and bytes that nobody asked for.

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;

use super::{OK, client, soon};
use crate::support::h1::H1;
use crate::support::script::{Act, Answer, End};
use crate::support::sends::{on_both_runtimes, send};

fn upload(stream: bool) -> Body {
    let page = Bytes::from(vec![b'x'; 1 << 16]);
    match stream {
        false => Body::from(vec![b'x'; 8 << 20]),
        true => Body::wrap_stream(stream::iter(
            std::iter::repeat_n(page, 128).map(Ok::<_, std::io::Error>),
        )),
    }
}

on_both_runtimes! {
    /// Whether the client sees the answer or the broken upload first is a race, and either will do.
    async fn an_answer_that_comes_while_the_body_is_going_up_sends_no_post_again() {
        for status in [200, 413, 503] {
            for end in [End::Keep, End::Close, End::Reset] {
                for stream in [false, true] {
                    let answer = Answer::new(status).body("early").end(end);
                    let server = H1::start(Act::RespondEarly(answer)).await;
                    let request = client().post(server.url("/")).body(upload(stream));
                    let (outcome, went) = soon("an early answer", send(request)).await;
                    match outcome {
                        Ok(answer) => assert_eq!(answer.status(), status),
                        Err(error) => drop(error),
                    }
                    assert_eq!(went.results.len(), 1, "{status} {end:?} {went:?}");
                    assert_eq!((server.begun(), server.connections()), (1, 1));
                }
            }
        }
    }

    async fn an_answer_that_comes_while_the_body_is_going_up_sends_a_put_again_whole() {
        for end in [End::Keep, End::Close, End::Reset] {
            let early = Act::RespondEarly(Answer::new(503).end(end));
            let server = H1::start(vec![early, Act::ok("done")]).await;
            let request = client().put(server.url("/")).body(upload(false));
            let (_, went) = soon("an early answer", send(request)).await;
            assert_eq!(went.results.len(), 2, "{end:?} {went:?}");
            assert_eq!(went.results[1], OK, "{end:?} {went:?}");
            let requests = server.requests();
            let last = requests.last().unwrap();
            assert!(last.body == vec![b'x'; 8 << 20]);
        }
    }
}

/// What follows an answer on its connection is not the answer to the next request.
#[tokio::test]
async fn bytes_after_an_answer_are_the_answer_to_nothing() {
    let more = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    for (first, own) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood", "good"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n",
            "good",
        ),
        ("HTTP/1.1 204 No\r\n\r\n", ""),
    ] {
        let act = Act::Raw(format!("{first}{more}").into(), End::Keep);
        let server = H1::start(act).await;
        let client = client();
        for _ in 0..10 {
            let (outcome, went) = send(client.post(server.url("/"))).await;
            assert_eq!(went.stop, None, "{first:?}");
            assert_eq!(outcome.unwrap().text().await.unwrap(), own, "{first:?}");
        }
        assert_eq!(server.count(), 10);
    }
}

#[tokio::test]
async fn bytes_after_a_refused_answer_are_the_answer_to_nothing() {
    let more = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    for first in [
        "HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno",
        "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    ] {
        for _ in 0..10 {
            let act = Act::Raw(format!("{first}{more}").into(), End::Keep);
            let server = H1::start(vec![act, Act::ok("good")]).await;
            let (outcome, _) = send(client().get(server.url("/"))).await;
            assert_eq!(outcome.unwrap().text().await.unwrap(), "good", "{first:?}");
        }
    }
}
