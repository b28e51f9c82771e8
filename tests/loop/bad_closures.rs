//! A closure of the caller's that panics takes down its own send and nothing else, and one that
//! takes its time holds up its own send and nothing else.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use http::{Extensions, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Result};
use reqwest_retry_rules::{
    BodySource, BudgetTerms, Methods, ResendCount, ResponseExt, RetryBudget, RetryEvent, RetryLog,
    RetryObserver, RetryPolicy, RetryRule, StatusMatch, StatusRule, StopEvent,
};
use tower::retry::budget::{Budget, TpsBudget};

use crate::support;
use crate::support::scripted::{self, Act, Transport, URL, client, errors, fail, ok, status};

/// Retries 503 and failures once, at once.
fn rule() -> RetryRule {
    RetryRule {
        max_retries: 1,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        sent_failures: Methods::Idempotent,
        ..RetryRule::never()
    }
}

/// What is called inside a closure of the caller's.
type Hook = Arc<dyn Fn() + Send + Sync>;

struct Observer {
    on_retry: Hook,
    on_stop: Hook,
}

impl RetryObserver for Observer {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        (self.on_retry)();
    }

    fn on_stop(&self, _: &StopEvent<'_>) {
        (self.on_stop)();
    }
}

struct HookedBudget {
    inner: TpsBudget,
    on_withdraw: Hook,
}

impl Budget for HookedBudget {
    fn deposit(&self) {
        self.inner.deposit();
    }

    fn withdraw(&self) -> bool {
        (self.on_withdraw)();
        self.inner.withdraw()
    }
}

/// One closure: how it is set, what makes the send call it, and whether a retry was paid for
/// before.
struct Closure {
    name: &'static str,
    set: fn(RetryPolicy, Hook) -> RetryPolicy,
    calling: fn() -> Vec<Act>,
    paid: u32,
}

fn budget(make: Hook, on_withdraw: Hook) -> RetryBudget {
    RetryBudget::from_maker(move || {
        make();
        HookedBudget {
            inner: TpsBudget::new(Duration::from_secs(10), 1, 0.0),
            on_withdraw: Arc::clone(&on_withdraw),
        }
    })
}

fn nothing() -> Hook {
    Arc::new(|| {})
}

fn all() -> Vec<Closure> {
    let refused: fn() -> Vec<Act> = || vec![status(503)];
    let failed: fn() -> Vec<Act> = || vec![fail(errors::refused())];
    vec![
        Closure {
            name: "retry_if",
            set: |policy, hook| {
                policy.retry_if(Methods::Any, move |head| {
                    hook();
                    head.status() == 409
                })
            },
            calling: || vec![status(409)],
            paid: 0,
        },
        Closure {
            name: "server_delay",
            set: |policy, hook| {
                policy.server_delay(move |_| {
                    hook();
                    None
                })
            },
            calling: refused,
            paid: 0,
        },
        Closure {
            name: "classify_with",
            set: |policy, hook| {
                policy.classify_with(move |_| {
                    hook();
                    None
                })
            },
            calling: failed,
            paid: 0,
        },
        Closure {
            name: "veto",
            set: |policy, hook| {
                policy.veto(move |_| {
                    hook();
                    false
                })
            },
            calling: failed,
            paid: 0,
        },
        Closure {
            name: "jitter_source",
            set: |policy, hook| {
                policy.jitter_source(move || {
                    hook();
                    0.5
                })
            },
            calling: refused,
            paid: 0,
        },
        Closure {
            name: "wall_clock",
            set: |policy, hook| {
                policy.wall_clock(move || {
                    hook();
                    SystemTime::UNIX_EPOCH
                })
            },
            calling: refused,
            paid: 0,
        },
        Closure {
            name: "a budget's maker",
            set: |policy, hook| policy.budget(budget(hook, nothing())),
            calling: refused,
            paid: 0,
        },
        Closure {
            name: "a budget",
            set: |policy, hook| policy.budget(budget(nothing(), hook)),
            calling: refused,
            paid: 0,
        },
        Closure {
            name: "on_retry",
            set: |policy, on_retry| {
                let on_stop = nothing();
                policy.observer(Observer { on_retry, on_stop })
            },
            calling: refused,
            paid: 1,
        },
        Closure {
            name: "on_stop",
            set: |policy, on_stop| {
                let on_retry = nothing();
                policy.observer(Observer { on_retry, on_stop })
            },
            calling: || vec![status(503), status(503)],
            paid: 1,
        },
    ]
}

/// A hook that panics the first time.
fn panics_once() -> Hook {
    let calls = AtomicU32::new(0);
    Arc::new(move || {
        assert!(
            calls.fetch_add(1, Ordering::Relaxed) > 0,
            "as the test wants it"
        );
    })
}

async fn get_in(client: &ClientWithMiddleware, map: &mut Extensions) -> Result<Response> {
    let request = Request::new(Method::GET, URL.parse().unwrap());
    client.execute_with_extensions(request, map).await
}

/// Whether the send panics.
async fn panics(client: &ClientWithMiddleware, map: &mut Extensions) -> bool {
    AssertUnwindSafe(get_in(client, map))
        .catch_unwind()
        .await
        .is_err()
}

mod that_panics {
    use super::*;

    #[tokio::test]
    async fn takes_down_its_own_send_and_not_the_next() {
        for closure in all() {
            let retried = [status(503), ok()];
            let transport = Transport::new((closure.calling)().into_iter().chain(retried));
            let policy = RetryPolicy::from(rule()).budget(budget(nothing(), nothing()));
            let client = client(&transport, (closure.set)(policy, panics_once()));
            let log = RetryLog::new();
            let mut map = scripted::carrying(log.clone());
            assert!(
                panics(&client, &mut map).await,
                "{} was not called",
                closure.name
            );
            // Nothing of the send is left behind …
            assert_eq!(map.get::<ResendCount>(), None, "{}", closure.name);
            assert_eq!(log.report(), None, "{}", closure.name);
            // … and the same map, log and client go on.
            let response = get_in(&client, &mut map).await.unwrap();
            assert_eq!((response.status().as_u16(), response.attempts()), (200, 2));
            assert_eq!(log.report().unwrap().attempts(), 2, "{}", closure.name);
        }
    }

    #[tokio::test]
    async fn leaves_a_send_alone_that_is_under_way_beside_it() {
        for closure in all() {
            let transport = Transport::choose(|request| {
                match request.method() {
                    &Method::PUT => status(503),
                    _ => status(404),
                }
                .yielding()
            });
            let policy = RetryPolicy::from(rule()).observer(Observer {
                on_retry: nothing(),
                on_stop: nothing(),
            });
            let beside = client(&transport, policy.clone());
            let acts = (closure.calling)();
            let own = client(&Transport::new(acts), (closure.set)(policy, panics_once()));
            let mut map = Extensions::new();
            let put = async { beside.put(URL).send().await.unwrap().attempts() };
            assert_eq!(
                tokio::join!(put, panics(&own, &mut map)),
                (2, true),
                "{}",
                closure.name
            );
        }
    }

    #[tokio::test]
    async fn does_not_spoil_the_budget() {
        for closure in all()
            .into_iter()
            .filter(|closure| !closure.name.starts_with("a budget"))
        {
            let sick = Transport::choose(|_| status(503));
            let budget = RetryBudget::new(BudgetTerms {
                window: Duration::from_secs(10),
                reserve_per_second: 1,
                ratio: 0,
            })
            .unwrap();
            let policy = RetryPolicy::from(rule()).budget(budget);
            let own = (closure.set)(policy.clone(), panics_once());
            let own = client(&Transport::new((closure.calling)()), own);
            assert!(panics(&own, &mut Extensions::new()).await);
            let client = client(&sick, policy);
            let mut retries = 0;
            for _ in 0..20 {
                let response = get_in(&client, &mut Extensions::new()).await.unwrap();
                retries += response.attempts() - 1;
            }
            assert_eq!(retries, 10 - closure.paid, "{}", closure.name);
        }
    }

    #[tokio::test]
    async fn takes_down_its_own_send_where_it_makes_a_body() {
        for at in [0, 1] {
            let made = AtomicU32::new(0);
            let source = BodySource::new(move || {
                assert_ne!(
                    made.fetch_add(1, Ordering::Relaxed),
                    at,
                    "as the test wants it"
                );
                Ok::<_, std::io::Error>("body")
            });
            let transport = Transport::choose(|_| status(503));
            let client = client(&transport, rule());
            let mut map = scripted::carrying(source);
            assert!(panics(&client, &mut map).await);
            assert_eq!(transport.count() as u32, at);
            assert_eq!(map.get::<ResendCount>(), None);
            let response = get_in(&client, &mut map).await.unwrap();
            assert_eq!(response.attempts(), 2);
        }
    }

    #[tokio::test]
    async fn takes_down_its_own_task_and_no_other() {
        let transport = Transport::new([status(503), status(503), ok()]);
        let hook = panics_once();
        let policy = RetryPolicy::from(rule()).jitter_source(move || {
            hook();
            0.0
        });
        let client = client(&transport, policy);
        let spawned = |client: ClientWithMiddleware| {
            tokio::spawn(async move { client.get(URL).send().await.unwrap().attempts() })
        };
        assert!(spawned(client.clone()).await.unwrap_err().is_panic());
        assert_eq!(spawned(client).await.unwrap(), 2);
    }
}

mod that_takes_its_time {
    use super::*;

    /// A hook that holds up whoever calls it first, until it is opened.
    #[derive(Clone, Default)]
    struct Gate(Arc<(Mutex<State>, Condvar)>);

    #[derive(Default)]
    struct State {
        entered: bool,
        open: bool,
    }

    impl Gate {
        fn hook(&self) -> Hook {
            let own = self.clone();
            Arc::new(move || {
                let (state, changed) = &*own.0;
                let mut state = state.lock().unwrap();
                if std::mem::replace(&mut state.entered, true) {
                    return;
                }
                let far = Duration::from_secs(20);
                let opened = changed.wait_timeout_while(state, far, |state| !state.open);
                assert!(!opened.unwrap().1.timed_out(), "nobody opened it");
            })
        }

        fn entered(&self) -> bool {
            self.0.0.lock().unwrap().entered
        }

        fn open(&self) {
            self.0.0.lock().unwrap().open = true;
            self.0.1.notify_all();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn holds_up_its_own_send_and_no_other() {
        // A budget has one maker for all that ask of an origin at once: they wait for it.
        for closure in all()
            .into_iter()
            .filter(|closure| closure.name != "a budget's maker")
        {
            let gate = Gate::default();
            let acts = Mutex::new((closure.calling)().into_iter());
            let transport = Transport::choose(move |request| match request.method() {
                &Method::GET => acts.lock().unwrap().next().unwrap_or_else(ok),
                _ => ok(),
            });
            let policy = (closure.set)(RetryPolicy::from(rule()), gate.hook());
            let client = client(&transport, policy);
            let slow = tokio::spawn({
                let client = client.clone();
                async move { client.get(URL).send().await }
            });
            support::eventually(closure.name, || gate.entered()).await;
            assert_eq!(client.put(URL).send().await.unwrap().status(), 200);
            assert!(!slow.is_finished(), "{}", closure.name);
            gate.open();
            slow.await.unwrap().unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn does_not_hold_up_another_call_of_itself() {
        // A stop comes after two attempts, which two sends at once would take from each other.
        let together = |closure: &Closure| !["a budget's maker", "on_stop"].contains(&closure.name);
        for closure in all().into_iter().filter(together) {
            let gate = Gate::default();
            let acts = Mutex::new((closure.calling)().into_iter().chain((closure.calling)()));
            let transport =
                Transport::choose(move |_| acts.lock().unwrap().next().unwrap_or_else(ok));
            let policy = (closure.set)(RetryPolicy::from(rule()), gate.hook());
            let client = client(&transport, policy);
            let slow = tokio::spawn({
                let client = client.clone();
                async move { client.get(URL).send().await }
            });
            support::eventually(closure.name, || gate.entered()).await;
            let beside = client.get(URL).send().await.unwrap();
            assert_eq!((beside.status().as_u16(), beside.attempts()), (200, 2));
            gate.open();
            slow.await.unwrap().unwrap();
        }
    }
}
