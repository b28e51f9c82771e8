//! The data format of the feature `serde`: which keys a rule has and which words it knows. How
//! they are read and written is in [`shape`].

use std::time::Duration;

use http::{HeaderName, Method};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use self::shape::{At, Path, Shape, Written};
use super::millis::whole_ms;
use super::{
    Backoff, Jitter, Limits, Methods, RetryAfter, RetryAfterCap, RetryAfterRole, RetryAfterSource,
    RetryRule, StatusMatch, StatusRule, WaitFormat, WaitHeader,
};

mod shape;

/// A struct as a table: its keys and the fields behind them, `$base` giving what is left out.
macro_rules! table {
    ($type:ident, $expected:literal, $base:expr, { $($key:literal => $field:ident),+ $(,)? }) => {
        impl Shape for $type {
            const EXPECTED: &'static str = $expected;

            fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
                from.deserialize_struct(stringify!($type), &[$($key),+], at)
            }

            fn from_map<'de, A: MapAccess<'de>>(
                mut map: A,
                at: At<'_, Self>,
            ) -> Result<Self, A::Error> {
                $(let mut $field = None;)+
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        $($key => {
                            let path = Path::Field(&at.path, $key);
                            if $field.is_some() {
                                return Err(A::Error::custom(format_args!("duplicate field `{path}`")));
                            }
                            $field = Some(map.next_value_seed(At::new(path))?);
                        })+
                        other => {
                            let path = Path::Field(&at.path, other).to_string();
                            return Err(A::Error::unknown_field(&path, &[$($key),+]));
                        }
                    }
                }
                let base: Option<Self> = $base;
                Ok($type {
                    $($field: match $field.or_else(|| base.as_ref().map(|base| base.$field.clone())) {
                        Some(value) => value,
                        None => {
                            let path = Path::Field(&at.path, $key);
                            return Err(A::Error::custom(format_args!("missing field `{path}`")));
                        }
                    }),+
                })
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let keys = 0 $(+ usize::from(!self.$field.is_absent()))+;
                let mut table = to.serialize_struct(stringify!($type), keys)?;
                $(if self.$field.is_absent() {
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

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($type::$variant),)+
                    _ => None,
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
    "retry_after" => retry_after,
    "backoff" => backoff,
    "limits" => limits,
});

table!(StatusRule, "a table of `statuses` and `methods`", None, {
    "statuses" => statuses,
    "methods" => methods,
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
