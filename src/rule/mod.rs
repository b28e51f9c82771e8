mod outcome;
pub use outcome::{AttemptOutcome, TransportError};
