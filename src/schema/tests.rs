//! Tests of schemas that are built at run time.

mod both_ways;
mod generated;
mod judge;
mod patterns;
mod values;

use super::*;
use crate::limits::XmlLimits;
use crate::xml::{self, Profile};

fn check(schema: &Schema, text: &str, expected: Result<(), &str>) {
    let bytes = text.to_owned().into_bytes();
    let element = xml::read(bytes, Profile::Wire, &XmlLimits::DOOR).expect(text);
    let found = schema.check(element.view()).map_err(|it| it.message);
    assert_eq!(found, expected.map_err(str::to_owned), "{text}");
}

fn name(local: &str) -> Name {
    Name::new("urn:test", local)
}

fn sequence(fields: Vec<Field>) -> Schema {
    Schema::new(name("s"), Shape::new("s", "", vec![], Content::Sequence(fields)))
}

fn text(name: &'static str, occurs: Occurs) -> Field {
    Field::new(name, "", Kind::Scalar(Scalar::String), occurs)
}

#[test]
fn an_example_has_what_must_be_there() {
    let apart = |name, occurs| Field { in_example: false, ..text(name, occurs) };
    let all = vec![apart("a", Occurs::One), apart("b", Occurs::Optional), apart("c", Occurs::Many)];
    assert_eq!(example(&sequence(all)), "<s xmlns=\"urn:test\">\n  <a>text</a>\n</s>\n");
}

#[test]
fn anything_is_anything() {
    let any = Schema::any(name("s"), "Whatever it is.");
    assert_eq!(any.doc(), "Whatever it is.");
    check(&any, "<s xmlns='urn:test' a='1'>What <b/> is<x xmlns='urn:x'/>?</s>", Ok(()));
    check(&any, "<t xmlns='urn:test'/>", Err("this is {urn:test}t, not {urn:test}s"));
    let mut one = any.clone();
    one.shape.attributes = vec![Field::new("n", "", Kind::Scalar(Scalar::U8), Occurs::One)];
    check(&one, "<s xmlns='urn:test' n='1' m='2'><x/></s>", Ok(()));
    check(&one, "<s xmlns='urn:test' m='2'/>", Err("<s> needs the attribute n"));
}

#[test]
fn any_element_is_what_no_field_beside_it_is_called() {
    let element = |occurs| Field::new("it", "", Kind::Element, occurs);
    let schema =
        sequence(vec![text("a", Occurs::Optional), element(Occurs::One), text("b", Occurs::Many)]);
    check(&schema, "<s xmlns='urn:test'><x/></s>", Ok(()));
    check(&schema, "<s xmlns='urn:test'><a/><x/><b/><b/></s>", Ok(()));
    check(&schema, "<s xmlns='urn:test'><a/><b xmlns=''/></s>", Ok(()));
    let needs = "<s> needs an element of any name before <b>";
    check(&schema, "<s xmlns='urn:test'><b/></s>", Err(needs));
    check(&schema, "<s xmlns='urn:test'><a/></s>", Err("<s> needs an element of any name"));
}

#[test]
fn a_choice_may_stand_in_a_choice_as_an_element_around_one() {
    let inner = Shape::new("inner", "", vec![], Content::Choice(vec![text("x", Occurs::One)]));
    let variant = Field::new("y", "", Kind::Shape(Link::new(inner)), Occurs::One);
    let content = Content::Choice(vec![variant, text("z", Occurs::One)]);
    let schema = Schema::new(name("s"), Shape::new("s", "", vec![], content));
    check(&schema, "<s xmlns='urn:test'><y><x/></y></s>", Ok(()));
    check(&schema, "<s xmlns='urn:test'><z/></s>", Ok(()));
    check(&schema, "<s xmlns='urn:test'><x/></s>", Err("<s> has no field <x>; it has <y>, <z>"));
    check(&schema, "<s xmlns='urn:test'><y/></s>", Err("<y> needs <x>"));
}

#[test]
fn a_long_list_of_names_ends() {
    let names: Vec<_> = (0..100).map(|it| format!("field-{it}")).collect();
    let fields = names
        .iter()
        .map(|it| Field::new(it.clone(), "", Kind::Scalar(Scalar::String), Occurs::Optional));
    let schema = sequence(fields.collect());
    let first: Vec<_> = names.iter().take(16).map(|it| format!("<{it}>")).collect();
    let message = format!(
        "<s> has no field <feild-42>; it has {}, 84 more; did you mean <field-42>?",
        first.join(", "),
    );
    check(&schema, "<s xmlns='urn:test'><feild-42/></s>", Err(&message));
}

#[test]
fn a_wrong_name_has_a_nearest_one_only_if_it_is_like_it() {
    let fields = || vec![text("begin", Occurs::Optional), text("end_at", Occurs::Optional)];
    for (wrong, nearest) in [
        ("begn", Some("<begin>")),
        ("Begin", Some("<begin>")),
        ("bgein", Some("<begin>")),
        ("end-at", Some("<end_at>")),
        ("endAt", Some("<end_at>")),
        ("beg", Some("<begin>")),
        ("be", None),
        ("begun-then", None),
        ("x", None),
    ] {
        let text = format!("<s xmlns='urn:test'><{wrong}/></s>");
        let element = xml::read(text, Profile::Wire, &XmlLimits::DOOR).expect(wrong);
        let error = sequence(fields()).check(element.view()).expect_err(wrong);
        assert_eq!(error.nearest.as_deref(), nearest, "{wrong}");
    }
}
