use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use http::Method;

use super::millis::whole_ms;
use super::{Backoff, Jitter, Limits, Methods, RetryRule, StatusMatch};

/// Everything that is wrong with a [`RetryRule`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Limits, Methods, RetryRule, StatusMatch, StatusRule};
///
/// let rule = RetryRule {
///     statuses: vec![StatusRule {
///         statuses: vec![StatusMatch::Range(599, 500)],
///         methods: Methods::Any,
///         backoff: None,
///     }],
///     limits: Limits { hard_elapsed: Some(Duration::ZERO), ..Limits::default() },
///     ..RetryRule::transient()
/// };
/// let invalid = rule.validate().unwrap_err();
/// let fields: Vec<_> = invalid.faults().iter().map(|fault| fault.field()).collect();
/// assert_eq!(fields, ["statuses[0].statuses[0]", "limits.hard_elapsed_ms"]);
/// assert_eq!(
///     invalid.to_string(),
///     "invalid retry rule: `statuses[0].statuses[0]` is 599-500, expected the lower status \
///      first; `limits.hard_elapsed_ms` is 0, expected 1 or more, or no limit",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidRule {
    faults: Vec<RuleFault>,
}

impl InvalidRule {
    /// The faults, in the order of the rule's fields; there is at least one.
    pub fn faults(&self) -> &[RuleFault] {
        &self.faults
    }
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid retry rule: ")?;
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl Error for InvalidRule {}

/// One fault of a [`RetryRule`]: a field, what it holds and what it should hold.
///
/// Fields are named as in a configuration, so a duration's name ends in `_ms`.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::{Methods, RetryRule, StatusMatch, StatusRule};
///
/// let statuses = vec![StatusMatch::Code(429), StatusMatch::Code(42)];
/// let statuses = vec![StatusRule { statuses, methods: Methods::Any, backoff: None }];
/// let invalid = RetryRule { statuses, ..RetryRule::never() }.validate().unwrap_err();
/// let fault = &invalid.faults()[0];
/// assert_eq!(fault.field(), "statuses[0].statuses[1]");
/// assert_eq!(fault.found(), "42");
/// assert_eq!(fault.expected(), "statuses from 100 to 999");
/// assert_eq!(
///     fault.to_string(),
///     "`statuses[0].statuses[1]` is 42, expected statuses from 100 to 999",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleFault {
    field: String,
    found: String,
    expected: Cow<'static, str>,
}

impl RuleFault {
    /// The path from the rule to the field, such as `statuses[0].statuses[2]`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What the field holds.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What the field should hold.
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is {}, expected {}",
            self.field, self.found, self.expected
        )
    }
}

/// # A rule in a file
///
/// With the feature `serde` a rule can be written in TOML, JSON or any other format that says
/// what its values are. What is left out, or is `null`, is as in `never`, or as in `transient`
/// after `preset = "transient"`; that goes for each key of `retry_after`, `backoff` and `limits`
/// too. A list is replaced whole. A key that is unknown is an error, and so is a rule that
/// [`validate`](RetryRule::validate) finds fault with. Durations are whole milliseconds in keys
/// that end in `_ms`; one that is longer than `u64::MAX` of them is written as `u64::MAX`. A text
/// holds all of these numbers, a `toml::Table` only those up to `i64::MAX`. The guide
/// *Settings in a file* and `RetryConfig` have more.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use std::time::Duration;
/// use reqwest_retry_rules::{Jitter, Methods, RetryAfterCap, RetryRule};
///
/// let rule: RetryRule = toml::from_str(r#"
///     max_retries = 3
///     statuses = [                            # the first that contains a status decides
///         { statuses = [429], methods = "any", backoff = { base_ms = 1000, max_ms = 30000 } },
///         { statuses = ["502-504", "6xx"], methods = ["GET", "PUT"] },
///     ]
///     sent_failures = "idempotent"            # or "never", "any", a list as above
///     unsent_failures = true
///     timeouts = true
///     override_header = "x-should-retry"
///     veto_header = "x-no-retry"              # only its `false` counts
///
///     [retry_after]
///     source = "ms_then_header"               # or "ignore", "header"
///     ## or { backoff_above_ms = 60000 }, { clamp_to_ms = 60000 }, "no_cap"
///     cap = { stop_above_ms = 60000 }
///     zero_means_backoff = false
///     role = "replace"                        # or "floor"
///     spread = 0
///     ## or "seconds", "millis", "unix_millis", "http_date"
///     headers = [{ name = "x-ratelimit-reset", format = "unix_seconds", statuses = [403, 429] }]
///
///     [backoff]
///     base_ms = 100
///     max_ms = 1000
///     growth = 2000
///     jitter = { proportional = { lo = 800, hi = 1200 } }   # or "full", "no_jitter"
///
///     [limits]
///     soft_elapsed_ms = 300000
///     min_retries = 2
///     hard_elapsed_ms = 600000
/// "#)
/// .unwrap();
/// assert_eq!(rule.statuses[0].methods, Methods::Any);
/// assert_eq!(rule.retry_after.cap, RetryAfterCap::StopAbove(Duration::from_secs(60)));
/// assert_eq!(rule.backoff.jitter, Jitter::Proportional { lo: 800, hi: 1200 });
///
/// let rule: RetryRule = toml::from_str("preset = 'transient'\nmax_retries = 5").unwrap();
/// assert_eq!(rule, RetryRule { max_retries: 5, ..RetryRule::transient() });
///
/// let error = toml::from_str::<RetryRule>("max_retries = -1").unwrap_err();
/// assert_eq!(
///     error.message(),
///     "invalid value: integer `-1`, \
///      expected `max_retries` to be a whole number from 0 to 4294967295",
/// );
/// # }
/// ```
impl RetryRule {
    /// Checks for what contradicts itself or can have no effect, and names every fault at once.
    ///
    /// A rule that does not pass still gives answers. Only deserializing a rule (feature `serde`)
    /// calls this by itself; a rule that is built in code is not checked.
    ///
    /// # Errors
    ///
    /// - a status outside 100 to 999, alone or at either end of a range, in a row or in a wait
    ///   header;
    /// - a range whose first status is above its last;
    /// - in a list of methods, one of the words `never`, `idempotent` and `any`, which stand for a
    ///   whole list, or a standard method in another case, such as `get`: methods are
    ///   case-sensitive (RFC 9110, 9.1), so neither would ever match;
    /// - a backoff, the rule's or that of a row,
    ///   - whose `base` is zero and whose `max` is not, if there are retries: it would never wait;
    ///   - whose `base` is above its `max`;
    ///   - whose `growth` is below 1000: it would shrink. It is per mille, and 2000 doubles;
    ///   - whose jitter is `Proportional` with a `lo` above `hi`, or with a `hi` below 10, which is
    ///     a hundredth of the delay: they are per mille too;
    /// - a hard limit of zero, which no retry can meet;
    /// - a hard limit below the soft limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{Backoff, RetryRule};
    ///
    /// assert_eq!(RetryRule::transient().validate(), Ok(()));
    ///
    /// let backoff = Backoff { max: Duration::from_secs(8), ..Backoff::default() };
    /// let invalid = RetryRule { max_retries: 3, backoff, ..RetryRule::never() }
    ///     .validate()
    ///     .unwrap_err();
    /// assert_eq!(invalid.faults()[0].field(), "backoff.base_ms");
    /// ```
    pub fn validate(&self) -> Result<(), InvalidRule> {
        let mut faults = Vec::new();
        for (at, rule) in self.statuses.iter().enumerate() {
            for (index, status) in rule.statuses.iter().enumerate() {
                check_status(
                    status,
                    &format!("statuses[{at}].statuses[{index}]"),
                    &mut faults,
                );
            }
            check_methods(
                &rule.methods,
                &format!("statuses[{at}].methods"),
                &mut faults,
            );
            if let Some(backoff) = &rule.backoff {
                let field = format!("statuses[{at}].backoff");
                check_backoff(backoff, self.max_retries > 0, &field, &mut faults);
            }
        }
        check_methods(&self.sent_failures, "sent_failures", &mut faults);
        for (at, header) in self.retry_after.headers.iter().enumerate() {
            for (index, status) in header.statuses.iter().enumerate() {
                let field = format!("retry_after.headers[{at}].statuses[{index}]");
                check_status(status, &field, &mut faults);
            }
        }
        check_backoff(&self.backoff, self.max_retries > 0, "backoff", &mut faults);
        check_limits(&self.limits, &mut faults);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(InvalidRule { faults })
        }
    }

    /// The rule itself, if [`validate`](Self::validate) finds no fault: for a chain of code.
    ///
    /// # Errors
    ///
    /// The same as those of `validate`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{Backoff, InvalidRule, RetryRule};
    ///
    /// # fn main() -> Result<(), InvalidRule> {
    /// let rule = RetryRule { max_retries: 5, ..RetryRule::transient() }.validated()?;
    /// assert_eq!(rule.max_retries, 5);
    ///
    /// let halving = Backoff { growth: 500, ..rule.backoff.clone() };
    /// let invalid = RetryRule { backoff: halving, ..rule }.validated().unwrap_err();
    /// assert_eq!(invalid.faults()[0].field(), "backoff.growth");
    /// # Ok(())
    /// # }
    /// ```
    pub fn validated(self) -> Result<Self, InvalidRule> {
        self.validate().map(|()| self)
    }
}

fn check_status(status: &StatusMatch, field: &str, faults: &mut Vec<RuleFault>) {
    let (first, last, found) = match *status {
        StatusMatch::Code(code) => (code, code, code.to_string()),
        StatusMatch::Range(first, last) => (first, last, format!("{first}-{last}")),
    };
    let mut fault = |expected: &'static str| {
        faults.push(RuleFault {
            field: field.to_owned(),
            found: found.clone(),
            expected: expected.into(),
        });
    };
    let statuses = 100..=999;
    if !statuses.contains(&first) || !statuses.contains(&last) {
        fault("statuses from 100 to 999");
    }
    if first > last {
        fault("the lower status first");
    }
}

/// What stands in place of a list of methods, and is no method in it.
const WORDS: [&str; 3] = ["never", "idempotent", "any"];

/// The methods of RFC 9110, 9.3, and of RFC 5789.
const STANDARD: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::CONNECT,
    Method::OPTIONS,
    Method::TRACE,
    Method::PATCH,
];

/// Any name is a method, so what was meant otherwise would only never match.
fn check_methods(methods: &Methods, field: &str, faults: &mut Vec<RuleFault>) {
    let Methods::Listed(listed) = methods else {
        return;
    };
    for (index, method) in listed.iter().enumerate() {
        let name = method.as_str();
        let word = WORDS.iter().find(|word| name.eq_ignore_ascii_case(word));
        let meant = STANDARD
            .iter()
            .find(|meant| name.eq_ignore_ascii_case(meant.as_str()));
        let expected = match (word, meant) {
            (Some(word), _) => format!("a method, or {word:?} in place of the list"),
            (None, Some(meant)) if meant != method => {
                format!("{:?}: methods are case-sensitive", meant.as_str())
            }
            _ => continue,
        };
        faults.push(RuleFault {
            field: format!("{field}[{index}]"),
            found: format!("{name:?}"),
            expected: expected.into(),
        });
    }
}

fn check_backoff(backoff: &Backoff, retries: bool, field: &str, faults: &mut Vec<RuleFault>) {
    let mut fault = |name: &str, found: u64, expected: String| {
        faults.push(RuleFault {
            field: format!("{field}.{name}"),
            found: found.to_string(),
            expected: expected.into(),
        });
    };
    let (base, max) = (whole_ms(backoff.base), whole_ms(backoff.max));
    if base > max {
        fault("max_ms", max, format!("no less than `{field}.base_ms`"));
    }
    if retries && base == 0 && max > 0 {
        let expected = format!("1 or more where there are retries and `{field}.max_ms` is not 0");
        fault("base_ms", base, expected);
    }
    if backoff.growth < 1000 {
        let expected = "1000 or more: it is per mille, and 2000 doubles";
        fault("growth", backoff.growth.into(), expected.to_owned());
    }
    if let Jitter::Proportional { lo, hi } = backoff.jitter {
        if lo > hi {
            let expected = format!("no more than `{field}.jitter.proportional.hi`");
            fault("jitter.proportional.lo", lo.into(), expected);
        }
        if hi < 10 {
            let expected = "10 or more: it is per mille, and 1000 is the delay as it is";
            fault("jitter.proportional.hi", hi.into(), expected.to_owned());
        }
    }
}

fn check_limits(limits: &Limits, faults: &mut Vec<RuleFault>) {
    let Some(hard) = limits.hard_elapsed.map(whole_ms) else {
        return;
    };
    let mut fault = |expected: &'static str| {
        let field = "limits.hard_elapsed_ms".to_owned();
        faults.push(RuleFault {
            field,
            found: hard.to_string(),
            expected: expected.into(),
        });
    };
    if hard == 0 {
        fault("1 or more, or no limit");
    }
    if limits
        .soft_elapsed
        .is_some_and(|soft| hard < whole_ms(soft))
    {
        fault("no less than `limits.soft_elapsed_ms`");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rule::{RetryAfter, StatusRule, WaitFormat, WaitHeader};

    /// The rule's faults, each as it is shown.
    #[track_caller]
    fn faults(rule: &RetryRule, expected: &[&str]) {
        let faults = rule
            .validate()
            .map_or_else(|invalid| invalid.faults, |()| Vec::new());
        assert_eq!(
            faults.iter().map(RuleFault::to_string).collect::<Vec<_>>(),
            expected
        );
    }

    fn status(status: StatusMatch) -> RetryRule {
        let statuses = vec![StatusRule {
            statuses: vec![status],
            methods: Methods::Any,
            backoff: None,
        }];
        RetryRule {
            statuses,
            ..RetryRule::never()
        }
    }

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    fn limits(soft_elapsed: Option<Duration>, hard_elapsed: Option<Duration>) -> RetryRule {
        let limits = Limits {
            soft_elapsed,
            hard_elapsed,
            ..Limits::default()
        };
        RetryRule {
            limits,
            ..RetryRule::never()
        }
    }

    fn backoff(max_retries: u32, base: Duration, max: Duration) -> RetryRule {
        let backoff = Backoff {
            base,
            max,
            ..Backoff::default()
        };
        RetryRule {
            max_retries,
            backoff,
            ..RetryRule::never()
        }
    }

    #[test]
    fn the_presets_are_valid() {
        faults(&RetryRule::never(), &[]);
        faults(&RetryRule::transient(), &[]);
    }

    #[test]
    fn a_status_is_100_to_999() {
        let fault = |found: &str| {
            format!("`statuses[0].statuses[0]` is {found}, expected statuses from 100 to 999")
        };
        faults(&status(StatusMatch::Code(99)), &[&fault("99")]);
        faults(&status(StatusMatch::Code(100)), &[]);
        faults(&status(StatusMatch::Code(999)), &[]);
        faults(&status(StatusMatch::Code(1000)), &[&fault("1000")]);
        faults(&status(StatusMatch::Range(99, 1000)), &[&fault("99-1000")]);
        faults(
            &status(StatusMatch::Range(100, 1000)),
            &[&fault("100-1000")],
        );
        faults(&status(StatusMatch::Range(100, 999)), &[]);
    }

    #[test]
    fn a_range_does_not_run_backwards() {
        let backwards = "`statuses[0].statuses[0]` is 500-499, expected the lower status first";
        faults(&status(StatusMatch::Range(500, 499)), &[backwards]);
        faults(&status(StatusMatch::Range(500, 500)), &[]);
    }

    fn listed(names: &[&str]) -> Methods {
        let method = |name: &&str| Method::from_bytes(name.as_bytes()).unwrap();
        Methods::Listed(names.iter().map(method).collect())
    }

    #[test]
    fn the_word_for_a_list_does_not_stand_in_it() {
        for word in ["never", "idempotent", "any"] {
            let sent_failures = listed(&["GET", word]);
            let expected = format!(
                "`sent_failures[1]` is {word:?}, \
                 expected a method, or {word:?} in place of the list"
            );
            faults(
                &RetryRule {
                    sent_failures,
                    ..RetryRule::never()
                },
                &[&expected],
            );
        }
        let statuses = vec![
            StatusRule {
                statuses: vec![],
                methods: Methods::Any,
                backoff: None,
            },
            StatusRule {
                statuses: vec![StatusMatch::Code(42)],
                methods: listed(&["ANY"]),
                backoff: None,
            },
        ];
        faults(
            &RetryRule {
                statuses,
                ..RetryRule::never()
            },
            &[
                "`statuses[1].statuses[0]` is 42, expected statuses from 100 to 999",
                "`statuses[1].methods[0]` is \"ANY\", \
                 expected a method, or \"any\" in place of the list",
            ],
        );
    }

    #[test]
    fn a_standard_method_is_in_capitals_and_another_as_it_is() {
        let rule = |names: &[&str]| RetryRule {
            sent_failures: listed(names),
            ..RetryRule::never()
        };
        for meant in STANDARD {
            let meant = meant.as_str();
            let (lower, all_but_one) = (meant.to_lowercase(), meant.replacen('T', "t", 1));
            faults(&rule(&[meant]), &[]);
            for name in [lower, all_but_one].iter().filter(|name| *name != meant) {
                let fault = format!(
                    "`sent_failures[0]` is {name:?}, \
                     expected {meant:?}: methods are case-sensitive"
                );
                faults(&rule(&[name]), &[&fault]);
            }
        }
        faults(&rule(&["purge", "Purge", "PURGE", "gets", "anyway"]), &[]);
        faults(&rule(&[]), &[]);
    }

    #[test]
    fn a_base_is_not_zero_where_there_are_retries_and_a_maximum() {
        let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
        let fault = "`backoff.base_ms` is 0, expected 1 or more where there are retries and \
                     `backoff.max_ms` is not 0";
        faults(&backoff(1, zero, second), &[fault]);
        // Less than a millisecond is none.
        faults(&backoff(1, Duration::from_micros(999), second), &[fault]);
        faults(&backoff(1, Duration::from_millis(1), second), &[]);
        faults(&backoff(0, zero, second), &[]);
        faults(&backoff(1, zero, zero), &[]);
    }

    #[test]
    fn a_base_is_not_above_its_maximum() {
        let second = Duration::from_secs(1);
        let fault =
            |max| format!("`backoff.max_ms` is {max}, expected no less than `backoff.base_ms`");
        for retries in [0, 1] {
            let zero = backoff(retries, second, Duration::ZERO);
            faults(&zero, &[&fault(0)]);
            let less = backoff(retries, second, Duration::from_micros(999_999));
            faults(&less, &[&fault(999)]);
            faults(&backoff(retries, second, second), &[]);
        }
    }

    #[test]
    fn a_growth_does_not_shrink() {
        let rule = |growth| RetryRule {
            backoff: Backoff {
                growth,
                ..Backoff::default()
            },
            ..RetryRule::never()
        };
        let fault = "expected 1000 or more: it is per mille, and 2000 doubles";
        for growth in [0, 2, 999] {
            faults(
                &rule(growth),
                &[&format!("`backoff.growth` is {growth}, {fault}")],
            );
        }
        for growth in [1000, 1001, 2000, u32::MAX] {
            faults(&rule(growth), &[]);
        }
    }

    #[test]
    fn a_proportional_jitter_has_the_lower_end_first_and_hardly_nothing_is_not_meant() {
        let rule = |lo, hi| RetryRule {
            backoff: Backoff {
                jitter: Jitter::Proportional { lo, hi },
                ..Backoff::default()
            },
            ..RetryRule::never()
        };
        let backwards = "`backoff.jitter.proportional.lo` is 11, \
                         expected no more than `backoff.jitter.proportional.hi`";
        let factor = |hi| {
            format!(
                "`backoff.jitter.proportional.hi` is {hi}, \
                 expected 10 or more: it is per mille, and 1000 is the delay as it is"
            )
        };
        faults(&rule(11, 10), &[backwards]);
        faults(&rule(11, 9), &[backwards, &factor(9)]);
        faults(&rule(1, 2), &[&factor(2)]);
        faults(&rule(0, 0), &[&factor(0)]);
        faults(&rule(0, 10), &[]);
        faults(&rule(10, 10), &[]);
        faults(&rule(800, 1200), &[]);
    }

    #[test]
    fn a_rows_own_backoff_is_checked_like_the_rules() {
        let rule = |backoff: RetryRule| RetryRule {
            statuses: vec![
                StatusRule::new([429], Methods::Any),
                StatusRule {
                    backoff: Some(backoff.backoff),
                    ..StatusRule::new([503], Methods::Any)
                },
            ],
            max_retries: 1,
            ..RetryRule::never()
        };
        let second = Duration::from_secs(1);
        faults(&rule(backoff(0, second, second)), &[]);
        faults(
            &rule(backoff(0, Duration::ZERO, second)),
            &[
                "`statuses[1].backoff.base_ms` is 0, expected 1 or more where there are retries and \
               `statuses[1].backoff.max_ms` is not 0",
            ],
        );
        faults(
            &rule(backoff(0, second, Duration::ZERO)),
            &["`statuses[1].backoff.max_ms` is 0, \
               expected no less than `statuses[1].backoff.base_ms`"],
        );
    }

    #[test]
    fn a_wait_headers_status_is_100_to_999() {
        let rule = |statuses| RetryRule {
            retry_after: RetryAfter {
                headers: vec![WaitHeader {
                    name: http::header::RETRY_AFTER,
                    format: WaitFormat::Seconds,
                    statuses,
                }],
                ..RetryAfter::default()
            },
            ..RetryRule::never()
        };
        faults(&rule(vec![]), &[]);
        faults(&rule(vec![429.into(), (500..=599).into()]), &[]);
        let fault = "`retry_after.headers[0].statuses[1]` is 42, \
                     expected statuses from 100 to 999";
        faults(&rule(vec![429.into(), 42.into()]), &[fault]);
    }

    #[test]
    fn a_hard_limit_is_neither_zero_nor_below_the_soft_limit() {
        let zero = "`limits.hard_elapsed_ms` is 0, expected 1 or more, or no limit";
        let below = "expected no less than `limits.soft_elapsed_ms`";
        faults(&limits(None, ms(0)), &[zero]);
        faults(&limits(None, ms(1)), &[]);
        faults(
            &limits(ms(2), ms(1)),
            &[&format!("`limits.hard_elapsed_ms` is 1, {below}")],
        );
        faults(&limits(ms(1), ms(1)), &[]);
        faults(&limits(ms(0), None), &[]);
        faults(
            &limits(ms(1), ms(0)),
            &[zero, &format!("`limits.hard_elapsed_ms` is 0, {below}")],
        );
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let rule = RetryRule {
            statuses: vec![StatusRule {
                statuses: vec![StatusMatch::Code(429), StatusMatch::Range(1000, 42)],
                methods: Methods::Never,
                backoff: None,
            }],
            limits: limits(ms(5), ms(3)).limits,
            ..backoff(1, Duration::ZERO, Duration::MAX)
        };
        assert_eq!(
            rule.validate().unwrap_err().to_string(),
            "invalid retry rule: \
             `statuses[0].statuses[1]` is 1000-42, expected statuses from 100 to 999; \
             `statuses[0].statuses[1]` is 1000-42, expected the lower status first; \
             `backoff.base_ms` is 0, expected 1 or more where there are retries and \
             `backoff.max_ms` is not 0; \
             `limits.hard_elapsed_ms` is 3, expected no less than `limits.soft_elapsed_ms`",
        );
    }
}
