//! Sending through a client that has no chain.

use std::borrow::Cow;

use http::Extensions;
use reqwest::{Client, Request, Response};
use reqwest_middleware::Result;

use super::policy::RetryPolicy;
use super::send;

impl RetryPolicy {
    /// Sends `request` through a plain client, with retries as this policy says: the same loop as
    /// the middleware's, for those who have no chain of middlewares.
    ///
    /// Overrides of the task count, and the report is in the response as ever. Use a client from
    /// [`client_builder`](crate::client_builder); what is risked with another is said at
    /// [`unsent_failures`](crate::RetryRule::unsent_failures).
    ///
    /// # Errors
    ///
    /// The last error, unchanged. It is an [`Error::Reqwest`](reqwest_middleware::Error::Reqwest),
    /// or a [`RetryError`](crate::RetryError) inside
    /// [`Error::Middleware`](reqwest_middleware::Error::Middleware).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # rustls::crypto::ring::default_provider().install_default().ok();
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule, client_builder};
    ///
    /// # let refused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    /// let client = client_builder().build()?;
    /// let policy = RetryPolicy::from(RetryRule::transient());
    /// let request = client.get(format!("http://{refused}/")).build()?;
    /// let error = policy.execute(&client, request).await.unwrap_err(); // after three retries
    /// assert!(error.is_connect());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn execute(&self, client: &Client, request: Request) -> Result<Response> {
        self.execute_with(client, request, &mut Extensions::new())
            .await
    }

    /// Like [`execute`](Self::execute), with a map of what concerns this request: a
    /// [`BodySource`](crate::BodySource), a [`RetryLog`](crate::RetryLog),
    /// [`ReplaySafe`](crate::ReplaySafe) and the like.
    ///
    /// # Errors
    ///
    /// As with [`execute`](Self::execute).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # rustls::crypto::ring::default_provider().install_default().ok();
    /// use http::Extensions;
    /// use reqwest_retry_rules::{RetryLog, RetryPolicy, RetryRule, client_builder};
    ///
    /// # let refused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    /// let client = client_builder().build()?;
    /// let policy = RetryPolicy::from(RetryRule::transient());
    /// let log = RetryLog::new();
    /// let mut extensions = Extensions::new();
    /// extensions.insert(log.clone());
    /// let request = client.get(format!("http://{refused}/")).build()?;
    /// policy.execute_with(&client, request, &mut extensions).await.unwrap_err();
    /// assert_eq!(log.report().map(|report| report.attempts()), Some(4));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn execute_with(
        &self,
        client: &Client,
        request: Request,
        extensions: &mut Extensions,
    ) -> Result<Response> {
        send::send(|| Cow::Borrowed(self), request, extensions, client).await
    }
}
