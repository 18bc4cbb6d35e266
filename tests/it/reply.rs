//! A model's reply, understood while it is written: the protocol's own examples, rules, dirty
//! input, and chunks of any size.

mod bad;
mod chunks;
mod code;
mod dirty;
pub(crate) mod protocol;
mod tell;
mod text;
mod tools;
mod words;
