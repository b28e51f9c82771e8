//! What works, clients and the transport are to do, made of whatever bytes there are.

use std::time::Duration;

use http::Method;
use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use reqwest_retry_rules::{
    Backoff, Failure, Limits, Methods, RetryAfter, RetryAfterSource, RetryRule, StatusRule,
    TransportError,
};

use super::WorkError;
use crate::case::{failure, list, methods, option};

/// Where requests go.
pub(super) const PATHS: [&str; 3] = ["/a", "/a?b", "/c"];

/// The one that may have a rule of its own.
pub(super) const ROUTED: &str = "/c";

/// A work, the clients that its sends go through, and what becomes of each request in turn.
#[derive(Debug)]
pub struct WorkCase {
    pub(super) work: WorkPlan,
    pub(super) client: ClientPlan,
    pub(super) acts: Vec<Act>,
}

#[derive(Debug)]
pub(super) struct ClientPlan {
    pub(super) rule: RetryRule,
    /// A 409 may be sent again for these methods.
    pub(super) retry_if: Option<Methods>,
    /// True if requests that are not idempotent get a key.
    pub(super) keys: bool,
}

#[derive(Debug)]
pub(super) struct WorkPlan {
    pub(super) rule: RetryRule,
    /// The rule of the requests to [`ROUTED`].
    pub(super) route: Option<RetryRule>,
    pub(super) retry_if: Option<Methods>,
    pub(super) total_timeout: Option<Duration>,
    pub(super) steps: Vec<Step>,
    /// What the judge says of the call of this number; of later ones that the rule judges.
    pub(super) verdicts: Vec<Verdict>,
    /// True if the work is not content with what the call of this number got.
    pub(super) fails: Vec<bool>,
}

#[derive(Debug)]
pub(super) enum Step {
    Send(SendPlan),
    Work {
        work: Box<WorkPlan>,
        ignored: bool,
    },
    /// The steps at once. The first that fails drops the others, if it is `in_haste`.
    Joined {
        steps: Vec<Step>,
        in_haste: bool,
    },
    /// The step, which is dropped if it takes too long.
    Dropped {
        step: Box<Step>,
        after: Duration,
    },
    /// A send that is begun, and goes on when all else is over.
    Kept(SendPlan),
    Pause(Duration),
}

#[derive(Debug)]
pub(super) struct SendPlan {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) safe: Option<bool>,
    /// False if the client does not send it again.
    pub(super) retries: bool,
    /// False if any status will do.
    pub(super) minds_status: bool,
    /// True if the work goes on when it fails.
    pub(super) ignored: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Verdict {
    ByRule,
    Retry(Methods),
    RetryAfter(Methods, Duration),
    Stop,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) after: Duration,
    pub(super) then: Then,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Answer {
        status: u16,
        /// The seconds that the answer asks to wait.
        retry_after: Option<u8>,
        /// True if the body breaks off.
        breaks_off: bool,
    },
    /// This failure of the transport; without one an error that is none.
    Fail(Option<TransportError>),
    /// A real error of reqwest: the name is not found.
    NoName,
    /// A real error of reqwest: no name was found in time.
    TimeOut,
    /// Nothing more.
    Hang,
}

impl Then {
    /// False if it proves that the request was not processed.
    pub(super) fn processed(self) -> bool {
        match self {
            Then::Fail(Some(failure)) => !failure.is_unsent(),
            Then::NoName => false,
            Then::Fail(None) | Then::Answer { .. } | Then::TimeOut | Then::Hang => true,
        }
    }

    pub(super) fn status(self) -> Option<u16> {
        match self {
            Then::Answer { status, .. } => Some(status),
            _ => None,
        }
    }
}

impl Verdict {
    pub(super) fn of<'e>(&self, error: &'e WorkError) -> Failure<'e> {
        match self.clone() {
            Verdict::ByRule => Failure::ByRule(error),
            Verdict::Retry(methods) => Failure::Retry(methods),
            Verdict::RetryAfter(methods, wait) => Failure::RetryAfter(methods, wait),
            Verdict::Stop => Failure::Stop,
        }
    }

    /// The methods that the judge names.
    pub(super) fn methods(&self) -> Option<&Methods> {
        match self {
            Verdict::Retry(methods) | Verdict::RetryAfter(methods, _) => Some(methods),
            Verdict::ByRule | Verdict::Stop => None,
        }
    }
}

impl WorkPlan {
    /// The rule for a request to this path.
    pub(super) fn rule_for(&self, path: Option<&str>) -> &RetryRule {
        let route = self.route.as_ref().filter(|_| path == Some(ROUTED));
        route.unwrap_or(&self.rule)
    }

    /// The most retries of its own rules.
    pub(super) fn own_retries(&self) -> u32 {
        let routed = self.rule_for(Some(ROUTED)).max_retries;
        self.rule.max_retries.max(routed)
    }

    /// The verdict about the call of this number, 1 for the first.
    pub(super) fn verdict(&self, call: u32) -> &Verdict {
        let said = self.verdicts.get(call.saturating_sub(1) as usize);
        said.unwrap_or(&Verdict::ByRule)
    }

    pub(super) fn fails(&self, call: u32) -> bool {
        let said = self.fails.get(call.saturating_sub(1) as usize);
        said.is_some_and(|fails| *fails)
    }

    /// The most retries of a rule in it.
    pub(super) fn most_retries(&self) -> u32 {
        let own = self.own_retries();
        self.steps
            .iter()
            .map(Step::most_retries)
            .fold(own, u32::max)
    }

    pub(super) fn keeps_sends(&self) -> bool {
        self.steps.iter().any(Step::keeps_sends)
    }
}

impl Step {
    fn most_retries(&self) -> u32 {
        match self {
            Step::Work { work, .. } => work.most_retries(),
            Step::Joined { steps, .. } => steps.iter().map(Step::most_retries).max().unwrap_or(0),
            Step::Dropped { step, .. } => step.most_retries(),
            Step::Send(_) | Step::Kept(_) | Step::Pause(_) => 0,
        }
    }

    fn keeps_sends(&self) -> bool {
        match self {
            Step::Kept(_) => true,
            Step::Work { work, .. } => work.keeps_sends(),
            Step::Joined { steps, .. } => steps.iter().any(Step::keeps_sends),
            Step::Dropped { step, .. } => step.keeps_sends(),
            Step::Send(_) | Step::Pause(_) => false,
        }
    }
}

impl<'a> Arbitrary<'a> for WorkCase {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(WorkCase {
            client: ClientPlan {
                rule: rule(u)?,
                retry_if: option(u, methods)?,
                keys: u.ratio(1, 4)?,
            },
            work: work(u, 0)?,
            acts: (0..u.int_in_range(0..=24)?)
                .map(|_| act(u))
                .collect::<Result<_>>()?,
        })
    }
}

fn work(u: &mut Unstructured<'_>, depth: u32) -> Result<WorkPlan> {
    Ok(WorkPlan {
        rule: rule(u)?,
        route: match u.ratio(1, 4)? {
            true => Some(rule(u)?),
            false => None,
        },
        retry_if: option(u, methods)?,
        total_timeout: match u.ratio(1, 4)? {
            true => Some(duration(u)?),
            false => None,
        },
        steps: list(u, |u| step(u, depth))?,
        verdicts: list(u, verdict)?,
        fails: list(u, |u| u.ratio(1, 4))?,
    })
}

fn step(u: &mut Unstructured<'_>, depth: u32) -> Result<Step> {
    let kind = u.int_in_range(0..=11)?;
    Ok(match kind {
        0 if depth < 3 => Step::Work {
            work: Box::new(work(u, depth + 1)?),
            ignored: u.ratio(1, 4)?,
        },
        1 if depth < 3 => Step::Joined {
            steps: list(u, |u| step(u, depth + 1))?,
            in_haste: u.arbitrary()?,
        },
        2 if depth < 3 => Step::Dropped {
            step: Box::new(step(u, depth + 1)?),
            after: duration(u)?,
        },
        3 => Step::Kept(send(u)?),
        4 => Step::Pause(duration(u)?),
        _ => Step::Send(send(u)?),
    })
}

fn send(u: &mut Unstructured<'_>) -> Result<SendPlan> {
    Ok(SendPlan {
        method: u
            .choose(&[Method::GET, Method::PUT, Method::POST, Method::PATCH])?
            .clone(),
        path: u.choose(&PATHS)?,
        safe: match u.int_in_range(0..=7)? {
            0 => Some(true),
            1 => Some(false),
            _ => None,
        },
        retries: u.arbitrary()?,
        minds_status: !u.ratio(1, 4)?,
        ignored: u.ratio(1, 4)?,
    })
}

fn verdict(u: &mut Unstructured<'_>) -> Result<Verdict> {
    Ok(match u.int_in_range(0..=4)? {
        0 => Verdict::Retry(methods(u)?),
        1 => Verdict::RetryAfter(methods(u)?, duration(u)?),
        2 if u.ratio(1, 4)? => Verdict::Stop,
        _ => Verdict::ByRule,
    })
}

fn act(u: &mut Unstructured<'_>) -> Result<Act> {
    let answer = |status, u: &mut Unstructured<'_>| {
        Ok(Then::Answer {
            status,
            retry_after: match u.ratio(1, 8)? {
                true => Some(u.int_in_range(0..=3)?),
                false => None,
            },
            breaks_off: u.ratio(1, 8)?,
        })
    };
    let then = match u.int_in_range(0..=9)? {
        0 | 1 => answer(200, u)?,
        2..=4 => answer(*u.choose(&[503, 409, 429, 404])?, u)?,
        5 | 6 => Then::Fail(Some(failure(u)?)),
        7 => Then::Fail(match u.ratio(1, 4)? {
            true => None,
            false => Some(TransportError::Closed),
        }),
        8 => match u.arbitrary()? {
            true => Then::NoName,
            false => Then::TimeOut,
        },
        _ => match u.ratio(1, 4)? {
            true => Then::Hang,
            false => Then::Fail(Some(TransportError::Connect)),
        },
    };
    Ok(Act {
        after: duration(u)?,
        then,
    })
}

/// Few retries and short waits, so that all of it ends.
fn rule(u: &mut Unstructured<'_>) -> Result<RetryRule> {
    Ok(RetryRule {
        max_retries: u.int_in_range(0..=4)?,
        statuses: list(u, |u| {
            let status = u.choose(&[503, 409, 429, 200])?;
            Ok(StatusRule::new([*status], methods(u)?))
        })?,
        sent_failures: methods(u)?,
        unsent_failures: u.arbitrary()?,
        timeouts: u.ratio(7, 8)?,
        retry_after: RetryAfter {
            source: *u.choose(&[RetryAfterSource::Ignore, RetryAfterSource::Header])?,
            ..RetryAfter::default()
        },
        backoff: Backoff {
            base: duration(u)?,
            max: Duration::from_millis(50),
            ..Backoff::default()
        },
        limits: Limits {
            hard_elapsed: match u.ratio(1, 4)? {
                true => Some(duration(u)?),
                false => None,
            },
            ..Limits::default()
        },
        ..RetryRule::never()
    })
}

/// At most some milliseconds, and often none.
fn duration(u: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match u.arbitrary()? {
        true => Duration::ZERO,
        false => Duration::from_millis(u.int_in_range(0..=30)?),
    })
}
