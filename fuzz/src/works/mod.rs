//! Works around sends that meet all that may become of them, on a clock that is paused.
//!
//! What must hold: nothing that may have been processed is sent again unless its method, the caller,
//! the rule or the judge says that it may be; no work has more calls, and no request more attempts,
//! than the rules have retries; nothing is sent after a work's time; the last error comes back.
#![allow(clippy::disallowed_methods)]

mod ledger;
mod plan;
mod transport;

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use futures_util::future::{join_all, try_join_all};
use http::{HeaderName, Method};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry_rules::{
    Methods, Overrides, ReplaySafe, RetryLog, RetryMiddleware, RetryPolicy, RetryRule, StopReason,
    with_overrides,
};
use tokio::time::{Instant, sleep, timeout};

use self::ledger::{Around, Ledger};
use self::plan::{SendPlan, Step, WorkPlan};
use self::transport::{SendNumber, Transport};

pub use self::plan::WorkCase;

type Doing<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T, WorkError>> + 'a>>;

impl WorkCase {
    pub fn check(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let transport = Transport::new(&self.acts);
            let policy = RetryPolicy::from(self.client.rule.clone());
            let mut policy = finish(policy, &self.client.retry_if);
            if self.client.keys {
                policy = policy.idempotency_key(HeaderName::from_static("idempotency-key"));
            }
            let all = All {
                case: self,
                client: ClientBuilder::new(transport::no_network())
                    .with(RetryMiddleware::new(policy))
                    .with(transport.clone())
                    .build(),
                transport,
                kept: Mutex::default(),
                errors: Mutex::default(),
            };
            // Something may hang, and then all that is left is dropped.
            let hour = Duration::from_secs(3600);
            let _ = timeout(hour, all.work(&self.work, Around::default())).await;
            let late = std::mem::take(&mut *all.kept.lock().unwrap());
            let _ = timeout(hour, join_all(late)).await;
            if !self.work.keeps_sends() {
                let most = self.work.most_retries().max(self.client.rule.max_retries);
                all.ledger(|ledger| ledger.check_counts(most));
            }
        });
    }
}

/// All that is done in a case.
struct All<'a> {
    case: &'a WorkCase,
    client: ClientWithMiddleware,
    transport: Transport,
    /// Sends that are still on their way.
    kept: Mutex<Vec<Doing<'a>>>,
    /// How many errors there were.
    errors: Mutex<usize>,
}

/// The settings of all policies.
fn finish(policy: RetryPolicy, retry_if: &Option<Methods>) -> RetryPolicy {
    let policy = policy
        .no_budget()
        .classify_with(transport::class)
        .jitter_source(|| 0.5)
        .wall_clock(|| SystemTime::UNIX_EPOCH);
    match retry_if.clone() {
        Some(methods) => policy.retry_if(methods, |head| head.status() == 409),
        None => policy,
    }
}

impl<'a> All<'a> {
    fn ledger<T>(&self, use_it: impl FnOnce(&mut Ledger) -> T) -> T {
        use_it(&mut self.transport.ledger.lock().unwrap())
    }

    fn work<'s>(&'s self, plan: &'a WorkPlan, around: Around) -> Doing<'s> {
        Box::pin(async move {
            let mut policy = finish(RetryPolicy::from(plan.rule.clone()), &plan.retry_if);
            if let Some(total) = plan.total_timeout {
                policy = policy.total_timeout(total);
            }
            if let Some(rule) = plan.route.clone() {
                let pattern = format!("origin.test{}", plan::ROUTED);
                policy = policy.route(pattern.parse().unwrap(), rule);
            }
            let (work, log) = (self.ledger(Ledger::begin_work), RetryLog::new());
            let ends = plan.total_timeout.map(|total| Instant::now() + total);
            // The number of the last call, and the error that it came to.
            let last: Mutex<(u32, Option<WorkError>)> = Mutex::default();
            let doing = policy.run_judged(
                |error: &WorkError| {
                    let mut last = last.lock().unwrap();
                    last.1 = Some(error.copy());
                    plan.verdict(last.0).of(error)
                },
                |call| {
                    let (before, error) = {
                        let mut last = last.lock().unwrap();
                        (std::mem::replace(&mut last.0, call), last.1.take())
                    };
                    assert_eq!(before + 1, call);
                    if let Some(error) = error {
                        self.ledger(|it| it.check_repetition(plan, work, before, &error));
                    }
                    self.call(plan, call, around.with(work, call, ends))
                },
            );
            let outcome = with_overrides(Overrides::new().log(log.clone()), doing).await;
            let (calls, error) = last.into_inner().unwrap();
            assert!(calls <= plan.own_retries() + 1, "{calls} calls");
            let report = log.report().expect("a report");
            assert_eq!(report.attempts(), calls);
            assert_eq!(report.stop_reason().is_some(), outcome.is_err());
            let (Err(came), Some(reason)) = (&outcome, report.stop_reason()) else {
                return outcome;
            };
            let error = error.expect("the error that was judged");
            assert_eq!(came.number, error.number);
            let must = self.ledger(|it| it.must_be_repeated(plan, work, calls, &error));
            let is_over = matches!(
                reason,
                StopReason::Exhausted
                    | StopReason::HardLimit(_)
                    | StopReason::Budget(_)
                    | StopReason::TotalTimeout
            );
            assert!(is_over || !must, "it stopped: {reason:?}");
            outcome
        })
    }

    fn call<'s>(&'s self, plan: &'a WorkPlan, call: u32, around: Around) -> Doing<'s> {
        Box::pin(async move {
            for step in &plan.steps {
                self.step(step, &around).await?;
            }
            match plan.fails(call) {
                true => Err(self.error(Source::None)),
                false => Ok(()),
            }
        })
    }

    fn step<'s>(&'s self, step: &'a Step, around: &Around) -> Doing<'s> {
        let around = around.clone();
        match step {
            Step::Send(send) => Box::pin(self.send(send, around)),
            Step::Work { work, ignored } => Box::pin(async move {
                let outcome = self.work(work, around).await;
                if *ignored { Ok(()) } else { outcome }
            }),
            Step::Joined { steps, in_haste } => Box::pin(async move {
                let steps = steps.iter().map(|step| self.step(step, &around));
                match in_haste {
                    true => try_join_all(steps).await.map(drop),
                    false => join_all(steps).await.into_iter().collect(),
                }
            }),
            Step::Dropped { step, after } => Box::pin(async move {
                let outcome = timeout(*after, self.step(step, &around)).await;
                outcome.unwrap_or(Ok(()))
            }),
            Step::Kept(send) => Box::pin(async move {
                let mut late: Doing<'a> = Box::pin(self.to_send(send, around));
                if futures_util::poll!(&mut late).is_pending() {
                    self.kept.lock().unwrap().push(late);
                }
                Ok(())
            }),
            Step::Pause(pause) => Box::pin(async move {
                sleep(*pause).await;
                Ok(())
            }),
        }
    }

    async fn send(&self, plan: &'a SendPlan, around: Around) -> Result<(), WorkError> {
        let outcome = self.to_send(plan, around).await.map_err(|error| WorkError {
            number: self.next_error(),
            ..error
        });
        if plan.ignored { Ok(()) } else { outcome }
    }

    /// A send and the reading of its answer, without a number for its error.
    fn to_send(
        &self,
        plan: &'a SendPlan,
        around: Around,
    ) -> impl Future<Output = Result<(), WorkError>> + use<'a> {
        let number = self.ledger(|ledger| ledger.begin_send(plan, &self.case.client, &around));
        let url = format!("http://origin.test{}", plan.path);
        let mut request = self
            .client
            .request(plan.method.clone(), url)
            .with_extension(SendNumber(number))
            .with_extension(RetryLog::new());
        if plan.method == Method::POST {
            request = request.body("a body");
        }
        if !plan.retries {
            request = request.with_extension(RetryRule::never());
        }
        if let Some(safe) = plan.safe {
            request = request.with_extension(ReplaySafe(safe));
        }
        async move {
            let error = |source| WorkError { number: 0, source };
            let sent = request.send().await;
            let response = sent.map_err(|failed| error(Source::Send(failed)))?;
            let response = match plan.minds_status {
                true => response.error_for_status(),
                false => Ok(response),
            };
            let response = response.map_err(|failed| error(Source::Answer(failed)))?;
            let body = response.bytes().await;
            body.map_err(|failed| error(Source::Answer(failed)))?;
            Ok(())
        }
    }

    fn next_error(&self) -> usize {
        let mut errors = self.errors.lock().unwrap();
        *errors += 1;
        *errors
    }

    fn error(&self, source: Source) -> WorkError {
        let number = self.next_error();
        WorkError { number, source }
    }
}

/// What a work fails with. Each has a number of its own.
#[derive(Debug)]
pub(crate) struct WorkError {
    number: usize,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Send(reqwest_middleware::Error),
    Answer(reqwest::Error),
    /// What the ledger must know of one that was handed on.
    Copy {
        status: Option<u16>,
        path: Option<&'static str>,
    },
    None,
}

impl WorkError {
    /// The status of an answer that was turned into an error.
    fn status(&self) -> Option<u16> {
        match &self.source {
            Source::Answer(error) if error.is_status() => Some(error.status()?.as_u16()),
            Source::Copy { status, .. } => *status,
            _ => None,
        }
    }

    fn path(&self) -> Option<&'static str> {
        let url = match &self.source {
            Source::Answer(error) => error.url()?,
            Source::Copy { path, .. } => return *path,
            _ => return None,
        };
        let is_it = |path: &&&str| url.as_str().strip_prefix("http://origin.test") == Some(**path);
        plan::PATHS.iter().find(is_it).copied()
    }

    /// One with the same number, for the ledger.
    fn copy(&self) -> WorkError {
        let (status, path) = (self.status(), self.path());
        WorkError {
            number: self.number,
            source: Source::Copy { status, path },
        }
    }
}

impl fmt::Display for WorkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.number)
    }
}

impl StdError for WorkError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.source {
            Source::Send(error) => Some(error),
            Source::Answer(error) => Some(error),
            Source::Copy { .. } | Source::None => None,
        }
    }
}
