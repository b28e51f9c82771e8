//! What a request or a task changes: what is nearer wins, type by type, and nothing leaks.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use http::HeaderName;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{
    Deadline, ErrorExt, Methods, Overrides, ReplaySafe, ResponseExt, RetryEvent, RetryLabel,
    RetryLog, RetryObserver, RetryPolicy, RetryRule, StatusMatch, StatusRule, TotalTimeout,
    with_overrides, with_rule,
};

use crate::support::scripted::{self, Transport, URL, client, hang, ms, status};

/// Retries 503 so many times, at once.
fn retries(count: u32) -> RetryRule {
    RetryRule {
        max_retries: count,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        ..RetryRule::never()
    }
}

/// A transport that refuses everything.
fn refusing() -> Transport {
    Transport::choose(|_| status(503).yielding())
}

/// A client that retries once, in vain.
fn once() -> ClientWithMiddleware {
    client(&refusing(), RetryPolicy::from(retries(1)).no_budget())
}

/// How many attempts a GET without anything of its own takes.
async fn attempts(client: &ClientWithMiddleware) -> u32 {
    client.get(URL).send().await.unwrap().attempts()
}

/// What a GET is called in its report.
async fn label(client: &ClientWithMiddleware) -> Option<String> {
    let response = client.get(URL).send().await.unwrap();
    let report = response.retry_report().expect("a report");
    report.label().map(ToString::to_string)
}

/// Whether a GET gives up for lack of time, where it gets no answer.
async fn times_out_after(milliseconds: u64) -> bool {
    let transport = Transport::new([hang()]);
    let sent = client(&transport, retries(1)).get(URL).send();
    let ended = tokio::time::timeout(ms(100_000), sent).await;
    let timed_out = ended.is_ok_and(|outcome| outcome.unwrap_err().timed_out());
    timed_out && transport.now() == u128::from(milliseconds)
}

#[derive(Default)]
struct Count(AtomicU32);

impl Count {
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl RetryObserver for Count {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

mod requests {
    use super::*;

    #[tokio::test]
    async fn without_anything_the_middlewares_own_rule_holds() {
        assert_eq!(attempts(&once()).await, 2);
    }

    #[tokio::test]
    async fn a_rule_replaces_the_rule_and_leaves_the_rest_of_the_policy() {
        let count = Arc::new(Count::default());
        let policy = RetryPolicy::from(retries(1)).observer(Arc::clone(&count));
        let client = client(&refusing(), policy);
        let sent = client.get(URL).with_extension(retries(3)).send();
        assert_eq!(sent.await.unwrap().attempts(), 4);
        assert_eq!(count.get(), 3);
        assert_eq!(attempts(&client).await, 2, "it outlived its request");
    }

    #[tokio::test]
    async fn a_policy_replaces_the_policy_whole() {
        let (outer, inner) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let policy = RetryPolicy::from(retries(1)).observer(Arc::clone(&outer));
        let own = RetryPolicy::from(retries(3)).observer(Arc::clone(&inner));
        let client = client(&refusing(), policy);
        let sent = client.get(URL).with_extension(own).send();
        assert_eq!(sent.await.unwrap().attempts(), 4);
        assert_eq!((outer.get(), inner.get()), (0, 3));
    }

    #[tokio::test]
    async fn a_rule_beside_a_policy_replaces_that_policys_rule() {
        let count = Arc::new(Count::default());
        let own = RetryPolicy::from(retries(5)).observer(Arc::clone(&count));
        let client = once();
        let sent = client
            .get(URL)
            .with_extension(own)
            .with_extension(retries(2));
        assert_eq!(sent.send().await.unwrap().attempts(), 3);
        assert_eq!(count.get(), 2);
    }

    #[tokio::test]
    async fn a_request_can_vouch_for_itself_and_can_refuse_to() {
        let client = once();
        let post = || client.post(URL);
        assert_eq!(post().send().await.unwrap().attempts(), 1);
        let safe = post().with_extension(ReplaySafe(true));
        assert_eq!(safe.send().await.unwrap().attempts(), 2);
        let unsafe_get = client.get(URL).with_extension(ReplaySafe(false));
        assert_eq!(unsafe_get.send().await.unwrap().attempts(), 1);
    }

    #[tokio::test]
    async fn a_label_is_in_the_report() {
        let sent = once()
            .get(URL)
            .with_extension(RetryLabel::from("mine"))
            .send();
        let response = sent.await.unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(report.label(), Some(&RetryLabel::from("mine")));
        assert_eq!(label(&once()).await, None);
    }
}

mod tasks {
    use super::*;

    #[tokio::test]
    async fn a_rule_holds_for_every_send_in_its_scope_and_for_none_after_it() {
        let client = once();
        let both = async { (attempts(&client).await, attempts(&client).await) };
        assert_eq!(with_rule(retries(3), both).await, (4, 4));
        assert_eq!(attempts(&client).await, 2);
    }

    #[tokio::test]
    async fn a_policy_holds_in_its_scope() {
        let count = Arc::new(Count::default());
        let policy = RetryPolicy::from(retries(3)).observer(Arc::clone(&count));
        let client = once();
        let overrides = Overrides::new().policy(policy);
        assert_eq!(with_overrides(overrides, attempts(&client)).await, 4);
        assert_eq!(count.get(), 3);
    }

    #[tokio::test]
    async fn a_rule_can_stand_for_a_policy() {
        let overrides = Overrides::new().policy(retries(3));
        assert_eq!(with_overrides(overrides, attempts(&once())).await, 4);
    }

    #[tokio::test]
    async fn a_task_can_vouch_for_its_requests_and_can_refuse_to() {
        let client = once();
        let post = async || client.post(URL).send().await.unwrap().attempts();
        assert_eq!(post().await, 1);
        let safe = |safe| Overrides::new().replay_safe(safe);
        assert_eq!(with_overrides(safe(true), post()).await, 2);
        assert_eq!(with_overrides(safe(false), attempts(&client)).await, 1);
        // The request itself is nearer.
        let own = client.post(URL).with_extension(ReplaySafe(false)).send();
        assert_eq!(with_overrides(safe(true), own).await.unwrap().attempts(), 1);
    }

    #[tokio::test]
    async fn a_label_holds_in_its_scope() {
        let client = once();
        let overrides = || Overrides::new().label("nightly");
        let named = with_overrides(overrides(), label(&client)).await;
        assert_eq!(named.as_deref(), Some("nightly"));
        let own = client
            .get(URL)
            .with_extension(RetryLabel::from(String::from("own")));
        let response = with_overrides(overrides(), own.send()).await.unwrap();
        assert_eq!(
            response.retry_report().unwrap().label().unwrap().as_str(),
            "own"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_hold_in_their_scope() {
        let total = Overrides::new().total_timeout(ms(700));
        assert!(with_overrides(total, times_out_after(700)).await);
        let deadline = Overrides::new().deadline(Deadline::after(ms(300)));
        assert!(with_overrides(deadline, times_out_after(300)).await);
        assert!(!times_out_after(300).await);
    }

    #[tokio::test]
    async fn an_inner_scope_wins_and_ends() {
        let client = once();
        let three = async {
            let inner = with_rule(retries(5), attempts(&client)).await;
            (inner, attempts(&client).await)
        };
        assert_eq!(with_rule(retries(3), three).await, (6, 4));
    }

    #[tokio::test]
    async fn what_an_inner_scope_leaves_unset_comes_from_the_one_around_it() {
        let client = once();
        let outer = Overrides::new().rule(retries(3)).label("outer");
        let inner = Overrides::new().replay_safe(true);
        let innermost = Overrides::new().label("innermost");
        let send = async {
            let response = client.post(URL).send().await.unwrap();
            let report = response.retry_report().unwrap();
            (report.attempts(), report.label().unwrap().to_string())
        };
        let nested = with_overrides(inner, with_overrides(innermost, send));
        let expected = (4, "innermost".to_owned());
        assert_eq!(with_overrides(outer, nested).await, expected);
    }

    #[tokio::test]
    async fn an_empty_scope_changes_nothing() {
        let client = once();
        assert_eq!(with_overrides(Overrides::new(), attempts(&client)).await, 2);
        let empty = with_overrides(Overrides::new(), attempts(&client));
        assert_eq!(with_rule(retries(3), empty).await, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_timeout_of_the_innermost_scope_holds() {
        let total = |milliseconds| Overrides::new().total_timeout(ms(milliseconds));
        for (outer, inner) in [(300, 700), (700, 300)] {
            let nested = with_overrides(total(inner), times_out_after(inner));
            assert!(with_overrides(total(outer), nested).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_inner_scope_makes_a_deadline_later() {
        let deadline = |milliseconds| Overrides::new().deadline(Deadline::after(ms(milliseconds)));
        let nested = with_overrides(deadline(700), times_out_after(300));
        assert!(with_overrides(deadline(300), nested).await);
        let never = Overrides::new().deadline(Deadline::after(Duration::MAX));
        let nested = with_overrides(never, times_out_after(300));
        assert!(with_overrides(deadline(300), nested).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_timeout_of_a_request_holds_before_that_of_its_task() {
        for own in [700, 100] {
            let transport = Transport::new([hang()]);
            let sent = client(&transport, retries(1))
                .get(URL)
                .with_extension(TotalTimeout(ms(own)))
                .send();
            let total = Overrides::new().total_timeout(ms(300));
            assert!(with_overrides(total, sent).await.unwrap_err().timed_out());
            assert_eq!(transport.now(), u128::from(own));
        }
    }

    #[tokio::test]
    async fn what_the_request_carries_is_nearer() {
        let own = once().get(URL).with_extension(retries(5)).send();
        let sent = with_rule(retries(3), own).await.unwrap();
        assert_eq!(sent.attempts(), 6);
    }

    #[tokio::test]
    async fn a_rule_further_out_replaces_the_rule_of_a_nearer_policy() {
        let count = Arc::new(Count::default());
        let policy = RetryPolicy::from(retries(5)).observer(Arc::clone(&count));
        let own = once().get(URL).with_extension(policy.clone()).send();
        assert_eq!(with_rule(retries(2), own).await.unwrap().attempts(), 3);
        assert_eq!(count.get(), 2, "the policy was not in force");
        let client = once();
        let nested = with_overrides(Overrides::new().policy(policy), attempts(&client));
        assert_eq!(with_rule(retries(3), nested).await, 4);
    }

    #[tokio::test]
    async fn what_concerns_a_single_attempt_holds_in_a_scope() {
        let key = HeaderName::from_static("idempotency-key");
        let policy = RetryPolicy::from(RetryRule::never()).idempotency_key(key.clone());
        let transport = refusing();
        let sent = client(&transport, RetryRule::never()).post(URL).send();
        with_overrides(Overrides::new().policy(policy), sent)
            .await
            .unwrap();
        assert!(transport.seen()[0].headers.contains_key(&key));
    }

    #[tokio::test]
    async fn a_report_can_be_had_where_the_task_switches_retries_off() {
        let log = RetryLog::new();
        let sent = once().get(URL).with_extension(log.clone()).send();
        with_rule(RetryRule::never(), sent).await.unwrap();
        assert_eq!(log.report().unwrap().attempts(), 1);
    }
}

mod nothing_leaks {
    use super::*;

    #[tokio::test]
    async fn between_sends_that_take_turns_on_one_thread() {
        let client = once();
        // Each of the sends gives way to the others at every attempt.
        let sends = (0..12).map(|number| {
            let client = &client;
            async move {
                match number % 4 {
                    0 => attempts(client).await - 2,
                    more => with_rule(retries(more), attempts(client)).await - more - 1,
                }
            }
        });
        assert_eq!(join_all(sends).await, [0; 12]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn between_tasks_that_move_among_threads() {
        let client = once();
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let expected = match number % 4 {
                        0 => 2,
                        more => more + 1,
                    };
                    for _ in 0..20 {
                        let attempts = match number % 4 {
                            0 => attempts(&client).await,
                            more => with_rule(retries(more), attempts(&client)).await,
                        };
                        assert_eq!(attempts, expected, "task {number}");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    #[test]
    fn when_a_send_moves_to_another_thread_half_way() {
        let client = once();
        let other = client.clone();
        let send = async move { attempts(&other).await };
        let mut send = Box::pin(with_rule(retries(3), send));
        // The first attempt begins here …
        let mut context = Context::from_waker(Waker::noop());
        assert!(send.as_mut().poll(&mut context).is_pending());
        assert_eq!(runtime().block_on(attempts(&client)), 2, "it stayed behind");
        // … and it all ends there.
        let there = std::thread::spawn(move || {
            let runtime = runtime();
            let ended = runtime.block_on(send);
            (ended, runtime.block_on(attempts(&client)))
        });
        assert_eq!(there.join().unwrap(), (4, 2));
    }

    #[tokio::test]
    async fn after_a_task_was_aborted() {
        let client = once();
        let task = tokio::spawn(with_rule(retries(3), std::future::pending::<()>()));
        tokio::task::yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(attempts(&client).await, 2);
        let spawned = tokio::spawn(async move { attempts(&client).await });
        assert_eq!(spawned.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn after_a_send_was_dropped_half_way() {
        let client = once();
        let mut send = Box::pin(with_rule(retries(3), attempts(&client)));
        let mut context = Context::from_waker(Waker::noop());
        assert!(send.as_mut().poll(&mut context).is_pending());
        drop(send);
        assert_eq!(attempts(&client).await, 2);
    }

    #[tokio::test]
    async fn after_a_panic() {
        let client = once();
        let at_once = with_rule(retries(3), async { panic!("at once") });
        assert!(AssertUnwindSafe(at_once).catch_unwind().await.is_err());
        assert_eq!(attempts(&client).await, 2);

        let later = with_rule(retries(3), async {
            attempts(&client).await;
            tokio::task::yield_now().await;
            panic!("later");
        });
        assert!(AssertUnwindSafe(later).catch_unwind().await.is_err());
        assert_eq!(attempts(&client).await, 2);

        let inner = with_rule(retries(3), async { panic!("inside") });
        let outer = async {
            assert!(AssertUnwindSafe(inner).catch_unwind().await.is_err());
            attempts(&client).await
        };
        assert_eq!(with_rule(retries(4), outer).await, 5);
    }

    #[tokio::test]
    async fn after_a_panic_further_in() {
        let transport = Transport::new([scripted::panic(), status(503), status(503)]);
        let client = client(&transport, retries(1));
        let send = with_rule(retries(3), attempts(&client));
        assert!(AssertUnwindSafe(send).catch_unwind().await.is_err());
        assert_eq!(attempts(&client).await, 2);
    }

    #[tokio::test]
    async fn into_a_task_that_is_spawned_inside() {
        let client = once();
        let spawning = async {
            let client = client.clone();
            tokio::spawn(async move { attempts(&client).await })
                .await
                .unwrap()
        };
        assert_eq!(with_rule(retries(3), spawning).await, 2);
    }

    #[tokio::test]
    async fn unless_it_is_carried_over() {
        let client = once();
        let spawning = async {
            let (client, carried) = (client.clone(), Overrides::current());
            let inside = with_overrides(Overrides::new().label("inner"), async move {
                let response = client.get(URL).send().await.unwrap();
                let report = response.retry_report().unwrap().clone();
                (report.attempts(), report.label().unwrap().to_string())
            });
            tokio::spawn(with_overrides(carried, inside)).await.unwrap()
        };
        let outer = Overrides::new().rule(retries(3)).label("outer");
        let expected = (4, "inner".to_owned());
        assert_eq!(with_overrides(outer, spawning).await, expected);
    }

    #[tokio::test]
    async fn from_nowhere() {
        let client = once();
        let carried = Overrides::current();
        assert_eq!(with_overrides(carried, attempts(&client)).await, 2);
    }

    #[tokio::test]
    async fn into_or_out_of_a_blocking_thread() {
        let client = once();
        let handle = tokio::runtime::Handle::current();
        let blocking = async {
            let (client, handle) = (client.clone(), handle.clone());
            let blocked = move || handle.block_on(attempts(&client));
            tokio::task::spawn_blocking(blocked).await.unwrap()
        };
        assert_eq!(with_rule(retries(3), blocking).await, 2);
    }
}

/// The same types in the map of the `task-local-extensions` crate.
#[cfg(feature = "task-local-extensions")]
mod shared_map {
    use super::*;
    use task_local_extensions::{Extensions, set_local_item, with_extensions};

    async fn with<T: Send + Sync + 'static, F: Future>(value: T, future: F) -> F::Output {
        with_extensions(Extensions::new().with(value), future)
            .await
            .1
    }

    #[tokio::test]
    async fn a_rule_or_a_policy_in_it_holds() {
        let client = once();
        assert_eq!(with(retries(3), attempts(&client)).await, 4);
        let count = Arc::new(Count::default());
        let policy = RetryPolicy::from(retries(4)).observer(Arc::clone(&count));
        assert_eq!(with(policy, attempts(&client)).await, 5);
        assert_eq!(count.get(), 4);
        assert_eq!(attempts(&client).await, 2);
    }

    #[tokio::test]
    async fn what_vouches_for_a_request_holds() {
        let client = once();
        let post = async || client.post(URL).send().await.unwrap().attempts();
        assert_eq!(with(ReplaySafe(true), post()).await, 2);
        assert_eq!(with(ReplaySafe(false), attempts(&client)).await, 1);
    }

    #[tokio::test]
    async fn a_label_in_it_holds() {
        let named = with(RetryLabel::from("shared"), label(&once())).await;
        assert_eq!(named.as_deref(), Some("shared"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bound_in_it_holds() {
        assert!(with(TotalTimeout(ms(700)), times_out_after(700)).await);
        assert!(with(Deadline::after(ms(300)), times_out_after(300)).await);
    }

    #[tokio::test]
    async fn what_is_set_in_it_later_holds_from_then_on() {
        let client = once();
        let both = async {
            let before = attempts(&client).await;
            set_local_item(retries(3)).await;
            (before, attempts(&client).await)
        };
        assert_eq!(with_extensions(Extensions::new(), both).await.1, (2, 4));
    }

    #[tokio::test]
    async fn our_own_scope_is_nearer_whichever_is_inside() {
        let client = once();
        let ours = with_rule(retries(3), attempts(&client));
        assert_eq!(with(retries(5), ours).await, 4);
        let theirs = with(retries(5), attempts(&client));
        assert_eq!(with_rule(retries(3), theirs).await, 4);
    }

    #[tokio::test]
    async fn what_our_own_scope_leaves_unset_comes_from_it() {
        let client = once();
        let ours = with_rule(retries(3), label(&client));
        let named = with(RetryLabel::from("shared"), ours).await;
        assert_eq!(named.as_deref(), Some("shared"));
    }

    #[tokio::test]
    async fn what_the_request_carries_is_nearer() {
        let own = once().get(URL).with_extension(retries(5)).send();
        assert_eq!(with(retries(3), own).await.unwrap().attempts(), 6);
    }

    /// The first of its two traps.
    #[tokio::test]
    async fn its_inner_scope_hides_the_outer_map_whole_and_ours_does_not() {
        let client = once();
        let theirs = with(RetryLabel::from("inner"), attempts(&client));
        assert_eq!(
            with(retries(3), theirs).await,
            2,
            "the rule of the outer map was seen"
        );
        let ours = with_overrides(Overrides::new().label("inner"), attempts(&client));
        assert_eq!(with_rule(retries(3), ours).await, 4);
    }

    /// The second of its two traps.
    #[test]
    fn a_panic_inside_it_leaves_its_map_behind_on_the_thread_and_one_inside_ours_does_not() {
        let after_a_panic_inside = |theirs: bool| {
            let on_a_thread_of_its_own = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    let panics = async { panic!("inside") };
                    let ended = if theirs {
                        AssertUnwindSafe(with(retries(3), panics))
                            .catch_unwind()
                            .await
                    } else {
                        AssertUnwindSafe(with_rule(retries(3), panics))
                            .catch_unwind()
                            .await
                    };
                    assert!(ended.is_err());
                    attempts(&once()).await
                })
            });
            on_a_thread_of_its_own.join().unwrap()
        };
        assert_eq!(after_a_panic_inside(true), 4, "its map was gone");
        assert_eq!(after_a_panic_inside(false), 2);
    }
}
