//! What draining costs in bytes and time, on a clock that stands still.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Extensions, Version};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::{
    Limits, RetryAfter, RetryAfterCap, RetryAfterSource, RetryMiddleware, RetryPolicy, RetryRule,
    StopReason, TotalTimeout,
};

use super::{UNAVAILABLE, after, ms};
use crate::support;
use crate::support::sends::{Went, send};
use crate::support::staged::{Fate, Probe, Stage, Step, answer};

fn staged(stage: &Stage, policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    let client = support::client().build().unwrap();
    reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(policy))
        .with(stage.clone())
        .build()
}

/// Three refusals with such a body over HTTP/1.1, and then an answer.
fn thrice(length: Option<u64>, steps: &[Step]) -> (Stage, Vec<Probe>) {
    over(Version::HTTP_11, length, steps)
}

fn over(version: Version, length: Option<u64>, steps: &[Step]) -> (Stage, Vec<Probe>) {
    let (mut answers, mut probes) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (refused, probe) = answer(version, 503, length, steps.to_vec());
        answers.push(refused);
        probes.push(probe);
    }
    answers.push(answer(version, 200, None, []).0);
    (Stage::new(answers), probes)
}

/// Sends, and says when each retry came and what became of each refused body.
async fn play(
    (stage, probes): (Stage, Vec<Probe>),
    policy: impl Into<RetryPolicy>,
) -> (Vec<u128>, Vec<Fate>) {
    let client = staged(&stage, policy);
    let answer = client.get("http://target.test/").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let pauses = stage.pauses();
    let pauses = pauses.iter().map(|pause| pause.as_millis());
    let fates = probes.iter().map(Probe::fate);
    (pauses.collect(), fates.collect())
}

fn taken(bytes: usize) -> Vec<Fate> {
    vec![
        Fate {
            begun: true,
            taken: bytes,
            dropped: true,
        };
        3
    ]
}

fn left_alone() -> Vec<Fate> {
    vec![
        Fate {
            begun: false,
            taken: 0,
            dropped: true,
        };
        3
    ]
}

fn page() -> Bytes {
    vec![b'x'; 16 * 1024].into()
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_costs_twenty_milliseconds_where_there_is_no_wait() {
    for steps in [
        vec![Step::Stall],
        vec![Step::data("part"), Step::Stall],
        vec![Step::Wait(ms(30)), Step::data("late")],
    ] {
        let (pauses, _) = play(thrice(None, &steps), after(ms(0))).await;
        assert_eq!(pauses, [20, 40, 60], "{steps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_costs_nothing_where_the_wait_is_longer() {
    for steps in [vec![Step::Stall], vec![Step::data("part"), Step::Stall]] {
        let (pauses, _) = play(thrice(None, &steps), after(ms(20))).await;
        assert_eq!(pauses, [20, 40, 60], "{steps:?}");
        let (pauses, _) = play(thrice(None, &steps), after(ms(100))).await;
        assert_eq!(pauses, [100, 200, 300], "{steps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_fills_a_short_wait_up_to_twenty_milliseconds() {
    let (pauses, _) = play(thrice(None, &[Step::Stall]), after(ms(5))).await;
    assert_eq!(pauses, [20, 40, 60]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_within_the_grace_costs_the_time_that_it_takes() {
    let steps = [Step::data("one"), Step::Wait(ms(15)), Step::data("two")];
    let (pauses, fates) = play(thrice(None, &steps), after(ms(0))).await;
    assert_eq!(pauses, [15, 30, 45]);
    assert_eq!(fates, taken(6));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_there_costs_no_time() {
    let (pauses, fates) = play(thrice(None, &[Step::data("one")]), after(ms(0))).await;
    assert_eq!(pauses, [0, 0, 0]);
    assert_eq!(fates, taken(3));
}

#[tokio::test(start_paused = true)]
async fn there_is_no_grace_where_a_limit_would_be_met_by_it() {
    let stalling = || thrice(None, &[Step::Stall]);
    let hard = RetryRule {
        limits: Limits {
            hard_elapsed: Some(ms(20)),
            ..Limits::default()
        },
        ..after(ms(0))
    };
    let (pauses, _) = play(stalling(), hard).await;
    assert_eq!(pauses, [0, 0, 0]);
    let total = RetryPolicy::from(after(ms(0))).total_timeout(ms(20));
    let (pauses, _) = play(stalling(), total).await;
    assert_eq!(pauses, [0, 0, 0]);
    // The twin: a little more patience, which is used up by the first.
    let total = RetryPolicy::from(after(ms(0))).total_timeout(ms(21));
    let (pauses, _) = play(stalling(), total).await;
    assert_eq!(pauses, [20, 20, 20]);
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_read_just_past_the_limit() {
    let endless = [Step::Endless(page())];
    let (pauses, fates) = play(thrice(None, &endless), after(ms(100))).await;
    assert_eq!(pauses, [100, 200, 300]);
    assert_eq!(fates, taken(5 * 16 * 1024));

    let policy = RetryPolicy::from(after(ms(0))).drain_limit(16 * 1024);
    let (pauses, fates) = play(thrice(None, &endless), policy).await;
    assert_eq!(pauses, [0, 0, 0]);
    assert_eq!(fates, taken(2 * 16 * 1024));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_says_it_is_longer_is_not_begun() {
    for length in [64 * 1024 + 1, 1 << 30, u64::MAX] {
        let endless = [Step::Endless(page())];
        let (pauses, fates) = play(thrice(Some(length), &endless), after(ms(0))).await;
        assert_eq!(pauses, [0, 0, 0], "{length}");
        assert_eq!(fates, left_alone(), "{length}");
    }
    // The twin.
    let four_pages = vec![Step::Data(page()); 4];
    let (_, fates) = play(thrice(Some(64 * 1024), &four_pages), after(ms(0))).await;
    assert_eq!(fates, taken(64 * 1024));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_reads_nothing() {
    let policy = RetryPolicy::from(after(ms(100))).drain_limit(0);
    let (_, fates) = play(thrice(None, &[Step::data("one")]), policy).await;
    assert_eq!(fates, left_alone());
}

#[tokio::test(start_paused = true)]
async fn the_largest_limit_is_one() {
    let policy = RetryPolicy::from(after(ms(0))).drain_limit(usize::MAX);
    let (_, fates) = play(thrice(None, &[Step::data("one")]), policy).await;
    assert_eq!(fates, taken(3));
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_later_version_is_read_while_the_wait_runs_and_no_longer() {
    let steps = [Step::data("one"), Step::Wait(ms(15)), Step::data("two")];
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let (pauses, fates) = play(over(version, None, &steps), after(ms(0))).await;
        assert_eq!(pauses, [0, 0, 0], "{version:?}");
        assert_eq!(fates, taken(3), "{version:?}");
        let (pauses, fates) = play(over(version, None, &steps), after(ms(16))).await;
        assert_eq!(pauses, [16, 32, 48], "{version:?}");
        assert_eq!(fates, taken(6), "{version:?}");
    }
    // The twin.
    for version in [Version::HTTP_10, Version::HTTP_11] {
        let (pauses, fates) = play(over(version, None, &steps), after(ms(0))).await;
        assert_eq!(pauses, [15, 30, 45], "{version:?}");
        assert_eq!(fates, taken(6), "{version:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_send_that_stops_at_once_is_not_begun() {
    let patience = RetryRule {
        retry_after: RetryAfter {
            source: RetryAfterSource::Header,
            cap: RetryAfterCap::StopAbove(ms(10)),
            ..RetryAfter::default()
        },
        ..after(ms(0))
    };
    let cases = [
        (
            RetryRule {
                max_retries: 0,
                ..after(ms(0))
            },
            StopReason::Exhausted,
        ),
        (
            RetryRule {
                statuses: Vec::new(),
                ..after(ms(0))
            },
            StopReason::NotRetryable,
        ),
        (patience, StopReason::RetryAfterTooLong(ms(7000))),
    ];
    for (rule, reason) in cases {
        let (mut refused, probe) = answer(Version::HTTP_11, 429, None, [Step::data("no credit")]);
        let wait = http::HeaderValue::from_static("7");
        refused.headers_mut().insert("retry-after", wait);
        let policy = RetryPolicy::from(rule).retry_if(Default::default(), |_| true);
        let client = staged(&Stage::new([refused]), policy);
        let (outcome, went) = send(client.get("http://target.test/")).await;
        assert_eq!(went.stop, Some(reason));
        assert!(!probe.fate().begun);
        assert_eq!(outcome.unwrap().text().await.unwrap(), "no credit");
    }
}

/// Notes for each attempt how many answers are still held as it begins.
#[derive(Clone)]
struct Held(Vec<Probe>, Arc<Mutex<Vec<usize>>>);

#[async_trait::async_trait]
impl Middleware for Held {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let held = self
            .0
            .iter()
            .filter(|probe| probe.fate().begun && !probe.fate().dropped);
        self.1.lock().unwrap().push(held.count());
        next.run(request, extensions).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_of_an_answer_goes_before_the_next_attempt_begins() {
    let (stage, probes) = thrice(None, &[Step::Endless(page())]);
    let held = Held(probes.clone(), Arc::default());
    let client = support::client().build().unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(after(ms(0))))
        .with(held.clone())
        .with(stage)
        .build();
    client.get("http://target.test/").send().await.unwrap();
    assert_eq!(*held.1.lock().unwrap(), [0; 4]);
    assert!(probes.iter().all(|probe| probe.fate().begun));
}

#[tokio::test(start_paused = true)]
async fn a_body_of_single_bytes_is_held_in_few_pieces() {
    let bytes = vec![Step::data("x"); 60_000];
    let (refused, probe) = answer(Version::HTTP_11, 503, None, bytes);
    let source = super::given_back::failing_source();
    let client = staged(&Stage::new([refused]), after(ms(0)));
    let request = client.put("http://target.test/").with_extension(source);
    let (outcome, went) = send(request).await;
    assert_eq!(
        went,
        Went::stopped([UNAVAILABLE], StopReason::NotReplayable)
    );
    assert_eq!(probe.fate().taken, 60_000);
    let mut answer = outcome.unwrap();
    let piece = answer.chunk().await.unwrap().unwrap();
    assert_eq!(piece, vec![b'x'; 60_000]);
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_total_timeout_of_the_request_bounds_the_draining_too() {
    let (refused, probe) = answer(Version::HTTP_11, 503, None, [Step::Stall]);
    let (late, _) = answer(Version::HTTP_11, 503, None, [Step::Stall]);
    let stage = Stage::new([refused, late]);
    let client = staged(&stage, after(ms(50)));
    let request = client
        .get("http://target.test/")
        .with_extension(TotalTimeout(ms(60)));
    let (_, went) = send(request).await;
    assert_eq!(
        went,
        Went::stopped([UNAVAILABLE; 2], StopReason::Budget(ms(50)))
    );
    assert_eq!(stage.pauses(), [ms(50)]);
    assert!(probe.fate().dropped);
}

/// A transport that is never waited for.
#[derive(Clone, Default)]
struct Refusing(Arc<AtomicUsize>);

#[async_trait::async_trait]
impl Middleware for Refusing {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(answer(Version::HTTP_11, 503, Some(0), []).0)
    }
}

/// The timer of the caller's own timeout is on the same thread.
#[tokio::test]
async fn a_zero_wait_lets_other_tasks_run() {
    let refusing = Refusing::default();
    let client = support::client().build().unwrap();
    let rule = RetryRule {
        max_retries: 1_000_000,
        ..after(ms(0))
    };
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(RetryPolicy::from(rule).no_budget()))
        .with(refusing.clone())
        .build();
    let sending = client.get("http://target.test/").send();
    let outcome = tokio::time::timeout(ms(20), sending).await;
    assert!(outcome.is_err(), "it ended by itself: {outcome:?}");
    let attempts = refusing.0.load(Ordering::SeqCst);
    assert!((2..1_000_000).contains(&attempts), "{attempts} attempts");
}
