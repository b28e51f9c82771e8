//! The client's end: what a caller would build, and what a send came to.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::{Extensions, HeaderName, StatusCode};
use reqwest::{Proxy, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use reqwest_retry_rules::{
    Backoff, ErrorExt, Jitter, Methods, ReplaySafe, ResendCount, RetryAfter, RetryAfterCap,
    RetryAfterSource, RetryError, RetryLog, RetryMiddleware, RetryPolicy, RetryReport, RetryRule,
    StatusMatch, StatusRule, TotalTimeout, TransportError, classify,
};

use super::ledger::{ATTEMPT, KEY, Ledger, RESENT, SEND};
use super::plan::{CONNECT_TIMEOUT, Claim, LONGEST_WAIT, Patience, Plan, RETRIES, Road, SHORT};
use super::world::{Guide, World, url};
use crate::support;

/// No send takes longer, however loaded the machine is.
pub const HUNG: Duration = Duration::from_secs(90);

/// The rule of every send: as strict as people have it.
pub fn rule() -> RetryRule {
    RetryRule {
        max_retries: RETRIES,
        statuses: vec![
            StatusRule {
                statuses: vec![StatusMatch::Code(429)],
                methods: Methods::Any,
                backoff: None,
            },
            StatusRule {
                statuses: vec![StatusMatch::Range(500, 599)],
                methods: Methods::Idempotent,
                backoff: None,
            },
        ],
        sent_failures: Methods::Idempotent,
        unsent_failures: true,
        override_header: Some(HeaderName::from_static("x-should-retry")),
        retry_after: RetryAfter {
            source: RetryAfterSource::MsThenHeader,
            cap: RetryAfterCap::StopAbove(LONGEST_WAIT),
            ..RetryAfter::default()
        },
        backoff: Backoff {
            base: Duration::from_millis(2),
            max: Duration::from_millis(20),
            growth: 2000,
            jitter: Jitter::Full,
        },
        ..RetryRule::never()
    }
}

/// One client for each way of speaking, all with the same middlewares.
pub struct Clients {
    direct: ClientWithMiddleware,
    proxied: ClientWithMiddleware,
    http2: ClientWithMiddleware,
    rule: Arc<RetryRule>,
}

impl Clients {
    pub fn new(
        ledger: &Arc<Ledger>,
        world: &World,
        made: fn() -> reqwest::ClientBuilder,
    ) -> Clients {
        support::install_crypto();
        let rule = Arc::new(rule());
        let proxy = Proxy::https(format!("http://{}", world.proxy)).unwrap();
        let builder = || {
            made()
                .no_proxy()
                .tls_certs_only([support::tls::root()])
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(Duration::from_millis(300))
                .dns_resolver(Arc::new(Guide {
                    ledger: Arc::clone(ledger),
                    doors: world.doors,
                }))
        };
        let with = |client: reqwest::ClientBuilder| {
            let policy = RetryPolicy::from(Arc::clone(&rule)).no_budget();
            ClientBuilder::new(client.build().unwrap())
                .with(RetryMiddleware::new(policy))
                .with(Probe(Arc::clone(ledger)))
                .build()
        };
        Clients {
            direct: with(builder()),
            proxied: with(builder().proxy(proxy)),
            http2: with(builder().http2_prior_knowledge()),
            rule: Arc::clone(&rule),
        }
    }

    pub fn of(&self, road: Road) -> &ClientWithMiddleware {
        match road {
            Road::Proxied1 | Road::Proxied2 => &self.proxied,
            Road::Shared2 | Road::Own2 => &self.http2,
            _ => &self.direct,
        }
    }

    pub fn policy(&self, plan: &Plan) -> RetryPolicy {
        let mut policy = RetryPolicy::from(Arc::clone(&self.rule))
            .attempt_header(RESENT)
            .complete_body(plan.completes)
            .drain_limit(plan.drains);
        if plan.patience == Patience::Attempt {
            policy = policy.attempt_timeout(SHORT);
        }
        if plan.claim == Claim::Keyed {
            policy = policy.idempotency_key(KEY);
        }
        policy
    }
}

/// Counts attempts where no report is taken at its word: below the retry middleware.
struct Probe(Arc<Ledger>);

#[async_trait::async_trait]
impl Middleware for Probe {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let id = request.headers().get(SEND);
        let id: usize = id.and_then(|id| id.to_str().ok()?.parse().ok()).unwrap();
        let attempt = self.0.begins(id);
        let resent = extensions.get().map_or(0, |ResendCount(count)| *count);
        self.0.note_resent(id, attempt, resent);
        let old = request.headers_mut().insert(ATTEMPT, attempt.into());
        if old.is_some() {
            self.0
                .note_odd(format!("send {id}: attempt {attempt} has another's head"));
        }
        let outcome = next.run(request, extensions).await;
        self.0.ends(id);
        outcome
    }
}

/// What a send came to, as the caller sees it.
pub struct Sent {
    pub outcome: Outcome,
    pub report: Option<RetryReport>,
    /// How many attempts there had been when it ended.
    pub attempts: u32,
}

#[derive(Debug)]
pub enum Outcome {
    Response(Got),
    Error {
        class: Option<TransportError>,
        timed_out: bool,
        ours: Option<Ours>,
        words: String,
    },
    /// The caller dropped it.
    Left,
    /// It did not come to an end.
    Hung,
}

/// Which error of the middleware's own.
#[derive(Debug, PartialEq, Eq)]
pub enum Ours {
    TotalTimeout { attempts: u32 },
    BodySource,
}

#[derive(Debug)]
pub struct Got {
    pub status: StatusCode,
    /// Whose answer it says it is, and to which attempt.
    pub answers: Option<(usize, u32)>,
    /// How much of the body came, whether it was what it should be, and whether it broke off.
    pub length: usize,
    pub right: bool,
    pub broke_off: bool,
}

/// Makes one send from its plan.
pub async fn send(clients: &Clients, ledger: &Ledger, plan: &Plan) -> Sent {
    let log = RetryLog::new();
    let mut request = clients
        .of(plan.road)
        .request(plan.method.clone(), url(plan))
        .header(SEND, plan.id)
        .with_extension(log.clone())
        .with_extension(clients.policy(plan));
    if let Claim::Vouched(safe) = plan.claim {
        request = request.with_extension(ReplaySafe(safe));
    }
    match plan.patience {
        Patience::Request => request = request.timeout(SHORT),
        Patience::Total(total) => request = request.with_extension(TotalTimeout(total)),
        _ => {}
    }
    let request = plan.content.put_into(request);
    let leaves = match plan.patience {
        Patience::Leaves(after) => after,
        _ => HUNG,
    };
    let sent = tokio::time::timeout(leaves, request.send()).await;
    let attempts = ledger.attempts(plan.id);
    let outcome = match sent {
        Ok(Ok(response)) => match tokio::time::timeout(HUNG, read(plan, response)).await {
            Ok(got) => Outcome::Response(got),
            Err(_) => Outcome::Hung,
        },
        Ok(Err(error)) => failed(&error),
        Err(_) if leaves == HUNG => Outcome::Hung,
        Err(_) => Outcome::Left,
    };
    Sent {
        outcome,
        report: log.report(),
        attempts,
    }
}

pub async fn read(plan: &Plan, mut response: Response) -> Got {
    let header = |name| response.headers().get(name)?.to_str().ok();
    let id = header(SEND).and_then(|id| id.parse().ok());
    let attempt = header(ATTEMPT).and_then(|attempt| attempt.parse().ok());
    let status = response.status();
    let mut body = BytesMut::new();
    let broke_off = loop {
        match response.chunk().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    let expected = plan.body_of(status, attempt);
    Got {
        status,
        answers: id.zip(attempt),
        length: body.len(),
        right: if broke_off {
            expected.starts_with(&body)
        } else {
            body == expected
        },
        broke_off,
    }
}

fn failed(error: &Error) -> Outcome {
    let ours = error.retry_error().and_then(|ours| match ours {
        RetryError::TotalTimeout { attempts, .. } => Some(Ours::TotalTimeout {
            attempts: *attempts,
        }),
        RetryError::BodySource { .. } => Some(Ours::BodySource),
        _ => None,
    });
    Outcome::Error {
        class: classify(error),
        timed_out: error.timed_out(),
        ours,
        words: words(error),
    }
}

/// What an error says, and what all behind it say. (Its `Debug` would find out where it was made.)
fn words(error: &Error) -> String {
    let first = error as &dyn std::error::Error;
    let all = std::iter::successors(Some(first), |error| error.source());
    let all: Vec<_> = all.map(ToString::to_string).collect();
    all.join(": ")
}
