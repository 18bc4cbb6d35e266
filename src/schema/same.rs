//! Compares schemas by structure. Descriptions, examples and the names of types don't count.

use crate::schema::{Content, Facets, Field, Kind, Link, Scalar, Schema, Shape};

/// The pairs of shapes whose comparison has begun. A pair that occurs again isn't compared again,
/// so that the comparison of a recursive shape ends.
type Seen = Vec<(*const Shape, *const Shape)>;

impl Schema {
    /// Returns whether both schemas have the same name, flags and structure, and mark the same
    /// field as the payload's value. Their descriptions, examples and names of types may differ.
    #[must_use]
    pub fn is_same(&self, other: &Schema) -> bool {
        std::ptr::eq(self, other)
            || (self.name == other.name
                && self.live == other.live
                && self.reserved == other.reserved
                && self.bookkeeping == other.bookkeeping
                && sources(self, other)
                && shapes(&self.shape, &other.shape, &mut Seen::new()))
    }
}

fn sources(one: &Schema, other: &Schema) -> bool {
    match (&one.source, &other.source) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        _ => false,
    }
}

fn shapes(one: &Shape, other: &Shape, seen: &mut Seen) -> bool {
    let pair = (std::ptr::from_ref(one), std::ptr::from_ref(other));
    if std::ptr::eq(one, other) || seen.contains(&pair) {
        return true;
    }
    seen.push(pair);
    let content = match (&one.content, &other.content) {
        (Content::Empty, Content::Empty) | (Content::Any, Content::Any) => true,
        (Content::Text(a), Content::Text(b)) => {
            (a.is_value, a.is_note) == (b.is_value, b.is_note) && kinds(&a.kind, &b.kind, seen)
        }
        (Content::Sequence(a), Content::Sequence(b)) | (Content::Choice(a), Content::Choice(b)) => {
            fields(a, b, seen)
        }
        _ => false,
    };
    content && fields(&one.attributes, &other.attributes, seen)
}

fn fields(one: &[Field], other: &[Field], seen: &mut Seen) -> bool {
    let same = |(a, b): (&Field, &Field)| {
        a.name == b.name
            && a.occurs == b.occurs
            && (a.is_value, a.is_note) == (b.is_value, b.is_note)
            && kinds(&a.kind, &b.kind, seen)
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

fn kinds(one: &Kind, other: &Kind, seen: &mut Seen) -> bool {
    let links = |a: &Link, b: &Link, seen: &mut Seen| shapes(a.shape(), b.shape(), seen);
    match (one, other) {
        (Kind::Scalar(a), Kind::Scalar(b)) => scalars(a, b),
        (Kind::Shape(a), Kind::Shape(b)) | (Kind::Choice(a), Kind::Choice(b)) => links(a, b, seen),
        (Kind::Element, Kind::Element) => true,
        (Kind::Map(a), Kind::Map(b)) => kinds(&a.kind, &b.kind, seen),
        _ => false,
    }
}

fn scalars(one: &Scalar, other: &Scalar) -> bool {
    let narrow = |it: &Scalar| Facets { example: None, ..it.narrowest() };
    if narrow(one) != narrow(other) {
        return false;
    }
    match (one.base(), other.base()) {
        (Scalar::Words(a), Scalar::Words(b)) => {
            a.list.iter().map(|it| &it.text).eq(b.list.iter().map(|it| &it.text))
        }
        (Scalar::List(a), Scalar::List(b)) => {
            scalars(&a.item, &b.item)
                && a.length_min == b.length_min
                && a.length_max == b.length_max
        }
        (a, b) => a == b,
    }
}
