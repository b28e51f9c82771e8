//! The table of routes: which rule a request has by where it goes.

mod pattern;

use std::sync::Arc;

use reqwest::Url;

use self::pattern::Target;
use super::RetryPolicy;
use crate::rule::RetryRule;

pub(super) use self::pattern::{HostPattern, PathPrefix};
pub use self::pattern::{InvalidRoute, RoutePattern};

/// The routes of a policy, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub(in crate::middleware) struct Routes(Vec<Route>);

impl Routes {
    /// The rule of the first route that has this URL.
    #[inline]
    fn rule_for(&self, url: &Url) -> Option<&RetryRule> {
        if self.0.is_empty() {
            return None;
        }
        let target = Target::of(url)?;
        let route = self.0.iter().find(|route| route.has(&target))?;
        Some(&route.rule)
    }

    /// The rule of each route in turn.
    pub(in crate::middleware) fn rules(&self) -> impl Iterator<Item = &RetryRule> + Clone {
        self.0.iter().map(|route| &*route.rule)
    }
}

/// One rule, and the requests that have it: those to one of the hosts, below one of the paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Route {
    pub(super) hosts: Vec<HostPattern>,
    /// Empty for every path.
    pub(super) paths: Vec<PathPrefix>,
    pub(super) rule: Arc<RetryRule>,
}

impl Route {
    fn has(&self, target: &Target<'_>) -> bool {
        self.hosts.iter().any(|host| host.matches(target))
            && (self.paths.is_empty() || self.paths.iter().any(|path| path.matches(target)))
    }
}

impl RetryPolicy {
    /// Gives the requests of `pattern` a rule of their own, in place of this policy's rule.
    ///
    /// Of several routes the first that has the URL of a request counts, in the order in which they
    /// were added. Everything else in the policy holds for them too, and routes to one origin share
    /// its budget. A [`RetryRule`] of the request or the task replaces that of the route. After a
    /// redirect the route is still that of the URL that was asked for.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let search = RetryRule { max_retries: 5, ..RetryRule::transient() };
    /// let policy = RetryPolicy::from(RetryRule::transient())
    ///     .route("api.example.com/search".parse()?, search)
    ///     .route("*.payments.example.com".parse()?, RetryRule::never());
    ///
    /// let max_retries = |url: &str| policy.rule_for(&url.parse().unwrap()).max_retries;
    /// assert_eq!(max_retries("https://api.example.com/search?q=rust"), 5);
    /// assert_eq!(max_retries("https://eu.payments.example.com/"), 0);
    /// assert_eq!(max_retries("https://api.example.com/items"), 3);
    /// # Ok::<(), reqwest_retry_rules::InvalidRoute>(())
    /// ```
    pub fn route(self, pattern: RoutePattern, rule: impl Into<Arc<RetryRule>>) -> Self {
        let RoutePattern { host, path } = pattern;
        let route = Route {
            hosts: vec![host],
            paths: if path.is_every() {
                Vec::new()
            } else {
                vec![path]
            },
            rule: rule.into(),
        };
        self.with(|s| s.routes.0.push(route))
    }

    #[cfg(feature = "serde")]
    pub(super) fn with_routes(self, routes: Vec<Route>) -> Self {
        self.with(|s| s.routes = Routes(routes))
    }

    /// The rule that a request to this URL has: that of the first route that has it, else
    /// [`rule`](Self::rule).
    ///
    /// It looks at nothing else, so a table of routes can be tested like a rule. What the request
    /// or the task carries is not considered.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient())
    ///     .route("localhost:8080".parse()?, RetryRule::never());
    /// assert_eq!(policy.rule_for(&"http://localhost:8080/".parse()?), &RetryRule::never());
    /// assert_eq!(policy.rule_for(&"http://localhost/".parse()?), policy.rule());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn rule_for(&self, url: &Url) -> &RetryRule {
        self.settings.routes.rule_for(url).unwrap_or(&self.rule)
    }
}
