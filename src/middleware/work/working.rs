//! A call of a work on its way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::middleware::tracking::{EnteredWork, WorkCall};

/// While it is polled, the sends made in it find it.
pub(super) struct Working<'a, F> {
    pub(super) work: Pin<&'a mut F>,
    /// The call, while it is not polled.
    pub(super) call: &'a mut Option<Arc<WorkCall>>,
}

impl<F: Future> Future for Working<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { work, call } = &mut *self;
        let _entered = EnteredWork::new(call);
        work.as_mut().poll(cx)
    }
}
