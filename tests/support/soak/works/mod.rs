//! A soak of works: each makes one to four sends, one after another or at once, reads what comes and
//! sometimes cannot decode it.
//!
//! The sends and their faults are those of the soak of sends. What must hold when all are over is in
//! `judge`.

mod doing;
mod judge;
mod plan;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest_retry_rules::{RetryBudget, RetryEvent, RetryObserver};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::retry::budget::Budget;

use self::doing::Doing;
use self::plan::works;
use super::gone;
use super::ledger::Ledger;
use super::send::Clients;
use super::world::World;

/// What a soak of works is told.
#[derive(Clone, Copy, Debug)]
pub struct SoakOfWorks {
    pub seed: u64,
    pub works: usize,
    /// How many works are on their way at once.
    pub at_once: usize,
    /// Whether the works say of what they send that it may be repeated, which is a lie.
    pub lies: bool,
}

/// What it found.
#[derive(Default)]
pub struct TallyOfWorks {
    pub wrong: Vec<String>,
    pub done: usize,
    pub calls: usize,
    pub sends: usize,
    /// How many works had to succeed.
    pub must: usize,
    /// Why works stopped, and how often.
    pub stops: BTreeMap<&'static str, usize>,
}

/// What all works share: a budget that counts, and an observer that does.
#[derive(Default)]
struct Counts {
    withdrawn: AtomicUsize,
    told: AtomicUsize,
}

/// A budget that lets everything through.
struct Counting(Arc<Counts>);

impl Budget for Counting {
    fn deposit(&self) {}

    fn withdraw(&self) -> bool {
        self.0.withdrawn.fetch_add(1, Ordering::SeqCst);
        true
    }
}

impl RetryObserver for Counts {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        self.told.fetch_add(1, Ordering::SeqCst);
    }
}

impl SoakOfWorks {
    pub fn run(self) -> TallyOfWorks {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(self.all())
    }

    async fn all(self) -> TallyOfWorks {
        let (plans, sends) = works(self.seed, self.works, self.lies);
        let ledger = Arc::new(Ledger::of_works(self.seed, sends));
        let world = World::start(&ledger).await;
        let counts = Arc::new(Counts::default());
        let of_budget = Arc::clone(&counts);
        let budget = RetryBudget::from_maker(move || Counting(Arc::clone(&of_budget)));
        let clients = Clients::new(&ledger, &world, reqwest_retry_rules::client_builder);
        let doing = Arc::new(Doing::new(clients, &ledger, budget, &counts));
        let turns = Arc::new(Semaphore::new(self.at_once));
        let mut working = JoinSet::new();
        for plan in plans {
            let turn = Arc::clone(&turns).acquire_owned().await;
            let doing = Arc::clone(&doing);
            working.spawn(async move {
                let went = doing.work(&plan).await;
                drop(turn);
                (plan, went)
            });
        }
        let mut all = Vec::with_capacity(self.works);
        let mut tally = TallyOfWorks::default();
        while let Some(joined) = working.join_next().await {
            match joined {
                Ok(went) => all.push(went),
                Err(error) => tally.wrong.push(format!("a work panicked: {error}")),
            }
        }
        drop(doing);
        if !gone(&ledger).await {
            let what = format!("{} connections are still open", ledger.open());
            tally.wrong.push(what);
        }
        world.end().await;
        tally.wrong.extend(ledger.odd());
        for (plan, went) in &all {
            tally.judge(&ledger, plan, went);
        }
        let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        let (withdrawn, told) = (count(&counts.withdrawn), count(&counts.told));
        if withdrawn != told {
            let what = format!("{withdrawn} retries were withdrawn, and {told} told of");
            tally.wrong.push(what);
        }
        tally
    }
}

impl fmt::Display for TallyOfWorks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, calls, sends, must) = (self.done, self.calls, self.sends, self.must);
        writeln!(
            f,
            "  {done} works done, {must} of which had to be; {calls} calls, {sends} attempts"
        )?;
        for (reason, times) in &self.stops {
            writeln!(f, "  {times:>7} × {reason}")?;
        }
        Ok(())
    }
}
