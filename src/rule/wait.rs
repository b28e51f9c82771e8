use std::time::Duration;

use super::millis::{floored, per_mille, sample, whole_ms};
use super::{
    Attempt, AttemptOutcome, Backoff, RetryAfterCap, RetryAfterRole, RetryRule, StopReason,
};

/// Where the wait before a retry came from.
///
/// Under [`RetryAfterRole::Floor`] it is whichever was longer, the server if both were equal. It is
/// the pause only if that is longer than both.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use reqwest_retry_rules::{AttemptRecord, ResponseExt, RetryRule, WaitSource};
///
/// // Answers, in place of the network: only the first one asks for a wait.
/// let first = std::sync::atomic::AtomicBool::new(true);
/// let busy = move |_: &reqwest::Request| {
///     let answer = http::Response::builder().status(503);
///     match first.swap(false, std::sync::atomic::Ordering::Relaxed) {
///         true => answer.header("retry-after-ms", "5").body("").unwrap(),
///         false => answer.body("").unwrap(),
///     }
/// };
/// let rule = RetryRule { max_retries: 2, ..RetryRule::transient() };
/// let response = client(rule, busy).get("http://127.0.0.1/").send().await?;
/// let records = response.retry_report().map_or(&[][..], |report| report.records());
/// let sources: Vec<_> = records.iter().filter_map(AttemptRecord::wait_source).collect();
/// assert_eq!(sources, [WaitSource::Server, WaitSource::Backoff]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitSource {
    /// The [`Backoff`](crate::Backoff) of the rule, or of the response's
    /// [`StatusRule`](crate::StatusRule).
    Backoff,
    /// The server: a header of its response, or what
    /// [`server_delay`](crate::RetryPolicy::server_delay) read from it.
    Server,
    /// The pause that the request's origin asks for: [`Attempt::paused`](crate::Attempt::paused).
    Pause,
}

impl WaitSource {
    /// A short name that stays the same, for metrics and logs, in snake case.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::WaitSource;
    ///
    /// assert_eq!(WaitSource::Server.name(), "server");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            WaitSource::Backoff => "backoff",
            WaitSource::Server => "server",
            WaitSource::Pause => "pause",
        }
    }
}

impl RetryRule {
    /// What the server asks for, to the millisecond, before the cap and the spread: the caller's
    /// `server_delay`, else the wait headers, else the standard ones.
    #[inline]
    pub(crate) fn asked(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Option<Duration> {
        attempt.server_delay.map(floored).or_else(|| match outcome {
            AttemptOutcome::Response { status, headers } => {
                self.retry_after.read(*status, headers, attempt.now)
            }
            AttemptOutcome::Failure(_) => None,
        })
    }

    /// The wait before a retry, and where it came from.
    ///
    /// # Errors
    ///
    /// `RetryAfterTooLong` if the server asks for more than the cap, and the cap is to stop.
    #[inline]
    pub(super) fn planned_wait(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
        backoff: &Backoff,
    ) -> Result<(Duration, WaitSource), StopReason> {
        let (wait, source) = self.unpaused_wait(outcome, attempt, backoff)?;
        match attempt.paused.map(floored) {
            Some(paused) if paused > wait => Ok((paused, WaitSource::Pause)),
            _ => Ok((wait, source)),
        }
    }

    /// What the server asks and the backoff come to, as the [`RetryAfterRole`] says.
    #[inline]
    fn unpaused_wait(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
        backoff: &Backoff,
    ) -> Result<(Duration, WaitSource), StopReason> {
        let asked = self
            .accepted(outcome, attempt)?
            .map(|asked| self.spread(asked, attempt.random));
        if let (Some(asked), RetryAfterRole::Replace) = (asked, self.retry_after.role) {
            return Ok((asked, WaitSource::Server));
        }
        let backoff = backoff.delay(attempt.attempt, attempt.random);
        Ok(match asked {
            Some(asked) if asked >= backoff => (asked, WaitSource::Server),
            _ => (backoff, WaitSource::Backoff),
        })
    }

    /// What the server asks, and what chance adds to it.
    #[inline]
    fn spread(&self, asked: Duration, random: f64) -> Duration {
        let share = (sample(random) * f64::from(self.retry_after.spread)) as u64;
        let asked = whole_ms(asked);
        Duration::from_millis(asked.saturating_add(per_mille(asked, share)))
    }

    /// What the server asks for, within the cap; `None` if the backoff applies.
    #[inline]
    fn accepted(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Duration>, StopReason> {
        let zero_counts = !self.retry_after.zero_means_backoff;
        let asked = self
            .asked(outcome, attempt)
            .filter(|asked| zero_counts || !asked.is_zero());
        let Some(asked) = asked else {
            return Ok(None);
        };
        match self.retry_after.cap {
            RetryAfterCap::StopAbove(cap) if asked > floored(cap) => {
                Err(StopReason::RetryAfterTooLong(asked))
            }
            RetryAfterCap::BackoffAbove(cap) if asked > floored(cap) => Ok(None),
            RetryAfterCap::ClampTo(cap) => Ok(Some(asked.min(floored(cap)))),
            RetryAfterCap::StopAbove(_) | RetryAfterCap::BackoffAbove(_) | RetryAfterCap::NoCap => {
                Ok(Some(asked))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

    use super::*;
    use crate::rule::{RetryAfter, RetryAfterSource, TransportError, WaitFormat, WaitHeader};

    /// A backoff of 500 ms.
    fn half() -> Backoff {
        let half = Duration::from_millis(500);
        Backoff {
            base: half,
            max: half,
            ..Backoff::default()
        }
    }

    fn rule(retry_after: RetryAfter) -> RetryRule {
        RetryRule {
            retry_after,
            ..RetryRule::never()
        }
    }

    fn asking(ms: u64) -> Attempt<'static> {
        let server_delay = Some(Duration::from_millis(ms));
        Attempt {
            server_delay,
            ..Attempt::new(&Method::GET)
        }
    }

    const CLOSED: AttemptOutcome<'_> = AttemptOutcome::Failure(TransportError::Closed);

    #[track_caller]
    fn planned(retry_after: RetryAfter, attempt: &Attempt<'_>, ms: u64, source: WaitSource) {
        let expected = Ok((Duration::from_millis(ms), source));
        assert_eq!(
            rule(retry_after).planned_wait(&CLOSED, attempt, &half()),
            expected
        );
    }

    #[test]
    fn nothing_asked_is_the_backoff() {
        let nothing = Attempt::new(&Method::GET);
        planned(RetryAfter::default(), &nothing, 500, WaitSource::Backoff);
    }

    #[test]
    fn what_the_server_asks_is_the_servers_even_if_it_is_zero() {
        planned(RetryAfter::default(), &asking(70), 70, WaitSource::Server);
        planned(RetryAfter::default(), &asking(0), 0, WaitSource::Server);
    }

    #[test]
    fn a_zero_that_means_the_backoff_is_the_backoffs() {
        let retry_after = RetryAfter {
            zero_means_backoff: true,
            ..RetryAfter::default()
        };
        planned(retry_after.clone(), &asking(0), 500, WaitSource::Backoff);
        planned(retry_after, &asking(1), 1, WaitSource::Server);
    }

    #[test]
    fn a_zero_means_the_backoff_under_transient_and_not_under_never() {
        let zero = asking(0);
        planned(
            RetryRule::transient().retry_after,
            &zero,
            500,
            WaitSource::Backoff,
        );
        planned(RetryRule::never().retry_after, &zero, 0, WaitSource::Server);
    }

    #[test]
    fn under_floor_the_longer_wait_says_where_it_came_from() {
        let floor = RetryAfter {
            role: RetryAfterRole::Floor,
            ..RetryAfter::default()
        };
        planned(floor.clone(), &asking(499), 500, WaitSource::Backoff);
        planned(floor.clone(), &asking(500), 500, WaitSource::Server);
        planned(floor, &asking(501), 501, WaitSource::Server);
    }

    #[test]
    fn a_cap_stops_or_hands_over_to_the_backoff_only_above_it() {
        // The cap is whole milliseconds too.
        let cap = Duration::from_micros(1999);
        let stop = RetryAfter {
            cap: RetryAfterCap::StopAbove(cap),
            ..RetryAfter::default()
        };
        planned(stop.clone(), &asking(1), 1, WaitSource::Server);
        assert_eq!(
            rule(stop).planned_wait(&CLOSED, &asking(2), &half()),
            Err(StopReason::RetryAfterTooLong(Duration::from_millis(2))),
        );
        let give = RetryAfter {
            cap: RetryAfterCap::BackoffAbove(cap),
            ..RetryAfter::default()
        };
        planned(give.clone(), &asking(1), 1, WaitSource::Server);
        planned(give, &asking(2), 500, WaitSource::Backoff);
    }

    #[test]
    fn a_cap_that_clamps_asks_for_itself() {
        let clamp = RetryAfter {
            cap: RetryAfterCap::ClampTo(Duration::from_micros(2999)),
            spread: 1000,
            ..RetryAfter::default()
        };
        planned(clamp.clone(), &asking(1), 1, WaitSource::Server);
        planned(clamp.clone(), &asking(3), 2, WaitSource::Server);
        let random = 0.5;
        let late = Attempt {
            random,
            ..asking(99)
        };
        planned(clamp, &late, 3, WaitSource::Server);
    }

    #[test]
    fn a_pause_is_the_least_that_is_waited() {
        let paused = |ms, asked: Option<u64>| Attempt {
            paused: Some(Duration::from_millis(ms)),
            server_delay: asked.map(Duration::from_millis),
            ..Attempt::new(&Method::GET)
        };
        let plain = RetryAfter::default;
        planned(plain(), &paused(501, None), 501, WaitSource::Pause);
        planned(plain(), &paused(500, None), 500, WaitSource::Backoff);
        planned(plain(), &paused(71, Some(70)), 71, WaitSource::Pause);
        planned(plain(), &paused(70, Some(70)), 70, WaitSource::Server);
        planned(plain(), &paused(0, Some(0)), 0, WaitSource::Server);
    }

    #[test]
    fn the_spread_comes_on_top_of_the_cap() {
        let retry_after = RetryAfter {
            cap: RetryAfterCap::StopAbove(Duration::from_millis(1000)),
            spread: 500,
            ..RetryAfter::default()
        };
        let attempt = Attempt {
            random: 0.5,
            ..asking(1000)
        };
        planned(retry_after, &attempt, 1250, WaitSource::Server);
    }

    #[test]
    fn a_wait_that_is_too_long_to_count_saturates() {
        let retry_after = RetryAfter {
            spread: u32::MAX,
            ..RetryAfter::default()
        };
        let server_delay = Some(Duration::MAX);
        let attempt = Attempt {
            random: 0.5,
            server_delay,
            ..Attempt::new(&Method::GET)
        };
        planned(retry_after, &attempt, u64::MAX, WaitSource::Server);
    }

    #[test]
    fn what_is_asked_is_read_from_the_nearest() {
        let header = HeaderName::from_static("x-wait");
        let rule = rule(RetryAfter {
            headers: vec![WaitHeader {
                name: header.clone(),
                format: WaitFormat::Millis,
                statuses: vec![],
            }],
            source: RetryAfterSource::Header,
            spread: 1000,
            ..RetryAfter::default()
        });
        let mut headers = HeaderMap::new();
        let asked = |headers: &HeaderMap, attempt: &Attempt<'_>| {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            rule.asked(&AttemptOutcome::Response { status, headers }, attempt)
        };
        let nobody = Attempt {
            random: 0.9,
            ..Attempt::new(&Method::GET)
        };
        assert_eq!(asked(&headers, &nobody), None);
        headers.insert("retry-after", HeaderValue::from_static("3"));
        assert_eq!(asked(&headers, &nobody), Some(Duration::from_secs(3)));
        headers.insert(header, HeaderValue::from_static("250"));
        assert_eq!(asked(&headers, &nobody), Some(Duration::from_millis(250)));
        assert_eq!(
            asked(&headers, &asking(70)),
            Some(Duration::from_millis(70))
        );
        assert_eq!(rule.asked(&CLOSED, &nobody), None);
    }
}
