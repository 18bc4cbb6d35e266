//! Describes a payload to a model: its purpose, its fields, and an example.

use super::{Content, Field, KEY, Kind, Occurs, Scalar, Schema, Shape};

/// Returns the description of a payload for a model.
#[must_use]
pub fn prompt(schema: &Schema) -> String {
    prompt_with(schema, None)
}

/// Returns a description as [`prompt`] does. Where the schema allows an element of any name, the
/// description's example contains an example of the payload `any`.
#[must_use]
pub fn prompt_with(schema: &Schema, any: Option<&Schema>) -> String {
    let heading = format!("<{}>: {}\n", schema.name.local(), line(&schema.shape.doc));
    heading + &outline(schema) + "Example:\n" + &super::example_with(schema, any)
}

/// Returns the fields of a payload, one per line. These lines are the middle part of the payload's
/// [`prompt`].
#[must_use]
pub fn outline(schema: &Schema) -> String {
    let mut text = String::new();
    inside(&schema.shape, 0, &mut vec![&schema.shape], &mut text);
    text
}

fn inside<'a>(shape: &'a Shape, depth: usize, seen: &mut Vec<&'a Shape>, out: &mut String) {
    for attribute in &shape.attributes {
        let often = if attribute.occurs == Occurs::One { "" } else { "optional " };
        let what = format!("{often}attribute {}: {}", attribute.name, kind(&attribute.kind));
        put(depth, &what, &attribute.doc, out);
        words(&attribute.kind, depth + 1, out);
    }
    match &shape.content {
        Content::Empty if depth == 0 && shape.attributes.is_empty() => {
            put(depth, "empty", "", out);
        }
        Content::Empty => {}
        Content::Any => put(depth, "anything", "", out),
        Content::Text(field) => {
            put(depth, &format!("text: {}", kind(&field.kind)), &field.doc, out);
            words(&field.kind, depth + 1, out);
        }
        Content::Sequence(fields) => fields.iter().for_each(|it| part(it, depth, seen, out)),
        Content::Choice(variants) => choice(variants, "exactly one of", depth, seen, out),
    }
}

fn part<'a>(field: &'a Field, depth: usize, seen: &mut Vec<&'a Shape>, out: &mut String) {
    let often = match field.occurs {
        Occurs::One => "",
        Occurs::Optional => "optional ",
        Occurs::Many => "any number of ",
    };
    if let Kind::Choice(link) = &field.kind
        && let Content::Choice(variants) = &link.shape().content
    {
        let heading = match field.occurs {
            Occurs::One => "exactly one of",
            Occurs::Optional => "at most one of",
            Occurs::Many => "any number of these, in any order",
        };
        if seen.iter().any(|it| std::ptr::eq(*it, link.shape())) {
            return put(depth, &format!("{heading} {}, as above", tags(variants)), "", out);
        }
        seen.push(link.shape());
        return choice(variants, heading, depth, seen, out);
    }
    let what = match &field.kind {
        Kind::Element => format!("{often}element of any name"),
        kind => format!("{often}<{}>{}", field.name, behind(kind, seen)),
    };
    put(depth, &what, &field.doc, out);
    within(&field.kind, depth + 1, seen, out);
}

fn choice<'a>(
    variants: &'a [Field],
    heading: &str,
    depth: usize,
    seen: &mut Vec<&'a Shape>,
    out: &mut String,
) {
    put(depth, &format!("{heading}:"), "", out);
    for variant in variants {
        put(
            depth + 1,
            &format!("<{}>{}", variant.name, behind(&variant.kind, seen)),
            &variant.doc,
            out,
        );
        within(&variant.kind, depth + 2, seen, out);
    }
}

/// Returns the text after a field's tag: the form of a scalar, or a hint that the shape was
/// described above.
fn behind(held: &Kind, seen: &[&Shape]) -> String {
    match held {
        Kind::Shape(link) if seen.iter().any(|it| std::ptr::eq(*it, link.shape())) => {
            format!(", as {} above", link.shape().name)
        }
        Kind::Shape(link) if matches!(link.shape().content, Content::Empty) => String::new(),
        Kind::Shape(_) | Kind::Choice(_) | Kind::Element => String::new(),
        Kind::Scalar(_) | Kind::Map(_) => format!(": {}", kind(held)),
    }
}

fn within<'a>(held: &'a Kind, depth: usize, seen: &mut Vec<&'a Shape>, out: &mut String) {
    match held {
        Kind::Shape(link) if !seen.iter().any(|it| std::ptr::eq(*it, link.shape())) => {
            // Later lines refer to a shape by its name. A shape without a name occurs only once, so
            // no line refers to it.
            if !link.shape().name.is_empty() {
                seen.push(link.shape());
            }
            inside(link.shape(), depth, seen, out);
        }
        Kind::Map(entry) => within(&entry.kind, depth, seen, out),
        kind => words(kind, depth, out),
    }
}

/// Lists the words of a scalar that have a description.
fn words(kind: &Kind, depth: usize, out: &mut String) {
    if let Kind::Scalar(scalar) = kind
        && let Scalar::Words(words) = scalar.base()
    {
        for each in words.list.iter().filter(|it| !it.doc.is_empty()) {
            put(depth, &each.text, &each.doc, out);
        }
    }
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Scalar(scalar) => scalar.describe(),
        Kind::Map(entry) => {
            let each = match &entry.kind {
                Kind::Scalar(scalar) => scalar.describe(),
                Kind::Shape(link) | Kind::Choice(link) => link.shape().name.to_string(),
                Kind::Element | Kind::Map(_) => "anything".to_owned(),
            };
            format!("any number of <entry {KEY}=\"…\">, each with another {KEY}: {each}")
        }
        Kind::Shape(_) | Kind::Choice(_) | Kind::Element => String::new(),
    }
}

fn tags(variants: &[Field]) -> String {
    let tags: Vec<String> = variants.iter().map(|it| format!("<{}>", it.name)).collect();
    tags.join(", ")
}

fn put(depth: usize, what: &str, doc: &str, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
    out.push_str("- ");
    out.push_str(what);
    if !doc.is_empty() {
        out.push_str(". ");
        out.push_str(&line(doc));
    }
    out.push('\n');
}

/// Puts a description on one line.
fn line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
