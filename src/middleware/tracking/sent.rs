//! A send of a work: what the work must know of it once it has failed.

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, Version};
use reqwest::{Response, Url};

use super::work_call::WorkCall;
use crate::middleware::error_chain::same_resource;
use crate::middleware::response::ResponseHead;
use crate::rule::{Methods, TransportError};

/// The method of a send that was not seen: it is in no list, and not idempotent.
pub(in crate::middleware) static UNSEEN: LazyLock<Method> =
    LazyLock::new(|| Method::from_bytes(b"UNSEEN").unwrap_or(Method::CONNECT));

/// A send that was begun in a call of a work.
pub(in crate::middleware) struct Sent {
    pub(in crate::middleware) method: Method,
    /// True if its method, or the caller's statement, says that it may be sent twice. A key made for
    /// it does not count: the next call of the work makes another.
    pub(in crate::middleware) idempotent: bool,
    /// The URL that was asked for.
    pub(in crate::middleware) url: Url,
    /// Empty while it is under way.
    ended: OnceLock<Ended>,
}

/// What a send ended with.
struct Ended {
    with: EndedWith,
    /// True if its outcome is not all that became of it: an answer was lost, or another request went
    /// in its place.
    lost_answers: bool,
}

pub(in crate::middleware) enum EndedWith {
    /// A response with this status.
    Answer {
        status: StatusCode,
        /// Where it came from, if that is not what was asked for.
        from: Option<Box<Url>>,
        /// Its head, if it is an error.
        head: Option<Box<KeptHead>>,
        /// What was found in it, if it was refused.
        refusal: Option<Box<SentRefusal>>,
    },
    Failure {
        /// `None` if it is no failure of the transport.
        class: Option<TransportError>,
        /// True unless every try is proved unsent.
        processed: bool,
    },
}

/// The head of a response with a status of 400 or above.
pub(in crate::middleware) struct KeptHead {
    version: Version,
    headers: HeaderMap,
}

/// What the policy of the client found in the response that was refused last.
#[derive(Clone, Default)]
pub(in crate::middleware) struct SentRefusal {
    pub(in crate::middleware) condition: Option<Methods>,
    pub(in crate::middleware) server_delay: Option<Duration>,
    pub(in crate::middleware) vetoed: bool,
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

impl EndedWith {
    pub(in crate::middleware) fn answer(
        response: &Response,
        url: &Url,
        refusal: Option<SentRefusal>,
    ) -> Self {
        let status = response.status();
        let head = is_error(status).then(|| {
            Box::new(KeptHead {
                version: response.version(),
                headers: response.headers().clone(),
            })
        });
        let from = (response.url() != url).then(|| Box::new(response.url().clone()));
        Self::Answer {
            status,
            from,
            head,
            refusal: refusal.map(Box::new),
        }
    }
}

impl Sent {
    pub(super) fn new(method: Method, idempotent: bool, url: Url) -> Self {
        Self {
            method,
            idempotent,
            url,
            ended: OnceLock::new(),
        }
    }

    /// Only the first end counts.
    pub(super) fn end(&self, with: EndedWith, lost_answers: bool) {
        let _ = self.ended.set(Ended { with, lost_answers });
    }

    /// True if it has ended, or was dropped.
    pub(super) fn is_over(&self) -> bool {
        self.ended.get().is_some()
    }

    /// True if it ended with an error, or with the status of one.
    pub(super) fn has_failed(&self) -> bool {
        match self.ended_with() {
            Some(EndedWith::Answer { status, .. }) => is_error(*status),
            Some(EndedWith::Failure { .. }) => true,
            None => false,
        }
    }

    fn ended_with(&self) -> Option<&EndedWith> {
        Some(&self.ended.get()?.with)
    }

    pub(in crate::middleware) fn refusal(&self) -> Option<&SentRefusal> {
        match self.ended_with()? {
            EndedWith::Answer { refusal, .. } => refusal.as_deref(),
            EndedWith::Failure { .. } => None,
        }
    }

    pub(in crate::middleware) fn lost_answers(&self) -> bool {
        self.ended.get().is_some_and(|ended| ended.lost_answers)
    }

    pub(in crate::middleware) fn status(&self) -> Option<StatusCode> {
        match self.ended_with()? {
            EndedWith::Answer { status, .. } => Some(*status),
            EndedWith::Failure { .. } => None,
        }
    }

    pub(in crate::middleware) fn headers(&self) -> Option<&HeaderMap> {
        match self.ended_with()? {
            EndedWith::Answer { head, .. } => Some(&head.as_ref()?.headers),
            EndedWith::Failure { .. } => None,
        }
    }

    /// The head of its response, if that was an error, as the closures of a policy see it.
    pub(in crate::middleware) fn head(&self, retries: u32) -> Option<ResponseHead<'_>> {
        let EndedWith::Answer {
            status, from, head, ..
        } = self.ended_with()?
        else {
            return None;
        };
        let (url, head) = (from.as_deref().unwrap_or(&self.url), head.as_ref()?);
        let head = ResponseHead::of_kept(*status, head.version, &head.headers, url);
        let head = head.with_method(&self.method).with_retries(retries);
        Some(head.with_request_url(&self.url))
    }

    /// The failure of the transport that it ended with.
    pub(in crate::middleware) fn class(&self) -> Option<TransportError> {
        match self.ended_with()? {
            EndedWith::Failure { class, .. } => *class,
            EndedWith::Answer { .. } => None,
        }
    }

    /// False only if every try is proved unsent. What is under way counts as processed.
    pub(in crate::middleware) fn may_be_processed(&self) -> bool {
        match self.ended_with() {
            Some(EndedWith::Failure { processed, .. }) => *processed,
            Some(EndedWith::Answer { .. }) | None => true,
        }
    }

    pub(in crate::middleware) fn is_among(&self, methods: &Methods) -> bool {
        methods.allows(&self.method, self.idempotent)
    }

    /// True if it was answered from this URL, or if the URL is not known.
    pub(in crate::middleware) fn answered_from(&self, url: Option<&Url>) -> bool {
        match self.ended_with() {
            Some(EndedWith::Answer { from, .. }) => {
                let from = from.as_deref().unwrap_or(&self.url);
                url.is_none_or(|url| url == from)
            }
            Some(EndedWith::Failure { .. }) | None => false,
        }
    }

    /// True if it failed at this URL, its query aside, or if the URL is not known.
    pub(in crate::middleware) fn failed_at(&self, url: Option<&Url>) -> bool {
        self.class().is_some() && url.is_none_or(|url| same_resource(url, &self.url))
    }
}

/// A send, as the loop of the send has it.
pub(in crate::middleware) struct SendInWork {
    call: Arc<WorkCall>,
    sent: Arc<Sent>,
}

impl SendInWork {
    /// A send begins in this call of a work.
    pub(in crate::middleware) fn new(
        call: Arc<WorkCall>,
        method: &Method,
        idempotent: bool,
        url: Url,
    ) -> Self {
        let sent = Arc::new(Sent::new(method.clone(), idempotent, url));
        call.add(&sent);
        Self { call, sent }
    }

    /// The URL that was asked for.
    pub(in crate::middleware) fn url(&self) -> &Url {
        &self.sent.url
    }

    /// How many retries the work had come to when this call of it began.
    pub(in crate::middleware) fn begun_with(&self) -> u32 {
        self.call.begun_with()
    }

    /// A retry of this number was decided.
    pub(in crate::middleware) fn count(&self, retry: u32) {
        self.call.count(retry);
    }

    pub(in crate::middleware) fn end(&self, with: EndedWith, lost_answers: bool) {
        self.sent.end(with, lost_answers);
    }
}

/// A send that is dropped on its way may have been processed.
impl Drop for SendInWork {
    fn drop(&mut self) {
        if !self.sent.is_over() {
            let with = EndedWith::Failure {
                class: None,
                processed: true,
            };
            self.sent.end(with, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::clock;
    use crate::middleware::time::SendTime;

    #[test]
    fn one_that_is_dropped_is_over_and_may_have_been_processed() {
        let time = SendTime {
            started: clock::now(),
            ends: None,
        };
        let call = Arc::new(WorkCall::new(None, 0, time));
        let url: Url = "http://a.test/".parse().unwrap();
        let send = SendInWork::new(Arc::clone(&call), &Method::POST, false, url.clone());
        let sent = Arc::clone(&send.sent);
        assert!(!sent.is_over() && sent.may_be_processed());
        drop(send);
        assert!(sent.is_over() && sent.may_be_processed() && sent.lost_answers());
        // No error is that of this send.
        assert!(!sent.failed_at(Some(&url)) && !sent.answered_from(Some(&url)));

        let send = SendInWork::new(call, &Method::POST, false, url);
        let sent = Arc::clone(&send.sent);
        let class = Some(TransportError::Connect);
        let processed = false;
        send.end(EndedWith::Failure { class, processed }, false);
        drop(send);
        assert!(!sent.may_be_processed());
    }
}
