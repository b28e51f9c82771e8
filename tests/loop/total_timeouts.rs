//! Which bound of a whole send counts: of total timeouts the nearest, of deadlines the earliest.

use std::time::Duration;

use reqwest_retry_rules::{
    Deadline, ErrorExt, Overrides, RetryError, RetryPolicy, RetryRule, TotalTimeout, with_overrides,
};

use crate::support::scripted::{Transport, URL, client, get_with, hang, ms, ok};

/// Where a send is given a bound, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    policy: Option<u64>,
    task: Option<u64>,
    request: Option<u64>,
    task_deadline: Option<u64>,
    request_deadline: Option<u64>,
}

/// So many milliseconds; the largest number is no bound.
fn bound(milliseconds: u64) -> Duration {
    match milliseconds {
        u64::MAX => Duration::MAX,
        _ => ms(milliseconds),
    }
}

impl Bounds {
    fn policy(self) -> RetryPolicy {
        let policy = RetryPolicy::from(RetryRule::transient());
        match self.policy {
            Some(after) => policy.total_timeout(bound(after)),
            None => policy,
        }
    }

    fn task(self) -> Overrides {
        let mut task = Overrides::new();
        if let Some(after) = self.task {
            task = task.total_timeout(bound(after));
        }
        if let Some(after) = self.task_deadline {
            task = task.deadline(Deadline::after(bound(after)));
        }
        task
    }

    /// Sends a GET that is answered after so many milliseconds, if ever. Says when the send ended,
    /// and whether its time was over.
    async fn send(self, answered_after: Option<u64>) -> (u128, bool) {
        let act = match answered_after {
            Some(after) => ok().after(after),
            None => hang(),
        };
        let transport = Transport::new([act]);
        let sent = get_with(&transport, self.policy(), |own| {
            if let Some(after) = self.request {
                own.insert(TotalTimeout(bound(after)));
            }
            if let Some(after) = self.request_deadline {
                own.insert(Deadline::after(bound(after)));
            }
        });
        // Where no bound holds, the test fails in place of going on for ever.
        let sent = tokio::time::timeout(ms(100_000), with_overrides(self.task(), sent));
        let (outcome, _) = sent.await.expect("the send ends");
        let over = match outcome {
            Ok(_) => false,
            Err(reqwest_middleware::Error::Middleware(error)) => matches!(
                error.downcast_ref(),
                Some(RetryError::TotalTimeout { attempts: 1, .. })
            ),
            Err(error) => panic!("{error:?}"),
        };
        (transport.now(), over)
    }
}

#[tokio::test(start_paused = true)]
async fn the_nearest_one_counts_and_the_earliest_deadline_besides() {
    let none = Bounds::default();
    let policy = Bounds {
        policy: Some(500),
        ..none
    };
    let both = Bounds {
        task: Some(900),
        ..policy
    };
    for (bounds, ends) in [
        (policy, 500),
        // Of the task, longer and shorter than that of the policy.
        (both, 900),
        (
            Bounds {
                task: Some(100),
                ..policy
            },
            100,
        ),
        // Of the request, longer and shorter than both.
        (
            Bounds {
                request: Some(1300),
                ..both
            },
            1300,
        ),
        (
            Bounds {
                request: Some(200),
                ..both
            },
            200,
        ),
        // Between the two.
        (
            Bounds {
                request: Some(700),
                ..both
            },
            700,
        ),
        // A deadline bounds a send besides, wherever it is set.
        (
            Bounds {
                request: Some(1300),
                task_deadline: Some(400),
                ..both
            },
            400,
        ),
        (
            Bounds {
                task_deadline: Some(400),
                request_deadline: Some(800),
                ..none
            },
            400,
        ),
        (
            Bounds {
                task_deadline: Some(800),
                request_deadline: Some(400),
                ..none
            },
            400,
        ),
        // And lengthens none.
        (
            Bounds {
                task_deadline: Some(800),
                request_deadline: Some(900),
                ..policy
            },
            500,
        ),
        // The longest of all lifts the bound, and no deadline.
        (
            Bounds {
                request: Some(u64::MAX),
                task_deadline: Some(800),
                ..both
            },
            800,
        ),
    ] {
        assert_eq!(bounds.send(None).await, (ends, true), "{bounds:?}");
        // The twin: an answer in time.
        let in_time = u64::try_from(ends).unwrap() - 1;
        let answered = (u128::from(in_time), false);
        assert_eq!(bounds.send(Some(in_time)).await, answered, "{bounds:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_one_lifts_a_bound_that_was_set_further_out() {
    let policy = Bounds {
        policy: Some(500),
        ..Bounds::default()
    };
    let answered = async |bounds: Bounds| bounds.send(Some(60_000)).await;
    assert_eq!(answered(policy).await, (500, true));
    for bounds in [
        Bounds {
            request: Some(u64::MAX),
            ..policy
        },
        Bounds {
            task: Some(u64::MAX),
            ..policy
        },
        Bounds {
            request: Some(u64::MAX),
            task: Some(700),
            ..policy
        },
    ] {
        assert_eq!(answered(bounds).await, (60_000, false), "{bounds:?}");
    }
}

/// A policy that a request carries is as near as the request; its bound gives way to a single one
/// that is set nearer than the policy that it replaces.
#[tokio::test(start_paused = true)]
async fn a_total_timeout_of_its_own_counts_before_that_of_a_policy_that_the_request_carries() {
    let carried = || RetryPolicy::from(RetryRule::transient()).total_timeout(ms(300));
    for (own, ends) in [(None, 300), (Some(800), 800), (Some(100), 100)] {
        let transport = Transport::new([hang()]);
        let bounds = Bounds {
            policy: Some(500),
            ..Bounds::default()
        };
        let (outcome, _) = get_with(&transport, bounds.policy(), |map| {
            map.insert(carried());
            if let Some(own) = own {
                map.insert(TotalTimeout(ms(own)));
            }
        })
        .await;
        outcome.unwrap_err();
        assert_eq!(transport.now(), ends, "{own:?}");
    }
}

/// Sends a GET that is never answered, and says after how many milliseconds which error came; `None`
/// if it was still on its way.
async fn hanging(policy: RetryPolicy, own: Option<Deadline>) -> (u128, Option<&'static str>) {
    let transport = Transport::new([hang()]);
    let mut request = client(&transport, policy).get(URL);
    if let Some(deadline) = own {
        request = request.with_extension(deadline);
    }
    let sent = tokio::time::timeout(ms(1000), request.send()).await;
    let name = sent.ok().map(|outcome| {
        let error = outcome.expect_err("nobody answers");
        error.retry_error().expect("one of ours").name()
    });
    (transport.now(), name)
}

#[tokio::test(start_paused = true)]
async fn a_send_without_retries_has_a_bound_all_the_same() {
    let never = || RetryPolicy::from(RetryRule::never());
    let bounded = Some("total_timeout");
    let own = Some(Deadline::after(ms(70)));
    assert_eq!(hanging(never(), own).await, (70, bounded));
    let timed = never().total_timeout(ms(70));
    assert_eq!(hanging(timed, None).await, (70, bounded));
    // The twin.
    assert_eq!(hanging(never(), None).await, (1000, None));
}

#[tokio::test(start_paused = true)]
async fn of_the_time_of_the_send_and_that_of_an_attempt_the_earlier_ends_it() {
    let timed = |total, head| {
        RetryPolicy::from(RetryRule::never())
            .total_timeout(ms(total))
            .head_timeout(ms(head))
    };
    let (total, head) = (Some("total_timeout"), Some("head_timeout"));
    assert_eq!(hanging(timed(50, 70), None).await, (50, total));
    assert_eq!(hanging(timed(70, 50), None).await, (50, head));
    assert_eq!(hanging(timed(50, 50), None).await, (50, total));
}
