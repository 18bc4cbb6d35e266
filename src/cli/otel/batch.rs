//! Sends spans to a collector, in batches of a size that the collector takes.

use crate::otel::{Collector, Resource, Span, Unsent, encode};

/// How many spans a batch has at most.
pub(super) const SPANS_MAX: usize = 256;

/// Sends spans, and returns how many of them the collector rejected. A batch that is too large is
/// sent in halves.
pub(super) async fn send(
    collector: &Collector,
    spans: &[Span],
    resource: &Resource,
) -> Result<u64, Unsent> {
    let (mut rejected, mut waiting) = (0, vec![spans]);
    while let Some(part) = waiting.pop().filter(|it| !it.is_empty()) {
        match collector.send(encode(part, resource)).await {
            Ok(more) => rejected += more,
            Err(Unsent::TooLarge) if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                waiting.extend([second, first]);
            }
            Err(Unsent::TooLarge) => rejected += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(rejected)
}
