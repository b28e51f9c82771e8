//! Retries, recoveries and stops as `tracing` events, and that nothing secret is in them nor in what our types
//! show of themselves.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderName, HeaderValue, Method};
use reqwest::Request;
use reqwest_retry_rules::{
    Backoff, BodySource, Deadline, FreshBody, Jitter, Methods, Overrides, RecoveredEvent,
    ResponseExt, RetryBudget, RetryEvent, RetryLabel, RetryLog, RetryMiddleware, RetryObserver,
    RetryPolicy, RetryRule, StopEvent, TotalTimeout,
};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::support::scripted::{self, Transport, URL, client, errors, fail, hang, ms, ok, status};

/// The preset, without chance: 100, 200, 400 milliseconds.
fn rule() -> RetryRule {
    RetryRule {
        backoff: Backoff {
            jitter: Jitter::NoJitter,
            ..RetryRule::transient().backoff
        },
        ..RetryRule::transient()
    }
}

/// All that is written to it.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn show(&self, value: &impl Debug) {
        let text = format!("{value:?}\n{value:#?}\n");
        self.0.lock().unwrap().extend_from_slice(text.as_bytes());
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Writes every event on this thread, of every level and target, for as long as the guard lives.
fn capture() -> (Output, impl Drop) {
    // The sends of other tests have no subscriber. While there is but one in the process, tracing
    // asks that of the thread alone that comes to an event first, and keeps what it answers.
    let _ = tracing_subscriber::registry().try_init();
    let output = Output::default();
    let guard = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(output.clone())
        .with_ansi(false)
        .without_time()
        .set_default();
    (output, guard)
}

/// What is written of a send.
async fn written(transport: &Transport, policy: impl Into<RetryPolicy>) -> Vec<String> {
    let (output, _guard) = capture();
    let _ = client(transport, policy)
        .get(URL)
        .with_extension(RetryLabel::from("mine"))
        .send()
        .await;
    output
        .text()
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

#[cfg(feature = "tracing")]
mod events {
    use super::*;
    use reqwest_retry_rules::{Judgement, LogLevel, PauseTerms, SharedPolicy, StatusRule};
    use std::collections::BTreeMap;
    use tracing::field::{Field, Visit};
    use tracing::{Event, Level, Subscriber};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    #[tokio::test(start_paused = true)]
    async fn a_line_reports_each_retry_and_the_stop() {
        let rule = RetryRule {
            max_retries: 2,
            ..rule()
        };
        let transport = Transport::new([status(503), fail(errors::refused()), status(502)]);
        assert_eq!(
            written(&transport, rule).await,
            [
                "INFO reqwest_retry_rules: retrying method=GET host=\"origin.test\" \
                 label=\"mine\" attempt=1 outcome=503 wait_ms=100",
                "INFO reqwest_retry_rules: retrying method=GET host=\"origin.test\" \
                 label=\"mine\" attempt=2 outcome=connect wait_ms=200",
                "WARN reqwest_retry_rules: giving up: every retry that the rule allows was made \
                 method=GET host=\"origin.test\" label=\"mine\" attempt=3 outcome=502 \
                 reason=\"exhausted\"",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_reports_an_answer_that_took_a_retry() {
        for (answer, code) in [(ok(), 200), (status(404), 404)] {
            let transport = Transport::new([fail(errors::closed()), answer]);
            assert_eq!(
                written(&transport, rule()).await,
                [
                    "INFO reqwest_retry_rules: retrying method=GET host=\"origin.test\" \
                     label=\"mine\" attempt=1 outcome=closed wait_ms=100"
                        .to_owned(),
                    format!(
                        "INFO reqwest_retry_rules: recovered method=GET host=\"origin.test\" \
                         label=\"mine\" attempt=2 outcome={code}"
                    ),
                ]
            );
        }
    }

    /// The levels at which a send that is given up and one that recovers are written.
    async fn levels(retry: LogLevel, stop: LogLevel) -> (Vec<String>, Vec<String>) {
        let policy = || RetryPolicy::from(rule()).log_levels(retry, stop);
        let level = |lines: Vec<String>| {
            let first = |line: String| line.split(' ').next().unwrap().to_owned();
            lines.into_iter().map(first).collect()
        };
        let given_up = Transport::new([status(503), fail(errors::builder())]);
        let recovers = Transport::new([status(503), ok()]);
        let given_up = written(&given_up, policy()).await;
        (level(given_up), level(written(&recovers, policy()).await))
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_sets_the_levels() {
        use LogLevel::*;
        for (retry, stop, given_up, recovered) in [
            (Info, Warn, vec!["INFO", "WARN"], vec!["INFO", "INFO"]),
            (Warn, Error, vec!["WARN", "ERROR"], vec!["WARN", "WARN"]),
            (Debug, Info, vec!["DEBUG", "INFO"], vec!["DEBUG", "DEBUG"]),
            (Trace, Debug, vec!["TRACE", "DEBUG"], vec!["TRACE", "TRACE"]),
            (Error, Trace, vec!["ERROR", "TRACE"], vec!["ERROR", "ERROR"]),
            (Off, Warn, vec!["WARN"], vec![]),
            (Info, Off, vec!["INFO"], vec!["INFO", "INFO"]),
            (Off, Off, vec![], vec![]),
        ] {
            let seen = levels(retry, stop).await;
            assert_eq!((seen.0, seen.1), (own(&given_up), own(&recovered)));
        }
    }

    fn own(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn observers_are_called_whatever_the_levels() {
        let output = Output::default();
        let policy = RetryPolicy::from(rule())
            .log_levels(LogLevel::Off, LogLevel::Off)
            .observer(secrets::Shows(output.clone()));
        let transport = Transport::new([status(503), ok()]);
        assert_eq!(written(&transport, policy.clone()).await, [""; 0]);
        let transport = Transport::new([status(503), fail(errors::builder())]);
        assert_eq!(written(&transport, policy).await, [""; 0]);
        let text = output.text();
        let named = |event: &str| text.lines().filter(|line| line.starts_with(event)).count();
        // Each is shown on one line and on several.
        assert_eq!(named("RetryEvent"), 4);
        assert_eq!((named("RecoveredEvent"), named("StopEvent")), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn no_line_reports_an_answer_at_once() {
        for answer in [ok(), status(404), status(500)] {
            assert_eq!(written(&Transport::new([answer]), rule()).await, [""; 0]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_that_never_began_has_no_outcome() {
        let policy = RetryPolicy::from(rule()).total_timeout(ms(0));
        let reason = reqwest_retry_rules::StopReason::TotalTimeout;
        assert_eq!(
            written(&Transport::new([]), policy).await,
            [format!(
                "WARN reqwest_retry_rules: giving up: {reason} method=GET host=\"origin.test\" \
                 label=\"mine\" attempt=0 reason=\"total_timeout\""
            )]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_reports_each_wait_for_an_origin_that_asked_for_rest() {
        let terms = PauseTerms {
            spread: 0,
            ..PauseTerms::default()
        };
        let policy = RetryPolicy::from(rule()).pause_origins(terms);
        let refused = status(429).header("retry-after", "2");
        let transport = Transport::new([refused, ok()]);
        let post = client(&transport, policy.clone()).post(URL);
        assert_eq!(post.send().await.unwrap().status(), 429);
        assert_eq!(
            written(&transport, policy.clone()).await,
            [
                "INFO reqwest_retry_rules: waiting for the origin method=GET \
                 host=\"origin.test\" label=\"mine\" wait_ms=2000"
            ]
        );
        // The twin: the pause is over.
        let transport = Transport::new([ok()]);
        assert_eq!(written(&transport, policy).await, [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_that_could_not_wait_for_its_origin_never_began() {
        let terms = PauseTerms {
            spread: 0,
            ..PauseTerms::default()
        };
        let policy = RetryPolicy::from(rule()).pause_origins(terms);
        let policy = policy.total_timeout(ms(1000));
        let transport = Transport::new([status(429).header("retry-after", "2")]);
        client(&transport, policy.clone())
            .post(URL)
            .send()
            .await
            .unwrap();
        let reason = reqwest_retry_rules::StopReason::Budget(ms(2000));
        assert_eq!(
            written(&transport, policy).await,
            [format!(
                "WARN reqwest_retry_rules: giving up: {reason} method=GET host=\"origin.test\" \
                 label=\"mine\" attempt=0 reason=\"budget\""
            )]
        );
    }

    /// The fields of an event, by name.
    type Fields = BTreeMap<&'static str, String>;

    /// Keeps all events.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<(Level, String, Fields)>>>);

    struct Reader(Fields);

    impl Visit for Reader {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.insert(field.name(), format!("{value:?}"));
        }

        fn record_u64(&mut self, field: &Field, value: u64) {
            self.0.insert(field.name(), format!("{value} of type u64"));
        }
    }

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut reader = Reader(Fields::new());
            event.record(&mut reader);
            let metadata = event.metadata();
            let target = metadata.target().to_owned();
            self.0
                .lock()
                .unwrap()
                .push((*metadata.level(), target, reader.0));
        }
    }

    async fn kept(acts: Vec<scripted::Act>, method: Method) -> Vec<(Level, String, Fields)> {
        let kept = Kept::default();
        let _guard = tracing_subscriber::registry()
            .with(kept.clone())
            .set_default();
        let transport = Transport::new(acts);
        // A POST could be retried, but not for a status.
        let rule = RetryRule {
            unsent_failures: true,
            ..rule()
        };
        let _ = client(&transport, rule).request(method, URL).send().await;
        kept.0.lock().unwrap().clone()
    }

    fn fields(fields: &[(&'static str, &str)]) -> Fields {
        fields
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_fields_of_a_retry_and_of_a_stop_are_these() {
        let events = kept(vec![status(503), fail(errors::builder())], Method::PUT).await;
        let target = || "reqwest_retry_rules".to_owned();
        let retry = fields(&[
            ("message", "retrying"),
            ("method", "PUT"),
            ("host", "\"origin.test\""),
            ("attempt", "1 of type u64"),
            ("outcome", "503"),
            ("wait_ms", "100 of type u64"),
        ]);
        let stop = fields(&[
            ("message", "giving up: the rule does not retry this"),
            ("method", "PUT"),
            ("host", "\"origin.test\""),
            ("attempt", "2 of type u64"),
            ("outcome", "error"),
            ("reason", "\"not_retryable\""),
        ]);
        let expected = [
            (Level::INFO, target(), retry),
            (Level::WARN, target(), stop),
        ];
        assert_eq!(events, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn the_fields_of_a_recovery_are_these() {
        let events = kept(vec![status(503), status(404)], Method::PUT).await;
        let recovery = fields(&[
            ("message", "recovered"),
            ("method", "PUT"),
            ("host", "\"origin.test\""),
            ("attempt", "2 of type u64"),
            ("outcome", "404"),
        ]);
        let expected = (Level::INFO, "reqwest_retry_rules".to_owned(), recovery);
        assert_eq!(events[1..], [expected]);
    }

    /// The advice that is logged when a middleware with this policy is made, and about which route.
    fn advised(policy: impl Into<RetryPolicy>) -> Vec<(String, Option<String>)> {
        let kept = Kept::default();
        let _guard = tracing_subscriber::registry()
            .with(kept.clone())
            .set_default();
        let _ = RetryMiddleware::new(policy);
        let events = kept.0.lock().unwrap().clone();
        let advice = events.into_iter().map(|(level, target, mut fields)| {
            assert_eq!(
                (level, target.as_str()),
                (Level::WARN, "reqwest_retry_rules")
            );
            (fields.remove("advice").unwrap(), fields.remove("route"))
        });
        advice.collect()
    }

    /// Retries of which nothing in the rule is ever made.
    fn nothing() -> RetryRule {
        RetryRule {
            max_retries: 3,
            ..RetryRule::never()
        }
    }

    fn at_once() -> RetryRule {
        RetryRule {
            max_retries: 5,
            statuses: vec![StatusRule::new([429], Methods::Any)],
            ..RetryRule::never()
        }
    }

    const NOTHING: &str = "\"nothing_retried\"";
    const AT_ONCE: &str = "\"again_at_once\"";

    #[test]
    fn a_rule_that_retries_nothing_or_at_once_is_worth_a_line_when_the_middleware_is_made() {
        let (output, _guard) = capture();
        let _ = RetryMiddleware::new(at_once());
        let _ = RetryMiddleware::shared(SharedPolicy::new(nothing()));
        let text = output.text();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "WARN reqwest_retry_rules: look at the rule: what `statuses[0]` retries is sent \
                 again at once, up to 5 times: it has no backoff, and the server is not asked how \
                 long to wait advice=\"again_at_once\"",
                "WARN reqwest_retry_rules: look at the rule: there are retries, and the rule \
                 retries nothing: no status, no failure advice=\"nothing_retried\"",
            ]
        );
    }

    #[test]
    fn a_sensible_rule_and_one_without_retries_are_not_advised_about() {
        // Without jitter, which `advice` names and no log does.
        for rule in [rule(), RetryRule::transient(), RetryRule::never()] {
            assert_eq!(advised(rule), []);
        }
        let none = RetryRule {
            max_retries: 0,
            ..at_once()
        };
        assert_eq!(advised(none), []);
    }

    #[test]
    fn a_rule_is_advised_about_once_for_all_the_routes_that_have_it() {
        let policy = RetryPolicy::from(rule())
            .route("a.test".parse().unwrap(), RetryRule::transient())
            .route("b.test".parse().unwrap(), at_once())
            .route("c.test".parse().unwrap(), nothing())
            .route("d.test".parse().unwrap(), at_once());
        let about =
            |name: &str, route: &str| (name.to_owned(), Some(format!("{route} of type u64")));
        assert_eq!(advised(policy), [about(AT_ONCE, "1"), about(NOTHING, "2")]);
        let policy = RetryPolicy::from(nothing()).route("a.test".parse().unwrap(), nothing());
        assert_eq!(advised(policy), [(NOTHING.to_owned(), None)]);
    }

    #[test]
    fn nothing_is_advised_if_a_closure_may_know_better_or_stops_are_not_logged() {
        let judge =
            |policy: RetryPolicy| policy.judge_body(Methods::Any, 9, |_, _| Judgement::Retry);
        let silent = |rule: RetryRule| advised(judge(rule.into()));
        assert_eq!(silent(nothing()), []);
        assert_eq!(silent(at_once()), []);
        let retries = |rule: RetryRule| RetryPolicy::from(rule).retry_if(Methods::Any, |_| true);
        assert_eq!(advised(retries(nothing())), []);
        assert_eq!(advised(retries(at_once())).len(), 1);
        let delays = |rule: RetryRule| RetryPolicy::from(rule).server_delay(|_| Some(ms(5)));
        assert_eq!(advised(delays(at_once())), []);
        assert_eq!(advised(delays(nothing())).len(), 1);
        let off = RetryPolicy::from(nothing()).log_levels(LogLevel::Warn, LogLevel::Off);
        assert_eq!(advised(off), []);
    }

    #[tokio::test(start_paused = true)]
    async fn the_host_is_the_one_that_was_asked() {
        let elsewhere = |code| status(code).answered_by("http://other.test/");
        // A retry and a recovery; a stop.
        for (method, count) in [(Method::GET, 2), (Method::POST, 1)] {
            let events = kept(vec![elsewhere(503), elsewhere(200)], method).await;
            let hosts: Vec<_> = events
                .iter()
                .map(|(_, _, fields)| &fields["host"])
                .collect();
            assert_eq!(hosts, vec!["\"origin.test\""; count]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_comes_before_its_wait() {
        let (output, _guard) = capture();
        let transport = Transport::new([status(503), ok()]);
        let client = client(&transport, rule());
        let before = async {
            tokio::time::sleep(ms(99)).await;
            output.text().lines().count()
        };
        let (sent, lines) = tokio::join!(client.get(URL).send(), before);
        sent.unwrap();
        assert_eq!((lines, transport.times()), (1, vec![0, 100]));
    }
}

/// It passes through. The twin: a POST that could be retried, but not for a status.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_of_a_request_that_could_not_be_retried() {
    for (unsent_failures, lines) in [(false, 0), (true, usize::from(cfg!(feature = "tracing")))] {
        let (output, _guard) = capture();
        let transport = Transport::new([status(503)]);
        let rule = RetryRule {
            unsent_failures,
            ..rule()
        };
        let posted = client(&transport, rule).post(URL).send().await.unwrap();
        assert_eq!(posted.status(), 503);
        assert_eq!(output.text().lines().count(), lines, "{unsent_failures}");
    }
}

#[cfg(not(feature = "tracing"))]
#[tokio::test(start_paused = true)]
async fn without_the_feature_nothing_is_written() {
    let transport = Transport::new(scripted::times(4, || status(503)));
    assert_eq!(written(&transport, rule()).await, [""; 0]);
    assert_eq!(transport.count(), 4);
}

mod secrets {
    use super::*;

    /// Each is in one place where secrets are kept.
    const SECRETS: [&str; 12] = [
        "user-in-url",
        "password-in-url",
        "token-in-query",
        "secret-in-path",
        "secret-in-fragment",
        "token-in-authorization",
        "token-in-cookie",
        "token-in-custom-header",
        "secret-in-request-body",
        "token-in-set-cookie",
        "token-in-location",
        "secret-in-response-body",
    ];

    #[track_caller]
    fn assert_none(output: &Output) {
        let text = output.text();
        let holds = |line: &&str| SECRETS.iter().any(|secret| line.contains(secret));
        let found: Vec<_> = text.lines().filter(holds).collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    fn request(method: Method) -> Request {
        let url = "http://user-in-url:password-in-url@origin.test/secret-in-path?token-in-query=1\
                   &key=token-in-query#secret-in-fragment";
        let mut request = Request::new(method, url.parse().unwrap());
        let headers = request.headers_mut();
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_static("Bearer token-in-authorization"),
        );
        headers.insert(COOKIE, HeaderValue::from_static("session=token-in-cookie"));
        headers.insert(
            "x-api-key",
            HeaderValue::from_static("token-in-custom-header"),
        );
        *request.body_mut() = Some("secret-in-request-body".into());
        request
    }

    fn refused() -> scripted::Act {
        status(503)
            .header("set-cookie", "session=token-in-set-cookie")
            .header("location", "http://origin.test/?token-in-location")
            .header("retry-after", "token-in-custom-header")
            .body("secret-in-response-body")
    }

    /// Shows every event.
    pub struct Shows(pub Output);

    impl RetryObserver for Shows {
        fn on_retry(&self, event: &RetryEvent<'_>) {
            self.0.show(event);
        }

        fn on_recovered(&self, event: &RecoveredEvent<'_>) {
            self.0.show(event);
        }

        fn on_stop(&self, event: &StopEvent<'_>) {
            self.0.show(event);
        }
    }

    /// A policy that shows all that it sees, and itself.
    fn showing(output: &Output) -> RetryPolicy {
        let sees = output.clone();
        let policy = RetryPolicy::from(rule())
            .retry_if(Methods::Never, move |head| {
                sees.show(head);
                false
            })
            .idempotency_key(HeaderName::from_static("x-api-key"))
            .observer(Shows(output.clone()));
        output.show(&policy);
        output.show(&RetryMiddleware::new(policy.clone()));
        policy
    }

    #[tokio::test(start_paused = true)]
    async fn none_is_in_what_is_written_of_a_send() {
        let (output, _guard) = capture();
        let policy = showing(&output).total_timeout(ms(60_000));
        let scripts: [fn() -> Vec<scripted::Act>; 4] = [
            || vec![refused(), fail(errors::refused()), refused(), refused()],
            || vec![refused(), fail(errors::closed()), fail(errors::builder())],
            || vec![refused(), ok().header("set-cookie", "token-in-set-cookie")],
            || vec![refused(), hang()],
        ];
        for script in scripts {
            for method in [Method::GET, Method::POST] {
                let log = RetryLog::new();
                let mut map = scripted::carrying(log.clone());
                map.insert(RetryLabel::from("mine"));
                let client = client(&Transport::new(script()), policy.clone());
                let sent = client
                    .execute_with_extensions(request(method), &mut map)
                    .await;
                output.show(&log);
                output.show(&log.report().unwrap());
                output.show(&log.report().unwrap().records());
                if let Ok(response) = &sent {
                    output.show(&response.retry_report().unwrap());
                }
            }
        }
        let wanted = if cfg!(feature = "tracing") { 20 } else { 10 };
        assert!(
            output.text().lines().count() > wanted,
            "nothing was written"
        );
        assert_none(&output);
    }

    #[tokio::test(start_paused = true)]
    async fn none_is_in_what_our_types_show_of_themselves() {
        let output = Output::default();
        let policy = showing(&output);
        let header = HeaderValue::from_static("token-in-custom-header");
        let body = FreshBody::from("secret-in-request-body").header(AUTHORIZATION, header);
        output.show(&body);
        output.show(&BodySource::new(|| {
            Ok::<_, io::Error>("secret-in-request-body")
        }));
        output.show(
            &Overrides::new()
                .policy(policy.clone())
                .rule(rule())
                .deadline(Deadline::after(ms(1)))
                .total_timeout(ms(1))
                .label("mine")
                .log(RetryLog::new()),
        );
        output.show(&TotalTimeout(ms(1)));
        let budget = RetryBudget::default();
        let transport = Transport::new([refused(), ok()]);
        let sent = client(&transport, policy.budget(budget.clone()));
        sent.execute(request(Method::GET)).await.unwrap();
        output.show(&budget);
        assert_none(&output);
    }

    #[test]
    fn the_search_finds_what_is_there() {
        for secret in SECRETS {
            let output = Output::default();
            output.show(&request(Method::GET));
            output.show(&format!("… {secret} …"));
            let found = std::panic::catch_unwind(|| assert_none(&output));
            assert!(found.is_err());
        }
    }
}
