//! What a rule retries, as text.

use super::text::{span_text, time};
use super::{Schedule, Span};
use crate::rule::{Backoff, Methods, StatusMatch, StatusRule};

impl Schedule {
    /// Which statuses are retried, row by row.
    pub(super) fn statuses_text(&self) -> String {
        let rows = self.rule.statuses.iter();
        let rows: Vec<String> = rows
            .filter(|row| !row.statuses.is_empty())
            .map(|row| row_text(row, self.rule.max_retries))
            .collect();
        let mut text = match rows.is_empty() {
            true => "none".to_owned(),
            false => rows.join("; "),
        };
        if let Some(name) = &self.rule.override_header {
            text += &format!("; from 400 on the header {name} overrides");
        }
        if let Some(name) = &self.rule.veto_header {
            text += &format!("; from 400 on the header {name} may forbid");
        }
        text
    }

    /// Which failures are retried.
    pub(super) fn failures_text(&self) -> String {
        let (sent, unsent) = (&self.rule.sent_failures, self.rule.unsent_failures);
        let mut text = match (sent, unsent) {
            (Methods::Never, false) => return "none".to_owned(),
            (Methods::Never, true) => "only unsent ones, for any method".to_owned(),
            (sent, false) => methods_text(sent),
            (Methods::Any, true) => methods_text(&Methods::Any),
            (sent, true) => format!("{}, unsent ones for any method", methods_text(sent)),
        };
        if !self.rule.timeouts {
            text += "; no timeouts";
        }
        text
    }
}

fn row_text(row: &StatusRule, retries: u32) -> String {
    let statuses: Vec<String> = row.statuses.iter().map(status_text).collect();
    let statuses = statuses.join(", ");
    let methods = methods_text(&row.methods);
    match &row.backoff {
        Some(backoff) => format!("{statuses} {methods}, {}", backoff_text(backoff, retries)),
        None => format!("{statuses} {methods}"),
    }
}

fn status_text(status: &StatusMatch) -> String {
    match status {
        StatusMatch::Code(code) => code.to_string(),
        StatusMatch::Range(first, last) => format!("{first}-{last}"),
    }
}

fn methods_text(methods: &Methods) -> String {
    match methods {
        Methods::Never => "never".to_owned(),
        Methods::Idempotent => "for idempotent methods".to_owned(),
        Methods::Any => "for any method".to_owned(),
        Methods::Listed(listed) if listed.is_empty() => "for no method".to_owned(),
        Methods::Listed(listed) => {
            let names: Vec<&str> = listed.iter().map(|method| method.as_str()).collect();
            format!("for {}", names.join(", "))
        }
    }
}

/// The waits of a row's own backoff, from the first to the last that the rule has.
fn backoff_text(backoff: &Backoff, retries: u32) -> String {
    let wait = |made| {
        let (shortest, longest) = backoff.bounds(made);
        Span {
            shortest,
            longest,
            asked: 0,
        }
    };
    let (first, last) = (wait(0), wait(retries.saturating_sub(1)));
    if first.longest == 0 && last.longest == 0 {
        return "at once".to_owned();
    }
    let text = format!("its own wait of {}", span_text(first));
    match last.longest {
        longest if longest > first.longest => format!("{text}, growing to {}", time(longest)),
        longest if longest < first.longest => format!("{text}, shrinking to {}", time(longest)),
        _ => text,
    }
}
