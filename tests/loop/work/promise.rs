use std::sync::Mutex;

use futures_util::future::BoxFuture;
use http::{Extensions, HeaderName};
use reqwest::Request;
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use reqwest_retry_rules::{LogLevel, ReplaySafe, RetryMiddleware, StopReason, TransportError};

use super::*;
use crate::support::scripted::{bare_client, client, errors, fail, hang, ms, status};

fn unsent() -> RetryRule {
    RetryRule {
        unsent_failures: true,
        ..at_once()
    }
}

/// What was processed, by method.
fn count(transport: &Transport, method: Method) -> usize {
    transport
        .seen()
        .iter()
        .filter(|seen| seen.method == method)
        .count()
}

/// Answers the POSTs, and refuses the GETs.
fn only_posts() -> Transport {
    Transport::choose(|request| match *request.method() {
        Method::GET => status(503),
        _ => status(201),
    })
}

#[tokio::test(start_paused = true)]
async fn a_work_that_created_something_and_then_lost_a_get_is_not_done_again() {
    let transport = only_posts();
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| {
        post(&client, "orders").await?;
        get(&client, "orders/1").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    assert_eq!(count(&transport, Method::POST), 1);
}

#[tokio::test(start_paused = true)]
async fn a_work_that_put_something_and_then_lost_a_get_is_done_again() {
    let transport = only_posts();
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| {
        send(&client, Method::PUT, "orders/1").await?;
        get(&client, "orders/1").await
    })
    .await;
    assert_stopped(&went, 4, StopReason::Exhausted);
    assert_eq!(count(&transport, Method::PUT), 4);
}

#[tokio::test(start_paused = true)]
async fn a_method_in_sent_failures_may_be_repeated() {
    let rule = RetryRule {
        sent_failures: Methods::Listed(vec![Method::GET, Method::POST]),
        ..at_once()
    };
    let transport = only_posts();
    let client = without_retries(&transport);
    let went = run(rule, async |_| {
        post(&client, "search").await?;
        get(&client, "found").await
    })
    .await;
    assert_stopped(&went, 4, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_any_method_may_be_sent_again_for_does_not_excuse_another_send() {
    // Alone the POST may be repeated.
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let went = run(any(), async |_| post(&client, "one").await).await;
    assert_stopped(&went, 4, StopReason::Exhausted);
    // Beside one that was answered it may not.
    let transport = Transport::choose(|request| match request.url().path() {
        "/one" => status(503),
        _ => ok(),
    });
    let client = without_retries(&transport);
    let went = run(any(), async |_| {
        post(&client, "other").await?;
        post(&client, "one").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
}

#[tokio::test(start_paused = true)]
async fn joined_sends_count_in_whichever_order_they_end() {
    for (of_post, of_get) in [(1, 9), (9, 1)] {
        let transport = Transport::choose(move |request| match *request.method() {
            Method::GET => status(503).after(of_get),
            _ => ok().after(of_post),
        });
        let client = without_retries(&transport);
        let went = run(at_once(), async |_| {
            let both = tokio::join!(post(&client, ""), get(&client, ""));
            both.0.and(both.1)
        })
        .await;
        assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_still_under_way_counts_as_processed() {
    for (method, calls) in [(Method::POST, 1), (Method::PUT, 4)] {
        let transport = Transport::choose(|request| match *request.method() {
            Method::GET => status(503).after(1),
            _ => hang(),
        });
        let client = without_retries(&transport);
        // `try_join` drops the other at once.
        let went = run(at_once(), async |_| {
            tokio::try_join!(send(&client, method.clone(), ""), get(&client, ""))
        })
        .await;
        assert_eq!(went.1.attempts(), calls, "{method}");
        assert_eq!(count(&transport, method), calls as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_kept_alive_elsewhere_counts_as_processed() {
    let transport = Transport::choose(|request| match *request.method() {
        Method::GET => status(503),
        _ => ok().after(1000),
    });
    let client = without_retries(&transport);
    let kept: Mutex<Vec<BoxFuture<'_, Result<Response>>>> = Mutex::default();
    let went = run(at_once(), async |_| {
        let mut late: BoxFuture<'_, _> = Box::pin(post(&client, ""));
        assert!(futures_util::poll!(&mut late).is_pending());
        kept.lock().unwrap().push(late);
        get(&client, "").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
}

#[tokio::test(start_paused = true)]
async fn a_send_that_the_work_dropped_by_a_timeout_counts_as_processed() {
    for (method, calls, reason) in [
        (Method::POST, 1, StopReason::MethodNotAllowed),
        (Method::PUT, 4, StopReason::Exhausted),
    ] {
        let transport = Transport::choose(|request| match *request.method() {
            Method::GET => status(503),
            _ => hang(),
        });
        let client = without_retries(&transport);
        let went = run(at_once(), async |_| {
            let lost = tokio::time::timeout(ms(5), send(&client, method.clone(), "")).await;
            assert!(lost.is_err());
            get(&client, "").await
        })
        .await;
        assert_stopped(&went, calls, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_is_proved_unsent_is_sent_again_and_one_that_is_lost_is_not() {
    let transport = Transport::new([fail(errors::refused()), fail(errors::refused()), ok()]);
    let client = without_retries(&transport);
    let went = run(unsent(), async |_| post(&client, "").await).await;
    assert_done(&went, 3);

    let transport = Transport::new([fail(errors::closed())]);
    let client = without_retries(&transport);
    let went = run(unsent(), async |_| post(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
}

#[tokio::test(start_paused = true)]
async fn a_post_that_is_unsent_does_not_keep_a_work_from_being_done_again() {
    let transport = Transport::choose(|request| match *request.method() {
        Method::GET => status(503),
        _ => fail(errors::refused()),
    });
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| {
        assert!(post(&client, "").await.is_err());
        get(&client, "").await
    })
    .await;
    assert_stopped(&went, 4, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn unsent_means_in_every_try() {
    let rule = RetryRule {
        unsent_failures: true,
        max_retries: 2,
        ..any()
    };
    // The first try was answered, and the rule of the send has it sent again.
    let transport = Transport::new([status(503), fail(errors::refused())]);
    let once = RetryRule {
        max_retries: 1,
        ..rule.clone()
    };
    let client = client(&transport, once);
    let went = run(rule, async |_| post(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    let result = went.1.records()[0].result();
    let after = reqwest_retry_rules::AttemptResult::Failure(TransportError::AfterRedirect);
    assert_eq!(result, after);
}

#[tokio::test(start_paused = true)]
async fn a_key_counts_only_with_the_callers_word() {
    let key = HeaderName::from_static("idempotency-key");
    let policy = RetryPolicy::from(RetryRule {
        max_retries: 0,
        ..at_once()
    });
    for (safe, calls) in [(None, 1), (Some(false), 1), (Some(true), 4)] {
        let transport = only_posts();
        let client = client(&transport, policy.clone().idempotency_key(key.clone()));
        let went = run(at_once(), async |_| {
            let mut request = client.post(URL);
            if let Some(safe) = safe {
                request = request.with_extension(ReplaySafe(safe));
            }
            request.send().await?;
            get(&client, "").await
        })
        .await;
        assert_eq!(went.1.attempts(), calls, "{safe:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_that_is_said_to_be_unsafe_keeps_a_work_from_being_done_again() {
    let transport = Transport::choose(|_| status(503));
    let client = without_retries(&transport);
    let went = run(at_once(), async |_| {
        client
            .get(URL)
            .with_extension(ReplaySafe(false))
            .send()
            .await?;
        get(&client, "").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
}

/// Likewise if it was answered, and it is another send that failed. Twins: nothing was said of it, or
/// that it is safe.
#[tokio::test(start_paused = true)]
async fn a_get_that_is_said_to_be_unsafe_counts_beside_the_one_that_failed() {
    for (stated, calls, reason) in [
        (Some(false), 1, StopReason::MethodNotAllowed),
        (Some(true), 4, StopReason::Exhausted),
        (None, 4, StopReason::Exhausted),
    ] {
        let transport = Transport::choose(|request| match request.url().path() {
            "/order" => ok(),
            _ => status(503),
        });
        let client = without_retries(&transport);
        let went = run(at_once(), async |_| {
            let order = client.get(format!("{URL}order"));
            match stated {
                Some(safe) => order.with_extension(ReplaySafe(safe)).send().await?,
                None => order.send().await?,
            };
            get(&client, "").await
        })
        .await;
        assert_stopped(&went, calls, reason);
    }
}

/// A POST that the client's own rule has sent again after it was lost, and that was refused then.
/// The twin: it was refused each time.
#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_hide_that_an_answer_was_lost_before() {
    let lost = || fail(errors::closed());
    let refused = || status(503);
    for (first, calls, reason) in [
        (lost(), 1, StopReason::MethodNotAllowed),
        (refused(), 2, StopReason::Exhausted),
    ] {
        let transport = Transport::new([first, refused(), refused(), refused()]);
        let once = RetryRule {
            max_retries: 1,
            sent_failures: Methods::Any,
            ..any()
        };
        let client = client(&transport, once);
        let twice = RetryRule {
            max_retries: 2,
            ..any()
        };
        let went = run(twice, async |_| post(&client, "").await).await;
        assert_stopped(&went, calls, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn the_word_of_the_task_holds_for_the_whole_work() {
    let transport = only_posts();
    let client = without_retries(&transport);
    let policy = RetryPolicy::from(at_once());
    let work = policy.run(async |_| {
        post(&client, "").await?;
        get(&client, "").await
    });
    let overrides = Overrides::new().replay_safe(true);
    assert!(with_overrides(overrides, work).await.is_err());
    assert_eq!(count(&transport, Method::POST), 4);
}

#[tokio::test(start_paused = true)]
async fn a_send_of_several_clients_is_seen_whichever_fails() {
    let (orders, audit) = (
        Transport::choose(|_| ok()),
        Transport::choose(|_| status(503)),
    );
    let (of_orders, of_audit) = (client(&orders, at_once()), without_retries(&audit));
    let went = run(at_once(), async |_| {
        post(&of_orders, "").await?;
        get(&of_audit, "").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    assert_eq!((orders.count(), audit.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_seen_fails_as_one_that_may_not_repeat() {
    let transport = Transport::choose(|_| status(503));
    let client = bare_client(&transport);
    let went = run(at_once(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    // Neither does a list help, but "any" does.
    let listed = RetryRule {
        statuses: vec![StatusRule::new([503], Methods::Listed(vec![Method::GET]))],
        ..at_once()
    };
    let went = run(listed, async |_| get(&client, "").await).await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    let went = run(any(), async |_| get(&client, "").await).await;
    assert_stopped(&went, 4, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn the_url_tells_an_unseen_send_from_a_seen_one() {
    let transport = Transport::choose(|_| status(503));
    let (seen, unseen) = (without_retries(&transport), bare_client(&transport));
    let went = run(at_once(), async |_| {
        let _ = get(&seen, "seen").await;
        get(&unseen, "unseen").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
    let went = run(at_once(), async |_| {
        let _ = get(&unseen, "unseen").await;
        get(&seen, "seen").await
    })
    .await;
    assert_stopped(&went, 4, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn a_late_send_of_an_earlier_call_is_none_of_the_next() {
    let transport = Transport::choose(|request| match *request.method() {
        Method::GET => status(503),
        _ => ok().after(5),
    });
    let client = without_retries(&transport);
    let kept: Mutex<Option<BoxFuture<'_, Result<Response>>>> = Mutex::default();
    // The judge vouches for the first call, in which a POST is begun that ends in the second.
    let policy = RetryPolicy::from(at_once());
    let outcome = policy
        .run_judged(
            |error: &(u32, Error)| match error.0 {
                1 => reqwest_retry_rules::Failure::Retry(Methods::Any),
                _ => reqwest_retry_rules::Failure::Retry(Methods::Idempotent),
            },
            async |attempt| {
                if attempt == 1 {
                    let mut late: BoxFuture<'_, _> = Box::pin(post(&client, ""));
                    assert!(futures_util::poll!(&mut late).is_pending());
                    *kept.lock().unwrap() = Some(late);
                } else if let Some(late) = { kept.lock().unwrap().take() } {
                    assert!(late.await.is_ok());
                }
                get(&client, "")
                    .await
                    .map(drop)
                    .map_err(|error| (attempt, error))
            },
        )
        .await;
    assert_eq!(outcome.unwrap_err().0, 4);
}

#[tokio::test(start_paused = true)]
async fn a_judge_is_held_to_every_send_and_not_to_the_last() {
    for (method, calls) in [(Method::POST, 1), (Method::PUT, 4)] {
        let transport = Transport::choose(|_| ok());
        let client = without_retries(&transport);
        let policy = RetryPolicy::from(at_once());
        let outcome = policy
            .run_judged(
                |_: &&str| reqwest_retry_rules::Failure::Retry(Methods::Idempotent),
                async |_| {
                    send(&client, method.clone(), "")
                        .await
                        .map_err(|_| "sent")?;
                    get(&client, "").await.map_err(|_| "sent")?;
                    Err::<(), _>("not what was wanted")
                },
            )
            .await;
        assert_eq!(outcome, Err("not what was wanted"));
        assert_eq!(count(&transport, Method::GET), calls, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_sends_to_one_url_that_were_refused_the_rule_is_asked_about_the_post() {
    // The rule has a POST sent again after a 503, and so it is no reason to stop.
    for (rule, calls) in [(any(), 4), (at_once(), 1)] {
        let transport = Transport::choose(|_| status(503));
        let client = without_retries(&transport);
        let went = run(rule, async |_| {
            let _ = post(&client, "").await;
            get(&client, "").await
        })
        .await;
        assert_eq!(went.1.attempts(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_post_is_the_one_that_failed_if_a_get_to_the_same_url_was_unsent() {
    let transport = Transport::choose(|request| match *request.method() {
        Method::GET => fail(errors::refused()),
        _ => fail(errors::closed()),
    });
    let client = without_retries(&transport);
    let went = run(unsent(), async |_| {
        let _ = post(&client, "").await;
        get(&client, "").await
    })
    .await;
    assert_stopped(&went, 1, StopReason::MethodNotAllowed);
}

/// The POST was answered; what failed is another request, which a middleware made after it.
#[tokio::test(start_paused = true)]
async fn a_send_that_was_answered_and_whose_audit_was_refused_is_not_done_again() {
    /// Asks somebody else after the answer, who is not there.
    struct Audit(bool);

    #[async_trait::async_trait]
    impl Middleware for Audit {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> reqwest_middleware::Result<Response> {
            let answer = next.run(request, extensions).await?;
            match self.0 {
                true => Err(errors::refused().into()),
                false => Ok(answer),
            }
        }
    }

    for (audits, act, calls) in [
        (true, (|| status(201)) as fn() -> Act, 1),
        // The twin: the POST itself was refused.
        (false, || fail(errors::refused()), 4),
    ] {
        let transport = Transport::choose(move |_| act());
        crate::support::install_crypto();
        let silent = RetryPolicy::from(RetryRule::never()).log_levels(LogLevel::Off, LogLevel::Off);
        let client = ClientBuilder::new(reqwest::Client::new())
            .with(RetryMiddleware::new(silent))
            .with(Audit(audits))
            .with(transport.clone())
            .build();
        let went = run(unsent(), async |_| post(&client, "orders").await).await;
        assert_eq!(
            (went.1.attempts(), transport.count()),
            (calls, calls as usize)
        );
    }
}
