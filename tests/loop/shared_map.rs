//! The map of the crate `task-local-extensions` is read with the feature of that name, and else not.

use reqwest_retry_rules::{
    Deadline, ReplaySafe, ResponseExt, RetryLabel, RetryLog, RetryPolicy, RetryRule, TotalTimeout,
};
use task_local_extensions::{Extensions, set_local_item, with_extensions};

use crate::support::chain::at_once;
use crate::support::scripted::{Transport, URL, client, hang, ms, status};

const READ: bool = cfg!(feature = "task-local-extensions");

/// How many attempts a POST without anything of its own takes under the preset, if refused.
async fn attempts() -> u32 {
    let transport = Transport::choose(|_| status(503).yielding());
    let response = client(&transport, at_once()).post(URL).send().await;
    response.unwrap().attempts()
}

#[tokio::test]
async fn what_is_in_it_counts_with_the_feature_alone() {
    let map = Extensions::new().with(ReplaySafe(true));
    let (_, attempts) = with_extensions(map, attempts()).await;
    assert_eq!(attempts, if READ { 4 } else { 1 });
}

#[tokio::test(start_paused = true)]
async fn nothing_of_any_type_is_read_without_it() {
    let log = RetryLog::new();
    let map = Extensions::new()
        .with(RetryPolicy::from(RetryRule::never()))
        .with(RetryRule::never())
        .with(RetryLabel::from("shared"))
        .with(log.clone());
    let sent = async {
        let transport = Transport::choose(|_| status(503).yielding());
        let own = RetryLog::new();
        let request = client(&transport, at_once()).get(URL);
        let response = request.with_extension(own.clone()).send().await.unwrap();
        let label = own.report().unwrap().label().cloned();
        (response.attempts(), label)
    };
    let (_, (attempts, label)) = with_extensions(map, sent).await;
    let shared = READ.then(|| RetryLabel::from("shared"));
    assert_eq!((attempts, label), (if READ { 1 } else { 4 }, shared));

    let map = Extensions::new()
        .with(TotalTimeout(ms(100)))
        .with(Deadline::after(ms(100)));
    let sent = async {
        let transport = Transport::new([hang()]);
        let sent = client(&transport, at_once()).get(URL).send();
        let ended = tokio::time::timeout(ms(1000), sent).await;
        (ended.is_ok(), transport.now())
    };
    let (_, ended) = with_extensions(map, sent).await;
    assert_eq!(ended, if READ { (true, 100) } else { (false, 1000) });
}

/// What the feature costs: a panic leaves the map on the thread, where the next task finds it.
#[test]
fn what_a_panic_leaves_behind_concerns_nobody_without_it() {
    let left_behind = || async {
        let panics = tokio::spawn(async {
            let map = Extensions::new().with(ReplaySafe(true));
            with_extensions(map, async { panic!("as the test wants it") }).await;
        });
        panics.await.unwrap_err();
        tokio::spawn(attempts()).await.unwrap()
    };
    let set_outside = || async {
        set_local_item(ReplaySafe(true)).await;
        attempts().await
    };
    // Each on a thread of its own, since what is left there stays.
    assert_eq!(on_a_thread(left_behind), if READ { 4 } else { 1 });
    assert_eq!(on_a_thread(set_outside), if READ { 4 } else { 1 });
    // The twin.
    assert_eq!(on_a_thread(attempts), 1);
}

fn on_a_thread<F: Future<Output = u32>>(work: impl FnOnce() -> F + Send) -> u32 {
    std::thread::scope(|scope| {
        let worked = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(work())
        });
        worked.join().unwrap()
    })
}
