//! The rest of the chain, from here to the network.

use std::future::Future;
use std::pin::Pin;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Next, Result};

/// The rest of the chain on its way.
pub(in crate::middleware) type Rest<'send> =
    Pin<Box<dyn Future<Output = Result<Response>> + Send + 'send>>;

/// What runs a request to its response. The loop needs nothing else of the chain that it is in.
pub(in crate::middleware) trait Chain: Send + Sync {
    fn run<'send>(&'send self, request: Request, extensions: &'send mut Extensions) -> Rest<'send>;
}

impl Chain for Next<'_> {
    fn run<'send>(&'send self, request: Request, extensions: &'send mut Extensions) -> Rest<'send> {
        self.clone().run(request, extensions)
    }
}

/// A client without a chain.
impl Chain for reqwest::Client {
    fn run<'send>(&'send self, request: Request, _: &'send mut Extensions) -> Rest<'send> {
        Box::pin(async move { Ok(self.execute(request).await?) })
    }
}

impl<C: Chain> Chain for &C {
    fn run<'send>(&'send self, request: Request, extensions: &'send mut Extensions) -> Rest<'send> {
        (**self).run(request, extensions)
    }
}
