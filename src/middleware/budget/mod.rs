//! How many retries an origin is given.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower::retry::budget::Budget;

use self::key::Key;
use self::origins::Origins;
use self::slot::Slot;
use self::terms::WHOLE;
use super::origin::Origin;

pub use self::terms::{BudgetTerms, InvalidBudget};

mod key;
mod lanes;
mod origins;
mod parts;
mod slot;
mod table;
mod terms;

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
/// Each origin (scheme, host and port, the scheme's own port where the URL names none) has a
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
/// payment, which loses next to nothing: by then, all that it paid and took would be forgotten
/// anyway. At most 1024 origins are remembered, at about 1.7 KB each; if more are in use, those that
/// were not used for the longest are forgotten early, and start over with a full reserve when they
/// are seen again.
///
/// Answers that have not earned a whole retry yet are counted by each thread for itself (beyond
/// eight, some threads share a count) and put together when a retry is asked for. These, less than
/// one retry a count, have no age: they wait as long as the origin is remembered, and go with it.
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
    /// `None` where the caller makes the budgets.
    terms: Option<BudgetTerms>,
    /// How much of a deposit one answer is worth, in thousandths: at most [`WHOLE`].
    ///
    /// Parts are added up here. The budgets see whole deposits only, which spares most answers
    /// the clock and the lock of tower's budget, and keeps a ratio such as 300 exact where tower
    /// would round it to one retry for three answers. What is left over waits for the next answer
    /// or retry.
    share: u32,
    origins: Origins,
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
                origins: Origins::new(BudgetTerms::default().window, make),
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

    /// Takes a retry out of the budget of `origin`; `false` where it has none left.
    pub(crate) fn withdraw<'a>(&self, origin: impl Into<Origin<'a>>) -> bool {
        let origins = &self.shared.origins;
        let key = Key::of(origin);
        let slot = &origins.awake(&key).slot;
        self.pay(slot, slot.gathered());
        origins.budget(slot).withdraw()
    }

    /// Counts an answer of `origin`.
    pub(crate) fn deposit<'a>(&self, origin: impl Into<Origin<'a>>) {
        let Shared { share, origins, .. } = &*self.shared;
        if *share == 0 {
            return;
        }
        let key = Key::of(origin);
        let earned = origins.known(&key, |entry| entry.slot.earns(*share));
        if earned == Some(0) {
            return;
        }
        let slot = &origins.awake(&key).slot;
        self.pay(slot, earned.unwrap_or_else(|| slot.earns(*share)));
    }

    fn pay(&self, slot: &Slot, deposits: u32) {
        (0..deposits).for_each(|_| self.shared.origins.budget(slot).deposit());
    }

    fn on_terms(terms: BudgetTerms) -> RetryBudget {
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

#[cfg(test)]
mod tests {
    use reqwest::Url;
    use tower::retry::budget::TpsBudget;

    use super::*;

    #[track_caller]
    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn budget(window: f64, reserve_per_second: u32, ratio: u32) -> RetryBudget {
        RetryBudget::new(BudgetTerms {
            window: seconds(window),
            reserve_per_second,
            ratio,
        })
        .unwrap()
    }

    /// Withdraws until nothing is left, and says how much there was.
    fn spend(budget: &RetryBudget, url: &Url) -> usize {
        (0..10_000).take_while(|_| budget.withdraw(url)).count()
    }

    fn deposit(budget: &RetryBudget, url: &Url, times: usize) {
        (0..times).for_each(|_| budget.deposit(url));
    }

    async fn wait(time: f64) {
        tokio::time::advance(seconds(time)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_fresh_origin_may_be_sent_a_hundred_retries_at_once() {
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        assert_eq!(spend(&budget, &a), 100);
        assert_eq!(spend(&budget, &a), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn five_answers_earn_a_retry_and_four_do_not() {
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        spend(&budget, &a);
        deposit(&budget, &a, 4);
        assert_eq!(spend(&budget, &a), 0);
        deposit(&budget, &a, 1);
        assert_eq!(spend(&budget, &a), 1);
        deposit(&budget, &a, 100);
        assert_eq!(spend(&budget, &a), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_before_the_first_failure_count() {
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        deposit(&budget, &a, 1000);
        assert_eq!(spend(&budget, &a), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ratio_of_thousandths_is_exact_up_to_one_retry_an_answer() {
        for (ratio, answers, retries) in [
            (0, 1000, 0),
            (1, 999, 0),
            (1, 1000, 1),
            (300, 3, 0),
            (300, 4, 1),
            (300, 10, 3),
            (300, 1000, 300),
            (300, 1010, 303),
            (999, 1, 0),
            (999, 1000, 999),
            (1000, 7, 7),
            (2000, 3, 6),
            (3000, 1000, 3003),
            (600_000, 1, 1000),
            (1_000_000, 2, 2000),
        ] {
            let (budget, a) = (budget(10.0, 0, ratio), url("https://a.test/"));
            deposit(&budget, &a, answers);
            let found = spend(&budget, &a);
            assert_eq!(found, retries, "ratio {ratio}, {answers} answers");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_is_for_each_whole_second_of_the_window() {
        for (window, reserve, retries) in [
            (1.0, 0, 0),
            (1.0, 3, 3),
            (1.999, 3, 3),
            (2.0, 3, 6),
            (60.0, 100, 6000),
        ] {
            for ratio in [0, 200, 1000, 2500] {
                let (budget, a) = (budget(window, reserve, ratio), url("https://a.test/"));
                let found = spend(&budget, &a);
                assert_eq!(found, retries, "{window} s, {reserve} a second, {ratio}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_comes_back_as_the_window_slides() {
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        (0..60).for_each(|_| assert!(budget.withdraw(&a)));
        wait(5.0).await;
        assert_eq!(spend(&budget, &a), 40);
        let mut found = Vec::new();
        for second in 6..=20 {
            wait(1.0).await;
            match spend(&budget, &a) {
                0 => {}
                back => found.push((second, back)),
            }
        }
        assert_eq!(found, [(11, 60), (16, 40)]);
    }

    #[tokio::test(start_paused = true)]
    async fn under_steady_traffic_the_reserve_comes_back_after_half_a_window() {
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        assert_eq!(spend(&budget, &a), 100);
        let mut milliseconds = 0;
        while !budget.withdraw(&a) {
            wait(0.007).await;
            milliseconds += 7;
        }
        // Seven does not divide a thousand, so every second is taken for two.
        assert_eq!(milliseconds, 6006);
        assert_eq!(spend(&budget, &a), 99);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_forgotten_as_the_window_slides() {
        for (pause, retries) in [(9.0, 10), (11.001, 0)] {
            let (budget, a) = (budget(10.0, 0, 1000), url("https://a.test/"));
            deposit(&budget, &a, 10);
            wait(pause).await;
            assert_eq!(spend(&budget, &a), retries, "after {pause} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sick_origin_leaves_the_others_alone() {
        let budget = RetryBudget::default();
        let others = [
            "https://b.test/",
            "https://a.test.b.test/",
            "https://www.a.test/",
            "https://a.test:444/",
            "https://a.test:80/",
            "http://a.test/",
            "http://a.test:443/",
            "https://127.0.0.1/",
            "https://[::1]/",
        ];
        assert_eq!(spend(&budget, &url("https://a.test/")), 100);
        for other in others {
            assert_eq!(spend(&budget, &url(other)), 100, "{other}");
        }
        assert_eq!(budget.origins(), 1 + others.len());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_but_scheme_host_and_port_makes_an_origin() {
        let budget = RetryBudget::default();
        assert_eq!(spend(&budget, &url("https://a.test/")), 100);
        for same in [
            "https://a.test:443/",
            "https://A.TEST/",
            "https://a.test/path?query#fragment",
            "https://user:secret@a.test/",
        ] {
            assert_eq!(spend(&budget, &url(same)), 0, "{same}");
        }
        assert_eq!(budget.origins(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_url_without_host_or_port_has_a_budget_too() {
        let budget = RetryBudget::default();
        assert_eq!(spend(&budget, &url("data:,a")), 100);
        assert_eq!(spend(&budget, &url("unknown://a.test/")), 100);
        assert_eq!(budget.origins(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn clones_share_and_others_do_not() {
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        assert_eq!(spend(&budget.clone(), &a), 100);
        assert_eq!(spend(&budget, &a), 0);
        assert_eq!(spend(&RetryBudget::default(), &a), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ratio_of_zero_remembers_no_origin_for_its_answers() {
        let (budget, a) = (budget(10.0, 1, 0), url("https://a.test/"));
        deposit(&budget, &a, 1000);
        assert_eq!(budget.origins(), 0);
        assert_eq!(spend(&budget, &a), 10);
        assert_eq!(budget.origins(), 1);
    }

    #[test]
    fn it_works_outside_of_a_runtime() {
        let (budget, a) = (budget(60.0, 1, 1000), url("https://a.test/"));
        deposit(&budget, &a, 5);
        assert_eq!(spend(&budget, &a), 65);
    }

    #[test]
    fn a_clock_that_goes_back_does_no_harm() {
        let later = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (budget, a) = (RetryBudget::default(), url("https://a.test/"));
        later.block_on(async {
            wait(15.0).await;
            assert_eq!(spend(&budget, &a), 100);
        });
        assert_eq!(spend(&budget, &a), 0);
        deposit(&budget, &a, 5);
        assert_eq!(spend(&budget, &a), 1);
    }

    #[test]
    fn its_debug_text_says_what_it_was_given_and_names_no_host() {
        let text = |budget: RetryBudget| {
            budget.withdraw(&url("https://secret.test/"));
            format!("{budget:?}")
        };
        assert_eq!(
            text(RetryBudget::default()),
            "RetryBudget { window: 10s, reserve_per_second: 10, ratio: 200, origins: 1 }",
        );
        assert_eq!(
            text(RetryBudget::from_maker(TpsBudget::default)),
            "RetryBudget { origins: 1 }",
        );
    }
}
