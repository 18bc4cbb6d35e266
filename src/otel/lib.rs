//! OpenTelemetry: spans of agents' work, made from the log.
//!
//! Nothing here measures running code. The log has the time of each entry, so a span is a function
//! of the log's entries: its ids, times and attributes don't depend on when it is made.
//! [`Projection`] reads entries in the order of their positions and returns each span when the
//! span's last entry comes. [`encode`](encode()) writes spans as a collector reads them, and
//! [`Collector`] sends them. `docs/opentelemetry.md` is the manual.
//!
//! ```
//! # extern crate pumphouse_otel as pumphouse;
//! use pumphouse::otel::{SpanId, TraceId};
//! use pumphouse::{EntryId, ThreadId};
//!
//! let thread = ThreadId::new("sess-k3v9x2ma");
//! assert_eq!(TraceId::of(&thread).to_string().len(), 32);
//! assert_eq!(SpanId::of(&EntryId::new(&thread, 7)).to_string().len(), 16);
//! ```

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use crate as otel;
use pumphouse_core::{listener, wire};
#[doc(hidden)]
pub use pumphouse_ground::{EntryId, ThreadId};
use pumphouse_ground::{id, xml};
#[doc(hidden)]
pub use pumphouse_log as log;
use pumphouse_tls as tls_trust;

pub mod names;
mod span;
mod model;
mod thread_spans;
mod projection;
mod encode;
mod metrics;
mod collector;

pub use collector::{Collector, NoCollector, Unsent};
pub use encode::{Resource, encode};
pub use metrics::Metrics;
pub use projection::Projection;
pub use span::{Attribute, Failure, Kind, Link, Span, SpanId, TraceId, Value};

#[cfg(test)]
mod written;
#[cfg(test)]
mod tests;
