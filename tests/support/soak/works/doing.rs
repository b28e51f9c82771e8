//! Doing one work.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::try_join_all;
use http::StatusCode;
use reqwest_middleware::Error;
use reqwest_retry_rules::{
    Failure, Overrides, ReplaySafe, RetryBudget, RetryLog, RetryPolicy, RetryReport, RetryRule,
    TotalTimeout, with_overrides,
};

use super::super::ledger::{ATTEMPT, Ledger, SEND};
use super::super::plan::{Claim, Patience, Plan, SHORT};
use super::super::send::{Clients, HUNG, rule};
use super::super::world::url;
use super::Counts;
use super::plan::{Judge, WorkPlan};

/// What works are done with.
pub struct Doing {
    clients: Clients,
    ledger: Arc<Ledger>,
    budget: RetryBudget,
    counts: Arc<Counts>,
}

/// What a work came to.
pub struct Went {
    pub outcome: Result<(), WorkError>,
    pub report: Option<RetryReport>,
    pub calls: u32,
    /// The reports of its sends that ended, each by the number of its plan.
    pub sends: Vec<(usize, RetryReport)>,
    /// Bodies that were not what they should be.
    pub wrong: Vec<String>,
    /// Whether it came to an end.
    pub hung: bool,
}

#[derive(Debug)]
pub enum WorkError {
    Send(Error),
    Body(reqwest::Error),
    Decoder,
    Hung,
}

impl fmt::Display for WorkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WorkError::Send(_) => "a send failed",
            WorkError::Body(_) => "a body could not be read",
            WorkError::Decoder => "what came could not be decoded",
            WorkError::Hung => "it did not come to an end",
        })
    }
}

impl StdError for WorkError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            WorkError::Send(error) => Some(error),
            WorkError::Body(error) => Some(error),
            WorkError::Decoder | WorkError::Hung => None,
        }
    }
}

/// What is noted while a work is done.
#[derive(Default)]
struct Notes {
    calls: u32,
    sends: Vec<(usize, RetryReport)>,
    wrong: Vec<String>,
}

impl Doing {
    pub fn new(
        clients: Clients,
        ledger: &Arc<Ledger>,
        budget: RetryBudget,
        counts: &Arc<Counts>,
    ) -> Doing {
        Doing {
            clients,
            ledger: Arc::clone(ledger),
            budget,
            counts: Arc::clone(counts),
        }
    }

    fn finish(&self, policy: RetryPolicy) -> RetryPolicy {
        policy
            .budget(self.budget.clone())
            .observer(Arc::clone(&self.counts))
    }

    pub async fn work(&self, work: &WorkPlan) -> Went {
        let (log, notes) = (RetryLog::new(), Mutex::new(Notes::default()));
        let policy = self.finish(RetryPolicy::from(rule()));
        let doing = policy.run_judged(
            |error: &WorkError| match error {
                _ if work.judge == Judge::Lies => work.judge.of_decoder(),
                WorkError::Decoder => work.judge.of_decoder(),
                error => Failure::ByRule(error),
            },
            |call| {
                notes.lock().unwrap().calls = call;
                self.call(work, call, &notes)
            },
        );
        let doing = with_overrides(Overrides::new().log(log.clone()), doing);
        let outcome = tokio::time::timeout(HUNG, doing).await;
        let hung = outcome.is_err();
        let notes = notes.into_inner().unwrap();
        Went {
            outcome: outcome.unwrap_or(Err(WorkError::Hung)),
            report: log.report(),
            calls: notes.calls,
            sends: notes.sends,
            wrong: notes.wrong,
            hung,
        }
    }

    async fn call(
        &self,
        work: &WorkPlan,
        call: u32,
        notes: &Mutex<Notes>,
    ) -> Result<(), WorkError> {
        let plans = work.sends.clone().map(|id| &self.ledger.plans[id]);
        if work.joined {
            try_join_all(plans.map(|plan| self.send(work, plan, notes))).await?;
        } else {
            for plan in plans {
                self.send(work, plan, notes).await?;
            }
        }
        if call <= work.undecoded {
            return Err(WorkError::Decoder);
        }
        Ok(())
    }

    /// Makes one send, and reads its answer.
    async fn send(
        &self,
        work: &WorkPlan,
        plan: &Plan,
        notes: &Mutex<Notes>,
    ) -> Result<(), WorkError> {
        let log = RetryLog::new();
        let client = self.clients.of(plan.road);
        let mut request = client
            .request(plan.method.clone(), url(plan))
            .header(SEND, plan.id)
            .with_extension(log.clone())
            .with_extension(self.finish(self.clients.policy(plan)));
        if !work.retries {
            request = request.with_extension(RetryRule {
                max_retries: 0,
                ..rule()
            });
        }
        if let Claim::Vouched(safe) = plan.claim {
            request = request.with_extension(ReplaySafe(safe));
        }
        match plan.patience {
            Patience::Request => request = request.timeout(SHORT),
            Patience::Total(total) => request = request.with_extension(TotalTimeout(total)),
            _ => {}
        }
        let sending = plan.content.put_into(request).send();
        let sent = match plan.patience {
            // The work drops it, and goes on.
            Patience::Leaves(after) => match tokio::time::timeout(after, sending).await {
                Ok(sent) => sent,
                Err(_) => return Ok(()),
            },
            _ => sending.await,
        };
        if let Some(report) = log.report() {
            notes.lock().unwrap().sends.push((plan.id, report));
        }
        let response = sent.map_err(WorkError::Send)?;
        // One of the good answers.
        let response = match response.status() {
            StatusCode::NOT_FOUND => response,
            _ => response.error_for_status().map_err(WorkError::Body)?,
        };
        let header = |name| response.headers().get(name)?.to_str().ok();
        let attempt = header(ATTEMPT).and_then(|attempt| attempt.parse().ok());
        let status = response.status();
        let body = response.bytes().await.map_err(WorkError::Body)?;
        if body != plan.body_of(status, attempt) {
            let what = format!("send {}: another body came back than was sent", plan.id);
            notes.lock().unwrap().wrong.push(what);
        }
        Ok(())
    }
}
