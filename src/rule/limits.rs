use std::time::Duration;

use super::millis::whole_ms;

/// How long a send may go on retrying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// After this time no retry is made, but for `min_retries`.
    pub soft_elapsed: Option<Duration>,
    /// Retries that the soft limit leaves alone.
    pub min_retries: u32,
    /// No retry starts at or after this time.
    pub hard_elapsed: Option<Duration>,
}

impl Limits {
    /// Whether the hard limit is reached.
    pub(crate) fn hard_reached(&self, elapsed: Duration) -> bool {
        self.hard_elapsed
            .is_some_and(|hard| whole_ms(elapsed) >= whole_ms(hard))
    }
}
