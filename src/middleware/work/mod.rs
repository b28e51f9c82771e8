//! The loop around a piece of work that is larger than one send up to its head.

mod cause;
mod failure;
mod judgement;
mod progress;
mod working;

pub use self::failure::Failure;

use std::error::Error as StdError;
use std::future::Future;
use std::pin::pin;

use http::Extensions;

use self::progress::Progress;
use self::working::Working;
use super::clock;
use super::overrides::{InForce, PerRequest};
use super::policy::RetryPolicy;
use super::tracking::EnteredWork;

impl RetryPolicy {
    /// Does a piece of work until it succeeds or there is a reason to stop, and gives the last error
    /// back unchanged: the loop of a send, around more than one send up to its head.
    ///
    /// **The client in it needs a [`RetryMiddleware`](crate::RetryMiddleware)**, if only with
    /// [`RetryRule::never`](crate::RetryRule::never), or its requests go through
    /// [`execute`](Self::execute). Sends of any other client are not seen, and a failure of one counts
    /// as that of a method that may not be repeated: under `transient()` even a GET that was answered
    /// 503 is given up at once. Best give the client a clone of this policy. Then the retries of the
    /// sends and the repetitions of the work are one count, and share one budget.
    ///
    /// `work` is called with 1 first, then with 2, and so on. It may read a body and decode it, ask
    /// twice and join the answers, or call an SDK. A closure that is `async` will do if it changes
    /// nothing outside; what a work changes belongs in a `Mutex`. Nothing is spawned, and nothing
    /// needs to be `'static`. Dropping the future ends everything.
    ///
    /// The sends in it retry by the policy of their own client, as without `run`. `Ok` is success,
    /// whatever was answered: turn a status into an error, by
    /// [`error_for_status`](reqwest::Response::error_for_status), if it is no success for you.
    ///
    /// # The promise
    ///
    /// **A work that sent something which may have been processed is done again only if the rule, or
    /// the caller, says that this may be repeated.** If a send of the failed call may have been
    /// processed, is not idempotent ([`ReplaySafe`](crate::ReplaySafe)) and not of a method in
    /// [`sent_failures`](crate::RetryRule::sent_failures), the work stops with
    /// [`MethodNotAllowed`](crate::StopReason::MethodNotAllowed), whichever of its sends failed. So a
    /// work that created something by POST and then lost a GET is not done again. A send that was
    /// dropped or is still under way counts as processed. An
    /// [`idempotency_key`](Self::idempotency_key) alone does not make a send repeatable here, since
    /// the next call makes another key.
    ///
    /// **What this crate does not see, whoever calls `run` vouches for**: sends of a client without it,
    /// and those of a task that the work spawned. If such a send is the one that failed, it counts as
    /// neither idempotent nor of any method that a list names, as far as its URL tells it apart.
    ///
    /// # What failed
    ///
    /// The error says it, or what is behind it: the outermost [`reqwest::Error`] that walking
    /// [`source`](std::error::Error::source) finds.
    ///
    /// | error | counts as |
    /// | --- | --- |
    /// | of `error_for_status()` | that response, its headers included |
    /// | no head of a response | its [`TransportError`](crate::TransportError) |
    /// | a body that broke off, or took too long | `Body`, `Timeout` |
    /// | [`TotalTimeout`](crate::RetryError::TotalTimeout) or [`HeadTimeout`](crate::RetryError::HeadTimeout) of a send | `Timeout` |
    /// | [`OriginPaused`](crate::RetryError::OriginPaused), [`BodySource`](crate::RetryError::BodySource) | unsent |
    /// | anything else | no failure: it comes back at once |
    ///
    /// Of a call that makes more than a thousand sends, the error of one that was over long ago counts
    /// as that of a send that was not seen.
    ///
    /// A body that is whole and cannot be decoded is "anything else", and so is an error whose
    /// `source()` leads past the `reqwest::Error`, as one of thiserror's with `transparent` does.
    /// [`run_judged`](Self::run_judged) can judge both.
    ///
    /// # One count, one clock
    ///
    /// Retries of the sends and repetitions of the work are one count, so no request is sent more often
    /// than without `run`. A send begins with the count that its call of the work began with; the
    /// work's count is the largest that any of its sends came to, and a repetition adds one. The
    /// limits of the rule take the time since the work began.
    ///
    /// [`total_timeout`](Self::total_timeout) bounds the sends and the waits together. **It does not
    /// bound the reading of a body**, or anything else between the sends: put `tokio::time::timeout`
    /// around `run` for that.
    ///
    /// # Where the rest goes
    ///
    /// - [Overrides of the task](crate::with_overrides) hold for a work as for a send. A
    ///   [`RetryLog`](crate::RetryLog) among them holds the work's report in the end, with a record for
    ///   each call.
    /// - Observers and events show the retries of the sends and the repetitions under one count, and
    ///   the end once, as that of the work. The method and the host are those of the send that failed;
    ///   the method is `UNSEEN` if there was none that this crate saw.
    /// - Only sends pay into the [budget](crate::RetryBudget); a repetition takes out at the origin of
    ///   the send that failed. For both to be one budget, give the client a clone of this policy.
    /// - A work inside a work repeats by its own rule, out of the count and the time of the outermost;
    ///   its sends count in both.
    /// - A send that a middleware makes inside another's attempt, to fetch a token say, is the affair
    ///   of that other send.
    ///
    /// # Errors
    ///
    /// The error of the last call, unchanged.
    ///
    /// # Examples
    ///
    /// A body that is read is part of the work:
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient());
    /// // In place of the network: the first body breaks off.
    /// let first = std::sync::atomic::AtomicBool::new(true);
    /// let server = move |_: &reqwest::Request| {
    ///     let broken = first.swap(false, std::sync::atomic::Ordering::Relaxed);
    ///     let piece = match broken {
    ///         true => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)),
    ///         false => Ok("[1, 2]"),
    ///     };
    ///     http::Response::new(reqwest::Body::wrap_stream(futures_util::stream::iter([piece])))
    /// };
    /// let client = client(policy.clone(), server);
    ///
    /// let calls = std::sync::atomic::AtomicU32::new(0);
    /// let index: Vec<u32> = policy
    ///     .run(async |attempt| -> Result<_, reqwest_middleware::Error> {
    ///         calls.store(attempt, std::sync::atomic::Ordering::Relaxed);
    ///         let response = client.get("http://127.0.0.1/index").send().await?;
    ///         Ok(response.error_for_status()?.json().await?)
    ///     })
    ///     .await?;
    /// assert_eq!(index, [1, 2]);
    /// assert_eq!(calls.into_inner(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A POST in the middle keeps the work from being done again:
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule { max_retries: 1, ..RetryRule::transient() });
    /// // In place of the network: what is asked by GET is not there yet.
    /// let server = |request: &reqwest::Request| match request.method().as_str() {
    ///     "POST" => status(201),
    ///     _ => status(503),
    /// };
    /// // A client that does not retry by itself.
    /// let client = client(RetryRule::never(), server);
    /// let orders = AtomicU32::new(0);
    /// let outcome = policy
    ///     .run(async |_attempt| -> Result<(), reqwest_middleware::Error> {
    ///         orders.fetch_add(1, Ordering::Relaxed);
    ///         client.post("http://127.0.0.1/orders").send().await?.error_for_status()?;
    ///         client.get("http://127.0.0.1/orders/1").send().await?.error_for_status()?;
    ///         Ok(())
    ///     })
    ///     .await;
    /// assert_eq!(outcome.unwrap_err().status(), Some(http::StatusCode::SERVICE_UNAVAILABLE));
    /// assert_eq!(orders.into_inner(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<T, E, F>(&self, work: impl FnMut(u32) -> F) -> impl Future<Output = Result<T, E>>
    where
        E: StdError + 'static,
        F: Future<Output = Result<T, E>>,
    {
        // Not one future in another: both would be as large as that of the work.
        self.run_judged(|error: &E| Failure::ByRule(error), work)
    }

    /// Like [`run`](Self::run), for every type of error, and with the caller's own word on what it
    /// means.
    ///
    /// It is for an error that is no [`std::error::Error`], such as that of `anyhow`, and for what the
    /// rule cannot judge, such as a body that does not decode. As with `run`, the client needs a
    /// [`RetryMiddleware`](crate::RetryMiddleware): a send that is not seen is not looked at.
    ///
    /// `judge` says of each error whether the rule judges it, whether the work may be done again and
    /// for which methods, or whether it stops: see [`Failure`]. Write it as a `fn`, or as a closure in
    /// the call: a closure that is put into a variable first does not compile, since its lifetimes are
    /// then too narrow.
    ///
    /// # Errors
    ///
    /// The error of the last call, unchanged.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> anyhow::Result<()> {
    /// use anyhow::{Context, bail};
    /// use reqwest_retry_rules::{Failure, Methods, RetryPolicy, RetryRule};
    ///
    /// #[derive(Debug)]
    /// struct NotReady;
    /// # impl std::fmt::Display for NotReady {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    /// #         f.write_str("not ready")
    /// #     }
    /// # }
    /// # impl std::error::Error for NotReady {}
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient());
    /// // In place of the network: the report is there at the third look.
    /// let looks = std::sync::atomic::AtomicU32::new(0);
    /// let server = move |_: &reqwest::Request| {
    ///     match looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
    ///         0 | 1 => http::Response::new("pending"),
    ///         _ => http::Response::new("42"),
    ///     }
    /// };
    /// let client = client(policy.clone(), server);
    ///
    /// fn judge(error: &anyhow::Error) -> Failure<'_> {
    ///     match error.is::<NotReady>() {
    ///         true => Failure::Retry(Methods::Idempotent),
    ///         false => Failure::ByRule(error.as_ref()),
    ///     }
    /// }
    ///
    /// let report = policy
    ///     .run_judged(judge, async |_attempt| -> anyhow::Result<u32> {
    ///         let response = client.get("http://127.0.0.1/report").send().await?;
    ///         match response.error_for_status()?.text().await?.as_str() {
    ///             "pending" => bail!(NotReady),
    ///             report => report.parse().context("a report is a number"),
    ///         }
    ///     })
    ///     .await?;
    /// assert_eq!(report, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_judged<T, E, F>(
        &self,
        mut judge: impl FnMut(&E) -> Failure<'_>,
        mut work: impl FnMut(u32) -> F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let per_request = PerRequest::in_force(&Extensions::new());
        let in_force = InForce::of_work(self, &per_request);
        let mut progress = Progress::new(&in_force);
        loop {
            let call = progress.begin_call();
            let outcome = {
                // While the work is polled, the call is in a thread-local, where its sends find it.
                let mut own = Some(call.clone());
                let made = {
                    // A work may send before it gives its future.
                    let _entered = EnteredWork::new(&mut own);
                    work(progress.calls())
                };
                let (work, call) = (pin!(made), &mut own);
                Working { work, call }.await
            };
            let error = match outcome {
                Ok(value) => {
                    progress.succeed(&call);
                    return Ok(value);
                }
                Err(error) => error,
            };
            let decided = progress.judge(&call, judge(&error));
            let gone_on = match decided {
                Ok(wait) => {
                    clock::sleep_until(wait.until).await;
                    progress.go_on(&call, wait)
                }
                Err(reason) => Err(reason),
            };
            if let Err(reason) = gone_on {
                progress.give_up(&call, reason);
                return Err(error);
            }
        }
    }
}
