//! The loop against real servers that count: what is sent again, what is not, and what comes back.

use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use http::{Extensions, HeaderName, Method, StatusCode};
use http_body_util::BodyExt;
use reqwest::{Body, Request};
use reqwest_middleware::{ClientWithMiddleware, Error, Middleware, Next};
use reqwest_retry_rules::{
    AttemptResult, Backoff, Limits, Methods, ReplaySafe, ResendCount, ResponseExt, RetryEvent,
    RetryLog, RetryObserver, RetryPolicy, RetryReport, RetryRule, StatusMatch, StatusRule,
    StopReason, TransportError,
};

use crate::support::chain::{Look, Notes, Scripted, at_once, retrying, retrying_around};
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::script::{Act, Answer, End};
use crate::support::{client, eventually};

/// One send under one rule against one script, and what is to come of it.
struct Row {
    name: &'static str,
    rule: RetryRule,
    method: Method,
    replay_safe: Option<bool>,
    /// How long the first attempt is given.
    patience: Option<Duration>,
    script: Vec<Act>,
    /// How many requests reach the server.
    requests: usize,
    /// The status that comes back, or the class of the error that does.
    came: Result<u16, TransportError>,
    stop: Option<StopReason>,
}

impl Row {
    /// A send that is sent once and answered with a status that is none of the rule's.
    fn new(name: &'static str, method: Method, script: impl IntoIterator<Item = Act>) -> Row {
        Row {
            name,
            rule: at_once(),
            method,
            replay_safe: None,
            patience: None,
            script: script.into_iter().collect(),
            requests: 1,
            came: Ok(200),
            stop: None,
        }
    }

    fn under(self, rule: RetryRule) -> Row {
        Row { rule, ..self }
    }

    fn replay_safe(self, safe: bool) -> Row {
        Row {
            replay_safe: Some(safe),
            ..self
        }
    }

    fn impatient(self) -> Row {
        Row {
            patience: Some(Duration::from_millis(300)),
            ..self
        }
    }

    fn answered(self, status: u16, requests: usize) -> Row {
        Row {
            came: Ok(status),
            requests,
            ..self
        }
    }

    fn given_up(self, status: u16, requests: usize, reason: StopReason) -> Row {
        Row {
            stop: Some(reason),
            ..self.answered(status, requests)
        }
    }

    fn failed(self, failure: TransportError, requests: usize, reason: StopReason) -> Row {
        Row {
            came: Err(failure),
            requests,
            stop: Some(reason),
            ..self
        }
    }

    async fn check(self) {
        let server = H1::start(self.script).await;
        let patience = Look(move |request: &mut Request, extensions: &mut Extensions| {
            let first = extensions.get::<ResendCount>().is_none();
            *request.timeout_mut() = self.patience.filter(|_| first);
        });
        let (client, log) = (retrying_around(self.rule, patience), RetryLog::new());
        let mut request = client
            .request(self.method, server.url("/"))
            .body("body")
            .with_extension(log.clone());
        if let Some(safe) = self.replay_safe {
            request = request.with_extension(ReplaySafe(safe));
        }
        let sent = tokio::time::timeout(Duration::from_secs(30), request.send());
        let came = match sent.await.expect(self.name) {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) => Err(reqwest_retry_rules::classify(&error).unwrap()),
        };
        let report = log.report().unwrap();
        assert_eq!(
            (
                came,
                server.count(),
                report.stop_reason(),
                report.attempts()
            ),
            (self.came, self.requests, self.stop, self.requests as u32),
            "{}",
            self.name
        );
        for request in server.requests() {
            assert_eq!(request.body, "body", "{}", self.name);
        }
    }
}

/// One status, retried for these methods.
fn for_status(status: u16, methods: Methods) -> RetryRule {
    RetryRule {
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(status)],
            methods,
            backoff: None,
        }],
        ..at_once()
    }
}

fn overridable() -> RetryRule {
    RetryRule {
        override_header: Some(HeaderName::from_static("x-should-retry")),
        ..at_once()
    }
}

fn status(status: u16) -> Act {
    Act::status(status)
}

fn saying(status: u16, should_retry: &str) -> Act {
    let answer = Answer::new(status).body("refused");
    answer.header("x-should-retry", should_retry).into()
}

fn ok() -> Act {
    Act::ok("fine")
}

#[tokio::test]
async fn a_status_is_sent_for_again_as_the_rule_says() {
    use StopReason::*;
    let any = || for_status(429, Methods::Any);
    let listed = || for_status(503, Methods::Listed(vec![Method::PATCH]));
    for row in [
        Row::new(
            "GET passes by itself",
            Method::GET,
            [status(503), status(503), ok()],
        )
        .answered(200, 3),
        Row::new("GET 404 is an answer", Method::GET, [status(404), ok()]).answered(404, 1),
        Row::new("GET 500 is an answer", Method::GET, [status(500), ok()]).answered(500, 1),
        Row::new("GET at once", Method::GET, [ok()]).answered(200, 1),
        Row::new("GET with three retries", Method::GET, [status(503)]).given_up(503, 4, Exhausted),
        Row::new(
            "GET changes its mind",
            Method::GET,
            [status(503), status(404), ok()],
        )
        .answered(404, 2),
        Row::new(
            "GET through all of them",
            Method::GET,
            [status(429), status(502), status(504), ok()],
        )
        .answered(200, 4),
        Row::new("PUT", Method::PUT, [status(503), ok()]).answered(200, 2),
        Row::new("DELETE", Method::DELETE, [status(503), ok()]).answered(200, 2),
        Row::new("HEAD", Method::HEAD, [status(503), ok()]).answered(200, 2),
        Row::new("POST", Method::POST, [status(503), ok()]).given_up(503, 1, MethodNotAllowed),
        Row::new("PATCH", Method::PATCH, [status(503), ok()]).given_up(503, 1, MethodNotAllowed),
        Row::new(
            "a method of one's own",
            "PURGE".parse().unwrap(),
            [status(503), ok()],
        )
        .given_up(503, 1, MethodNotAllowed),
        Row::new("POST 404 is an answer", Method::POST, [status(404), ok()]).answered(404, 1),
        Row::new("POST that is safe", Method::POST, [status(503), ok()])
            .replay_safe(true)
            .answered(200, 2),
        Row::new("GET that is not safe", Method::GET, [status(503), ok()])
            .replay_safe(false)
            .given_up(503, 1, MethodNotAllowed),
        Row::new("POST 429 for any method", Method::POST, [status(429), ok()])
            .under(any())
            .answered(200, 2),
        Row::new("POST 503 beside it", Method::POST, [status(503), ok()])
            .under(any())
            .answered(503, 1),
        Row::new("any method, safe or not", Method::POST, [status(429), ok()])
            .under(any())
            .replay_safe(false)
            .answered(200, 2),
        Row::new("PATCH, listed", Method::PATCH, [status(503), ok()])
            .under(listed())
            .answered(200, 2),
        Row::new("GET, not listed", Method::GET, [status(503), ok()])
            .under(listed())
            .given_up(503, 1, MethodNotAllowed),
        Row::new("for no method", Method::GET, [status(503), ok()])
            .under(for_status(503, Methods::Never))
            .given_up(503, 1, NotRetryable),
    ] {
        row.check().await;
    }
}

#[tokio::test]
async fn a_failure_is_sent_again_where_twice_is_as_good_as_once() {
    use StopReason::*;
    use TransportError::*;
    let no_timeouts = || RetryRule {
        timeouts: false,
        ..at_once()
    };
    let close = || Act::CloseAfterReading;
    let reset = || Act::ResetAfterReading;
    for row in [
        Row::new("GET cut off", Method::GET, [close(), ok()]).answered(200, 2),
        Row::new("POST cut off", Method::POST, [close(), ok()]).failed(Closed, 1, MethodNotAllowed),
        Row::new("GET reset", Method::GET, [reset(), ok()]).answered(200, 2),
        Row::new("POST reset", Method::POST, [reset(), ok()]).failed(Closed, 1, MethodNotAllowed),
        Row::new(
            "GET cut off in the head",
            Method::GET,
            [Act::half_head(End::Close), ok()],
        )
        .answered(200, 2),
        Row::new(
            "POST cut off in the head",
            Method::POST,
            [Act::half_head(End::Close), ok()],
        )
        .failed(Closed, 1, MethodNotAllowed),
        Row::new("GET in silence", Method::GET, [Act::Silence, ok()])
            .impatient()
            .answered(200, 2),
        Row::new("POST in silence", Method::POST, [Act::Silence, ok()])
            .impatient()
            .failed(Timeout, 1, MethodNotAllowed),
        Row::new(
            "GET in silence, no timeouts",
            Method::GET,
            [Act::Silence, ok()],
        )
        .under(no_timeouts())
        .impatient()
        .failed(Timeout, 1, NotRetryable),
        Row::new("GET cut off, no timeouts", Method::GET, [close(), ok()])
            .under(no_timeouts())
            .answered(200, 2),
        Row::new("POST that is safe", Method::POST, [close(), ok()])
            .replay_safe(true)
            .answered(200, 2),
        Row::new("GET that is not safe", Method::GET, [close(), ok()])
            .replay_safe(false)
            .failed(Closed, 1, MethodNotAllowed),
        Row::new("GET cut off each time", Method::GET, [close()]).failed(Closed, 4, Exhausted),
        Row::new(
            "GET, one fault after another",
            Method::GET,
            [close(), status(503), reset(), ok()],
        )
        .answered(200, 4),
        Row::new("garbage", Method::GET, [Act::garbage(), ok()]).failed(Protocol, 1, NotRetryable),
    ] {
        row.check().await;
    }
}

#[tokio::test]
async fn the_server_overrides_the_rule_where_the_rule_lets_it() {
    use StopReason::*;
    for row in [
        Row::new("POST 409, true", Method::POST, [saying(409, "true"), ok()])
            .under(overridable())
            .answered(200, 2),
        Row::new("POST 409, nothing", Method::POST, [status(409), ok()])
            .under(overridable())
            .answered(409, 1),
        Row::new("GET 503, false", Method::GET, [saying(503, "false"), ok()])
            .under(overridable())
            .given_up(503, 1, ServerSaidNo),
        Row::new("GET 503, nothing", Method::GET, [status(503), ok()])
            .under(overridable())
            .answered(200, 2),
        Row::new(
            "GET 503, neither",
            Method::GET,
            [saying(503, "maybe"), ok()],
        )
        .under(overridable())
        .answered(200, 2),
        Row::new(
            "POST 503, neither",
            Method::POST,
            [saying(503, "maybe"), ok()],
        )
        .under(overridable())
        .given_up(503, 1, MethodNotAllowed),
        Row::new(
            "POST 503, loudly",
            Method::POST,
            [saying(503, " TRUE "), ok()],
        )
        .under(overridable())
        .answered(200, 2),
        Row::new("GET 404, false", Method::GET, [saying(404, "false"), ok()])
            .under(overridable())
            .given_up(404, 1, ServerSaidNo),
        Row::new(
            "GET 200, true",
            Method::GET,
            [saying(200, "true"), status(500)],
        )
        .under(overridable())
        .answered(200, 1),
        Row::new(
            "POST 409, true each time",
            Method::POST,
            [saying(409, "true")],
        )
        .under(overridable())
        .given_up(409, 4, Exhausted),
        Row::new(
            "GET 503, false, unasked",
            Method::GET,
            [saying(503, "false"), ok()],
        )
        .answered(200, 2),
        Row::new(
            "POST 409, true, unasked",
            Method::POST,
            [saying(409, "true"), ok()],
        )
        .answered(409, 1),
    ] {
        row.check().await;
    }
}

#[tokio::test]
async fn every_attempt_is_the_same_request() {
    let server = H1::start([status(503), Act::CloseAfterReading, status(503), ok()]).await;
    let url = server.url("/a%20path?and=a&and=query");
    let request = retrying(at_once()).put(url);
    let request = request.header("x-twice", "one").header("x-twice", "two");
    let request = request.basic_auth("user", Some("secret")).body("body");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let sent: Vec<_> = server
        .requests()
        .into_iter()
        .map(|sent| (sent.method, sent.path, sent.headers, sent.body))
        .collect();
    assert_eq!(sent, vec![sent[0].clone(); 4]);
    let (method, path, headers, body) = &sent[0];
    assert_eq!(
        (method, path.as_str()),
        (&Method::PUT, "/a%20path?and=a&and=query")
    );
    assert_eq!(
        headers.get_all("x-twice").iter().collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert!(headers.contains_key("authorization"));
    assert_eq!(body, "body");
}

#[tokio::test]
async fn the_last_response_comes_back_as_it_was_answered() {
    let last = Answer::new(503)
        .header("x-left", "0")
        .body("the third refusal");
    let server = H1::start([Answer::new(503).body("the first"), Answer::new(503), last]).await;
    let rule = RetryRule {
        max_retries: 2,
        ..at_once()
    };
    let url = server.url("/path?query=1");
    let response = retrying(rule).get(&url).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["x-left"], "0");
    assert_eq!(response.url().as_str(), url);
    assert_eq!(response.remote_addr(), Some(server.addr));
    assert_eq!(response.text().await.unwrap(), "the third refusal");
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn a_final_timeout_still_says_so() {
    let server = H1::start(Act::Silence).await;
    let rule = RetryRule {
        max_retries: 1,
        ..at_once()
    };
    let url = server.url("/slow");
    let request = retrying(rule).get(&url).timeout(Duration::from_millis(300));
    let error = request.send().await.unwrap_err();
    assert!(error.is_timeout() && !error.is_connect(), "{error:?}");
    assert_eq!(error.url().unwrap().as_str(), url);
    assert_eq!(error.status(), None);
    eventually("both requests arrived", || server.count() == 2).await;
}

#[tokio::test]
async fn a_final_refusal_to_connect_still_says_so() {
    let (refused, log) = (Refused::new(), RetryLog::new());
    let request = retrying(at_once())
        .get(refused.url("/"))
        .with_extension(log.clone());
    let error = request.send().await.unwrap_err();
    assert!(error.is_connect() && !error.is_timeout(), "{error:?}");
    assert_eq!(error.url().unwrap().as_str(), refused.url("/"));
    assert_eq!(log.report().unwrap().attempts(), 4);
}

#[tokio::test]
async fn an_error_made_of_a_status_comes_back_at_once_and_still_says_which() {
    /// Turns every refused response into an error before the retries see it.
    struct Strict;

    #[async_trait::async_trait]
    impl Middleware for Strict {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> reqwest_middleware::Result<reqwest::Response> {
            Ok(next.run(request, extensions).await?.error_for_status()?)
        }
    }

    let server = H1::start([status(503), ok()]).await;
    let client = retrying_around(at_once(), Strict);
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(server.count(), 1);
}

/// An error of a middleware further in, with or without one of reqwest's behind it.
#[derive(Debug)]
struct Signing(Option<reqwest_middleware::Error>);

impl fmt::Display for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request could not be signed")
    }
}

impl std::error::Error for Signing {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_ref().map(|error| error as _)
    }
}

/// Fails each attempt before it is sent, or wraps the error it fails with.
#[derive(Clone, Copy)]
enum Signer {
    Fails,
    Wraps,
}

#[async_trait::async_trait]
impl Middleware for Signer {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        match self {
            Signer::Fails => Err(Error::middleware(Signing(None))),
            Signer::Wraps => next
                .run(request, extensions)
                .await
                .map_err(|error| Error::middleware(Signing(Some(error)))),
        }
    }
}

#[track_caller]
fn signing(error: &Error) -> &Signing {
    let Error::Middleware(error) = error else {
        panic!("not of a middleware: {error:?}")
    };
    error.downcast_ref().unwrap()
}

#[tokio::test]
async fn an_error_of_a_middleware_comes_straight_back_with_its_type() {
    let (server, log) = (H1::start(ok()).await, RetryLog::new());
    let client = retrying_around(at_once(), Signer::Fails);
    let request = client.get(server.url("/")).with_extension(log.clone());
    let error = request.send().await.unwrap_err();
    assert!(signing(&error).source().is_none());
    assert_eq!(error.to_string(), "the request could not be signed");
    let report = log.report().unwrap();
    assert_eq!(report.attempts(), 1);
    assert_eq!(report.records()[0].result(), AttemptResult::Error);
    assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_transport_failure_that_a_middleware_wrapped_is_sent_again() {
    let server = H1::start([Act::CloseAfterReading, ok()]).await;
    let client = retrying_around(at_once(), Signer::Wraps);
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));

    let server = H1::start(Act::CloseAfterReading).await;
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert!(signing(&error).source().is_some());
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn a_request_that_cannot_be_built_never_starts() {
    let log = RetryLog::new();
    let request = retrying(at_once())
        .get("http://")
        .with_extension(log.clone());
    let error = request.send().await.unwrap_err();
    assert!(error.is_builder(), "{error:?}");
    assert_eq!(log.report(), None);
}

/// Whether somebody holds a copy of the body, and whether anything is in the extensions.
type Passing = (bool, bool);

/// A client whose innermost middleware notes how each request comes by.
fn watched(policy: impl Into<RetryPolicy>) -> (ClientWithMiddleware, Notes<Passing>) {
    let notes = Notes::new();
    let noted = notes.clone();
    let look = Look(move |request: &mut Request, extensions: &mut Extensions| {
        let body = request.body_mut().take().unwrap();
        let mut frames = Box::pin(body);
        let waker = std::task::Waker::noop();
        let frame = std::pin::pin!(frames.frame()).poll(&mut std::task::Context::from_waker(waker));
        let std::task::Poll::Ready(Some(Ok(frame))) = frame else {
            panic!("a body in memory is there at once")
        };
        let bytes = frame.into_data().unwrap();
        noted.note((!bytes.is_unique(), !extensions.is_empty()));
        *request.body_mut() = Some(Body::from(bytes));
    });
    (retrying_around(policy, look), notes)
}

#[tokio::test]
async fn what_is_never_sent_again_passes_through_without_a_copy() {
    let put = Method::PUT;
    let none = || RetryRule {
        max_retries: 0,
        ..at_once()
    };
    for (name, rule, method, copied) in [
        ("no retries", none(), put.clone(), false),
        (
            "the rule that never does",
            RetryRule::never(),
            put.clone(),
            false,
        ),
        (
            "a method that nothing allows",
            at_once(),
            Method::POST,
            false,
        ),
        ("one that could be", at_once(), put, true),
    ] {
        let server = H1::start([status(503), ok()]).await;
        let (client, notes) = watched(rule);
        // Large enough to be shared where it is kept; less would be copied.
        let request = client
            .request(method, server.url("/"))
            .body(vec![b'x'; 2000]);
        let (client, built) = request.build_split();
        let mut extensions = Extensions::new();
        let sent = client.execute_with_extensions(built.unwrap(), &mut extensions);
        let status = sent.await.unwrap().status().as_u16();
        assert_eq!(notes.take()[0], (copied, false), "{name}");
        assert_eq!(status, if copied { 200 } else { 503 }, "{name}");
    }
}

#[tokio::test]
async fn without_retries_nothing_is_left_anywhere() {
    for (max_retries, left) in [(0, false), (1, true)] {
        let server = H1::start(status(503)).await;
        let rule = RetryRule {
            max_retries,
            ..at_once()
        };
        let mut extensions = Extensions::new();
        let request = client()
            .build()
            .unwrap()
            .get(server.url("/"))
            .build()
            .unwrap();
        let sent = retrying(rule);
        let response = sent
            .execute_with_extensions(request, &mut extensions)
            .await
            .unwrap();
        assert_eq!(response.retry_report().is_some(), left);
        assert_eq!(extensions.get::<RetryReport>().is_some(), left);
        assert_eq!(extensions.is_empty(), !left);
    }
}

fn streamed() -> Body {
    let pieces = ["one ", "two ", "three"];
    Body::wrap_stream(stream::iter(pieces.map(Ok::<_, std::io::Error>)))
}

/// Lets a refused port come up when the first retry is decided.
struct ComesUp {
    refused: Mutex<Option<Refused>>,
    server: Arc<Mutex<Option<H1>>>,
}

impl RetryObserver for ComesUp {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        if let Some(refused) = self.refused.lock().unwrap().take() {
            *self.server.lock().unwrap() = Some(H1::on(refused.come_up(), None, ok()));
        }
    }
}

#[tokio::test]
async fn a_stream_is_no_error_before_it_is_sent() {
    for method in [Method::PUT, Method::POST] {
        let server = H1::start(ok()).await;
        let request = retrying(at_once())
            .request(method, server.url("/"))
            .body(streamed());
        let response = request.send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (200, 1));
        assert_eq!(server.requests()[0].body, "one two three");
    }
}

#[tokio::test]
async fn a_stream_that_was_read_is_not_sent_again() {
    let server = H1::start([status(503), ok()]).await;
    let client = retrying(at_once());
    let request = client.put(server.url("/")).body(streamed());
    let response = request.send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    let report = response.retry_report().unwrap();
    assert_eq!(report.stop_reason(), Some(StopReason::NotReplayable));
    assert_eq!(response.text().await.unwrap(), "refused");
    assert_eq!(server.requests()[0].body, "one two three");

    let server = H1::start([status(503), ok()]).await;
    let request = client.put(server.url("/")).body("one two three");
    let response = request.send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
}

#[tokio::test]
async fn a_stream_whose_connection_closed_is_not_sent_again() {
    let (server, log) = (
        H1::start([Act::CloseAfterReading, ok()]).await,
        RetryLog::new(),
    );
    let client = retrying(at_once());
    let request = client.put(server.url("/")).body(streamed());
    let error = request
        .with_extension(log.clone())
        .send()
        .await
        .unwrap_err();
    assert!(error.is_request(), "{error:?}");
    assert_eq!(server.count(), 1);
    assert_eq!(
        log.report().unwrap().stop_reason(),
        Some(StopReason::NotReplayable)
    );
}

#[tokio::test]
async fn a_stream_that_was_never_begun_goes_out_when_the_port_comes_up() {
    let refused = Refused::new();
    let url = refused.url("/");
    let server = Arc::new(Mutex::new(None));
    let policy = RetryPolicy::from(at_once()).observer(ComesUp {
        refused: Mutex::new(Some(refused)),
        server: server.clone(),
    });
    let response = retrying(policy)
        .put(url)
        .body(streamed())
        .send()
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), response.attempts()), (200, 2));
    let server = server.lock().unwrap().take().unwrap();
    assert_eq!(server.requests()[0].body, "one two three");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn an_unsent_post_is_sent_again_where_the_rule_says_so() {
    for (unsent_failures, came) in [(true, Ok(2)), (false, Err(StopReason::MethodNotAllowed))] {
        let refused = Refused::new();
        let (url, log) = (refused.url("/"), RetryLog::new());
        let server = Arc::new(Mutex::new(None));
        let rule = RetryRule {
            unsent_failures,
            ..at_once()
        };
        let policy = RetryPolicy::from(rule).observer(ComesUp {
            refused: Mutex::new(Some(refused)),
            server: server.clone(),
        });
        let request = retrying(policy)
            .post(url)
            .body("once")
            .with_extension(log.clone());
        let sent = request.send().await;
        let report = log.report().unwrap();
        assert_eq!(
            match sent {
                Ok(_) => Ok(report.attempts()),
                Err(_) => Err(report.stop_reason().unwrap()),
            },
            came
        );
    }
}

#[test]
fn a_zero_wait_needs_no_timer() {
    let sent = |rule: RetryRule| {
        // A runtime without timers: any sleep in it panics.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let transport = Scripted::new([503, 503, 503, 200].map(Answer::new));
            let client = retrying_around(rule, transport.clone());
            client.get("http://localhost/").send().await.unwrap();
            transport.count()
        })
    };
    assert_eq!(sent(at_once()), 4);
    let sleeps = std::panic::catch_unwind(|| sent(RetryRule::transient()));
    assert!(sleeps.is_err(), "a wait that is not zero sleeps");
}

#[tokio::test(start_paused = true)]
async fn a_zero_wait_takes_no_time() {
    let transport = Scripted::new([503, 503, 503, 200].map(|s| Answer::new(s).body("refused")));
    let client = retrying_around(at_once(), transport.clone());
    client.get("http://localhost/").send().await.unwrap();
    assert_eq!(transport.pauses(), [Duration::ZERO; 3]);

    let transport = Scripted::new([503, 503, 503, 200].map(|s| Answer::new(s).body("refused")));
    let waits = RetryPolicy::from(RetryRule::transient()).jitter_source(|| 0.5);
    let client = retrying_around(waits, transport.clone());
    client.get("http://localhost/").send().await.unwrap();
    assert_eq!(
        transport.pauses(),
        [50, 100, 200].map(Duration::from_millis)
    );
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_dropped_while_it_waits_sends_nothing_more() {
    let later = Answer::new(503).header("retry-after", "30");
    for patience in [20, 40] {
        let transport = Scripted::new([later.clone(), Answer::new(200)]);
        let client = retrying_around(at_once(), transport.clone());
        let send = client.get("http://localhost/").send();
        let done = tokio::time::timeout(Duration::from_secs(patience), send).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let expected = if patience > 30 { (true, 2) } else { (false, 1) };
        assert_eq!((done.is_ok(), transport.count()), expected);
    }
}

#[tokio::test]
async fn a_send_that_is_dropped_in_flight_closes_its_connection() {
    let server = H1::start([status(503), Act::Silence]).await;
    let client = retrying(at_once());
    tokio::select! {
        _ = client.get(server.url("/")).send() => panic!("nobody answered"),
        () = eventually("the retry arrived", || server.count() == 2) => {}
    }
    eventually("the connections went", || server.open() == 0).await;
    assert_eq!(server.count(), 2);
}

/// Sends under a rule that waits 100 ms, with a clock that leaps by so much in that wait.
async fn sent_over_a_leap(leap: Duration, policy: RetryPolicy) -> (usize, Option<StopReason>) {
    let transport = Scripted::new([Answer::new(503).body("refused"), Answer::new(200)]);
    let client = retrying_around(policy.jitter_source(|| 0.0), transport.clone());
    let log = RetryLog::new();
    let send = client
        .get("http://localhost/")
        .with_extension(log.clone())
        .send();
    let (response, ()) = futures_util::join!(send, tokio::time::advance(leap));
    let expected = if transport.count() == 1 {
        "refused"
    } else {
        ""
    };
    assert_eq!(response.unwrap().text().await.unwrap(), expected);
    (transport.count(), log.report().unwrap().stop_reason())
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_too_late_is_the_last_of_its_send() {
    let wait = Duration::from_millis(100);
    let rule = RetryRule {
        backoff: Backoff {
            base: wait,
            max: wait,
            ..Backoff::default()
        },
        ..RetryRule::transient()
    };
    let limits = Limits {
        hard_elapsed: Some(Duration::from_millis(500)),
        ..Limits::default()
    };
    let limited = RetryPolicy::from(RetryRule {
        limits,
        ..rule.clone()
    });
    let bounded = RetryPolicy::from(rule).total_timeout(Duration::from_millis(500));
    for (policy, leap, expected) in [
        (&limited, 10, (2, None)),
        (&limited, 499, (2, None)),
        (&limited, 500, (1, Some(StopReason::HardLimit(wait)))),
        (&bounded, 499, (2, None)),
        (&bounded, 501, (1, Some(StopReason::Budget(wait)))),
    ] {
        let leap = Duration::from_millis(leap);
        assert_eq!(
            sent_over_a_leap(leap, policy.clone()).await,
            expected,
            "{leap:?}"
        );
    }
}
