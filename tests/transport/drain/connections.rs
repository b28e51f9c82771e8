//! How many connections it takes: real servers count.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use reqwest_retry_rules::{
    AttemptRecord, ResponseExt, RetryEvent, RetryObserver, RetryPolicy, RetryRule,
};

use super::{OK, UNAVAILABLE, after, ms};
use crate::support;
use crate::support::h1::H1;
use crate::support::h2::{Act as Act2, H2};
use crate::support::script::{Act, Answer, Body, End};
use crate::support::sends::{Went, on_both_runtimes, retrying, send};
use crate::support::tls::{Cert, Tls, trusting};

/// How many connections a server sees that answers 503, 503, 503, 200.
async fn connections(refused: &Answer, policy: &RetryPolicy) -> usize {
    paused(Over::Tcp, refused, policy).await.0
}

/// What HTTP/1.1 is spoken over.
#[derive(Clone, Copy)]
enum Over {
    Tcp,
    Tls,
}

fn thrice(refused: &Answer) -> Vec<Act> {
    let refused = Act::from(refused.clone());
    vec![refused.clone(), refused.clone(), refused, Act::ok("done")]
}

/// The same, and how long the pauses between the attempts were in all.
async fn paused(over: Over, refused: &Answer, policy: &RetryPolicy) -> (usize, Duration) {
    let (server, client) = match over {
        Over::Tcp => (H1::start(thrice(refused)).await, support::client()),
        Over::Tls => {
            let acceptor = Tls::new(Cert::Good).acceptor();
            let server = H1::start_tls(acceptor, thrice(refused)).await;
            (server, trusting())
        }
    };
    let client = retrying(client.gzip(true), policy.clone());
    let (outcome, went) = send(client.get(server.url("/"))).await;
    let answer = outcome.unwrap();
    let report = answer.retry_report().unwrap();
    let attempts: Duration = report.records().iter().map(AttemptRecord::elapsed).sum();
    let paused = report.elapsed() - attempts;
    assert_eq!(answer.text().await.unwrap(), "done");
    assert_eq!(
        went,
        Went::answered([UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, OK])
    );
    (server.connections(), paused)
}

/// Twenty sends at once take one connection each, at the latest where they wait long enough for a
/// busy machine. Connections that are not used again show however long the wait is.
async fn take_one_at_once(refused: Answer, policy: impl Fn(Duration) -> RetryPolicy) {
    let mut met = Vec::new();
    for wait in [100, 1000, 6000] {
        let policy = policy(ms(wait));
        let counts = join_all((0..20).map(|_| connections(&refused, &policy))).await;
        if counts == [1; 20] {
            return;
        }
        met.push((wait, counts));
    }
    panic!("more than one connection with every wait: {met:?}");
}

/// How much longer than its wait a pause may be to read an answer to its end.
const GRACE: Duration = ms(20);

/// Sends in turn take one connection each. One that takes more tells nothing if a pause may have
/// lasted as long as the grace, as it may on a busy machine. Such a machine may also keep hyper
/// from its turns, so one in twenty others may take more.
async fn take_one(over: Over, refused: Answer, wait: Duration) {
    let policy = waiting(wait);
    let (mut one, mut more) = (0, Vec::new());
    for _ in 0..1000 {
        match paused(over, &refused, &policy).await {
            (1, _) => one += 1,
            (_, paused) if paused >= wait * 2 + GRACE => {}
            (count, _) => more.push(count),
        }
        if one == (more.len() + 1) * 20 {
            return;
        }
    }
    panic!("{one} took one connection, and these more: {more:?}");
}

/// Twenty sends at once take four connections each.
async fn take_four(refused: Answer, policy: RetryPolicy) {
    let counts = join_all((0..20).map(|_| connections(&refused, &policy)));
    assert_eq!(counts.await, [4; 20]);
}

fn refused() -> Answer {
    Answer::new(503)
}

fn large() -> Vec<u8> {
    vec![b'x'; 40_000]
}

fn waiting(wait: Duration) -> RetryPolicy {
    RetryPolicy::from(after(wait))
}

on_both_runtimes! {
    async fn bodies_that_come_with_the_head_take_one_connection() {
        for wait in [ms(0), ms(1), ms(5)] {
            take_one(Over::Tcp, refused().body(large()), wait).await;
        }
    }

    async fn over_tls_bodies_that_come_with_the_head_take_one_connection() {
        take_one(Over::Tls, refused().body(large()), ms(0)).await;
    }

    /// A timer takes a millisecond at least. A busy machine may take any time, but not each time.
    async fn where_there_is_no_wait_no_timer_is_set() {
        let (refused, policy) = (refused().body(large()), waiting(ms(0)));
        for _ in 0..1000 {
            let (_, plain) = paused(Over::Tcp, &refused, &policy).await;
            let (_, tls) = paused(Over::Tls, &refused, &policy).await;
            if plain < ms(3) && tls < ms(3) {
                return;
            }
        }
        panic!("three pauses never took less than three milliseconds");
    }

    async fn bodies_that_come_after_the_head_take_one_connection() {
        let refused = refused().body_later(ms(30), large());
        take_one_at_once(refused, waiting).await;
    }

    async fn bodies_that_come_within_the_grace_take_one_connection() {
        take_one(Over::Tcp, refused().body_later(ms(2), large()), ms(0)).await;
    }

    async fn answers_without_a_body_take_one_connection() {
        take_one(Over::Tcp, refused(), ms(0)).await;
    }

    async fn chunked_bodies_with_trailers_take_one_connection() {
        let pieces = vec![Bytes::from(vec![b'x'; 10_000]); 4];
        let trailers = vec![("x-sum".to_owned(), "1".to_owned())];
        let refused = refused().send(Body::Chunked(pieces, trailers));
        take_one(Over::Tcp, refused, ms(0)).await;
    }

    async fn a_body_of_single_bytes_takes_one_connection() {
        let pieces = vec![Bytes::from_static(b"x"); 100];
        let refused = refused().send(Body::Chunked(pieces, Vec::new()));
        take_one_at_once(refused, waiting).await;
    }
}

#[tokio::test]
async fn without_draining_bodies_that_come_after_the_head_take_four_connections() {
    let refused = refused().body_later(ms(30), large());
    let policy = waiting(ms(100)).drain_limit(0);
    take_four(refused, policy).await;
}

#[tokio::test]
async fn bodies_that_are_longer_than_the_limit_take_four_connections() {
    let refused = refused().body_later(ms(30), large());
    let policy = waiting(ms(100)).drain_limit(39_999);
    take_four(refused.clone(), policy).await;
    // The twin.
    take_one_at_once(refused, |wait| waiting(wait).drain_limit(40_000)).await;
}

fn gzip(plain: &[u8]) -> Bytes {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(plain).unwrap();
    gzip.finish().unwrap().into()
}

/// A short body that decodes to a long one, of which the end comes after the head.
#[tokio::test]
async fn bytes_are_counted_after_decoding() {
    let packed = gzip(&[0; 1_000_000]);
    assert!(packed.len() < 2000);
    let pieces = packed.chunks(300).map(Bytes::copy_from_slice).collect();
    let refused = refused()
        .header("content-encoding", "gzip")
        .send(Body::Slow(pieces, ms(10)));
    let policy = waiting(ms(400));
    take_four(refused.clone(), policy).await;
    // The twin.
    take_one_at_once(refused, |wait| waiting(wait).drain_limit(1_000_000)).await;
}

#[tokio::test]
async fn a_body_that_breaks_off_while_it_is_drained_is_no_failure_of_the_send() {
    for end in [End::Close, End::Reset] {
        for body in [
            Body::Short(1000, "part".into()),
            Body::ShortChunks(vec!["part".into()]),
            Body::BadChunk,
            Body::UntilClose("all".into()),
        ] {
            let refused = refused().send(body).end(end);
            take_four(refused, waiting(ms(5))).await;
        }
    }
}

/// They are cut off by the start of the next attempt, at the end of the grace at the latest.
#[tokio::test]
async fn endless_bodies_and_bodies_that_stall_do_not_hold_a_send_up() {
    let head = "HTTP/1.1 503 No\r\ncontent-length: 1073741824\r\n\r\n";
    let stalling = "HTTP/1.1 503 No\r\ncontent-length: 1000\r\n\r\npart";
    for act in [
        refused().send(Body::Endless).into(),
        Act::Flood(head.into(), vec![b'x'; 1 << 16].into()),
        Act::Raw(head.into(), End::Stall),
        Act::Raw(stalling.into(), End::Stall),
    ] {
        let server = H1::start(vec![act.clone(), act.clone(), act, Act::ok("done")]).await;
        let client = retrying(support::client(), after(ms(0)));
        let (outcome, _) = send(client.get(server.url("/"))).await;
        assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
        assert_eq!(server.connections(), 4);
        // The connections of the refused answers do not outlive it.
        support::eventually("one connection is left", || server.open() == 1).await;
    }
}

#[tokio::test]
async fn over_http2_a_refused_answer_costs_no_connection() {
    for body in [
        Body::Whole(large().into()),
        Body::Later(ms(30), large().into()),
        Body::Endless,
    ] {
        let refused = Act2::from(refused().send(body));
        let server = H2::start(vec![
            refused.clone(),
            refused.clone(),
            refused,
            Act2::ok("done"),
        ])
        .await;
        let client = support::client().http2_prior_knowledge();
        let client = retrying(client, RetryRule { ..after(ms(0)) });
        let (outcome, _) = send(client.get(server.url("/"))).await;
        assert_eq!(outcome.unwrap().text().await.unwrap(), "done");
        assert_eq!((server.connections(), server.begun()), (1, 4));
    }
}

/// How a request fares on a connection on which two hundred sends wait after a refusal: whether it
/// is answered before the first of those is done.
async fn gets_through(policy: RetryPolicy) -> bool {
    let server = H2::start(Act2::ask(|request| {
        let answer = match request.path.as_str() {
            "/busy" => refused().body(large()),
            _ => Answer::new(200).body(large()),
        };
        answer.into()
    }))
    .await;
    let client = support::client().http2_prior_knowledge();
    let waiting = Waiting::default();
    let client = retrying(client, policy.no_budget().observer(waiting.clone()));
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..200 {
        busy.spawn(client.get(server.url("/busy")).send());
    }
    support::eventually("all wait", || waiting.0.load(Ordering::SeqCst) == 200).await;
    tokio::select! {
        biased;
        _ = busy.join_next() => false,
        fine = async { client.get(server.url("/fine")).send().await.unwrap().bytes().await } => {
            assert_eq!(fine.unwrap(), large());
            true
        }
    }
}

/// Counts the waits that begin.
#[derive(Clone, Default)]
struct Waiting(Arc<AtomicUsize>);

impl RetryObserver for Waiting {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn over_http2_refused_answers_do_not_take_up_the_room_of_others() {
    let waiting = |wait| {
        RetryPolicy::from(RetryRule {
            max_retries: 1,
            ..after(wait)
        })
    };
    assert!(gets_through(waiting(ms(25_000))).await);
    // The twin: eight megabytes that nobody reads are more than a connection has room for.
    assert!(!gets_through(waiting(ms(2000)).drain_limit(0)).await);
}
