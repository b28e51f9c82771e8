//! The retry budget of each origin, from one end to the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry_rules::{
    Backoff, BudgetTerms, Methods, Overrides, ResponseExt, RetryBudget, RetryEvent, RetryLog,
    RetryMiddleware, RetryObserver, RetryPolicy, RetryRule, StatusMatch, StatusRule, StopEvent,
    StopReason, with_overrides,
};
use tower::retry::budget::Budget;

use crate::support;
use crate::support::h1::H1;
use crate::support::script::Act;
use crate::support::scripted::{self, Transport, URL, client, ms, ok, status};

/// Retries 503 three times, at once.
fn rule() -> RetryRule {
    RetryRule {
        max_retries: 3,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Idempotent,
            backoff: None,
        }],
        ..RetryRule::never()
    }
}

fn policy() -> RetryPolicy {
    RetryPolicy::from(rule())
}

/// So many retries and no more, as long as the window of ten seconds does not slide.
fn only(retries: u32) -> RetryBudget {
    assert_eq!(retries % 10, 0, "the reserve is so many a second");
    RetryBudget::new(BudgetTerms {
        window: Duration::from_secs(10),
        reserve_per_second: retries / 10,
        ratio: 0,
    })
    .unwrap()
}

/// One retry for so many thousandths of the answers, and none besides.
fn earned(ratio: u32) -> RetryBudget {
    RetryBudget::new(BudgetTerms {
        window: Duration::from_secs(10),
        reserve_per_second: 0,
        ratio,
    })
    .unwrap()
}

/// A transport that refuses what is asked of `sick.test` and answers the rest.
fn half_sick() -> Transport {
    Transport::choose(|request| match request.url().host_str() {
        Some("sick.test") => status(503),
        _ => ok(),
    })
}

/// A transport that refuses everything.
fn sick() -> Transport {
    Transport::choose(|_| status(503))
}

const SICK: &str = "http://sick.test/";

/// How many attempts a GET takes.
async fn attempts(client: &ClientWithMiddleware, url: &str) -> u32 {
    client.get(url).send().await.unwrap().attempts()
}

/// How many retries `count` GETs make, one after another.
async fn retries(client: &ClientWithMiddleware, count: u32) -> u32 {
    let mut made = 0;
    for _ in 0..count {
        made += attempts(client, SICK).await - 1;
    }
    made
}

mod outage {
    use super::*;

    /// Sends 500 GETs, 50 at a time.
    async fn storm(client: &ClientWithMiddleware, url: &str) {
        stream::iter(0..500)
            .map(|_| async { assert_eq!(client.get(url).send().await.unwrap().status(), 503) })
            .buffer_unordered(50)
            .collect::<Vec<()>>()
            .await;
    }

    fn real_client(policy: RetryPolicy) -> ClientWithMiddleware {
        ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(policy))
            .build()
    }

    #[tokio::test]
    async fn five_hundred_gets_cost_a_server_little_more_than_that() {
        let server = H1::start(Act::status(503)).await;
        let begun = std::time::Instant::now();
        storm(&real_client(policy()), &server.url("/")).await;
        let cost = server.count();
        // On a busy machine, the reserve grows by ten a second meanwhile.
        let most = 650 + 10 * begun.elapsed().as_secs() as usize;
        assert!((500..most).contains(&cost), "{cost} requests");
    }

    #[tokio::test]
    async fn without_a_budget_they_cost_four_times_as_much() {
        let server = H1::start(Act::status(503)).await;
        storm(&real_client(policy().no_budget()), &server.url("/")).await;
        assert_eq!(server.count(), 2000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_default_reserve_is_a_hundred_retries() {
        let transport = sick();
        storm(&client(&transport, policy()), SICK).await;
        assert_eq!(transport.count(), 600);
    }

    #[tokio::test(start_paused = true)]
    async fn with_waits_between_attempts_it_is_the_same() {
        let rule = RetryRule {
            backoff: Backoff {
                base: ms(10),
                max: ms(100),
                ..Backoff::default()
            },
            ..rule()
        };
        let transport = sick();
        storm(&client(&transport, rule), SICK).await;
        assert_eq!(transport.count(), 600);
    }
}

mod origins {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_healthy_one_is_not_touched_by_a_sick_one() {
        let flaky = AtomicU32::new(0);
        let transport = Transport::choose(move |request| {
            let sick = request.url().host_str() == Some("sick.test");
            let odd = flaky.fetch_add(u32::from(!sick), Ordering::Relaxed) % 2 == 0;
            if sick || odd { status(503) } else { ok() }
        });
        let client = client(&transport, policy().budget(only(10)));
        assert_eq!(retries(&client, 20).await, 10);
        for _ in 0..10 {
            assert_eq!(attempts(&client, "http://healthy.test/").await, 2);
        }
        assert_eq!(attempts(&client, SICK).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn host_port_and_scheme_tell_them_apart_and_nothing_else_does() {
        let transport = sick();
        let client = client(&transport, policy().budget(only(10)));
        let spend = async |url: &str| {
            let mut made = 0;
            for _ in 0..10 {
                made += attempts(&client, url).await - 1;
            }
            made
        };
        assert_eq!(spend("http://a.test/").await, 10);
        for same in [
            "http://a.test/other?query",
            "http://A.TEST:80/",
            "http://user@a.test/",
        ] {
            assert_eq!(spend(same).await, 0, "{same}");
        }
        for another in ["https://a.test/", "http://a.test:8080/", "http://b.a.test/"] {
            assert_eq!(spend(another).await, 10, "{another}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn thousands_of_them_are_not_remembered_for_ever() {
        let transport = Transport::choose(|_| ok());
        let budget = RetryBudget::default();
        let client = client(&transport, policy().budget(budget.clone()));
        for number in 0..3000 {
            let url = format!("http://host-{number}.test/");
            assert_eq!(attempts(&client, &url).await, 1);
            assert!(budget.origins() <= 1024);
        }
        assert!(budget.origins() > 0);
    }
}

mod an_empty_one {
    use super::*;

    /// Counts the events.
    #[derive(Default)]
    struct Counted {
        retries: AtomicU32,
        stops: AtomicU32,
    }

    impl RetryObserver for Counted {
        fn on_retry(&self, _: &RetryEvent<'_>) {
            self.retries.fetch_add(1, Ordering::Relaxed);
        }

        fn on_stop(&self, event: &StopEvent<'_>) {
            assert_eq!(event.reason(), StopReason::Throttled);
            self.stops.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn gives_back_what_there_is_and_says_why() {
        let counted = Arc::new(Counted::default());
        let transport = Transport::new([status(503).body("busy")]);
        let policy = policy().budget(only(0)).observer(Arc::clone(&counted));
        let response = client(&transport, policy).get(SICK).send().await.unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(report.stop_reason(), Some(StopReason::Throttled));
        assert!(!report.retries_exhausted());
        assert_eq!(report.records()[0].wait(), None);
        assert_eq!((report.attempts(), response.status().as_u16()), (1, 503));
        assert_eq!(response.text().await.unwrap(), "busy");
        assert_eq!(counted.retries.load(Ordering::Relaxed), 0);
        assert_eq!(counted.stops.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn gives_an_error_back_as_it_came() {
        let rule = RetryRule {
            sent_failures: Methods::Idempotent,
            ..rule()
        };
        let transport = Transport::new([scripted::fail(scripted::errors::refused())]);
        let policy = RetryPolicy::from(rule).budget(only(0));
        let error = client(&transport, policy)
            .get(SICK)
            .send()
            .await
            .unwrap_err();
        assert!(error.is_connect());
    }

    #[tokio::test(start_paused = true)]
    async fn never_holds_back_a_first_send() {
        let transport = half_sick();
        let client = client(&transport, policy().budget(only(10)));
        assert_eq!(retries(&client, 100).await, 10);
        let sent = transport.count();
        for _ in 0..100 {
            assert_eq!(attempts(&client, SICK).await, 1);
        }
        assert_eq!(transport.count(), sent + 100);
        assert_eq!(transport.now(), 0, "they were delayed");
    }

    #[tokio::test(start_paused = true)]
    async fn is_asked_only_for_what_would_be_retried() {
        let transport = sick();
        // A POST could be retried, but not for this.
        let rule = RetryRule {
            unsent_failures: true,
            ..rule()
        };
        let client = client(&transport, RetryPolicy::from(rule).budget(only(10)));
        for _ in 0..50 {
            let response = client.post(SICK).send().await.unwrap();
            let reason = response.retry_report().unwrap().stop_reason();
            assert_eq!(reason, Some(StopReason::MethodNotAllowed));
        }
        assert_eq!(retries(&client, 50).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn fills_again_as_its_window_slides() {
        let transport = sick();
        let client = client(&transport, policy().budget(only(10)));
        assert_eq!(retries(&client, 20).await, 10);
        tokio::time::advance(ms(5000)).await;
        assert_eq!(retries(&client, 20).await, 0);
        tokio::time::advance(ms(6001)).await;
        assert_eq!(retries(&client, 20).await, 10);
        // Also where it was left alone for longer than it remembers.
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(retries(&client, 20).await, 10);
    }
}

mod earning {
    use super::*;

    /// Answers everything but what is asked of `/sick`.
    fn transport() -> Transport {
        Transport::choose(|request| match request.url().path() {
            "/sick" => status(503),
            "/missing" => status(404),
            _ => ok(),
        })
    }

    const BAD: &str = "http://origin.test/sick";

    #[tokio::test(start_paused = true)]
    async fn answers_earn_retries() {
        let client = client(&transport(), policy().budget(earned(200)));
        assert_eq!(attempts(&client, BAD).await, 1);
        for _ in 0..10 {
            assert_eq!(attempts(&client, URL).await, 1);
        }
        assert_eq!(attempts(&client, BAD).await, 3);
        assert_eq!(attempts(&client, BAD).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_one_whatever_its_status() {
        let client = client(&transport(), policy().budget(earned(1000)));
        assert_eq!(attempts(&client, "http://origin.test/missing").await, 1);
        assert_eq!(attempts(&client, BAD).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_earns_nothing() {
        let client = client(&transport(), policy().budget(earned(1000)));
        for _ in 0..10 {
            assert_eq!(attempts(&client, BAD).await, 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_that_no_rule_could_retry_earns_nothing() {
        let client = client(&transport(), policy().budget(earned(1000)));
        for _ in 0..10 {
            client.post(URL).send().await.unwrap();
        }
        assert_eq!(attempts(&client, BAD).await, 1);
        client.put(URL).send().await.unwrap();
        assert_eq!(attempts(&client, BAD).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_caller_in_sequence_is_hardly_limited() {
        // Every other attempt fails, ten sends a second: a hundred seconds of it.
        let count = AtomicU32::new(0);
        let transport = Transport::choose(move |_| {
            let odd = count.fetch_add(1, Ordering::Relaxed) % 2 == 0;
            let act = if odd { status(503) } else { ok() };
            act.after(50)
        });
        let client = client(&transport, policy());
        for _ in 0..1000 {
            assert_eq!(attempts(&client, URL).await, 2);
        }
    }
}

mod sharing {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clones_of_a_policy_and_two_clients_of_it_share_one() {
        for budget in [Some(only(10)), None] {
            let policy = match budget {
                Some(budget) => policy().budget(budget),
                None => policy(),
            };
            let (one, other) = (
                client(&sick(), policy.clone()),
                client(&sick(), policy.clone().attempt_timeout(ms(1000))),
            );
            let all = retries(&one, 100).await;
            assert!(all >= 10);
            assert_eq!(retries(&other, 100).await, 0);
            assert_eq!(retries(&client(&sick(), policy), 100).await, 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_policies_made_of_one_rule_do_not_share_one() {
        let (one, other) = (client(&sick(), policy()), client(&sick(), policy()));
        assert_eq!(retries(&one, 100).await, 100);
        assert_eq!(retries(&other, 100).await, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn two_policies_share_the_one_that_both_are_given() {
        let budget = only(10);
        let one = client(&sick(), policy().budget(budget.clone()));
        let other = client(&sick(), policy().budget(budget));
        assert_eq!(retries(&one, 100).await, 10);
        assert_eq!(retries(&other, 100).await, 0);
    }

    /// How many retries 20 GETs make, each with this policy in its extensions.
    async fn own_retries(client: &ClientWithMiddleware, own: &RetryPolicy) -> u32 {
        let mut made = 0;
        for _ in 0..20 {
            let sent = client.get(SICK).with_extension(own.clone()).send();
            made += sent.await.unwrap().attempts() - 1;
        }
        made
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_of_a_request_that_sets_none_keeps_the_middlewares() {
        let client = client(&sick(), policy().budget(only(10)));
        assert_eq!(own_retries(&client, &policy()).await, 10);
        assert_eq!(retries(&client, 20).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_of_a_request_that_sets_none_keeps_the_default_of_the_middlewares() {
        let client = client(&sick(), policy());
        assert_eq!(own_retries(&client, &policy()).await, 60);
        assert_eq!(retries(&client, 20).await, 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_of_a_request_that_sets_one_has_its_own() {
        let client = client(&sick(), policy().budget(only(10)));
        assert_eq!(own_retries(&client, &policy().budget(only(20))).await, 20);
        assert_eq!(own_retries(&client, &policy().no_budget()).await, 60);
        assert_eq!(retries(&client, 20).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_of_a_request_that_sets_none_has_none_where_the_middleware_has_none() {
        let client = client(&sick(), policy().no_budget());
        assert_eq!(own_retries(&client, &policy()).await, 60);
        assert_eq!(own_retries(&client, &policy().budget(only(10))).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_of_a_task_that_sets_none_keeps_the_middlewares() {
        let client = client(&sick(), policy().budget(only(10)));
        let overrides = Overrides::new().policy(policy());
        assert_eq!(with_overrides(overrides, retries(&client, 20)).await, 10);
        assert_eq!(retries(&client, 20).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_of_a_request_leaves_the_budget_alone() {
        let client = client(&sick(), policy().budget(only(10)));
        let own = RetryRule {
            max_retries: 50,
            ..rule()
        };
        let sent = client.get(SICK).with_extension(own).send().await.unwrap();
        assert_eq!(sent.attempts(), 11);
        let reason = sent.retry_report().unwrap().stop_reason();
        assert_eq!(reason, Some(StopReason::Throttled));
    }
}

mod of_the_callers_making {
    use super::*;

    /// Allows every other retry, and counts.
    #[derive(Default)]
    struct EveryOther {
        asked: AtomicU32,
        paid: AtomicU32,
    }

    /// What is handed out to an origin: all of them count together.
    struct Handle(Arc<EveryOther>);

    impl Budget for Handle {
        fn deposit(&self) {
            self.0.paid.fetch_add(1, Ordering::Relaxed);
        }

        fn withdraw(&self) -> bool {
            self.0.asked.fetch_add(1, Ordering::Relaxed) % 2 == 0
        }
    }

    /// One that takes its time.
    struct Slow;

    impl Budget for Slow {
        fn deposit(&self) {
            std::thread::sleep(ms(60));
        }

        fn withdraw(&self) -> bool {
            true
        }
    }

    /// In real time, since a budget has no other.
    #[tokio::test]
    async fn what_one_takes_is_no_part_of_an_attempt() {
        let budget = RetryBudget::from_maker(|| Slow);
        let client = client(&Transport::choose(|_| ok()), policy().budget(budget));
        let log = RetryLog::new();
        let begun = std::time::Instant::now();
        let sent = client.get(URL).with_extension(log.clone()).send();
        sent.await.unwrap();
        let attempt = log.report().unwrap().records()[0].elapsed();
        assert!(attempt + ms(60) <= begun.elapsed(), "{attempt:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_asked_for_each_retry_and_paid_for_each_answer() {
        let own = Arc::new(EveryOther::default());
        let shared = Arc::clone(&own);
        let budget = RetryBudget::from_maker(move || Handle(Arc::clone(&shared)));
        let client = client(&half_sick(), policy().budget(budget));
        assert_eq!(attempts(&client, SICK).await, 2);
        assert_eq!(attempts(&client, SICK).await, 2);
        assert_eq!(attempts(&client, URL).await, 1);
        let seen = (
            own.asked.load(Ordering::Relaxed),
            own.paid.load(Ordering::Relaxed),
        );
        assert_eq!(seen, (4, 1));
    }
}
