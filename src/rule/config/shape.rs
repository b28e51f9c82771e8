//! How a value of the data format is read and written.
//!
//! Derived code would name a wrong value's field in no format but TOML. Here a value knows its
//! way from the top, and what is expected of it names it.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use http::{HeaderName, Method};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::rule::millis::whole_ms;

/// A type of the data format. What it can be read from it overrides; the rest is an error.
pub(super) trait Shape: Sized {
    /// What may stand in its place, to come after "expected".
    const EXPECTED: &'static str;

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// Whether it is left out of the table that holds it.
    fn is_absent(&self) -> bool {
        false
    }

    /// Tells a format that does not say what its values are what to look for.
    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_any(at)
    }

    fn from_bool(_: bool) -> Read<Self> {
        Read::WrongType
    }

    /// `None` is a number that is negative or otherwise no `u64`.
    fn from_number(_: Option<u64>) -> Read<Self> {
        Read::WrongType
    }

    fn from_word(_: &str) -> Read<Self> {
        Read::WrongType
    }

    fn from_nothing() -> Read<Self> {
        Read::WrongType
    }

    fn from_some<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        Self::ask(from, at)
    }

    fn from_seq<'de, A: SeqAccess<'de>>(_: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &at))
    }

    fn from_map<'de, A: MapAccess<'de>>(_: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        Err(at.unexpected_map())
    }
}

/// What became of a value without parts.
pub(super) enum Read<T> {
    Value(T),
    WrongValue,
    WrongType,
}

impl<T> From<Option<T>> for Read<T> {
    fn from(read: Option<T>) -> Self {
        read.map_or(Read::WrongValue, Read::Value)
    }
}

/// The way from the top to a value.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    pub(super) fn duplicate<E: Error>(&self) -> E {
        E::custom(format_args!("duplicate field `{self}`"))
    }

    pub(super) fn missing<E: Error>(&self) -> E {
        E::custom(format_args!("missing field `{self}`"))
    }

    pub(super) fn unknown<E: Error>(&self, known: &'static [&'static str]) -> E {
        E::unknown_field(&self.to_string(), known)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A `T` to be read at this place.
pub(super) struct At<'a, T> {
    pub(super) path: Path<'a>,
    shape: PhantomData<T>,
}

impl<'a, T: Shape> At<'a, T> {
    pub(super) fn new(path: Path<'a>) -> Self {
        At {
            path,
            shape: PhantomData,
        }
    }

    pub(super) fn unexpected_map<E: Error>(&self) -> E {
        E::invalid_type(Unexpected::Map, self)
    }

    fn or_invalid<E: Error>(self, read: Read<T>, found: Unexpected<'_>) -> Result<T, E> {
        match read {
            Read::Value(value) => Ok(value),
            Read::WrongValue => Err(E::invalid_value(found, &self)),
            Read::WrongType => Err(E::invalid_type(found, &self)),
        }
    }
}

impl<'de, T: Shape> DeserializeSeed<'de> for At<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::ask(from, self)
    }
}

impl<'de, T: Shape> Visitor<'de> for At<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            Path::Root => f.write_str(T::EXPECTED),
            path => write!(f, "`{path}` to be {}", T::EXPECTED),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        self.or_invalid(T::from_bool(value), Unexpected::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        self.or_invalid(
            T::from_number(u64::try_from(value).ok()),
            Unexpected::Signed(value),
        )
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        self.or_invalid(T::from_number(Some(value)), Unexpected::Unsigned(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        self.or_invalid(T::from_word(value), Unexpected::Str(value))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.or_invalid(T::from_nothing(), Unexpected::Unit)
    }

    fn visit_none<E: Error>(self) -> Result<T, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::from_some(from, self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        T::from_seq(seq, self)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map, self)
    }
}

/// A value on its way out.
pub(super) struct Written<'a, T>(pub(super) &'a T);

impl<T: Shape> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

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

/// Left out where there is none, since TOML has no word for nothing.
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

    fn is_absent(&self) -> bool {
        self.is_none()
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
