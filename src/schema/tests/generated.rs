//! Tests with random schemas: the documents and examples made from each schema are correct.

use std::borrow::Cow;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::schema::{Bound, Facets, Link, List, Word, Words};

const PATTERNS: &[&str] = &["[a-z]+", "[A-Z]{3}-[0-9]*", r"\i\c*", "a|b{4,}", "(x[0-9]?){2,}"];

fn base() -> impl Strategy<Value = Scalar> {
    use Scalar::{
        Boolean, Bytes, Character, Duration, F32, F64, I8, I16, I32, I64, I128, Json, String,
        Timestamp, U8, U16, U32, U64, U128, Uuid,
    };
    let all = [
        String, Character, Boolean, I8, I16, I32, I64, I128, U8, U16, U32, U64, U128, F32, F64,
        Bytes, Timestamp, Duration, Uuid, Json,
    ];
    prop_oneof![
        4 => prop::sample::select(all.to_vec()),
        1 => Just(words()),
    ]
}

fn words() -> Scalar {
    let list = ["red", "blue"].map(|it| Word { text: it.into(), doc: "".into() });
    let (name, doc) = ("tint".into(), "A tint.".into());
    Scalar::Words(Cow::Owned(Words { name, doc, list: list.to_vec().into() }))
}

fn scalar() -> impl Strategy<Value = Scalar> {
    let bounded = (-100_i128..100, 0_i128..20).prop_map(|(min, more)| Facets {
        min: Some(Bound::Whole(min)),
        max: Some(Bound::Whole(min + more)),
        ..Facets::NONE
    });
    let narrow = |base: Scalar, facets: Facets| base.narrow(facets).expect("a pattern");
    let signed = prop::sample::select(vec![Scalar::I8, Scalar::I64, Scalar::I128, Scalar::F64]);
    let lengths = (0_usize..12, 0_usize..5).prop_map(|(least, more)| Facets {
        length_min: Some(least),
        length_max: Some(least + more),
        ..Facets::NONE
    });
    let long = prop::sample::select(vec![Scalar::String, Scalar::Bytes]);
    let pattern = prop::sample::select(PATTERNS)
        .prop_map(|it| Facets { pattern: Some(it.into()), ..Facets::NONE });
    let item = prop::sample::select(vec![Scalar::U8, Scalar::Boolean, Scalar::Uuid, words()]);
    let list = (item, lengths.clone()).prop_map(move |(item, facets)| {
        let (length_min, length_max) = (facets.length_min, facets.length_max);
        Scalar::List(Arc::new(List { item, length_min, length_max }))
    });
    prop_oneof![
        4 => base(),
        1 => (signed, bounded).prop_map(move |(base, it)| narrow(base, it)),
        1 => (long, lengths).prop_map(move |(base, it)| narrow(base, it)),
        1 => pattern.prop_map(move |it| narrow(Scalar::String, it)),
        1 => list,
    ]
}

fn occurs() -> impl Strategy<Value = Occurs> {
    prop::sample::select(vec![Occurs::One, Occurs::Optional, Occurs::Many])
}

/// Returns fields with distinct names: this letter and a number.
fn fields(letter: char, each: Vec<(Kind, Occurs)>) -> Vec<Field> {
    let field = |(place, (kind, occurs)): (usize, (Kind, Occurs))| {
        Field::new(format!("{letter}{place}"), "Said.", named(kind, place), occurs)
    };
    each.into_iter().enumerate().map(field).collect()
}

/// Returns a choice between elements of these kinds, for a field of a sequence.
fn choice(variants: Vec<Kind>) -> Kind {
    let variants = variants.into_iter().map(|it| (it, Occurs::One)).collect();
    let content = Content::Choice(fields('v', variants));
    Kind::Choice(Link::new(Shape::new("choice", "", Vec::new(), content)))
}

/// Adds the field's number to the names of a choice's variants. So two choices in one sequence have
/// no name in common.
fn named(kind: Kind, place: usize) -> Kind {
    let Kind::Choice(link) = &kind else { return kind };
    let mut shape = link.shape().clone();
    if let Content::Choice(variants) = &mut shape.content {
        for variant in variants {
            variant.name = format!("{}of{place}", variant.name).into();
        }
    }
    Kind::Choice(Link::new(shape))
}

/// Returns attributes. Their names may be the same as the names of elements.
fn attributes() -> impl Strategy<Value = Vec<Field>> {
    (prop::collection::vec((scalar(), any::<bool>()), 0..3), any::<bool>()).prop_map(
        |(all, same)| {
            let kinds = all.into_iter().map(|(kind, once)| {
                (Kind::Scalar(kind), if once { Occurs::One } else { Occurs::Optional })
            });
            fields(if same { 'f' } else { 'a' }, kinds.collect())
        },
    )
}

pub(super) fn shape() -> impl Strategy<Value = Shape> {
    let text = scalar()
        .prop_map(|it| Content::Text(Field::new("text", "", Kind::Scalar(it), Occurs::One)));
    let flat = (attributes(), prop_oneof![Just(Content::Empty), text])
        .prop_map(|(attributes, content)| Shape::new("flat", "A part.", attributes, content));
    flat.prop_recursive(3, 24, 4, |inner| {
        let part = inner.clone().prop_map(|it| Kind::Shape(Link::new(it)));
        let kind = prop_oneof![
            scalar().prop_map(Kind::Scalar),
            part.clone(),
            prop_oneof![scalar().prop_map(Kind::Scalar), part]
                .prop_map(|it| { Kind::Map(Box::new(Field::new("entry", "", it, Occurs::Many))) }),
        ];
        let variants = prop::collection::vec(kind.clone(), 1..3).prop_map(choice);
        let field = prop_oneof![4 => kind.clone(), 1 => variants];
        let any = prop::option::weighted(0.1, Just(Kind::Element));
        let sequence = (prop::collection::vec((field, occurs()), 1..4), any, occurs()).prop_map(
            |(mut all, any, occurs)| {
                all.extend(any.map(|it| (it, occurs)));
                Content::Sequence(fields('f', all))
            },
        );
        let choice = prop::collection::vec(kind, 1..4).prop_map(|all| {
            Content::Choice(fields('c', all.into_iter().map(|it| (it, Occurs::One)).collect()))
        });
        (attributes(), prop_oneof![3 => sequence, 1 => choice])
            .prop_map(|(attributes, content)| Shape::new("part", "", attributes, content))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn an_example_passes_its_own_check_and_every_form_is_made(shape in shape()) {
        let schema = Schema::new(name("s"), shape);
        let text = example(&schema);
        let limits = XmlLimits::FILE;
        let element = xml::read(text.clone(), Profile::Wire, &limits).expect("an example is XML");
        prop_assert_eq!(schema.check(element.view()), Ok(()), "{}", text);
        let document = xsd(&schema);
        prop_assert!(xml::read(document, Profile::Document, &limits).is_ok());
        prop_assert!(json_schema(&schema).is_object());
        prop_assert!(prompt(&schema).contains("Example:"));
        prop_assert!(schema.is_same(&schema.clone()));
    }
}
