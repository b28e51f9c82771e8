//! The request of a send, as far as it matters once it is on its way.

use http::{HeaderName, HeaderValue, Method};
use reqwest::{Request, Url};

use crate::middleware::overrides::InForce;
use crate::middleware::request::KeptRequest;
use crate::middleware::tracking::{Key, NestedSend, Notes};
use crate::middleware::{clock, trace};
use crate::rule::is_idempotent;

pub(super) struct SendRequest {
    pub(super) method: Method,
    repeatable: Repeatable,
    /// What a retry needs; `None` if none could be allowed.
    kept: Option<KeptRequest>,
    /// The URL, if it is not in `kept` and somebody may want to know it. The response may come from
    /// another, after a redirect.
    url: Option<Box<Url>>,
    /// The send as the attempt around it sees it, if there is one and a repetition would matter.
    nested: Option<NestedSend>,
}

/// Why sending the request twice does no more than sending it once, if that is so.
enum Repeatable {
    No,
    /// By its method, or because the caller says so.
    Yes,
    /// By this idempotency key.
    ByKey(Box<Key>),
}

impl SendRequest {
    /// Gives the request what the policy wants of it, and keeps what is needed of it.
    #[inline]
    pub(super) fn new(
        in_force: &InForce<'_>,
        request: &mut Request,
        idempotent: bool,
        in_work: bool,
    ) -> Self {
        let settings = in_force.settings();
        let method = request.method().clone();
        let repeatable = Repeatable::of(in_force, request, idempotent);
        if let Some(limit) = settings.attempt_timeout {
            let timeout = request.timeout_mut();
            *timeout = Some(timeout.map_or(limit, |own| own.min(limit)));
        }
        let kept = if in_force.could_retry(&method, repeatable.is_idempotent()) {
            KeptRequest::of(request, in_force.body_source().cloned())
        } else {
            None
        };
        let nested = match &repeatable {
            Repeatable::Yes => None,
            Repeatable::No => NestedSend::begin(None),
            Repeatable::ByKey(key) => NestedSend::begin(Some(key)),
        };
        let is_wanted = || {
            in_work
                || nested.is_some()
                || !settings.observers.is_empty()
                || settings.looks_at_heads()
                || settings.pause_origins.is_some()
                || trace::is_written(settings.log_levels.stop)
        };
        let url = (kept.is_none() && is_wanted()).then(|| Box::new(request.url().clone()));
        Self {
            method,
            repeatable,
            kept,
            url,
            nested,
        }
    }

    #[inline]
    pub(super) fn idempotent(&self) -> bool {
        self.repeatable.is_idempotent()
    }

    /// True without the help of a key, which would be another one for another send.
    pub(super) fn idempotent_by_itself(&self) -> bool {
        matches!(self.repeatable, Repeatable::Yes)
    }

    #[inline]
    pub(super) fn kept(&self) -> Option<&KeptRequest> {
        self.kept.as_ref()
    }

    /// The URL, if it was kept.
    #[inline]
    pub(super) fn url(&self) -> Option<&Url> {
        self.kept().map(KeptRequest::url).or(self.url.as_deref())
    }

    /// True if something of the request may have been processed, whatever the attempt fails with.
    #[inline]
    pub(super) fn processed(&self, notes: &Notes) -> bool {
        notes.processed(|name, value| self.carries(name, value))
    }

    /// True if the response answers another request.
    #[inline]
    pub(super) fn replaced(&self, notes: &Notes, is_unfollowed: impl FnOnce() -> bool) -> bool {
        notes.replaced(is_unfollowed, |name, value| self.carries(name, value))
    }

    #[inline]
    fn carries(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|kept| kept.carries(name, value))
    }

    /// Notes for a send further out, which may go on, that no request of this one was processed
    /// without an answer.
    pub(super) fn set_harmless(&self) {
        if let Some(nested) = &self.nested {
            nested.set_harmless();
        }
    }
}

impl Repeatable {
    /// `idempotent` says what is stated of the request, or else what its method is.
    fn of(in_force: &InForce<'_>, request: &mut Request, idempotent: bool) -> Self {
        // A key is sent even if the caller has stated what the request is.
        let name = in_force.settings().idempotency_key.as_ref();
        let name = name.filter(|_| !is_idempotent(request.method()));
        match name.and_then(|name| key_of(request, name)) {
            _ if idempotent => Self::Yes,
            Some(key) if in_force.replay_safe().is_none() => Self::ByKey(Box::new(key)),
            _ => Self::No,
        }
    }

    fn is_idempotent(&self) -> bool {
        !matches!(self, Self::No)
    }
}

/// The idempotency key of the request in this header: the caller's, else a random one.
fn key_of(request: &mut Request, name: &HeaderName) -> Option<Key> {
    if let Some(value) = request.headers().get(name) {
        return Some((name.clone(), value.clone()));
    }
    let key = format!("{:032x}", clock::random_key());
    let value = HeaderValue::try_from(key).ok()?;
    // A head that is full goes without.
    let inserted = request.headers_mut().try_insert(name, value.clone());
    inserted.is_ok().then(|| (name.clone(), value))
}
