//! What the program `pumphouse-bench` and the benchmarks beside it share.

mod baseline;
mod envelope;
mod executable;

pub use baseline::tokens;
pub use envelope::envelope;
pub use executable::executable;
