//! A [`Schedule`] as text: a table, and below it the server, the limits and the worst case.

use std::fmt::{self, Write};

use super::{Schedule, ScheduledRetry, Span};
use crate::rule::millis::whole_ms;
use crate::rule::{RetryAfterCap, RetryAfterRole, StopReason};

/// The most retries that are shown before some are left out.
const HEAD: u32 = 9;

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule.max_retries {
            0 => {
                writeln!(f, "No retries. Worst case: one attempt's own timeout.")?;
                return self.write_advice(f);
            }
            1 => f.write_str("1 retry.")?,
            more => write!(f, "Up to {more} retries.")?,
        }
        f.write_str(" Times leave out what the attempts themselves take.\n")?;
        if self.has_several_backoffs() {
            f.write_str("Waits: of all rows together.\n")?;
        }
        f.write_str("\n")?;
        self.write_table(f)?;
        writeln!(f, "\nStatuses: {}.", self.statuses_text())?;
        writeln!(f, "Failures: {}.", self.failures_text())?;
        writeln!(f, "Server: {}.", self.server_text())?;
        writeln!(f, "Limits: {}.", self.limits_text())?;
        let (fewest, most) = (self.fewest_retries(), self.most_retries());
        if fewest < self.rule.max_retries {
            let retries = match most {
                0 => "no retry".to_owned(),
                1 if fewest == 1 => "1 retry, none if attempts are slow".to_owned(),
                _ if fewest == most => format!("{most} retries, fewer if attempts are slow"),
                _ => format!("{fewest} to {most} retries, fewer if attempts are slow"),
            };
            writeln!(f, "Time for: {retries}.")?;
        }

        let worst = self.worst_text(most, |span| span.longest);
        writeln!(f, "Worst case: {worst}.")?;
        let asked = if self.is_uncapped() && self.rule.limits.hard_elapsed.is_none() {
            "no end, for any wait is accepted".to_owned()
        } else {
            self.worst_text(self.most_retries_asked(), |span| span.asked)
        };
        if asked != worst {
            writeln!(f, "If the server asks: {asked}.")?;
        }
        self.write_advice(f)
    }
}

impl Schedule {
    fn write_advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for advice in self.rule.advice() {
            writeln!(f, "Advice: {advice}.")?;
        }
        Ok(())
    }

    /// True if a wait depends on what failed.
    fn has_several_backoffs(&self) -> bool {
        let mut backoffs = self.backoffs();
        let first = backoffs.next();
        backoffs.any(|backoff| Some(backoff) != first)
    }

    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![["retry", "wait", "starts after", "", ""].map(str::to_owned)];
        if self.rule.retry_after.reads_headers() {
            rows[0][3] = "if the server asks, after".to_owned();
        }
        // The last worth a look is the last that there is, or the first that is always too late.
        let most = self.most_retries();
        let last = most.saturating_add(1).min(self.rule.max_retries);
        let head = if last <= HEAD + 1 {
            last
        } else {
            HEAD.min(self.growing.saturating_add(1))
        };
        let mut retries = self.retries();
        rows.extend(
            retries
                .by_ref()
                .take(head as usize)
                .map(|retry| self.cells(&retry)),
        );

        let mut shown = head;
        for number in [most, last] {
            let Some(left_out) = number
                .checked_sub(shown)
                .and_then(|more| more.checked_sub(1))
            else {
                continue;
            };
            let Some(retry) = retries.nth(left_out as usize) else {
                continue;
            };
            if left_out > 0 {
                let wait = if self.growing < head {
                    format!("{} each", span_text(retry.wait))
                } else {
                    format!("… to {}", span_text(retry.wait))
                };
                rows.push([
                    "…".to_owned(),
                    wait,
                    "…".to_owned(),
                    String::new(),
                    String::new(),
                ]);
            }
            rows.push(self.cells(&retry));
            shown = number;
        }
        write_aligned(f, &rows)
    }

    fn cells(&self, retry: &ScheduledRetry) -> [String; 5] {
        let asked = match (self.rule.retry_after.reads_headers(), retry.start_asked()) {
            (false, _) => String::new(),
            (true, None) => "any time".to_owned(),
            (true, Some(start)) => format!("up to {}", time(whole_ms(start))),
        };
        let note = match (
            retry.stop_after_shortest_waits(),
            retry.stop_after_longest_waits(),
        ) {
            (Some(reason), _) => format!("too late: {} limit", name(reason)),
            (None, Some(reason)) => format!("may be too late: {} limit", name(reason)),
            (None, None) => String::new(),
        };
        [
            retry.number().to_string(),
            span_text(retry.wait),
            span_text(retry.start),
            asked,
            note,
        ]
    }

    fn server_text(&self) -> String {
        let server = &self.rule.retry_after;
        if !server.reads_headers() {
            return "is not asked how long to wait".to_owned();
        }
        let mut text = match server.cap {
            RetryAfterCap::NoCap => "may ask for any wait, however long".to_owned(),
            RetryAfterCap::StopAbove(cap) => format!(
                "may ask for a wait of up to {}; above that the send stops",
                time(whole_ms(cap))
            ),
            RetryAfterCap::BackoffAbove(cap) => format!(
                "may ask for a wait of up to {}; above that the rule's own applies",
                time(whole_ms(cap))
            ),
            RetryAfterCap::ClampTo(cap) => format!(
                "may ask for a wait of up to {}; more than that is cut down to it",
                time(whole_ms(cap))
            ),
        };
        if server.spread > 0 {
            let percent = f64::from(server.spread) / 10.0;
            text += &format!("; chance adds up to {percent} %");
        }
        if server.role == RetryAfterRole::Floor {
            text += "; the rule's own counts if it is longer";
        }
        text
    }

    fn limits_text(&self) -> String {
        let soft = self.rule.limits.soft_elapsed.map(|soft| {
            let exception = match self.rule.limits.min_retries {
                0 => "no further wait begins".to_owned(),
                1 => "only the first retry is still made".to_owned(),
                first => format!("only the first {first} retries are still made"),
            };
            format!("after {} {exception} (soft)", time(whole_ms(soft)))
        });
        let hard = self
            .rule
            .limits
            .hard_elapsed
            .map(|hard| format!("after {} no retry starts (hard)", time(whole_ms(hard))));
        match (soft, hard) {
            (None, None) => "none".to_owned(),
            (Some(soft), Some(hard)) => format!("{soft}, {hard}"),
            (Some(only), None) | (None, Some(only)) => only,
        }
    }

    /// The longest that `retries` retries can take, in words; `part` picks whose waits count.
    fn worst_text(&self, retries: u32, part: impl Fn(Span) -> u64) -> String {
        let Some(last) = retries
            .checked_sub(1)
            .and_then(|skip| self.retries().nth(skip as usize))
        else {
            return with_attempts(0, 1);
        };
        // The longest wait is the first or the last: each backoff grows all the way, or shrinks.
        let first = self.retries().next();
        let longest = first
            .map_or(0, |first| part(first.wait))
            .max(part(last.wait));

        let unlimited = part(last.start);
        let (limit, limited) = match (self.rule.limits.hard_elapsed, self.rule.limits.soft_elapsed)
        {
            (Some(hard), _) => (whole_ms(hard), with_attempts(whole_ms(hard), 1)),
            (None, Some(soft)) if self.rule.limits.min_retries < retries => {
                let limit = whole_ms(soft).saturating_add(longest);
                let limited = with_attempts(limit, 1);
                match self.rule.limits.min_retries.checked_sub(1) {
                    None => (limit, limited),
                    Some(skip) => {
                        let least = self.retries().nth(skip as usize);
                        let least = least.map_or(0, |retry| part(retry.start));
                        let least = with_attempts(least, u64::from(skip) + 2);
                        (limit, format!("{limited}, or {least}, whichever is longer"))
                    }
                }
            }
            (None, _) => return with_attempts(unlimited, u64::from(retries) + 1),
        };
        if unlimited >= limit {
            limited
        } else {
            let unlimited = with_attempts(unlimited, u64::from(retries) + 1);
            format!("{unlimited}, but no more than {limited}")
        }
    }
}

/// A time that is waited, and the attempts whose own time comes to it.
fn with_attempts(waited: u64, attempts: u64) -> String {
    let attempts = match attempts {
        1 => "one attempt's own timeout".to_owned(),
        more => format!("{more} attempts' own timeouts"),
    };
    match waited {
        0 => attempts,
        waited => format!("{} and {attempts}", time(waited)),
    }
}

fn name(reason: StopReason) -> &'static str {
    match reason {
        StopReason::SoftLimit => "soft",
        _ => "hard",
    }
}

pub(super) fn span_text(span: Span) -> String {
    if span.shortest == span.longest {
        time(span.longest)
    } else if span.shortest == 0 {
        format!("0 to {}", time(span.longest))
    } else {
        format!("{} to {}", time(span.shortest), time(span.longest))
    }
}

/// Milliseconds in the units that a person would use; exact below a thousand days.
pub(super) fn time(ms: u64) -> String {
    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;

    if ms < SECOND {
        return format!("{ms} ms");
    }
    if ms >= 1000 * DAY {
        return format!("{} years", ms / YEAR);
    }
    let mut parts = Vec::new();
    for (amount, unit) in [
        (ms / DAY, "d"),
        (ms % DAY / HOUR, "h"),
        (ms % HOUR / MINUTE, "min"),
    ] {
        if amount > 0 {
            parts.push(format!("{amount} {unit}"));
        }
    }
    let (seconds, thousandths) = (ms % MINUTE / SECOND, ms % SECOND);
    if thousandths > 0 {
        let fraction = format!("{thousandths:03}");
        parts.push(format!("{seconds}.{} s", fraction.trim_end_matches('0')));
    } else if seconds > 0 {
        parts.push(format!("{seconds} s"));
    }
    parts.join(" ")
}

/// Writes `rows` in columns, numbers to the right; a column without text takes no room.
fn write_aligned(f: &mut fmt::Formatter<'_>, rows: &[[String; 5]]) -> fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..5).filter_map(width).collect();
    for row in rows {
        let mut line = format!("{:>width$}", row[0], width = widths[0]);
        for (cell, width) in row
            .iter()
            .zip(&widths)
            .skip(1)
            .filter(|(_, width)| **width > 0)
        {
            write!(line, "  {cell:width$}")?;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
