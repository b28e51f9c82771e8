use std::iter::FusedIterator;
use std::time::Duration;

use http::Method;

use super::millis::{per_mille, whole_ms};
use super::{Attempt, Backoff, RetryAfterCap, RetryAfterRole, RetryRule};

mod retried;
mod retry;
mod text;

pub use retry::ScheduledRetry;
use retry::Span;

/// What a [`RetryRule`] will do if everything fails: each retry's wait, when it starts, and which
/// limits it meets.
///
/// Its `Display` is a table to read beside a configuration file, and below it what is retried, how
/// long it may take, and the rule's [advice](RetryRule::advice). The table as data is
/// [`retries`](Schedule::retries). It knows the rule alone: a total timeout, a budget or a server
/// that answers ends a send sooner, and an origin that asks for rest makes it longer.
///
/// If a row of [`statuses`](RetryRule::statuses) has a backoff of its own, a wait in the table is
/// from the shortest that any of the backoffs in use gives to the longest. The text says so, and
/// names the wait of that row beside its statuses.
///
/// A rule does not know how long the attempts themselves will take. So a start is the sum of the
/// waits before it, as if attempts took no time, and [`worst_case`](Schedule::worst_case) takes
/// how long an attempt may take.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::RetryRule;
///
/// let schedule = RetryRule::transient().schedule();
/// assert_eq!(
///     schedule.to_string(),
///     "\
/// Up to 3 retries. Times leave out what the attempts themselves take.
///
/// retry  wait         starts after  if the server asks, after
///     1  0 to 100 ms  0 to 100 ms   up to 1 min
///     2  0 to 200 ms  0 to 300 ms   up to 2 min
///     3  0 to 400 ms  0 to 700 ms   up to 3 min
///
/// Statuses: 429, 502, 503, 504 for idempotent methods.
/// Failures: for idempotent methods.
/// Server: may ask for a wait of up to 1 min; above that the send stops.
/// Limits: none.
/// Worst case: 700 ms and 4 attempts' own timeouts.
/// If the server asks: 3 min and 4 attempts' own timeouts.
/// "
/// );
///
/// let last = schedule.retries().last().unwrap();
/// assert_eq!(last.wait(), Duration::ZERO..=Duration::from_millis(400));
/// assert_eq!(last.start(), Duration::ZERO..=Duration::from_millis(700));
///
/// let timeout = Duration::from_secs(10);
/// assert_eq!(schedule.worst_case(timeout), Duration::from_millis(40_700));
/// assert_eq!(schedule.worst_case_asked(timeout), Some(Duration::from_secs(220)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    rule: RetryRule,
    /// After this many retries the waits no longer change: at most some 45 000, for a backoff that
    /// grows by a thousandth from 1 ms to as far as milliseconds count.
    growing: u32,
}

impl RetryRule {
    /// What the rule will do, retry by retry, to be looked at before it runs.
    ///
    /// Every rule has a schedule, even one of `u32::MAX` retries, and none takes long to make or to
    /// print.
    ///
    /// # Examples
    ///
    /// Days of backoff, cut down to ten minutes by a limit:
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{Backoff, Jitter, Limits, Methods, RetryRule};
    ///
    /// let rule = RetryRule {
    ///     max_retries: 100,
    ///     sent_failures: Methods::Idempotent,
    ///     backoff: Backoff {
    ///         base: Duration::from_secs(1),
    ///         max: Duration::from_secs(3600),
    ///         jitter: Jitter::Proportional { lo: 800, hi: 1200 },
    ///         ..Backoff::default()
    ///     },
    ///     limits: Limits { hard_elapsed: Some(Duration::from_secs(600)), ..Limits::default() },
    ///     ..RetryRule::never()
    /// };
    /// let schedule = rule.schedule();
    /// assert_eq!((schedule.fewest_retries(), schedule.most_retries()), (8, 9));
    /// assert_eq!(schedule.worst_case(Duration::from_secs(5)), Duration::from_secs(605));
    /// ```
    pub fn schedule(&self) -> Schedule {
        let schedule = Schedule {
            rule: self.clone(),
            growing: 0,
        };
        let growing = schedule.backoffs().map(steps_until_steady).max();
        Schedule {
            growing: growing.unwrap_or(0),
            ..schedule
        }
    }
}

impl Schedule {
    /// The retries in turn, as many as the rule has, whether or not the limits let them start.
    ///
    /// There may be `u32::MAX` of them. `nth` and `skip` cost little, and
    /// [`most_retries`](Schedule::most_retries) says how many are worth looking at.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{Backoff, RetryRule};
    ///
    /// let backoff = Backoff {
    ///     base: Duration::from_secs(1),
    ///     max: Duration::from_secs(5),
    ///     ..Backoff::default()
    /// };
    /// let rule = RetryRule { max_retries: u32::MAX, backoff, ..RetryRule::never() };
    /// let schedule = rule.schedule();
    /// let waits = schedule.retries().map(|retry| retry.wait().end().as_secs());
    /// assert_eq!(waits.take(5).collect::<Vec<_>>(), [1, 2, 4, 5, 5]);
    ///
    /// let millionth = schedule.retries().nth(999_999).unwrap();
    /// assert_eq!(millionth.number(), 1_000_000);
    /// assert_eq!(millionth.start().end().as_secs(), 7 + 999_997 * 5);
    /// ```
    pub fn retries(&self) -> impl Iterator<Item = ScheduledRetry> + Clone + '_ {
        Retries {
            schedule: self,
            made: 0,
            sum: Span::ZERO,
        }
    }

    /// How many retries start if every wait is as long as it can be and attempts take no time.
    /// If [`most_retries`](Schedule::most_retries) is more, chance decides about the rest.
    pub fn fewest_retries(&self) -> u32 {
        self.count_while(|retry| retry.stop_after_longest.is_none())
    }

    /// How many retries start if every wait is as short as it can be and attempts take no time: no
    /// send makes more, as long as the server asks for nothing.
    pub fn most_retries(&self) -> u32 {
        self.count_while(|retry| retry.stop_after_shortest.is_none())
    }

    /// The longest that a send can take if no attempt takes longer than `attempt_timeout` and the
    /// server asks for nothing. If the rule reads `Retry-After`, waits that the server asks for
    /// are often longer: see [`worst_case_asked`](Schedule::worst_case_asked).
    ///
    /// With a hard limit it is never more than that limit and one attempt's timeout. A fraction of
    /// a millisecond in the timeout counts as a whole one. A rule counts the time that has passed
    /// in whole milliseconds, so a send can take longer than this, by less than one millisecond.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{Limits, RetryRule};
    ///
    /// let timeout = Duration::from_secs(10);
    /// let rule = RetryRule { max_retries: 10, ..RetryRule::transient() };
    /// assert_eq!(rule.schedule().worst_case(timeout), Duration::from_millis(117_500));
    ///
    /// let limits = Limits { hard_elapsed: Some(Duration::from_secs(30)), ..Limits::default() };
    /// let limited = RetryRule { limits, ..rule };
    /// assert_eq!(limited.schedule().worst_case(timeout), Duration::from_secs(40));
    /// ```
    pub fn worst_case(&self, attempt_timeout: Duration) -> Duration {
        self.latest_end(self.most_retries(), attempt_timeout, |wait| wait.longest)
    }

    /// The longest that a send can take if no attempt takes longer than `attempt_timeout` and the
    /// server asks each time for as long a wait as the rule accepts; `None` if nothing bounds
    /// it, neither the cap nor the hard limit. As with [`worst_case`](Schedule::worst_case), a send
    /// can take longer by less than one millisecond.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{RetryAfter, RetryAfterSource, RetryRule};
    ///
    /// let retry_after = RetryAfter { source: RetryAfterSource::Header, ..RetryAfter::default() };
    /// let rule = RetryRule { retry_after, ..RetryRule::transient() };
    /// assert_eq!(rule.schedule().worst_case_asked(Duration::from_secs(10)), None);
    /// ```
    pub fn worst_case_asked(&self, attempt_timeout: Duration) -> Option<Duration> {
        if self.is_uncapped()
            && self.rule.limits.hard_elapsed.is_none()
            && self.rule.max_retries > 0
        {
            return None;
        }
        Some(
            self.latest_end(self.most_retries_asked(), attempt_timeout, |wait| {
                wait.asked
            }),
        )
    }

    /// [`most_retries`](Schedule::most_retries) if the server asks. It may ask for less than the
    /// backoff, and then each retry may find its time.
    fn most_retries_asked(&self) -> u32 {
        let server = &self.rule.retry_after;
        if server.reads_headers() && server.role == RetryAfterRole::Replace {
            self.rule.max_retries
        } else {
            self.most_retries()
        }
    }

    fn is_uncapped(&self) -> bool {
        self.rule.retry_after.reads_headers() && self.rule.retry_after.cap == RetryAfterCap::NoCap
    }

    /// The backoffs that are in use. If the rule retries nothing, a condition in code may, and then
    /// it is the rule's own.
    fn backoffs(&self) -> impl Iterator<Item = &Backoff> {
        let mut in_use = self
            .rule
            .backoffs_in_use()
            .map(|(_, backoff)| backoff)
            .peekable();
        let own = in_use.peek().is_none().then_some(&self.rule.backoff);
        own.into_iter().chain(in_use)
    }

    /// How many retries come before the first for which `starts` does not hold; it holds for none
    /// after that.
    fn count_while(&self, starts: impl Fn(&ScheduledRetry) -> bool) -> u32 {
        let growing = self.growing.min(self.rule.max_retries);
        let mut retries = Retries {
            schedule: self,
            made: 0,
            sum: Span::ZERO,
        };
        while retries.made < growing {
            let made = retries.made;
            if !retries.next().is_some_and(|retry| starts(&retry)) {
                return made;
            }
        }
        // From here on a retry costs no more to reach the further it is away.
        let (mut start, mut end) = (growing, self.rule.max_retries);
        while start < end {
            let middle = start + (end - start) / 2;
            let skipped = (middle - growing) as usize;
            if retries
                .clone()
                .nth(skipped)
                .is_some_and(|retry| starts(&retry))
            {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// When the last of up to `retries` retries can be over; `part` picks which waits count.
    fn latest_end(&self, retries: u32, timeout: Duration, part: impl Fn(Span) -> u64) -> Duration {
        let timeout = whole_ms(timeout.saturating_add(ALMOST_ONE));
        let ms = |limit: Option<Duration>| limit.map_or(u64::MAX, whole_ms);
        let (soft, hard) = (
            ms(self.rule.limits.soft_elapsed),
            ms(self.rule.limits.hard_elapsed),
        );
        // The latest start of the retry after `made`, and of `times - 1` more with the same wait,
        // if the one before them started at `start`: each is decided when the attempt before it
        // ends, yet not after the soft limit, and starts before the hard one.
        let later = |start: u64, made: u32, times: u32| {
            let wait = part(self.wait(made));
            let soft = if made < self.rule.limits.min_retries {
                u64::MAX
            } else {
                soft
            };
            let unlimited = u64::from(times).saturating_mul(timeout.saturating_add(wait));
            start
                .saturating_add(unlimited)
                .min(soft.saturating_add(wait))
                .min(hard)
        };
        let growing = self.growing.min(retries);
        let in_any_case = self.rule.limits.min_retries.clamp(growing, retries);
        let (mut start, mut latest) = (0, 0);
        for made in 0..growing {
            start = later(start, made, 1);
            latest = start.max(latest);
        }
        for (from, to) in [(growing, in_any_case), (in_any_case, retries)] {
            if from < to {
                start = later(start, from, to - from);
                latest = start.max(latest);
            }
        }
        Duration::from_millis(latest.saturating_add(timeout))
    }

    /// The wait before the retry after `made` others, by whichever backoff.
    fn wait(&self, made: u32) -> Span {
        let bounds = self.backoffs().map(|backoff| backoff.bounds(made));
        let (shortest, longest) = bounds
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
            .unwrap_or_default();
        Span {
            shortest,
            longest,
            asked: self.longest_asked().max(longest),
        }
    }

    /// The longest wait that the server may ask for.
    fn longest_asked(&self) -> u64 {
        let server = &self.rule.retry_after;
        if !server.reads_headers() {
            return 0;
        }
        match server.cap {
            RetryAfterCap::NoCap => u64::MAX,
            RetryAfterCap::StopAbove(cap)
            | RetryAfterCap::BackoffAbove(cap)
            | RetryAfterCap::ClampTo(cap) => {
                let cap = whole_ms(cap);
                cap.saturating_add(per_mille(cap, server.spread.into()))
            }
        }
    }
}

/// Added, it makes of a part of a millisecond a whole one.
const ALMOST_ONE: Duration = Duration::from_nanos(999_999);

/// After how many retries the wait has become the one that it is for ever after.
fn steps_until_steady(backoff: &Backoff) -> u32 {
    let steady = backoff.bounds(u32::MAX);
    let (mut start, mut end) = (0, u32::MAX);
    while start < end {
        let middle = start + (end - start) / 2;
        if backoff.bounds(middle) == steady {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    start
}

/// The retries after the first `made`, whose waits come to `sum`.
#[derive(Clone)]
struct Retries<'a> {
    schedule: &'a Schedule,
    made: u32,
    sum: Span,
}

impl Retries<'_> {
    /// Leaves out as many retries, at one step for all those with the same wait.
    fn leave_out(&mut self, retries: u32) {
        let end = self.made.saturating_add(retries);
        let growing = self.schedule.growing.clamp(self.made, end);
        for made in self.made..growing {
            self.sum = self.sum.plus(self.schedule.wait(made), 1);
        }
        self.sum = self.sum.plus(self.schedule.wait(growing), end - growing);
        self.made = end;
    }
}

impl Iterator for Retries<'_> {
    type Item = ScheduledRetry;

    fn next(&mut self) -> Option<ScheduledRetry> {
        if self.made >= self.schedule.rule.max_retries {
            return None;
        }
        let wait = self.schedule.wait(self.made);
        let before = self.sum;
        let stop = |wait, elapsed| {
            let (wait, elapsed) = (Duration::from_millis(wait), Duration::from_millis(elapsed));
            let limits = &self.schedule.rule.limits;
            // The limits look at these two and at no other fact.
            let facts = Attempt {
                attempt: self.made,
                elapsed,
                ..Attempt::new(&Method::GET)
            };
            limits.check(wait, &facts).err()
        };
        let (stop_after_shortest, stop_after_longest) = (
            stop(wait.shortest, before.shortest),
            stop(wait.longest, before.longest),
        );
        self.sum = before.plus(wait, 1);
        self.made += 1;
        Some(ScheduledRetry {
            number: self.made,
            wait,
            start: self.sum,
            uncapped: self.schedule.is_uncapped(),
            stop_after_shortest,
            stop_after_longest,
        })
    }

    fn nth(&mut self, skipped: usize) -> Option<ScheduledRetry> {
        let left = self.schedule.rule.max_retries - self.made;
        self.leave_out(u32::try_from(skipped).map_or(left, |skipped| skipped.min(left)));
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.schedule.rule.max_retries - self.made);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

impl FusedIterator for Retries<'_> {}
