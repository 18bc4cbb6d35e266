//! Amounts that may be spent, as people write them.

use std::fmt;
use std::str::FromStr;

use super::UNLIMITED;

/// An amount that may be spent. People write it as a number, or as `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "an allowance is a number")]
pub struct Allowance(
    /// The amount. [`UNLIMITED`] means that there is no bound.
    pub u64,
);

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == UNLIMITED { f.write_str("unlimited") } else { self.0.fmt(f) }
    }
}

impl FromStr for Allowance {
    type Err = NoAllowance;

    fn from_str(text: &str) -> Result<Allowance, NoAllowance> {
        if text == "unlimited" {
            return Ok(Allowance(UNLIMITED));
        }
        text.parse().map(Allowance).map_err(|_| NoAllowance)
    }
}

/// The error for a text that is neither a number nor `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct NoAllowance;

impl fmt::Display for NoAllowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it takes a whole number such as 200, or unlimited")
    }
}

impl std::error::Error for NoAllowance {}
