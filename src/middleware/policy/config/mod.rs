//! A policy in a file: everything in it that is data.

mod in_file;

use std::time::Duration;

use http::HeaderName;

use super::RetryPolicy;
use super::routes::Route;
use crate::middleware::origins::{BudgetTerms, PauseTerms, RetryBudget};
use crate::rule::RetryRule;

/// A whole [`RetryPolicy`] in a file: a rule, timeouts, the budget, rules for single routes, and
/// whatever else is data.
///
/// It is read with serde (feature `serde`) from TOML, JSON or any other format that says what its
/// values are, and `RetryPolicy::from(config)` makes the policy, to which code adds what is not
/// data. That cannot fail: what contradicts itself or can have no effect is an error when the file
/// is read. What is written reads back as equal.
///
/// # Keys
///
/// Those of a [`RetryRule`] with its `preset`, and beside them:
///
/// | key | sets |
/// | --- | --- |
/// | `total_timeout_ms` | [`RetryPolicy::total_timeout`], 1 or more |
/// | `attempt_timeout_ms` | [`RetryPolicy::attempt_timeout`], 1 or more |
/// | `head_timeout_ms` | [`RetryPolicy::head_timeout`], 1 or more |
/// | `budget` | [`RetryPolicy::budget`]: a table of `ratio`, `reserve_per_second` and `window_ms`, or `"off"` for [`RetryPolicy::no_budget`] |
/// | `drain_limit` | [`RetryPolicy::drain_limit`], in bytes |
/// | `complete_body` | [`RetryPolicy::complete_body`], in bytes |
/// | `attempt_header` | [`RetryPolicy::attempt_header`] |
/// | `idempotency_key` | [`RetryPolicy::idempotency_key`], the name of its header |
/// | `pause_origins` | [`RetryPolicy::pause_origins`]: a table of `max_ms` and `spread` |
/// | `routes` | a list of tables, see below |
///
/// What a file leaves out, or what is `null` in it, is as in `RetryPolicy::from(rule)`. What a table
/// of `budget` or `pause_origins` leaves out is as in the defaults of [`BudgetTerms`] and
/// [`PauseTerms`]. A key that is unknown is an error, at any depth. Every error names the way from
/// the top to the field, such as `routes[1].backoff.jitter`, with what was found and what was
/// expected.
///
/// # Routes
///
/// Each is a table with these keys:
///
/// - `hosts`, at least one: `"api.example.com"`, `"*.example.com"`, with a port if only that
///   port is meant, as in [`RoutePattern`](crate::RoutePattern);
/// - `paths`, if only some are meant: whole segments from the start of the path, such as
///   `"/search"`;
/// - any key of a rule. What a route leaves out is as in the file's own rule, also inside of
///   `retry_after`, `backoff` and `limits`. With a `preset` of its own it differs from that instead.
///
/// The first route that has the URL of a request counts.
///
/// # Defaults
///
/// An empty file: [`RetryRule::never`], and no route.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{RetryConfig, RetryPolicy};
///
/// let config: RetryConfig = toml::from_str(r#"
///     preset = "transient"              # the rule differs from `RetryRule::transient()`
///     max_retries = 5
///     attempt_timeout_ms = 2000
///     total_timeout_ms = 15000
///     budget = { ratio = 100 }          # or "off"
///
///     [[routes]]
///     hosts = ["api.example.com"]
///     paths = ["/search"]
///     sent_failures = "any"             # a POST that searches changes nothing
///
///     [[routes]]
///     hosts = ["*.payments.example.com", "localhost:8080"]
///     backoff = { max_ms = 10000 }      # the rest as above
/// "#)?;
/// let policy = RetryPolicy::from(config);
///
/// let rule = |url: &str| policy.rule_for(&url.parse().unwrap());
/// assert_eq!(rule("https://api.example.com/items"), policy.rule());
/// assert_eq!(rule("https://api.example.com/search").max_retries, 5);
/// assert_eq!(rule("http://localhost:8080/").backoff.max, Duration::from_secs(10));
/// assert_eq!(rule("http://localhost:8080/").backoff.base, Duration::from_millis(100));
///
/// let error = toml::from_str::<RetryConfig>("[[routes]]\nhosts = ['http://a']").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"TOML parse error at line 2, column 10
///   |
/// 2 | hosts = ['http://a']
///   |          ^^^^^^^^^^
/// invalid value: string "http://a", expected `routes[0].hosts[0]` to be a host without a scheme
/// "#,
/// );
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RetryConfig {
    rule: RetryRule,
    total_timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    head_timeout: Option<Duration>,
    budget: Option<BudgetInFile>,
    drain_limit: Option<usize>,
    complete_body: Option<usize>,
    attempt_header: Option<HeaderName>,
    idempotency_key: Option<HeaderName>,
    pause_origins: Option<PauseTerms>,
    routes: Vec<Route>,
}

impl RetryConfig {
    /// The rule of all requests that no route has.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{RetryConfig, RetryRule};
    ///
    /// let config: RetryConfig = toml::from_str(r#"preset = "transient""#)?;
    /// assert_eq!(config.rule(), &RetryRule::transient());
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub fn rule(&self) -> &RetryRule {
        &self.rule
    }
}

/// What a file says of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BudgetInFile {
    Off,
    On(BudgetTerms),
}

impl From<RetryConfig> for RetryPolicy {
    fn from(config: RetryConfig) -> Self {
        let RetryConfig {
            rule,
            total_timeout,
            attempt_timeout,
            head_timeout,
            budget,
            drain_limit,
            complete_body,
            attempt_header,
            idempotency_key,
            pause_origins,
            routes,
        } = config;
        // Its terms were in range when they were read.
        let budget = budget.map(|budget| match budget {
            BudgetInFile::On(terms) => RetryBudget::new(terms).ok(),
            BudgetInFile::Off => None,
        });
        let policy = RetryPolicy::from(rule).with_routes(routes);
        let policy = set(policy, total_timeout, Self::total_timeout);
        let policy = set(policy, attempt_timeout, Self::attempt_timeout);
        let policy = set(policy, head_timeout, Self::head_timeout);
        let policy = set(policy, drain_limit, Self::drain_limit);
        let policy = set(policy, complete_body, Self::complete_body);
        let policy = set(policy, pause_origins, Self::pause_origins);
        let policy = set(policy, attempt_header, Self::attempt_header);
        let policy = set(policy, idempotency_key, Self::idempotency_key);
        match budget {
            Some(Some(budget)) => policy.budget(budget),
            Some(None) => policy.no_budget(),
            None => policy,
        }
    }
}

/// `policy`, with what the file says of a setting.
fn set<T>(
    policy: RetryPolicy,
    value: Option<T>,
    setter: impl FnOnce(RetryPolicy, T) -> RetryPolicy,
) -> RetryPolicy {
    match value {
        Some(value) => setter(policy, value),
        None => policy,
    }
}
