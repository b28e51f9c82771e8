//! What a schedule foretells, against what the rule then decides.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Backoff, Decision, Jitter, Limits, Methods, RetryAfter, RetryAfterCap,
    RetryAfterRole, RetryAfterSource, RetryRule, Schedule, StatusMatch, StatusRule, StopReason,
    TransportError,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One second that doubles up to a minute.
fn backoff(jitter: Jitter) -> Backoff {
    Backoff {
        base: secs(1),
        max: secs(60),
        growth: 2000,
        jitter,
    }
}

fn hard(limit: Duration) -> Limits {
    Limits {
        hard_elapsed: Some(limit),
        ..Limits::default()
    }
}

fn soft(limit: Duration, min_retries: u32) -> Limits {
    Limits {
        soft_elapsed: Some(limit),
        min_retries,
        ..Limits::default()
    }
}

/// So many retries, of anything.
fn retries(max_retries: u32, backoff: Backoff) -> RetryRule {
    RetryRule {
        max_retries,
        backoff,
        sent_failures: Methods::Any,
        ..RetryRule::never()
    }
}

#[track_caller]
fn shows(rule: &RetryRule, text: &str) {
    assert_eq!(rule.schedule().to_string(), text);
}

fn starts(schedule: &Schedule) -> Vec<u64> {
    let starts = schedule.retries().take(10);
    starts.map(|retry| retry.start().end().as_secs()).collect()
}

// The data.

#[test]
fn each_wait_and_all_before_it_make_a_start() {
    let schedule = retries(5, backoff(Jitter::NoJitter)).schedule();
    assert_eq!(starts(&schedule), [1, 3, 7, 15, 31]);
    assert_eq!(schedule.retries().size_hint(), (5, Some(5)));
}

#[test]
fn a_rule_without_retries_has_an_empty_schedule() {
    let schedule = RetryRule::never().schedule();
    assert_eq!(schedule.retries().next(), None);
    assert_eq!((schedule.fewest_retries(), schedule.most_retries()), (0, 0));
    assert_eq!(schedule.worst_case(secs(10)), secs(10));
    assert_eq!(schedule.worst_case_asked(secs(10)), Some(secs(10)));
}

#[test]
fn jitter_makes_an_interval_that_the_maximum_ends() {
    let around = Jitter::Proportional { lo: 900, hi: 1500 };
    let schedule = retries(9, backoff(around)).schedule();
    let wait = |number: usize| schedule.retries().nth(number - 1).unwrap().wait();
    assert_eq!(wait(1), ms(900)..=ms(1500));
    assert_eq!(wait(7), secs(54)..=secs(60));
    assert_eq!(wait(9), wait(7));
}

#[test]
fn jitter_that_runs_backwards_makes_the_same_interval() {
    let there = retries(9, backoff(Jitter::Proportional { lo: 500, hi: 800 })).schedule();
    let back = retries(9, backoff(Jitter::Proportional { lo: 800, hi: 500 })).schedule();
    assert!(there.retries().eq(back.retries()));
}

#[test]
fn a_backoff_may_shrink() {
    let shrinking = Backoff {
        base: secs(60),
        growth: 500,
        ..backoff(Jitter::NoJitter)
    };
    let schedule = retries(u32::MAX, shrinking).schedule();
    assert_eq!(starts(&schedule)[..4], [60, 90, 105, 112]);
    // 60 s, 30 s, ... 1 ms, and nothing after these sixteen.
    let sixteenth = schedule.retries().nth(15).unwrap();
    let last = schedule.retries().nth(u32::MAX as usize - 1).unwrap();
    assert_eq!(sixteenth.wait(), ms(1)..=ms(1));
    assert_eq!(
        (last.wait(), last.start()),
        (ms(0)..=ms(0), sixteenth.start())
    );
}

#[test]
fn the_last_of_u32_max_retries_is_one_step_away() {
    let schedule = retries(u32::MAX, backoff(Jitter::Full)).schedule();
    let mut last_two = schedule.retries().skip(u32::MAX as usize - 2);
    let (before, last) = (last_two.next().unwrap(), last_two.next().unwrap());
    assert_eq!((before.number(), last.number()), (u32::MAX - 1, u32::MAX));
    // 1 + 2 + ... + 32, and the minute of each that is left.
    let end = secs(63 + 60 * (u64::from(u32::MAX) - 6));
    assert_eq!(last.start(), Duration::ZERO..=end);
    assert_eq!(last_two.next(), None);
    assert_eq!(schedule.retries().nth(usize::MAX), None);
}

#[test]
fn sums_saturate() {
    let endless = Backoff {
        base: Duration::MAX,
        max: Duration::MAX,
        ..Backoff::default()
    };
    let schedule = retries(u32::MAX, endless).schedule();
    let last = schedule.retries().nth(u32::MAX as usize - 1).unwrap();
    assert_eq!(last.start(), ms(u64::MAX)..=ms(u64::MAX));
    assert_eq!(schedule.worst_case(Duration::MAX), ms(u64::MAX));
}

#[test]
fn what_is_below_a_millisecond_does_not_count() {
    let fine = Backoff {
        base: Duration::from_micros(1_999),
        max: Duration::from_micros(3_999),
        ..backoff(Jitter::NoJitter)
    };
    let schedule = retries(2, fine).schedule();
    let waits: Vec<_> = schedule
        .retries()
        .map(|retry| *retry.wait().end())
        .collect();
    assert_eq!(waits, [ms(1), ms(2)]);
}

// The limits.

/// The retry with this number, and what stops it after the shortest and the longest waits.
#[track_caller]
fn stops(rule: &RetryRule, number: usize) -> (Option<StopReason>, Option<StopReason>) {
    let schedule = rule.schedule();
    let retry = schedule.retries().nth(number - 1).unwrap();
    (
        retry.stop_after_shortest_waits(),
        retry.stop_after_longest_waits(),
    )
}

#[test]
fn the_hard_limit_stops_what_would_start_when_it_is_reached() {
    let with = |limit| RetryRule {
        limits: hard(limit),
        ..retries(9, backoff(Jitter::NoJitter))
    };
    let reached = Some(StopReason::HardLimit(secs(4)));
    assert_eq!(stops(&with(secs(7)), 3), (reached, reached));
    assert_eq!(stops(&with(ms(7001)), 3), (None, None));
}

#[test]
fn the_soft_limit_stops_what_is_decided_after_it() {
    let with = |limit| RetryRule {
        limits: soft(limit, 0),
        ..retries(9, backoff(Jitter::NoJitter))
    };
    let passed = Some(StopReason::SoftLimit);
    assert_eq!(stops(&with(ms(2999)), 3), (passed, passed));
    assert_eq!(stops(&with(secs(3)), 3), (None, None));
}

#[test]
fn the_soft_limit_leaves_alone_the_first_retries() {
    let with = |min_retries| RetryRule {
        limits: soft(secs(2), min_retries),
        ..retries(9, backoff(Jitter::NoJitter))
    };
    let made = |min_retries| with(min_retries).schedule().most_retries();
    assert_eq!([0, 2, 3, 5, 100].map(made), [2, 2, 3, 5, 9]);
}

#[test]
fn chance_decides_between_the_fewest_and_the_most() {
    let rule = RetryRule {
        limits: hard(secs(600)),
        ..retries(
            u32::MAX,
            backoff(Jitter::Proportional { lo: 500, hi: 1000 }),
        )
    };
    let schedule = rule.schedule();
    assert_eq!(
        (schedule.fewest_retries(), schedule.most_retries()),
        (14, 24)
    );
    let late = Some(StopReason::HardLimit(secs(60)));
    assert_eq!(stops(&rule, 14), (None, None));
    assert_eq!(stops(&rule, 15), (None, late));
    assert_eq!(stops(&rule, 24), (None, late));
    assert_eq!(
        stops(&rule, 25),
        (Some(StopReason::HardLimit(secs(30))), late)
    );
}

#[test]
fn waits_of_zero_never_reach_a_limit() {
    let schedule = RetryRule {
        limits: hard(ms(1)),
        ..retries(u32::MAX, Backoff::default())
    }
    .schedule();
    assert_eq!(schedule.fewest_retries(), u32::MAX);
}

// The worst case.

#[track_caller]
fn worst(rule: &RetryRule, attempt_timeout: Duration) -> (Duration, Option<Duration>) {
    let schedule = rule.schedule();
    (
        schedule.worst_case(attempt_timeout),
        schedule.worst_case_asked(attempt_timeout),
    )
}

#[test]
fn without_limits_the_worst_case_is_every_wait_and_every_attempt() {
    let rule = retries(3, backoff(Jitter::Full));
    assert_eq!(worst(&rule, secs(10)), (secs(47), Some(secs(47))));
    assert_eq!(worst(&rule, Duration::ZERO), (secs(7), Some(secs(7))));
}

#[test]
fn the_hard_limit_and_one_attempt_bound_the_worst_case() {
    let limited = RetryRule {
        limits: hard(secs(60)),
        ..retries(u32::MAX, backoff(Jitter::Full))
    };
    assert_eq!(worst(&limited, secs(10)), (secs(70), Some(secs(70))));
    // Not reached, it changes nothing.
    let reached = RetryRule {
        max_retries: 2,
        ..limited
    };
    assert_eq!(worst(&reached, secs(10)), (secs(33), Some(secs(33))));
    // No attempt takes any time, and the waits are sixty seconds apart in the end.
    let apart = RetryRule {
        limits: hard(secs(600)),
        ..retries(u32::MAX, backoff(Jitter::NoJitter))
    };
    assert_eq!(worst(&apart, Duration::ZERO).0, secs(63 + 8 * 60));
}

#[test]
fn a_hard_limit_that_no_retry_meets_leaves_one_attempt() {
    let limited = RetryRule {
        limits: hard(secs(1)),
        ..retries(3, backoff(Jitter::NoJitter))
    };
    assert_eq!(worst(&limited, secs(10)), (secs(10), Some(secs(10))));
}

#[test]
fn after_the_soft_limit_come_one_wait_and_one_attempt() {
    let limited = |min_retries| RetryRule {
        limits: soft(secs(30), min_retries),
        ..retries(u32::MAX, backoff(Jitter::NoJitter))
    };
    // Decided at 30 s at the latest: 1 + 2 + 4 + 8 of waiting leaves 15 s for attempts, and the
    // fifth wait is 16 s. A sixth finds no time: the waits before it come to 31 s.
    assert_eq!(worst(&limited(0), secs(10)).0, secs(30 + 16 + 10));
    // Nine retries in any case: 1 + ... + 32 and three minutes of waiting, ten attempts.
    assert_eq!(worst(&limited(9), secs(10)).0, secs(63 + 180 + 100));
}

#[test]
fn a_shrinking_backoff_may_wait_longest_at_first() {
    let shrinking = Backoff {
        base: secs(60),
        growth: 100,
        ..backoff(Jitter::NoJitter)
    };
    let limited = RetryRule {
        limits: soft(secs(30), 0),
        ..retries(u32::MAX, shrinking)
    };
    // The second is decided when a minute has passed.
    assert_eq!(worst(&limited, secs(10)).0, secs(10 + 60 + 10));
}

#[test]
fn a_timeout_is_rounded_up() {
    let rule = retries(2, Backoff::default());
    assert_eq!(worst(&rule, Duration::from_micros(1_001)).0, ms(6));
    assert_eq!(worst(&rule, Duration::from_micros(1_000)).0, ms(3));
}

// What the server asks.

fn asked(retry_after: RetryAfter) -> RetryRule {
    RetryRule {
        retry_after: RetryAfter {
            source: RetryAfterSource::Header,
            ..retry_after
        },
        ..retries(3, backoff(Jitter::NoJitter))
    }
}

fn waits_asked(rule: &RetryRule) -> Vec<Option<Duration>> {
    let schedule = rule.schedule();
    schedule.retries().map(|retry| retry.wait_asked()).collect()
}

#[test]
fn a_server_that_is_not_heard_asks_for_nothing() {
    let rule = RetryRule {
        retry_after: RetryAfter::default(),
        ..asked(RetryAfter::default())
    };
    assert_eq!(waits_asked(&rule), [1, 2, 4].map(|wait| Some(secs(wait))));
    assert_eq!(worst(&rule, secs(10)), (secs(47), Some(secs(47))));
}

#[test]
fn without_a_cap_only_the_hard_limit_bounds_what_the_server_asks() {
    let uncapped = asked(RetryAfter::default());
    assert_eq!(waits_asked(&uncapped), [None, None, None]);
    assert_eq!(worst(&uncapped, secs(10)), (secs(47), None));
    let limited = RetryRule {
        limits: hard(secs(600)),
        ..uncapped
    };
    assert_eq!(waits_asked(&limited), [None, None, None]);
    assert_eq!(worst(&limited, secs(10)), (secs(47), Some(secs(610))));
}

#[test]
fn a_cap_bounds_each_wait_and_the_spread_comes_on_top() {
    for cap in [
        RetryAfterCap::StopAbove(secs(3)),
        RetryAfterCap::BackoffAbove(secs(3)),
    ] {
        let capped = |spread| {
            asked(RetryAfter {
                cap,
                spread,
                ..RetryAfter::default()
            })
        };
        let plain = [3000, 3000, 4000].map(|wait| Some(ms(wait)));
        assert_eq!(waits_asked(&capped(0)), plain);
        let spread = [3300, 3300, 4000].map(|wait| Some(ms(wait)));
        assert_eq!(waits_asked(&capped(100)), spread);
        assert_eq!(worst(&capped(100), secs(10)), (secs(47), Some(ms(50_600))));
    }
}

#[test]
fn a_server_that_asks_for_less_leaves_time_for_more() {
    let with = |role| RetryRule {
        limits: hard(secs(2)),
        ..asked(RetryAfter {
            cap: RetryAfterCap::StopAbove(ms(500)),
            role,
            ..RetryAfter::default()
        })
    };
    // One wait of a second, or up to three of less.
    let replaced = worst(&with(RetryAfterRole::Replace), secs(10));
    assert_eq!(replaced, (secs(12), Some(secs(12))));
    let quick = worst(&with(RetryAfterRole::Replace), ms(1));
    assert_eq!(quick, (ms(1002), Some(ms(2001))));
    let floored = worst(&with(RetryAfterRole::Floor), ms(1));
    assert_eq!(floored, (ms(1002), Some(ms(1002))));
}

// The text.

#[test]
fn no_retries_are_one_line() {
    shows(
        &RetryRule::never(),
        "No retries. Worst case: one attempt's own timeout.\n",
    );
}

#[test]
fn one_retry_at_once() {
    shows(
        &retries(1, Backoff::default()),
        "\
1 retry. Times leave out what the attempts themselves take.

retry  wait  starts after
    1  0 ms  0 ms

Statuses: none.
Failures: for any method.
Server: is not asked how long to wait.
Limits: none.
Worst case: 2 attempts' own timeouts.
Advice: what `sent_failures` retries is sent again at once: it has no backoff, and the server is not asked how long to wait.
",
    );
}

#[test]
fn an_endless_rule_is_a_short_table() {
    shows(
        &RetryRule {
            retry_after: RetryAfter {
                source: RetryAfterSource::Header,
                ..RetryAfter::default()
            },
            ..retries(u32::MAX, backoff(Jitter::Full))
        },
        "\
Up to 4294967295 retries. Times leave out what the attempts themselves take.

     retry  wait             starts after     if the server asks, after
         1  0 to 1 s         0 to 1 s         any time
         2  0 to 2 s         0 to 3 s         any time
         3  0 to 4 s         0 to 7 s         any time
         4  0 to 8 s         0 to 15 s        any time
         5  0 to 16 s        0 to 31 s        any time
         6  0 to 32 s        0 to 1 min 3 s   any time
         7  0 to 1 min       0 to 2 min 3 s   any time
         …  0 to 1 min each  …
4294967295  0 to 1 min       0 to 8171 years  any time

Statuses: none.
Failures: for any method.
Server: may ask for any wait, however long.
Limits: none.
Worst case: 8171 years and 4294967296 attempts' own timeouts.
If the server asks: no end, for any wait is accepted.
",
    );
}

#[test]
fn limits_end_the_table_where_no_retry_starts_any_more() {
    shows(
        &RetryRule {
            limits: hard(secs(600)),
            ..retries(100, backoff(Jitter::Proportional { lo: 500, hi: 1000 }))
        },
        "\
Up to 100 retries. Times leave out what the attempts themselves take.

retry  wait                starts after
    1  500 ms to 1 s       500 ms to 1 s
    2  1 s to 2 s          1.5 s to 3 s
    3  2 s to 4 s          3.5 s to 7 s
    4  4 s to 8 s          7.5 s to 15 s
    5  8 s to 16 s         15.5 s to 31 s
    6  16 s to 32 s        31.5 s to 1 min 3 s
    7  30 s to 1 min       1 min 1.5 s to 2 min 3 s
    …  30 s to 1 min each  …
   24  30 s to 1 min       9 min 31.5 s to 19 min 3 s  may be too late: hard limit
   25  30 s to 1 min       10 min 1.5 s to 20 min 3 s  too late: hard limit

Statuses: none.
Failures: for any method.
Server: is not asked how long to wait.
Limits: after 10 min no retry starts (hard).
Time for: 14 to 24 retries, fewer if attempts are slow.
Worst case: 10 min and one attempt's own timeout.
",
    );
}

#[test]
fn both_limits_and_a_server_with_a_cap() {
    let limits = Limits {
        soft_elapsed: Some(secs(5)),
        min_retries: 2,
        hard_elapsed: Some(secs(90)),
    };
    let retry_after = RetryAfter {
        cap: RetryAfterCap::BackoffAbove(secs(30)),
        role: RetryAfterRole::Floor,
        spread: 125,
        ..RetryAfter::default()
    };
    shows(
        &RetryRule {
            max_retries: 5,
            limits,
            ..asked(retry_after)
        },
        "\
Up to 5 retries. Times leave out what the attempts themselves take.

retry  wait  starts after  if the server asks, after
    1  1 s   1 s           up to 33.75 s
    2  2 s   3 s           up to 1 min 7.5 s
    3  4 s   7 s           up to 1 min 41.25 s
    4  8 s   15 s          up to 2 min 15 s           too late: soft limit

Statuses: none.
Failures: for any method.
Server: may ask for a wait of up to 30 s; above that the rule's own applies; chance adds up to 12.5 %; the rule's own counts if it is longer.
Limits: after 5 s only the first 2 retries are still made (soft), after 1 min 30 s no retry starts (hard).
Time for: 3 retries, fewer if attempts are slow.
Worst case: 7 s and 4 attempts' own timeouts, but no more than 1 min 30 s and one attempt's own timeout.
If the server asks: 1 min 30 s and one attempt's own timeout.
",
    );
}

#[test]
fn a_soft_limit_with_retries_that_it_leaves_alone() {
    shows(
        &RetryRule {
            limits: soft(secs(5), 2),
            ..retries(5, backoff(Jitter::NoJitter))
        },
        "\
Up to 5 retries. Times leave out what the attempts themselves take.

retry  wait  starts after
    1  1 s   1 s
    2  2 s   3 s
    3  4 s   7 s
    4  8 s   15 s          too late: soft limit

Statuses: none.
Failures: for any method.
Server: is not asked how long to wait.
Limits: after 5 s only the first 2 retries are still made (soft).
Time for: 3 retries, fewer if attempts are slow.
Worst case: 7 s and 4 attempts' own timeouts, but no more than 9 s and one attempt's own timeout, or 3 s and 3 attempts' own timeouts, whichever is longer.
Advice: clients that fail together come back together: there is no jitter in `backoff` and no `retry_after.spread`.
",
    );
}

#[test]
fn statuses_and_failures_are_named() {
    let own = |base, max| {
        Some(Backoff {
            base,
            max,
            jitter: Jitter::Full,
            ..Backoff::default()
        })
    };
    let rule = RetryRule {
        statuses: vec![
            StatusRule::new([501], Methods::Never),
            StatusRule {
                backoff: own(secs(5), secs(60)),
                ..StatusRule::new([429], Methods::Any)
            },
            StatusRule::new(
                [StatusMatch::Code(408), StatusMatch::Range(500, 599)],
                Methods::Listed(vec![Method::GET, Method::PUT]),
            ),
        ],
        unsent_failures: true,
        timeouts: false,
        override_header: Some(HeaderName::from_static("x-should-retry")),
        veto_header: Some(HeaderName::from_static("x-no-retry")),
        ..RetryRule::transient()
    };
    shows(
        &rule,
        "\
Up to 3 retries. Times leave out what the attempts themselves take.
Waits: of all rows together.

retry  wait       starts after  if the server asks, after
    1  0 to 5 s   0 to 5 s      up to 1 min
    2  0 to 10 s  0 to 15 s     up to 2 min
    3  0 to 20 s  0 to 35 s     up to 3 min

Statuses: 501 never; 429 for any method, its own wait of 0 to 5 s, growing to 20 s; \
408, 500-599 for GET, PUT; \
from 400 on the header x-should-retry overrides; from 400 on the header x-no-retry may forbid.
Failures: for idempotent methods, unsent ones for any method; no timeouts.
Server: may ask for a wait of up to 1 min; above that the send stops.
Limits: none.
Worst case: 35 s and 4 attempts' own timeouts.
If the server asks: 3 min and 4 attempts' own timeouts.
",
    );
}

#[track_caller]
fn own_wait(backoff: Backoff, text: &str) {
    let row = StatusRule {
        backoff: Some(backoff),
        ..StatusRule::new([429], Methods::Any)
    };
    let rule = RetryRule {
        statuses: vec![row],
        ..RetryRule::transient()
    };
    let schedule = rule.schedule().to_string();
    let line = schedule.lines().find(|line| line.starts_with("Statuses: "));
    assert_eq!(line, Some(text));
}

#[test]
fn the_wait_of_a_row_is_in_words() {
    let steady = Backoff {
        growth: 1000,
        ..backoff(Jitter::NoJitter)
    };
    let text = "Statuses: 429 for any method, its own wait of 1 s.";
    own_wait(steady.clone(), text);
    let halving = Backoff {
        growth: 500,
        ..steady
    };
    let text = "Statuses: 429 for any method, its own wait of 1 s, shrinking to 250 ms.";
    own_wait(halving, text);
    own_wait(Backoff::default(), "Statuses: 429 for any method, at once.");
}

#[test]
fn the_table_says_that_its_waits_are_of_all_rows_only_if_they_differ() {
    let says_so = |rule: &RetryRule| {
        let schedule = rule.schedule().to_string();
        schedule.contains("\nWaits: of all rows together.\n")
    };
    let row = StatusRule {
        backoff: Some(backoff(Jitter::Full)),
        ..StatusRule::new([429], Methods::Any)
    };
    let rule = RetryRule {
        statuses: vec![row],
        ..RetryRule::transient()
    };
    assert!(says_so(&rule));
    assert!(!says_so(&RetryRule::transient()));
    // The row is all that is retried.
    let alone = RetryRule {
        sent_failures: Methods::Never,
        ..rule
    };
    assert!(!says_so(&alone));
}

#[track_caller]
fn failures(rule: &RetryRule, text: &str) {
    let schedule = rule.schedule().to_string();
    let line = schedule.lines().find(|line| line.starts_with("Failures: "));
    assert_eq!(line, Some(text));
}

#[test]
fn failures_are_in_words() {
    let rule = |sent_failures, unsent_failures| RetryRule {
        sent_failures,
        unsent_failures,
        ..RetryRule::transient()
    };
    failures(&rule(Methods::Never, false), "Failures: none.");
    let unsent = "Failures: only unsent ones, for any method.";
    failures(&rule(Methods::Never, true), unsent);
    failures(&rule(Methods::Any, true), "Failures: for any method.");
    let listed = Methods::Listed(vec![]);
    failures(&rule(listed, false), "Failures: for no method.");
}

#[test]
fn a_backoff_that_nothing_uses_is_left_out() {
    let own = backoff(Jitter::NoJitter);
    let row = StatusRule {
        backoff: Some(own),
        ..StatusRule::new([429], Methods::Any)
    };
    let rule = RetryRule {
        sent_failures: Methods::Never,
        statuses: vec![row],
        ..retries(2, Backoff::default())
    };
    let waits = |rule: &RetryRule| -> Vec<_> {
        let schedule = rule.schedule();
        schedule.retries().map(|retry| retry.wait()).collect()
    };
    assert_eq!(waits(&rule), [secs(1)..=secs(1), secs(2)..=secs(2)]);
    let used = RetryRule {
        sent_failures: Methods::Idempotent,
        ..rule
    };
    assert_eq!(waits(&used), [ms(0)..=secs(1), ms(0)..=secs(2)]);
}

/// Found by fuzzing: the rule's own backoff is zero and nothing uses it, so a wait of zero is no
/// part of the first interval. The row's shrinks to nothing after one retry.
#[test]
fn a_row_whose_backoff_shrinks_is_alone_in_the_schedule_if_nothing_else_is_retried() {
    let row = StatusRule {
        backoff: Some(Backoff {
            base: ms(10),
            max: secs(8),
            growth: 0,
            jitter: Jitter::NoJitter,
        }),
        ..StatusRule::new([219], Methods::Idempotent)
    };
    let rule = RetryRule {
        sent_failures: Methods::Never,
        statuses: vec![row, StatusRule::new([0_u16; 0], Methods::Never)],
        ..retries(110, Backoff::default())
    };
    let schedule = rule.schedule();
    let waits: Vec<_> = schedule.retries().map(|retry| retry.wait()).collect();
    assert_eq!(waits[0], ms(10)..=ms(10));
    assert!(waits[1..].iter().all(|wait| *wait == (ms(0)..=ms(0))));
    // Something that uses it brings it back.
    let used = RetryRule {
        unsent_failures: true,
        ..rule
    };
    let first = used.schedule().retries().next().map(|retry| retry.wait());
    assert_eq!(first, Some(ms(0)..=ms(10)));
}

#[test]
fn advice_is_given_without_retries_too() {
    let rule = RetryRule {
        max_retries: 0,
        ..RetryRule::transient()
    };
    shows(
        &rule,
        "No retries. Worst case: one attempt's own timeout.\n\
         Advice: there are statuses or failures to retry, and `max_retries` is 0.\n",
    );
}

#[test]
fn how_many_retries_there_is_time_for_is_in_words() {
    let time_for = |limit| {
        let rule = RetryRule {
            limits: hard(limit),
            ..retries(3, backoff(Jitter::NoJitter))
        };
        let text = rule.schedule().to_string();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Time for: "));
        line.map(str::to_owned)
    };
    // The retries start after 1, 3 and 7 s.
    let line = |text: &str| Some(text.to_owned());
    assert_eq!(time_for(ms(1000)), line("no retry."));
    assert_eq!(
        time_for(ms(1001)),
        line("1 retry, none if attempts are slow.")
    );
    assert_eq!(
        time_for(ms(3001)),
        line("2 retries, fewer if attempts are slow.")
    );
    assert_eq!(time_for(ms(7001)), None);
}

#[test]
fn times_are_in_the_units_of_their_size() {
    let wait = |wait| {
        let rule = retries(
            1,
            Backoff {
                base: wait,
                max: wait,
                ..Backoff::default()
            },
        );
        let text = rule.schedule().to_string();
        let row = text.lines().nth(3).unwrap();
        row.split("  ")
            .filter(|cell| !cell.is_empty())
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(wait(ms(999)), "999 ms");
    assert_eq!(wait(ms(1000)), "1 s");
    assert_eq!(wait(ms(1050)), "1.05 s");
    assert_eq!(wait(ms(59_999)), "59.999 s");
    assert_eq!(wait(ms(60_001)), "1 min 0.001 s");
    assert_eq!(wait(secs(3600)), "1 h");
    assert_eq!(wait(secs(5430)), "1 h 30 min 30 s");
    assert_eq!(wait(secs(90_000)), "1 d 1 h");
    assert_eq!(wait(secs(86_400 * 1000)), "2 years");
    assert_eq!(wait(Duration::MAX), "584942417 years");
}

// What holds for every rule.

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        1 => (0_u64..5_000).prop_map(Duration::from_micros),
        4 => (0_u64..100_000).prop_map(Duration::from_millis),
        1 => Just(Duration::MAX),
        1 => any::<u64>().prop_map(Duration::from_millis),
    ]
}

fn per_mille() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0_u32..3000, 1 => any::<u32>()]
}

fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0_u32..40, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn backoffs() -> impl Strategy<Value = Backoff> {
    let jitter = prop_oneof![
        Just(Jitter::NoJitter),
        Just(Jitter::Full),
        (per_mille(), per_mille()).prop_map(|(lo, hi)| Jitter::Proportional { lo, hi }),
    ];
    (durations(), durations(), per_mille(), jitter)
        .prop_map(|(base, max, growth, jitter)| Backoff {
            base,
            max,
            growth,
            jitter,
        })
        .boxed()
}

fn rules() -> impl Strategy<Value = RetryRule> {
    let limits = (option::of(durations()), counts(), option::of(durations())).prop_map(
        |(soft_elapsed, min_retries, hard_elapsed)| Limits {
            soft_elapsed,
            min_retries,
            hard_elapsed,
        },
    );
    let cap = prop_oneof![
        durations().prop_map(RetryAfterCap::StopAbove),
        durations().prop_map(RetryAfterCap::BackoffAbove),
        durations().prop_map(RetryAfterCap::ClampTo),
        Just(RetryAfterCap::NoCap),
    ];
    let source = select(vec![
        RetryAfterSource::Ignore,
        RetryAfterSource::MsThenHeader,
    ]);
    let role = select(vec![RetryAfterRole::Replace, RetryAfterRole::Floor]);
    let retry_after = (source, cap, any::<bool>(), role, per_mille()).prop_map(
        |(source, cap, zero_means_backoff, role, spread)| RetryAfter {
            headers: Vec::new(),
            source,
            cap,
            zero_means_backoff,
            role,
            spread,
        },
    );
    let rule = (counts(), backoffs(), limits, retry_after).boxed();
    let rule = rule.prop_map(|(max_retries, backoff, limits, retry_after)| RetryRule {
        max_retries,
        backoff,
        limits,
        retry_after,
        sent_failures: Methods::Any,
        override_header: None,
        ..RetryRule::transient()
    });
    // The row of 503 sometimes has a backoff of its own.
    (rule, option::weighted(0.3, backoffs())).prop_map(|(mut rule, own)| {
        rule.statuses[0].backoff = own;
        rule
    })
}

/// What an attempt comes to: how long it takes, what chance says, and what the server asks.
type Step = (Duration, f64, Option<u64>);

fn steps(longest: u64) -> impl Strategy<Value = Vec<Step>> {
    let chance = prop_oneof![4 => 0.0..1.0_f64, 1 => Just(0.0), 1 => Just(1.0)];
    let step = (
        (0..=longest).prop_map(ms),
        chance,
        option::of(0_u64..100_000),
    );
    proptest::collection::vec(step, 60)
}

/// What comes of every attempt of a send.
#[derive(Clone, Copy, PartialEq)]
enum Always {
    Closed,
    Busy,
    BusyAndAsking,
}

use Always::{Busy, BusyAndAsking, Closed};

/// A send that the rule is asked about: its waits, and how long it takes in all.
fn send(rule: &RetryRule, steps: &[Step], always: Always) -> (Vec<Duration>, Duration) {
    let mut waits = Vec::new();
    let mut elapsed = Duration::ZERO;
    for (attempt, &(takes, random, asks)) in (0..).zip(steps) {
        elapsed = elapsed.saturating_add(takes);
        let mut headers = HeaderMap::new();
        if let Some(asks) = asks.filter(|_| always == BusyAndAsking) {
            headers.insert("retry-after-ms", HeaderValue::from(asks));
        }
        let outcome = match always {
            Closed => AttemptOutcome::Failure(TransportError::Closed),
            Busy | BusyAndAsking => AttemptOutcome::Response {
                status: StatusCode::SERVICE_UNAVAILABLE,
                headers: &headers,
            },
        };
        let facts = Attempt {
            attempt,
            random,
            elapsed,
            ..Attempt::new(&Method::GET)
        };
        match rule.decide(&outcome, &facts) {
            Decision::Wait(wait) => waits.push(wait),
            Decision::Stop(_) => break,
        }
        elapsed = elapsed.saturating_add(*waits.last().unwrap());
    }
    (waits, elapsed)
}

/// The worst case as one would write it down, retry by retry.
fn slow_worst_case(rule: &RetryRule, timeout: Duration) -> Duration {
    let schedule = rule.schedule();
    let limits = Limits {
        soft_elapsed: rule.limits.soft_elapsed.map(whole),
        hard_elapsed: rule.limits.hard_elapsed.map(whole),
        ..rule.limits
    };
    let (mut start, mut worst) = (Duration::ZERO, timeout);
    for retry in schedule.retries().take(schedule.most_retries() as usize) {
        let mut decided = start.saturating_add(timeout);
        if retry.number() > limits.min_retries {
            decided = decided.min(limits.soft_elapsed.unwrap_or(Duration::MAX));
        }
        start = decided
            .saturating_add(*retry.wait().end())
            .min(limits.hard_elapsed.unwrap_or(Duration::MAX));
        worst = worst.max(start.saturating_add(timeout));
    }
    whole(worst)
}

fn whole(duration: Duration) -> Duration {
    ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

proptest! {
    #[test]
    fn every_wait_lies_in_its_interval(rule in rules(), steps in steps(0)) {
        let schedule = rule.schedule();
        for always in [Closed, Busy] {
            let (waits, _) = send(&rule, &steps, always);
            let mut sum = Duration::ZERO;
            for (wait, retry) in waits.iter().zip(schedule.retries()) {
                sum = sum.saturating_add(*wait).min(ms(u64::MAX));
                prop_assert!(retry.wait().contains(wait), "{wait:?} in {:?}", retry.wait());
                prop_assert!(retry.start().contains(&sum), "{sum:?} in {:?}", retry.start());
            }
        }
    }

    #[test]
    fn every_delay_of_the_backoff_lies_in_its_interval(
        rule in rules(), made in counts(), random in any::<f64>(),
    ) {
        let schedule = rule.schedule();
        if let Some(retry) = schedule.retries().nth(made as usize) {
            let delay = rule.backoff.delay(made, random);
            prop_assert!(retry.wait().contains(&delay), "{delay:?} in {:?}", retry.wait());
        }
    }

    #[test]
    fn no_server_gets_a_longer_wait(rule in rules(), steps in steps(0)) {
        let schedule = rule.schedule();
        let (waits, _) = send(&rule, &steps, BusyAndAsking);
        for (wait, retry) in waits.iter().zip(schedule.retries()) {
            let longest = retry.wait_asked().unwrap_or(Duration::MAX);
            prop_assert!(*wait <= longest, "{wait:?} of {longest:?}");
        }
    }

    #[test]
    fn as_many_retries_are_made_as_foretold(rule in rules(), steps in steps(0)) {
        let schedule = rule.schedule();
        for always in [Closed, Busy] {
            let (waits, _) = send(&rule, &steps, always);
            let made = waits.len() as u32;
            let looked_at = steps.len() as u32;
            prop_assert!(made >= schedule.fewest_retries().min(looked_at));
            prop_assert!(made <= schedule.most_retries());
        }
        prop_assert!(schedule.most_retries() <= rule.max_retries);
    }

    #[test]
    fn without_jitter_exactly_so_many_and_for_the_same_reason(rule in rules(), steps in steps(0)) {
        let backoff = Backoff { jitter: Jitter::NoJitter, ..rule.backoff };
        let statuses = RetryRule::transient().statuses;
        let rule = RetryRule { backoff, statuses, ..rule };
        let schedule = rule.schedule();
        prop_assert_eq!(schedule.fewest_retries(), schedule.most_retries());
        let (waits, elapsed) = send(&rule, &steps, Closed);
        prop_assert_eq!(waits.len(), schedule.most_retries().min(60) as usize);
        if let Some(next) = schedule.retries().nth(waits.len()) {
            let attempt = waits.len() as u32;
            let facts = Attempt { attempt, elapsed, ..Attempt::new(&Method::GET) };
            let closed = AttemptOutcome::Failure(TransportError::Closed);
            let stop = match rule.decide(&closed, &facts) {
                Decision::Wait(_) => None,
                Decision::Stop(reason) => Some(reason),
            };
            prop_assert_eq!(next.stop_after_shortest_waits(), stop);
        }
    }

    #[test]
    fn no_send_takes_longer_than_the_worst_case(rule in rules(), steps in steps(5_000)) {
        let schedule = rule.schedule();
        let timeout = ms(5_000);
        for always in [Closed, Busy] {
            let (_, elapsed) = send(&rule, &steps, always);
            prop_assert!(elapsed.min(ms(u64::MAX)) <= schedule.worst_case(timeout));
        }
        let (_, elapsed) = send(&rule, &steps, BusyAndAsking);
        if let Some(worst) = schedule.worst_case_asked(timeout) {
            prop_assert!(elapsed.min(ms(u64::MAX)) <= worst);
        }
    }

    #[test]
    fn the_worst_case_is_that_of_the_retries_one_by_one(
        rule in rules(), max_retries in 0_u32..200, timeout in durations(),
    ) {
        let timeout = whole(timeout);
        let rule = RetryRule { max_retries, ..rule };
        prop_assert_eq!(rule.schedule().worst_case(timeout), slow_worst_case(&rule, timeout));
    }

    #[test]
    fn a_retry_far_off_is_the_one_that_the_steps_lead_to(
        rule in rules(), skipped in 0_usize..200, again in 0_usize..50,
    ) {
        let schedule = rule.schedule();
        let (mut jumping, mut walking) = (schedule.retries(), schedule.retries());
        for skipped in [skipped, again] {
            let walked = (0..skipped).map(|_| walking.next()).last();
            let walked = if walked == Some(None) { None } else { walking.next() };
            prop_assert_eq!(jumping.nth(skipped), walked);
        }
        prop_assert_eq!(jumping.next(), walking.next());
    }

    #[test]
    fn every_rule_is_a_short_text(rule in rules()) {
        let text = rule.schedule().to_string();
        prop_assert!(text.lines().count() <= 26, "{text}");
        prop_assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    }
}
