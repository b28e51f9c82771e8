//! The enums of the data format: a word, a number, or a table with one key for each variant.

use std::time::Duration;

use http::Method;
use serde::de::{Deserializer, MapAccess, SeqAccess};
use serde::ser::Serializer;

use super::shape::{At, Path, Read, Shape};
use super::table::table;
use crate::rule::{
    Jitter, Methods, RetryAfterCap, RetryAfterRole, RetryAfterSource, RetryRule, StatusMatch,
    WaitFormat,
};

/// An enum without data as one word for each variant.
macro_rules! words {
    ($type:ident, $expected:literal, { $($word:literal => $variant:ident),+ $(,)? }) => {
        impl Shape for $type {
            const EXPECTED: &'static str = $expected;

            fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
                from.deserialize_str(at)
            }

            fn from_word(word: &str) -> Read<Self> {
                match word {
                    $($word => Read::Value($type::$variant),)+
                    _ => Read::WrongValue,
                }
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(match self {
                    $($type::$variant => $word,)+
                })
            }
        }
    };
}

words!(RetryAfterSource, r#""ignore", "header" or "ms_then_header""#, {
    "ignore" => Ignore,
    "header" => Header,
    "ms_then_header" => MsThenHeader,
});

words!(RetryAfterRole, r#""replace" or "floor""#, {
    "replace" => Replace,
    "floor" => Floor,
});

words!(WaitFormat, r#""seconds", "millis", "unix_seconds", "unix_millis" or "http_date""#, {
    "seconds" => Seconds,
    "millis" => Millis,
    "unix_seconds" => UnixSeconds,
    "unix_millis" => UnixMillis,
    "http_date" => HttpDate,
});

impl Shape for Methods {
    const EXPECTED: &'static str =
        r#""never", "idempotent", "any" or a list of methods such as ["GET", "PUT"]"#;

    fn from_word(word: &str) -> Read<Self> {
        match word {
            "never" => Read::Value(Methods::Never),
            "idempotent" => Read::Value(Methods::Idempotent),
            "any" => Read::Value(Methods::Any),
            _ => Read::WrongValue,
        }
    }

    fn from_seq<'de, A: SeqAccess<'de>>(seq: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        Vec::<Method>::from_seq(seq, At::new(at.path)).map(Methods::Listed)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Methods::Never => to.serialize_str("never"),
            Methods::Idempotent => to.serialize_str("idempotent"),
            Methods::Any => to.serialize_str("any"),
            Methods::Listed(listed) => listed.write(to),
        }
    }
}

impl Shape for StatusMatch {
    const EXPECTED: &'static str =
        r#"a status such as 429, a range such as "500-599" or a class such as "5xx""#;

    fn from_number(number: Option<u64>) -> Read<Self> {
        number
            .and_then(|number| u16::try_from(number).ok())
            .map(StatusMatch::Code)
            .into()
    }

    fn from_word(word: &str) -> Read<Self> {
        status(word).into()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            StatusMatch::Code(code) => to.serialize_u16(*code),
            StatusMatch::Range(first, last) => to.collect_str(&format_args!("{first}-{last}")),
        }
    }
}

fn status(word: &str) -> Option<StatusMatch> {
    if let Some((first, last)) = word.split_once('-') {
        return Some(StatusMatch::Range(code(first)?, code(last)?));
    }
    if let [class @ b'1'..=b'9', b'x' | b'X', b'x' | b'X'] = word.as_bytes() {
        let first = u16::from(class - b'0') * 100;
        return Some(StatusMatch::Range(first, first + 99));
    }
    code(word).map(StatusMatch::Code)
}

/// A number as it is written in a status: digits alone. `parse` would allow a sign.
fn code(digits: &str) -> Option<u16> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

/// The rule from which a file says how it differs.
#[derive(Clone, Copy)]
pub(crate) enum Preset {
    Never,
    Transient,
}

impl Preset {
    pub(super) fn rule(self) -> RetryRule {
        match self {
            Preset::Never => RetryRule::never(),
            Preset::Transient => RetryRule::transient(),
        }
    }
}

words!(Preset, r#""never" or "transient""#, {
    "never" => Never,
    "transient" => Transient,
});

table! {
    /// A [`RetryAfterCap`] with a duration.
    struct Cap for RetryAfterCap: "a table" {
        "stop_above_ms" => stop_above: Duration,
        "backoff_above_ms" => backoff_above: Duration,
        "clamp_to_ms" => clamp_to: Duration,
    }
}

impl Shape for RetryAfterCap {
    const EXPECTED: &'static str =
        r#""no_cap" or a table with one of `stop_above_ms`, `backoff_above_ms` and `clamp_to_ms`"#;

    fn from_word(word: &str) -> Read<Self> {
        (word == "no_cap").then_some(RetryAfterCap::NoCap).into()
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        match Cap::from_map(map, At::new(at.path))? {
            Cap {
                stop_above: Some(cap),
                backoff_above: None,
                clamp_to: None,
            } => Ok(RetryAfterCap::StopAbove(cap)),
            Cap {
                stop_above: None,
                backoff_above: Some(cap),
                clamp_to: None,
            } => Ok(RetryAfterCap::BackoffAbove(cap)),
            Cap {
                stop_above: None,
                backoff_above: None,
                clamp_to: Some(cap),
            } => Ok(RetryAfterCap::ClampTo(cap)),
            _ => Err(at.unexpected_map()),
        }
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut table = Cap::default();
        match *self {
            RetryAfterCap::NoCap => return to.serialize_str("no_cap"),
            RetryAfterCap::StopAbove(cap) => table.stop_above = Some(cap),
            RetryAfterCap::BackoffAbove(cap) => table.backoff_above = Some(cap),
            RetryAfterCap::ClampTo(cap) => table.clamp_to = Some(cap),
        }
        table.write(to)
    }
}

table! {
    /// A [`Jitter`] with numbers.
    struct Proportional for Jitter: "a table" {
        "proportional" => bounds: Bounds,
    }
}

table! {
    struct Bounds for Proportional: "a table of `lo` and `hi`" {
        "lo" => lo: u32,
        "hi" => hi: u32,
    }
}

impl Shape for Jitter {
    const EXPECTED: &'static str =
        r#""no_jitter", "full" or a table with `proportional`, of `lo` and `hi`"#;

    fn from_word(word: &str) -> Read<Self> {
        match word {
            "no_jitter" => Read::Value(Jitter::NoJitter),
            "full" => Read::Value(Jitter::Full),
            _ => Read::WrongValue,
        }
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let table = Proportional::from_map(map, At::new(at.path))?;
        let bounds = at.path.require("proportional", table.bounds)?;
        let path = Path::Field(&at.path, "proportional");
        Ok(Jitter::Proportional {
            lo: path.require("lo", bounds.lo)?,
            hi: path.require("hi", bounds.hi)?,
        })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Jitter::NoJitter => to.serialize_str("no_jitter"),
            Jitter::Full => to.serialize_str("full"),
            Jitter::Proportional { lo, hi } => {
                let (lo, hi) = (Some(lo), Some(hi));
                let bounds = Some(Bounds { lo, hi });
                Proportional { bounds }.write(to)
            }
        }
    }
}
