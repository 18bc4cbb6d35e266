//! Provider files: their keys, the paths in them, and the files that are built in. Wires take their
//! URLs from these files.

pub(crate) mod path;
pub(crate) mod keys;
pub(crate) mod built_in;
