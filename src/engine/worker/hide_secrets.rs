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
    match std::str::from_utf8(&canonical) {
        Ok(text) if secrets.are_in(text) => {
            let shown = Element::from_canonical(rewritten(secrets, text).into());
            debug_assert!(shown.is_ok(), "only texts and values are changed");
            shown.unwrap_or(element)
        }
        _ => element,
    }
}

/// Hides secrets in an element in canonical form.
fn rewritten(secrets: &Secrets, canonical: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(canonical.len()), canonical);
    while let Some(begin) = rest.find('<') {
        add(secrets, &rest[..begin], escape_text, &mut out);
        let (tag, behind) = rest[begin..].split_at(tag_bytes(&rest[begin..]));
        // In canonical form, values stand in double quotes: each second part is a value.
        let mut name = "";
        for (at, part) in tag.split('"').enumerate() {
            let is_value = at % 2 == 1;
            out += if at > 0 { "\"" } else { "" };
            match is_value && !name.trim_start().starts_with("xmlns") {
                true => add(secrets, part, escape_attribute, &mut out),
                false => out += part,
            }
            name = part.rsplit_once(' ').map_or(part, |(_, name)| name);
        }
        rest = behind;
    }
    out + rest
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

/// Adds an escaped text or value without its secrets. Content in base64 stays in base64, as its
/// schema may want.
fn add(secrets: &Secrets, escaped: &str, escape: fn(&str, &mut String), out: &mut String) {
    let text = unescaped(escaped.as_bytes()).unwrap_or(Cow::Borrowed(escaped));
    let letters =
        |hidden: &str| hidden.chars().map(|it| if it.is_whitespace() { it } else { 'A' }).collect();
    match secrets.hide(&text) {
        Cow::Borrowed(_) => *out += escaped,
        Cow::Owned(_) if base64(&text).is_some() => *out += &secrets.hide_by(&text, letters),
        Cow::Owned(hidden) => escape(&hidden, out),
    }
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
    fn content_in_base64_stays_content_in_base64() {
        check("<a>a2V5OiBzayYxMjM0NQ==</a>", "<a>a2V5OiBAAAAAAAAAAQ==</a>");
        check("<a>(a2V5OiBzayYxMjM0NQ==)</a>", "<a>(a2V5OiB…Q==)</a>");
    }
}
