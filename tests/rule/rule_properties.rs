//! What holds for every rule and every fact, sensible or not.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reqwest_retry_rules::{
    AttemptOutcome, Backoff, Decision, Jitter, Methods, RetryAfter, RetryAfterCap, RetryRule,
    StatusRule, TransportError, WaitFormat, WaitHeader, parse_retry_after, retry_after_ms,
};

use crate::support::model::Facts;
use crate::support::rules::{
    backoffs, counts, durations, facts, headers, methods, moments, rules, samples, waits,
};

/// The wait that `rule` decides on, where it does.
fn wait(rule: &RetryRule, facts: &Facts) -> Option<Duration> {
    match rule.decide(&facts.outcome(), &facts.attempt()) {
        Decision::Wait(wait) => Some(wait),
        Decision::Stop(_) => None,
    }
}

/// Rules that retry most of what fails, so that waits are to be seen.
fn eager_rules() -> impl Strategy<Value = RetryRule> {
    rules().boxed().prop_map(|rule| RetryRule {
        max_retries: u32::MAX,
        statuses: vec![StatusRule::new([100..=999], Methods::Any)],
        sent_failures: Methods::Any,
        unsent_failures: true,
        timeouts: true,
        override_header: None,
        veto_header: None,
        ..rule
    })
}

fn floored(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

proptest! {
    #[test]
    fn the_same_facts_have_the_same_answer(rule in rules(), facts in facts()) {
        let first = rule.decide(&facts.outcome(), &facts.attempt());
        let second = rule.clone().decide(&facts.clone().outcome(), &facts.clone().attempt());
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_wait_is_whole_milliseconds(rule in eager_rules(), facts in facts()) {
        if let Some(wait) = wait(&rule, &facts) {
            prop_assert_eq!(wait, floored(wait));
        }
    }

    #[test]
    fn a_wait_is_at_most_the_backoffs_maximum_unless_a_server_asked_for_more(
        rule in eager_rules(),
        facts in facts(),
    ) {
        let facts =
            Facts { server_delay: None, paused: None, headers: HeaderMap::new(), ..facts };
        if let Some(wait) = wait(&rule, &facts) {
            prop_assert!(wait <= floored(rule.backoff.max));
        }
    }

    #[test]
    fn a_server_does_not_wait_less_than_it_asked_for(
        rule in eager_rules(),
        facts in facts(),
        asked in durations(),
    ) {
        let retry_after = RetryAfter { zero_means_backoff: false, ..rule.retry_after };
        let rule = RetryRule { retry_after, ..rule };
        let facts = Facts { server_delay: Some(asked), ..facts };
        match rule.retry_after.cap {
            RetryAfterCap::BackoffAbove(cap) if floored(asked) > floored(cap) => {}
            RetryAfterCap::ClampTo(cap) => {
                if let Some(wait) = wait(&rule, &facts) {
                    prop_assert!(wait >= floored(asked).min(floored(cap)));
                }
            }
            _ => {
                if let Some(wait) = wait(&rule, &facts) {
                    prop_assert!(wait >= floored(asked));
                }
            }
        }
    }

    #[test]
    fn nothing_is_sent_to_an_origin_that_is_paused(rule in eager_rules(), facts in facts()) {
        if let Some(wait) = wait(&rule, &facts) {
            prop_assert!(facts.paused.is_none_or(|paused| wait >= floored(paused)));
        }
    }

    #[test]
    fn a_rows_own_backoff_is_in_place_of_the_rules(
        rule in eager_rules(),
        facts in facts(),
        own in backoffs(),
    ) {
        let mut with_row = rule.clone();
        with_row.statuses[0].backoff = Some(own.clone());
        let with_rule = RetryRule { backoff: own, ..rule.clone() };
        let answered = Facts { failure: None, ..facts.clone() };
        prop_assert_eq!(wait(&with_row, &answered), wait(&with_rule, &answered));
        let failed = Facts { failure: Some(TransportError::Closed), ..facts };
        prop_assert_eq!(wait(&with_row, &failed), wait(&rule, &failed));
    }

    #[test]
    fn what_the_caller_refuses_is_not_retried(rule in eager_rules(), facts in facts()) {
        prop_assert_eq!(wait(&rule, &Facts { vetoed: true, ..facts }), None);
    }

    #[test]
    fn what_was_processed_is_repeated_only_if_it_may_be(
        rule in eager_rules(),
        facts in facts(),
        sent_failures in methods(),
    ) {
        let rule = RetryRule { sent_failures, ..rule };
        let facts = Facts { replaced: true, ..facts };
        if wait(&rule, &facts).is_some() {
            let repeatable = rule.sent_failures.allows(&facts.method, facts.idempotent);
            prop_assert!(facts.idempotent || repeatable);
        }
    }

    #[test]
    fn a_server_that_forbids_it_is_not_asked_again(
        rule in eager_rules(),
        facts in facts(),
        veto: bool,
    ) {
        let name = HeaderName::from_static("x-should-retry");
        let rule = if veto {
            RetryRule { veto_header: Some(name.clone()), ..rule }
        } else {
            RetryRule { override_header: Some(name.clone()), ..rule }
        };
        let mut headers = facts.headers;
        headers.insert(name, HeaderValue::from_static(" False"));
        let status = facts.status.max(StatusCode::BAD_REQUEST);
        let facts = Facts { failure: None, status, headers, ..facts };
        prop_assert_eq!(wait(&rule, &facts), None);
    }

    #[test]
    fn a_wait_fits_into_the_time_there_is(rule in eager_rules(), facts in facts()) {
        if let Some(wait) = wait(&rule, &facts) {
            let until = floored(floored(facts.elapsed).saturating_add(wait));
            prop_assert!(rule.limits.hard_elapsed.is_none_or(|hard| until < floored(hard)));
            prop_assert!(facts.remaining.is_none_or(|left| wait < floored(left)));
        }
    }

    #[test]
    fn no_more_retries_are_made_than_the_rule_has(rule in rules(), facts in facts()) {
        if wait(&rule, &facts).is_some() {
            prop_assert!(facts.attempt < rule.max_retries);
            prop_assert!(facts.replayable && !facts.vetoed);
        }
    }

    #[test]
    fn a_method_that_nothing_allows_is_retried_only_if_unsent_or_if_the_server_says_so(
        rule in rules(),
        facts in facts(),
    ) {
        let conditions = facts.condition.iter().chain([&rule.sent_failures]);
        let mut conditions = conditions.chain(rule.statuses.iter().map(|status| &status.methods));
        let allowed = conditions.any(|methods| methods.allows(&facts.method, facts.idempotent));
        if !allowed && wait(&rule, &facts).is_some() {
            match facts.outcome() {
                AttemptOutcome::Failure(failure) => {
                    prop_assert!(rule.unsent_failures && failure.is_unsent());
                }
                AttemptOutcome::Response { status, headers } => {
                    prop_assert!(status.as_u16() >= 400);
                    let said = rule.override_header.as_ref().and_then(|name| headers.get(name));
                    let said = said.map(|value| value.to_str().unwrap().trim().to_lowercase());
                    prop_assert_eq!(said.as_deref(), Some("true"));
                }
            }
        }
    }

    #[test]
    fn what_cannot_pass_by_itself_is_never_retried(
        rule in rules(),
        facts in facts(),
        failure in select(vec![TransportError::Certificate, TransportError::Protocol]),
    ) {
        let facts = Facts { failure: Some(failure), ..facts };
        prop_assert_eq!(wait(&rule, &facts), None);
    }

    #[test]
    fn a_delay_stays_in_its_jitters_interval(
        backoff in backoffs(),
        attempt in counts(),
        random in samples(),
    ) {
        let max = floored(backoff.max);
        let without = Backoff { jitter: Jitter::NoJitter, ..backoff.clone() };
        let without = without.delay(attempt, random);
        prop_assert!(without <= max);
        let delay = backoff.delay(attempt, random);
        match backoff.jitter {
            Jitter::NoJitter => prop_assert_eq!(delay, without),
            Jitter::Full => prop_assert!(delay < without || without.is_zero()),
            Jitter::Proportional { lo, hi } => {
                let part = |per_mille| {
                    let ms = without.as_millis() * u128::from(per_mille) / 1000;
                    max.min(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)))
                };
                prop_assert!(part(lo.min(hi)) <= delay && delay <= part(lo.max(hi)));
            }
        }
    }

    #[test]
    fn doubling_is_exact(
        base in prop_oneof![Just(0), 1_u64..9, any::<u64>()],
        attempt in counts(),
        max: u64,
    ) {
        let backoff = Backoff {
            base: Duration::from_millis(base),
            max: Duration::from_millis(max),
            growth: 2000,
            jitter: Jitter::NoJitter,
        };
        let exact = (0..attempt.min(64)).fold(u128::from(base), |delay, _| delay * 2);
        let expected = u64::try_from(exact).unwrap_or(u64::MAX).min(max);
        prop_assert_eq!(backoff.delay(attempt, 0.5), Duration::from_millis(expected));
    }

    #[test]
    fn any_other_growth_agrees_with_the_exact_product(
        attempt in prop_oneof![0_u32..8, 0_u32..400],
        // Where between no growth and one that fills 53 bits, and how much of these the base takes.
        (steepness, start) in (-0.3..1.0_f64, 0.0..1.0_f64),
    ) {
        let growth = 1000.0 * (53.0 * steepness / f64::from(attempt.max(1))).exp2();
        let base = (start * (53.0 - (53.0 * steepness).max(0.0))).exp2();
        prop_assert_eq!(agrees(base as u64, growth.min(4e9) as u32, attempt), Ok(()));
    }

    #[test]
    fn any_text_is_read_or_not(text in prop_oneof!["\\PC*", ".*", waits()], now in moments()) {
        for now in [None, Some(now)] {
            let wait = parse_retry_after(&text, now);
            prop_assert_eq!(wait, wait.map(floored));
            prop_assert_eq!(parse_retry_after(&format!(" \t{text}\r\n"), now), wait);
            // White space that is none in HTTP.
            prop_assert_eq!(parse_retry_after(&format!("{text}\u{b}"), now), None);
            prop_assert_eq!(parse_retry_after(&format!("\u{a0}{text}"), now), None);
        }
    }

    #[test]
    fn any_header_is_read_or_not(headers in headers(), now in moments()) {
        let name = HeaderName::from_static("retry-after-ms");
        let millis = WaitHeader { name, format: WaitFormat::Millis, statuses: vec![] };
        for now in [None, Some(now)] {
            let standard = headers.get_all("retry-after").iter().find_map(|value| {
                value.to_str().ok().and_then(|value| parse_retry_after(value, now))
            });
            let wait = retry_after_ms(&headers, now);
            prop_assert_eq!(wait, millis.read(&headers, now).or(standard));
        }
    }

    #[test]
    fn decimals_are_read_to_the_millisecond(whole: u128, fraction in option::of("[0-9]{1,9}")) {
        let text = match &fraction {
            Some(digits) => format!("{whole}.{digits}"),
            None => whole.to_string(),
        };
        let padded = format!("{}000", fraction.unwrap_or_default());
        let thousandths: u128 = padded[..3].parse().unwrap();
        let saturated = |ms: Option<u128>| {
            Duration::from_millis(ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(u64::MAX))
        };
        let ms = whole.checked_mul(1000).and_then(|ms| ms.checked_add(thousandths));
        prop_assert_eq!(parse_retry_after(&text, None), Some(saturated(ms)));

        let value = HeaderValue::from_str(&text).unwrap();
        let headers = HeaderMap::from_iter([(HeaderName::from_static("retry-after-ms"), value)]);
        prop_assert_eq!(retry_after_ms(&headers, None), Some(saturated(Some(whole))));
    }

    #[test]
    fn a_date_is_as_far_off_as_it_is(then in 0_u64..253_402_300_800, now in moments()) {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(then);
        let date = httpdate::fmt_http_date(then);
        let wait = floored(then.duration_since(now).unwrap_or_default());
        prop_assert_eq!(parse_retry_after(&date, Some(now)), Some(wait));
        prop_assert_eq!(parse_retry_after(&date, None), None);
        prop_assert_eq!(parse_retry_after(&date.replace("GMT", "UTC"), Some(now)), Some(wait));
        for not_http in ["\u{b}", "\u{c}", "\u{a0}"] {
            prop_assert_eq!(parse_retry_after(&format!("{date}{not_http}"), Some(now)), None);
            prop_assert_eq!(parse_retry_after(&format!("{not_http}{date}"), Some(now)), None);
        }
    }

    #[test]
    fn a_leap_second_is_the_next(minute in 0_u64..4_223_371_680, now in moments()) {
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(minute * 60 + 59);
        let next = last + Duration::from_secs(1);
        let wait = Some(floored(next.duration_since(now).unwrap_or_default()));

        let date = httpdate::fmt_http_date(last);
        let leap = date.replace(":59 GMT", ":60 GMT");
        prop_assert_eq!(parse_retry_after(&leap, Some(now)), wait);
        let [day, month, year, time] = [5..7, 8..11, 12..16, 17..25].map(|range| &leap[range]);
        let asctime = format!("{} {month} {day} {time} {year}", &leap[..3]);
        prop_assert_eq!(parse_retry_after(&asctime, Some(now)), wait);
        let minute_of_sixty = format!("{}60{}", &date[..20], &date[22..]);
        prop_assert_eq!(parse_retry_after(&minute_of_sixty, Some(now)), None);
    }
}

/// Whether the delay is the whole part of `base * growth^attempt / 1000^attempt`, where that is
/// below 2^53: by multiplication alone, in as many digits as it takes.
fn agrees(base: u64, growth: u32, attempt: u32) -> Result<(), String> {
    let backoff = Backoff {
        base: Duration::from_millis(base),
        max: Duration::from_millis(u64::MAX),
        growth,
        jitter: Jitter::NoJitter,
    };
    let delay = u64::try_from(backoff.delay(attempt, 0.0).as_millis()).unwrap();
    let times = |start: u64, factor: u32| {
        (0..attempt).fold(vec![start], |product, _| {
            multiplied(product, u64::from(factor))
        })
    };
    let exact = times(base, growth);
    if !less(&exact, &times(1 << 53, 1000)) {
        return Ok(());
    }
    if less(&exact, &times(delay, 1000)) || !less(&exact, &times(delay + 1, 1000)) {
        return Err(format!("{base} * {growth}^{attempt} is not {delay}"));
    }
    Ok(())
}

/// The product, its lowest 64 bits first and no zeros last.
fn multiplied(mut number: Vec<u64>, factor: u64) -> Vec<u64> {
    let mut carry = 0;
    for part in &mut number {
        let product = u128::from(*part) * u128::from(factor) + carry;
        *part = product as u64;
        carry = product >> 64;
    }
    number.push(carry as u64);
    number.truncate(
        number
            .iter()
            .rposition(|part| *part != 0)
            .map_or(0, |last| last + 1),
    );
    number
}

fn less(a: &[u64], b: &[u64]) -> bool {
    let significant = |number: &[u64]| number.iter().rposition(|part| *part != 0);
    significant(a)
        .cmp(&significant(b))
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
        .is_lt()
}

#[test]
fn products_that_are_integers_are_met_exactly() {
    // base * (p/q)^n with base a multiple of q^n: 1/2, 3/2, 5/4, 6/5, 9/10, 11/10, 3, 4.
    for (growth, q) in [
        (500, 2),
        (1500, 2),
        (1250, 4),
        (1200, 5),
        (900, 10),
        (1100, 10),
        (3000, 1),
        (4000, 1),
    ] {
        for attempt in 0..40 {
            let Some(unit) = u64::checked_pow(q, attempt).filter(|unit| *unit < 1 << 53) else {
                continue;
            };
            for base in [unit, unit * 3, unit - 1, unit + 1] {
                assert_eq!(agrees(base, growth, attempt), Ok(()));
            }
        }
    }
}

#[test]
fn the_slowest_growth_is_exact_after_thousands_of_steps() {
    for attempt in [1000, 4000] {
        assert_eq!(agrees(1, 1001, attempt), Ok(()));
        assert_eq!(agrees(u64::MAX / 3, 999, attempt), Ok(()));
    }
}
