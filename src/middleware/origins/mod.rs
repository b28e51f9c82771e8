//! What is remembered of each origin: how many retries it may still be sent, and until when it
//! asked for rest.

mod budget;
mod origin;
#[allow(dead_code)] // the loop does not ask it yet
mod pause;
mod table;
mod terms;
#[cfg(feature = "serde")]
mod whole_numbers;

pub use self::budget::RetryBudget;
pub use self::pause::PauseTerms;
pub use self::terms::{BudgetTerms, InvalidBudget};
