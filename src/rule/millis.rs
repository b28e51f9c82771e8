//! Whole milliseconds: what every duration is floored to on its way in and out.

use std::time::Duration;

pub(super) fn whole_ms(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1000)
        .saturating_add(u64::from(duration.subsec_millis()))
}
