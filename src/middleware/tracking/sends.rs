//! The sends of one call of a work.

use std::sync::Arc;

use http::Method;

use super::sent::{Sent, UNSEEN};

/// The sends that were begun in one call of a work, in turn. A call may make any number of them, so
/// not all are kept; what of the others matters to the promise is never forgotten.
#[derive(Clone, Default)]
pub(in crate::middleware) struct Sends {
    /// The one that was begun first. Many works have no other, and need no list.
    first: Option<Arc<Sent>>,
    /// Those that are on their way, the last ones that failed and the last ones that did not.
    others: Vec<Arc<Sent>>,
    /// What there was among those that are not kept and may have been processed.
    forgotten: Vec<ForgottenKind>,
    /// How many others there are when it is next time to forget; 0 before the first time.
    full_at: usize,
}

/// A kind of sends that may have been processed, and are not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::middleware) struct ForgottenKind {
    pub(in crate::middleware) method: Method,
    /// True if its method, or the caller's statement, says that it may be sent twice.
    pub(in crate::middleware) idempotent: bool,
}

/// How many are kept of those that failed, and as many of those that did not.
const MANY: usize = 500;

/// How many kinds are kept apart. Few works have more kinds than there are methods.
const KINDS: usize = 32;

impl Sends {
    pub(super) fn add(&mut self, sent: &Arc<Sent>) {
        if self.first.is_none() {
            self.first = Some(Arc::clone(sent));
            return;
        }
        if self.others.len() >= self.full_at.max(2 * MANY) {
            self.forget();
            // Later, if most of them are on their way.
            self.full_at = self.others.len().saturating_add(MANY);
        }
        self.others.push(Arc::clone(sent));
    }

    /// Those that are kept, in the order in which they were begun.
    pub(in crate::middleware) fn kept(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Arc<Sent>> + Clone {
        self.first.iter().chain(&self.others)
    }

    /// What there was among the others, if it may have been processed.
    pub(in crate::middleware) fn forgotten(&self) -> &[ForgottenKind] {
        &self.forgotten
    }

    /// The one that was begun last.
    pub(super) fn last(&self) -> Option<&Arc<Sent>> {
        self.kept().next_back()
    }

    /// Of those that are over, keeps the last ones. The error of a work may be that of any send, but
    /// rarely of one so long ago. If it is, the send counts as one that was not seen, which is
    /// at least as careful.
    fn forget(&mut self) {
        let (mut failed, mut answered) = (0, 0);
        let mut kept = Vec::with_capacity(3 * MANY);
        while let Some(sent) = self.others.pop() {
            let is_kept = if !sent.is_over() {
                true
            } else if sent.has_failed() {
                failed += 1;
                failed <= MANY
            } else {
                answered += 1;
                answered <= MANY
            };
            if is_kept {
                kept.push(sent);
            } else if sent.may_be_processed() {
                self.note_forgotten(&sent);
            }
        }
        kept.reverse();
        self.others = kept;
    }

    fn note_forgotten(&mut self, sent: &Sent) {
        let kind = ForgottenKind {
            method: sent.method.clone(),
            idempotent: sent.idempotent,
        };
        // Nothing may be repeated less than this.
        let rest = || ForgottenKind {
            method: UNSEEN.clone(),
            idempotent: false,
        };
        let kind = if self.forgotten.len() < KINDS || self.forgotten.contains(&kind) {
            kind
        } else {
            rest()
        };
        if !self.forgotten.contains(&kind) {
            self.forgotten.push(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::super::sent::EndedWith;
    use super::*;
    use crate::rule::TransportError;

    fn sent(method: Method, idempotent: bool, with: Option<EndedWith>) -> Arc<Sent> {
        let sent = Sent::new(method, idempotent, "http://a.test/".parse().unwrap());
        if let Some(with) = with {
            sent.end(with, false);
        }
        Arc::new(sent)
    }

    fn answer(status: StatusCode) -> Option<EndedWith> {
        Some(EndedWith::Answer {
            status,
            from: None,
            head: None,
            refusal: None,
        })
    }

    fn get() -> Arc<Sent> {
        sent(Method::GET, true, answer(StatusCode::OK))
    }

    fn unsent() -> Arc<Sent> {
        let with = EndedWith::Failure {
            class: Some(TransportError::Connect),
            processed: false,
        };
        sent(Method::POST, false, Some(with))
    }

    fn of(all: impl IntoIterator<Item = Arc<Sent>>) -> Sends {
        let mut sends = Sends::default();
        all.into_iter().for_each(|sent| sends.add(&sent));
        sends
    }

    fn forgotten(method: Method, idempotent: bool) -> ForgottenKind {
        ForgottenKind { method, idempotent }
    }

    /// The first is kept anyway.
    fn after_first(one: Arc<Sent>, many: usize) -> Sends {
        of([get(), one].into_iter().chain((0..many).map(|_| get())))
    }

    #[test]
    fn a_thousand_are_all_kept_and_of_a_million_not_many_more() {
        assert_eq!(Sends::default().kept().count(), 0);
        assert!(Sends::default().last().is_none());
        for count in [1, 2, 500, 1000, 1001] {
            let sends = of((0..count).map(|_| get()));
            assert_eq!(sends.kept().count(), count);
            assert_eq!(sends.forgotten(), []);
        }
        let one = get();
        let mut sends = Sends::default();
        for count in 0..1_000_000 {
            sends.add(&one);
            assert!(sends.kept().count() <= 1001, "after {count}");
        }
        assert_eq!(sends.forgotten(), [forgotten(Method::GET, true)]);
    }

    #[test]
    fn what_may_have_been_processed_is_remembered_and_what_was_unsent_is_not() {
        let post = || sent(Method::POST, false, answer(StatusCode::CREATED));
        let get = forgotten(Method::GET, true);
        let sends = after_first(post(), 5000);
        assert_eq!(
            sends.forgotten(),
            [get.clone(), forgotten(Method::POST, false)]
        );
        let vouched = sent(Method::POST, true, answer(StatusCode::CREATED));
        let sends = after_first(vouched, 5000);
        assert_eq!(
            sends.forgotten(),
            [get.clone(), forgotten(Method::POST, true)]
        );
        let many = of((0..5000).map(|_| unsent()));
        assert_eq!(many.forgotten(), []);
        assert!(many.kept().count() <= 2 * MANY + 1);
    }

    #[test]
    fn one_that_is_on_its_way_is_kept() {
        let hung = sent(Method::POST, false, None);
        let sends = after_first(Arc::clone(&hung), 5000);
        assert!(sends.kept().any(|kept| Arc::ptr_eq(kept, &hung)));
        let all_on_their_way = of((0..5000).map(|_| sent(Method::GET, true, None)));
        assert_eq!(all_on_their_way.kept().count(), 5000);
    }

    #[test]
    fn the_last_that_failed_are_kept_whatever_was_answered_since_and_the_other_way_round() {
        let refused = sent(Method::GET, true, answer(StatusCode::SERVICE_UNAVAILABLE));
        let sends = after_first(Arc::clone(&refused), 5000);
        assert!(sends.kept().any(|kept| Arc::ptr_eq(kept, &refused)));
        let answered = get();
        let mut sends = of([unsent(), Arc::clone(&answered)]);
        (0..5000).for_each(|_| sends.add(&unsent()));
        assert!(sends.kept().any(|kept| Arc::ptr_eq(kept, &answered)));
        let last = get();
        sends.add(&last);
        assert!(Arc::ptr_eq(sends.last().unwrap(), &last));
    }

    #[test]
    fn of_too_many_kinds_the_rest_is_one_that_nothing_allows() {
        let odd = |number: u32| {
            let method = Method::from_bytes(format!("M{number}").as_bytes()).unwrap();
            sent(method, false, answer(StatusCode::OK))
        };
        let sends = of((0..5000).map(odd));
        assert_eq!(sends.forgotten().len(), KINDS + 1);
        assert!(
            sends
                .forgotten()
                .contains(&forgotten(UNSEEN.clone(), false))
        );
    }
}
