//! The table at the end: ours, the peer's, the ratio, the goal.

use std::path::Path;

use crate::rounds::Rounds;

/// One line: what was measured, whose, and how it stands to what it is measured against.
pub struct Row {
    what: &'static str,
    who: &'static str,
    pub value: String,
    pub ratio: String,
    goal: &'static str,
}

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// A time in nanoseconds, against another.
    pub fn time(
        &mut self,
        what: &'static str,
        who: &'static str,
        time: Option<f64>,
        against: Option<f64>,
        goal: &'static str,
    ) {
        let Some(time) = time else {
            return;
        };
        let ratio = against.map(|against| time / against);
        self.row(what, who, in_words(time), ratio, goal);
    }

    /// The time of one of those that ran side by side, against another of them.
    pub fn side(
        &mut self,
        what: &'static str,
        who: &'static str,
        rounds: &Rounds,
        against: &str,
        goal: &'static str,
    ) {
        if let Some(time) = rounds.time(who) {
            let ratio = rounds.ratio(who, against);
            self.row(what, who, in_words(time), ratio, goal);
        }
    }

    /// Anything else.
    pub fn value(
        &mut self,
        what: &'static str,
        who: &'static str,
        value: impl ToString,
        goal: &'static str,
    ) {
        self.row(what, who, value.to_string(), None, goal);
    }

    pub fn row(
        &mut self,
        what: &'static str,
        who: &'static str,
        value: String,
        ratio: Option<f64>,
        goal: &'static str,
    ) {
        let ratio = match ratio {
            None => String::new(),
            Some(ratio @ ..0.01) => format!("{ratio:.3}"),
            Some(ratio) => format!("{ratio:.2}"),
        };
        self.rows.push(Row {
            what,
            who,
            value,
            ratio,
            goal,
        });
    }

    /// The row of something whose name begins so.
    pub fn find(&self, what: &str, who: &str) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.what.starts_with(what) && row.who == who)
    }

    pub fn print(&self) {
        println!("\n| what | who | measured | ratio | goal |");
        println!("| --- | --- | ---: | ---: | --- |");
        let mut last = "";
        for row in &self.rows {
            let what = if row.what == last { "" } else { row.what };
            last = row.what;
            println!(
                "| {what} | {} | {} | {} | {} |",
                row.who, row.value, row.ratio, row.goal
            );
        }
    }
}

pub fn in_words(nanoseconds: f64) -> String {
    match nanoseconds {
        ..2e3 => format!("{nanoseconds:.0} ns"),
        ..1e6 => format!("{:.1} µs", nanoseconds / 1e3),
        ..1e7 => format!("{:.0} µs", nanoseconds / 1e3),
        _ => format!("{:.1} ms", nanoseconds / 1e6),
    }
}

/// The median that criterion wrote down for a benchmark, in nanoseconds; `None` if a filter left it
/// out.
pub fn median(group: &str, name: &str) -> Option<f64> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let file = Path::new(&target)
        .join("criterion")
        .join(group)
        .join(name)
        .join("new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    estimates["median"]["point_estimate"].as_f64()
}
