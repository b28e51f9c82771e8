//! The crate against the model: two tellings of one contract, which agree on everything.
//!
//! `fuzz/` asks the same question of inputs that a fuzzer makes up.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use reqwest_retry_rules::{
    Backoff, Jitter, RetryRule, WaitHeader, parse_retry_after, retry_after_ms,
};

use crate::support::model;
use crate::support::rules::{
    backoffs, counts, facts, formats, headers, moments, rules, samples, waits,
};

/// Texts in one of the three forms of a date, or nearly so.
fn dates() -> impl Strategy<Value = String> {
    let moment = prop_oneof![0..4_102_444_800_u64, 0..253_402_300_800_u64];
    let form = 0..5_usize;
    // Where nothing is put in another's place, the date is a good one.
    let change = option::weighted(0.5, (any::<prop::sample::Index>(), "[0-9A-Za-z :,-]"));
    (moment, form, any::<bool>(), change).prop_map(|(moment, form, leap, change)| {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(moment);
        let date = httpdate::fmt_http_date(moment);
        let (weekday, day, month, year) = (&date[..3], &date[5..7], &date[8..11], &date[12..16]);
        let time = &date[17..25];
        let mut date = match form {
            0 => date.clone(),
            4 => date.replace("GMT", "UTC"),
            1 => format!("{weekday} {month} {day} {time} {year}"),
            2 => format!(
                "{weekday} {month} {:>2} {time} {year}",
                day.trim_start_matches('0')
            ),
            _ => {
                let names = [
                    "Monday",
                    "Tuesday",
                    "Wednesday",
                    "Thursday",
                    "Friday",
                    "Saturday",
                ];
                let weekday = names.iter().find(|name| name.starts_with(weekday));
                let weekday = weekday.copied().unwrap_or("Sunday");
                format!("{weekday}, {day}-{month}-{} {time} GMT", &year[2..])
            }
        };
        if leap {
            date = date.replace(&time[5..], ":60");
        }
        if let Some((index, other)) = change {
            let place = index.index(date.len());
            date.replace_range(place..=place, &other);
        }
        date
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn both_decide_alike(rule in rules(), facts in facts()) {
        let (outcome, attempt) = (facts.outcome(), facts.attempt());
        prop_assert_eq!(rule.decide(&outcome, &attempt), model::decide(&rule, &outcome, &attempt));
    }

    /// Few of the facts above get as far as the wait.
    #[test]
    fn both_wait_alike(rule in rules(), facts in facts()) {
        let rule = RetryRule {
            max_retries: u32::MAX,
            override_header: Some(HeaderName::from_static("x-should-retry")),
            veto_header: None,
            ..rule
        };
        let mut facts = model::Facts {
            replayable: true,
            vetoed: false,
            replaced: false,
            failure: None,
            ..facts
        };
        facts.headers.insert("x-should-retry", HeaderValue::from_static("true"));
        let (outcome, attempt) = (facts.outcome(), facts.attempt());
        prop_assert_eq!(rule.decide(&outcome, &attempt), model::decide(&rule, &outcome, &attempt));
    }

    #[test]
    fn both_find_fault_alike(rule in rules()) {
        prop_assert_eq!(rule.validate().is_ok(), model::is_valid(&rule));
    }

    #[test]
    fn both_have_the_same_delay(backoff in backoffs(), attempt in counts(), random in samples()) {
        prop_assert_eq!(
            backoff.delay(attempt, random),
            model::delay(&backoff, attempt, random)
        );
    }

    /// The growths between which delays neither vanish nor reach any maximum at once.
    #[test]
    fn both_grow_alike(base: u64, growth in 900_u32..1100, attempt in 0_u32..1000) {
        let backoff = Backoff {
            base: Duration::from_millis(base >> (attempt % 64)),
            max: Duration::MAX,
            growth,
            jitter: Jitter::NoJitter,
        };
        prop_assert_eq!(backoff.delay(attempt, 0.0), model::delay(&backoff, attempt, 0.0));
    }

    #[test]
    fn both_read_a_text_alike(
        text in prop_oneof![waits(), dates(), "[ \t]?[0-9.]{0,24}[ \t]?", "\\PC{0,8}"],
        now in option::of(moments()),
    ) {
        prop_assert_eq!(parse_retry_after(&text, now), model::parse_retry_after(&text, now));
    }

    #[test]
    fn both_read_headers_alike(headers in headers(), now in option::of(moments())) {
        prop_assert_eq!(retry_after_ms(&headers, now), model::retry_after_ms(&headers, now));
    }

    #[test]
    fn both_read_a_wait_header_alike(
        texts in vec(prop_oneof![waits(), dates()], 1..3),
        format in formats(),
        now in option::of(moments()),
    ) {
        let name = HeaderName::from_static("x-wait");
        let mut headers = HeaderMap::new();
        for text in texts {
            headers.append(&name, text.parse().unwrap());
        }
        let header = WaitHeader { name, format, statuses: vec![] };
        prop_assert_eq!(header.read(&headers, now), model::wait_header(&header, &headers, now));
    }
}

/// A model that never reads a date would agree with itself, too.
#[test]
fn good_dates_are_among_the_texts() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let now = Some(SystemTime::UNIX_EPOCH);
    let mut good = 0;
    for _ in 0..500 {
        let date = dates().new_tree(&mut runner).unwrap().current();
        good += usize::from(model::parse_retry_after(&date, now).is_some());
    }
    assert!((100..450).contains(&good), "{good} of 500");
}
