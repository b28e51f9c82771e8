//! How the terms of a budget and of a pause stand in a file.

use std::time::Duration;

use serde::de::{Deserializer, MapAccess};
use serde::ser::Serializer;

use super::budget::{MOST_RATIO, MOST_RESERVE, WINDOWS};
use super::{BudgetTerms, PauseTerms};
use crate::rule::config::shape::{At, Shape, serde_traits};
use crate::rule::config::table::{Table, layered, table};
use crate::rule::config::values::number;

table! {
    struct PartialBudget for BudgetTerms:
        "a table with the keys `ratio`, `reserve_per_second`, `window_ms`"
    {
        "ratio" => ratio: Ratio,
        "reserve_per_second" => reserve_per_second: Reserve,
        "window_ms" => window: Window,
    }
}

number!(Ratio(u32) from 0, to MOST_RATIO, "a whole number from 0 to 1000000");
number!(Reserve(u32) from 0, to MOST_RESERVE, "a whole number from 0 to 2147483646");
number!(
    Window(Duration) from *WINDOWS.start(), to *WINDOWS.end(),
    "a whole number from 1000 to 60000"
);

impl Shape for BudgetTerms {
    const EXPECTED: &'static str = <PartialBudget as Table>::EXPECTED;

    fn ask<'de, D: Deserializer<'de>>(from: D, at: At<'_, Self>) -> Result<Self, D::Error> {
        from.deserialize_struct(PartialBudget::NAME, PartialBudget::KEYS, at)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, at: At<'_, Self>) -> Result<Self, A::Error> {
        let PartialBudget {
            ratio,
            reserve_per_second,
            window,
        } = PartialBudget::from_map(map, At::new(at.path))?;
        let default = BudgetTerms::default();
        Ok(BudgetTerms {
            window: window.map_or(default.window, |window| window.0),
            reserve_per_second: reserve_per_second
                .map_or(default.reserve_per_second, |reserve| reserve.0),
            ratio: ratio.map_or(default.ratio, |ratio| ratio.0),
        })
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let table = PartialBudget {
            ratio: Some(Ratio(self.ratio)),
            reserve_per_second: Some(Reserve(self.reserve_per_second)),
            window: Some(Window(self.window)),
        };
        table.write(to)
    }
}

table! {
    struct PartialPause for PauseTerms: "a table with the keys `max_ms`, `spread`" {
        "max_ms" => max: Duration,
        "spread" => spread: u32,
    }
}

layered!(PartialPause over PauseTerms { max, spread } else PauseTerms::default());

serde_traits!(BudgetTerms, PauseTerms);
