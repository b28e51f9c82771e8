//! A connector that fails as it is told, for what the kernel cannot be made to do.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower::{Layer, Service};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Failing = Pin<Box<dyn Future<Output = BoxError> + Send>>;

/// A layer for `reqwest::ClientBuilder::connector_layer` that stands in for all that is below.
#[derive(Clone)]
pub struct FailingConnector(Arc<dyn Fn() -> Failing + Send + Sync>);

impl FailingConnector {
    pub fn new<F>(fail: impl Fn() -> F + Send + Sync + 'static) -> FailingConnector
    where
        F: Future<Output = BoxError> + Send + 'static,
    {
        FailingConnector(Arc::new(move || Box::pin(fail())))
    }
}

impl<S> Layer<S> for FailingConnector {
    type Service = FailingService<S>;

    fn layer(&self, _: S) -> FailingService<S> {
        FailingService(self.clone(), PhantomData)
    }
}

/// The service that [`FailingConnector`] puts in place of an `S`.
#[derive(Clone)]
pub struct FailingService<S>(FailingConnector, PhantomData<fn() -> S>);

impl<R, S: Service<R, Error = BoxError>> Service<R> for FailingService<S>
where
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        let failing = (self.0.0)();
        Box::pin(async { Err(failing.await) })
    }
}
