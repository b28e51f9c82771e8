//! The data format of the feature `serde`: which keys a rule has and which words it knows. How
//! they are read and written is in [`shape`].

use std::time::Duration;

use http::Method;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use self::shape::{At, Path, Read, Shape, Written};
use super::{
    Backoff, Jitter, Limits, Methods, RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource,
    RetryRule, StatusMatch, StatusRule, WaitFormat, WaitHeader,
};

mod shape;

/// A struct as a table: its keys and the fields behind them. A field that is left out is as in
/// `$base`, or what stands after its `or`.
macro_rules! table {
    ($type:ident, $expected:literal, $base:expr, { $($key:literal => $field:ident $(or $absent:expr)?),+ $(,)? }) => {
        impl $type {
            const KEYS: &'static [&'static str] = &[$($key),+];
        }

        impl Shape for $type {
            const EXPECTED: &'static str = $expected;

            fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
                from.deserialize_struct(stringify!($type), $type::KEYS, at)
            }

            fn from_map<'de, A: MapAccess<'de>>(
                mut map: A,
                at: At<'_, Self>,
            ) -> Result<Self, A::Error> {
                $(let mut $field = None;)+
                while let Some(key) = map.next_key::<String>()? {
                    let path = Path::Field(&at.path, &key);
                    match key.as_str() {
                        $($key if $field.is_some() => return Err(path.duplicate()),)+
                        $($key => $field = Some(map.next_value_seed(At::new(path))?),)+
                        _ => return Err(path.unknown($type::KEYS)),
                    }
                }
                let base: Option<Self> = $base;
                Ok($type {$(
                    $field: $field
                        .or_else(|| base.as_ref().map(|base| base.$field.clone()))
                        $(.or_else(|| Some($absent)))?
                        .ok_or_else(|| Path::Field(&at.path, $key).missing())?,
                )+})
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let keys = 0 $(+ usize::from(
                    !(self.$field.is_absent() $(|| self.$field == $absent)?)
                ))+;
                let mut table = to.serialize_struct(stringify!($type), keys)?;
                $(if self.$field.is_absent() $(|| self.$field == $absent)? {
                    table.skip_field($key)?;
                } else {
                    table.serialize_field($key, &Written(&self.$field))?;
                })+
                table.end()
            }
        }
    };
}

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

table!(RetryRule, "a table of retry settings", Some(RetryRule::never()), {
    "max_retries" => max_retries,
    "statuses" => statuses,
    "sent_failures" => sent_failures,
    "unsent_failures" => unsent_failures,
    "timeouts" => timeouts,
    "override_header" => override_header,
    "veto_header" => veto_header,
    "retry_after" => retry_after,
    "backoff" => backoff,
    "limits" => limits,
});

table!(StatusRule, "a table of `statuses` and `methods`", None, {
    "statuses" => statuses,
    "methods" => methods,
    "backoff" => backoff or None,
});

table!(RetryAfter, "a table of settings for Retry-After", Some(RetryAfter::default()), {
    "headers" => headers,
    "source" => source,
    "cap" => cap,
    "zero_means_backoff" => zero_means_backoff,
    "role" => role,
    "spread" => spread,
});

table!(WaitHeader, "a table of `name` and `format`", None, {
    "name" => name,
    "format" => format,
    "statuses" => statuses or Vec::new(),
});

table!(Backoff, "a table of backoff settings", Some(Backoff::default()), {
    "base_ms" => base,
    "max_ms" => max,
    "growth" => growth,
    "jitter" => jitter,
});

table!(Limits, "a table of limits", Some(Limits::default()), {
    "soft_elapsed_ms" => soft_elapsed,
    "min_retries" => min_retries,
    "hard_elapsed_ms" => hard_elapsed,
});

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

/// A number as it is written in a status: digits alone, where `parse` would allow a sign.
fn code(digits: &str) -> Option<u16> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

impl Shape for RetryAfterCap {
    const EXPECTED: &'static str =
        r#""no_cap" or a table with one of `stop_above_ms`, `backoff_above_ms` and `clamp_to_ms`"#;

    fn from_word(word: &str) -> Read<Self> {
        (word == "no_cap").then_some(RetryAfterCap::NoCap).into()
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let Cap {
            stop_above,
            backoff_above,
            clamp_to,
        } = Cap::from_map(map, At::new(at.path))?;
        match (stop_above, backoff_above, clamp_to) {
            (Some(cap), None, None) => Ok(RetryAfterCap::StopAbove(cap)),
            (None, Some(cap), None) => Ok(RetryAfterCap::BackoffAbove(cap)),
            (None, None, Some(cap)) => Ok(RetryAfterCap::ClampTo(cap)),
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

/// A [`RetryAfterCap`] with a duration.
#[derive(Default)]
struct Cap {
    stop_above: Option<Duration>,
    backoff_above: Option<Duration>,
    clamp_to: Option<Duration>,
}

table!(Cap, "a table", Some(Cap::default()), {
    "stop_above_ms" => stop_above,
    "backoff_above_ms" => backoff_above,
    "clamp_to_ms" => clamp_to,
});

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
        let Proportional {
            bounds: Bounds { lo, hi },
        } = Proportional::from_map(map, At::new(at.path))?;
        Ok(Jitter::Proportional { lo, hi })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Jitter::NoJitter => to.serialize_str("no_jitter"),
            Jitter::Full => to.serialize_str("full"),
            Jitter::Proportional { lo, hi } => Proportional {
                bounds: Bounds { lo, hi },
            }
            .write(to),
        }
    }
}

/// A [`Jitter`] with numbers.
struct Proportional {
    bounds: Bounds,
}

#[derive(Clone)]
struct Bounds {
    lo: u32,
    hi: u32,
}

table!(Proportional, "a table", None, {
    "proportional" => bounds,
});

table!(Bounds, "a table of `lo` and `hi`", None, {
    "lo" => lo,
    "hi" => hi,
});

macro_rules! serde_traits {
    ($($type:ident),+ $(,)?) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                At::new(Path::Root).deserialize(from)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.write(to)
            }
        }
    )+};
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
    StatusMatch,
    StatusRule,
    WaitFormat,
    WaitHeader,
);

impl<'de> Deserialize<'de> for RetryRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let rule: RetryRule = At::new(Path::Root).deserialize(from)?;
        rule.validate().map_err(D::Error::custom)?;
        Ok(rule)
    }
}

impl Serialize for RetryRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.write(to)
    }
}
