//! Bytes to a tree: what is accepted has one stable canonical form, what isn't has a place.

use pumphouse::limits::XmlLimits;
use pumphouse::xml::{self, Element, Profile, Splitter, Writer, place_of};

/// A document.
pub fn read(data: &[u8]) {
    let limits = XmlLimits::DOOR;
    let document = xml::read(data, Profile::Document, &limits);
    let wire = xml::read(data, Profile::Wire, &limits);
    match (&document, &wire) {
        (Ok(document), Ok(wire)) => assert_eq!(document.canonical(), wire.canonical()),
        (Ok(_), Err(error)) => assert_eq!(error.kind, xml::Kind::ProcessingInstruction),
        (Err(_), Ok(_)) => panic!("only the wire accepts it"),
        (Err(error), Err(_)) => {
            assert!(error.place.offset <= data.len());
            assert_eq!(place_of(data, error.place.offset), error.place);
            assert!(error.message.chars().count() < 250, "{error}");
        }
    }
    if let Ok(element) = &document {
        stable(element);
    }
    if let Ok(element) = wire {
        one_frame(data, &element);
    }
}

/// Read, write, read, write: the same bytes, whichever way they are written.
pub fn stable(element: &Element) {
    let canonical = element.canonical();
    let again = xml::read(&canonical, Profile::Wire, &XmlLimits::FILE);
    let again = again.unwrap_or_else(|error| panic!("canonical form is refused: {error}"));
    assert_eq!(again.canonical(), canonical);
    let mut writer = Writer::new(XmlLimits::INSIDE);
    writer.element(element.view());
    let written = writer.finish().unwrap_or_else(|error| panic!("it can't be written: {error}"));
    assert_eq!(written.canonical(), canonical);
    let mut pieces = Vec::new();
    element.view().canonical_pieces(|piece| pieces.extend_from_slice(piece));
    assert!(pieces == canonical);
    for child in element.elements() {
        let alone = child.canonical();
        let again = xml::read(&alone, Profile::Wire, &XmlLimits::FILE);
        let again = again.unwrap_or_else(|error| panic!("a part is refused: {error}"));
        assert_eq!(again.canonical(), alone);
    }
}

/// What is one document is one message.
fn one_frame(data: &[u8], element: &Element) {
    let mut splitter = Splitter::new(XmlLimits::DOOR);
    splitter.feed(data);
    let frame = splitter.next().unwrap_or_else(|error| panic!("split: {error}"));
    let frame = frame.unwrap_or_else(|| panic!("split: no frame"));
    let again = xml::read(&frame.bytes, Profile::Wire, &XmlLimits::DOOR);
    let again = again.unwrap_or_else(|error| panic!("its frame is refused: {error}"));
    assert_eq!(again.canonical(), element.canonical());
    assert!(matches!(splitter.next(), Ok(None)));
    splitter.finish().unwrap_or_else(|error| panic!("split: {error}"));
}
