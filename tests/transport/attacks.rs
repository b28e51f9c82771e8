//! Attacks on the promise: middlewares further in that send by other clients, lose what came of it,
//! and end with a failure that by itself looks unsent.

use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use http::{Extensions, HeaderName, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, Result};
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::TransportError::{self, AfterRedirect, Dns};
use reqwest_retry_rules::{
    AttemptResult, BodySource, Judgement, LogLevel, Methods, Overrides, ReplaySafe, ResponseHead,
    RetryLog, RetryMiddleware, RetryPolicy, RetryRule, StatusRule, StopReason, client_builder,
    with_overrides, with_rule,
};

use crate::support;
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::resolver::Names;
use crate::support::script::{Act, Answer};
use crate::support::sends::{Went, at_once, retrying, send};

const URL: &str = "http://target.test/";

/// What leads to this server by the name `target.test`.
fn leading_to(server: &H1) -> reqwest::ClientBuilder {
    let names = Names::new();
    names.set("target.test", server.addr);
    support::client().dns_resolver(names)
}

/// A client that retries twice, around a middleware further in. By itself it finds no name.
fn around(further_in: impl Middleware) -> ClientWithMiddleware {
    let nowhere = support::client().dns_resolver(Names::new());
    reqwest_middleware::ClientBuilder::new(nowhere.build().unwrap())
        .with(RetryMiddleware::new(at_once(2)))
        .with(further_in)
        .build()
}

/// Hands each request to another client for a moment, and then goes on by itself unless that was
/// answered with a success.
struct Failover(ClientWithMiddleware);

#[async_trait::async_trait]
impl Middleware for Failover {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let first = self.0.execute(request.try_clone().unwrap());
        match tokio::time::timeout(Duration::from_millis(100), first).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(answer),
            _ => next.run(request, extensions).await,
        }
    }
}

fn once(class: TransportError) -> Went {
    Went::stopped([Failure(class)], StopReason::MethodNotAllowed)
}

fn thrice(class: TransportError) -> Went {
    Went::stopped([Failure(class); 3], StopReason::Exhausted)
}

/// A nested client whose rule retries nothing has this middleware all the same.
#[tokio::test]
async fn what_a_nested_client_without_retries_lost_or_dropped_is_not_unsent() {
    for act in [Act::Silence, Act::CloseAfterReading] {
        let server = H1::start(act).await;
        let nested = retrying(leading_to(&server), RetryRule::never());
        let client = around(Failover(nested));
        let (_, went) = send(client.post(URL).body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.count(), 1);
    }
}

/// The twins: it sent nothing, it was answered, or what it sent may be repeated.
#[tokio::test]
async fn what_a_nested_client_without_retries_never_sent_is_sent_again() {
    let nobody = Refused::new();
    let names = Names::new();
    names.set("target.test", nobody.addr);
    let unsent = support::client().dns_resolver(names);
    let client = around(Failover(retrying(unsent, RetryRule::never())));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, thrice(Dns));

    let busy = H1::start(Act::status(503)).await;
    let client = around(Failover(retrying(leading_to(&busy), RetryRule::never())));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, thrice(Dns));

    let lost = H1::start(Act::CloseAfterReading).await;
    let client = around(Failover(retrying(leading_to(&lost), RetryRule::never())));
    let (_, went) = send(client.get(URL)).await;
    assert_eq!(went, thrice(Dns));
    assert_eq!((busy.count(), lost.count()), (3, 3));
}

/// What is stated of the request counts for what passes through too.
#[tokio::test]
async fn what_a_nested_client_without_retries_lost_is_judged_by_what_is_stated_of_it() {
    let stated = |safe, method| async move {
        let server = H1::start(Act::CloseAfterReading).await;
        let nested = retrying(leading_to(&server), RetryRule::never());
        let client = around(Failover(nested));
        let sending = send(client.request(method, URL));
        let (_, went) = with_overrides(Overrides::new().replay_safe(safe), sending).await;
        (went, server.count())
    };
    assert_eq!(stated(false, Method::GET).await, (once(AfterRedirect), 1));
    assert_eq!(stated(true, Method::POST).await, (thrice(Dns), 3));
}

/// Switching retries off for the task does not switch the notes off.
#[tokio::test]
async fn nor_is_what_a_nested_client_lost_whose_retries_the_task_switched_off() {
    struct Off(Failover);

    #[async_trait::async_trait]
    impl Middleware for Off {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            with_rule(RetryRule::never(), self.0.handle(request, extensions, next)).await
        }
    }

    let server = H1::start(Act::CloseAfterReading).await;
    let nested = retrying(leading_to(&server), at_once(1));
    let client = around(Off(Failover(nested)));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 1);
}

/// Of the nested client's two attempts the first was lost, and its answer is thrown away.
#[tokio::test]
async fn what_a_nested_client_lost_before_it_was_refused_is_not_unsent() {
    let server = H1::start([Act::CloseAfterReading, Act::status(503)]).await;
    let eager = RetryRule {
        sent_failures: Methods::Any,
        ..at_once(1)
    };
    let client = around(Failover(retrying(leading_to(&server), eager)));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, once(AfterRedirect));
    assert_eq!(server.count(), 2);
}

/// The twin: it vouches for what it repeats.
#[tokio::test]
async fn what_a_nested_client_lost_and_may_repeat_is_sent_again() {
    struct Vouch(Failover);

    #[async_trait::async_trait]
    impl Middleware for Vouch {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let mut map = Extensions::new();
            map.insert(ReplaySafe(true));
            let copy = request.try_clone().unwrap();
            let _ = self.0.0.execute_with_extensions(copy, &mut map).await;
            next.run(request, extensions).await
        }
    }

    let server = H1::start([Act::CloseAfterReading, Act::status(503)]).await;
    let client = around(Vouch(Failover(retrying(leading_to(&server), at_once(1)))));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, thrice(Dns));
}

/// A nested send in a task of its own is not seen. The response that is passed on says what was lost.
#[tokio::test]
async fn a_refusal_after_a_lost_answer_is_known_from_another_task_too() {
    struct Spawning(ClientWithMiddleware);

    #[async_trait::async_trait]
    impl Middleware for Spawning {
        async fn handle(
            &self,
            request: Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> Result<Response> {
            let client = self.0.clone();
            let sending = tokio::spawn(async move { client.execute(request).await });
            sending.await.unwrap()
        }
    }

    let eager = RetryRule {
        sent_failures: Methods::Any,
        ..at_once(1)
    };
    let refused = RetryRule {
        statuses: vec![StatusRule::new([503], Methods::Any)],
        ..at_once(2)
    };
    let result = AttemptResult::Status(http::StatusCode::SERVICE_UNAVAILABLE);
    let (stopped, exhausted) = (StopReason::MethodNotAllowed, StopReason::Exhausted);
    for (first, expected, count) in [
        (Act::CloseAfterReading, Went::stopped([result], stopped), 2),
        // The twin: all that became of it is the refusal.
        (Act::status(503), Went::stopped([result; 3], exhausted), 3),
    ] {
        let server = H1::start([first, Act::status(503)]).await;
        let nested = retrying(leading_to(&server), eager.clone());
        let client = reqwest_middleware::ClientBuilder::new(support::client().build().unwrap())
            .with(RetryMiddleware::new(refused.clone()))
            .with(Spawning(nested))
            .build();
        let (_, went) = send(client.post(URL).body("order")).await;
        assert_eq!((went, server.count()), (expected, count));
    }
}

/// The nested POST was processed and sent on; what was refused is the request that followed. Its twin
/// is a POST that was refused itself, above.
#[tokio::test]
async fn what_a_nested_client_was_refused_after_a_redirect_is_not_unsent() {
    let busy = H1::start(Act::status(503)).await;
    let to = busy.url("/");
    let server = H1::start(Answer::new(303).header("location", &to)).await;
    let names = Names::new();
    names.set("target.test", server.addr);
    let tracked = client_builder().no_proxy().dns_resolver(names);
    let client = around(Failover(retrying(tracked, at_once(1))));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!((went, server.count()), (once(AfterRedirect), 1));
}

/// Of two sends inside one attempt the first was answered.
#[tokio::test]
async fn what_the_second_of_two_nested_sends_lost_is_not_unsent() {
    let fine = H1::start(Act::ok("fine")).await;
    let nobody = Refused::new();
    let second = |server: String, first: String| {
        let nested = retrying(support::client(), at_once(1));
        around(Both(nested, first, server))
    };
    let lost = H1::start(Act::CloseAfterReading).await;
    let client = second(lost.url("/"), fine.url("/"));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!((went, lost.count()), (once(AfterRedirect), 1));
    // The other way round.
    let client = second(fine.url("/"), lost.url("/"));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!((went, lost.count()), (once(AfterRedirect), 2));
    // The twin: none was lost.
    let client = second(nobody.url("/"), fine.url("/"));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, thrice(Dns));
}

/// Sends two POSTs by another client, and goes on whatever came of them.
struct Both(ClientWithMiddleware, String, String);

#[async_trait::async_trait]
impl Middleware for Both {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let _ = self.0.post(&self.1).send().await;
        let _ = self.0.post(&self.2).send().await;
        next.run(request, extensions).await
    }
}

/// The nested client gives up on an audit that its own middleware makes after the answer.
#[tokio::test]
async fn what_a_nested_client_took_for_its_own_failure_is_not_unsent() {
    struct Audit(String);

    #[async_trait::async_trait]
    impl Middleware for Audit {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let answer = next.run(request, extensions).await?;
            let audit = support::client().build().unwrap().get(&self.0);
            audit.send().await?;
            Ok(answer)
        }
    }

    let nobody = Refused::new();
    // Not a request that passes through, and still nothing but the send around it asks for its URL.
    let timed = RetryPolicy::from(RetryRule::never())
        .attempt_timeout(Duration::from_secs(60))
        .log_levels(LogLevel::Off, LogLevel::Off);
    for policy in [
        RetryRule::never().into(),
        RetryRule::transient().into(),
        at_once(0).into(),
        timed,
    ] {
        let server = H1::start(Act::ok("fine")).await;
        let nested = reqwest_middleware::ClientBuilder::new(leading_to(&server).build().unwrap())
            .with(RetryMiddleware::new(policy))
            .with(Audit(nobody.url("/audit")))
            .build();
        let client = around(Failover(nested));
        let (_, went) = send(client.post(URL).body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.count(), 1);
    }
}

/// A nested send that is still under way when the attempt ends.
#[tokio::test]
async fn what_a_nested_client_is_still_sending_is_not_unsent() {
    type Sending = Pin<Box<dyn Future<Output = Result<Response>> + Send>>;
    struct Stash(ClientWithMiddleware, Mutex<Vec<Sending>>);

    #[async_trait::async_trait]
    impl Middleware for Stash {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let (client, copy) = (self.0.clone(), request.try_clone().unwrap());
            let mut sending: Sending = Box::pin(async move { client.execute(copy).await });
            let wait = Duration::from_millis(100);
            let _ = tokio::time::timeout(wait, &mut sending).await;
            self.1.lock().unwrap().push(sending);
            next.run(request, extensions).await
        }
    }

    for rule in [at_once(1), RetryRule::never()] {
        let server = H1::start(Act::Silence).await;
        let nested = retrying(leading_to(&server), rule);
        let client = around(Stash(nested, Mutex::default()));
        let (_, went) = send(client.post(URL).body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.count(), 1);
    }
}

/// The plain client of `execute`, further in.
#[tokio::test]
async fn what_a_plain_client_lost_in_execute_is_not_unsent() {
    struct Executing(reqwest::Client, RetryPolicy);

    #[async_trait::async_trait]
    impl Middleware for Executing {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let first = self.1.execute(&self.0, request.try_clone().unwrap());
            match tokio::time::timeout(Duration::from_millis(100), first).await {
                Ok(Ok(answer)) => Ok(answer),
                _ => next.run(request, extensions).await,
            }
        }
    }

    for act in [Act::Silence, Act::CloseAfterReading] {
        for rule in [at_once(1), RetryRule::never()] {
            let server = H1::start(act.clone()).await;
            let nested = leading_to(&server).build().unwrap();
            let client = around(Executing(nested, rule.into()));
            let (_, went) = send(client.post(URL).body("order")).await;
            assert_eq!(went, once(AfterRedirect));
            assert_eq!(server.count(), 1);
        }
    }
}

/// The whole of an attempt is dropped at its head timeout, and with it a nested POST on its way.
#[tokio::test]
async fn a_head_timeout_over_a_nested_post_does_not_send_the_post_again() {
    struct Forward(ClientWithMiddleware);

    #[async_trait::async_trait]
    impl Middleware for Forward {
        async fn handle(
            &self,
            request: Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> Result<Response> {
            self.0.execute(request).await
        }
    }

    let server = H1::start(Act::Silence).await;
    let nested = retrying(leading_to(&server), at_once(2));
    let client = reqwest_middleware::ClientBuilder::new(support::client().build().unwrap())
        .with(RetryMiddleware::new(
            RetryPolicy::from(at_once(2)).head_timeout(Duration::from_millis(100)),
        ))
        .with(Forward(nested))
        .build();
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, once(TransportError::Timeout));
    assert_eq!(server.count(), 1);
    // The twin.
    let (_, went) = send(client.get(URL)).await;
    assert_eq!(went, thrice(TransportError::Timeout));
    assert_eq!(server.count(), 4);
}

/// A head timeout in the middle of an upload.
#[tokio::test]
async fn a_head_timeout_during_an_upload_does_not_send_a_post_again() {
    // It never answers: the body has no end.
    let server = H1::start(Act::ok("fine")).await;
    let policy = RetryPolicy::from(at_once(2)).head_timeout(Duration::from_millis(100));
    let client = retrying(leading_to(&server), policy);
    let slow = || {
        let pieces = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some((Ok::<_, std::io::Error>("piece"), ()))
        });
        reqwest::Body::wrap_stream(pieces)
    };
    let (_, went) = send(client.post(URL).body(slow())).await;
    let stop = StopReason::NotReplayable;
    assert_eq!(
        went,
        Went::stopped([Failure(TransportError::Timeout)], stop)
    );
    let source = BodySource::new(move || Ok::<_, std::io::Error>(slow()));
    let (_, went) = send(client.post(URL).with_extension(source)).await;
    assert_eq!(went, once(TransportError::Timeout));
    assert_eq!((server.begun(), server.count()), (2, 0));
}

/// A nested client that is given the map of the request around it leaves the retries to that.
#[tokio::test]
async fn what_a_client_with_the_same_map_lost_is_not_unsent() {
    struct WithMap(ClientWithMiddleware);

    #[async_trait::async_trait]
    impl Middleware for WithMap {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let copy = request.try_clone().unwrap();
            let first = self.0.execute_with_extensions(copy, extensions);
            match tokio::time::timeout(Duration::from_millis(100), first).await {
                Ok(Ok(answer)) => Ok(answer),
                _ => next.run(request, extensions).await,
            }
        }
    }

    for act in [Act::Silence, Act::CloseAfterReading] {
        let server = H1::start(act).await;
        let nested = retrying(leading_to(&server), at_once(2));
        let client = around(WithMap(nested));
        let (_, went) = send(client.post(URL).body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.count(), 1);
    }
    // A statement in the map counts.
    let server = H1::start(Act::CloseAfterReading).await;
    let client = around(WithMap(retrying(leading_to(&server), at_once(2))));
    let request = client.get(URL).with_extension(ReplaySafe(false));
    let (_, went) = send(request).await;
    assert_eq!((went, server.count()), (once(AfterRedirect), 1));
    // The twin.
    let nowhere = support::client().dns_resolver(Names::new());
    let client = around(WithMap(retrying(nowhere, at_once(2))));
    let (_, went) = send(client.post(URL).body("order")).await;
    assert_eq!(went, thrice(Dns));
}

/// A middleware that runs the rest of the chain twice: its second try finds no name. Only a second
/// copy of the middleware behind it sees that there was a first.
#[tokio::test]
async fn a_second_copy_sees_what_a_middleware_before_it_sent_twice() {
    struct Twice(Names);

    #[async_trait::async_trait]
    impl Middleware for Twice {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let first = next.clone().run(request.try_clone().unwrap(), extensions);
            let _ = tokio::time::timeout(Duration::from_millis(100), first).await;
            self.0.fail_next(1);
            next.run(request, extensions).await
        }
    }

    for act in [Act::Silence, Act::CloseAfterReading] {
        let server = H1::start(act).await;
        let names = Names::new();
        names.set("target.test", server.addr);
        let plain = support::client().dns_resolver(names.clone());
        let client = reqwest_middleware::ClientBuilder::new(plain.build().unwrap())
            .with(RetryMiddleware::new(at_once(2)))
            .with(Twice(names))
            .with(RetryMiddleware::new(at_once(2)))
            .build();
        let (_, went) = send(client.post(URL).body("order")).await;
        assert_eq!(went, once(AfterRedirect));
        assert_eq!(server.count(), 1);
    }
}

/// An answer of a nested client after which the connection was refused: the answer is thrown away
/// by the middleware, which the docs of `unsent_failures` name.
#[tokio::test]
async fn an_answer_that_a_middleware_throws_away_is_its_own_business() {
    let server = H1::start(Answer::new(503)).await;
    let client = around(Failover(retrying(leading_to(&server), at_once(0))));
    let (outcome, went) = send(client.post(URL).body("order")).await;
    assert!(outcome.unwrap_err().is_connect());
    assert_eq!(went, thrice(Dns));
}

/// A judge, a condition and a server's header may have any method sent again, but what they look at
/// is the answer to the GET that a redirect led to, and the POST before it was processed.
#[tokio::test]
async fn nothing_sends_a_post_again_for_the_answer_of_another_request() {
    let name = HeaderName::from_static("x-should-retry");
    let by_header = RetryRule {
        override_header: Some(name),
        ..at_once(2)
    };
    let judge = |_: &ResponseHead<'_>, body: &[u8]| match body {
        b"again" => Judgement::RetryAfter(Duration::ZERO),
        _ => Judgement::ByRule,
    };
    for (status, policy) in [
        (
            200,
            RetryPolicy::from(at_once(2)).judge_body(Methods::Any, 100, judge),
        ),
        (
            202,
            RetryPolicy::from(at_once(2)).retry_if(Methods::Any, |head| head.status() == 202),
        ),
        (409, RetryPolicy::from(by_header)),
    ] {
        let answer = Answer::new(status)
            .header("x-should-retry", "true")
            .body("again");
        let answering = H1::start(answer).await;
        let moved = Answer::new(303).header("location", &answering.url("/next"));
        let server = H1::start(moved).await;
        let tracked = client_builder().no_proxy();
        let client = retrying(tracked, policy);
        let result = AttemptResult::Status(status.try_into().unwrap());

        let (_, went) = send(client.post(server.url("/")).body("order")).await;
        assert_eq!(went, Went::stopped([result], StopReason::MethodNotAllowed));
        assert_eq!((server.count(), answering.count()), (1, 1));
        // The twin: it is the POST's own answer.
        let (_, went) = send(client.post(answering.url("/")).body("order")).await;
        assert_eq!(went, Went::stopped([result; 3], StopReason::Exhausted));
    }
}

/// A stream of which a middleware further in read a part before it handed the rest on.
#[tokio::test]
async fn a_stream_that_was_begun_further_in_is_not_sent_again() {
    struct Peek;

    #[async_trait::async_trait]
    impl Middleware for Peek {
        async fn handle(
            &self,
            mut request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            if let Some(body) = request.body_mut() {
                let _ = futures_util::future::poll_fn(|cx| {
                    http_body::Body::poll_frame(Pin::new(&mut *body), cx)
                })
                .await;
            }
            next.run(request, extensions).await
        }
    }

    let client = around(Peek);
    let pieces = || futures_util::stream::iter(["one", "two"].map(Ok::<_, std::io::Error>));
    let stream = reqwest::Body::wrap_stream(pieces());
    let log = RetryLog::new();
    let request = client.put(URL).body(stream).with_extension(log.clone());
    request.send().await.unwrap_err();
    let report = log.report().unwrap();
    assert_eq!(report.stop_reason(), Some(StopReason::NotReplayable));
    // No retry was begun, not even its wait.
    let record = &report.records()[0];
    assert_eq!((record.result(), record.wait()), (Failure(Dns), None));
    // The twin: one that nobody looked into comes back.
    let client = retrying(support::client().dns_resolver(Names::new()), at_once(2));
    let stream = reqwest::Body::wrap_stream(pieces());
    let (_, went) = send(client.put(URL).body(stream)).await;
    assert_eq!(went, thrice(Dns));
}
