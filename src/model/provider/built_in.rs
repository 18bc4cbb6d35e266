//! The providers of the built-in files, and the events of their sample streams.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::limits::ModelLimits;
use crate::model::provider::Provider;
use crate::model::provider_file::built_in::{at, description, sample_text, text};
use crate::model::provider_file::keys::Format;
use crate::model::wire::Framing;
use crate::model::wire_name::Wire;

/// The provider that a wire's own file describes.
pub fn of_wire(wire: Wire) -> &'static Arc<Provider> {
    static ALL: LazyLock<[Arc<Provider>; 5]> = LazyLock::new(|| {
        Wire::ALL.map(|wire| {
            let provider = text(wire).parse();
            #[expect(clippy::expect_used, reason = "a test reads what is part of the crate")]
            Arc::new(provider.expect("a description that is built in is a provider file"))
        })
    });
    &ALL[at(wire)]
}

/// The events of a sample reply with reasoning, text and a tool call, as the wire writes them.
pub(super) fn sample(wire: Wire) -> Vec<Value> {
    let bytes_max = ModelLimits::default().event_bytes_max;
    let mut framing = match description(wire).stream.format {
        Some(Format::Ndjson) => Framing::lines(bytes_max),
        _ => Framing::events(bytes_max),
    };
    let mut bytes = bytes::Bytes::from_static(sample_text(wire).as_bytes());
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let data = framing.next(&mut bytes).ok().flatten();
        events.extend(data.and_then(|it| serde_json::from_str(&it).ok()));
    }
    events
}
