//! Several runs side by side: a round is one turn of each, and each goes first as often as the
//! others. A machine that is slow for a while is slow for all of them, so ratios hold.

use std::process::{Command, Stdio};

/// The argument before the name of what a process of its own is to measure.
pub const ALONE: &str = "--alone";
const PROCESSES: usize = 10;

/// Takes its turn, and says how many nanoseconds one of what it did took.
pub type Turn<'a> = Box<dyn FnMut() -> f64 + 'a>;
/// With whose turn it is.
pub type Runs<'a> = Vec<(&'static str, Turn<'a>)>;

/// How long each took in each round, in nanoseconds.
pub struct Rounds(Vec<(String, Vec<f64>)>);

impl Rounds {
    /// A quarter of the rounds after `cargo bench -- --quick`.
    pub fn run(rounds: usize, mut runs: Runs<'_>) -> Self {
        let quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if quick { rounds.div_ceil(4) } else { rounds };
        let mut taken: Vec<_> = runs
            .iter()
            .map(|(who, _)| ((*who).to_owned(), Vec::new()))
            .collect();
        // The first turn fills the caches, and is not counted.
        for (_, turn) in &mut runs {
            turn();
        }
        for round in 0..rounds {
            for turn in 0..runs.len() {
                let at = (round + turn) % runs.len();
                taken[at].1.push(runs[at].1());
            }
        }
        Self(taken)
    }

    /// What `ALONE` and the name of a measurement make several processes print, put together.
    ///
    /// Where the memory of a process lies makes one client faster than another by some hundredths,
    /// for as long as the process lives. So the rounds of one process do not say who is faster.
    pub fn of_processes(name: &str) -> Self {
        let mut all = Vec::new();
        for _ in 0..PROCESSES {
            let this = std::env::current_exe().expect("the path of this program");
            let printed = Command::new(this)
                .args(
                    std::env::args()
                        .skip(1)
                        .filter(|argument| argument == "--quick"),
                )
                .args([ALONE, name])
                .stderr(Stdio::inherit())
                .output()
                .expect("a process");
            assert!(printed.status.success(), "{name}: {}", printed.status);
            let these: Vec<(String, Vec<f64>)> =
                serde_json::from_slice(&printed.stdout).expect("what `print` printed");
            for (at, (who, times)) in these.into_iter().enumerate() {
                if all.len() == at {
                    all.push((who, Vec::new()));
                }
                all[at].1.extend(times);
            }
        }
        Self(all)
    }

    /// Prints all that was measured, for the process that asked for it.
    pub fn print(&self) {
        let text = serde_json::to_string(&self.0).expect("names and numbers");
        println!("{text}");
    }

    /// The median of its times.
    pub fn time(&self, who: &str) -> Option<f64> {
        median(self.of(who)?.to_vec())
    }

    /// The median of what it took in a round, in parts of what the other took in the same round.
    pub fn ratio(&self, who: &str, other: &str) -> Option<f64> {
        let pairs = self.of(who)?.iter().zip(self.of(other)?);
        median(pairs.map(|(own, other)| own / other).collect())
    }

    fn of(&self, who: &str) -> Option<&[f64]> {
        let found = self.0.iter().find(|(name, _)| name == who)?;
        Some(&found.1)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
