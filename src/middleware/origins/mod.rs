//! What is remembered of each origin: how many retries it may still be sent, and until when it
//! asked for rest.

mod budget;
#[cfg(feature = "serde")]
mod in_file;
mod origin;
#[allow(dead_code)] // the loop does not ask it yet
mod pause;
mod table;
mod terms;

pub use self::budget::RetryBudget;
pub use self::pause::PauseTerms;
pub use self::terms::{BudgetTerms, InvalidBudget};
