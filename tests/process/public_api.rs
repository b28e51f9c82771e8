//! What every public type can be relied upon to be, and that none is left out here.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::str::FromStr;
use std::sync::Arc;

use reqwest_middleware::Middleware;
use reqwest_retry_rules::*;

/// Requires traits of types, and gives the types' names. All go from thread to thread, are shared
/// between them and can be shown.
macro_rules! are {
    ($bounds:tt: $($type:ty),+ $(,)?) => { [$(are!(@one $bounds $type)),+] };
    (@one [$($bound:path),*] $type:ty) => {{
        fn is<T: Send + Sync + Unpin + Debug + 'static $(+ $bound)*>() {}
        is::<$type>();
        stringify!($type).trim_end_matches("<'static>")
    }};
}

/// What a rule is made of: values in every respect.
fn data() -> Vec<&'static str> {
    let plain = are!([Clone, Eq, Hash]: StatusRule, WaitHeader);
    let with_default =
        are!([Clone, Eq, Hash, Default]: Backoff, Limits, Methods, RetryAfter, RetryRule);
    let small = are!([Copy, Eq, Hash]: StatusMatch, WaitFormat);
    let small_with_default =
        are!([Copy, Eq, Hash, Default]: Jitter, RetryAfterCap, RetryAfterRole, RetryAfterSource);
    [&plain[..], &with_default, &small, &small_with_default].concat()
}

/// What goes into a decision and what comes out.
fn decisions() -> Vec<&'static str> {
    let asked = are!([Copy, PartialEq]: Attempt<'static>);
    let outcome = are!([Copy, Eq]: AttemptOutcome<'static>);
    let answer = are!([Copy, Eq, Hash]: Decision, WaitSource);
    let told = are!([Copy, Eq, Hash, Display]: StopReason, AttemptResult);
    let failure = are!([Copy, Eq, Hash, Error]: TransportError);
    let shown = are!([Clone, Eq, Hash, Display]: Advice, RuleFault, Schedule);
    let retries = are!([Clone, Eq, Hash]: ScheduledRetry);
    [
        &asked[..],
        &outcome,
        &answer,
        &told,
        &failure,
        &shown,
        &retries,
    ]
    .concat()
}

/// What the middleware takes and gives.
fn edge() -> Vec<&'static str> {
    let middleware = are!([Clone, Middleware]: RetryMiddleware);
    let exchanged = are!([Clone]: SharedPolicy);
    let policy = are!([Clone, From<RetryRule>, From<Arc<RetryRule>>]: RetryPolicy);
    let settings = are!([Clone, Default]: Overrides, RetryBudget, RetryLog);
    let terms = are!([Copy, Eq, Hash, Default]: BudgetTerms, PauseTerms);
    let shared = are!([Clone]: BodySource);
    let body = are!([From<String>, From<&'static [u8]>, From<reqwest::Body>]: FreshBody);
    let flags = are!([Copy, Eq, Hash]: ReplaySafe);
    let said = are!([Copy, Default, Eq, Hash]: Judgement);
    let numbers = are!([Copy, Ord, Hash]: Deadline, TotalTimeout, ResendCount);
    let name = are!([Clone, Eq, Hash, Display, AsRef<str>]: RetryLabel);
    are!([From<&'static str>, From<String>, From<Cow<'static, str>>]: RetryLabel);
    let views = are!([Copy]: ResponseHead<'static>);
    let events = are!([Copy]: RecoveredEvent<'static>, RetryEvent<'static>, StopEvent<'static>);
    let levels = are!([Copy, Ord, Hash]: LogLevel);
    let reports = are!([Clone, Eq, Hash]: AttemptRecord, RetryReport);
    let errors = are!([Error]: RetryError);
    let equal_errors = are!([Error, Clone, Eq, Hash]: InvalidRule, InvalidBudget, InvalidRoute);
    let pattern = are!([Clone, Eq, Hash, Display, FromStr]: RoutePattern);
    [
        &middleware[..],
        &exchanged,
        &terms,
        &policy,
        &settings,
        &shared,
        &body,
        &flags,
        &said,
        &numbers,
        &name,
        &views,
        &events,
        &levels,
        &reports,
        &errors,
        &equal_errors,
        &pattern,
        &in_a_file(),
    ]
    .concat()
}

/// What is there only with the feature `serde`.
fn in_a_file() -> Vec<&'static str> {
    #[cfg(feature = "serde")]
    {
        are!([Clone, Eq, Hash, Default, Into<RetryPolicy>]: RetryConfig).to_vec()
    }
    #[cfg(not(feature = "serde"))]
    {
        vec!["RetryConfig"]
    }
}

const TRAITS: [&str; 3] = ["ErrorExt", "ResponseExt", "RetryObserver"];

/// It holds a reference to an error of the caller's, which need not be sent or shared.
const OF_A_MOMENT: [&str; 1] = ["Failure"];

#[test]
fn every_public_type_is_what_its_kind_is() {
    let tested: BTreeSet<_> = [
        data(),
        decisions(),
        edge(),
        TRAITS.to_vec(),
        OF_A_MOMENT.to_vec(),
    ]
    .concat()
    .into_iter()
    .collect();

    let source = include_str!("../../src/lib.rs");
    let names = source.split("pub use ").skip(1).flat_map(|list| {
        let list = list.split(';').next().unwrap_or_default();
        list.split(|each: char| !each.is_alphanumeric())
    });
    let is_type = |name: &&str| name.starts_with(char::is_uppercase);
    let public: BTreeSet<_> = names.filter(is_type).collect();
    assert_eq!(tested, public);
}

#[cfg(feature = "serde")]
#[test]
fn a_rule_and_its_parts_are_read_and_written() {
    macro_rules! is_data {
        ($($type:ty),+) => { [$({
            fn is<T: serde::Serialize + serde::de::DeserializeOwned>() {}
            is::<$type>();
            stringify!($type)
        }),+] };
    }
    let mut read = is_data!(
        Backoff,
        Jitter,
        Limits,
        Methods,
        RetryAfter,
        RetryAfterCap,
        RetryAfterRole,
        RetryAfterSource,
        RetryRule,
        StatusMatch,
        StatusRule,
        WaitFormat,
        WaitHeader
    );
    let mut data = data();
    read.sort();
    data.sort();
    assert_eq!(data, read);
}

#[test]
fn scopes_go_from_thread_to_thread_as_what_is_in_them_does() {
    fn is_send<T: Send>(_: T) {}
    is_send(with_rule(RetryRule::never(), async {}));
    is_send(with_overrides(Overrides::new(), async {}));
}

#[test]
fn an_observer_can_be_chosen_at_run_time() {
    struct Quiet;
    impl RetryObserver for Quiet {}
    let chosen: Arc<dyn RetryObserver> = Arc::new(Quiet);
    let policy = RetryPolicy::from(RetryRule::transient()).observer(chosen);
    assert_eq!(policy.rule(), &RetryRule::transient());
}

#[test]
fn an_error_of_ours_is_found_in_a_boxed_one() {
    fn boxed(error: impl Error + Send + Sync + 'static) -> Box<dyn Error + Send + Sync> {
        error.into()
    }
    assert!(boxed(TransportError::Dns).is::<TransportError>());
    let invalid = RetryBudget::new(BudgetTerms {
        window: std::time::Duration::ZERO,
        reserve_per_second: 0,
        ratio: 0,
    })
    .unwrap_err();
    assert!(boxed(invalid).is::<InvalidBudget>());
}
