//! The envelope of 250 bytes that several measurements use, and that the benchmark `peers` sends to
//! other systems.

/// Returns a message for `sink` in a thread, with a number in its payload, and with a line end
/// after the message.
#[must_use]
pub fn envelope(thread: &str, number: u64) -> String {
    let text = format!(
        "<message xmlns=\"{}\"><meta><from>console</from><to>sink</to><thread>{thread}</thread>\
         </meta><sink xmlns=\"https://xml-pipeline.org/ns/bench/v1\"><a>{number}</a><text>",
        pumphouse::name::ENVELOPE
    );
    let tail = "</text></sink></message>\n";
    let fill = BYTES.saturating_sub(text.len() + tail.len());
    format!("{text}{}{tail}", "x".repeat(fill))
}

/// The length of the envelope with its line end, in bytes.
const BYTES: usize = 250;
