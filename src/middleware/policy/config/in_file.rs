//! How a [`RetryConfig`] stands in a file.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess};
use serde::ser::Serializer;

use super::{BudgetInFile, RetryConfig, Route};
use crate::middleware::origins::{BudgetTerms, PauseTerms};
use crate::middleware::policy::routes::{HostPattern, PathPrefix};
use crate::rule::RetryRule;
use crate::rule::config::shape::{At, Path, Read, Shape, serde_traits};
use crate::rule::config::table::{Table, table};
use crate::rule::config::values::number;
use crate::rule::config::{Preset, RuleInFile};

table! {
    struct ConfigInFile for RetryConfig: "a table of retry settings" {
        "total_timeout_ms" => total_timeout: Timeout,
        "attempt_timeout_ms" => attempt_timeout: Timeout,
        "head_timeout_ms" => head_timeout: Timeout,
        "budget" => budget: BudgetInFile,
        "drain_limit" => drain_limit: usize,
        "complete_body" => complete_body: usize,
        "attempt_header" => attempt_header: HeaderName,
        "idempotency_key" => idempotency_key: HeaderName,
        "pause_origins" => pause_origins: PauseTerms,
        "routes" => routes: Vec<RouteInFile>,
    } and rule: RuleInFile
}

impl Shape for RetryConfig {
    const EXPECTED: &'static str = <ConfigInFile as Table>::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(ConfigInFile::NAME, ConfigInFile::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let file = ConfigInFile::from_map(map, At::new(at.path))?;
        let rule = file.rule.over(&RetryRule::never(), at.path)?;
        let path = Path::Field(&at.path, "routes");
        let routes = file.routes.unwrap_or_default().into_iter().enumerate();
        let routes = routes.map(|(index, route)| route.over(&rule, Path::Index(&path, index)));
        let routes = routes.collect::<Result<_, _>>()?;
        Ok(RetryConfig {
            total_timeout: file.total_timeout.map(|timeout| timeout.0),
            attempt_timeout: file.attempt_timeout.map(|timeout| timeout.0),
            head_timeout: file.head_timeout.map(|timeout| timeout.0),
            budget: file.budget,
            drain_limit: file.drain_limit,
            complete_body: file.complete_body,
            attempt_header: file.attempt_header,
            idempotency_key: file.idempotency_key,
            pause_origins: file.pause_origins,
            routes,
            rule,
        })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let routes = self.routes.iter().map(RouteInFile::of).collect();
        let file = ConfigInFile {
            total_timeout: self.total_timeout.map(Timeout),
            attempt_timeout: self.attempt_timeout.map(Timeout),
            head_timeout: self.head_timeout.map(Timeout),
            budget: self.budget,
            drain_limit: self.drain_limit,
            complete_body: self.complete_body,
            attempt_header: self.attempt_header.clone(),
            idempotency_key: self.idempotency_key.clone(),
            pause_origins: self.pause_origins,
            routes: Some(routes).filter(|routes: &Vec<_>| !routes.is_empty()),
            rule: RuleInFile::of(None, &self.rule),
        };
        file.write(to)
    }
}

serde_traits!(RetryConfig);

table! {
    struct RouteTable for Route: "a table of `hosts` and settings of a rule" {
        "hosts" => hosts: Hosts,
        "paths" => paths: Vec<PathPrefix>,
    } and rule: RuleInFile
}

/// A route that has hosts. Its rule has to wait until that of the file is known.
struct RouteInFile(RouteTable);

impl RouteInFile {
    fn over<E: Error>(self, base: &RetryRule, path: Path<'_>) -> Result<Route, E> {
        let Self(table) = self;
        Ok(Route {
            hosts: path.require("hosts", table.hosts)?.0,
            paths: table.paths.unwrap_or_default(),
            rule: Arc::new(table.rule.over(base, path)?),
        })
    }

    /// It names a preset, so that it is read the same whatever the file's own rule is.
    fn of(route: &Route) -> Self {
        Self(RouteTable {
            hosts: Some(Hosts(route.hosts.clone())),
            paths: Some(route.paths.clone()).filter(|paths| !paths.is_empty()),
            rule: RuleInFile::of(Some(Preset::Never), &route.rule),
        })
    }
}

impl Shape for RouteInFile {
    const EXPECTED: &'static str = <RouteTable as Table>::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(RouteTable::NAME, RouteTable::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let table = RouteTable::from_map(map, At::new(at.path))?;
        // Here a format that knows its lines still shows that of the route.
        at.path.require("hosts", table.hosts.as_ref())?;
        Ok(Self(table))
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

/// The hosts of a route: one or more.
struct Hosts(Vec<HostPattern>);

impl Shape for Hosts {
    const EXPECTED: &'static str = "a list of at least one host";

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_seq(at)
    }

    fn from_seq<'de, A: SeqAccess<'de>>(seq: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let hosts = Vec::from_seq(seq, At::new(at.path))?;
        if hosts.is_empty() {
            return Err(A::Error::invalid_length(0, &at));
        }
        Ok(Self(hosts))
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

macro_rules! text {
    ($type:ident, $expected:literal) => {
        impl Shape for $type {
            const EXPECTED: &'static str = $expected;

            fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
                from.deserialize_str(at)
            }

            fn from_word(word: &str) -> Read<Self> {
                $type::parse(word).map_or_else(Read::Expected, Read::Value)
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    };
}

text!(HostPattern, "a host such as \"api.example.com\"");
text!(PathPrefix, "a path such as \"/search\"");

impl Shape for BudgetInFile {
    const EXPECTED: &'static str =
        r#""off" or a table of `ratio`, `reserve_per_second` and `window_ms`"#;

    fn from_word(word: &str) -> Read<Self> {
        (word == "off").then_some(Self::Off).into()
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        BudgetTerms::from_map(map, At::new(at.path)).map(Self::On)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => to.serialize_str("off"),
            Self::On(terms) => terms.write(to),
        }
    }
}

// Zero is often written if no timeout is meant, and would let nothing be sent.
number!(
    Timeout(Duration) from Duration::from_millis(1), to Duration::MAX,
    "a whole number of milliseconds, 1 or more"
);
impl Shape for usize {
    const EXPECTED: &'static str = "a whole number of bytes, 0 or more";

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_u64(at)
    }

    fn from_number(number: Option<u64>) -> Read<Self> {
        number
            .and_then(|number| usize::try_from(number).ok())
            .into()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(*self).unwrap_or(u64::MAX))
    }
}
