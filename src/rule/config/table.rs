//! A table of the data format: its keys, and the fields behind them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};

use super::shape::{At, Path, Shape};

/// What a file says of a table. A key that it leaves out, or that is `null` in it, says nothing.
///
/// [`table!`] makes one.
pub(crate) trait Table: Default {
    /// The type that the table stands for.
    const NAME: &'static str;
    /// As [`Shape::EXPECTED`].
    const EXPECTED: &'static str;
    const KEYS: &'static [&'static str];

    /// Reads the value of one of `KEYS`, which is at the end of `path`.
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        path: Path<'_>,
    ) -> Result<(), A::Error>;

    /// How many keys have a value.
    fn len(&self) -> usize;

    fn write_fields<S: SerializeStruct>(&self, to: &mut S) -> Result<(), S::Error>;
}

impl<T: Table> Shape for T {
    const EXPECTED: &'static str = T::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(T::NAME, T::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(mut map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let mut table = T::default();
        let mut seen = Vec::new();
        while let Some(key) = map.next_key_seed(Key {
            path: &at.path,
            known: T::KEYS,
            seen: &seen,
        })? {
            table.read(key, &mut map, Path::Field(&at.path, key))?;
            seen.push(key);
        }
        Ok(table)
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut table = to.serialize_struct(T::NAME, self.len())?;
        self.write_fields(&mut table)?;
        table.end()
    }
}

/// The next key of a table. A bad one is refused while it is read, so that a format that knows its
/// lines shows the line of the key and not that of the table.
struct Key<'a> {
    path: &'a Path<'a>,
    known: &'static [&'static str],
    seen: &'a [&'static str],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<&'static str, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, found: &str) -> Result<&'static str, E> {
        let path = Path::Field(self.path, found);
        match self.known.iter().find(|known| **known == found) {
            Some(key) if self.seen.contains(key) => Err(path.duplicate()),
            Some(key) => Ok(key),
            None => Err(path.unknown(self.known)),
        }
    }
}

/// What a file says of a `T`, to be laid over another `T`.
pub(crate) trait Layer<T>: Sized {
    /// `base`, but for what the file says.
    fn over(self, base: T) -> T;

    /// What a file has to say to mean `whole`.
    fn of(whole: &T) -> Self;
}

/// A value that has no parts of its own is replaced whole.
impl<T: Clone> Layer<T> for Option<T> {
    fn over(self, base: T) -> T {
        self.unwrap_or(base)
    }

    fn of(whole: &T) -> Self {
        Some(whole.clone())
    }
}

/// A file can say what an option is, and cannot say that it is not there.
impl<T: Clone> Layer<Option<T>> for Option<T> {
    fn over(self, base: Option<T>) -> Option<T> {
        self.or(base)
    }

    fn of(whole: &Option<T>) -> Self {
        whole.clone()
    }
}

/// All of these keys together.
pub(crate) const fn joined<const N: usize>(parts: &[&[&'static str]]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut part, mut index, mut at) = (0, 0, 0);
    while part < parts.len() {
        if index == parts[part].len() {
            part += 1;
            index = 0;
        } else {
            all[at] = parts[part][index];
            index += 1;
            at += 1;
        }
    }
    all
}

/// A struct that is a [`Table`]: the type it stands for, what is expected in its place, its keys,
/// and the fields behind them. With `and`, the keys of another table stand in the same one.
macro_rules! table {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $partial:ident for $name:ident: $expected:literal {
            $($key:literal => $field:ident: $type:ty,)+
        } $(and $rest:ident: $rest_type:ty)?
    ) => {
        $(#[$attribute])*
        #[derive(Default)]
        $visibility struct $partial {
            $($visibility $field: Option<$type>,)+
            $($visibility $rest: $rest_type,)?
        }

        impl $crate::rule::config::table::Table for $partial {
            const NAME: &'static str = stringify!($name);
            const EXPECTED: &'static str = $expected;
            const KEYS: &'static [&'static str] = {
                const OWN: &[&str] = &[$($key),+];
                const N: usize = OWN.len() $(
                    + <$rest_type as $crate::rule::config::table::Table>::KEYS.len()
                )?;
                &$crate::rule::config::table::joined::<N>(&[
                    OWN,
                    $(<$rest_type as $crate::rule::config::table::Table>::KEYS,)?
                ])
            };

            fn read<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
                path: $crate::rule::config::shape::Path<'_>,
            ) -> Result<(), A::Error> {
                match key {
                    $($key => {
                        self.$field = map.next_value_seed(
                            $crate::rule::config::shape::At::<Option<$type>>::new(path),
                        )?;
                    })+
                    $(_ if <$rest_type as $crate::rule::config::table::Table>::KEYS
                        .contains(&key) => return self.$rest.read(key, map, path),)?
                    _ => return Err(path.unknown(Self::KEYS)),
                }
                Ok(())
            }

            fn len(&self) -> usize {
                0 $(+ usize::from(self.$field.is_some()))+ $(+ self.$rest.len())?
            }

            fn write_fields<S: serde::ser::SerializeStruct>(
                &self,
                to: &mut S,
            ) -> Result<(), S::Error> {
                $(match &self.$field {
                    Some(value) => to.serialize_field(
                        $key,
                        &$crate::rule::config::shape::Written(value),
                    )?,
                    None => to.skip_field($key)?,
                })+
                $(self.$rest.write_fields(to)?;)?
                Ok(())
            }
        }
    };
}

/// Says that a [`Table`] is a [`Layer`] of the struct that has the same fields, and that this struct
/// is read as such a layer over what comes after `else`.
macro_rules! layered {
    ($partial:ident over $whole:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::rule::config::table::Layer<$whole> for $partial {
            fn over(self, base: $whole) -> $whole {
                $whole {$(
                    $field: $crate::rule::config::table::Layer::over(self.$field, base.$field),
                )+}
            }

            fn of(whole: &$whole) -> Self {
                $partial {$(
                    $field: $crate::rule::config::table::Layer::of(&whole.$field),
                )+}
            }
        }

        /// A table in a table.
        impl $crate::rule::config::table::Layer<$whole> for Option<$partial> {
            fn over(self, base: $whole) -> $whole {
                match self {
                    Some(value) => value.over(base),
                    None => base,
                }
            }

            fn of(whole: &$whole) -> Self {
                Some($crate::rule::config::table::Layer::of(whole))
            }
        }
    };
    ($partial:ident over $whole:ident { $($field:ident),+ $(,)? } else $base:expr) => {
        $crate::rule::config::table::layered!($partial over $whole { $($field),+ });

        impl $crate::rule::config::shape::Shape for $whole {
            const EXPECTED: &'static str =
                <$partial as $crate::rule::config::table::Table>::EXPECTED;

            fn ask<'de, D: serde::de::Deserializer<'de>>(
                from: D,
                at: $crate::rule::config::shape::At<'_, Self>,
            ) -> Result<Self, D::Error> {
                use $crate::rule::config::table::Table;
                from.deserialize_struct($partial::NAME, $partial::KEYS, at)
            }

            fn from_map<'de, A: serde::de::MapAccess<'de>>(
                map: A,
                at: $crate::rule::config::shape::At<'_, Self>,
            ) -> Result<Self, A::Error> {
                let table = $partial::from_map(map, $crate::rule::config::shape::At::new(at.path))?;
                Ok($crate::rule::config::table::Layer::over(table, $base))
            }

            fn write<S: serde::ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$partial as $crate::rule::config::table::Layer<$whole>>::of(self).write(to)
            }
        }
    };
}

pub(crate) use {layered, table};
