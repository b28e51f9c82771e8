//! The table at the end: ours, the peer's, the ratio, the goal.

use std::path::Path;

/// One line: what was measured, whose, and how it stands to what it is measured against.
struct Row {
    what: &'static str,
    who: &'static str,
    value: String,
    ratio: String,
    goal: &'static str,
}

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// A time that criterion measured, in nanoseconds, against another.
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
        let ratio = against.map_or(String::new(), |against| format!("{:.2}", time / against));
        let value = match time {
            ..1e4 => format!("{time:.0} ns"),
            ..1e7 => format!("{:.1} µs", time / 1e3),
            _ => format!("{:.1} ms", time / 1e6),
        };
        self.rows.push(Row {
            what,
            who,
            value,
            ratio,
            goal,
        });
    }

    /// Anything else.
    pub fn value(
        &mut self,
        what: &'static str,
        who: &'static str,
        value: impl ToString,
        goal: &'static str,
    ) {
        let (value, ratio) = (value.to_string(), String::new());
        self.rows.push(Row {
            what,
            who,
            value,
            ratio,
            goal,
        });
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

/// The median that criterion wrote down for a benchmark, in nanoseconds; `None` where a filter left
/// it out.
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
