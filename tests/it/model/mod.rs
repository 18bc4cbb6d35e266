//! Models, from outside.

mod sse;
