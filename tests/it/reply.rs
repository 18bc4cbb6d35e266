//! A model's reply, parsed while it is being written: the protocol's own examples, its rules,
//! malformed input, and chunks of any size.

mod bad;
mod chunks;
mod code;
mod dirty;
pub(crate) mod protocol;
mod tell;
mod text;
mod tools;
mod words;
