use http::StatusCode;

use super::Methods;

/// The methods for which some statuses may be retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRule {
    /// The statuses.
    pub statuses: Vec<StatusMatch>,
    /// The methods.
    pub methods: Methods,
}

impl StatusRule {
    /// Whether `status` is among its statuses.
    pub fn contains(&self, status: StatusCode) -> bool {
        self.statuses.iter().any(|each| each.contains(status))
    }
}

/// One status, or all from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMatch {
    /// One status.
    Code(u16),
    /// All statuses from the first to the last, both included.
    Range(u16, u16),
}

impl StatusMatch {
    /// Whether `status` is meant.
    pub fn contains(&self, status: StatusCode) -> bool {
        match *self {
            StatusMatch::Code(code) => status.as_u16() == code,
            StatusMatch::Range(first, last) => (first..=last).contains(&status.as_u16()),
        }
    }
}
