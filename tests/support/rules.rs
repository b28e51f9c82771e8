//! Rules and facts of any kind. Small numbers come as often as extreme ones.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use reqwest_retry_rules::{
    Backoff, Jitter, Limits, Methods, RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource,
    RetryRule, StatusMatch, StatusRule, TransportError, WaitFormat, WaitHeader,
};

use super::model::Facts;

pub fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0_u64..100_000).prop_map(Duration::from_micros),
        (0_u64..100_000).prop_map(Duration::from_millis),
        (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
}

pub fn per_mille() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..3000, any::<u32>()]
}

pub fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..5, 0_u32..100, any::<u32>(), Just(u32::MAX)]
}

pub fn samples() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1.0_f64,
        1 => any::<f64>(),
        1 => select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0]),
    ]
}

pub fn moments() -> impl Strategy<Value = SystemTime> {
    prop_oneof![
        (0_u64..5_000_000_000_000)
            .prop_map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms)),
        (durations(), any::<bool>()).prop_map(|(span, later)| {
            let epoch = SystemTime::UNIX_EPOCH;
            let moved = if later {
                epoch.checked_add(span)
            } else {
                epoch.checked_sub(span)
            };
            moved.unwrap_or(epoch)
        }),
    ]
}

pub fn method() -> impl Strategy<Value = Method> {
    select(vec![Method::GET, Method::PUT, Method::POST, Method::PATCH])
}

/// One that looks like another, or like no method.
fn odd_method() -> impl Strategy<Value = Method> {
    select(vec!["get", "Patch", "any", "Never", "purge"])
        .prop_map(|name| Method::from_bytes(name.as_bytes()).unwrap())
}

pub fn methods() -> impl Strategy<Value = Methods> {
    prop_oneof![
        Just(Methods::Never),
        Just(Methods::Idempotent),
        vec(prop_oneof![9 => method(), 1 => odd_method()], 0..3).prop_map(Methods::Listed),
        Just(Methods::Any),
    ]
}

pub fn status_matches() -> impl Strategy<Value = StatusMatch> {
    prop_oneof![
        (90_u16..1010).prop_map(StatusMatch::Code),
        any::<u16>().prop_map(StatusMatch::Code),
        (90_u16..1010, 90_u16..1010).prop_map(|(first, last)| StatusMatch::Range(first, last)),
        any::<(u16, u16)>().prop_map(|(first, last)| StatusMatch::Range(first, last)),
    ]
}

pub fn status_rules() -> impl Strategy<Value = StatusRule> {
    let rule = (
        vec(status_matches(), 0..4),
        methods(),
        option::of(backoffs()),
    );
    rule.prop_map(|(statuses, methods, backoff)| StatusRule {
        statuses,
        methods,
        backoff,
    })
}

/// The headers that the rules know, and one that they do not.
pub fn header_name() -> impl Strategy<Value = HeaderName> {
    let names = [
        "retry-after",
        "retry-after-ms",
        "x-wait",
        "x-should-retry",
        "x-other",
    ];
    select(names.map(HeaderName::from_static).to_vec())
}

/// Any bytes that can stand in a header, and those that mean something.
pub fn header_value() -> impl Strategy<Value = HeaderValue> {
    let bytes = prop_oneof![0x20_u8..=0x7e, 0x80_u8..=0xff, Just(b'\t')];
    prop_oneof![
        vec(bytes, 0..40).prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap()),
        waits().prop_map(|text| HeaderValue::from_str(&text).unwrap()),
        select(vec!["true", "false", " True\t"]).prop_map(HeaderValue::from_static),
    ]
}

/// Texts that are waits, or nearly so.
pub fn waits() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,30}",
        r"[0-9]{0,8}\.[0-9]{0,8}",
        "[ \t]{0,2}[0-9]{1,4}[ \t]{0,2}",
        "[+-]?[0-9]{1,3}[smh,.e]?[0-9]{0,3}",
        "(Sun|Mon|Tue|Sat)(day)?,? [0-3][0-9][ -](Jan|Feb|Nov)[ -](19)?[0-9]{2} \
         [0-2][0-9]:[0-6][0-9]:[0-6][0-9]( GMT| UTC)?",
        "(Sun|Mon|Tue|Sat) (Jan|Feb|Nov) [ 0-3][0-9] [0-2][0-9]:[0-6][0-9]:60 (19|20)[0-9]{2}",
    ]
}

pub fn headers() -> impl Strategy<Value = HeaderMap> {
    vec((header_name(), header_value()), 0..6).prop_map(|pairs| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    })
}

pub fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::NoJitter),
        Just(Jitter::Full),
        (per_mille(), per_mille()).prop_map(|(lo, hi)| Jitter::Proportional { lo, hi }),
    ]
}

prop_compose! {
    pub fn backoffs()(
        base in durations(),
        max in durations(),
        growth in prop_oneof![Just(2000), Just(1000), per_mille()],
        jitter in jitters(),
    ) -> Backoff {
        Backoff { base, max, growth, jitter }
    }
}

pub fn formats() -> impl Strategy<Value = WaitFormat> {
    select(vec![
        WaitFormat::Seconds,
        WaitFormat::Millis,
        WaitFormat::UnixSeconds,
        WaitFormat::UnixMillis,
        WaitFormat::HttpDate,
    ])
}

fn wait_headers() -> impl Strategy<Value = WaitHeader> {
    let statuses = prop_oneof![Just(vec![]), vec(status_matches(), 0..4)];
    (formats(), statuses).prop_map(|(format, statuses)| WaitHeader {
        name: HeaderName::from_static("x-wait"),
        format,
        statuses,
    })
}

prop_compose! {
    pub fn retry_afters()(
        headers in vec(wait_headers().boxed(), 0..3),
        source in select(vec![
            RetryAfterSource::Ignore,
            RetryAfterSource::Header,
            RetryAfterSource::MsThenHeader,
        ]),
        cap in prop_oneof![
            durations().prop_map(RetryAfterCap::StopAbove),
            durations().prop_map(RetryAfterCap::BackoffAbove),
            durations().prop_map(RetryAfterCap::ClampTo),
            Just(RetryAfterCap::NoCap),
        ],
        zero_means_backoff: bool,
        role in select(vec![RetryAfterRole::Replace, RetryAfterRole::Floor]),
        spread in per_mille(),
    ) -> RetryAfter {
        RetryAfter { headers, source, cap, zero_means_backoff, role, spread }
    }
}

prop_compose! {
    pub fn limits()(
        soft_elapsed in option::of(durations()),
        min_retries in counts(),
        hard_elapsed in option::of(durations()),
    ) -> Limits {
        Limits { soft_elapsed, min_retries, hard_elapsed }
    }
}

prop_compose! {
    pub fn rules()(
        max_retries in counts(),
        statuses in vec(status_rules().boxed(), 0..4),
        sent_failures in methods().boxed(),
        (unsent_failures, timeouts) in any::<(bool, bool)>(),
        (override_header, veto_header) in (
            option::of(Just(HeaderName::from_static("x-should-retry"))),
            option::of(select(vec![
                HeaderName::from_static("x-should-retry"),
                HeaderName::from_static("x-other"),
            ])),
        ),
        retry_after in retry_afters().boxed(),
        backoff in backoffs().boxed(),
        limits in limits().boxed(),
    ) -> RetryRule {
        RetryRule {
            max_retries,
            statuses,
            sent_failures,
            unsent_failures,
            timeouts,
            override_header,
            veto_header,
            retry_after,
            backoff,
            limits,
        }
    }
}

pub fn statuses() -> impl Strategy<Value = StatusCode> {
    (100_u16..=999).prop_map(|code| StatusCode::from_u16(code).unwrap())
}

pub fn failures() -> impl Strategy<Value = TransportError> {
    use TransportError::*;
    prop_oneof![
        4 => select(vec![
            Dns, Connect, ConnectTimeout, Tls, NotProcessed, AfterRedirect, Timeout, Closed, Body,
            Certificate, Protocol,
        ]),
        1 => option::of(statuses()).prop_map(|status| Proxy { status }),
    ]
}

prop_compose! {
    pub fn facts()(
        failure in option::of(failures().boxed()),
        status in statuses(),
        headers in headers().boxed(),
        method in method(),
        attempt in counts(),
        random in samples(),
        now in option::of(moments()),
        (elapsed, remaining) in (durations(), option::weighted(0.2, durations())),
        server_delay in option::of(durations()),
        condition in option::of(methods().boxed()),
        idempotent: bool,
        replayable in prop::bool::weighted(0.9),
        vetoed in prop::bool::weighted(0.1),
        replaced in prop::bool::weighted(0.3),
        paused in option::weighted(0.3, durations()),
    ) -> Facts {
        Facts {
            failure,
            status,
            headers,
            method,
            attempt,
            random,
            now,
            elapsed,
            remaining,
            server_delay,
            condition,
            idempotent,
            replayable,
            vetoed,
            replaced,
            paused,
        }
    }
}
