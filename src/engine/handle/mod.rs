//! The handle of a pump: pushing, asking, following and forking.

pub(crate) mod follow;
pub(crate) mod pump;
mod fork;
pub(crate) mod push;
