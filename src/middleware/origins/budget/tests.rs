//! The budget of each origin, without a client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::{Barrier, OnceLock};
use std::thread;

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

/// A budget that counts what happens to it, and to all others of its maker.
#[derive(Clone, Default)]
struct Counts(Arc<Counted>);

#[derive(Default)]
struct Counted {
    made: AtomicUsize,
    deposits: AtomicUsize,
    withdrawals: AtomicUsize,
    dropped: AtomicUsize,
}

struct Counting(Arc<Counted>);

impl Counts {
    fn budget(&self) -> RetryBudget {
        let counted = Arc::clone(&self.0);
        RetryBudget::from_maker(move || {
            counted.made.fetch_add(1, Ordering::Relaxed);
            Counting(Arc::clone(&counted))
        })
    }

    /// How many were made, deposits, withdrawals, and how many were dropped.
    fn all(&self) -> [usize; 4] {
        let Counted {
            made,
            deposits,
            withdrawals,
            dropped,
        } = &*self.0;
        [made, deposits, withdrawals, dropped].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Budget for Counting {
    fn deposit(&self) {
        self.0.deposits.fetch_add(1, Ordering::Relaxed);
    }

    fn withdraw(&self) -> bool {
        self.0.withdrawals.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn nth(n: usize) -> Url {
    url(&format!("https://tenant-{n}.example.com/"))
}

#[tokio::test(start_paused = true)]
async fn a_maker_is_called_once_for_each_origin() {
    let counts = Counts::default();
    let budget = counts.budget();
    assert_eq!(counts.all(), [0, 0, 0, 0]);
    for _ in 0..3 {
        budget.deposit(&nth(1));
        assert!(budget.withdraw(&nth(1)));
        assert!(budget.withdraw(&nth(2)));
    }
    assert_eq!(counts.all(), [2, 3, 6, 0]);
    drop(budget);
    assert_eq!(counts.all(), [2, 3, 6, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_budget_is_replaced_and_not_asked() {
    let counts = Counts::default();
    let budget = counts.budget();
    assert!(budget.withdraw(&nth(1)));
    wait(20.0).await;
    assert!(budget.withdraw(&nth(1)));
    assert_eq!(counts.all(), [1, 0, 2, 0]);
    wait(21.0).await;
    budget.deposit(&nth(1));
    assert_eq!(counts.all(), [2, 1, 2, 1]);
    wait(21.0).await;
    assert!(budget.withdraw(&nth(1)));
    assert_eq!(counts.all(), [3, 1, 3, 2]);
    assert_eq!(budget.origins(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_budget_is_replaced_between_two_tidyings() {
    let counts = Counts::default();
    let budget = counts.budget();
    wait(10.0).await;
    budget.deposit(&nth(1));
    // Tidied at 21 seconds, when the first is not idle, and next at 42.
    wait(11.0).await;
    budget.deposit(&nth(2));
    wait(11.0).await;
    budget.deposit(&nth(1));
    assert_eq!(counts.all(), [3, 3, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_asked_now_and_then_is_kept() {
    let counts = Counts::default();
    let budget = counts.budget();
    for _ in 0..10 {
        budget.deposit(&nth(1));
        wait(19.0).await;
    }
    assert_eq!(counts.all(), [1, 10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn idle_origins_are_forgotten_when_any_is_asked() {
    let counts = Counts::default();
    let budget = counts.budget();
    (0..100).for_each(|n| budget.deposit(&nth(n)));
    assert_eq!(budget.origins(), 100);
    wait(11.0).await;
    budget.deposit(&nth(0));
    wait(11.0).await;
    assert_eq!(budget.origins(), 100);
    budget.deposit(&nth(0));
    assert_eq!(budget.origins(), 1);
    assert_eq!(counts.all(), [100, 102, 0, 99]);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_origins_stay_bounded() {
    let budget = RetryBudget::default();
    let mut most = 0;
    for n in 0..5000 {
        budget.deposit(&nth(n));
        most = most.max(budget.origins());
    }
    assert_eq!(most, 1024);
}

#[tokio::test(start_paused = true)]
async fn where_too_many_are_in_use_the_longest_idle_go() {
    let counts = Counts::default();
    let budget = counts.budget();
    (0..256).for_each(|n| budget.deposit(&nth(n)));
    wait(1.0).await;
    (256..1024).for_each(|n| budget.deposit(&nth(n)));
    (0..128).for_each(|n| budget.deposit(&nth(n)));
    assert_eq!(budget.origins(), 1024);
    budget.deposit(&nth(1024));
    assert_eq!(budget.origins(), 1024 - 128 + 1);
    assert_eq!(counts.all(), [1025, 1153, 0, 128]);
    // All but the 128 that were asked in the first second only are known still.
    (0..128).for_each(|n| budget.deposit(&nth(n)));
    (256..1025).for_each(|n| budget.deposit(&nth(n)));
    assert_eq!(counts.all(), [1025, 2050, 0, 128]);
}

#[test]
fn a_maker_that_panics_is_called_again() {
    let calls = AtomicUsize::new(0);
    let budget = RetryBudget::from_maker(move || {
        assert!(calls.fetch_add(1, Ordering::Relaxed) > 0, "the first call");
        Counting(Arc::default())
    });
    let first = catch_unwind(AssertUnwindSafe(|| budget.withdraw(&nth(1))));
    assert!(first.is_err());
    assert!(budget.withdraw(&nth(1)));
    assert!(budget.withdraw(&nth(2)));
    assert_eq!(budget.origins(), 2);
}

#[test]
fn a_budget_that_panics_leaves_the_others_working() {
    struct Panics(usize);

    impl Budget for Panics {
        fn deposit(&self) {
            assert!(self.0 > 0, "the first budget");
        }

        fn withdraw(&self) -> bool {
            self.0 > 0 || panic!("the first budget")
        }
    }

    let made = AtomicUsize::new(0);
    let budget = RetryBudget::from_maker(move || Panics(made.fetch_add(1, Ordering::Relaxed)));
    for _ in 0..2 {
        let sick = catch_unwind(AssertUnwindSafe(|| budget.withdraw(&nth(1))));
        assert!(sick.is_err());
        let sick = catch_unwind(AssertUnwindSafe(|| budget.deposit(&nth(1))));
        assert!(sick.is_err());
        budget.deposit(&nth(2));
        assert!(budget.withdraw(&nth(2)));
    }
    assert_eq!(budget.origins(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_budget_may_use_the_others_while_it_is_made_asked_and_dropped() {
    struct Curious(Arc<OnceLock<RetryBudget>>);

    impl Curious {
        fn look(&self) -> bool {
            let Some(budget) = self.0.get() else {
                return false;
            };
            budget.origins() > 0
        }
    }

    impl Budget for Curious {
        fn deposit(&self) {
            self.look();
        }

        fn withdraw(&self) -> bool {
            self.look()
        }
    }

    impl Drop for Curious {
        fn drop(&mut self) {
            self.look();
        }
    }

    let own = Arc::new(OnceLock::new());
    let shared = Arc::clone(&own);
    let budget = own.get_or_init(|| {
        RetryBudget::from_maker(move || {
            let curious = Curious(Arc::clone(&shared));
            curious.look();
            curious
        })
    });
    budget.deposit(&nth(1));
    assert!(budget.withdraw(&nth(1)));
    wait(21.0).await;
    assert!(budget.withdraw(&nth(2)));
    assert_eq!(budget.origins(), 1);
}

/// Runs `work` on eight threads at once, each with its number.
fn at_once(work: impl Fn(usize) + Sync) {
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for n in 0..8 {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(n);
            });
        }
    });
}

#[test]
fn threads_that_meet_an_origin_at_once_share_one_budget() {
    let counts = Counts::default();
    let budget = counts.budget();
    at_once(|_| {
        for n in 0..1000 {
            budget.deposit(&nth(n % 10));
            budget.withdraw(&nth(n % 10));
        }
    });
    assert_eq!(counts.all(), [10, 8000, 8000, 0]);
}

#[test]
fn no_answer_is_lost_between_threads() {
    let window = Duration::from_secs(60);
    let budget = RetryBudget::new(BudgetTerms {
        window,
        reserve_per_second: 0,
        ratio: 200,
    })
    .unwrap();
    at_once(|_| (0..1003).for_each(|_| budget.deposit(&nth(1))));
    let retries = (0..10_000).take_while(|_| budget.withdraw(&nth(1)));
    assert_eq!(retries.count(), 1604);
}

#[test]
fn threads_with_thousands_of_origins_stay_within_the_bound() {
    let budget = RetryBudget::default();
    let most = AtomicUsize::new(0);
    at_once(|thread| {
        for n in 0..500 {
            budget.deposit(&nth(1000 * thread + n));
            budget.withdraw(&nth(n));
            most.fetch_max(budget.origins(), Ordering::Relaxed);
        }
    });
    let most = most.into_inner();
    assert!(most <= 1024, "{most} origins");
}
