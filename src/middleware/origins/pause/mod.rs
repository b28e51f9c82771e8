//! Until when an origin asked for rest.

mod terms;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::origin::Origin;
use super::table::OriginTable;
use crate::middleware::clock;

pub use self::terms::PauseTerms;

/// The pauses of all origins. Clones share them.
#[derive(Clone)]
pub(in crate::middleware) struct OriginPauses {
    shared: Arc<Shared>,
}

struct Shared {
    terms: PauseTerms,
    origins: OriginTable<Mutex<Option<Pause>>>,
}

/// A pause. It may be over: even then it counts when it was set.
#[derive(Clone, Copy)]
struct Pause {
    set: Instant,
    until: Instant,
    /// Its length when it was set.
    wait: Duration,
}

impl OriginPauses {
    /// No pause yet.
    pub(in crate::middleware) fn new(terms: PauseTerms) -> Self {
        let terms = PauseTerms {
            max: Duration::from_millis(whole_millis(terms.max)),
            ..terms
        };
        Self {
            shared: Arc::new(Shared {
                terms,
                origins: OriginTable::new(terms.max.saturating_mul(2), clock::now()),
            }),
        }
    }

    pub(in crate::middleware) fn terms(&self) -> PauseTerms {
        self.shared.terms
    }

    /// Notes that `origin` asked for `wait`, when it answered an attempt that was begun at `begun`.
    ///
    /// The first to ask sets the pause, and whoever was on the way by then learns nothing new:
    /// of fifty requests that are refused one after the other, each would lengthen it a little.
    /// An answer to an attempt that was begun since may lengthen it; nothing shortens it.
    pub(in crate::middleware) fn ask(
        &self,
        origin: &Origin<'_>,
        wait: Duration,
        begun: Instant,
        now: Instant,
    ) {
        let wait = wait.min(self.shared.terms.max);
        if wait.is_zero() {
            return;
        }
        let entry = self.shared.origins.used(origin, now);
        let mut pause = entry.value.lock().unwrap_or_else(PoisonError::into_inner);
        let until = clock::later(now, wait);
        let is_news = |known: Pause| begun > known.set && until > known.until;
        if pause.is_none_or(is_news) {
            *pause = Some(Pause {
                set: now,
                until,
                wait,
            });
        }
    }

    /// How long a send to `origin` has to wait, in whole milliseconds; `None` if it may go.
    ///
    /// `random` is asked for a jitter sample in [0, 1) if there is a pause. A send that has waited
    /// asks again, since the pause may have become longer.
    pub(in crate::middleware) fn left(
        &self,
        origin: &Origin<'_>,
        random: impl FnOnce() -> f64,
        now: Instant,
    ) -> Option<Duration> {
        self.left_after(origin, Duration::ZERO, random, now)
    }

    /// Like [`left`](Self::left), for a retry that was itself asked for the wait `own`.
    ///
    /// What chance adds is added to that too: a crowd that was asked for the same wait at the same
    /// moment, long after the pause was set, would come back together otherwise.
    pub(in crate::middleware) fn left_after(
        &self,
        origin: &Origin<'_>,
        own: Duration,
        random: impl FnOnce() -> f64,
        now: Instant,
    ) -> Option<Duration> {
        let copy =
            |pause: &Mutex<Option<Pause>>| *pause.lock().unwrap_or_else(PoisonError::into_inner);
        // The caller's `random` runs when the locks are free again.
        let pause = self.shared.origins.peek(origin, copy).flatten()?;
        let left = pause.until.checked_duration_since(now)?;
        if left.is_zero() {
            return None;
        }
        let PauseTerms { max, spread } = self.shared.terms;
        // What is no number is 0, and what is too large is the most.
        let part = ((random() * f64::from(spread)) as u32).min(spread);
        let own = own.min(max);
        let extra = pause.wait.max(own).saturating_mul(part) / 1000;
        Some(ceil_millis(left.max(own).saturating_add(extra)))
    }

    /// How many origins are remembered: at most 1024. One is forgotten after twice the longest
    /// pause in which it did not ask for one.
    fn origins(&self) -> usize {
        self.shared.origins.len()
    }
}

/// Names no host.
impl fmt::Debug for OriginPauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginPauses")
            .field("max", &self.shared.terms.max)
            .field("spread", &self.shared.terms.spread)
            .field("origins", &self.origins())
            .finish()
    }
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Rounded up: the rule cuts off what is less than a millisecond, and the wait must not end early.
fn ceil_millis(duration: Duration) -> Duration {
    let rest = Duration::from_nanos(u64::from(duration.subsec_nanos() % 1_000_000));
    if rest.is_zero() {
        return duration;
    }
    duration
        .saturating_sub(rest)
        .saturating_add(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn origin(host: &'static str) -> Origin<'static> {
        Origin(host.into())
    }

    /// Pauses of at most ten seconds, and milliseconds as moments.
    struct World {
        pauses: OriginPauses,
        start: Instant,
    }

    impl World {
        fn new(spread: u32) -> Self {
            let max = ms(10_000);
            World {
                pauses: OriginPauses::new(PauseTerms { max, spread }),
                start: clock::now(),
            }
        }

        fn at(&self, now: u64) -> Instant {
            self.start + ms(now)
        }

        /// Origin `a` asks at `now`, in its answer to an attempt that was begun at `begun`.
        fn ask(&self, wait: u64, begun: u64, now: u64) {
            let (begun, now) = (self.at(begun), self.at(now));
            self.pauses.ask(&origin("a"), ms(wait), begun, now);
        }

        #[track_caller]
        fn left(&self, now: u64, expected: Option<u64>) {
            let left = self.pauses.left(&origin("a"), || 0.0, self.at(now));
            assert_eq!(left, expected.map(ms), "at {now} ms");
        }
    }

    #[test]
    fn nothing_waits_unless_its_origin_asked() {
        let world = World::new(0);
        world.left(0, None);
        world.ask(2000, 0, 100);
        world.left(100, Some(2000));
        let other = world.pauses.left(&origin("b"), || 0.0, world.at(100));
        assert_eq!(other, None);
        assert_eq!(world.pauses.origins(), 1);
    }

    #[test]
    fn it_ends_when_the_origin_said() {
        let world = World::new(0);
        world.ask(2000, 0, 100);
        world.left(1100, Some(1000));
        world.left(2099, Some(1));
        world.left(2100, None);
        world.left(9000, None);
    }

    #[test]
    fn it_is_no_longer_than_the_most() {
        let world = World::new(0);
        world.ask(u64::MAX, 0, 1);
        world.left(1, Some(10_000));
    }

    #[test]
    fn a_wait_of_nothing_is_no_pause_and_remembers_nothing() {
        let world = World::new(0);
        world.ask(0, 0, 1);
        world.left(1, None);
        assert_eq!(world.pauses.origins(), 0);
        let none = OriginPauses::new(PauseTerms {
            max: ms(0),
            spread: 1000,
        });
        none.ask(&origin("a"), ms(5), world.at(0), world.at(1));
        assert_eq!(none.left(&origin("a"), || 0.5, world.at(1)), None);
    }

    #[test]
    fn what_was_on_the_way_when_it_was_set_does_not_lengthen_it() {
        let world = World::new(0);
        world.ask(2000, 0, 100);
        for begun in [0, 50, 100] {
            world.ask(2000, begun, 600);
            world.ask(9000, begun, 700);
        }
        world.left(700, Some(1400));
        world.ask(2000, 101, 700);
        world.left(700, Some(2000));
    }

    #[test]
    fn what_was_on_the_way_when_it_was_set_does_not_set_it_again() {
        let world = World::new(0);
        world.ask(2000, 0, 100);
        world.ask(2000, 99, 2200);
        world.left(2200, None);
        world.ask(2000, 2150, 2200);
        world.left(2200, Some(2000));
    }

    #[test]
    fn nothing_shortens_it() {
        let world = World::new(0);
        world.ask(5000, 0, 100);
        world.ask(1000, 200, 300);
        world.left(300, Some(4800));
        // Nor does that make older news of what was begun before it.
        world.ask(6000, 250, 400);
        world.left(400, Some(6000));
    }

    #[test]
    fn each_waits_for_a_part_of_what_was_asked_besides() {
        for (spread, random, extra) in [
            (500, 0.0, 0),
            (500, 0.5, 500),
            (500, 0.999_999, 998),
            (1000, 0.5, 1000),
            (3000, 0.999_999, 5998),
            (500, 1.0, 1000),
            (500, 7.0, 1000),
            (500, f64::INFINITY, 1000),
            (500, -1.0, 0),
            (500, f64::NAN, 0),
        ] {
            let world = World::new(spread);
            world.ask(2000, 0, 1);
            let left = world.pauses.left(&origin("a"), || random, world.at(1001));
            assert_eq!(left, Some(ms(1000 + extra)), "{spread}, {random}");
        }
    }

    #[test]
    fn a_retry_that_was_asked_for_a_wait_of_its_own_adds_to_that() {
        let world = World::new(500);
        world.ask(2000, 0, 100);
        for (own, now, expected) in [
            // As long as the pause, and asked for later.
            (2000, 1100, Some(2000 + 500)),
            // Shorter than what is left.
            (200, 1100, Some(1000 + 500)),
            // Longer than the pause, and than the most.
            (4000, 1100, Some(4000 + 1000)),
            (60_000, 1100, Some(10_000 + 2500)),
            // No pause: the rule's own wait is all there is.
            (2000, 2100, None),
        ] {
            let (own, now) = (ms(own), world.at(now));
            let left = world.pauses.left_after(&origin("a"), own, || 0.5, now);
            assert_eq!(left, expected.map(ms), "{own:?}");
        }
    }

    #[test]
    fn chance_is_asked_only_in_a_pause_and_may_ask_back() {
        let world = World::new(500);
        let never = || panic!("there is no pause");
        assert_eq!(world.pauses.left(&origin("a"), never, world.at(0)), None);
        world.ask(2000, 0, 1);
        assert_eq!(world.pauses.left(&origin("a"), never, world.at(2001)), None);
        let curious = || {
            world.ask(2000, 5, 10);
            0.5
        };
        let left = world.pauses.left(&origin("a"), curious, world.at(1));
        assert_eq!(left, Some(ms(2500)));
    }

    #[test]
    fn a_part_of_a_millisecond_counts_as_one() {
        let world = World::new(0);
        world.ask(2000, 0, 0);
        let now = world.at(0) + Duration::from_micros(500);
        assert_eq!(world.pauses.left(&origin("a"), || 0.0, now), Some(ms(2000)));
        let almost = world.at(2000) - Duration::from_nanos(1);
        assert_eq!(world.pauses.left(&origin("a"), || 0.0, almost), Some(ms(1)));
    }

    #[test]
    fn clones_share_it() {
        let world = World::new(0);
        let clone = world.pauses.clone();
        world.ask(2000, 0, 1);
        assert_eq!(
            clone.left(&origin("a"), || 0.0, world.at(1)),
            Some(ms(2000))
        );
    }

    #[test]
    fn origins_are_bounded_and_forgotten() {
        let world = World::new(0);
        let ask = |n: usize, now| {
            let origin = Origin(format!("https://tenant-{n}.test").into());
            let (begun, now) = (world.at(now), world.at(now + 1));
            world.pauses.ask(&origin, ms(2000), begun, now);
        };
        for n in 0..3000 {
            ask(n, 0);
            assert!(world.pauses.origins() <= 1024);
        }
        ask(0, 30_000);
        assert_eq!(world.pauses.origins(), 1);
    }

    #[test]
    fn the_longest_that_can_be_written_does_no_harm() {
        let max = PauseTerms {
            max: Duration::MAX,
            spread: u32::MAX,
        };
        let (pauses, start) = (OriginPauses::new(max), clock::now());
        pauses.ask(&origin("a"), Duration::MAX, start, start);
        let left = pauses.left(&origin("a"), || 0.999, start);
        assert!(left > Some(Duration::from_secs(1 << 29)));
    }

    #[test]
    fn its_debug_text_names_no_host() {
        let world = World::new(500);
        world.ask(2000, 0, 1);
        assert_eq!(
            format!("{:?}", world.pauses),
            "OriginPauses { max: 10s, spread: 500, origins: 1 }",
        );
    }
}
