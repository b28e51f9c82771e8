//! A handle through which a report is read afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use super::RetryReport;

/// A handle that holds the [`RetryReport`] of the last send that it went with.
///
/// Put a clone into the request's extensions, or into the [`Overrides`](crate::Overrides) of a task,
/// and keep the other. It also works when the send ended in an error, or succeeded at the first
/// attempt.
///
/// It stays empty if no send has ended: if the request could not be built (its URL does not parse,
/// or a body could not be serialised), since then it does not reach the middleware; if a middleware
/// further out answered in its place; and if the future of the send was dropped.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{RetryLog, RetryMiddleware, RetryRule, StopReason, client_builder};
///
/// # let refused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let client = ClientBuilder::new(client_builder().build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// let log = RetryLog::new();
/// let sent = client.get(format!("http://{refused}/")).with_extension(log.clone()).send().await;
/// assert!(sent.is_err());
/// let report = log.report().ok_or("no report")?;
/// assert_eq!(report.attempts(), 4);
/// assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RetryLog(Arc<Mutex<Option<RetryReport>>>);

impl RetryLog {
    /// An empty handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// The report of the last send that has ended, or `None` before one has.
    pub fn report(&self) -> Option<RetryReport> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(in crate::middleware) fn set(&self, report: RetryReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}
