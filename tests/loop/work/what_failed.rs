use reqwest_retry_rules::{
    AttemptResult, BodySource, FreshBody, Judgement, PauseTerms, StopReason, TotalTimeout,
    TransportError, WaitSource,
};

use super::*;
use crate::support::scripted::{client, errors, fail, hang, ms, status, times};

/// Does a work of one GET whose body is read, and says what the work says of its first call.
async fn first(act: impl Fn() -> Act + Send + 'static) -> (AttemptResult, usize) {
    let transport = Transport::choose(move |_| act());
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| read(&client, "").await).await;
    (went.1.records()[0].result(), transport.count())
}

#[tokio::test(start_paused = true)]
async fn a_status_error_is_that_response() {
    let of = async |code| first(move || status(code)).await;
    assert_eq!(
        of(503).await,
        (
            AttemptResult::Status(http::StatusCode::SERVICE_UNAVAILABLE),
            4
        )
    );
    // What the rule does not retry comes back.
    assert_eq!(
        of(404).await,
        (AttemptResult::Status(http::StatusCode::NOT_FOUND), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_transport_is_its_class() {
    let failure = AttemptResult::Failure;
    assert_eq!(
        first(|| fail(errors::closed())).await,
        (failure(TransportError::Closed), 4)
    );
    assert_eq!(
        first(|| fail(errors::refused())).await,
        (failure(TransportError::Connect), 4)
    );
    assert_eq!(
        first(|| fail(errors::timeout())).await,
        (failure(TransportError::Timeout), 4)
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_broke_off_or_took_too_long_is_a_failure_of_the_transport() {
    let failure = AttemptResult::Failure;
    assert_eq!(first(broken).await, (failure(TransportError::Body), 4));
    let slow = || ok().broken_body("half");
    assert_eq!(first(slow).await, (failure(TransportError::Timeout), 4));
}

#[tokio::test(start_paused = true)]
async fn it_is_one_inside_json_too_and_a_body_that_cannot_be_decoded_is_none() {
    for (act, calls) in [
        (broken as fn() -> Act, 4),
        (|| ok().body("no number"), 1),
        (|| ok().body("1"), 1),
    ] {
        let transport = Transport::choose(move |_| act());
        let client = without_retries(&transport);
        let went: (Result<u32>, _) = run(at_once(), async |_| {
            Ok(get(&client, "").await?.json().await?)
        })
        .await;
        assert_eq!(went.1.attempts(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_is_found_however_deep_it_is_wrapped() {
    for (wraps, calls) in [(true, 4), (false, 1)] {
        let transport = Transport::choose(|_| status(503));
        let client = without_retries(&transport);
        let went = run(at_once(), async |_| match get(&client, "").await {
            Ok(response) => Ok(response),
            Err(error) if wraps => {
                let io = std::io::Error::other(error);
                Err(Error::Middleware(
                    anyhow::Error::new(io).context("the index"),
                ))
            }
            // Its words alone say nothing.
            Err(error) => Err(Error::Middleware(anyhow::anyhow!("{error}"))),
        })
        .await;
        assert_eq!(went.1.attempts(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_is_waited_for() {
    let transport = Transport::new([status(503).header("retry-after", "2"), ok()]);
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_done(&went, 2);
    assert_eq!(transport.times(), [0, 2000]);
    let record = &went.1.records()[0];
    assert_eq!(record.retry_after(), Some(ms(2000)));
    assert_eq!(
        (record.wait(), record.wait_source()),
        (Some(ms(2000)), Some(WaitSource::Server))
    );

    let transport = Transport::new([status(503).header("retry-after", "61"), ok()]);
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::RetryAfterTooLong(ms(61_000)));
}

#[tokio::test(start_paused = true)]
async fn the_headers_are_those_of_the_send_whose_url_and_status_fit() {
    let transport = Transport::choose(|request| match request.url().path() {
        "/a" => status(503).header("retry-after", "1"),
        "/b" => status(503).header("retry-after", "2"),
        _ => status(429).header("retry-after", "4"),
    });
    let client = without_retries(&transport);
    let rule = RetryRule {
        max_retries: 1,
        ..at_once()
    };
    for (path, wait) in [("a", 1000), ("b", 2000), ("c", 4000)] {
        let went = run(rule.clone(), async |_| {
            let answers = [
                get(&client, "c").await,
                get(&client, "a").await,
                get(&client, "b").await,
            ];
            answers
                .into_iter()
                .find(|answer| {
                    let url = answer.as_ref().unwrap_err().url().unwrap();
                    url.path().ends_with(path)
                })
                .unwrap()
        })
        .await;
        assert_eq!(went.1.records()[0].wait(), Some(ms(wait)), "{path}");
    }
}

/// The error has the URL of the response, which is not what was asked for.
#[tokio::test(start_paused = true)]
async fn a_send_that_was_answered_from_elsewhere_after_a_redirect_is_found() {
    let transport = Transport::choose(|_| status(503).answered_by("http://elsewhere.test/"));
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 4, StopReason::Exhausted);
    let went = run(at_once(), async |_| post(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
}

#[tokio::test(start_paused = true)]
async fn of_several_sends_that_fit_it_is_the_one_that_is_least_to_be_repeated() {
    for (method, calls) in [(Method::POST, 1), (Method::GET, 4)] {
        let transport = Transport::choose(|_| status(503));
        let client = without_retries(&transport);
        let went = run(at_once(), async |_| {
            let _ = send(&client, method.clone(), "").await;
            get(&client, "").await
        })
        .await;
        assert_eq!(went.1.attempts(), calls, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_override_header_counts() {
    let rule = RetryRule {
        override_header: Some(http::HeaderName::from_static("x-should-retry")),
        ..at_once()
    };
    let went = async |code, says: &'static str| {
        let transport = Transport::choose(move |_| status(code).header("x-should-retry", says));
        let client = without_retries(&transport);
        let went = run(rule.clone(), async |_| get(&client, "").await).await;
        (went.1.attempts(), went.1.stop_reason())
    };
    assert_eq!(
        went(503, "false").await,
        (1, Some(StopReason::ServerSaidNo))
    );
    assert_eq!(went(400, "true").await, (4, Some(StopReason::Exhausted)));
    assert_eq!(
        went(400, "maybe").await,
        (1, Some(StopReason::NotRetryable))
    );
}

#[tokio::test(start_paused = true)]
async fn a_total_timeout_and_a_head_timeout_of_a_send_are_timeouts() {
    for policy in [
        RetryPolicy::from(RetryRule::never()).total_timeout(ms(10)),
        RetryPolicy::from(RetryRule::never()).head_timeout(ms(10)),
    ] {
        let transport = Transport::choose(|_| hang());
        let client = client(&transport, policy);
        let went = run(at_once(), async |_| get(&client, "").await).await;
        assert_stopped(&went, 4, StopReason::Exhausted);
        assert_eq!(
            went.1.records()[0].result(),
            AttemptResult::Failure(TransportError::Timeout)
        );
        // A POST may have been processed.
        let went = run(at_once(), async |_| post(&client, "").await).await;
        assert_stopped(&went, 1, StopReason::MethodNotAllowed);
        // And a rule without timeouts retries none.
        let without = RetryRule {
            timeouts: false,
            ..at_once()
        };
        let went = run(without, async |_| get(&client, "").await).await;
        assert_stopped(&went, 1, StopReason::NotRetryable);
    }
}

/// The work's policy pauses nothing: it is the client's that does.
#[tokio::test(start_paused = true)]
async fn a_send_that_an_origin_held_back_is_tried_again_when_the_origin_is_ready() {
    let transport = Transport::new([status(503).header("retry-after", "2"), ok()]);
    let never = RetryRule {
        max_retries: 0,
        ..at_once()
    };
    let policy = RetryPolicy::from(never).pause_origins(PauseTerms {
        spread: 0,
        ..PauseTerms::default()
    });
    let client = client(&transport, policy);
    client.get(URL).send().await.unwrap();
    let went = run(at_once(), async |_| {
        let request = client.get(URL).with_extension(TotalTimeout(ms(1000)));
        request.send().await
    })
    .await;
    assert_done(&went, 2);
    assert_eq!(transport.times(), [0, 2000]);
}

#[tokio::test(start_paused = true)]
async fn a_body_source_that_fails_before_the_first_send_leaves_it_unsent() {
    let transport = Transport::new([ok()]);
    let client = without_retries(&transport);
    let rule = RetryRule {
        unsent_failures: true,
        ..at_once()
    };
    let went = async |rule: RetryRule| {
        run(rule, async |attempt| {
            let source = BodySource::new(move || match attempt {
                1 => Err(std::io::Error::other("no file yet")),
                _ => Ok(FreshBody::from("body")),
            });
            client.post(URL).with_extension(source).send().await
        })
        .await
    };
    assert_done(&went(rule).await, 2);
    assert_stopped(&went(at_once()).await, 1, StopReason::MethodNotAllowed);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_sent_again_is_made_anew_by_the_work() {
    let transport = Transport::new([status(503), ok()]);
    let client = client(&transport, any());
    let went = run(any(), async |_| {
        let stream = futures_util::stream::iter([Ok::<_, std::io::Error>("piece")]);
        let response = client
            .put(URL)
            .body(Body::wrap_stream(stream))
            .send()
            .await?;
        Ok(response.error_for_status()?)
    })
    .await;
    assert_done(&went, 2);
    let bodies: Vec<_> = transport
        .seen()
        .into_iter()
        .map(|seen| seen.body.unwrap())
        .collect();
    assert_eq!(bodies, ["piece", "piece"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_clients_policy_found_in_a_body_counts() {
    let went = async |judgement: Judgement| {
        let transport = Transport::choose(|_| status(503).body("quota"));
        let rule = RetryRule {
            max_retries: 0,
            ..at_once()
        };
        let policy = RetryPolicy::from(rule).judge_body(Methods::Any, 99, move |_, _| judgement);
        let client = client(&transport, policy);
        let went = run(at_once(), async |_| get(&client, "").await).await;
        (went.1.attempts(), went.1.records()[0].wait())
    };
    assert_eq!(went(Judgement::Stop).await, (1, None));
    assert_eq!(went(Judgement::ByRule).await, (4, Some(ms(0))));
    assert_eq!(went(Judgement::RetryAfter(ms(70))).await, (4, Some(ms(70))));
}

#[tokio::test(start_paused = true)]
async fn the_closures_of_the_works_policy_are_asked_about_a_refusal() {
    let went = async |policy: RetryPolicy| {
        let transport = Transport::choose(|_| status(409).header("x-in", "3"));
        let client = without_retries(&transport);
        let went = run(policy, async |_| get(&client, "").await).await;
        (went.1.attempts(), went.1.records()[0].wait())
    };
    let policy = || RetryPolicy::from(at_once());
    assert_eq!(went(policy()).await, (1, None));
    let conflict = policy().retry_if(Methods::Idempotent, |head| head.status() == 409);
    assert_eq!(went(conflict.clone()).await, (4, Some(ms(0))));
    let once = policy().retry_if(Methods::Idempotent, |head| head.retries() == 0);
    assert_eq!(went(once).await, (2, Some(ms(0))));
    let asked = conflict
        .clone()
        .server_delay(|head| head.headers().get("x-in").map(|_| ms(3)));
    assert_eq!(went(asked).await, (4, Some(ms(3))));
    assert_eq!(went(conflict.veto(|_| true)).await, (1, None));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_middleware_further_in_counts_if_the_policy_classifies_it() {
    let no_credentials = |_: &Error| Some(TransportError::NotProcessed);
    let rule = RetryRule {
        unsent_failures: true,
        ..at_once()
    };
    for (classifies, calls) in [(true, 4), (false, 1)] {
        let transport = Transport::choose(|_| fail(Error::middleware(std::fmt::Error)));
        let of_client = RetryPolicy::from(RetryRule::never()).classify_with(no_credentials);
        let client = client(&transport, of_client.total_timeout(ms(99)));
        let mut policy = RetryPolicy::from(rule.clone());
        if classifies {
            policy = policy.classify_with(no_credentials);
        }
        let went = run(policy, async |_| post(&client, "").await).await;
        assert_eq!(went.1.attempts(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_veto_header_of_a_work_that_is_answered_below_four_hundred_is_not_kept() {
    // `Ok` sends leave no headers: a work that makes an error of a 200 is for a judge.
    let transport = Transport::new(times(1, || ok().header("retry-after", "5")));
    let client = without_retries(&transport);
    let went: (Result, _) = run(at_once(), async |_| {
        get(&client, "").await?;
        Err(Error::middleware(std::fmt::Error))
    })
    .await;
    assert_stopped(&went, 1, StopReason::NotRetryable);
    assert_eq!(went.1.retry_after(), None);
}

#[tokio::test(start_paused = true)]
async fn what_the_client_found_in_an_earlier_response_says_nothing_of_the_last() {
    let rule = RetryRule {
        max_retries: 1,
        ..at_once()
    };
    for (second, calls) in [(404, 1), (409, 3)] {
        let first = std::sync::atomic::AtomicBool::new(true);
        let transport = Transport::choose(move |_| {
            let is_first = first.swap(false, std::sync::atomic::Ordering::Relaxed);
            status(if is_first { 409 } else { second })
        });
        let policy = RetryPolicy::from(rule.clone());
        let policy = policy.retry_if(Methods::Idempotent, |head| head.status() == 409);
        let client = client(&transport, policy);
        let went = run(at_once(), async |_| get(&client, "").await).await;
        // The send makes the first retry.
        assert_eq!(went.1.attempts(), calls, "{second}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_rule_is_that_of_the_route_of_the_send_that_failed() {
    let patient = RetryRule {
        max_retries: 5,
        ..at_once()
    };
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(RetryRule::never());
    let policy = policy.route("origin.test/patient".parse().unwrap(), patient);
    let went = run(policy.clone(), async |_| get(&client, "patient").await).await;
    assert_stopped(&went, 6, StopReason::Exhausted);
    let went = run(policy, async |_| get(&client, "other").await).await;
    assert_stopped(&went, 1, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn a_send_is_repeatable_by_the_rule_of_its_own_route() {
    let posts = RetryRule {
        sent_failures: Methods::Listed(vec![Method::GET, Method::POST]),
        ..at_once()
    };
    let any = RetryRule {
        sent_failures: Methods::Any,
        statuses: vec![StatusRule::new([503], Methods::Any)],
        ..at_once()
    };
    for (created, calls) in [("orders", 1), ("search", 4)] {
        let transport = Transport::choose(|request| match request.url().path() {
            "/fails" => status(503),
            _ => ok(),
        });
        let client = without_retries(&transport);
        let policy = RetryPolicy::from(at_once())
            .route("origin.test/search".parse().unwrap(), posts.clone())
            .route("origin.test/fails".parse().unwrap(), any.clone());
        // That everything may be repeated where the GET goes says nothing of the POST.
        let went = run(policy, async |_| {
            post(&client, created).await?;
            get(&client, "fails").await
        })
        .await;
        assert_eq!(went.1.attempts(), calls, "{created}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_classifies_errors_is_not_asked_about_answers() {
    let policy = RetryPolicy::from(at_once()).classify_with(|_| Some(TransportError::Closed));
    for (act, result) in [
        (
            (|| status(404)) as fn() -> Act,
            AttemptResult::Status(http::StatusCode::NOT_FOUND),
        ),
        (|| ok().body("no number"), AttemptResult::Error),
    ] {
        let transport = Transport::choose(move |_| act());
        let client = without_retries(&transport);
        let went: (Result<u32>, _) = run(policy.clone(), async |_| {
            Ok(get(&client, "").await?.json().await?)
        })
        .await;
        assert_stopped(&went, 1, StopReason::NotRetryable);
        assert_eq!(went.1.records()[0].result(), result);
    }
}
