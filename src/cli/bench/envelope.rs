//! The envelope that rows are about, of 250 bytes; what the peers get as well.

/// A message for `sink` in a thread, with a number in it, in a line of its own.
pub(crate) fn envelope(thread: &str, number: u64) -> String {
    let text = format!(
        "<message xmlns=\"{}\"><meta><from>console</from><to>sink</to><thread>{thread}</thread>\
         </meta><sink xmlns=\"https://xml-pipeline.org/ns/bench/v1\"><a>{number}</a><text>",
        pumphouse::name::ENVELOPE
    );
    let tail = "</text></sink></message>\n";
    let fill = BYTES.saturating_sub(text.len() + tail.len());
    format!("{text}{}{tail}", "x".repeat(fill))
}

/// How long it is.
const BYTES: usize = 250;
