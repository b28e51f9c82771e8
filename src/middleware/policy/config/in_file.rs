//! How a [`RetryConfig`] stands in a file.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};
use serde::ser::{Serialize, Serializer};

use super::{BudgetInFile, RetryConfig, Route};
use crate::middleware::origins::{BudgetTerms, PauseTerms};
use crate::middleware::policy::routes::{HostPattern, PathPrefix};
use crate::rule::RetryRule;
use crate::rule::config::shape::{At, Path, Read, Shape};
use crate::rule::config::table::{Table, layered, table};
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
        let said = ConfigInFile::from_map(map, At::new(at.path))?;
        let rule = said.rule.over(&RetryRule::never(), at.path)?;
        let path = Path::Field(&at.path, "routes");
        let routes = said.routes.unwrap_or_default().into_iter().enumerate();
        let routes = routes.map(|(index, route)| route.over(&rule, Path::Index(&path, index)));
        let routes = routes.collect::<Result<_, _>>()?;
        Ok(RetryConfig {
            total_timeout: said.total_timeout.map(|timeout| timeout.0),
            attempt_timeout: said.attempt_timeout.map(|timeout| timeout.0),
            head_timeout: said.head_timeout.map(|timeout| timeout.0),
            budget: said.budget,
            drain_limit: said.drain_limit,
            complete_body: said.complete_body,
            attempt_header: said.attempt_header,
            idempotency_key: said.idempotency_key,
            pause_origins: said.pause_origins,
            routes,
            rule,
        })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let routes = self.routes.iter().map(RouteInFile::of).collect();
        let said = ConfigInFile {
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
        said.write(to)
    }
}

impl<'de> Deserialize<'de> for RetryConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        At::new(Path::Root).deserialize(from)
    }
}

impl Serialize for RetryConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.write(to)
    }
}

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
        let Self(said) = self;
        Ok(Route {
            hosts: path.require("hosts", said.hosts)?.0,
            paths: said.paths.unwrap_or_default(),
            rule: Arc::new(said.rule.over(base, path)?),
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
        let said = RouteTable::from_map(map, At::new(at.path))?;
        // Here a format that knows its lines still shows that of the route.
        at.path.require("hosts", said.hosts.as_ref())?;
        Ok(Self(said))
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
        let said = PartialBudget::from_map(map, At::new(at.path))?;
        let default = BudgetTerms::default();
        Ok(Self::On(BudgetTerms {
            ratio: said.ratio.map_or(default.ratio, |ratio| ratio.0),
            reserve_per_second: said
                .reserve_per_second
                .map_or(default.reserve_per_second, |reserve| reserve.0),
            window: said.window.map_or(default.window, |window| window.0),
        }))
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => to.serialize_str("off"),
            Self::On(terms) => PartialBudget {
                ratio: Some(Ratio(terms.ratio)),
                reserve_per_second: Some(Reserve(terms.reserve_per_second)),
                window: Some(Window(terms.window)),
            }
            .write(to),
        }
    }
}

table! {
    struct PartialBudget for BudgetTerms: "a table" {
        "ratio" => ratio: Ratio,
        "reserve_per_second" => reserve_per_second: Reserve,
        "window_ms" => window: Window,
    }
}

table! {
    struct PartialPause for PauseTerms: "a table of `max_ms` and `spread`" {
        "max_ms" => max: Duration,
        "spread" => spread: u32,
    }
}

layered!(PartialPause over PauseTerms { max, spread } else PauseTerms::default());

/// A number in a range.
macro_rules! number {
    ($name:ident($inner:ident) from $least:expr, to $most:expr, $expected:literal) => {
        #[derive(Clone, Copy)]
        struct $name($inner);

        impl Shape for $name {
            const EXPECTED: &'static str = $expected;

            fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
                from.deserialize_u64(at)
            }

            fn from_number(number: Option<u64>) -> Read<Self> {
                match $inner::from_number(number) {
                    Read::Value(value) if ($least..=$most).contains(&value) => {
                        Read::Value(Self(value))
                    }
                    _ => Read::WrongValue,
                }
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.0.write(to)
            }
        }
    };
}

// Zero is often written if no timeout is meant, and would let nothing be sent.
number!(
    Timeout(Duration) from Duration::from_millis(1), to Duration::MAX,
    "a whole number of milliseconds, 1 or more"
);
// The ranges of `RetryBudget::new`.
number!(Ratio(u32) from 0, to 1_000_000, "a whole number from 0 to 1000000");
number!(Reserve(u32) from 0, to 2_147_483_646, "a whole number from 0 to 2147483646");
number!(
    Window(Duration) from Duration::from_secs(1), to Duration::from_secs(60),
    "a whole number of milliseconds from 1000 to 60000"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::origins::RetryBudget;

    /// What is read of `{ratio, reserve_per_second, window_ms}`, and whether a budget takes it.
    #[track_caller]
    fn agrees(ratio: u32, reserve_per_second: u32, window: u64) {
        let terms = BudgetTerms {
            ratio,
            reserve_per_second,
            window: Duration::from_millis(window),
        };
        let read = matches!(Ratio::from_number(Some(ratio.into())), Read::Value(_))
            && matches!(
                Reserve::from_number(Some(reserve_per_second.into())),
                Read::Value(_)
            )
            && matches!(Window::from_number(Some(window)), Read::Value(_));
        assert_eq!(read, RetryBudget::new(terms).is_ok(), "{terms:?}");
    }

    #[test]
    fn the_ranges_are_those_of_a_budget() {
        for ratio in [0, 1_000_000, 1_000_001] {
            for reserve in [0, 2_147_483_646, 2_147_483_647] {
                for window in [999, 1000, 60_000, 60_001] {
                    agrees(ratio, reserve, window);
                }
            }
        }
    }
}
