//! The numbers of a budget on tower's, and which of them tower accepts.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tower::retry::budget::TpsBudget;

/// One retry per answer, in thousandths.
pub(super) const WHOLE: u32 = 1000;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BudgetTerms {
    /// How long an answer counts: 1 to 60 seconds, floored to milliseconds.
    pub window: Duration,
    /// How many retries an origin may be sent for every whole second of `window`, whatever it
    /// answers: less than `i32::MAX`; zero for none.
    pub reserve_per_second: u32,
    /// How many retries 1000 answers earn: 0 to 1 000 000, where 200 is one for five answers, 1000
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
        let windows = Duration::from_secs(1)..=Duration::from_secs(60);
        let faults = InvalidBudget {
            window: (!windows.contains(&self.window)).then_some(self.window),
            reserve_per_second: (self.reserve_per_second >= i32::MAX.unsigned_abs())
                .then_some(self.reserve_per_second),
            ratio: (self.ratio > 1000 * WHOLE).then_some(self.ratio),
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
        let mut between = "invalid retry budget: ";
        let mut fault = |text: fmt::Arguments<'_>| -> fmt::Result {
            write!(f, "{between}{text}")?;
            between = "; ";
            Ok(())
        };
        if let Some(found) = self.window {
            fault(format_args!("window is {found:?}, expected 1s to 60s"))?;
        }
        if let Some(found) = self.reserve_per_second {
            let expected = "expected at most 2147483646";
            fault(format_args!("reserve_per_second is {found}, {expected}"))?;
        }
        if let Some(found) = self.ratio {
            fault(format_args!("ratio is {found}, expected at most 1000000"))?;
        }
        Ok(())
    }
}

impl Error for InvalidBudget {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::budget::RetryBudget;

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
        budget.withdraw(&"https://a.test/".parse().unwrap());
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
}
