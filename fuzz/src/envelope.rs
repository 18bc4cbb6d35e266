//! Messages: what is opened and written again opens as the same.

use pumphouse::limits::{Limits, XmlLimits};
use pumphouse::wire::Envelope;
use pumphouse::xml::{self, Profile};

/// A message with its envelope, or a bare payload.
pub fn envelope(data: &[u8]) {
    let Ok(document) = xml::read(data, Profile::Wire, &XmlLimits::DOOR) else { return };
    let limits = Limits::default();
    let opened = match Envelope::open(&document, &limits) {
        Ok(opened) => opened,
        Err(fault) => {
            assert!(fault.line.is_some(), "{fault}");
            return;
        }
    };
    let mut text = String::new();
    opened.write(&mut text);
    let again = xml::read(&text, Profile::Wire, &XmlLimits::INSIDE);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = Envelope::open(&again, &limits);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.from, opened.from, "{text}");
    assert_eq!(again.to, opened.to, "{text}");
    assert_eq!(again.thread, opened.thread, "{text}");
    assert_eq!(again.id, opened.id, "{text}");
    assert_eq!(again.meta, opened.meta, "{text}");
    assert_eq!(again.payload.canonical(), opened.payload.canonical(), "{text}");
}
