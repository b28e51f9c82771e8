//! The values of the data format that are not tables.

use std::time::Duration;

use http::{HeaderName, Method};
use serde::de::{Deserializer, SeqAccess};
use serde::ser::{SerializeSeq, Serializer};

use super::shape::{At, Path, Read, Shape, Written};
use crate::rule::millis::whole_ms;

impl Shape for bool {
    const EXPECTED: &'static str = "true or false";

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_bool(at)
    }

    fn from_bool(value: bool) -> Read<Self> {
        Read::Value(value)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(*self)
    }
}

impl Shape for u32 {
    const EXPECTED: &'static str = "a whole number from 0 to 4294967295";

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_u32(at)
    }

    fn from_number(number: Option<u64>) -> Read<Self> {
        number.and_then(|number| u32::try_from(number).ok()).into()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(*self)
    }
}

impl Shape for Duration {
    const EXPECTED: &'static str = "a whole number of milliseconds, 0 or more";

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_u64(at)
    }

    fn from_number(number: Option<u64>) -> Read<Self> {
        number.map(Duration::from_millis).into()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(whole_ms(*self))
    }
}

impl Shape for HeaderName {
    const EXPECTED: &'static str = r#"the name of a header, such as "x-should-retry""#;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_str(at)
    }

    fn from_word(word: &str) -> Read<Self> {
        HeaderName::from_bytes(word.as_bytes()).ok().into()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl Shape for Method {
    const EXPECTED: &'static str = r#"a method such as "GET""#;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_str(at)
    }

    fn from_word(word: &str) -> Read<Self> {
        Method::from_bytes(word.as_bytes()).ok().into()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// A key of a table, which may be left out or `null`.
impl<T: Shape> Shape for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_option(at)
    }

    fn from_nothing() -> Read<Self> {
        Read::Value(None)
    }

    fn from_some<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        T::ask(from, At::new(at.path)).map(Some)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => to.serialize_some(&Written(value)),
            None => to.serialize_none(),
        }
    }
}

impl<T: Shape> Shape for Vec<T> {
    const EXPECTED: &'static str = "a list";

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_seq(at)
    }

    fn from_seq<'de, A: SeqAccess<'de>>(mut seq: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let mut read = Vec::new();
        while let Some(each) = seq.next_element_seed(At::new(Path::Index(&at.path, read.len())))? {
            read.push(each);
        }
        Ok(read)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.len()))?;
        for each in self {
            list.serialize_element(&Written(each))?;
        }
        list.end()
    }
}

/// A number in a range.
macro_rules! number {
    ($name:ident($inner:ident) from $least:expr, to $most:expr, $expected:literal) => {
        #[derive(Clone, Copy)]
        struct $name($inner);

        impl $crate::rule::config::shape::Shape for $name {
            const EXPECTED: &'static str = $expected;

            fn ask<'de, D: serde::de::Deserializer<'de>>(
                from: D,
                at: $crate::rule::config::shape::At<'_, Self>,
            ) -> Result<Self, D::Error> {
                from.deserialize_u64(at)
            }

            fn from_number(number: Option<u64>) -> $crate::rule::config::shape::Read<Self> {
                use $crate::rule::config::shape::Read;
                match $inner::from_number(number) {
                    Read::Value(value) if ($least..=$most).contains(&value) => {
                        Read::Value(Self(value))
                    }
                    _ => Read::WrongValue,
                }
            }

            fn write<S: serde::ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.0.write(to)
            }
        }
    };
}

pub(crate) use number;
