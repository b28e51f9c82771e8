//! A transport that answers from a queue, for tests whose clock is paused: it stands in place of
//! the network as the last middleware, and keeps which request came when.

use std::collections::VecDeque;
use std::future::Future;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::BodyExt;
use reqwest::{Body, Request, Response, ResponseBuilderExt, Url};
use reqwest_middleware::{
    ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, RequestBuilder, Result,
};
use reqwest_retry_rules::{ResendCount, RetryLog, RetryMiddleware, RetryPolicy, RetryReport};
use tokio::time::Instant;

use crate::support;
use crate::support::refused::Refused;

/// Where requests go; nothing is asked of the network.
pub const URL: &str = "http://origin.test/";

/// So many milliseconds.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A client whose requests end in `transport`, with the retries of `policy`.
pub fn client(transport: &Transport, policy: impl Into<RetryPolicy>) -> ClientWithMiddleware {
    ClientBuilder::new(support::client().build().unwrap())
        .with(RetryMiddleware::new(policy))
        .with(transport.clone())
        .build()
}

/// A client whose requests go straight to `transport`.
pub fn bare_client(transport: &Transport) -> ClientWithMiddleware {
    ClientBuilder::new(support::client().build().unwrap())
        .with(transport.clone())
        .build()
}

/// Sends one request, and reads the report of it.
pub async fn send(
    transport: &Transport,
    policy: impl Into<RetryPolicy>,
    make: impl FnOnce(ClientWithMiddleware) -> RequestBuilder,
) -> (Result<Response>, RetryReport) {
    let log = RetryLog::new();
    let request = make(client(transport, policy)).with_extension(log.clone());
    let outcome = request.send().await;
    (outcome, log.report().expect("a report"))
}

/// Sends a GET, and reads the report of it.
pub async fn get(
    transport: &Transport,
    policy: impl Into<RetryPolicy>,
) -> (Result<Response>, RetryReport) {
    send(transport, policy, |client| client.get(URL)).await
}

/// Sends a GET with more in its extensions.
pub async fn get_with(
    transport: &Transport,
    policy: impl Into<RetryPolicy>,
    change: impl FnOnce(&mut Extensions),
) -> (Result<Response>, RetryReport) {
    let make = |client: ClientWithMiddleware| {
        let mut request = client.get(URL);
        change(request.extensions());
        request
    };
    send(transport, policy, make).await
}

/// A map with one value.
pub fn carrying<T: Clone + Send + Sync + 'static>(value: T) -> Extensions {
    let mut map = Extensions::new();
    map.insert(value);
    map
}

/// Asserts that a response with this status came back.
#[track_caller]
pub fn assert_status(outcome: &Result<Response>, status: u16) {
    assert_eq!(outcome.as_ref().unwrap().status(), status);
}

/// One request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When, counted from the start of the transport.
    pub at: Duration,
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    /// The timeout of the request itself.
    pub timeout: Option<Duration>,
    /// What its extensions say of earlier sends.
    pub resent: Option<ResendCount>,
    /// Its body, where the act read it.
    pub body: Option<Bytes>,
}

impl Seen {
    /// The first value of a header, as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        Some(self.headers.get(name)?.to_str().unwrap())
    }
}

/// The transport. Its clones are one.
#[derive(Clone)]
pub struct Transport {
    started: Instant,
    script: Arc<Mutex<Script>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

enum Script {
    /// In turn; one more request than acts is a fault of the test or of what it tests.
    Queue(VecDeque<Act>),
    Choose(Box<dyn FnMut(&Request) -> Act + Send>),
}

impl Transport {
    /// One that does each of these acts once.
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::of(Script::Queue(acts.into_iter().collect()))
    }

    /// One that chooses an act for each request.
    pub fn choose(choose: impl FnMut(&Request) -> Act + Send + 'static) -> Self {
        Self::of(Script::Choose(Box::new(choose)))
    }

    fn of(script: Script) -> Self {
        Self {
            started: Instant::now(),
            script: Arc::new(Mutex::new(script)),
            seen: Arc::default(),
        }
    }

    /// The requests that came, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock_seen().clone()
    }

    /// How many came.
    pub fn count(&self) -> usize {
        self.lock_seen().len()
    }

    /// When each came, in milliseconds from the start.
    pub fn times(&self) -> Vec<u128> {
        self.lock_seen()
            .iter()
            .map(|seen| seen.at.as_millis())
            .collect()
    }

    /// What time it is, in milliseconds from the start.
    pub fn now(&self) -> u128 {
        self.started.elapsed().as_millis()
    }

    fn lock_seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap()
    }

    fn next_act(&self, request: &Request) -> Act {
        match &mut *self.script.lock().unwrap() {
            Script::Queue(acts) => acts.pop_front(),
            Script::Choose(choose) => Some(choose(request)),
        }
        .unwrap_or_else(|| panic!("a request too many: {} {}", request.method(), request.url()))
    }
}

#[async_trait]
impl Middleware for Transport {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        _: Next<'_>,
    ) -> Result<Response> {
        let seen = Seen {
            at: self.started.elapsed(),
            method: request.method().clone(),
            url: request.url().clone(),
            headers: request.headers().clone(),
            timeout: request.timeout().copied(),
            resent: extensions.get().copied(),
            body: None,
        };
        let number = {
            let mut all = self.lock_seen();
            all.push(seen);
            all.len() - 1
        };
        let act = self.next_act(&request);
        if act.yields {
            tokio::task::yield_now().await;
        }
        if !act.after.is_zero() {
            tokio::time::sleep(act.after).await;
        }
        match act.then {
            Then::Answer(answer) => {
                if let Some(body) = request.body_mut().take() {
                    let body = body.collect().await?.to_bytes();
                    self.lock_seen()[number].body = Some(body);
                }
                Ok(answer.into_response(request.url()))
            }
            Then::Fail(error) => Err(of_this_request(error, request.url())),
            Then::Hang => std::future::pending().await,
            Then::TimeOut(error) => match request.timeout() {
                Some(timeout) => {
                    tokio::time::sleep(*timeout).await;
                    Err(of_this_request(error, request.url()))
                }
                None => std::future::pending().await,
            },
            Then::Panic => panic!("the transport was told to"),
        }
    }
}

/// An error that was met at a socket, as one of this request: it names its URL.
fn of_this_request(error: Error, asked: &Url) -> Error {
    match error {
        Error::Reqwest(error) if error.url().is_some() => error.with_url(asked.clone()).into(),
        error => error,
    }
}

/// What becomes of one request.
pub struct Act {
    yields: bool,
    after: Duration,
    then: Then,
}

enum Then {
    Answer(Answer),
    Fail(Error),
    Hang,
    TimeOut(Error),
    Panic,
}

struct Answer {
    status: u16,
    /// Where it comes from, if not from where the request went.
    url: Option<&'static str>,
    headers: HeaderMap,
    body: Body,
}

impl Answer {
    fn into_response(self, asked: &Url) -> Response {
        let mut response = http::Response::builder()
            .status(self.status)
            .url(
                self.url
                    .map_or_else(|| asked.clone(), |url| url.parse().unwrap()),
            )
            .body(self.body)
            .unwrap();
        *response.headers_mut() = self.headers;
        Response::from(response)
    }
}

/// An answer with this status and no body.
pub fn status(status: u16) -> Act {
    Act::then(Then::Answer(Answer {
        status,
        url: None,
        headers: HeaderMap::new(),
        body: Body::from(""),
    }))
}

/// 200.
pub fn ok() -> Act {
    status(200)
}

/// This error. The request's body is dropped unread.
pub fn fail(error: impl Into<Error>) -> Act {
    Act::then(Then::Fail(error.into()))
}

/// Never an answer.
pub fn hang() -> Act {
    Act::then(Then::Hang)
}

/// Never an answer, so that the request's own timeout ends it, as reqwest does.
pub fn time_out() -> Act {
    Act::then(Then::TimeOut(errors::timeout().into()))
}

/// A panic.
pub fn panic() -> Act {
    Act::then(Then::Panic)
}

/// The same act so many times.
pub fn times(count: usize, act: impl Fn() -> Act) -> impl Iterator<Item = Act> {
    std::iter::repeat_with(act).take(count)
}

impl Act {
    fn then(then: Then) -> Self {
        Self {
            yields: false,
            after: Duration::ZERO,
            then,
        }
    }

    /// After everything else that is ready has had its turn.
    pub fn yielding(self) -> Self {
        Self {
            yields: true,
            ..self
        }
    }

    /// So many milliseconds after the request came.
    pub fn after(self, milliseconds: u64) -> Self {
        Self {
            after: ms(milliseconds),
            ..self
        }
    }

    /// With this header.
    pub fn header(self, name: &str, value: impl AsRef<str>) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        let value = HeaderValue::from_str(value.as_ref()).unwrap();
        self.answer(|answer| {
            answer.headers.append(name, value);
        })
    }

    /// The answer of this URL, to which a redirect led.
    pub fn answered_by(self, url: &'static str) -> Self {
        self.answer(|answer| answer.url = Some(url))
    }

    /// With this body.
    pub fn body(self, body: impl Into<Body>) -> Self {
        self.answer(|answer| answer.body = body.into())
    }

    /// With a body that comes in these pieces, a pause before each.
    pub fn slow_body(
        self,
        pause: u64,
        pieces: impl IntoIterator<Item = &'static str, IntoIter: Send + 'static>,
    ) -> Self {
        let pieces = stream::unfold(pieces.into_iter(), move |mut left| async move {
            tokio::time::sleep(ms(pause)).await;
            Some((Ok::<_, std::io::Error>(left.next()?), left))
        });
        self.body(Body::wrap_stream(pieces))
    }

    /// With a body that comes to this piece and then breaks off, as far as a transport without a
    /// network can say so.
    pub fn broken_body(self, piece: &'static str) -> Self {
        let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
        let pieces = stream::iter([Ok(piece), Err(error)]);
        self.body(Body::wrap_stream(pieces))
    }

    fn answer(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self.then {
            Then::Answer(answer) => change(answer),
            _ => panic!("no answer to change"),
        }
        self
    }
}

/// Errors of reqwest's own, each met at a real socket. They are made on a thread of their own, away
/// from the test's clock.
pub mod errors {
    use super::*;

    /// Connecting was refused.
    pub fn refused() -> reqwest::Error {
        met(async {
            let port = Refused::new();
            get(support::client(), &port.url("/")).await
        })
    }

    /// No answer within the request's timeout.
    pub fn timeout() -> reqwest::Error {
        met(async {
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/", silent.local_addr().unwrap());
            get(support::client().timeout(ms(1)), &url).await
        })
    }

    /// No connection within the connect timeout.
    pub fn connect_timeout() -> reqwest::Error {
        met(async {
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("https://{}/", silent.local_addr().unwrap());
            get(support::client().connect_timeout(ms(1)), &url).await
        })
    }

    /// The connection was closed in place of an answer.
    pub fn closed() -> reqwest::Error {
        met(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let close = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = [0; 16];
                tokio::io::AsyncReadExt::read(&mut socket, &mut head)
                    .await
                    .unwrap();
                tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 2")
                    .await
                    .unwrap();
            };
            tokio::join!(get(support::client(), &url), close).0
        })
    }

    /// No transport failure: the URL is none that could be asked.
    pub fn builder() -> reqwest::Error {
        met(get(support::client(), "no-url"))
    }

    async fn get(client: reqwest::ClientBuilder, url: &str) -> reqwest::Error {
        client
            .build()
            .unwrap()
            .get(url)
            .send()
            .await
            .expect_err("an error")
    }

    fn met(error: impl Future<Output = reqwest::Error> + Send + 'static) -> reqwest::Error {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        std::thread::spawn(move || runtime.block_on(error))
            .join()
            .unwrap()
    }
}
