//! What stands in place of the network.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use http::Extensions;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Body, Request, Response, ResponseBuilderExt};
use reqwest_middleware::{Error, Middleware, Next, Result};
use reqwest_retry_rules::TransportError;
use tokio::time::{Instant, sleep};

use super::ledger::Ledger;
use super::plan::{Act, Then};

/// Which send a request belongs to.
#[derive(Clone, Copy)]
pub(super) struct SendNumber(pub(super) usize);

/// The last middleware: each request meets the next act; after all acts it is answered. Clones are
/// one.
#[derive(Clone)]
pub(super) struct Transport {
    acts: Arc<Mutex<VecDeque<Act>>>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
}

impl Transport {
    pub(super) fn new(acts: &[Act]) -> Self {
        Self {
            acts: Arc::new(Mutex::new(acts.iter().cloned().collect())),
            ledger: Arc::default(),
        }
    }
}

#[async_trait]
impl Middleware for Transport {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        _: Next<'_>,
    ) -> Result<Response> {
        let SendNumber(send) = *extensions.get().unwrap();
        let act = self.acts.lock().unwrap().pop_front();
        let Act { after, then } = act.unwrap_or(Act {
            after: Duration::ZERO,
            then: Then::Answer {
                status: 200,
                retry_after: None,
                breaks_off: false,
            },
        });
        let begun = self.ledger.lock().unwrap();
        let attempt = { begun }.begin_attempt(send, then, Instant::now());
        if !after.is_zero() {
            sleep(after).await;
        }
        let outcome = then.happen_to(request).await;
        self.ledger.lock().unwrap().end_attempt(send, attempt);
        outcome
    }
}

impl Then {
    async fn happen_to(self, mut request: Request) -> Result<Response> {
        match self {
            Then::Answer {
                status,
                retry_after,
                breaks_off,
            } => {
                let mut response = http::Response::builder()
                    .status(status)
                    .url(request.url().clone());
                if let Some(seconds) = retry_after {
                    response = response.header("retry-after", u16::from(seconds));
                }
                let body = match breaks_off {
                    true => {
                        let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                        Body::wrap_stream(stream::iter([Ok("a"), Err(error)]))
                    }
                    false => Body::from("all"),
                };
                Ok(response.body(body).unwrap().into())
            }
            Then::Fail(class) => Err(Error::middleware(Scripted(class))),
            Then::NoName => Ok(NO_NAMES.execute(request).await?),
            Then::TimeOut => {
                *request.timeout_mut() = Some(Duration::from_millis(1));
                Ok(SILENT.execute(request).await?)
            }
            Then::Hang => std::future::pending().await,
        }
    }
}

/// An error that says its class to [`class`] alone.
#[derive(Debug)]
struct Scripted(Option<TransportError>);

impl fmt::Display for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as it was told")
    }
}

impl std::error::Error for Scripted {}

/// The class of a scripted error.
pub(super) fn class(error: &Error) -> Option<TransportError> {
    match error {
        Error::Middleware(error) => error.downcast_ref::<Scripted>()?.0,
        Error::Reqwest(_) => None,
    }
}

/// A client of which nothing is asked.
pub(super) fn no_network() -> reqwest::Client {
    NO_NAMES.clone()
}

static NO_NAMES: LazyLock<reqwest::Client> = LazyLock::new(|| client(false));
static SILENT: LazyLock<reqwest::Client> = LazyLock::new(|| client(true));

fn client(is_silent: bool) -> reqwest::Client {
    let names = Arc::new(Names { is_silent });
    reqwest::Client::builder()
        .dns_resolver(names)
        .build()
        .unwrap()
}

/// Knows no name, or never says so.
struct Names {
    is_silent: bool,
}

impl Resolve for Names {
    fn resolve(&self, _: Name) -> Resolving {
        let is_silent = self.is_silent;
        Box::pin(async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            Err("there is no such name".into())
        })
    }
}
