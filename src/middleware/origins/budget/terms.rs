//! The numbers of a budget on tower's, and which of them tower accepts.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use tower::retry::budget::TpsBudget;

/// One retry per answer, in thousandths.
pub(super) const WHOLE: u32 = 1000;

pub(in crate::middleware::origins) const WINDOWS: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(60);
pub(in crate::middleware::origins) const MOST_RESERVE: u32 = i32::MAX.unsigned_abs() - 1;
pub(in crate::middleware::origins) const MOST_RATIO: u32 = 1000 * WHOLE;

/// How many retries a [`RetryBudget`](super::RetryBudget) allows.
///
/// # Defaults
///
/// One retry for five answers and ten a second besides, over ten seconds: the terms of a policy
/// that sets no budget.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{BudgetTerms, RetryBudget};
///
/// let default = BudgetTerms {
///     window: Duration::from_secs(10),
///     reserve_per_second: 10,
///     ratio: 200,
/// };
/// assert_eq!(BudgetTerms::default(), default);
///
/// // One retry for ten answers.
/// assert!(RetryBudget::new(BudgetTerms { ratio: 100, ..default }).is_ok());
/// ```
///
/// # In a file
///
/// With the feature `serde`, the keys are `ratio`, `reserve_per_second` and `window_ms`. One that is
/// left out has its default. A key that is unknown, and a value that [`RetryBudget::new`] would
/// refuse, are errors that name the key.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use reqwest_retry_rules::BudgetTerms;
///
/// let terms: BudgetTerms = serde_json::from_str(r#"{ "ratio": 100 }"#).unwrap();
/// assert_eq!(terms, BudgetTerms { ratio: 100, ..BudgetTerms::default() });
///
/// let error = serde_json::from_str::<BudgetTerms>(r#"{ "window_ms": 1 }"#).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid value: integer `1`, expected `window_ms` to be a whole number from 1000 to \
///      60000 at line 1 column 16",
/// );
/// # }
/// ```
///
/// [`RetryBudget::new`]: super::RetryBudget::new
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BudgetTerms {
    /// How long an answer counts: 1 to 60 seconds, floored to milliseconds.
    pub window: Duration,
    /// How many retries an origin may be sent for every whole second of `window`, whatever it
    /// answers: less than `i32::MAX`; zero for none.
    pub reserve_per_second: u32,
    /// How many retries 1000 answers earn: 0 to 1 000 000. 200 is one for five answers, 1000 is
    /// one for each, and 0 leaves only the reserve. Up to 1000 it is exact. Above, tower rounds
    /// what a retry costs down to a whole thousandth of an answer: 2000 is two retries for each,
    /// 3000 a little more than three, 600 000 a thousand.
    pub ratio: u32,
}

impl Default for BudgetTerms {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            reserve_per_second: 10,
            ratio: 200,
        }
    }
}

impl BudgetTerms {
    /// Refuses what `TpsBudget::new` would panic on.
    pub(super) fn check(self) -> Result<(), InvalidBudget> {
        let faults = InvalidBudget {
            window: (!WINDOWS.contains(&self.window)).then_some(self.window),
            reserve_per_second: (self.reserve_per_second > MOST_RESERVE)
                .then_some(self.reserve_per_second),
            ratio: (self.ratio > MOST_RATIO).then_some(self.ratio),
        };
        match faults {
            InvalidBudget {
                window: None,
                reserve_per_second: None,
                ratio: None,
            } => Ok(()),
            faults => Err(faults),
        }
    }

    /// The budget of one origin, which is paid in whole deposits.
    pub(super) fn budget(self) -> TpsBudget {
        // Below 1000 the parts are added up before they come here, so a deposit is a retry. The
        // ratio has 20 bits at most and is exact in an `f32`.
        let per_deposit = self.ratio.max(WHOLE) as f32 / WHOLE as f32;
        TpsBudget::new(self.window, self.reserve_per_second, per_deposit)
    }
}

/// What was wrong with the values given to [`RetryBudget::new`](super::RetryBudget::new).
///
/// Its text names each value that was out of range, what it was, and what was expected.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{BudgetTerms, RetryBudget};
///
/// let terms = BudgetTerms {
///     window: Duration::from_millis(1),
///     ratio: 1_000_001,
///     ..BudgetTerms::default()
/// };
/// let error = RetryBudget::new(terms).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid retry budget: window is 1ms, expected 1s to 60s; \
///      ratio is 1000001, expected at most 1000000",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidBudget {
    window: Option<Duration>,
    reserve_per_second: Option<u32>,
    ratio: Option<u32>,
}

impl fmt::Display for InvalidBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = self
            .window
            .map(|found| format!("window is {found:?}, expected 1s to 60s"));
        let reserve = self
            .reserve_per_second
            .map(|found| format!("reserve_per_second is {found}, expected at most {MOST_RESERVE}"));
        let ratio = self
            .ratio
            .map(|found| format!("ratio is {found}, expected at most {MOST_RATIO}"));
        let faults: Vec<_> = [window, reserve, ratio].into_iter().flatten().collect();
        write!(f, "invalid retry budget: {}", faults.join("; "))
    }
}

impl Error for InvalidBudget {}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;
    use crate::middleware::origins::RetryBudget;

    const WINDOW: Duration = Duration::from_secs(10);

    fn terms(window: Duration, reserve_per_second: u32, ratio: u32) -> BudgetTerms {
        BudgetTerms {
            window,
            reserve_per_second,
            ratio,
        }
    }

    #[track_caller]
    fn accepts(window: Duration, reserve_per_second: u32, ratio: u32) {
        let budget = RetryBudget::new(terms(window, reserve_per_second, ratio)).unwrap();
        // What is accepted is what tower does not panic on.
        let url: Url = "https://a.test/".parse().unwrap();
        budget.withdraw(&url);
    }

    #[track_caller]
    fn refuses(window: Duration, reserve_per_second: u32, ratio: u32, text: &str) {
        let error = RetryBudget::new(terms(window, reserve_per_second, ratio)).unwrap_err();
        assert_eq!(error.to_string(), format!("invalid retry budget: {text}"));
    }

    #[test]
    fn the_ends_of_each_range_are_accepted() {
        accepts(Duration::from_secs(1), 10, 200);
        accepts(Duration::from_secs(60), 10, 200);
        accepts(WINDOW, 0, 200);
        accepts(WINDOW, 2_147_483_646, 200);
        accepts(WINDOW, 10, 0);
        accepts(WINDOW, 10, 1_000_000);
        accepts(Duration::from_secs(60), 2_147_483_646, 1_000_000);
    }

    #[test]
    fn a_part_of_a_millisecond_is_cut_off() {
        accepts(Duration::from_micros(60_000_999), 10, 200);
        let almost = Duration::from_nanos(999_999_999);
        refuses(almost, 10, 200, "window is 999ms, expected 1s to 60s");
    }

    #[test]
    fn a_window_out_of_range_is_refused() {
        let refuses = |window, found: &str| {
            let text = format!("window is {found}, expected 1s to 60s");
            refuses(window, 10, 200, &text);
        };
        refuses(Duration::ZERO, "0ns");
        refuses(Duration::from_millis(999), "999ms");
        refuses(Duration::from_millis(60_001), "60.001s");
        refuses(Duration::MAX, "18446744073709551.615s");
    }

    #[test]
    fn a_reserve_out_of_range_is_refused() {
        let expected = "expected at most 2147483646";
        let text = format!("reserve_per_second is 2147483647, {expected}");
        refuses(WINDOW, 2_147_483_647, 200, &text);
        let text = format!("reserve_per_second is 4294967295, {expected}");
        refuses(WINDOW, u32::MAX, 200, &text);
    }

    #[test]
    fn a_ratio_out_of_range_is_refused() {
        let text = "ratio is 1000001, expected at most 1000000";
        refuses(WINDOW, 10, 1_000_001, text);
        let text = "ratio is 4294967295, expected at most 1000000";
        refuses(WINDOW, 10, u32::MAX, text);
    }

    #[test]
    fn every_fault_is_named_at_once() {
        refuses(
            Duration::ZERO,
            2_147_483_647,
            1_000_001,
            "window is 0ns, expected 1s to 60s; \
             reserve_per_second is 2147483647, expected at most 2147483646; \
             ratio is 1000001, expected at most 1000000",
        );
    }

    #[cfg(feature = "serde")]
    mod in_a_file {
        use super::*;

        #[track_caller]
        fn reads(text: &str, expected: BudgetTerms) {
            assert_eq!(serde_json::from_str::<BudgetTerms>(text).unwrap(), expected);
        }

        #[track_caller]
        fn refuses(text: &str, expected: &str) {
            let error = serde_json::from_str::<BudgetTerms>(text).unwrap_err();
            let error = error.to_string();
            assert_eq!(error.split(" at line ").next(), Some(expected));
        }

        #[test]
        fn what_is_left_out_has_its_default() {
            let default = BudgetTerms::default();
            reads("{}", default);
            reads(r#"{ "ratio": null, "window_ms": null }"#, default);
            let window = Duration::from_secs(30);
            reads(
                r#"{ "window_ms": 30000 }"#,
                BudgetTerms { window, ..default },
            );
            let all = r#"{ "ratio": 0, "reserve_per_second": 2, "window_ms": 30000 }"#;
            reads(all, terms(window, 2, 0));
        }

        #[test]
        fn the_ends_of_each_range_are_accepted_as_in_code() {
            for text in [
                r#"{ "window_ms": 1000, "reserve_per_second": 0, "ratio": 0 }"#,
                r#"{ "window_ms": 60000, "reserve_per_second": 2147483646, "ratio": 1000000 }"#,
            ] {
                let terms: BudgetTerms = serde_json::from_str(text).unwrap();
                assert!(RetryBudget::new(terms).is_ok(), "{text}");
            }
        }

        #[test]
        fn what_is_out_of_range_or_no_whole_number_is_named() {
            let window = "expected `window_ms` to be a whole number from 1000 to 60000";
            for (value, found) in [
                ("999", "invalid value: integer `999`"),
                ("60001", "invalid value: integer `60001`"),
                ("-1", "invalid value: integer `-1`"),
                ("1e4", "invalid type: floating point `10000.0`"),
                (r#""10s""#, r#"invalid type: string "10s""#),
                ("[1]", "invalid type: sequence"),
                ("{}", "invalid type: map"),
            ] {
                let text = format!(r#"{{ "window_ms": {value} }}"#);
                refuses(&text, &format!("{found}, {window}"));
            }
            refuses(
                r#"{ "reserve_per_second": 2147483647 }"#,
                "invalid value: integer `2147483647`, expected `reserve_per_second` to be a whole \
                 number from 0 to 2147483646",
            );
            refuses(
                r#"{ "ratio": 1000001 }"#,
                "invalid value: integer `1000001`, expected `ratio` to be a whole number from 0 to \
                 1000000",
            );
        }

        #[test]
        fn an_unknown_key_and_one_that_occurs_twice_are_named() {
            refuses(
                r#"{ "window": 10 }"#,
                "unknown field `window`, expected one of `ratio`, `reserve_per_second`, `window_ms`",
            );
            refuses(r#"{ "ratio": 1, "ratio": 1 }"#, "duplicate field `ratio`");
            refuses(
                r#"{ "ratio": null, "ratio": 1 }"#,
                "duplicate field `ratio`",
            );
        }

        #[test]
        fn something_else_than_a_table_is_named() {
            let table = "a table with the keys `ratio`, `reserve_per_second`, `window_ms`";
            let text = format!(r#"invalid type: string "off", expected {table}"#);
            refuses(r#""off""#, &text);
            refuses(
                "[200, 10, 10000]",
                &format!("invalid type: sequence, expected {table}"),
            );
        }

        #[test]
        fn what_is_written_is_read_back_as_equal() {
            let written = serde_json::to_string(&BudgetTerms::default()).unwrap();
            assert_eq!(
                written,
                r#"{"ratio":200,"reserve_per_second":10,"window_ms":10000}"#,
            );
            for terms in [
                BudgetTerms::default(),
                terms(Duration::from_millis(1_001), 2_147_483_646, 0),
                terms(Duration::from_secs(60), 0, 1_000_000),
            ] {
                let text = serde_json::to_string(&terms).unwrap();
                reads(&text, terms);
                let text = toml::to_string(&terms).unwrap();
                assert_eq!(toml::from_str::<BudgetTerms>(&text).unwrap(), terms);
            }
        }

        #[test]
        fn toml_adds_the_line() {
            let error = toml::from_str::<BudgetTerms>("ratio = 5\nwindow_ms = 5").unwrap_err();
            let text = error.to_string();
            assert!(text.contains("line 2"), "{text}");
            assert!(text.contains("`window_ms` to be a whole number"), "{text}");
        }
    }
}
