//! The name of a call.

use std::borrow::Cow;
use std::fmt;

/// A name for a call, in events and reports.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::RetryLabel;
///
/// assert_eq!(RetryLabel::from("create-invoice").as_str(), "create-invoice");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryLabel(Cow<'static, str>);

impl RetryLabel {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for RetryLabel {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl From<Cow<'static, str>> for RetryLabel {
    fn from(name: Cow<'static, str>) -> Self {
        Self(name)
    }
}

impl AsRef<str> for RetryLabel {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for RetryLabel {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Display for RetryLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
