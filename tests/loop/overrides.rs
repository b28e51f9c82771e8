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
use reqwest_middleware::{ClientWithMiddleware, RequestBuilder};
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

/// When a send that gets no answer is over, in milliseconds; `None` if a minute is too short.
async fn when_over(request: RequestBuilder, transport: &Transport) -> Option<u128> {
    let ended = tokio::time::timeout(ms(60_000), request.send())
        .await
        .ok()?;
    assert!(ended.unwrap_err().timed_out());
    Some(transport.now())
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
    async fn the_total_timeout_of_an_inner_scope_replaces_the_outer_one_longer_or_shorter() {
        let total = |milliseconds| Overrides::new().total_timeout(ms(milliseconds));
        for (outer, inner) in [(300, 700), (700, 300)] {
            let nested = with_overrides(total(inner), times_out_after(inner));
            assert!(with_overrides(total(outer), nested).await);
        }
        // An inner scope that sets none leaves the outer one in force.
        let nested = with_overrides(Overrides::new().label("inner"), times_out_after(300));
        assert!(with_overrides(total(300), nested).await);
    }

    #[tokio::test(start_paused = true)]
    async fn no_inner_scope_makes_a_deadline_later() {
        let deadline = |milliseconds| Overrides::new().deadline(Deadline::after(ms(milliseconds)));
        for (outer, inner) in [(300, 700), (700, 300)] {
            let nested = with_overrides(deadline(inner), times_out_after(300));
            assert!(with_overrides(deadline(outer), nested).await);
        }
        let never = Overrides::new().deadline(Deadline::after(Duration::MAX));
        let nested = with_overrides(never, times_out_after(300));
        assert!(with_overrides(deadline(300), nested).await);
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

/// Which bound holds of those that the policy, the task and the request set.
mod bounds {
    use super::*;

    /// What each sets, in milliseconds.
    #[derive(Clone, Copy, Default)]
    struct Set {
        policy: Option<u64>,
        /// The policy that the request carries.
        own_policy: Option<u64>,
        task: Option<Duration>,
        request: Option<Duration>,
        deadline: Option<u64>,
    }

    /// When a send that gets no answer is over, in milliseconds; `None` if a minute is too short.
    async fn over(set: Set) -> Option<u128> {
        let policy = |total: Option<u64>| {
            let policy = RetryPolicy::from(retries(1));
            match total {
                Some(total) => policy.total_timeout(ms(total)),
                None => policy,
            }
        };
        let transport = Transport::new([hang()]);
        let mut request = client(&transport, policy(set.policy)).get(URL);
        if set.own_policy.is_some() {
            request = request.with_extension(policy(set.own_policy));
        }
        if let Some(total) = set.request {
            request = request.with_extension(TotalTimeout(total));
        }
        if let Some(deadline) = set.deadline {
            request = request.with_extension(Deadline::after(ms(deadline)));
        }
        let mut around = Overrides::new();
        if let Some(total) = set.task {
            around = around.total_timeout(total);
        }
        with_overrides(around, when_over(request, &transport)).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_nearest_total_timeout_counts_longer_or_shorter() {
        for far in [300, 700] {
            let near = 1000 - far;
            let policy = Set {
                policy: Some(far),
                ..Set::default()
            };
            assert_eq!(over(policy).await, Some(far.into()));
            let task = Set {
                task: Some(ms(near)),
                ..policy
            };
            assert_eq!(over(task).await, Some(near.into()));
            let request = Set {
                request: Some(ms(near)),
                ..policy
            };
            assert_eq!(over(request).await, Some(near.into()));
            let all = Set {
                policy: Some(10_000),
                task: Some(ms(far)),
                request: Some(ms(near)),
                ..Set::default()
            };
            assert_eq!(over(all).await, Some(near.into()));
        }
    }

    /// Type by type, as a rule of the task replaces the rule in a policy that is nearer.
    #[tokio::test(start_paused = true)]
    async fn a_total_timeout_of_the_task_replaces_that_of_a_policy_which_the_request_carries() {
        let carried = Set {
            policy: Some(100),
            own_policy: Some(300),
            ..Set::default()
        };
        assert_eq!(over(carried).await, Some(300));
        let both = Set {
            task: Some(ms(700)),
            ..carried
        };
        assert_eq!(over(both).await, Some(700));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_the_clock_cannot_hold_lifts_the_bound_further_out() {
        let (policy, lifted) = (Some(300), Some(Duration::MAX));
        for set in [
            Set {
                policy,
                request: lifted,
                ..Set::default()
            },
            Set {
                policy,
                task: lifted,
                ..Set::default()
            },
            Set {
                task: Some(ms(300)),
                request: lifted,
                ..Set::default()
            },
        ] {
            assert_eq!(over(set).await, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_bounds_besides_and_is_not_lifted() {
        for (request, deadline, expected) in [
            (ms(700), 300, 300),
            (ms(300), 700, 300),
            (Duration::MAX, 300, 300),
        ] {
            let set = Set {
                policy: Some(10_000),
                request: Some(request),
                deadline: Some(deadline),
                ..Set::default()
            };
            assert_eq!(over(set).await, Some(expected));
        }
        let earlier_policy = Set {
            policy: Some(300),
            deadline: Some(700),
            ..Set::default()
        };
        assert_eq!(over(earlier_policy).await, Some(300));
    }
}

/// Several at once, in the extensions of a request.
mod several {
    use super::*;

    #[tokio::test]
    async fn all_that_is_in_them_holds_for_that_request() {
        let count = Arc::new(Count::default());
        let policy = RetryPolicy::from(retries(9)).observer(Arc::clone(&count));
        let log = RetryLog::new();
        let overrides = Overrides::new()
            .policy(policy)
            .rule(retries(3))
            .replay_safe(true)
            .label("several")
            .log(log.clone());
        let client = once();
        let sent = client.post(URL).with_extension(overrides).send();
        assert_eq!(sent.await.unwrap().attempts(), 4);
        assert_eq!(count.get(), 3);
        let report = log.report().unwrap();
        assert_eq!(report.attempts(), 4);
        assert_eq!(report.label(), Some(&RetryLabel::from("several")));
        // For no other.
        let post = client.post(URL).send().await.unwrap();
        assert_eq!(post.attempts(), 1);
        assert_eq!(attempts(&client).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_in_them_hold() {
        let total: fn() -> Overrides = || Overrides::new().total_timeout(ms(700));
        let deadline = || Overrides::new().deadline(Deadline::after(ms(300)));
        for (overrides, expected) in [(total, 700), (deadline, 300)] {
            let transport = Transport::new([hang()]);
            let request = client(&transport, retries(1)).get(URL);
            let over = when_over(request.with_extension(overrides()), &transport);
            assert_eq!(over.await, Some(expected));
        }
    }

    #[tokio::test]
    async fn a_value_by_itself_wins_and_the_rest_still_holds() {
        let overrides = Overrides::new().rule(retries(3)).label("several");
        let sent = once()
            .get(URL)
            .with_extension(overrides)
            .with_extension(retries(5))
            .send();
        let response = sent.await.unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(report.attempts(), 6);
        assert_eq!(report.label(), Some(&RetryLabel::from("several")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_timeout_by_itself_wins_and_of_two_deadlines_the_earlier() {
        let over = async |one: u64, several: u64, deadlines: bool| -> Option<u128> {
            let overrides = if deadlines {
                Overrides::new().deadline(Deadline::after(ms(several)))
            } else {
                Overrides::new().total_timeout(ms(several))
            };
            let transport = Transport::new([hang()]);
            let mut request = client(&transport, retries(1)).get(URL);
            request.extensions().insert(overrides);
            if deadlines {
                request.extensions().insert(Deadline::after(ms(one)));
            } else {
                request.extensions().insert(TotalTimeout(ms(one)));
            }
            when_over(request, &transport).await
        };
        for (one, several) in [(300, 700), (700, 300)] {
            assert_eq!(over(one, several, false).await, Some(one.into()));
            assert_eq!(over(one, several, true).await, Some(300));
        }
    }

    #[tokio::test]
    async fn they_are_nearer_than_the_task_and_leave_to_it_what_they_do_not_set() {
        let task = Overrides::new().rule(retries(3)).label("task");
        let own = || Overrides::new().rule(retries(5));
        let sent = once().get(URL).with_extension(own()).send();
        let response = with_overrides(task.clone(), sent).await.unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(report.attempts(), 6);
        assert_eq!(report.label(), Some(&RetryLabel::from("task")));
        let sent = once().get(URL).with_extension(Overrides::new()).send();
        assert_eq!(with_overrides(task, sent).await.unwrap().attempts(), 4);
    }
}

mod logs {
    use super::*;

    fn keeping(log: &RetryLog) -> Overrides {
        Overrides::new().log(log.clone())
    }

    #[tokio::test]
    async fn one_that_a_task_sets_holds_the_report_of_the_send_that_ended_last() {
        let (log, client) = (RetryLog::new(), once());
        let sends = async {
            assert_eq!(attempts(&client).await, 2);
            let report = log.report().unwrap();
            assert_eq!(report.attempts(), 2);
            let post = client.post(URL).send().await.unwrap();
            assert_eq!(post.attempts(), 1);
        };
        with_overrides(keeping(&log), sends).await;
        assert_eq!(log.report().unwrap().attempts(), 1);
        assert_eq!(attempts(&client).await, 2);
        assert_eq!(log.report().unwrap().attempts(), 1, "it outlived its scope");
    }

    #[tokio::test]
    async fn that_of_the_request_takes_the_place_of_the_tasks() {
        let (around, own) = (RetryLog::new(), RetryLog::new());
        let sent = once().get(URL).with_extension(own.clone()).send();
        with_overrides(keeping(&around), sent).await.unwrap();
        assert_eq!(own.report().unwrap().attempts(), 2);
        assert_eq!(around.report(), None);
    }

    #[tokio::test]
    async fn one_that_a_task_sets_is_filled_where_no_retry_is_possible() {
        let log = RetryLog::new();
        let client = client(&refusing(), RetryRule::never());
        with_overrides(keeping(&log), client.get(URL).send())
            .await
            .unwrap();
        assert_eq!(log.report().unwrap().attempts(), 1);
    }
}

/// The map of the `task-local-extensions` crate is read only with the feature of this name, which
/// is off by default for what happens here.
mod a_map_that_a_panic_left_behind {
    use super::*;
    use task_local_extensions::{Extensions, set_local_item, with_extensions};

    /// Runs these on one thread of their own, each as a task, and gives how many attempts a POST
    /// takes that comes after them.
    fn attempts_of_a_post_after<F: Future<Output = ()> + Send + 'static>(first: F) -> u32 {
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let _ = tokio::spawn(first).await;
                let post = async { once().post(URL).send().await.unwrap().attempts() };
                tokio::spawn(post).await.unwrap()
            })
        });
        thread.join().unwrap()
    }

    #[test]
    fn lets_the_post_of_another_task_be_sent_again_only_with_the_feature() {
        let with_the_feature = cfg!(feature = "task-local-extensions");
        let expected = if with_the_feature { 2 } else { 1 };
        let map = || Extensions::new().with(ReplaySafe(true));
        let panics = async move {
            with_extensions(map(), async { panic!("inside") }).await;
        };
        assert_eq!(attempts_of_a_post_after(panics), expected);
        let sets = async { set_local_item(ReplaySafe(true)).await };
        assert_eq!(attempts_of_a_post_after(sets), expected);
    }

    #[test]
    fn is_none_of_ours() {
        let safe = || Overrides::new().replay_safe(true);
        let panics = async move { with_overrides(safe(), async { panic!("inside") }).await };
        assert_eq!(attempts_of_a_post_after(panics), 1);
        // The twin: inside its scope it does hold.
        let post = || async { once().post(URL).send().await.unwrap().attempts() };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        assert_eq!(runtime.block_on(with_overrides(safe(), post())), 2);
    }

    #[test]
    fn the_feature_is_off_by_default() {
        let manifest: toml::Table = toml::from_str(include_str!("../../Cargo.toml")).unwrap();
        let defaults = manifest["features"]["default"].as_array().unwrap();
        let defaults: Vec<_> = defaults
            .iter()
            .filter_map(|feature| feature.as_str())
            .collect();
        assert_eq!(defaults, ["tracing", "http2", "rustls"]);
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

    #[tokio::test]
    async fn a_log_in_it_holds() {
        let log = RetryLog::new();
        with(log.clone(), attempts(&once())).await;
        assert_eq!(log.report().unwrap().attempts(), 2);
    }

    #[tokio::test]
    async fn several_at_once_in_it_hold_and_a_value_by_itself_wins() {
        let several = || Overrides::new().rule(retries(3)).label("several");
        let client = once();
        assert_eq!(with(several(), attempts(&client)).await, 4);
        let named = with(several(), label(&client)).await;
        assert_eq!(named.as_deref(), Some("several"));
        let map = Extensions::new().with(several()).with(retries(5));
        assert_eq!(with_extensions(map, attempts(&client)).await.1, 6);
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
