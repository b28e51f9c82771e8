//! A fault soak: thousands of sends, each of which meets faults of its own, and what must hold when
//! all are over.
//!
//! Everything that a send meets is drawn from a seed. The servers note what reached them and what
//! they did; every report is held against that, and against the rule.
#![allow(dead_code, clippy::disallowed_methods)]

pub mod body;
pub mod dice;
mod draw;
pub mod fault;
mod h1;
mod h2;
pub mod judge;
pub mod ledger;
pub mod plan;
mod rule;
pub mod send;
pub mod verdict;
pub mod works;
pub mod world;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use judge::judge;
use ledger::Ledger;
use send::{Clients, send};
use verdict::Verdict;
use world::World;

/// Counts the bytes that are allocated.
#[global_allocator]
pub static MEMORY: PeakAlloc = PeakAlloc;

/// What a soak is told.
#[derive(Clone, Copy, Debug)]
pub struct Soak {
    pub seed: u64,
    pub sends: usize,
    /// How many sends are on their way at once.
    pub at_once: usize,
    /// What the clients are made from.
    pub client: fn() -> reqwest::ClientBuilder,
}

/// What it found.
pub struct Tally {
    pub verdict: Verdict,
    pub soak: Soak,
    pub connections: usize,
    pub took: Duration,
    /// The bytes allocated after it, less those before.
    pub grown: isize,
    /// The most bytes allocated at once, less those before.
    pub peak: usize,
}

/// How many bytes may be left over, whatever the number of sends: thread-locals, and what the
/// libraries below keep for good.
const LEFT_OVER: isize = 64 * 1024;

impl Soak {
    /// One of a few seconds, with a seed by chance.
    pub fn by_chance() -> Soak {
        Soak {
            seed: RandomState::new().hash_one("soak") >> 32,
            sends: 2000,
            at_once: 200,
            client: reqwest_retry_rules::client_builder,
        }
    }

    /// Runs it, after a short one that warms up what stays allocated.
    pub fn run(self) -> Tally {
        let warm_up = Soak {
            seed: !self.seed,
            sends: (self.sends / 10).clamp(1, 100),
            ..self
        };
        let mut wrong = warm_up.round().verdict.wrong;
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let mut tally = self.round();
        let kept: usize = tally.verdict.wrong.iter().map(String::capacity).sum();
        tally.grown = MEMORY.current_usage() as isize - before as isize - kept as isize;
        tally.peak = MEMORY.peak_usage().saturating_sub(before);
        if tally.grown > LEFT_OVER {
            let what = format!("{} bytes are still allocated", tally.grown);
            tally.verdict.wrong.push(what);
        }
        wrong.append(&mut tally.verdict.wrong);
        tally.verdict.wrong = wrong;
        tally
    }

    fn round(self) -> Tally {
        let begun = Instant::now();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (verdict, connections) = runtime.block_on(self.all());
        drop(runtime);
        Tally {
            verdict,
            soak: self,
            connections,
            took: begun.elapsed(),
            grown: 0,
            peak: 0,
        }
    }

    async fn all(self) -> (Verdict, usize) {
        let ledger = Arc::new(Ledger::new(self.seed, self.sends));
        let world = World::start(&ledger).await;
        let clients = Arc::new(Clients::new(&ledger, &world, self.client));
        let turns = Arc::new(Semaphore::new(self.at_once));
        let mut sending = JoinSet::new();
        for id in 0..self.sends {
            let turn = Arc::clone(&turns).acquire_owned().await;
            let (ledger, clients) = (Arc::clone(&ledger), Arc::clone(&clients));
            sending.spawn(async move {
                let sent = send(&clients, &ledger, &ledger.plans[id]).await;
                drop(turn);
                (id, sent)
            });
        }
        let mut all = Vec::with_capacity(self.sends);
        let mut verdict = Verdict::default();
        while let Some(joined) = sending.join_next().await {
            match joined {
                Ok(sent) => all.push(sent),
                Err(error) => verdict.wrong.push(format!("a send panicked: {error}")),
            }
        }
        drop(clients);
        if !gone(&ledger).await {
            let what = format!("{} connections are still open", ledger.open());
            verdict.wrong.push(what);
        }
        world.end().await;
        verdict.wrong.extend(ledger.odd());
        for (id, sent) in &all {
            verdict.add(judge(&ledger, &ledger.plans[*id], sent));
        }
        (verdict, ledger.opened())
    }
}

/// Waits until the servers hold no connection any more.
async fn gone(ledger: &Ledger) -> bool {
    let begun = Instant::now();
    while ledger.open() > 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (soak, verdict) = (&self.soak, &self.verdict);
        writeln!(
            f,
            "{} sends, {} at once, with seed {}, in {:.1?}",
            soak.sends, soak.at_once, soak.seed, self.took
        )?;
        writeln!(
            f,
            "  {} attempts over {} connections; {} sends answered, {} requests processed",
            verdict.attempts, self.connections, verdict.answered, verdict.processed
        )?;
        writeln!(
            f,
            "  {} attempts struck by others' faults, {} by load; {} bytes left over, {} at the most",
            verdict.struck, verdict.overloaded, self.grown, self.peak
        )?;
        for (kind, times) in &verdict.met {
            writeln!(f, "  {times:>7} × {kind}")?;
        }
        Ok(())
    }
}
