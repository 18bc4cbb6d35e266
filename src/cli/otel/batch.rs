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
            Ok(more) => rejected = add(rejected, more, part.len()),
            Err(Unsent::TooLarge) if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                waiting.extend([second, first]);
            }
            Err(Unsent::TooLarge) => rejected = add(rejected, 1, part.len()),
            Err(error) => return Err(error),
        }
    }
    Ok(rejected)
}

/// Adds the number of rejected spans that the collector names for a part. The collector can reject
/// no more spans than the part has, whatever number it names.
fn add(rejected: u64, named: u64, sent: usize) -> u64 {
    rejected.saturating_add(named.min(u64::try_from(sent).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_rejects_no_more_spans_than_it_got() {
        assert_eq!(add(1, 2, 3), 3);
        assert_eq!(add(5, i64::MAX.cast_unsigned(), 3), 8);
        assert_eq!(add(u64::MAX, u64::MAX, usize::MAX), u64::MAX);
    }
}
