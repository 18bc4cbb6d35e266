//! Agents: listeners whose mind is a model.

pub mod words;
