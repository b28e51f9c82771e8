//! The data format of the feature `serde`: which keys a rule has, and what they mean together.
//!
//! Each table is read into what the file says of it, and that is laid over a base when the whole
//! file is known: so the order of the keys does not matter, and `preset` may stand anywhere.
//! [`shape`] has how one value is read and written, [`table`] how a table is, [`values`] and
//! [`words`] what is not a table.
//!
//! The code is not derived. Derived code would name the field of a wrong value in no format but
//! TOML, and it has no way to lay one table over another.

use std::fmt;
use std::time::Duration;

use http::HeaderName;
use serde::de::{Deserializer, Error, MapAccess};
use serde::ser::Serializer;

use self::shape::{At, Path, Shape, serde_traits};
use self::table::{Layer, Table, layered, table};
pub(crate) use self::words::Preset;
use super::{
    Backoff, InvalidRule, Jitter, Limits, Methods, RetryAfter, RetryAfterCap, RetryAfterRole,
    RetryAfterSource, RetryRule, StatusMatch, StatusRule, WaitFormat, WaitHeader,
};

pub(crate) mod shape;
pub(crate) mod table;
pub(crate) mod values;
mod words;

table! {
    /// What a file says of a rule, and over which preset.
    pub(crate) struct RuleInFile for RetryRule: "a table of retry settings" {
        "preset" => preset: Preset,
    } and rule: PartialRule
}

impl RuleInFile {
    /// The rule that is meant, which differs from `base` unless a preset is named.
    ///
    /// # Errors
    ///
    /// Everything with which [`RetryRule::validate`] finds fault.
    pub(crate) fn over<E: Error>(self, base: &RetryRule, path: Path<'_>) -> Result<RetryRule, E> {
        let base = self.preset.map_or_else(|| base.clone(), Preset::rule);
        let rule = self.rule.over(base);
        match rule.validate() {
            Ok(()) => Ok(rule),
            Err(invalid) => Err(E::custom(Faults { invalid, path })),
        }
    }

    /// All of a rule, over `never()` or over a preset that says so.
    pub(crate) fn of(preset: Option<Preset>, rule: &RetryRule) -> Self {
        let rule = PartialRule::of(rule);
        Self { preset, rule }
    }
}

/// What is wrong with the rule at this place.
struct Faults<'a> {
    invalid: InvalidRule,
    path: Path<'a>,
}

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid retry rule: ")?;
        for (index, fault) in self.invalid.faults().iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let field = Path::Field(&self.path, fault.field());
            let (found, expected) = (fault.found(), fault.expected());
            write!(f, "{separator}`{field}` is {found}, expected {expected}")?;
        }
        Ok(())
    }
}

impl Shape for RetryRule {
    const EXPECTED: &'static str = <RuleInFile as Table>::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(RuleInFile::NAME, RuleInFile::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        RuleInFile::from_map(map, At::new(at.path))?.over(&RetryRule::never(), at.path)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        PartialRule::of(self).write(to)
    }
}

table! {
    pub(crate) struct PartialRule for RetryRule: "a table of retry settings" {
        "max_retries" => max_retries: u32,
        "statuses" => statuses: Vec<StatusRule>,
        "sent_failures" => sent_failures: Methods,
        "unsent_failures" => unsent_failures: bool,
        "timeouts" => timeouts: bool,
        "override_header" => override_header: HeaderName,
        "veto_header" => veto_header: HeaderName,
        "retry_after" => retry_after: PartialRetryAfter,
        "backoff" => backoff: PartialBackoff,
        "limits" => limits: PartialLimits,
    }
}

layered!(PartialRule over RetryRule {
    max_retries,
    statuses,
    sent_failures,
    unsent_failures,
    timeouts,
    override_header,
    veto_header,
    retry_after,
    backoff,
    limits,
});

table! {
    pub(crate) struct PartialRetryAfter for RetryAfter: "a table of settings for Retry-After" {
        "headers" => headers: Vec<WaitHeader>,
        "source" => source: RetryAfterSource,
        "cap" => cap: RetryAfterCap,
        "zero_means_backoff" => zero_means_backoff: bool,
        "role" => role: RetryAfterRole,
        "spread" => spread: u32,
    }
}

layered!(PartialRetryAfter over RetryAfter {
    headers, source, cap, zero_means_backoff, role, spread,
} else RetryAfter::default());

table! {
    pub(crate) struct PartialBackoff for Backoff: "a table of backoff settings" {
        "base_ms" => base: Duration,
        "max_ms" => max: Duration,
        "growth" => growth: u32,
        "jitter" => jitter: Jitter,
    }
}

layered!(PartialBackoff over Backoff { base, max, growth, jitter } else Backoff::default());

table! {
    pub(crate) struct PartialLimits for Limits: "a table of limits" {
        "soft_elapsed_ms" => soft_elapsed: Duration,
        "min_retries" => min_retries: u32,
        "hard_elapsed_ms" => hard_elapsed: Duration,
    }
}

layered!(PartialLimits over Limits {
    soft_elapsed, min_retries, hard_elapsed,
} else Limits::default());

table! {
    struct PartialStatusRule for StatusRule: "a table of `statuses` and `methods`" {
        "statuses" => statuses: Vec<StatusMatch>,
        "methods" => methods: Methods,
        "backoff" => backoff: Backoff,
    }
}

impl Shape for StatusRule {
    const EXPECTED: &'static str = <PartialStatusRule as Table>::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(PartialStatusRule::NAME, PartialStatusRule::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let table = PartialStatusRule::from_map(map, At::new(at.path))?;
        Ok(StatusRule {
            statuses: at.path.require("statuses", table.statuses)?,
            methods: at.path.require("methods", table.methods)?,
            backoff: table.backoff,
        })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let table = PartialStatusRule {
            statuses: Some(self.statuses.clone()),
            methods: Some(self.methods.clone()),
            backoff: self.backoff.clone(),
        };
        table.write(to)
    }
}

table! {
    struct PartialWaitHeader for WaitHeader: "a table of `name` and `format`" {
        "name" => name: HeaderName,
        "format" => format: WaitFormat,
        "statuses" => statuses: Vec<StatusMatch>,
    }
}

impl Shape for WaitHeader {
    const EXPECTED: &'static str = <PartialWaitHeader as Table>::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(PartialWaitHeader::NAME, PartialWaitHeader::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let table = PartialWaitHeader::from_map(map, At::new(at.path))?;
        Ok(WaitHeader {
            name: at.path.require("name", table.name)?,
            format: at.path.require("format", table.format)?,
            statuses: table.statuses.unwrap_or_default(),
        })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let statuses = Some(&self.statuses).filter(|statuses| !statuses.is_empty());
        let table = PartialWaitHeader {
            name: Some(self.name.clone()),
            format: Some(self.format),
            statuses: statuses.cloned(),
        };
        table.write(to)
    }
}

serde_traits!(
    Backoff,
    Jitter,
    Limits,
    Methods,
    RetryAfter,
    RetryAfterCap,
    RetryAfterRole,
    RetryAfterSource,
    RetryRule,
    StatusMatch,
    StatusRule,
    WaitFormat,
    WaitHeader,
);
