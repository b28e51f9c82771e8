//! A rule and the facts it is asked about, made of whatever bytes there are.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Backoff, Decision, Jitter, Limits, Methods, RetryAfter, RetryAfterCap,
    RetryAfterRole, RetryAfterSource, RetryRule, StatusMatch, StatusRule, TransportError,
    WaitFormat, WaitHeader,
};

use crate::model::{self, Facts};

#[derive(Debug)]
pub struct Case {
    rule: RetryRule,
    facts: Facts,
}

impl Case {
    /// Asks the rule and the model, and what the rule is made of.
    pub fn check(&self) {
        let Case { rule, facts } = self;
        let (outcome, attempt) = (facts.outcome(), facts.attempt());
        assert_eq!(
            rule.decide(&outcome, &attempt),
            model::decide(rule, &outcome, &attempt)
        );
        assert_eq!(
            rule.backoff.delay(facts.attempt, facts.random),
            model::delay(&rule.backoff, facts.attempt, facts.random)
        );
        assert_eq!(rule.validate().is_ok(), model::is_valid(rule));
    }

    /// Sends by the rule while everything fails, and looks whether the schedule said so.
    pub fn check_schedule(&self) {
        let facts = &self.facts;
        // A failure is always retried, so the rule's own backoff is in use.
        let rule = &RetryRule {
            sent_failures: Methods::Any,
            ..self.rule.clone()
        };
        let schedule = rule.schedule();
        assert_ne!(schedule.to_string(), "");
        for advice in self.rule.advice() {
            assert_ne!(advice.to_string(), "");
        }
        let closed = AttemptOutcome::Failure(TransportError::Closed);
        let (fewest, most) = (schedule.fewest_retries(), schedule.most_retries());
        assert!(fewest <= most && most <= rule.max_retries);
        match schedule.retries().nth(facts.attempt as usize) {
            Some(retry) => {
                let delay = rule.backoff.delay(facts.attempt, facts.random);
                assert_eq!(retry.number(), facts.attempt + 1);
                assert!(retry.wait().contains(&delay));
            }
            None => assert!(facts.attempt >= rule.max_retries),
        }

        let at_once = self.send(rule, &closed, Duration::ZERO, None);
        assert!(at_once.retries <= most);
        assert!(at_once.retries >= fewest || !at_once.stopped);
        for (start, retry) in at_once.starts.iter().zip(schedule.retries()) {
            assert!(retry.start().contains(start));
        }
        assert!(at_once.end <= schedule.worst_case(Duration::ZERO));

        let timeout = facts.elapsed;
        let slowly = self.send(rule, &closed, timeout, None);
        assert!(slowly.end <= schedule.worst_case(timeout));

        // A response, whose row may have a backoff of its own, and may not be retried at all.
        let response = http::Response::builder().status(facts.status).body(());
        let response = response.unwrap_or_default();
        let answered = self.send(rule, &(&response).into(), Duration::ZERO, None);
        assert!(answered.retries <= most);
        for (start, retry) in answered.starts.iter().zip(schedule.retries()) {
            assert!(retry.start().contains(start));
        }
        assert!(answered.end <= schedule.worst_case(Duration::ZERO));

        // A server that asks each time for all that the rule will wait.
        let settings = &rule.retry_after;
        let asked = match settings.cap {
            RetryAfterCap::StopAbove(cap)
            | RetryAfterCap::BackoffAbove(cap)
            | RetryAfterCap::ClampTo(cap) => Some(cap),
            RetryAfterCap::NoCap => facts.server_delay,
        };
        let listens = settings.source != RetryAfterSource::Ignore || !settings.headers.is_empty();
        if listens {
            let asked = self.send(rule, &closed, timeout, asked);
            let worst = schedule.worst_case_asked(timeout);
            assert!(worst.is_none_or(|worst| asked.end <= worst));
        }
    }

    /// What becomes of a send whose attempts all come to `outcome` after `timeout`.
    fn send(
        &self,
        rule: &RetryRule,
        outcome: &AttemptOutcome<'_>,
        timeout: Duration,
        server_delay: Option<Duration>,
    ) -> Sent {
        let (mut elapsed, mut starts, mut stopped) = (timeout, Vec::new(), false);
        for retries in 0..50 {
            let attempt = Attempt {
                attempt: retries,
                random: self.facts.random,
                elapsed,
                server_delay,
                ..Attempt::new(&Method::GET)
            };
            let Decision::Wait(wait) = rule.decide(outcome, &attempt) else {
                stopped = true;
                break;
            };
            let start = elapsed.saturating_add(wait);
            starts.push(counted(start));
            elapsed = start.saturating_add(timeout);
        }
        Sent {
            retries: starts.len() as u32,
            starts,
            end: counted(elapsed),
            stopped,
        }
    }
}

struct Sent {
    retries: u32,
    starts: Vec<Duration>,
    end: Duration,
    /// Whether the rule had no more retries, rather than we no more patience.
    stopped: bool,
}

/// As a rule counts: in whole milliseconds, and as many as there are.
fn counted(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Case {
            rule: rule(u)?,
            facts: facts(u)?,
        })
    }
}

pub fn rule(u: &mut Unstructured<'_>) -> Result<RetryRule> {
    Ok(RetryRule {
        max_retries: count(u)?,
        statuses: list(u, |u| {
            Ok(StatusRule {
                statuses: list(u, status_match)?,
                methods: methods(u)?,
                backoff: option(u, backoff)?,
            })
        })?,
        sent_failures: methods(u)?,
        unsent_failures: u.arbitrary()?,
        timeouts: u.arbitrary()?,
        override_header: option(u, name)?,
        veto_header: option(u, name)?,
        retry_after: retry_after(u)?,
        backoff: backoff(u)?,
        limits: Limits {
            soft_elapsed: option(u, duration)?,
            min_retries: count(u)?,
            hard_elapsed: option(u, duration)?,
        },
    })
}

fn backoff(u: &mut Unstructured<'_>) -> Result<Backoff> {
    Ok(Backoff {
        base: duration(u)?,
        max: duration(u)?,
        growth: per_mille(u)?,
        jitter: jitter(u)?,
    })
}

fn retry_after(u: &mut Unstructured<'_>) -> Result<RetryAfter> {
    Ok(RetryAfter {
        headers: list(u, |u| {
            let formats = [
                WaitFormat::Seconds,
                WaitFormat::Millis,
                WaitFormat::UnixSeconds,
                WaitFormat::UnixMillis,
                WaitFormat::HttpDate,
            ];
            Ok(WaitHeader {
                name: name(u)?,
                format: *u.choose(&formats)?,
                statuses: list(u, status_match)?,
            })
        })?,
        source: *u.choose(&[
            RetryAfterSource::Ignore,
            RetryAfterSource::Header,
            RetryAfterSource::MsThenHeader,
        ])?,
        cap: match u.int_in_range(0..=3)? {
            0 => RetryAfterCap::StopAbove(duration(u)?),
            1 => RetryAfterCap::BackoffAbove(duration(u)?),
            2 => RetryAfterCap::ClampTo(duration(u)?),
            _ => RetryAfterCap::NoCap,
        },
        zero_means_backoff: u.arbitrary()?,
        role: *u.choose(&[RetryAfterRole::Replace, RetryAfterRole::Floor])?,
        spread: per_mille(u)?,
    })
}

fn jitter(u: &mut Unstructured<'_>) -> Result<Jitter> {
    Ok(match u.int_in_range(0..=2)? {
        0 => Jitter::NoJitter,
        1 => Jitter::Full,
        _ => Jitter::Proportional {
            lo: per_mille(u)?,
            hi: per_mille(u)?,
        },
    })
}

fn facts(u: &mut Unstructured<'_>) -> Result<Facts> {
    Ok(Facts {
        failure: option(u, failure)?,
        status: status(u)?,
        headers: headers(u)?,
        method: method(u)?,
        attempt: count(u)?,
        random: match u.int_in_range(0..=1)? {
            0 => f64::from(u.arbitrary::<u16>()?) / 65536.0,
            _ => u.arbitrary()?,
        },
        now: option(u, moment)?,
        elapsed: duration(u)?,
        remaining: option(u, duration)?,
        server_delay: option(u, duration)?,
        condition: option(u, methods)?,
        idempotent: u.arbitrary()?,
        // A request that cannot be sent again has little to tell.
        replayable: u.ratio(15, 16)?,
        vetoed: u.ratio(1, 16)?,
        replaced: u.ratio(1, 4)?,
        paused: option(u, duration)?,
    })
}

pub fn failure(u: &mut Unstructured<'_>) -> Result<TransportError> {
    use TransportError::*;

    let plain = [
        Dns,
        Connect,
        ConnectTimeout,
        Tls,
        NotProcessed,
        AfterRedirect,
        Timeout,
        Closed,
        Body,
        Certificate,
        Protocol,
    ];
    Ok(match u.int_in_range(0..=3)? {
        0 => Proxy {
            status: option(u, status)?,
        },
        _ => *u.choose(&plain)?,
    })
}

fn headers(u: &mut Unstructured<'_>) -> Result<HeaderMap> {
    let words = [
        "true",
        "false",
        "0",
        "0.25",
        "784111777",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
    ];
    let mut headers = HeaderMap::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let bytes = match u.int_in_range(0..=1)? {
            0 => u.choose(&words)?.as_bytes(),
            _ => {
                let length = u.int_in_range(0..=40)?;
                u.bytes(length.min(u.len()))?
            }
        };
        let name = name(u)?;
        if let Ok(value) = HeaderValue::from_bytes(bytes) {
            headers.append(name, value);
        }
    }
    Ok(headers)
}

pub fn name(u: &mut Unstructured<'_>) -> Result<HeaderName> {
    let names = ["retry-after", "retry-after-ms", "x-wait", "x-should-retry"];
    u.choose(&names).copied().map(HeaderName::from_static)
}

pub fn methods(u: &mut Unstructured<'_>) -> Result<Methods> {
    Ok(match u.int_in_range(0..=3)? {
        0 => Methods::Never,
        1 => Methods::Idempotent,
        2 => Methods::Listed(list(u, listed)?),
        _ => Methods::Any,
    })
}

/// Any method, and what looks like another or like none.
fn listed(u: &mut Unstructured<'_>) -> Result<Method> {
    Ok(match u.int_in_range(0..=9)? {
        0 => {
            let name = u.choose(&["get", "Patch", "any", "Never", "purge"])?;
            Method::from_bytes(name.as_bytes()).unwrap()
        }
        _ => method(u)?,
    })
}

fn method(u: &mut Unstructured<'_>) -> Result<Method> {
    u.choose(&[Method::GET, Method::PUT, Method::POST, Method::PATCH])
        .cloned()
}

fn status_match(u: &mut Unstructured<'_>) -> Result<StatusMatch> {
    Ok(match u.int_in_range(0..=2)? {
        0 => StatusMatch::Code(status(u)?.as_u16()),
        1 => StatusMatch::Range(status(u)?.as_u16(), status(u)?.as_u16()),
        _ => StatusMatch::Range(u.arbitrary()?, u.arbitrary()?),
    })
}

fn status(u: &mut Unstructured<'_>) -> Result<StatusCode> {
    let code = u.int_in_range(100..=999)?;
    Ok(StatusCode::from_u16(code).unwrap_or_default())
}

fn moment(u: &mut Unstructured<'_>) -> Result<SystemTime> {
    let epoch = SystemTime::UNIX_EPOCH;
    let near = epoch + Duration::from_millis(784_111_776_000);
    let (start, span) = (*u.choose(&[epoch, near])?, duration(u)?);
    let moved = match u.arbitrary()? {
        true => start.checked_add(span),
        false => start.checked_sub(span),
    };
    Ok(moved.unwrap_or(start))
}

/// Few milliseconds as often as any other span, so that spans meet.
fn duration(u: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match u.int_in_range(0..=3)? {
        0 => Duration::from_millis(u64::from(u.arbitrary::<u8>()?)),
        1 => Duration::from_micros(u64::from(u.arbitrary::<u32>()?)),
        2 => Duration::from_millis(u.arbitrary()?),
        _ => Duration::new(u.arbitrary()?, u.int_in_range(0..=999_999_999)?),
    })
}

fn count(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=3)? {
        0 => u.arbitrary()?,
        _ => u32::from(u.arbitrary::<u8>()?),
    })
}

fn per_mille(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=3)? {
        0 => u.arbitrary()?,
        1 => 2000,
        _ => u.int_in_range(0..=4000)?,
    })
}

pub fn option<'a, T>(
    u: &mut Unstructured<'a>,
    some: impl FnOnce(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Option<T>> {
    match u.arbitrary()? {
        true => some(u).map(Some),
        false => Ok(None),
    }
}

pub fn list<'a, T>(
    u: &mut Unstructured<'a>,
    mut one: impl FnMut(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=3)?).map(|_| one(u)).collect()
}
