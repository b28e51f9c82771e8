use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{
    Attempt, AttemptOutcome, Methods, RetryRule, StatusRule, StopReason, TransportError, WaitSource,
};

/// What to do about a failed attempt: send again after a wait, or stop and say why.
///
/// There is no third, so this enum is closed.
///
/// # Examples
///
/// ```
/// use http::Method;
/// use reqwest_retry_rules::{Attempt, AttemptOutcome, Decision, RetryRule, TransportError};
///
/// let outcome = AttemptOutcome::Failure(TransportError::Dns);
/// let shown = match RetryRule::never().decide(&outcome, &Attempt::new(&Method::GET)) {
///     Decision::Wait(wait) => format!("again in {wait:?}"),
///     Decision::Stop(reason) => format!("given up: {reason}"),
/// };
/// assert_eq!(shown, "given up: every retry that the rule allows was made");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a decision does nothing by itself"]
pub enum Decision {
    /// Send again after this wait, which may be zero.
    Wait(Duration),
    /// Return what there is.
    Stop(StopReason),
}

impl Decision {
    /// A short name that stays the same, for metrics and logs: `wait` or `stop`. The reason to
    /// stop has a [name](StopReason::name) of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{Decision, StopReason};
    ///
    /// assert_eq!(Decision::Wait(Duration::ZERO).name(), "wait");
    /// assert_eq!(Decision::Stop(StopReason::Exhausted).name(), "stop");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Decision::Wait(_) => "wait",
            Decision::Stop(_) => "stop",
        }
    }
}

impl RetryRule {
    /// Decides what to do about an attempt that came to `outcome`.
    ///
    /// The checks run in this order, and the first that applies decides:
    ///
    /// 1. [`max_retries`](RetryRule::max_retries) retries were made: `Exhausted`.
    /// 2. The request cannot be [sent again](Attempt::replayable): `NotReplayable`.
    /// 3. The caller's own test [refuses](Attempt::vetoed): `NotRetryable`.
    /// 4. The response has status 400 or above, and its
    ///    [`override_header`](RetryRule::override_header) or its
    ///    [`veto_header`](RetryRule::veto_header) says `false`: `ServerSaidNo`. If the override
    ///    header says `true`, step 5 is left out.
    /// 5. The rule retries the outcome for no method: `NotRetryable`; for other methods than this
    ///    one: `MethodNotAllowed`.
    ///    - A response: the first of [`statuses`](RetryRule::statuses) that contains its status, or
    ///      [`Attempt::condition`]; it is enough that one of them allows the method. But a row for
    ///      [`Methods::Never`] outranks a condition.
    ///    - `Certificate` and `Protocol`: never.
    ///    - `Proxy` with a status: every method, if
    ///      [`unsent_failures`](RetryRule::unsent_failures) is set and the first of `statuses` that
    ///      contains the status is not for `Methods::Never`; else never.
    ///    - A timeout: never, if [`timeouts`](RetryRule::timeouts) is not set.
    ///    - Another failure that proves the request [unsent](TransportError::is_unsent): every
    ///      method, if `unsent_failures` is set.
    ///    - Any other failure: the methods of [`sent_failures`](RetryRule::sent_failures).
    /// 6. The request was processed, and the outcome is that of another that
    ///    [went in its place](Attempt::replaced): `MethodNotAllowed`, unless the request is
    ///    idempotent or its method is in `sent_failures`.
    /// 7. The wait is what the server asks, as [`retry_after`](RetryRule::retry_after) takes it,
    ///    else the [backoff of the row](StatusRule::backoff) or the rule's
    ///    [`backoff`](RetryRule::backoff). The server asks for more than a cap that stops:
    ///    `RetryAfterTooLong`. While the origin is [paused](Attempt::paused), the wait is at least
    ///    that long.
    /// 8. There is no time for the wait: `HardLimit`, `SoftLimit` or `Budget`, as
    ///    [`limits`](RetryRule::limits) and [`Attempt::remaining`] say.
    ///
    /// So a time limit is given as the reason only for what would have been retried, and a wait
    /// above the cap is `RetryAfterTooLong` even if a time limit would stop too.
    ///
    /// Every rule and all facts give an answer, the same one each time: sums saturate, and a header
    /// that cannot be read counts as absent. In the headers of step 4 case and surrounding white
    /// space are ignored, the first value counts, and any other word has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Method;
    /// use reqwest_retry_rules::{
    ///     Attempt, AttemptOutcome, Decision, RetryRule, StopReason, TransportError,
    /// };
    ///
    /// let rule = RetryRule::transient();
    /// let closed = AttemptOutcome::Failure(TransportError::Closed);
    ///
    /// let get = Attempt { random: 0.5, ..Attempt::new(&Method::GET) };
    /// assert_eq!(rule.decide(&closed, &get), Decision::Wait(Duration::from_millis(50)));
    ///
    /// // The server may have acted on it before the connection went.
    /// let post = Attempt::new(&Method::POST);
    /// assert_eq!(rule.decide(&closed, &post), Decision::Stop(StopReason::MethodNotAllowed));
    /// ```
    pub fn decide(&self, outcome: &AttemptOutcome<'_>, attempt: &Attempt<'_>) -> Decision {
        match self.wait_or_reason(outcome, attempt) {
            Ok((wait, _)) => Decision::Wait(wait),
            Err(reason) => Decision::Stop(reason),
        }
    }

    /// What [`decide`](Self::decide) says, and where the wait comes from.
    #[inline]
    pub(crate) fn wait_or_reason(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(Duration, WaitSource), StopReason> {
        // 1. Is a retry left?
        if attempt.attempt >= self.max_retries {
            return Err(StopReason::Exhausted);
        }
        // 2. Can the request be sent again?
        if !attempt.replayable {
            return Err(StopReason::NotReplayable);
        }
        // 3. Does the caller refuse?
        if attempt.vetoed {
            return Err(StopReason::NotRetryable);
        }
        let mut backoff = &self.backoff;
        match *outcome {
            AttemptOutcome::Response { status, headers } => {
                let row = self.row(status);
                match self.server_override(status, headers) {
                    // 4. Does the server say no, or yes?
                    Some(false) => return Err(StopReason::ServerSaidNo),
                    Some(true) => {}
                    // 5. Does the rule retry this response for this method?
                    None => check_response(row, attempt)?,
                }
                if let Some(own) = row.and_then(|row| row.backoff.as_ref()) {
                    backoff = own;
                }
            }
            // 5. Does the rule retry this failure for this method?
            AttemptOutcome::Failure(failure) => self.check_failure(failure, attempt)?,
        }
        // 6. May what was processed be repeated?
        if attempt.replaced && !self.may_repeat(attempt) {
            return Err(StopReason::MethodNotAllowed);
        }
        // 7. How long is the wait?
        let (wait, source) = self.planned_wait(outcome, attempt, backoff)?;
        // 8. Is there time for it?
        self.limits.check(wait, attempt)?;
        Ok((wait, source))
    }

    /// True if the request may be sent again although it was processed.
    fn may_repeat(&self, attempt: &Attempt<'_>) -> bool {
        attempt.idempotent || attempt.is_among(&self.sent_failures)
    }

    #[inline]
    fn check_failure(
        &self,
        failure: TransportError,
        attempt: &Attempt<'_>,
    ) -> Result<(), StopReason> {
        match self.failure_methods(failure) {
            None | Some(Methods::Never) => Err(StopReason::NotRetryable),
            Some(methods) if attempt.is_among(methods) => Ok(()),
            Some(_) => Err(StopReason::MethodNotAllowed),
        }
    }

    /// The methods for which `failure` is retried.
    #[inline]
    fn failure_methods(&self, failure: TransportError) -> Option<&Methods> {
        match failure {
            TransportError::Protocol | TransportError::Certificate => None,
            // Never through `sent_failures`: a proxy that wants a password wants it again.
            TransportError::Proxy {
                status: Some(status),
            } => {
                let refused = matches!(self.status_methods(status)?, Methods::Never);
                (self.unsent_failures && !refused).then_some(&Methods::Any)
            }
            timeout if timeout.is_timeout() && !self.timeouts => None,
            unsent if unsent.is_unsent() && self.unsent_failures => Some(&Methods::Any),
            _ => Some(&self.sent_failures),
        }
    }

    /// The first of `statuses` that contains `status`.
    #[inline]
    fn row(&self, status: StatusCode) -> Option<&StatusRule> {
        self.statuses.iter().find(|row| row.contains(status))
    }

    /// The methods of the first of `statuses` that contains `status`.
    #[inline]
    pub(crate) fn status_methods(&self, status: StatusCode) -> Option<&Methods> {
        self.row(status).map(|row| &row.methods)
    }

    /// What a response says from status 400 on about whether to retry: `false` in the override
    /// header or in the veto header, or `true` in the override header.
    #[inline]
    pub(crate) fn server_override(&self, status: StatusCode, headers: &HeaderMap) -> Option<bool> {
        if self.override_header.is_none() && self.veto_header.is_none() || status.as_u16() < 400 {
            return None;
        }
        let says = |name: &Option<HeaderName>| yes_or_no(headers.get(name.as_ref()?)?);
        match (says(&self.override_header), says(&self.veto_header)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (value, _) => value,
        }
    }

    /// True if anything in the rule could ever retry a request of `method`. If not, only the
    /// caller's own condition can.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let allows = |methods: &Methods| methods.allows(method, idempotent);
        self.max_retries > 0
            && (self.unsent_failures
                || self.override_header.is_some()
                || allows(&self.sent_failures)
                || self.statuses.iter().any(|rule| allows(&rule.methods)))
    }
}

/// Whether a response is retried by its `row` or by the caller's condition.
#[inline]
fn check_response(row: Option<&StatusRule>, attempt: &Attempt<'_>) -> Result<(), StopReason> {
    let row = row.map(|row| &row.methods);
    if row.is_some_and(|methods| attempt.is_among(methods)) {
        return Ok(());
    }
    match (row, attempt.condition) {
        (Some(Methods::Never), _) | (None, None | Some(Methods::Never)) => {
            Err(StopReason::NotRetryable)
        }
        (_, Some(condition)) if attempt.is_among(condition) => Ok(()),
        _ => Err(StopReason::MethodNotAllowed),
    }
}

#[inline]
fn yes_or_no(value: &HeaderValue) -> Option<bool> {
    match value.as_bytes().trim_ascii() {
        yes if yes.eq_ignore_ascii_case(b"true") => Some(true),
        no if no.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::rule::{StatusMatch, is_idempotent};

    #[track_caller]
    fn says(status: u16, value: &'static [u8], expected: Option<bool>) {
        let name = HeaderName::from_static("x-should-retry");
        let value = HeaderValue::from_bytes(value).unwrap();
        let headers = HeaderMap::from_iter([(name.clone(), value)]);
        let rule = RetryRule {
            override_header: Some(name),
            ..RetryRule::never()
        };
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(rule.server_override(status, &headers), expected);
        assert_eq!(RetryRule::never().server_override(status, &headers), None);
    }

    #[test]
    fn the_override_header_says_true_false_or_nothing() {
        says(400, b"true", Some(true));
        says(503, b"\t TRUE ", Some(true));
        says(400, b"False", Some(false));
        for nothing in [&b""[..], b"1", b"yes", b"true, false", b"\xe9", b"true\xa0"] {
            says(400, nothing, None);
        }
    }

    #[test]
    fn the_override_header_is_read_from_status_400_on() {
        says(399, b"true", None);
        says(200, b"false", None);
        says(999, b"false", Some(false));
    }

    #[test]
    fn of_the_veto_header_only_false_counts() {
        let [override_header, veto_header] =
            ["x-should-retry", "x-no-retry"].map(HeaderName::from_static);
        let rule = RetryRule {
            override_header: Some(override_header.clone()),
            veto_header: Some(veto_header.clone()),
            ..RetryRule::never()
        };
        let says = |status: u16, yes_or_no: &'static str, veto: &'static str| {
            let values = [
                (override_header.clone(), yes_or_no),
                (veto_header.clone(), veto),
            ];
            let values = values.map(|(name, value)| (name, HeaderValue::from_static(value)));
            let headers = HeaderMap::from_iter(values);
            rule.server_override(StatusCode::from_u16(status).unwrap(), &headers)
        };
        assert_eq!(says(503, "true", " False "), Some(false));
        assert_eq!(says(503, "", "false"), Some(false));
        assert_eq!(says(503, "false", "true"), Some(false));
        assert_eq!(says(503, "true", "true"), Some(true));
        assert_eq!(says(503, "", "true"), None);
        assert_eq!(says(399, "", "false"), None);
    }

    #[test]
    fn the_override_header_counts_by_its_first_value() {
        let name = HeaderName::from_static("x-should-retry");
        let [no, yes] = ["false", "true"].map(HeaderValue::from_static);
        let rule = RetryRule {
            override_header: Some(name.clone()),
            ..RetryRule::never()
        };
        let mut headers = HeaderMap::new();
        headers.append(&name, no);
        headers.append(&name, yes);
        assert_eq!(
            rule.server_override(StatusCode::BAD_REQUEST, &headers),
            Some(false)
        );
    }

    #[test]
    fn the_first_rule_that_contains_a_status_has_its_methods() {
        let statuses = vec![
            StatusRule {
                statuses: vec![StatusMatch::Code(503)],
                methods: Methods::Never,
                backoff: None,
            },
            StatusRule {
                statuses: vec![StatusMatch::Range(500, 599)],
                methods: Methods::Any,
                backoff: None,
            },
        ];
        let rule = RetryRule {
            statuses,
            ..RetryRule::never()
        };
        assert_eq!(
            rule.status_methods(StatusCode::SERVICE_UNAVAILABLE),
            Some(&Methods::Never)
        );
        assert_eq!(
            rule.status_methods(StatusCode::BAD_GATEWAY),
            Some(&Methods::Any)
        );
        assert_eq!(rule.status_methods(StatusCode::NOT_FOUND), None);
    }

    #[test]
    fn what_another_request_replaced_takes_a_method_that_may_be_repeated() {
        let name = HeaderName::from_static("x-should-retry");
        let yes = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("true"))]);
        let hour = Some(Duration::from_secs(3600));
        let rule = RetryRule {
            max_retries: 1,
            statuses: vec![StatusRule {
                statuses: vec![StatusMatch::Code(503)],
                methods: Methods::Any,
                backoff: None,
            }],
            override_header: Some(name),
            retry_after: RetryRule::transient().retry_after,
            ..RetryRule::never()
        };
        let reason = |rule: &RetryRule, status: u16, headers: &HeaderMap, attempt: &Attempt<'_>| {
            let status = StatusCode::from_u16(status).unwrap();
            let outcome = AttemptOutcome::Response { status, headers };
            let replaced = true;
            match rule.decide(
                &outcome,
                &Attempt {
                    replaced,
                    ..*attempt
                },
            ) {
                Decision::Wait(_) => None,
                Decision::Stop(reason) => Some(reason),
            }
        };
        let (post, nothing) = (Attempt::new(&Method::POST), HeaderMap::new());
        let not_allowed = Some(StopReason::MethodNotAllowed);
        assert_eq!(reason(&rule, 503, &nothing, &post), not_allowed);
        assert_eq!(reason(&rule, 400, &yes, &post), not_allowed);
        // What would not be retried anyway has its own reason, and comes before a limit's.
        let retried = Attempt { attempt: 1, ..post };
        let exhausted = Some(StopReason::Exhausted);
        assert_eq!(reason(&rule, 503, &nothing, &retried), exhausted);
        let not_retryable = Some(StopReason::NotRetryable);
        assert_eq!(reason(&rule, 404, &nothing, &post), not_retryable);
        let server_delay = hour;
        let late = Attempt {
            server_delay,
            ..post
        };
        assert_eq!(reason(&rule, 503, &nothing, &late), not_allowed);

        let idempotent = true;
        let safe = Attempt { idempotent, ..post };
        assert_eq!(reason(&rule, 503, &nothing, &safe), None);
        let sent_failures = Methods::Listed(vec![Method::POST]);
        let repeating = RetryRule {
            sent_failures,
            ..rule
        };
        assert_eq!(reason(&repeating, 503, &nothing, &post), None);
    }

    #[test]
    fn a_rule_could_retry_what_something_in_it_allows() {
        let could =
            |rule: &RetryRule, method: &Method| rule.could_retry(method, is_idempotent(method));
        let transient = RetryRule::transient();
        assert!(could(&transient, &Method::GET));
        assert!(!could(&transient, &Method::POST));
        assert!(!could(
            &RetryRule {
                max_retries: 0,
                ..transient.clone()
            },
            &Method::GET
        ));

        let three = RetryRule {
            max_retries: 3,
            ..RetryRule::never()
        };
        assert!(!could(&three, &Method::GET));
        assert!(could(
            &RetryRule {
                unsent_failures: true,
                ..three.clone()
            },
            &Method::POST
        ));
        let name = HeaderName::from_static("x-should-retry");
        assert!(could(
            &RetryRule {
                override_header: Some(name),
                ..three
            },
            &Method::POST
        ));
    }

    fn methods() -> impl Strategy<Value = Methods> {
        prop_oneof![
            Just(Methods::Never),
            Just(Methods::Idempotent),
            Just(Methods::Listed(vec![Method::GET, Method::PATCH])),
            Just(Methods::Any),
        ]
    }

    fn rules() -> impl Strategy<Value = RetryRule> {
        let status = (100_u16..=999, 100_u16..=999);
        let status = status.prop_map(|(first, last)| StatusMatch::Range(first, last));
        let statuses = (vec(status, 0..3), methods());
        let statuses = statuses.prop_map(|(statuses, methods)| StatusRule {
            statuses,
            methods,
            backoff: None,
        });
        let header = prop_oneof![
            9 => Just(None),
            1 => Just(Some(HeaderName::from_static("x-should-retry"))),
        ];
        (
            0_u32..3,
            vec(statuses, 0..3),
            methods(),
            prop::bool::weighted(0.2),
            any::<bool>(),
            header,
        )
            .prop_map(
                |(max_retries, statuses, sent_failures, unsent, timeouts, header)| RetryRule {
                    max_retries,
                    statuses,
                    sent_failures,
                    unsent_failures: unsent,
                    timeouts,
                    override_header: header,
                    ..RetryRule::never()
                },
            )
    }

    fn failures() -> Vec<TransportError> {
        use TransportError::*;
        let proxies = [
            None,
            Some(StatusCode::FORBIDDEN),
            Some(StatusCode::SERVICE_UNAVAILABLE),
        ];
        let proxies = proxies.map(|status| Proxy { status });
        let plain = [
            Dns,
            Connect,
            ConnectTimeout,
            Tls,
            NotProcessed,
            AfterRedirect,
            Timeout,
            Closed,
            Body,
            Certificate,
            Protocol,
        ];
        plain.into_iter().chain(proxies).collect()
    }

    proptest! {
        #[test]
        fn what_a_rule_could_never_retry_it_does_not(
            rule in rules(),
            method in prop::sample::select(vec![Method::GET, Method::POST, Method::PATCH]),
            idempotent: bool,
            status in 100_u16..=999,
        ) {
            let name = HeaderName::from_static("x-should-retry");
            let yes = HeaderMap::from_iter([(name, HeaderValue::from_static("true"))]);
            let nothing = HeaderMap::new();
            let status = StatusCode::from_u16(status).unwrap();
            let mut outcomes = vec![
                AttemptOutcome::Response { status, headers: &yes },
                AttemptOutcome::Response { status, headers: &nothing },
            ];
            outcomes.extend(failures().into_iter().map(AttemptOutcome::Failure));

            if !rule.could_retry(&method, idempotent) {
                let attempt = Attempt { idempotent, ..Attempt::new(&method) };
                outcomes.retain(|outcome| {
                    rule.decide(outcome, &attempt) == Decision::Wait(Duration::ZERO)
                });
                prop_assert_eq!(outcomes, vec![]);
            }
        }
    }
}
