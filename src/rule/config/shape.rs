//! How a value of the data format is read and written.
//!
//! Derived code would name a wrong value's field in no format but TOML. Here a value knows its
//! way from the top, and what is expected of it names it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::ser::{Serialize, Serializer};

/// A type of the data format. What it can be read from it overrides; the rest is an error.
pub(crate) trait Shape: Sized {
    /// What may stand in its place, to come after "expected".
    const EXPECTED: &'static str;

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

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
pub(crate) enum Read<T> {
    Value(T),
    WrongValue,
    /// As `WrongValue`, with what is expected in this case in particular.
    Expected(&'static str),
    WrongType,
}

impl<T> From<Option<T>> for Read<T> {
    fn from(read: Option<T>) -> Self {
        read.map_or(Read::WrongValue, Read::Value)
    }
}

/// The way from the top to a value.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    pub(crate) fn duplicate<E: Error>(&self) -> E {
        E::custom(format_args!("duplicate field `{self}`"))
    }

    /// What a table has to say behind `key`.
    pub(crate) fn require<T, E: Error>(&self, key: &str, value: Option<T>) -> Result<T, E> {
        value.ok_or_else(|| {
            let field = Path::Field(self, key);
            E::custom(format_args!("missing field `{field}`"))
        })
    }

    pub(crate) fn unknown<E: Error>(&self, known: &'static [&'static str]) -> E {
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
pub(crate) struct At<'a, T> {
    pub(crate) path: Path<'a>,
    shape: PhantomData<T>,
}

impl<'a, T: Shape> At<'a, T> {
    pub(crate) fn new(path: Path<'a>) -> Self {
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
            Read::Expected(expected) => {
                let path = self.path;
                Err(E::invalid_value(found, &Expectation { path, expected }))
            }
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
        let (path, expected) = (self.path, T::EXPECTED);
        Expectation { path, expected }.fmt(f)
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

/// What should stand at a place.
pub(crate) struct Expectation<'a> {
    pub(crate) path: Path<'a>,
    pub(crate) expected: &'static str,
}

impl Expected for Expectation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            Path::Root => f.write_str(self.expected),
            path => write!(f, "`{path}` to be {}", self.expected),
        }
    }
}

/// A value on its way out.
pub(crate) struct Written<'a, T>(pub(crate) &'a T);

impl<T: Shape> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(to)
    }
}

/// Reads and writes each type, at the top of a file, as its [`Shape`] says.
macro_rules! serde_traits {
    ($($type:ident),+ $(,)?) => {$(
        impl<'de> serde::de::Deserialize<'de> for $type {
            fn deserialize<D: serde::de::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use $crate::rule::config::shape::{At, Path};
                serde::de::DeserializeSeed::deserialize(At::new(Path::Root), from)
            }
        }

        impl serde::ser::Serialize for $type {
            fn serialize<S: serde::ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $crate::rule::config::shape::Shape::write(self, to)
            }
        }
    )+};
}

pub(crate) use serde_traits;
