//! What every work is to do, drawn from the seed.

use std::ops::Range;

use reqwest_retry_rules::{Failure, Methods};

use super::super::dice::Dice;

/// One work: its sends, and what it makes of the answers.
#[derive(Clone, Debug)]
pub struct WorkPlan {
    pub id: usize,
    /// The sends, by the number of their plans.
    pub sends: Range<usize>,
    /// Whether they are made at once; the first that fails then drops the others.
    pub joined: bool,
    /// Whether the client retries them by itself.
    pub retries: bool,
    /// How many calls end in a decoder that fails.
    pub undecoded: u32,
    pub judge: Judge,
}

/// What the work says of a decoder that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// Nothing.
    None,
    /// It is to be done again, if all that was sent is idempotent.
    Idempotent,
    /// It is to be done again, whatever was sent.
    Any,
    /// It lies: whatever failed, all may be repeated.
    Lies,
}

impl Judge {
    pub fn of_decoder(self) -> Failure<'static> {
        match self {
            Judge::None => Failure::Stop,
            Judge::Idempotent => Failure::Retry(Methods::Idempotent),
            Judge::Any | Judge::Lies => Failure::Retry(Methods::Any),
        }
    }
}

/// So many works, and how many sends they have together.
pub fn works(seed: u64, works: usize, lies: bool) -> (Vec<WorkPlan>, usize) {
    let mut sends = 0;
    let drawn = (0..works).map(|id| {
        let plan = WorkPlan::drawn(&mut Dice::new(!seed, id as u64), id, sends, lies);
        sends = plan.sends.end;
        plan
    });
    let drawn: Vec<_> = drawn.collect();
    (drawn, sends)
}

impl WorkPlan {
    fn drawn(dice: &mut Dice, id: usize, from: usize, lies: bool) -> WorkPlan {
        let count = dice.weighted(&[(30, 1), (30, 2), (25, 3), (15, 4)]);
        let judge = dice.weighted(&[(60, Judge::None), (30, Judge::Idempotent), (10, Judge::Any)]);
        WorkPlan {
            id,
            sends: from..from + count,
            joined: dice.percent(40),
            retries: dice.percent(60),
            undecoded: dice.weighted(&[(80, 0), (10, 1), (6, 2), (4, u32::MAX)]),
            judge: if lies { Judge::Lies } else { judge },
        }
    }

    /// Whether the work itself says that whatever it sent may be repeated.
    pub fn allows_all(&self) -> bool {
        match self.judge {
            Judge::Any => self.undecoded > 0,
            Judge::None | Judge::Idempotent | Judge::Lies => false,
        }
    }
}
