//! The attempts of a send while it lasts.

use super::{AttemptRecord, AttemptResult};

/// So many records from the start and from the end of a send are kept.
const KEPT_AT_EACH_END: usize = 500;

/// The records of a send. Of more than a thousand the first and the last five hundred are kept, so
/// that a send that goes on for days does not fill the memory. What the promise needs to know is
/// remembered of all. Nothing is allocated before the first.
#[derive(Debug, Default)]
pub(in crate::middleware) struct Records {
    /// Once it is full, the second half is a ring: see [`place`].
    kept: Vec<AttemptRecord>,
    count: u64,
    may_have_been_processed: bool,
    lost_an_answer: bool,
}

impl Records {
    /// Adds that of the attempt that ended last.
    pub(in crate::middleware) fn push(&mut self, record: AttemptRecord) {
        match record.result() {
            AttemptResult::Failure(failure) if failure.is_unsent() => {}
            AttemptResult::Failure(_) => {
                self.may_have_been_processed = true;
                self.lost_an_answer = true;
            }
            AttemptResult::Status(_) | AttemptResult::Error => self.may_have_been_processed = true,
        }
        match self.kept.get_mut(place(self.count)) {
            Some(oldest) => *oldest = record,
            None => self.kept.push(record),
        }
        self.count = self.count.saturating_add(1);
    }

    /// That of the attempt that ended last.
    pub(in crate::middleware) fn last(&self) -> Option<&AttemptRecord> {
        self.kept.get(place(self.count.checked_sub(1)?))
    }

    /// That of the attempt that ended last, to note the wait after it.
    pub(in crate::middleware) fn last_mut(&mut self) -> Option<&mut AttemptRecord> {
        self.kept.get_mut(place(self.count.checked_sub(1)?))
    }

    /// How many there were, the ones that are not kept included.
    pub(in crate::middleware) fn count(&self) -> u32 {
        u32::try_from(self.count).unwrap_or(u32::MAX)
    }

    pub(in crate::middleware) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if any attempt came to something that does not prove it unsent.
    pub(in crate::middleware) fn may_have_been_processed(&self) -> bool {
        self.may_have_been_processed
    }

    /// True if any attempt failed in a way that does not prove it unsent: it may have been
    /// processed, and its answer is lost.
    pub(in crate::middleware) fn lost_an_answer(&self) -> bool {
        self.lost_an_answer
    }

    /// Those that are kept, in turn.
    pub(super) fn into_kept(mut self) -> Vec<AttemptRecord> {
        if let Some(ring) = self.kept.get_mut(KEPT_AT_EACH_END..) {
            // The place that would be taken next holds the oldest, once the ring is full.
            let oldest = place(self.count) - KEPT_AT_EACH_END;
            if oldest < ring.len() {
                ring.rotate_left(oldest);
            }
        }
        self.kept
    }
}

/// Where the record of this number is, counted from 0: the first five hundred stay, and the later
/// ones take turns in the five hundred places after them.
fn place(number: u64) -> usize {
    const ENDS: u64 = KEPT_AT_EACH_END as u64;
    let place = if number < ENDS {
        number
    } else {
        ENDS + number % ENDS
    };
    // Below a thousand.
    place as usize
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;
    use crate::rule::TransportError;

    const UNSENT: AttemptResult = AttemptResult::Failure(TransportError::Connect);
    const LOST: AttemptResult = AttemptResult::Failure(TransportError::Closed);
    const ANSWERED: AttemptResult = AttemptResult::Status(StatusCode::SERVICE_UNAVAILABLE);

    /// A record whose seconds are its number.
    fn record(number: u64, result: AttemptResult) -> AttemptRecord {
        AttemptRecord::new(result, Duration::from_secs(number))
    }

    fn records(count: u64) -> Records {
        let mut records = Records::default();
        (1..=count).for_each(|number| records.push(record(number, UNSENT)));
        records
    }

    fn kept(count: u64) -> Vec<u64> {
        let kept = records(count).into_kept();
        kept.iter().map(|each| each.elapsed().as_secs()).collect()
    }

    #[test]
    fn up_to_a_thousand_are_all_kept() {
        for count in [0, 1, 2, 499, 500, 501, 750, 999, 1000] {
            assert_eq!(kept(count), (1..=count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn of_more_the_first_and_the_last_five_hundred_are_kept_in_turn() {
        for count in [1001, 1002, 1250, 1499, 1500, 1501, 2000, 12_345] {
            let expected: Vec<_> = (1..=500).chain(count - 499..=count).collect();
            assert_eq!(kept(count), expected, "of {count}");
        }
    }

    #[test]
    fn all_are_counted_and_the_last_one_is_at_hand() {
        for count in [1, 500, 501, 1000, 1001, 1500, 1501, 3456] {
            let mut records = records(count);
            assert_eq!(u64::from(records.count()), count);
            assert_eq!(records.last(), Some(&record(count, UNSENT)));
            records.last_mut().unwrap().asked = Some(Duration::ZERO);
            let kept = records.into_kept();
            assert_eq!(kept.last().unwrap().asked, Some(Duration::ZERO));
        }
    }

    #[test]
    fn none_is_no_record() {
        let mut none = Records::default();
        assert_eq!((none.count(), none.is_empty()), (0, true));
        assert_eq!(none.last(), None);
        assert_eq!(none.last_mut(), None);
        assert!(!none.may_have_been_processed() && !none.lost_an_answer());
        assert_eq!(none.into_kept().capacity(), 0);
        assert!(!records(1).is_empty());
    }

    #[test]
    fn a_count_that_is_too_large_stays_at_the_largest() {
        let mut many = records(1);
        many.count = u64::from(u32::MAX) - 1;
        many.push(record(1, UNSENT));
        assert_eq!(many.count(), u32::MAX);
        many.push(record(1, UNSENT));
        assert_eq!(many.count(), u32::MAX);
    }

    /// The promise does not depend on what is kept.
    #[test]
    fn what_may_have_been_processed_is_remembered_of_those_that_are_not_kept() {
        for (once, processed, lost) in [
            (UNSENT, false, false),
            (LOST, true, true),
            (ANSWERED, true, false),
            (AttemptResult::Error, true, false),
        ] {
            let mut records = records(700);
            records.push(record(701, once));
            (702..=5000).for_each(|number| records.push(record(number, UNSENT)));
            assert_eq!(records.may_have_been_processed(), processed, "{once:?}");
            assert_eq!(records.lost_an_answer(), lost, "{once:?}");
            let kept = records.into_kept();
            assert!(kept.iter().all(|each| each.result() == UNSENT), "{once:?}");
        }
    }
}
