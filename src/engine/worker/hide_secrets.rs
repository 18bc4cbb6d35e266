//! Hides the organism's secrets in what listeners emit. A listener has hidden its own secrets in
//! what servers say; here they are hidden again, since texts may have been joined since.

use std::borrow::Cow;

use crate::listener::{Emission, EmittedPayload};
use crate::schema::base64;
use crate::secret::Secrets;
use crate::wire::Fault;
use crate::xml::{Element, escape_attribute, escape_text, unescaped};

/// Hides secrets in the payload of an emission, or in the fault in its place.
pub(crate) fn hide_in(secrets: &Secrets, emission: Emission) -> Emission {
    if secrets.is_empty() {
        return emission;
    }
    let payload = match emission.payload {
        Ok(EmittedPayload { element, typed }) => {
            Ok(EmittedPayload { element: without_secrets(secrets, element), typed })
        }
        Err(fault) => Err(Fault {
            message: secrets.hide(&fault.message).into_owned(),
            path: fault.path.map(|it| secrets.hide(&it).into_owned()),
            advice: fault.advice.map(|it| secrets.hide(&it).into_owned()),
            ..fault
        }),
    };
    Emission { payload, ..emission }
}

/// Hides secrets in the texts and attributes of an element. Names of elements and attributes stay
/// as they are.
pub(crate) fn without_secrets(secrets: &Secrets, element: Element) -> Element {
    if secrets.is_empty() {
        return element;
    }
    let canonical = element.canonical();
    let Some(text) = std::str::from_utf8(&canonical).ok().and_then(|it| rewritten(secrets, it))
    else {
        return element;
    };
    let shown = Element::from_canonical(text.into());
    debug_assert!(shown.is_ok(), "only texts and values are changed");
    shown.unwrap_or(element)
}

/// Hides secrets in an element in canonical form. Returns None if there are none.
fn rewritten(secrets: &Secrets, canonical: &str) -> Option<String> {
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    let mut look = |begin: usize, end: usize, escape| {
        if let Some(hidden) = without(secrets, &canonical[begin..end], escape) {
            out += &canonical[done..begin];
            out += &hidden;
            done = end;
        }
    };
    while let Some(text) = canonical[at..].find('<') {
        look(at, at + text, escape_text);
        at += text;
        let tag = &canonical[at..at + tag_bytes(&canonical[at..])];
        // In canonical form, values stand in double quotes: each second part is a value.
        let mut name = "";
        for (number, part) in tag.split('"').enumerate() {
            if number % 2 == 1 && !name.trim_start().starts_with("xmlns") {
                look(at, at + part.len(), escape_attribute);
            }
            name = part.rsplit_once(' ').map_or(part, |(_, name)| name);
            at += part.len() + 1;
        }
        at -= 1;
    }
    (done > 0).then(|| out + &canonical[done..])
}

/// The bytes of the tag that a text begins with.
fn tag_bytes(text: &str) -> usize {
    let mut is_value = false;
    let end = text.find(|it| {
        is_value ^= it == '"';
        it == '>' && !is_value
    });
    end.map_or(text.len(), |it| it + 1)
}

/// An escaped text or value without its secrets. None if it has none. Content in base64 stays in
/// base64, as its schema may want.
fn without(secrets: &Secrets, escaped: &str, escape: fn(&str, &mut String)) -> Option<String> {
    let text = unescaped(escaped.as_bytes()).unwrap_or(Cow::Borrowed(escaped));
    let letters =
        |hidden: &str| hidden.chars().map(|it| if it.is_whitespace() { it } else { 'A' }).collect();
    let Cow::Owned(hidden) = secrets.hide(&text) else { return None };
    if base64(&text).is_some() {
        return Some(secrets.hide_by(&text, letters).into_owned());
    }
    let mut out = String::with_capacity(hidden.len());
    escape(&hidden, &mut out);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::XmlLimits;
    use crate::secret::Secret;
    use crate::xml::{Profile, read};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let secrets = Secrets::new(["sk&12345", "urn:secret"].map(Secret::new));
        let element = read(text.as_bytes(), Profile::Wire, &XmlLimits::FILE).unwrap();
        let shown = without_secrets(&secrets, element);
        assert_eq!(String::from_utf8_lossy(&shown.canonical()), expected);
    }

    #[test]
    fn a_secret_is_hidden_in_texts_and_values_and_no_name_changes() {
        check("<a>it is sk&amp;12345</a>", "<a>it is …</a>");
        check("<a b=\"&gt; sk&amp;12345\" c=\"d\">e</a>", "<a b=\"> …\" c=\"d\">e</a>");
        check("<a><b>sk&amp;12345</b>c<d/></a>", "<a><b>…</b>c<d></d></a>");
        check("<a xmlns=\"urn:secret\">urn:secret</a>", "<a xmlns=\"urn:secret\">…</a>");
        check("<a>sk 12345</a>", "<a>sk 12345</a>");
    }

    #[test]
    fn a_secret_is_hidden_at_each_level_of_escapes_in_texts_and_values() {
        let mut and = "&amp;".to_owned();
        for _ in 0..=3 {
            check(&format!("<a>sk{and}12345</a>"), "<a>…</a>");
            check(&format!("<a b=\"sk{and}12345\">c</a>"), "<a b=\"…\">c</a>");
            and = and.replace('&', "&amp;");
        }
        let other = format!("<a>sk{and}12345</a>");
        check(&other, &other);
        let quoted = r#"<a b="a \\\\&quot;b">c</a>"#;
        check(quoted, quoted);
    }

    #[test]
    fn content_in_base64_stays_content_in_base64() {
        check("<a>a2V5OiBzayYxMjM0NQ==</a>", "<a>a2V5OiBAAAAAAAAAAQ==</a>");
        check("<a>(a2V5OiBzayYxMjM0NQ==)</a>", "<a>(a2V5OiB…Q==)</a>");
    }
}
