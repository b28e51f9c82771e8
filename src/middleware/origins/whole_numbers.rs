//! A table of whole numbers in a file, each in a range of its own.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::ser::{SerializeStruct, Serializer};

/// What a table may hold. A key that is left out, or is `null`, is no error.
pub(super) struct WholeNumbers<const N: usize> {
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str; N],
    /// The least and the most of each.
    pub(super) ranges: [(u64, u64); N],
}

impl<const N: usize> WholeNumbers<N> {
    /// The numbers in the order of the keys; `None` for each that is left out.
    ///
    /// # Errors
    ///
    /// A key that is unknown or occurs twice, and a value that is no whole number in its range. Each
    /// is named.
    pub(super) fn read<'de, D: Deserializer<'de>>(
        self,
        from: D,
    ) -> Result<[Option<u64>; N], D::Error> {
        from.deserialize_struct(self.name, self.keys, self)
    }

    /// Writes the numbers, in the order of the keys.
    pub(super) fn write<S: Serializer>(self, numbers: [u64; N], to: S) -> Result<S::Ok, S::Error> {
        let mut table = to.serialize_struct(self.name, N)?;
        for (key, number) in self.keys.iter().zip(numbers) {
            table.serialize_field(key, &number)?;
        }
        table.end()
    }
}

impl<'de, const N: usize> Visitor<'de> for WholeNumbers<N> {
    type Value = [Option<u64>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table with the keys `{}`", self.keys.join("`, `"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut seen = [false; N];
        let mut numbers = [None; N];
        while let Some(key) = map.next_key::<String>()? {
            let known = self.keys.iter().zip(self.ranges);
            let mut places = seen.iter_mut().zip(&mut numbers).zip(known);
            let place = places.find(|(_, (known, _))| **known == key);
            let Some(((seen, number), (key, range))) = place else {
                return Err(A::Error::unknown_field(&key, self.keys));
            };
            if std::mem::replace(seen, true) {
                return Err(A::Error::duplicate_field(key));
            }
            *number = map.next_value_seed(WholeNumber { key, range })?;
        }
        Ok(numbers)
    }
}

/// The number behind one key.
#[derive(Clone, Copy)]
struct WholeNumber {
    key: &'static str,
    range: (u64, u64),
}

impl<'de> DeserializeSeed<'de> for WholeNumber {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<u64>, D::Error> {
        from.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for WholeNumber {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.range;
        write!(
            f,
            "`{}` to be a whole number from {least} to {most}",
            self.key
        )
    }

    fn visit_none<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<u64>, D::Error> {
        from.deserialize_u64(self)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<u64>, E> {
        let found = u64::try_from(number).ok();
        let found = found.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))?;
        self.visit_u64(found)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<u64>, E> {
        let (least, most) = self.range;
        if (least..=most).contains(&number) {
            Ok(Some(number))
        } else {
            Err(E::invalid_value(Unexpected::Unsigned(number), &self))
        }
    }
}
