//! A baseline for benchmarks of the reader: one pass of the tokenizer that checks almost nothing.

use quick_xml::NsReader;
use quick_xml::events::Event;

/// Returns the number of tokens that the tokenizer finds in a text before its end or an error. The
/// tokenizer resolves namespaces and checks almost nothing. The table compares the reader
/// with this function.
#[must_use]
pub fn tokens(text: &str) -> usize {
    let (mut reader, mut tokens) = (NsReader::from_str(text), 0);
    loop {
        match reader.read_resolved_event() {
            Ok((_, Event::Eof)) | Err(_) => return tokens,
            Ok(_) => tokens += 1,
        }
    }
}
