//! What is found out, and how it is said.

use std::collections::BTreeMap;
use std::fmt;

use super::ledger::Deed;
use super::plan::Plan;
use super::send::Sent;

/// What is found out about one send, or about all.
#[derive(Default)]
pub struct Verdict {
    /// What must not be.
    pub wrong: Vec<String>,
    /// How often each kind of fault was met.
    pub met: BTreeMap<&'static str, usize>,
    pub attempts: usize,
    /// How many sends were answered.
    pub answered: usize,
    /// How many requests were processed.
    pub processed: usize,
    /// How many attempts took longer than they may, for no fault of the plan's.
    pub overloaded: usize,
    /// How many attempts were struck by what another send met.
    pub struck: usize,
}

impl Verdict {
    pub fn add(&mut self, other: Verdict) {
        self.wrong.extend(other.wrong);
        for (kind, times) in other.met {
            *self.met.entry(kind).or_default() += times;
        }
        self.attempts += other.attempts;
        self.answered += other.answered;
        self.processed += other.processed;
        self.overloaded += other.overloaded;
        self.struck += other.struck;
    }
}

/// All that is known of a send, for the message.
pub struct Whole<'a> {
    pub plan: &'a Plan,
    pub sent: &'a Sent,
    pub deeds: Vec<Deed>,
}

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  plan: {:?}", self.plan)?;
        for deed in &self.deeds {
            writeln!(f, "  server: {deed:?}")?;
        }
        if let Some(report) = &self.sent.report {
            for record in report.records() {
                writeln!(f, "  report: {record:?}")?;
            }
            writeln!(
                f,
                "  report: stop {:?} after {:?}",
                report.stop_reason(),
                report.elapsed()
            )?;
        }
        write!(f, "  outcome: {:?}", self.sent.outcome)
    }
}
