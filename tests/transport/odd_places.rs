//! Sends that are made in odd places: while something is dropped, while the thread ends, or before
//! a middleware has given its future.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::TransportError::{AfterRedirect, Connect, Dns};
use reqwest_retry_rules::{
    ResponseExt, RetryMiddleware, RetryPolicy, RetryRule, StopReason, tracked_redirects,
};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::support;
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::support::script::{Act, Answer};
use crate::support::sends::{Went, at_once, retrying, send};

fn tracked() -> reqwest::ClientBuilder {
    support::client().redirect(tracked_redirects(Policy::default()))
}

/// Sends each request on to a port that refuses: a POST is processed, and what follows is not.
async fn sending_on(nobody: &Refused) -> H1 {
    let to = nobody.url("/next");
    H1::start(Answer::new(303).header("location", &to)).await
}

/// What a POST to a server that sends it on goes through, if the redirect is noted.
fn once() -> Went {
    Went::stopped([Failure(AfterRedirect)], StopReason::MethodNotAllowed)
}

/// What a POST goes through that nobody processed.
fn thrice() -> Went {
    Went::stopped([Failure(Connect); 3], StopReason::Exhausted)
}

/// Sends a POST when it is dropped.
struct Farewell {
    client: ClientWithMiddleware,
    url: String,
    went: mpsc::Sender<Went>,
}

impl AsRef<[u8]> for Farewell {
    fn as_ref(&self) -> &[u8] {
        b"key"
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let sending = send(self.client.post(&self.url).body("farewell"));
        let went = block_in_place(|| Handle::current().block_on(sending)).1;
        let _ = self.went.send(went);
    }
}

/// The value of the first key is of a type of the caller's. It is dropped with the memory of the
/// nested sends of an attempt, once these are so many that some are forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_of_a_key_that_is_dropped_is_sent_once_after_a_redirect() {
    struct Many(ClientWithMiddleware, String, Mutex<Option<HeaderValue>>);

    const KEY: HeaderName = HeaderName::from_static("idempotency-key");

    #[async_trait::async_trait]
    impl Middleware for Many {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            for _ in 0..40 {
                let mut post = self.0.post(&self.1);
                if let Some(first) = self.2.lock().unwrap().take() {
                    post = post.header(KEY, first);
                }
                post.send().await?;
                // The connection lets go of the request.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            next.run(request, extensions).await
        }
    }

    let nobody = Refused::new();
    let (sent_on, fine) = (sending_on(&nobody).await, H1::start(Act::ok("fine")).await);
    for (url, expected) in [(sent_on.url("/"), once()), (nobody.url("/"), thrice())] {
        let (tell, went) = mpsc::channel();
        let farewell = Farewell {
            client: retrying(tracked(), at_once(2)),
            url,
            went: tell,
        };
        let value = HeaderValue::from_maybe_shared(Bytes::from_owner(farewell)).unwrap();
        let nested = RetryPolicy::from(at_once(2)).idempotency_key(KEY);
        let many = Many(
            retrying(tracked(), nested),
            fine.url("/"),
            Some(value).into(),
        );
        let client = reqwest_middleware::ClientBuilder::new(tracked().build().unwrap())
            .with(RetryMiddleware::new(at_once(2)))
            .with(many)
            .build();
        let answer = client.post(fine.url("/")).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.attempts()), (200, 1));
        assert_eq!(went.try_iter().collect::<Vec<_>>(), [expected]);
    }
    assert_eq!((sent_on.count(), fine.count()), (1, 82));
}

/// A thread-local that is older than all that this crate keeps for the thread, and so is dropped
/// after it.
#[tokio::test]
async fn a_post_of_a_thread_that_ends_is_sent_once_after_a_redirect() {
    struct AtTheEnd(Handle, Option<Pin<Box<dyn Future<Output = ()>>>>);

    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            if let Some(last) = self.1.take() {
                self.0.block_on(last);
            }
        }
    }

    thread_local! {
        static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    }

    let nobody = Refused::new();
    let (sent_on, fine) = (sending_on(&nobody).await, H1::start(Act::ok("fine")).await);
    for (url, expected) in [(sent_on.url("/"), once()), (nobody.url("/"), thrice())] {
        let (tell, went) = mpsc::channel();
        let (handle, first) = (Handle::current(), fine.url("/"));
        let thread = move || {
            // What tokio keeps for the thread is older still.
            handle.block_on(async {});
            let end = AtTheEnd(handle.clone(), None);
            LAST.with_borrow_mut(|last| *last = Some(end));
            let policy = RetryPolicy::from(at_once(2)).jitter_source(|| 0.0);
            let client = retrying(tracked(), policy);
            handle.block_on(client.get(first).send()).unwrap();
            let last = async move {
                let (_, went) = send(client.post(url).body("farewell")).await;
                let _ = tell.send(went);
            };
            LAST.with_borrow_mut(|end| end.as_mut().unwrap().1 = Some(Box::pin(last)));
        };
        let ended = tokio::task::spawn_blocking(|| std::thread::spawn(thread).join());
        ended.await.unwrap().unwrap();
        assert_eq!(went.try_iter().collect::<Vec<_>>(), [expected]);
    }
    assert_eq!(sent_on.count(), 1);
}

/// What a middleware gives: the rest of the chain on its way.
type Rest<'send> = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'send>>;

/// A middleware written by hand, which may do something before it gives its future.
trait ByHand: Send + Sync + 'static {
    fn begin<'send>(
        &'send self,
        request: Request,
        extensions: &'send mut Extensions,
        next: Next<'send>,
    ) -> Rest<'send>;
}

struct Written<T>(T);

impl<T: ByHand> Middleware for Written<T> {
    fn handle<'own, 'map, 'chain, 'send>(
        &'own self,
        request: Request,
        extensions: &'map mut Extensions,
        next: Next<'chain>,
    ) -> Rest<'send>
    where
        'own: 'send,
        'map: 'send,
        'chain: 'send,
        Self: 'send,
    {
        self.0.begin(request, extensions, next)
    }
}

/// Hands each request to another client before it gives its future, and then goes on by itself.
struct Eager(ClientWithMiddleware);

impl ByHand for Eager {
    fn begin<'send>(
        &'send self,
        request: Request,
        extensions: &'send mut Extensions,
        next: Next<'send>,
    ) -> Rest<'send> {
        let copy = request.try_clone().unwrap();
        let first = block_in_place(|| Handle::current().block_on(self.0.execute(copy)));
        match first {
            Ok(answer) => Box::pin(async { Ok(answer) }),
            Err(_) => next.run(request, extensions),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_before_a_middleware_gave_its_future_is_not_unsent() {
    let (lost, nobody) = (H1::start(Act::CloseAfterReading).await, Refused::new());
    let stopped = StopReason::Exhausted;
    for (target, expected) in [
        (lost.addr, once()),
        // The twin: nothing was sent.
        (nobody.addr, Went::stopped([Failure(Dns); 3], stopped)),
    ] {
        for rule in [at_once(1), RetryRule::never()] {
            let names = Names::new();
            names.set("target.test", target);
            let nested = retrying(support::client().dns_resolver(names), rule);
            let nowhere = support::client().dns_resolver(Names::new());
            let client = reqwest_middleware::ClientBuilder::new(nowhere.build().unwrap())
                .with(RetryMiddleware::new(at_once(2)))
                .with(Written(Eager(nested)))
                .build();
            let (_, went) = send(client.post("http://target.test/").body("order")).await;
            assert_eq!(went, expected);
        }
    }
    assert_eq!(lost.count(), 2);
}

/// Runs the rest of the chain before it gives its future.
struct AllAtOnce;

impl ByHand for AllAtOnce {
    fn begin<'send>(
        &'send self,
        request: Request,
        extensions: &'send mut Extensions,
        next: Next<'send>,
    ) -> Rest<'send> {
        let rest = next.run(request, extensions);
        let outcome = block_in_place(|| Handle::current().block_on(rest));
        Box::pin(async { outcome })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_that_is_run_before_a_middleware_gave_its_future_is_one_chain() {
    let nobody = Refused::new();
    let (sent_on, busy) = (sending_on(&nobody).await, H1::start(Act::status(503)).await);
    let client = reqwest_middleware::ClientBuilder::new(tracked().build().unwrap())
        .with(RetryMiddleware::new(at_once(2)))
        .with(Written(AllAtOnce))
        .with(RetryMiddleware::new(at_once(2)))
        .build();
    // The second copy leaves the retries to the first.
    let answer = client.get(busy.url("/")).send().await.unwrap();
    assert_eq!((answer.attempts(), busy.count()), (3, 3));
    // A redirect is noted.
    let (_, went) = send(client.post(sent_on.url("/")).body("order")).await;
    assert_eq!((went, sent_on.count()), (once(), 1));
    let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
    assert_eq!(went, thrice());
}

/// The rest of the chain, and a POST when that is over and dropped.
struct Parting<'send> {
    rest: Rest<'send>,
    client: ClientWithMiddleware,
    url: String,
}

impl Future for Parting<'_> {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.rest.as_mut().poll(cx)
    }
}

impl Drop for Parting<'_> {
    fn drop(&mut self) {
        let sending = self.client.post(&self.url).send();
        let _ = block_in_place(|| Handle::current().block_on(sending));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_after_the_chain_had_ended_is_not_unsent() {
    struct Parts(ClientWithMiddleware, String);

    impl ByHand for Parts {
        fn begin<'send>(
            &'send self,
            request: Request,
            extensions: &'send mut Extensions,
            next: Next<'send>,
        ) -> Rest<'send> {
            Box::pin(Parting {
                rest: next.run(request, extensions),
                client: self.0.clone(),
                url: self.1.clone(),
            })
        }
    }

    let (lost, nobody) = (H1::start(Act::CloseAfterReading).await, Refused::new());
    for (url, expected) in [(lost.url("/"), once()), (nobody.url("/"), thrice())] {
        let parts = Parts(retrying(support::client(), at_once(1)), url);
        let client = reqwest_middleware::ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(at_once(2)))
            .with(Written(parts))
            .build();
        let (_, went) = send(client.post(nobody.url("/")).body("order")).await;
        assert_eq!(went, expected);
    }
    assert_eq!(lost.count(), 1);
}
