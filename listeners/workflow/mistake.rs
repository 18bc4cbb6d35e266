//! Mistakes of a workflow's file.

use std::fmt;

/// The reason why a definition can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongDefinition {
    /// The path in the file, such as `steps[2].condition`.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl WrongDefinition {
    /// A mistake at a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> WrongDefinition {
        WrongDefinition { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for WrongDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

impl std::error::Error for WrongDefinition {}
