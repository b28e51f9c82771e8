//! What a rule retries, as text.

use super::Schedule;
use super::text::time;
use crate::rule::millis::whole_ms;
use crate::rule::{Backoff, Methods, StatusMatch, StatusRule};

impl Schedule {
    /// Which statuses are retried, row by row.
    pub(super) fn statuses_text(&self) -> String {
        let rows = self.rule.statuses.iter();
        let rows: Vec<String> = rows
            .filter(|row| !row.statuses.is_empty())
            .map(row_text)
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

fn row_text(row: &StatusRule) -> String {
    let statuses: Vec<String> = row.statuses.iter().map(status_text).collect();
    let statuses = statuses.join(", ");
    let methods = methods_text(&row.methods);
    match &row.backoff {
        Some(backoff) => format!("{statuses} {methods}, {}", backoff_text(backoff)),
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

fn backoff_text(backoff: &Backoff) -> String {
    let (base, max) = (whole_ms(backoff.base), whole_ms(backoff.max));
    match base.min(max) {
        0 => "at once".to_owned(),
        base => format!("after {} up to {}", time(base), time(max)),
    }
}
