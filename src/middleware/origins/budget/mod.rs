//! How many retries an origin is given.

mod terms;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tower::retry::budget::Budget;

use self::terms::WHOLE;
use super::origin::Origin;
use super::table::OriginTable;
use crate::middleware::clock;

pub use self::terms::{BudgetTerms, InvalidBudget};
#[cfg(feature = "serde")]
pub(super) use self::terms::{MOST_RATIO, MOST_RESERVE, WINDOWS};

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
/// with its last response or error, and the reason is
/// [`Throttled`](crate::StopReason::Throttled).
///
/// # How it counts
///
/// Each origin (scheme, host and port, the scheme's own port if the URL names none) has a
/// budget to itself, so a sick one does not use up what a healthy one may need. A request that
/// could have been retried, and ends with a status that is in none of the rule's `statuses`, pays
/// in; a retry takes out what `1000 / ratio` such requests paid.
///
/// The reserve is what an origin may spend without having earned it: `reserve_per_second` for every
/// whole second of `window`, all of it at once if need be. It comes back window by window, not
/// second by second.
///
/// A payment or a retry is forgotten when it is one `window` old, or not quite: tower counts in
/// tenths of a `window` and rounds the time between two of them up, so it is from half a `window`
/// (under steady traffic) to a tenth more than one. In a long outage an origin is thus sent up to
/// twice its `reserve_per_second`.
///
/// A caller that sends one request after another is hardly limited: it would have to make ten
/// retries a second to use up the default reserve. The budget is there for crowds.
///
/// # Defaults
///
/// A ratio of 200 (one retry for five answers) and a reserve of 10 a second, over 10 seconds: an
/// origin that was never seen may be sent 100 retries at once.
///
/// # What is remembered
///
/// Clones share one memory, and so do the policies and clients that hold them. An origin is
/// forgotten once two windows have passed in which no retry was asked for and no answer completed a
/// whole retry. This loses next to nothing: by then, all that it earned and spent would be forgotten
/// anyway. At most 1024 origins are remembered; if more are in use, those that were not used for the
/// longest are forgotten early, and start over with a full reserve when they are seen again.
///
/// Answers that have not earned a whole retry yet have no age: they wait as long as the origin is
/// remembered, and go with it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{BudgetTerms, RetryBudget};
///
/// // One retry for ten answers, and two a second whatever is answered, over 30 seconds.
/// let budget = RetryBudget::new(BudgetTerms {
///     window: Duration::from_secs(30),
///     reserve_per_second: 2,
///     ratio: 100,
/// })?;
/// assert_eq!(budget.origins(), 0);
/// # Ok::<(), reqwest_retry_rules::InvalidBudget>(())
/// ```
#[derive(Clone)]
pub struct RetryBudget {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` if the caller makes the budgets.
    terms: Option<BudgetTerms>,
    /// What one answer earns, in thousandths of a deposit: at most [`WHOLE`].
    share: u32,
    make: Box<dyn Fn() -> AnyBudget + Send + Sync>,
    origins: OriginTable<OriginBudget>,
}

type AnyBudget = Box<dyn Budget + Send + Sync>;

/// The budget of one origin.
#[derive(Default)]
struct OriginBudget {
    /// All that its answers earned, in thousandths of a deposit.
    ///
    /// The budget sees whole deposits only. This keeps a ratio such as 300 exact, which tower would
    /// round to one retry for three answers, and most answers need neither clock nor tower's lock.
    earned: AtomicU64,
    /// Made when it is first asked, and not while the table is locked: making one may be slow.
    budget: OnceLock<AnyBudget>,
}

impl OriginBudget {
    /// Adds what one answer earns; true if it completes a deposit.
    fn earn(&self, share: u32) -> bool {
        let (share, whole) = (u64::from(share), u64::from(WHOLE));
        let before = self.earned.fetch_add(share, Ordering::Relaxed);
        before / whole < before.wrapping_add(share) / whole
    }
}

impl RetryBudget {
    /// A budget on these terms.
    ///
    /// # Errors
    ///
    /// [`InvalidBudget`] names each of the three that is out of its range.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{BudgetTerms, RetryBudget};
    ///
    /// let terms = BudgetTerms::default();
    /// assert!(RetryBudget::new(BudgetTerms { reserve_per_second: 0, ..terms }).is_ok());
    ///
    /// let error = RetryBudget::new(BudgetTerms { window: Duration::ZERO, ..terms }).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "invalid retry budget: window is 0ns, expected 1s to 60s",
    /// );
    /// ```
    pub fn new(terms: BudgetTerms) -> Result<RetryBudget, InvalidBudget> {
        let millis = u64::try_from(terms.window.as_millis()).unwrap_or(u64::MAX);
        let window = Duration::from_millis(millis);
        let terms = BudgetTerms { window, ..terms };
        terms.check()?;
        Ok(RetryBudget::on_terms(terms))
    }

    /// Budgets of the caller's own: `make` is called once for each origin.
    ///
    /// [`Budget`] is the trait of `tower` 0.5 (feature `retry`), which your crate must name as a
    /// dependency.
    ///
    /// Every answer that counts is one [`deposit`](Budget::deposit); every retry asks
    /// [`withdraw`](Budget::withdraw) once. An origin that was not used for 20 seconds is forgotten
    /// and its budget dropped, so a budget with a longer memory has to keep it outside, behind an
    /// [`Arc`] for instance.
    ///
    /// `make` and the budgets may be slow, and they may panic: that holds up or ends the send that
    /// asked and leaves all else as it was. While a budget is being made, other sends to the same
    /// origin wait for it, so a `make` that itself sends to that origin, on this budget, would wait
    /// for itself for ever. After a panic the next send to the origin calls `make` again.
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
                make: Box::new(move || Box::new(make())),
                origins: table(BudgetTerms::default().window),
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

    /// Takes a retry out of the budget of `origin`; `false` if it has none left.
    pub(in crate::middleware) fn withdraw<'a>(&self, origin: impl Into<Origin<'a>>) -> bool {
        let shared = &*self.shared;
        let entry = shared.origins.used(&origin.into(), clock::now());
        shared.budget(&entry.value).withdraw()
    }

    /// Counts an answer of `origin`.
    pub(in crate::middleware) fn deposit<'a>(&self, origin: impl Into<Origin<'a>>) {
        let shared = &*self.shared;
        if shared.share == 0 {
            return;
        }
        let origin = origin.into();
        let earn = |budget: &OriginBudget| budget.earn(shared.share);
        let earned = shared.origins.peek(&origin, earn);
        if earned == Some(false) {
            return;
        }
        let entry = shared.origins.used(&origin, clock::now());
        if earned.unwrap_or_else(|| earn(&entry.value)) {
            shared.budget(&entry.value).deposit();
        }
    }

    /// True if both were made on the same terms, and so can stand for one another.
    pub(in crate::middleware) fn has_terms_of(&self, other: &RetryBudget) -> bool {
        self.shared.terms.is_some() && self.shared.terms == other.shared.terms
    }

    fn on_terms(terms: BudgetTerms) -> RetryBudget {
        RetryBudget {
            shared: Arc::new(Shared {
                terms: Some(terms),
                share: terms.ratio.min(WHOLE),
                make: Box::new(move || Box::new(terms.budget())),
                origins: table(terms.window),
            }),
        }
    }
}

impl Shared {
    fn budget<'a>(&self, origin: &'a OriginBudget) -> &'a AnyBudget {
        origin.budget.get_or_init(&self.make)
    }
}

/// An origin is idle after two windows, and then it has a new budget.
///
/// tower's budget steps through every tenth of a window that has passed since it was last asked. By
/// then it holds nothing but its reserve, like a new one.
fn table(window: Duration) -> OriginTable<OriginBudget> {
    OriginTable::new(window.saturating_mul(2), clock::now())
}

/// As [the type](RetryBudget#defaults) says: 200 thousandths and 10 a second, over 10 seconds.
impl Default for RetryBudget {
    fn default() -> Self {
        RetryBudget::on_terms(BudgetTerms::default())
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
