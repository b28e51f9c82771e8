use std::ops::RangeInclusive;
use std::time::Duration;

use crate::rule::StopReason;

/// One retry of a [`Schedule`](crate::Schedule), if everything before it fails.
///
/// Intervals are in whole milliseconds and include both ends. A wait with jitter stays just below
/// the longer end.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Limits, RetryRule, StopReason};
///
/// let limits = Limits { hard_elapsed: Some(Duration::from_millis(500)), ..Limits::default() };
/// let schedule = RetryRule { limits, ..RetryRule::transient() }.schedule();
/// let third = schedule.retries().nth(2).unwrap();
/// assert_eq!(third.number(), 3);
/// assert_eq!(third.start(), Duration::ZERO..=Duration::from_millis(700));
/// assert_eq!(third.stop_after_shortest_waits(), None);
/// assert_eq!(
///     third.stop_after_longest_waits(),
///     Some(StopReason::HardLimit(Duration::from_millis(400))),
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScheduledRetry {
    pub(super) number: u32,
    pub(super) wait: Span,
    pub(super) start: Span,
    pub(super) uncapped: bool,
    pub(super) stop_after_shortest: Option<StopReason>,
    pub(super) stop_after_longest: Option<StopReason>,
}

impl ScheduledRetry {
    /// Which retry it is: 1 for the first.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The wait before it, from the shortest to the longest, if the server asks for nothing.
    pub fn wait(&self) -> RangeInclusive<Duration> {
        self.wait.interval()
    }

    /// The longest wait before it if the server asks for one; `None` if there is no cap.
    pub fn wait_asked(&self) -> Option<Duration> {
        (!self.uncapped).then(|| Duration::from_millis(self.wait.asked))
    }

    /// When it starts: this and all waits before it, if the server asks for nothing and
    /// attempts take no time.
    pub fn start(&self) -> RangeInclusive<Duration> {
        self.start.interval()
    }

    /// When it starts at the latest if the server asks each time; `None` if there is no cap.
    pub fn start_asked(&self) -> Option<Duration> {
        (!self.uncapped).then(|| Duration::from_millis(self.start.asked))
    }

    /// The limit that keeps it from starting even if every wait is as short as it can be.
    pub fn stop_after_shortest_waits(&self) -> Option<StopReason> {
        self.stop_after_shortest
    }

    /// The limit that keeps it from starting if every wait is as long as it can be.
    pub fn stop_after_longest_waits(&self) -> Option<StopReason> {
        self.stop_after_longest
    }
}

/// A wait or a sum of waits, in milliseconds: the shortest, the longest, and the longest if the
/// server asks for as much as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    pub(super) shortest: u64,
    pub(super) longest: u64,
    pub(super) asked: u64,
}

impl Span {
    pub(super) const ZERO: Span = Span {
        shortest: 0,
        longest: 0,
        asked: 0,
    };

    /// This and `times` times `wait`.
    pub(super) fn plus(self, wait: Span, times: u32) -> Span {
        let plus = |sum: u64, wait: u64| sum.saturating_add(wait.saturating_mul(u64::from(times)));
        Span {
            shortest: plus(self.shortest, wait.shortest),
            longest: plus(self.longest, wait.longest),
            asked: plus(self.asked, wait.asked),
        }
    }

    fn interval(self) -> RangeInclusive<Duration> {
        Duration::from_millis(self.shortest)..=Duration::from_millis(self.longest)
    }
}
