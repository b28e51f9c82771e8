use std::fmt;
use std::time::Duration;

use super::millis::whole_ms;
use super::{Backoff, Methods, RetryRule, StatusRule};

/// What may be meant in a [`RetryRule`] and rarely is: [`RetryRule::advice`] gives it.
///
/// Unlike a [`RuleFault`](crate::RuleFault) it makes no rule invalid. Fields are named as in a
/// configuration.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::{Advice, RetryRule};
///
/// let rule = RetryRule { max_retries: 5, ..RetryRule::never() };
/// assert_eq!(rule.advice(), [Advice::NothingRetried]);
/// assert_eq!(
///     Advice::NothingRetried.to_string(),
///     "there are retries, and the rule retries nothing: no status, no failure",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// There are retries, and nothing in the rule is ever retried. (A condition in code may be.)
    NothingRetried,
    /// There are statuses or failures to retry, and no retries.
    NoRetries,
    /// What these fields retry is sent again at once: it has no backoff, and the server is not
    /// asked how long to wait.
    AgainAtOnce {
        /// Rows of `statuses`, `sent_failures`, `unsent_failures` and `override_header`, as far as
        /// they apply.
        fields: Vec<String>,
        /// Up to so many times.
        retries: u32,
    },
    /// This row of `statuses` has no effect, for the rows before it contain all its statuses.
    HiddenRow {
        /// Its index, from 0.
        index: usize,
    },
    /// The first wait of this backoff reaches the hard limit, unless chance makes it shorter.
    FirstWaitTooLong {
        /// `backoff`, or that of a row.
        field: String,
        /// The longest that the first wait can be.
        wait: Duration,
        /// The hard limit.
        limit: Duration,
    },
    /// Clients that failed together come back together: these backoffs have no jitter, and what
    /// the server asks has no spread.
    NoJitter {
        /// `backoff`, and those of rows.
        fields: Vec<String>,
    },
}

impl Advice {
    /// A short name that stays the same, for metrics and logs, in snake case.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::Advice;
    ///
    /// assert_eq!(Advice::NothingRetried.name(), "nothing_retried");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Advice::NothingRetried => "nothing_retried",
            Advice::NoRetries => "no_retries",
            Advice::AgainAtOnce { .. } => "again_at_once",
            Advice::HiddenRow { .. } => "hidden_row",
            Advice::FirstWaitTooLong { .. } => "first_wait_too_long",
            Advice::NoJitter { .. } => "no_jitter",
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::NothingRetried => f.write_str(
                "there are retries, and the rule retries nothing: no status, no failure",
            ),
            Advice::NoRetries => {
                f.write_str("there are statuses or failures to retry, and `max_retries` is 0")
            }
            Advice::AgainAtOnce { fields, retries } => {
                let times = match retries {
                    1 => String::new(),
                    more => format!(", up to {more} times"),
                };
                write!(
                    f,
                    "what {} retries is sent again at once{times}: it has no backoff, and the \
                     server is not asked how long to wait",
                    Quoted(fields)
                )
            }
            Advice::HiddenRow { index } => write!(
                f,
                "`statuses[{index}]` has no effect: the rows before it contain all its statuses"
            ),
            Advice::FirstWaitTooLong { field, wait, limit } => write!(
                f,
                "the first wait of `{field}` is up to {wait:?}, which is not shorter than \
                 `limits.hard_elapsed_ms`, {limit:?}"
            ),
            Advice::NoJitter { fields } => write!(
                f,
                "clients that fail together come back together: there is no jitter in {} and no \
                 `retry_after.spread`",
                Quoted(fields)
            ),
        }
    }
}

/// Field names in a sentence: `` `a`, `b` and `c` ``.
struct Quoted<'a>(&'a [String]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, field) in self.0.iter().enumerate() {
            let separator = match self.0.len() - index {
                _ if index == 0 => "",
                1 => " and ",
                _ => ", ",
            };
            write!(f, "{separator}`{field}`")?;
        }
        Ok(())
    }
}

impl RetryRule {
    /// Names what may be meant and rarely is.
    ///
    /// A rule with advice is valid and gives answers. What contradicts itself or can have no effect is
    /// for [`validate`](RetryRule::validate). The advice knows the rule alone: a condition, a server's
    /// delay or another rule for one request may make it pointless.
    ///
    /// There is advice about
    ///
    /// - retries, and nothing that is ever retried; statuses or failures, and no retries;
    /// - what is sent again at once: it has no backoff, and the server is not asked for a wait;
    /// - a row of [`statuses`](RetryRule::statuses) that rows before it hide;
    /// - a first wait that reaches the [hard limit](crate::Limits::hard_elapsed);
    /// - a backoff without jitter, while [`spread`](crate::RetryAfter::spread) is 0.
    ///
    /// # Examples
    ///
    /// The server may say how long a rate limit lasts, but this rule does not read it:
    ///
    /// ```
    /// use reqwest_retry_rules::{Methods, RetryRule, StatusRule};
    ///
    /// let rule = RetryRule {
    ///     max_retries: 5,
    ///     statuses: vec![StatusRule::new([429], Methods::Any)],
    ///     ..RetryRule::never()
    /// };
    /// let advice: Vec<String> = rule.advice().iter().map(ToString::to_string).collect();
    /// assert_eq!(
    ///     advice,
    ///     ["what `statuses[0]` retries is sent again at once, up to 5 times: it has no backoff, \
    ///       and the server is not asked how long to wait"],
    /// );
    /// assert_eq!(RetryRule::transient().advice(), []);
    /// ```
    pub fn advice(&self) -> Vec<Advice> {
        let retries_something = self.override_header.is_some()
            || self.unsent_failures
            || allows_any(&self.sent_failures)
            || self.statuses.iter().any(is_retried);
        if !retries_something {
            let nothing = (self.max_retries > 0).then_some(Advice::NothingRetried);
            return nothing.into_iter().chain(self.hidden_rows()).collect();
        }
        if self.max_retries == 0 {
            let nothing = std::iter::once(Advice::NoRetries);
            return nothing.chain(self.hidden_rows()).collect();
        }
        let mut advice: Vec<Advice> = self.again_at_once().into_iter().collect();
        advice.extend(self.hidden_rows());
        advice.extend(self.first_waits_too_long());
        advice.extend(self.no_jitter());
        advice
    }

    /// The backoffs that are in use, each with its field; the rule's own comes first.
    pub(super) fn backoffs_in_use(&self) -> impl Iterator<Item = (Option<usize>, &Backoff)> {
        let rows = self.statuses.iter().enumerate();
        let own = rows
            .filter(|(_, row)| self.may_apply(row))
            .filter_map(|(index, row)| Some((Some(index), row.backoff.as_ref()?)));
        let is_in_use = self.override_header.is_some()
            || self.unsent_failures
            || allows_any(&self.sent_failures)
            || self
                .statuses
                .iter()
                .any(|row| row.backoff.is_none() && self.may_apply(row));
        is_in_use
            .then_some((None, &self.backoff))
            .into_iter()
            .chain(own)
    }

    /// True if a response may be retried with the backoff of `row`: by its methods, by a condition,
    /// or because the server says so.
    fn may_apply(&self, row: &StatusRule) -> bool {
        !row.statuses.is_empty()
            && (row.methods != Methods::Never || self.override_header.is_some())
    }

    fn again_at_once(&self) -> Option<Advice> {
        let reads_headers = self.retry_after.reads_headers();
        let mut fields = Vec::new();
        for (index, row) in self.statuses.iter().enumerate() {
            let backoff = row.backoff.as_ref().unwrap_or(&self.backoff);
            if is_retried(row) && !reads_headers && is_zero(backoff) {
                fields.push(format!("statuses[{index}]"));
            }
        }
        if is_zero(&self.backoff) {
            if allows_any(&self.sent_failures) {
                fields.push("sent_failures".to_owned());
            }
            if self.unsent_failures {
                fields.push("unsent_failures".to_owned());
            }
            if self.override_header.is_some() && !reads_headers {
                fields.push("override_header".to_owned());
            }
        }
        let retries = self.max_retries;
        (!fields.is_empty()).then_some(Advice::AgainAtOnce { fields, retries })
    }

    fn hidden_rows(&self) -> impl Iterator<Item = Advice> {
        let mut seen = [false; 1000];
        let mut hidden = Vec::new();
        for (index, row) in self.statuses.iter().enumerate() {
            let (mut any, mut new) = (false, false);
            for status in row.statuses.iter().flat_map(|each| each.codes()) {
                any = true;
                if let Some(seen) = seen.get_mut(usize::from(status)) {
                    new |= !*seen;
                    *seen = true;
                }
            }
            if any && !new {
                hidden.push(Advice::HiddenRow { index });
            }
        }
        hidden.into_iter()
    }

    fn first_waits_too_long(&self) -> impl Iterator<Item = Advice> {
        let limit = self.limits.hard_elapsed.map(whole_ms);
        self.backoffs_in_use().filter_map(move |(row, backoff)| {
            let limit = limit?;
            let (_, longest) = backoff.bounds(0);
            (longest > 0 && longest >= limit).then(|| Advice::FirstWaitTooLong {
                field: field(row),
                wait: Duration::from_millis(longest),
                limit: Duration::from_millis(limit),
            })
        })
    }

    fn no_jitter(&self) -> Option<Advice> {
        if self.retry_after.spread > 0 {
            return None;
        }
        let fields: Vec<String> = self
            .backoffs_in_use()
            .filter(|(_, backoff)| {
                let (shortest, longest) = backoff.bounds(0);
                longest > 0 && shortest == longest
            })
            .map(|(row, _)| field(row))
            .collect();
        (!fields.is_empty()).then_some(Advice::NoJitter { fields })
    }
}

/// The name of the backoff of a row, or of the rule.
fn field(row: Option<usize>) -> String {
    match row {
        Some(index) => format!("statuses[{index}].backoff"),
        None => "backoff".to_owned(),
    }
}

fn allows_any(methods: &Methods) -> bool {
    match methods {
        Methods::Never => false,
        Methods::Idempotent | Methods::Any => true,
        Methods::Listed(listed) => !listed.is_empty(),
    }
}

fn is_retried(row: &StatusRule) -> bool {
    !row.statuses.is_empty() && allows_any(&row.methods)
}

/// True if every wait is zero.
fn is_zero(backoff: &Backoff) -> bool {
    backoff.bounds(0).1 == 0 && backoff.bounds(u32::MAX).1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Jitter, Limits, RetryAfter, RetryAfterSource, StatusMatch};

    /// Three retries of 503, with 100 ms of backoff and full jitter.
    fn sensible() -> RetryRule {
        RetryRule {
            statuses: vec![StatusRule::new([503], Methods::Idempotent)],
            sent_failures: Methods::Never,
            retry_after: RetryAfter::default(),
            ..RetryRule::transient()
        }
    }

    fn plain(jitter: Jitter) -> Backoff {
        Backoff {
            jitter,
            ..RetryRule::transient().backoff
        }
    }

    #[track_caller]
    fn says(rule: &RetryRule, expected: &[Advice]) {
        assert_eq!(rule.advice(), expected);
    }

    fn at_once(fields: &[&str]) -> Advice {
        Advice::AgainAtOnce {
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            retries: 3,
        }
    }

    #[test]
    fn the_presets_need_no_advice() {
        says(&RetryRule::never(), &[]);
        says(&RetryRule::transient(), &[]);
        says(&sensible(), &[]);
    }

    #[test]
    fn retries_of_nothing() {
        let retries = RetryRule {
            max_retries: 3,
            ..RetryRule::never()
        };
        let rows = vec![
            StatusRule::new([503], Methods::Never),
            StatusRule::new([502], Methods::Listed(vec![])),
            StatusRule::new([0_u16; 0], Methods::Any),
        ];
        let refusing = RetryRule {
            statuses: rows,
            ..retries.clone()
        };
        says(&retries, &[Advice::NothingRetried]);
        says(&refusing, &[Advice::NothingRetried]);
        let server_decides = RetryRule {
            override_header: Some(http::HeaderName::from_static("x-should-retry")),
            ..retries
        };
        says(&server_decides, &[at_once(&["override_header"])]);
    }

    #[test]
    fn no_retries_of_something() {
        let none = RetryRule {
            max_retries: 0,
            ..sensible()
        };
        says(&none, &[Advice::NoRetries]);
        let unsent = RetryRule {
            unsent_failures: true,
            ..RetryRule::never()
        };
        says(&unsent, &[Advice::NoRetries]);
    }

    #[test]
    fn what_has_no_backoff_and_no_servers_wait_is_sent_again_at_once() {
        let hasty = RetryRule {
            backoff: Backoff::default(),
            ..sensible()
        };
        says(&hasty, &[at_once(&["statuses[0]"])]);
        let failing = RetryRule {
            sent_failures: Methods::Idempotent,
            unsent_failures: true,
            ..hasty.clone()
        };
        let all = ["statuses[0]", "sent_failures", "unsent_failures"];
        says(&failing, &[at_once(&all)]);
        assert_eq!(
            failing.advice()[0].to_string(),
            "what `statuses[0]`, `sent_failures` and `unsent_failures` retries is sent again at \
             once, up to 3 times: it has no backoff, and the server is not asked how long to wait",
        );

        let listening = RetryAfter {
            source: RetryAfterSource::Header,
            ..RetryAfter::default()
        };
        let retry_after = listening.clone();
        says(
            &RetryRule {
                retry_after,
                ..hasty.clone()
            },
            &[],
        );
        let retry_after = listening;
        says(
            &RetryRule {
                retry_after,
                ..failing
            },
            &[at_once(&["sent_failures", "unsent_failures"])],
        );
        let own = StatusRule {
            backoff: Some(plain(Jitter::Full)),
            ..StatusRule::new([503], Methods::Any)
        };
        let statuses = vec![own, StatusRule::new([429], Methods::Any)];
        says(
            &RetryRule { statuses, ..hasty },
            &[at_once(&["statuses[1]"])],
        );
        let none = StatusRule {
            backoff: Some(Backoff::default()),
            ..StatusRule::new([503], Methods::Any)
        };
        says(
            &RetryRule {
                statuses: vec![none],
                ..sensible()
            },
            &[at_once(&["statuses[0]"])],
        );
    }

    #[test]
    fn a_row_that_earlier_ones_hide() {
        let row = |statuses: &[StatusMatch]| StatusRule::new(statuses.to_vec(), Methods::Any);
        let rule = |statuses| RetryRule {
            statuses,
            ..sensible()
        };
        let (low, high) = (500..=549, 550..=599);
        let halves = || vec![row(&[low.clone().into()]), row(&[high.clone().into()])];
        let mut rows = halves();
        rows.push(row(&[(500..=599).into()]));
        rows.push(row(&[503.into(), 429.into()]));
        says(&rule(rows), &[Advice::HiddenRow { index: 2 }]);
        let mut rows = halves();
        rows.push(row(&[(500..=600).into()]));
        rows.push(row(&[]));
        // No status is in it, which `validate` says.
        rows.push(row(&[StatusMatch::Range(503, 502)]));
        says(&rule(rows), &[]);
    }

    #[test]
    fn a_first_wait_that_reaches_the_hard_limit() {
        let limited = |ms| RetryRule {
            limits: Limits {
                hard_elapsed: Some(Duration::from_millis(ms)),
                ..Limits::default()
            },
            ..sensible()
        };
        let late = Advice::FirstWaitTooLong {
            field: "backoff".to_owned(),
            wait: Duration::from_millis(100),
            limit: Duration::from_millis(100),
        };
        assert_eq!(
            late.to_string(),
            "the first wait of `backoff` is up to 100ms, which is not shorter than \
             `limits.hard_elapsed_ms`, 100ms",
        );
        says(&limited(100), &[late]);
        says(&limited(101), &[]);
    }

    #[test]
    fn neither_jitter_nor_spread() {
        let rule = |jitter, spread| RetryRule {
            backoff: plain(jitter),
            retry_after: RetryAfter {
                spread,
                ..RetryAfter::default()
            },
            ..sensible()
        };
        let crowd = Advice::NoJitter {
            fields: vec!["backoff".to_owned()],
        };
        says(&rule(Jitter::NoJitter, 0), std::slice::from_ref(&crowd));
        let proportional = Jitter::Proportional { lo: 900, hi: 900 };
        says(&rule(proportional, 0), &[crowd]);
        says(&rule(Jitter::NoJitter, 1), &[]);
        says(&rule(Jitter::Full, 0), &[]);
        let own = StatusRule {
            backoff: Some(plain(Jitter::NoJitter)),
            ..StatusRule::new([429], Methods::Any)
        };
        let statuses = vec![own];
        let row = Advice::NoJitter {
            fields: vec!["statuses[0].backoff".to_owned()],
        };
        says(
            &RetryRule {
                statuses,
                ..sensible()
            },
            &[row],
        );
    }
}
