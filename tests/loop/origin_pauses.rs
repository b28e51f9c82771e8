//! Sends of one policy wait together while their origin asks for rest.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{
    Backoff, BodySource, Deadline, ErrorExt, FreshBody, Jitter, Judgement, Limits, Methods,
    PauseTerms, ReplaySafe, ResponseExt, RetryError, RetryLog, RetryObserver, RetryPolicy,
    RetryRule, StatusRule, StopEvent, StopReason, TotalTimeout, WaitSource,
};
use tokio::task::JoinSet;

use crate::support::scripted::{
    Act, Transport, URL, client, get, get_with, hang, ms, ok, send, status,
};

/// No origin asks for longer than ten seconds, and nobody waits for longer than it asks.
const TERMS: PauseTerms = PauseTerms {
    max: Duration::from_secs(10),
    spread: 0,
};

/// The preset without chance: 100, 200, 400 ms.
fn rule() -> RetryRule {
    RetryRule {
        backoff: Backoff {
            jitter: Jitter::NoJitter,
            ..RetryRule::transient().backoff
        },
        ..RetryRule::transient()
    }
}

fn pausing(rule: RetryRule) -> RetryPolicy {
    RetryPolicy::from(rule).pause_origins(TERMS).no_budget()
}

fn policy() -> RetryPolicy {
    pausing(rule())
}

/// With a random part of up to half the wait, spread evenly and the same in every run.
fn spread() -> RetryPolicy {
    let drawn = AtomicU32::new(0);
    policy()
        .pause_origins(PauseTerms {
            spread: 500,
            ..TERMS
        })
        .jitter_source(move || {
            // The multiples of the golden ratio fill the unit interval without gaps.
            let nth = f64::from(drawn.fetch_add(1, Ordering::Relaxed));
            (nth * 0.618_033_988_749_894_9).fract()
        })
}

/// Refused, and asked for a wait of so many milliseconds.
fn rest(milliseconds: u64) -> Act {
    status(429).header("retry-after-ms", milliseconds.to_string())
}

/// The first request is refused and asks for a wait, every other one is answered; each so many
/// milliseconds after it came.
fn refusing_the_first(wait: u64, latency: u64) -> Transport {
    let mut first = true;
    Transport::choose(move |_| match std::mem::take(&mut first) {
        true => rest(wait).after(latency),
        false => ok().after(latency),
    })
}

/// Has the origin ask for a wait. Nobody retries it, and it takes no time.
async fn ask_for_rest(client: &ClientWithMiddleware) {
    let request = client.post(URL).with_extension(ReplaySafe(false));
    assert_eq!(request.send().await.unwrap().status(), 429);
}

/// How many of these moments are in the window of so many milliseconds that has the most.
fn most_at_once(times: &[u128], window: u128) -> usize {
    let within = |from: u128| {
        times
            .iter()
            .filter(move |at| (from..from + window).contains(at))
    };
    times
        .iter()
        .map(|from| within(*from).count())
        .max()
        .unwrap_or_default()
}

mod crowds {
    use super::*;

    /// A thousand tasks, one each millisecond. Says when the requests came.
    async fn a_thousand(policy: RetryPolicy) -> Vec<u128> {
        let transport = refusing_the_first(2000, 50);
        let client = client(&transport, policy);
        let mut tasks = JoinSet::new();
        for n in 0..1000 {
            let client = client.clone();
            tasks.spawn(async move {
                tokio::time::sleep(ms(n)).await;
                client.get(URL).send().await.unwrap().status()
            });
        }
        let statuses = tasks.join_all().await;
        assert!(statuses.iter().all(|status| *status == 200));
        transport.times()
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_that_asked_for_rest_sees_nothing_until_it_is_over_and_no_spike_then() {
        let times = a_thousand(spread()).await;
        assert_eq!(times.len(), 1001);
        // What was under way when the refusal came, 50 ms after the first.
        let under_way = times.iter().filter(|at| **at <= 50).count();
        assert!((50..=51).contains(&under_way), "{under_way}");
        let later = &times[under_way..];
        assert!(
            later.iter().all(|at| (2050..=3050).contains(at)),
            "{later:?}"
        );
        // 950 in a second are 95 in a tenth of it.
        let most = most_at_once(later, 100);
        assert!(most <= 105, "{most}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_spread_all_come_at_the_end_of_it() {
        let times = a_thousand(policy()).await;
        let later = times.iter().filter(|at| **at > 50);
        let moments: std::collections::BTreeSet<_> = later.collect();
        assert_eq!(moments.into_iter().collect::<Vec<_>>(), [&2050]);
    }

    /// The twin.
    #[tokio::test(start_paused = true)]
    async fn without_pauses_each_finds_out_for_itself() {
        let times = a_thousand(RetryPolicy::from(rule()).no_budget()).await;
        let by_then = times.iter().filter(|at| **at < 1000).count();
        assert_eq!((by_then, times.len()), (1000, 1001));
    }

    /// Whoever was under way is refused too, all at the same moment long after the first.
    #[tokio::test(start_paused = true)]
    async fn those_that_were_under_way_do_not_come_back_together_either() {
        let mut count = 0;
        let transport = Transport::choose(move |_| {
            count += 1;
            match count {
                1 => rest(2000).after(10),
                2..=1000 => rest(2000).after(500),
                _ => ok(),
            }
        });
        let client = client(&transport, spread());
        let mut tasks = JoinSet::new();
        for _ in 0..1000 {
            let client = client.clone();
            tasks.spawn(async move { client.get(URL).send().await.unwrap().status() });
        }
        assert!(tasks.join_all().await.iter().all(|status| *status == 200));
        let times = transport.times();
        assert_eq!(times.len(), 2000);
        let later = &times[1000..];
        // Each had been asked for two seconds by then.
        let own = later.iter().filter(|at| **at >= 2500).count();
        assert!(own >= 999, "{own}");
        let most = most_at_once(later, 100);
        assert!(most <= 115, "{most}");
    }

    /// Each second one that comes back is refused again, ten times in all.
    #[tokio::test(start_paused = true)]
    async fn if_it_asks_again_those_that_still_wait_wait_on() {
        let (mut refusals, mut count) = (0, 0);
        let transport = Transport::choose(move |_| {
            count += 1;
            match count % 2 == 1 && refusals < 10 {
                true => {
                    refusals += 1;
                    rest(2000)
                }
                false => ok(),
            }
        });
        let rule = RetryRule {
            max_retries: 20,
            ..rule()
        };
        let policy = RetryPolicy::from(rule)
            .pause_origins(PauseTerms {
                spread: 1000,
                ..TERMS
            })
            .no_budget();
        let client = client(&transport, policy);
        let mut tasks = JoinSet::new();
        for _ in 0..1000 {
            let client = client.clone();
            tasks.spawn(async move { client.get(URL).send().await.unwrap().status() });
        }
        assert!(tasks.join_all().await.iter().all(|status| *status == 200));
        // Nobody was refused but those ten.
        assert_eq!(transport.count(), 1010);
    }
}

mod first_attempts {
    use super::*;

    /// A send for a paused origin: how it ended, what was reported, and when it was over.
    async fn after_a_refusal(policy: RetryPolicy, method: Method) -> (u16, Vec<u128>) {
        let transport = refusing_the_first(2000, 0);
        let client = client(&transport, policy);
        ask_for_rest(&client).await;
        let answer = client.request(method, URL).send().await.unwrap();
        (answer.status().as_u16(), transport.times())
    }

    #[tokio::test(start_paused = true)]
    async fn they_wait_whatever_the_method() {
        for method in [Method::GET, Method::POST, Method::PATCH] {
            let answered = after_a_refusal(policy(), method).await;
            assert_eq!(answered, (200, vec![0, 2000]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn they_wait_if_no_retry_is_possible() {
        let rule = RetryRule {
            max_retries: 0,
            ..rule()
        };
        let policy = RetryPolicy::from(rule).pause_origins(TERMS);
        let answered = after_a_refusal(policy, Method::GET).await;
        assert_eq!(answered, (200, vec![0, 2000]));
    }

    /// The twins.
    #[tokio::test(start_paused = true)]
    async fn they_do_not_wait_without_a_pause() {
        let without = RetryPolicy::from(rule());
        let answered = after_a_refusal(without, Method::GET).await;
        assert_eq!(answered, (200, vec![0, 0]));
        let none = policy().pause_origins(PauseTerms {
            max: Duration::ZERO,
            ..TERMS
        });
        let answered = after_a_refusal(none, Method::GET).await;
        assert_eq!(answered, (200, vec![0, 0]));
    }

    #[tokio::test(start_paused = true)]
    async fn another_origin_does_not_wait() {
        let transport = refusing_the_first(2000, 0);
        let client = client(&transport, policy());
        ask_for_rest(&client).await;
        for other in [
            "https://origin.test/",
            "http://origin.test:81/",
            "http://b.test/",
        ] {
            client.get(other).send().await.unwrap();
        }
        assert_eq!(transport.now(), 0);
        // The port may be written out, and the path and the user are no part of an origin.
        for same in ["http://origin.test:80/", "http://u:p@ORIGIN.test/deep?down"] {
            client.get(same).send().await.unwrap();
            assert_eq!(transport.now(), 2000);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_says_for_how_long() {
        let transport = refusing_the_first(2000, 0);
        let policy = policy();
        ask_for_rest(&client(&transport, policy.clone())).await;
        let (answer, report) = get(&transport, policy).await;
        assert_eq!(answer.unwrap().status(), 200);
        assert_eq!((report.attempts(), report.paused()), (1, ms(2000)));
        assert_eq!(report.elapsed(), ms(2000));
        // The attempt itself took none of it.
        assert_eq!(report.records()[0].elapsed(), Duration::ZERO);
        assert_eq!(report.records()[0].wait(), None);
    }

    /// Its own timeouts begin with the attempt, not with the send.
    #[tokio::test(start_paused = true)]
    async fn the_time_of_an_attempt_is_none_of_the_pause() {
        let transport = refusing_the_first(2000, 400);
        let policy = policy().head_timeout(ms(500));
        let client = client(&transport, policy);
        ask_for_rest(&client).await;
        assert_eq!(client.get(URL).send().await.unwrap().attempts(), 1);
        assert_eq!(transport.times(), [0, 2400]);
    }
}

mod time_left {
    use super::*;

    #[derive(Default)]
    struct Stops(Mutex<Vec<(u32, bool, StopReason)>>);

    impl RetryObserver for Stops {
        fn on_stop(&self, event: &StopEvent<'_>) {
            let stop = (event.attempts(), event.result().is_none(), event.reason());
            self.0.lock().unwrap().push(stop);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_attempt_that_cannot_wait_is_not_made() {
        let transport = refusing_the_first(2000, 0);
        let stops = Arc::new(Stops::default());
        let policy = policy().observer(stops.clone());
        ask_for_rest(&client(&transport, policy.clone())).await;
        stops.0.lock().unwrap().clear();
        let (outcome, report) = get_with(&transport, policy, |own| {
            own.insert(TotalTimeout(ms(2000)));
        })
        .await;
        let error = outcome.unwrap_err();
        match error.retry_error() {
            Some(RetryError::OriginPaused { wait, .. }) => assert_eq!(*wait, ms(2000)),
            other => panic!("{other:?}"),
        }
        assert!(!error.timed_out());
        let reason = StopReason::Budget(ms(2000));
        assert_eq!((report.attempts(), report.stop_reason()), (0, Some(reason)));
        assert!(report.retries_exhausted());
        assert_eq!(*stops.0.lock().unwrap(), [(0, true, reason)]);
        // It said so at once, and nothing was sent.
        assert_eq!((transport.now(), transport.count()), (0, 1));
    }

    /// The twin: one millisecond more.
    #[tokio::test(start_paused = true)]
    async fn one_that_can_is() {
        let transport = refusing_the_first(2000, 0);
        let policy = policy();
        ask_for_rest(&client(&transport, policy.clone())).await;
        let (outcome, report) = get_with(&transport, policy, |own| {
            own.insert(TotalTimeout(ms(2001)));
        })
        .await;
        assert_eq!(outcome.unwrap().status(), 200);
        assert_eq!(report.attempts(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_counts_likewise() {
        for (time, sent) in [(2000, false), (2001, true)] {
            let transport = refusing_the_first(2000, 0);
            let policy = policy();
            ask_for_rest(&client(&transport, policy.clone())).await;
            let (outcome, _) = get_with(&transport, policy, |own| {
                own.insert(Deadline::after(ms(time)));
            })
            .await;
            assert_eq!(outcome.is_ok(), sent, "{time}");
        }
    }

    /// The rule's limits are about retries.
    #[tokio::test(start_paused = true)]
    async fn a_hard_limit_does_not_stop_a_first_attempt() {
        let rule = RetryRule {
            limits: Limits {
                hard_elapsed: Some(ms(500)),
                ..Limits::default()
            },
            ..rule()
        };
        let transport = refusing_the_first(2000, 0);
        let client = client(&transport, pausing(rule));
        ask_for_rest(&client).await;
        assert_eq!(client.get(URL).send().await.unwrap().status(), 200);
    }

    /// Somebody else keeps the thread busy while the pause ends, and the time of the send with it.
    #[tokio::test(start_paused = true)]
    async fn a_first_attempt_that_wakes_too_late_is_not_made() {
        let transport = refusing_the_first(2000, 0);
        let policy = policy();
        ask_for_rest(&client(&transport, policy.clone())).await;
        let sent = get_with(&transport, policy, |own| {
            own.insert(TotalTimeout(ms(3000)));
        });
        let ((outcome, report), ()) = tokio::join!(sent, tokio::time::advance(ms(4000)));
        let error = outcome.unwrap_err();
        assert!(error.timed_out(), "{error}");
        assert_eq!(report.attempts(), 0);
        assert_eq!(report.stop_reason(), Some(StopReason::TotalTimeout));
        assert_eq!(transport.count(), 1);
    }
}

mod retries {
    use super::*;

    /// One that was refused without a word and backs off for 100 ms, when another one at 10 ms is
    /// asked for a wait of two seconds. Its status, and the report of it.
    async fn backing_off(
        policy: RetryPolicy,
    ) -> (u16, reqwest_retry_rules::RetryReport, Vec<u128>) {
        let transport = Transport::new([status(503), rest(2000), ok()]);
        let other = async {
            tokio::time::sleep(ms(10)).await;
            ask_for_rest(&client(&transport, policy.clone())).await;
        };
        let ((outcome, report), ()) = tokio::join!(get(&transport, policy.clone()), other);
        (
            outcome.unwrap().status().as_u16(),
            report,
            transport.times(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_backs_off_waits_for_a_pause_that_was_set_meanwhile() {
        let (status, report, times) = backing_off(policy()).await;
        assert_eq!((status, times), (200, vec![0, 10, 2010]));
        let first = &report.records()[0];
        assert_eq!(
            (first.wait(), first.wait_source()),
            (Some(ms(100)), Some(WaitSource::Backoff))
        );
        assert_eq!(report.paused(), ms(1910));
        assert_eq!(report.records()[1].elapsed(), Duration::ZERO);
    }

    /// The twin.
    #[tokio::test(start_paused = true)]
    async fn it_does_not_wait_without_pauses() {
        let (_, report, times) = backing_off(RetryPolicy::from(rule())).await;
        assert_eq!(times, [0, 10, 100]);
        assert_eq!(report.paused(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn limits_stop_one_that_cannot_wait() {
        let hard = RetryRule {
            limits: Limits {
                hard_elapsed: Some(ms(1500)),
                ..Limits::default()
            },
            ..rule()
        };
        for (policy, reason) in [
            (pausing(hard), StopReason::HardLimit(ms(1910))),
            (
                policy().total_timeout(ms(1500)),
                StopReason::Budget(ms(1910)),
            ),
        ] {
            let (status, report, times) = backing_off(policy).await;
            // What is in hand comes back, as soon as it is known.
            assert_eq!((status, times), (503, vec![0, 10]));
            assert_eq!((report.attempts(), report.stop_reason()), (1, Some(reason)));
            assert_eq!(report.elapsed(), ms(100));
        }
    }

    /// The second attempt is refused without a word, while the origin rests.
    #[tokio::test(start_paused = true)]
    async fn a_pause_that_is_known_is_part_of_the_decision() {
        let transport = Transport::new([status(503).after(50), rest(2000), ok()]);
        let policy = policy();
        let other = async {
            tokio::time::sleep(ms(10)).await;
            ask_for_rest(&client(&transport, policy.clone())).await;
        };
        let ((outcome, report), ()) = tokio::join!(get(&transport, policy.clone()), other);
        assert_eq!(outcome.unwrap().status(), 200);
        let first = &report.records()[0];
        assert_eq!(
            (first.wait(), first.wait_source()),
            (Some(ms(1960)), Some(WaitSource::Pause))
        );
        assert_eq!(report.paused(), Duration::ZERO);
        assert_eq!(transport.times(), [0, 10, 2010]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_above_the_cap_stops_the_send_and_others_wait_for_the_most() {
        let transport = refusing_the_first(3_600_000, 0);
        let policy = policy();
        let (outcome, report) = get(&transport, policy.clone()).await;
        assert_eq!(outcome.unwrap().status(), 429);
        let hour = StopReason::RetryAfterTooLong(ms(3_600_000));
        assert_eq!(report.stop_reason(), Some(hour));
        get(&transport, policy).await.0.unwrap();
        assert_eq!(transport.times(), [0, 10_000]);
    }

    /// The cap is about what is asked of this send. What is asked of all has a bound of its own.
    #[tokio::test(start_paused = true)]
    async fn the_cap_of_the_rule_makes_no_pause_shorter() {
        use reqwest_retry_rules::{RetryAfter, RetryAfterCap};

        let caps = [
            RetryAfterCap::ClampTo(ms(1000)),
            RetryAfterCap::BackoffAbove(ms(1000)),
        ];
        for (cap, alone) in caps.into_iter().zip([1000, 100]) {
            let rule = RetryRule {
                retry_after: RetryAfter {
                    cap,
                    ..rule().retry_after
                },
                ..rule()
            };
            for (policy, waits) in [
                (pausing(rule.clone()), 5000),
                (RetryPolicy::from(rule), alone),
            ] {
                let transport = refusing_the_first(5000, 0);
                get(&transport, policy).await.0.unwrap();
                assert_eq!(transport.times(), [0, waits]);
            }
        }
    }
}

mod what_sets_it {
    use super::*;

    /// When the second request comes, if the first is answered so.
    async fn second(policy: RetryPolicy, first: Act) -> u128 {
        let transport = Transport::new([first, ok()]);
        let client = client(&transport, policy);
        client.post(URL).send().await.unwrap();
        client.get(URL).send().await.unwrap();
        transport.times()[1]
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_asked_in_any_way() {
        assert_eq!(
            second(policy(), status(503).header("retry-after", "2")).await,
            2000
        );
        let in_body = policy().judge_body(Methods::Idempotent, 100, |_, body| match body {
            b"3" => Judgement::RetryAfter(ms(3000)),
            _ => Judgement::ByRule,
        });
        assert_eq!(second(in_body, ok().body("3")).await, 3000);
        let by_closure = policy().server_delay(|_| Some(ms(4000)));
        assert_eq!(second(by_closure, status(503)).await, 4000);
    }

    /// The twins.
    #[tokio::test(start_paused = true)]
    async fn no_answer_and_no_refusal_that_asks_for_nothing() {
        for first in [
            ok().header("retry-after", "2"),
            status(404).header("retry-after", "2"),
            status(503),
            status(503).header("retry-after", "soon"),
            status(503).header("retry-after", "0"),
            status(503).header("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(second(policy(), first).await, 0);
        }
        let ignored = RetryRule {
            statuses: vec![StatusRule::new([503], Methods::Idempotent)],
            ..RetryRule::never()
        };
        let policy = pausing(ignored);
        assert_eq!(
            second(policy, status(503).header("retry-after", "2")).await,
            0
        );
    }

    /// Two are refused one second apart; both were begun before the first refusal.
    #[tokio::test(start_paused = true)]
    async fn an_answer_to_what_was_under_way_makes_it_no_longer() {
        let transport = Transport::new([
            rest(2000).after(10),
            rest(2000).after(1000),
            ok(),
            ok(),
            ok(),
        ]);
        let client = client(&transport, policy());
        let third = async {
            tokio::time::sleep(ms(1500)).await;
            client.get(URL).send().await.unwrap();
        };
        tokio::join!(
            async { client.get(URL).send().await.unwrap() },
            async { client.get(URL).send().await.unwrap() },
            third,
        );
        // The second keeps to what it was asked itself.
        assert_eq!(transport.times(), [0, 0, 2010, 2010, 3000]);
    }

    /// The twin: the second is begun when the pause is over, and the third still waits.
    #[tokio::test(start_paused = true)]
    async fn an_answer_to_what_was_begun_since_does() {
        let transport = Transport::new([rest(2000), rest(2000), ok(), ok()]);
        // The third waits for half of two seconds more.
        let drawn = AtomicU32::new(0);
        let policy = policy()
            .pause_origins(PauseTerms {
                spread: 1000,
                ..TERMS
            })
            .jitter_source(move || match drawn.fetch_add(1, Ordering::Relaxed) {
                0..=2 => 0.0,
                3 => 0.5,
                _ => 0.0,
            });
        let client = client(&transport, policy);
        ask_for_rest(&client).await;
        tokio::join!(async { client.get(URL).send().await.unwrap() }, async {
            tokio::time::sleep(ms(1)).await;
            client.get(URL).send().await.unwrap();
        },);
        let times = transport.times();
        assert_eq!(times[..2], [0, 2000]);
        assert!(times[2..].iter().all(|at| *at >= 4000), "{times:?}");
    }
}

mod who_shares_it {
    use super::*;

    /// When the request of `second` comes, after one of `first` was asked for two seconds.
    async fn waits(first: RetryPolicy, second: RetryPolicy) -> u128 {
        let transport = refusing_the_first(2000, 0);
        ask_for_rest(&client(&transport, first)).await;
        client(&transport, second).get(URL).send().await.unwrap();
        transport.times()[1]
    }

    #[tokio::test(start_paused = true)]
    async fn clones_do_and_others_do_not() {
        let shared = policy();
        assert_eq!(waits(shared.clone(), shared.clone()).await, 2000);
        assert_eq!(waits(policy(), policy()).await, 0);
        // With another rule, it is still the same policy's.
        let shared = policy();
        assert_eq!(
            waits(shared.clone(), shared.total_timeout(ms(9000))).await,
            2000
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_of_the_requests_own_has_its_own_or_none() {
        for own in [RetryPolicy::from(rule()), policy()] {
            let transport = refusing_the_first(2000, 0);
            let client = client(&transport, policy());
            ask_for_rest(&client).await;
            client.get(URL).with_extension(own).send().await.unwrap();
            assert_eq!(transport.times(), [0, 0]);
        }
    }

    /// The twin: a rule of its own changes nothing about it.
    #[tokio::test(start_paused = true)]
    async fn a_rule_of_the_requests_own_waits() {
        let transport = refusing_the_first(2000, 0);
        let client = client(&transport, policy());
        ask_for_rest(&client).await;
        client
            .get(URL)
            .with_extension(RetryRule::never())
            .send()
            .await
            .unwrap();
        assert_eq!(transport.times(), [0, 2000]);
    }
}

mod dropped {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiters_leave_nothing_behind() {
        let transport = refusing_the_first(2000, 0);
        let policy = policy();
        let client = client(&transport, policy.clone());
        ask_for_rest(&client).await;
        let text = format!("{policy:?}");
        let (mut tasks, log) = (JoinSet::new(), RetryLog::new());
        for _ in 0..1000 {
            let (client, log) = (client.clone(), log.clone());
            tasks.spawn(async move { client.get(URL).with_extension(log).send().await });
        }
        tokio::time::sleep(ms(1000)).await;
        tasks.shutdown().await;
        assert_eq!(format!("{policy:?}"), text);
        assert!(log.report().is_none());
        // One that comes now waits for what is left, and nothing of the others is ever sent.
        client.get(URL).send().await.unwrap();
        tokio::time::sleep(ms(10_000)).await;
        assert_eq!(transport.times(), [0, 2000]);
    }

    /// Nothing was sent, so a send further out may go again.
    #[tokio::test(start_paused = true)]
    async fn a_waiter_notes_nothing_for_a_send_around_it() {
        use async_trait::async_trait;
        use http::Extensions;
        use reqwest::{Request, Response};
        use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
        use reqwest_retry_rules::RetryMiddleware;

        use crate::support;
        use crate::support::scripted::errors;

        /// Hands each request to another client for a second, and then fails to connect.
        struct Impatient(ClientWithMiddleware);

        #[async_trait]
        impl Middleware for Impatient {
            async fn handle(
                &self,
                request: Request,
                _: &mut Extensions,
                _: Next<'_>,
            ) -> Result<Response> {
                let sent = self.0.execute(request);
                match tokio::time::timeout(ms(1000), sent).await {
                    Ok(answer) => answer,
                    Err(_) => Err(errors::refused().with_url(URL.parse().unwrap()).into()),
                }
            }
        }

        let around = |transport: &Transport, inner: RetryPolicy| {
            let rule = RetryRule {
                unsent_failures: true,
                max_retries: 1,
                ..RetryRule::never()
            };
            ClientBuilder::new(support::client().build().unwrap())
                .with(RetryMiddleware::new(rule))
                .with(Impatient(client(transport, inner)))
                .build()
        };
        let log = RetryLog::new();
        let transport = refusing_the_first(60_000, 0);
        let inner = policy();
        ask_for_rest(&client(&transport, inner.clone())).await;
        let sent = around(&transport, inner)
            .post(URL)
            .with_extension(log.clone());
        sent.send().await.unwrap_err();
        assert_eq!(log.report().unwrap().attempts(), 2);
        assert_eq!(transport.count(), 1);

        // The twin: one that is on its way may have been processed.
        let transport = Transport::choose(|_| hang());
        let sent = around(&transport, policy())
            .post(URL)
            .with_extension(log.clone());
        sent.send().await.unwrap_err();
        assert_eq!(
            (log.report().unwrap().attempts(), transport.count()),
            (1, 1)
        );
    }
}

mod bodies_that_take_their_time {
    use super::*;

    /// A body that takes 500 ms to make.
    fn slow() -> BodySource {
        BodySource::from_async(|| async {
            tokio::time::sleep(ms(500)).await;
            Ok::<_, std::io::Error>(FreshBody::from("body"))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_is_set_while_the_first_is_made_holds() {
        let transport = refusing_the_first(2000, 0);
        let policy = policy();
        let client = client(&transport, policy);
        let other = async {
            tokio::time::sleep(ms(100)).await;
            ask_for_rest(&client).await;
        };
        let put = client.put(URL).with_extension(slow()).send();
        let (answer, ()) = tokio::join!(put, other);
        assert_eq!(answer.unwrap().status(), 200);
        assert_eq!(transport.times(), [100, 2100]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_is_set_while_the_next_is_made_holds() {
        let transport = Transport::new([status(503), rest(2000), ok()]);
        let policy = policy();
        let other = async {
            tokio::time::sleep(ms(900)).await;
            ask_for_rest(&client(&transport, policy.clone())).await;
        };
        let put = send(&transport, policy.clone(), |client| {
            client.put(URL).with_extension(slow())
        });
        let ((outcome, report), ()) = tokio::join!(put, other);
        assert_eq!(outcome.unwrap().status(), 200);
        // 500 ms for the first body, 100 ms of backoff, 500 ms for the second.
        assert_eq!(transport.times(), [500, 900, 2900]);
        assert_eq!((report.attempts(), report.paused()), (2, ms(1800)));
    }
}
