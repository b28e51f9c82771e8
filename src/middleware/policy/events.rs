//! What becomes of an event: it is written, and every observer is called with it.

use super::Settings;
use crate::middleware::observer::{RecoveredEvent, RetryEvent, StopEvent};
use crate::middleware::trace;

impl Settings {
    pub(in crate::middleware) fn announce_retry(&self, event: &RetryEvent<'_>) {
        trace::retry(event, self.log_levels.retry);
        for observer in &self.observers {
            observer.on_retry(event);
        }
    }

    pub(in crate::middleware) fn announce_recovery(&self, event: &RecoveredEvent<'_>) {
        trace::recovered(event, self.log_levels.retry);
        for observer in &self.observers {
            observer.on_recovered(event);
        }
    }

    pub(in crate::middleware) fn announce_stop(&self, event: &StopEvent<'_>) {
        trace::stop(event, self.log_levels.stop);
        for observer in &self.observers {
            observer.on_stop(event);
        }
    }
}
