//! Events to bytes: what the writer finishes is canonical, and its tree is what is read back.

use pumphouse::limits::XmlLimits;
use pumphouse::xml::{self, Child, Element, Profile, View, Writer};

use crate::read::stable;

/// A program for the writer: a byte an event, what it needs after it.
pub fn canonical_write(data: &[u8]) {
    let mut rest = data;
    let mut writer = Writer::new(XmlLimits::DOOR);
    let foreign = foreign();
    while let Some((&event, after)) = rest.split_first() {
        rest = after;
        match event % 8 {
            0 | 1 => {
                let namespace = namespace(&mut rest);
                let local = name(&mut rest);
                writer.start(&namespace, &local);
            }
            2 => {
                let local = name(&mut rest);
                writer.attribute(&local, &text(&mut rest));
            }
            3 | 4 => writer.text(&text(&mut rest)),
            5 => writer.element(foreign[usize::from(event / 8) % foreign.len()].view()),
            _ => writer.end(),
        }
    }
    let Ok(written) = writer.finish() else { return };
    let canonical = written.canonical();
    let again = xml::read(&canonical, Profile::Wire, &XmlLimits::FILE);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{written:?}"));
    assert_eq!(again.canonical(), canonical);
    same(written.view(), again.view());
    stable(&written);
}

/// The same names, attributes and texts.
fn same(a: View<'_>, b: View<'_>) {
    assert_eq!((a.namespace(), a.local(), a.prefix()), (b.namespace(), b.local(), b.prefix()));
    assert!(a.attributes().eq(b.attributes()), "{a:?}");
    let (mut theirs, mut count) = (b.children(), 0);
    for child in a.children() {
        count += 1;
        match (child, theirs.next()) {
            (Child::Text(a), Some(Child::Text(b))) => assert_eq!(a, b),
            (Child::Element(a), Some(Child::Element(b))) => same(a, b),
            (a, b) => panic!("{a:?}, {b:?}"),
        }
    }
    assert!(theirs.next().is_none(), "{count} children: {a:?}");
}

fn foreign() -> Vec<Element> {
    let texts = [
        "<a/>",
        "<a xmlns='u'>x<b xmlns=''/></a>",
        "<p:a xmlns:p='u' p:b='1' c='2'><p:d/><e/></p:a>",
        "<r xmlns:q='v' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='q:t'>]]&gt;</r>",
    ];
    let element = |it: &str| xml::read(it, Profile::Wire, &XmlLimits::DOOR).ok();
    texts.into_iter().filter_map(element).collect()
}

fn namespace(rest: &mut &[u8]) -> String {
    match take(rest) % 6 {
        0 => String::new(),
        1 => "u".to_owned(),
        2 => "v".to_owned(),
        3 => "http://www.w3.org/XML/1998/namespace".to_owned(),
        _ => text(rest),
    }
}

fn name(rest: &mut &[u8]) -> String {
    match take(rest) % 5 {
        0 => "a".to_owned(),
        1 => "b".to_owned(),
        2 => "type".to_owned(),
        3 => "xmlns".to_owned(),
        _ => text(rest),
    }
}

/// A length, and so many bytes.
fn text(rest: &mut &[u8]) -> String {
    let length = usize::from(take(rest) % 32).min(rest.len());
    let (text, after) = rest.split_at(length);
    *rest = after;
    String::from_utf8_lossy(text).into_owned()
}

fn take(rest: &mut &[u8]) -> u8 {
    let Some((&first, after)) = rest.split_first() else { return 0 };
    *rest = after;
    first
}
