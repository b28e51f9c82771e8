//! What is remembered of each origin: how many retries it may still be sent, and until when it
//! asked for rest.

mod budget;
#[cfg(feature = "serde")]
mod in_file;
mod origin;
mod pause;
mod table;

pub use self::budget::{BudgetTerms, InvalidBudget, RetryBudget};
pub(super) use self::pause::OriginPauses;
pub use self::pause::PauseTerms;
