//! How many retries an origin is given.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tower::retry::budget::{Budget, TpsBudget};

use self::origins::{Key, Origins, Slot, WHOLE};

mod origins;

/// Limits the retries of each origin to a share of its successful traffic plus a small reserve.
///
/// # Why a budget
///
/// A limit on the retries of one request says nothing about the load of all of them. When a
/// service fails for everyone, three retries each turn its traffic into four times as much at the
/// moment it can bear the least, and a service that could have recovered does not. A budget bounds
/// the sum: while most requests succeed there is a retry for each that fails, and in an outage
/// what is sent stays close to what would have been sent without retries.
///
/// It holds back retries only, never a first attempt: a send whose retry the budget refuses ends
/// with what it has, and the reason is `Throttled`.
///
/// # How it counts
///
/// Each origin (scheme, host and port, the scheme's own port where the URL names none) has a
/// budget to itself, so a sick one does not use up what a healthy one may need. A request that
/// ends well, and could have been retried, pays in; a retry takes out what `1000 / ratio` such
/// requests paid. What was paid in is lost after `window`, unless a retry took it.
///
/// The reserve is what an origin may spend without having earned it: `reserve_per_second` for
/// every whole second of `window`, to be had all at once. It comes back window by window, not
/// second by second: each retry paid from it is given back when it is one `window` old, and up to
/// a tenth of a `window` later.
///
/// A caller who sends one request after another is hardly limited: it would have to make ten
/// retries a second to use up the default reserve. The budget is there for crowds.
///
/// # Defaults
///
/// A ratio of 200 (one retry for five answers) and a reserve of 10 a second, over 10 seconds: an
/// origin that was never seen may be sent 100 retries at once.
///
/// # What is remembered
///
/// Clones share one memory, and so do the policies and clients that hold them. An origin that was
/// left alone for two windows is forgotten, which loses nothing, as all that it paid and took is
/// older than the window by then. No more than 1024 origins are remembered; where more than that
/// are in use, those that were left alone the longest are forgotten early, and start over with a
/// full reserve when they are seen again.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::RetryBudget;
///
/// // One retry for ten answers, and two a second whatever is answered, over 30 seconds.
/// let budget = RetryBudget::new(Duration::from_secs(30), 2, 100)?;
/// assert_eq!(budget.origins(), 0);
/// # Ok::<(), reqwest_retry_rules::InvalidBudget>(())
/// ```
#[derive(Clone)]
pub struct RetryBudget {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` where the caller makes the budgets.
    terms: Option<Terms>,
    /// How much of a deposit one answer is worth, in thousandths: at most [`WHOLE`].
    ///
    /// Parts are added up here. The budgets see whole deposits only, which spares most answers
    /// the clock and the lock of tower's budget, and keeps a ratio such as 300 exact where tower
    /// would round it to one retry for three answers.
    share: u32,
    origins: Origins,
}

/// What [`RetryBudget::new`] was given.
#[derive(Clone, Copy)]
struct Terms {
    window: Duration,
    reserve_per_second: u32,
    ratio: u32,
}

impl RetryBudget {
    /// A budget of `ratio` thousandths of an origin's answers, plus `reserve_per_second`.
    ///
    /// - `window` is how long an answer counts: 1 to 60 seconds, floored to milliseconds.
    /// - `reserve_per_second` is how many retries an origin is given for every whole second of
    ///   `window`, whatever it answers: less than `i32::MAX`, and zero for none.
    /// - `ratio` is how many retries a thousand answers earn: 0 to 1 000 000, where 200 is one for
    ///   five answers, 1000 one for each, and 0 leaves the reserve alone. Up to 1000 it is exact.
    ///   Above, tower rounds what a retry costs down to a whole thousandth of an answer: 2000 is
    ///   two retries for each, 3000 a little more than three, 600 000 a thousand.
    ///
    /// # Errors
    ///
    /// [`InvalidBudget`] names each of the three that is out of its range.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::RetryBudget;
    ///
    /// assert!(RetryBudget::new(Duration::from_secs(60), 0, 1000).is_ok());
    ///
    /// let error = RetryBudget::new(Duration::ZERO, 10, 200).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "invalid retry budget: window is 0ns, expected 1s to 60s",
    /// );
    /// ```
    pub fn new(
        window: Duration,
        reserve_per_second: u32,
        ratio: u32,
    ) -> Result<RetryBudget, InvalidBudget> {
        let window = Duration::from_millis(u64::try_from(window.as_millis()).unwrap_or(u64::MAX));
        let terms = Terms {
            window,
            reserve_per_second,
            ratio,
        };
        terms.check()?;
        Ok(RetryBudget::on_terms(terms))
    }

    /// Budgets of the caller's making: `make` is called once for each origin.
    ///
    /// Every answer that counts is one [`deposit`](Budget::deposit), every retry asks
    /// [`withdraw`](Budget::withdraw) once. An origin that was left alone for 20 seconds is
    /// forgotten and its budget dropped, so a budget with a longer memory keeps it outside, behind
    /// an [`Arc`] for instance.
    ///
    /// `make` and the budgets are called while nothing is locked: they may be slow and they may
    /// panic, which ends the send that asked and leaves all else as it was. A `make` that panicked
    /// is called again by whoever asks next.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::RetryBudget;
    /// use tower::retry::budget::Budget;
    ///
    /// /// Refuses every retry.
    /// struct Nothing;
    ///
    /// impl Budget for Nothing {
    ///     fn deposit(&self) {}
    ///     fn withdraw(&self) -> bool {
    ///         false
    ///     }
    /// }
    ///
    /// let budget = RetryBudget::from_maker(|| Nothing);
    /// assert_eq!(budget.origins(), 0);
    /// ```
    pub fn from_maker<B>(make: impl Fn() -> B + Send + Sync + 'static) -> RetryBudget
    where
        B: Budget + Send + Sync + 'static,
    {
        RetryBudget {
            shared: Arc::new(Shared {
                terms: None,
                share: WHOLE,
                origins: Origins::new(Terms::DEFAULT.window, make),
            }),
        }
    }

    /// How many origins are remembered: at most 1024.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::RetryBudget;
    ///
    /// assert_eq!(RetryBudget::default().origins(), 0);
    /// ```
    pub fn origins(&self) -> usize {
        self.shared.origins.len()
    }

    /// Takes a retry out of the budget of `url`'s origin; `false` where it has none left.
    pub(crate) fn withdraw(&self, url: &Url) -> bool {
        let origins = &self.shared.origins;
        let key = Key::of(url);
        let slot = origins.awake(&key, origins.known(&key, Arc::clone));
        origins.budget(&slot).withdraw()
    }

    /// Counts an answer of `url`'s origin.
    pub(crate) fn deposit(&self, url: &Url) {
        let Shared { share, origins, .. } = &*self.shared;
        if *share == 0 {
            return;
        }
        let key = Key::of(url);
        let earned = |slot: &Arc<Slot>| slot.earns(*share).then(|| Arc::clone(slot));
        let earned = match origins.known(&key, earned) {
            Some(None) => None,
            Some(known) => Some(origins.awake(&key, known)),
            None => earned(&origins.awake(&key, None)),
        };
        if let Some(slot) = earned {
            origins.budget(&slot).deposit();
        }
    }

    fn on_terms(terms: Terms) -> RetryBudget {
        RetryBudget {
            shared: Arc::new(Shared {
                terms: Some(terms),
                share: terms.ratio.min(WHOLE),
                origins: Origins::new(terms.window, move || terms.budget()),
            }),
        }
    }
}

/// As [the type](RetryBudget#defaults) says: 200 thousandths and 10 a second, over 10 seconds.
impl Default for RetryBudget {
    fn default() -> Self {
        RetryBudget::on_terms(Terms::DEFAULT)
    }
}

impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RetryBudget");
        if let Some(terms) = &self.shared.terms {
            debug
                .field("window", &terms.window)
                .field("reserve_per_second", &terms.reserve_per_second)
                .field("ratio", &terms.ratio);
        }
        debug.field("origins", &self.origins()).finish()
    }
}

impl Terms {
    const DEFAULT: Terms = Terms {
        window: Duration::from_secs(10),
        reserve_per_second: 10,
        ratio: 200,
    };

    /// Refuses what `TpsBudget::new` would panic on.
    fn check(self) -> Result<(), InvalidBudget> {
        let windows = Duration::from_secs(1)..=Duration::from_secs(60);
        let faults = InvalidBudget {
            window: (!windows.contains(&self.window)).then_some(self.window),
            reserve_per_second: (self.reserve_per_second >= i32::MAX.unsigned_abs())
                .then_some(self.reserve_per_second),
            ratio: (self.ratio > 1000 * WHOLE).then_some(self.ratio),
        };
        if faults == InvalidBudget::default() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    /// The budget of one origin, which is paid in whole deposits.
    fn budget(self) -> TpsBudget {
        // Below 1000 the parts are added up before they come here, so a deposit is a retry. The
        // ratio has 20 bits at most and is exact in an `f32`.
        let per_deposit = self.ratio.max(WHOLE) as f32 / WHOLE as f32;
        TpsBudget::new(self.window, self.reserve_per_second, per_deposit)
    }
}

/// What was wrong with the values given to [`RetryBudget::new`].
///
/// Its text names each value that was out of range, what it was, and what was expected.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::RetryBudget;
///
/// let error = RetryBudget::new(Duration::from_millis(1), 10, 1_000_001).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid retry budget: window is 1ms, expected 1s to 60s; \
///      ratio is 1000001, expected at most 1000000",
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidBudget {
    window: Option<Duration>,
    reserve_per_second: Option<u32>,
    ratio: Option<u32>,
}

impl fmt::Display for InvalidBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "invalid retry budget: ";
        let mut fault = |text: fmt::Arguments<'_>| {
            write!(f, "{between}{text}")?;
            between = "; ";
            Ok(())
        };
        if let Some(found) = self.window {
            fault(format_args!("window is {found:?}, expected 1s to 60s"))?;
        }
        if let Some(found) = self.reserve_per_second {
            let expected = "expected at most 2147483646";
            fault(format_args!("reserve_per_second is {found}, {expected}"))?;
        }
        if let Some(found) = self.ratio {
            fault(format_args!("ratio is {found}, expected at most 1000000"))?;
        }
        Ok(())
    }
}

impl Error for InvalidBudget {}
