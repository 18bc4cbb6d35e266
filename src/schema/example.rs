//! Makes a filled example of a payload. Prompts show the example to models, and errors show it to
//! people.

use std::iter::repeat_n;

use super::markup::Node;
use super::pattern;
use super::{Bound, Content, ENTRY, Facets, Field, KEY, Kind, Occurs, Scalar, Schema, Shape};

/// How deep shapes of an example may be nested. A shape that must contain itself has no finite
/// value. Its example ends at this depth.
const DEPTH_MAX: usize = 32;
/// The most characters, bytes or items of an example. An example isn't longer even if its scalar
/// requires more.
const LENGTH_MAX: usize = 4_096;

/// Returns an example of a payload. The example is valid against the schema, if the search finds a
/// valid text for each scalar. The example has each field once, and one variant of each choice. Two
/// kinds of optional fields are left out: fields that would nest a shape in itself, and fields
/// whose [`in_example`](Field::in_example) is false.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::Name;
/// use pumphouse::schema::{self, Content, Field, Kind, Occurs, Scalar, Schema, Shape};
///
/// let field = |name: &'static str, it| Field::new(name, "", Kind::Scalar(it), Occurs::One);
/// let fields = vec![field("who", Scalar::String), field("times", Scalar::I64)];
/// let shape = Shape::new("greet", "Greets somebody.", Vec::new(), Content::Sequence(fields));
/// let greet = Schema::new(Name::new("urn:x", "greet"), shape);
///
/// let example = "<greet xmlns=\"urn:x\">\n  <who>text</who>\n  <times>1</times>\n</greet>\n";
/// assert_eq!(schema::example(&greet), example);
/// ```
#[must_use]
pub fn example(schema: &Schema) -> String {
    example_with(schema, None)
}

/// Returns an example as [`example`] does. Where the schema allows an element of any name, the
/// example contains an example of the payload `any`. `any` should be a payload that the reader of
/// the example may really write there.
#[must_use]
pub fn example_with(schema: &Schema, any: Option<&Schema>) -> String {
    root(schema, &mut Walk { path: Vec::new(), any }).render()
}

/// Returns the example of one field, with its element's tags.
pub(super) fn of_field(field: &Field) -> Option<String> {
    let mut nodes = Vec::new();
    add(field, &mut Walk { path: Vec::new(), any: None }, &mut nodes);
    nodes.first().map(|it| it.render().trim_end().to_owned())
}

/// Returns an example text for a scalar. If the scalar accepts none of the candidates, the last
/// candidate is returned.
#[must_use]
pub fn example_text(scalar: &Scalar) -> String {
    let mut candidates = Vec::new();
    for facets in scalar.facets() {
        candidates.extend(facets.example.iter().map(ToString::to_string));
        candidates.extend(facets.one_of.iter().map(ToString::to_string));
    }
    let all = scalar.narrowest();
    let least = all.length_min.unwrap_or_default();
    let most = all.length_max.unwrap_or(usize::MAX);
    let patterns = scalar.facets().filter_map(|it| it.pattern.as_deref());
    let parsed = patterns.filter_map(|it| pattern::parse(it).ok());
    candidates.extend(parsed.filter_map(|it| pattern::example(&it, least, most)));
    candidates.extend(plain(scalar.base(), &all));
    let fits = candidates.iter().position(|it| scalar.accepts(it));
    candidates.swap_remove(fits.unwrap_or(candidates.len() - 1))
}

/// Returns example texts for a base scalar, the best first. The scalar may refuse some of these.
/// The list isn't empty.
fn plain(base: &Scalar, facets: &Facets) -> Vec<String> {
    let Facets { min, max, length_min, length_max, .. } = facets;
    let length = |liked: usize| {
        let least = length_min.unwrap_or_default().min(LENGTH_MAX);
        liked.min(length_max.unwrap_or(liked)).max(least)
    };
    let own = base.bounds();
    let bounds = [*min, *max, own.0, own.1].into_iter().flatten().map(|it| match it {
        Bound::Float(it) => format!("{it:?}"),
        Bound::Whole(it) => it.to_string(),
    });
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    match base {
        Scalar::String => vec!["text".chars().cycle().take(length(4)).collect()],
        Scalar::Character => texts(&["a"]),
        Scalar::Boolean => texts(&["true"]),
        Scalar::F32 | Scalar::F64 => ["0.5".into(), "1".into()].into_iter().chain(bounds).collect(),
        Scalar::Bytes => {
            let bytes: Vec<u8> = b"hello".iter().copied().cycle().take(length(5)).collect();
            vec![super::base64_text(&bytes)]
        }
        Scalar::Timestamp => texts(&["2026-01-31T12:00:00Z"]),
        Scalar::Duration => texts(&["PT1M30S"]),
        Scalar::Json => texts(&["{}"]),
        Scalar::Uuid => texts(&["018f4e2a-1b2c-7d3e-8f40-123456789abc"]),
        Scalar::Words(words) => vec![words.list.first().map_or("", |it| &it.text).to_owned()],
        Scalar::List(list) => {
            let least = list.length_min.unwrap_or_default().min(LENGTH_MAX);
            let count = 2.min(list.length_max.unwrap_or(2)).max(least);
            let item = example_text(&list.item);
            vec![repeat_n(item.as_str(), count).collect::<Vec<_>>().join(" ")]
        }
        _ => ["1".to_owned()].into_iter().chain(bounds).collect(),
    }
}

/// The state while an example is made: the shapes around the current element, and the payload to
/// show where any element is allowed.
struct Walk<'a> {
    path: Vec<&'a Shape>,
    any: Option<&'a Schema>,
}

fn root<'a>(schema: &'a Schema, walk: &mut Walk<'a>) -> Node {
    let node = Node::new(schema.name.local()).with("xmlns", schema.name.namespace());
    filled(node, &schema.shape, walk)
}

fn filled<'a>(mut node: Node, shape: &'a Shape, walk: &mut Walk<'a>) -> Node {
    if walk.path.len() > DEPTH_MAX {
        return node;
    }
    walk.path.push(shape);
    for field in shape.attributes.iter().filter(|it| is_shown(it)) {
        if let Kind::Scalar(scalar) = &field.kind {
            node = node.with(field.name.clone(), example_text(scalar));
        }
    }
    let mut nodes = Vec::new();
    match &shape.content {
        Content::Empty | Content::Any => {}
        Content::Text(field) => {
            walk.path.pop();
            return texted(node, &field.kind);
        }
        Content::Sequence(fields) => {
            fields.iter().filter(|it| is_shown(it)).for_each(|it| add(it, walk, &mut nodes));
        }
        Content::Choice(variants) => {
            nodes.extend(chosen(variants, &walk.path).map(|it| element(it, walk)));
        }
    }
    walk.path.pop();
    node.holding(nodes)
}

/// Returns whether an example has the field. An example always has the required fields.
fn is_shown(field: &Field) -> bool {
    field.in_example || field.occurs == Occurs::One
}

fn texted(node: Node, kind: &Kind) -> Node {
    match kind {
        Kind::Scalar(scalar) => node.filled_with(example_text(scalar)),
        _ => node,
    }
}

fn add<'a>(field: &'a Field, walk: &mut Walk<'a>, nodes: &mut Vec<Node>) {
    if field.occurs != Occurs::One && !is_finite(&field.kind, &walk.path) {
        return;
    }
    match &field.kind {
        Kind::Choice(link) => {
            let shape = link.shape();
            if let (Content::Choice(variants), true) =
                (&shape.content, walk.path.len() <= DEPTH_MAX)
            {
                walk.path.push(shape);
                nodes.extend(chosen(variants, &walk.path).map(|it| element(it, walk)));
                walk.path.pop();
            }
        }
        // Without `any`, a placeholder is shown. The example of `any` itself has placeholders, too.
        Kind::Element => nodes.push(match walk.any {
            Some(any) => root(any, &mut Walk { path: Vec::new(), any: None }),
            None => Node::new("anything").with("xmlns", "urn:example:any"),
        }),
        _ => nodes.push(element(field, walk)),
    }
}

/// Returns an element with the field's name.
fn element<'a>(field: &'a Field, walk: &mut Walk<'a>) -> Node {
    let node = Node::new(field.name.clone());
    match &field.kind {
        Kind::Shape(link) | Kind::Choice(link) => filled(node, link.shape(), walk),
        Kind::Map(entry) if is_finite(&entry.kind, &walk.path) => {
            let inside = Node::new(ENTRY).with(KEY, "name");
            node.holding([match &entry.kind {
                Kind::Shape(link) => filled(inside, link.shape(), walk),
                kind => texted(inside, kind),
            }])
        }
        kind => texted(node, kind),
    }
}

/// Returns the first variant that can have a finite value, or else the first variant.
fn chosen<'a>(variants: &'a [Field], path: &[&'a Shape]) -> Option<&'a Field> {
    variants.iter().find(|it| is_finite(&it.kind, path)).or(variants.first())
}

/// Returns whether a value of this kind can be made without nesting a shape of `path` in itself.
fn is_finite(kind: &Kind, path: &[&Shape]) -> bool {
    let shape = match kind {
        Kind::Shape(link) | Kind::Choice(link) => link.shape(),
        Kind::Scalar(_) | Kind::Element | Kind::Map(_) => return true,
    };
    if path.iter().any(|it| std::ptr::eq(*it, shape)) {
        return false;
    }
    let path = [path, &[shape]].concat();
    match &shape.content {
        Content::Sequence(fields) => {
            let mut needed = fields.iter().filter(|it| it.occurs == Occurs::One);
            needed.all(|it| is_finite(&it.kind, &path))
        }
        Content::Choice(variants) => variants.iter().any(|it| is_finite(&it.kind, &path)),
        Content::Empty | Content::Text(_) | Content::Any => true,
    }
}
