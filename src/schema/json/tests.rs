//! Tests of JSON errors and their places, and of names that only XML can distinguish.

use serde_json::{Value, json};

use super::*;
use crate::name::Name;
use crate::schema::{Content, Facets, Field, Kind, Link, List, Occurs, Scalar, Schema, Shape};

fn field(name: &'static str, kind: Kind, occurs: Occurs) -> Field {
    Field::new(name, "", kind, occurs)
}

fn schema(attributes: Vec<Field>, fields: Vec<Field>) -> Schema {
    let shape = Shape::new("s", "", attributes, Content::Sequence(fields));
    Schema::new(Name::new("urn:test", "s"), shape)
}

fn choice(names: &[&'static str]) -> Kind {
    let variant = |it: &&'static str| field(it, Kind::Scalar(Scalar::U8), Occurs::One);
    let content = Content::Choice(names.iter().map(variant).collect());
    Kind::Choice(Link::new(Shape::new("", "", Vec::new(), content)))
}

fn scalar(scalar: Scalar) -> Schema {
    schema(Vec::new(), vec![field("it", Kind::Scalar(scalar), Occurs::One)])
}

#[track_caller]
fn there_and_back(schema: &Schema, json: &Value, inside: &str) {
    let element = from_json(schema, json).expect("a right form");
    let text = String::from_utf8(element.canonical().to_vec()).expect("UTF-8");
    let (_, rest) = text.split_once("<s xmlns=\"urn:test\"").expect("a root");
    assert_eq!(rest.strip_suffix("</s>"), Some(inside));
    assert_eq!(to_json(schema, element.view()).as_ref(), Ok(json));
}

#[test]
fn what_is_wrong_with_a_text_has_its_place() {
    for (text, expected) in [
        ("", "line 1, column 1: there is nothing"),
        (" \n", "line 2, column 1: there is nothing, behind ` \\n`"),
        ("{\"a\": 1", "line 1, column 8: the text ends within its value, behind `{\"a\": 1`"),
        (
            "{\n  \"é\": 1,\n  \"b\": 2,\n}",
            "line 4, column 1: a comma stands behind the last item or property; leave it out, \
             between `{\\n  \"é\": 1,\\n  \"b\": 2,\\n` and `}`",
        ),
        (
            "{'a': 1}",
            "line 1, column 2: the name of a property is expected, in double quotes, between `{` \
             and `'a': 1}`",
        ),
        (
            "[1 2]",
            "line 1, column 4: behind an item of a list `,` or `]` is expected, between `[1 ` and \
             `2]`",
        ),
        (
            "[NaN]",
            "line 1, column 2: `NaN` is no word of JSON: the words of JSON are true, false and \
             null, and a text stands in double quotes, between `[` and `NaN]`",
        ),
        (
            "[tru]",
            "line 1, column 5: `tru` is no word of JSON: the words of JSON are true, false and \
             null, and a text stands in double quotes, between `[tru` and `]`",
        ),
        (
            "[)]",
            "line 1, column 2: a value is expected here: a text in double quotes, a number, true, \
             false, null, a list or an object, between `[` and `)]`",
        ),
        (
            "[1] 2",
            "line 1, column 5: more text stands behind the value, and JSON is one value, between \
             `[1] ` and `2`",
        ),
        ("[1e400]", "line 1, column 6: the number is too large, between `[1e40` and `0]`"),
    ] {
        has_place(text, expected);
    }
}

#[track_caller]
fn has_place(text: &str, expected: &str) {
    let broken = read(text).expect_err(text);
    assert_eq!(broken.to_string(), expected, "{text}");
    assert!(broken.advice().ends_with('.'));
}

#[test]
fn what_json_can_not_have_is_told_with_its_place() {
    for (text, expected) in [
        (
            "{\"a\": 1, \"a\": 2}",
            "line 1, column 12: the property \"a\" stands twice in its object, \
             between `{\"a\": 1, \"a` and `\": 2}`",
        ),
        (
            "{\"\\u0061\": 1, \"a\": 2}",
            "line 1, column 17: the property \"a\" stands twice in its object, \
             between `{\"\\u0061\": 1, \"a` and `\": 2}`",
        ),
        (
            "[\"\u{0}\"]",
            "line 1, column 3: U+0000 stands there, which JSON writes as \\u0000, \
             between `[\"` and `\\u{0}\"]`",
        ),
        (
            "[1,\n 18446744073709551616]",
            "line 2, column 2: the whole number 18446744073709551616 has more than 64 bits, \
             between `[1,\\n ` and `18446744073709551616]`",
        ),
        (
            "\"\\\\uDEAD \\q\"",
            "line 1, column 11: JSON has no such escape; it has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \
             \\u0041, between `\"\\\\uDEAD \\` and `q\"`",
        ),
        (
            "[\"0123456789012345678901234567890123456789\" \
             0123456789012345678901234567890123456789]",
            "line 1, column 45: behind an item of a list `,` or `]` is expected, between \
             `23456789012345678901234567890123456789\" ` and \
             `0123456789012345678901234567890123456789`",
        ),
    ] {
        has_place(text, expected);
    }
}

#[test]
fn a_text_is_as_deep_as_elements_may_be() {
    let nested = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    assert!(read(&nested(DEPTH_MAX)).is_ok());
    let broken = read(&nested(DEPTH_MAX + 1)).expect_err("too deep");
    assert_eq!(broken.kind, BrokenKind::Depth);
    assert_eq!(broken.message, "more than 384 objects and arrays stand in one another");
    assert_eq!(read(&"[".repeat(100_000)).map_err(|it| it.kind), Err(BrokenKind::Depth));
    assert_eq!(read(&"{\"a\":".repeat(100_000)).map_err(|it| it.kind), Err(BrokenKind::Depth));
}

#[test]
fn what_only_xml_tells_apart_gets_a_number() {
    let number = || Kind::Scalar(Scalar::U8);
    let both = schema(
        vec![field("id", number(), Occurs::One)],
        vec![field("id", number(), Occurs::Optional), field("id-2", number(), Occurs::One)],
    );
    let json = json!({ "id": 1, "id-2": 2, "id-2-2": 3 });
    there_and_back(&both, &json, " id=\"1\"><id>2</id><id-2>3</id-2>");
    let choices = schema(
        Vec::new(),
        vec![
            field("a", choice(&["x", "b"]), Occurs::One),
            field("b", choice(&["y", "z"]), Occurs::Many),
        ],
    );
    let json = json!({ "b": 1, "b-2": [{ "y": 2 }, { "z": 3 }] });
    there_and_back(&choices, &json, "><b>1</b><y>2</y><z>3</z>");
    let properties = json_schema_properties(&choices);
    assert_eq!(properties, ["x", "b", "b-2"]);
}

fn json_schema_properties(schema: &Schema) -> Vec<String> {
    let all = crate::schema::json_schema(schema);
    all["properties"].as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn any_json_value_is_itself() {
    let any = || scalar(Scalar::Json);
    there_and_back(&any(), &json!({ "it": [1, null, "<b>"] }), "><it>[1,null,\"&lt;b&gt;\"]</it>");
    there_and_back(&any(), &json!({ "it": "7" }), "><it>\"7\"</it>");
    there_and_back(&any(), &json!({ "it": null }), "><it>null</it>");
    assert!(!Scalar::Json.accepts("{a: 1}") && !Scalar::Json.accepts(r#"{"a":1,"a":1}"#));
}

#[test]
fn a_number_narrowed_by_how_it_is_written_is_a_string() {
    let narrow = |base: Scalar, pattern: &'static str| {
        let facets = Facets { pattern: Some(pattern.into()), ..Facets::NONE };
        scalar(base.narrow(facets).expect(pattern))
    };
    there_and_back(&narrow(Scalar::U8, "00[0-9]"), &json!({ "it": "007" }), "><it>007</it>");
    there_and_back(&narrow(Scalar::Boolean, "[01]"), &json!({ "it": "1" }), "><it>1</it>");
    there_and_back(&narrow(Scalar::Uuid, ".*"), &json!({ "it": UUID }), UUID_INSIDE);
    let facets = Facets { fraction_digits: Some(8), ..Facets::NONE };
    let counted = scalar(Scalar::F64.narrow(facets).expect("no pattern"));
    there_and_back(&counted, &json!({ "it": 1e-7 }), "><it>0.0000001</it>");
    let facets = Facets { one_of: vec!["1.50".into(), "+7".into()].into(), ..Facets::NONE };
    let few = scalar(Scalar::F32.narrow(facets).expect("no pattern"));
    there_and_back(&few, &json!({ "it": 1.5 }), "><it>1.50</it>");
    there_and_back(&few, &json!({ "it": 7.0 }), "><it>7</it>");
}

const UUID: &str = "018f4e2a-1b2c-7d3e-8f40-123456789abc";
const UUID_INSIDE: &str = "><it>018f4e2a-1b2c-7d3e-8f40-123456789abc</it>";

#[test]
fn numbers_are_exact_or_refused() {
    let took = |base: Scalar, text: &str| {
        let json = read(&format!("{{\"it\": {text}}}")).ok()?;
        let element = from_json(&scalar(base), &json).ok()?;
        element.elements().next().map(|it| it.text().into_owned())
    };
    for (base, text, expected) in [
        (Scalar::U64, "18446744073709551615", Some("18446744073709551615")),
        (Scalar::U64, "18446744073709551616", None),
        (Scalar::U64, "-1", None),
        (Scalar::I64, "-9223372036854775808", Some("-9223372036854775808")),
        (Scalar::I64, "-9223372036854775809", None),
        (Scalar::I64, "1.0", Some("1")),
        (Scalar::I64, "-0", Some("0")),
        (Scalar::I64, "1e3", Some("1000")),
        (Scalar::I64, "9007199254740993.0", None),
        (Scalar::I64, "1.5", None),
        (
            Scalar::I128,
            "\"-170141183460469231731687303715884105728\"",
            Some("-170141183460469231731687303715884105728"),
        ),
        (Scalar::I128, "1", None),
        (Scalar::U128, "\"+0001\"", Some("1")),
        (Scalar::F64, "0.1", Some("0.1")),
        (Scalar::F64, "123456789.12345679e-320", Some("1.234567891236e-312")),
        (Scalar::F64, "1e300", Some("1e300")),
        (Scalar::F64, "\"INF\"", Some("INF")),
        (Scalar::F64, "\"inf\"", None),
        (Scalar::F64, "\"1\"", None),
        (Scalar::F32, "0.1", Some("0.1")),
        (Scalar::F32, "16777217", None),
        (Scalar::F64, "9007199254740993", None),
        (Scalar::F32, "1e300", None),
        (Scalar::Boolean, "1", None),
        (Scalar::Boolean, "\"true\"", None),
    ] {
        assert_eq!(took(base, text).as_deref(), expected, "{text}");
    }
}

#[test]
fn half_a_character_is_read_as_a_replacement() {
    assert_eq!(
        read(r#"["\ud83d x", "\uDEAD", "\ud83d\ude00"]"#),
        Ok(json!(["\u{FFFD} x", "\u{FFFD}", "😀"]))
    );
}

#[test]
fn an_item_of_a_list_is_one_word() {
    let list = List { item: Scalar::String, length_min: None, length_max: Some(2) };
    let words = scalar(Scalar::List(list.into()));
    there_and_back(&words, &json!({ "it": ["a", "b"] }), "><it>a b</it>");
    there_and_back(&words, &json!({ "it": [] }), "><it></it>");
    let told = from_json(&words, &json!({ "it": ["a b", "", 1] })).expect_err("no words");
    let expected = [
        "$.it[0] takes an item without white space, not \"a b\"",
        "$.it[1] takes an item without white space, not \"\"",
        "$.it[2] takes text, not 1",
    ];
    assert_eq!(told.to_string(), expected.join("\n"));
}

#[test]
fn elements_stand_in_one_another_as_deep_as_in_xml() {
    static SHAPE: std::sync::LazyLock<Shape> = std::sync::LazyLock::new(|| {
        let kind = Kind::Shape(Link::of(|| &SHAPE));
        let below = vec![field("s", kind, Occurs::Many)];
        Shape::new("s", "", Vec::new(), Content::Sequence(below))
    });
    let schema = Schema::new(Name::new("urn:test", "s"), (*SHAPE).clone());
    let nested = |count: usize| {
        let text = format!("{}{{}}{}", "{\"s\": [".repeat(count - 1), "]}".repeat(count - 1));
        from_json(&schema, &read(&text).expect("JSON"))
    };
    assert!(nested(128).is_ok());
    let told = nested(129).expect_err("too deep");
    assert!(told.to_string().ends_with("stands more than 128 elements deep"), "{told}");
}

fn valued(field: Field) -> Field {
    Field { is_value: true, ..field }
}

#[test]
fn the_value_is_the_marked_field_else_the_one_scalar_else_nothing() {
    let text = |occurs| field("it", Kind::Scalar(Scalar::String), occurs);
    let number = |name, occurs| field(name, Kind::Scalar(Scalar::U8), occurs);
    let one = || vec![text(Occurs::One)];
    let check = |schema: Schema, json: Value, expected: Option<Value>| {
        assert_eq!(value(&schema, &json), expected, "{json}");
    };
    check(schema(vec![], one()), json!({ "it": "x" }), Some(json!("x")));
    check(schema(vec![], vec![text(Occurs::Optional)]), json!({ "it": "x" }), None);
    check(schema(vec![], vec![text(Occurs::Many)]), json!({ "it": ["x"] }), None);
    let turn = || vec![number("turn", Occurs::One)];
    check(schema(turn(), one()), json!({ "turn": 1, "it": "x" }), None);
    let marked = || vec![valued(text(Occurs::Optional))];
    check(schema(turn(), marked()), json!({ "turn": 1, "it": "x" }), Some(json!("x")));
    check(schema(turn(), marked()), json!({ "turn": 1 }), Some(Value::Null));
    let many = vec![number("n", Occurs::One), valued(text(Occurs::Many))];
    check(schema(vec![], many), json!({ "n": 1, "it": ["x"] }), Some(json!(["x"])));
    let attribute = valued(number("id", Occurs::One));
    check(schema(vec![attribute], one()), json!({ "id": 7, "it": "x" }), Some(json!(7)));
    // A name that would occur twice in a JSON object gets a number.
    let twin = vec![valued(number("turn", Occurs::One))];
    check(schema(turn(), twin), json!({ "turn": 1, "turn-2": 2 }), Some(json!(2)));
    let either = || valued(field("a", choice(&["n", "y"]), Occurs::Optional));
    let beside = || vec![number("n", Occurs::One), either()];
    check(schema(vec![], beside()), json!({ "n": 1, "y": 2 }), Some(json!({ "y": 2 })));
    check(schema(vec![], beside()), json!({ "n": 1, "n-2": 2 }), Some(json!({ "n": 2 })));
    check(schema(vec![], beside()), json!({ "n": 1 }), Some(Value::Null));
    // Of several marked fields, the first one counts that is there.
    let several = || {
        let list = Field { name: "list".into(), ..valued(text(Occurs::Many)) };
        vec![valued(text(Occurs::Optional)), valued(number("n", Occurs::Optional)), list]
    };
    check(schema(vec![], several()), json!({ "it": "x", "n": 1, "list": [] }), Some(json!("x")));
    check(schema(vec![], several()), json!({ "n": 1, "list": ["y"] }), Some(json!(1)));
    check(schema(vec![], several()), json!({ "list": ["y"] }), Some(json!(["y"])));
    check(schema(vec![], several()), json!({ "list": [] }), Some(Value::Null));
    let all = values(&schema(vec![], several()), &json!({ "it": "x", "list": ["y"] }));
    assert_eq!(all, [json!("x"), json!(["y"])]);
    let any = Schema::any(Name::new("urn:test", "s"), "");
    check(any, json!({ "xml": "<s/>" }), None);
}

#[test]
fn a_note_is_a_marked_field_that_says_something() {
    let note =
        |name, scalar, occurs| Field { is_note: true, ..field(name, Kind::Scalar(scalar), occurs) };
    let attributes = vec![
        note("next", Scalar::U8, Occurs::Optional),
        note("more", Scalar::Boolean, Occurs::One),
    ];
    let elements = vec![
        note("at", Scalar::U8, Occurs::Many),
        field("of", Kind::Scalar(Scalar::U8), Occurs::One),
    ];
    let schema = schema(attributes, elements);
    let of = |json: Value| notes(&schema, &json);
    assert_eq!(of(json!({ "next": 0, "more": false, "at": [], "of": 1 })), []);
    let all = of(json!({ "next": 7, "more": true, "at": [1], "of": 1 }));
    assert_eq!(all, [("next", json!(7)), ("more", json!(true)), ("at", json!([1]))]);
}

#[test]
fn schemas_with_other_values_are_others() {
    let of = |is_value| {
        let field = Field { is_value, ..field("it", Kind::Scalar(Scalar::String), Occurs::One) };
        schema(vec![], vec![field])
    };
    assert!(of(true).is_same(&of(true)) && !of(true).is_same(&of(false)));
    let text = |is_value| {
        let field = Field { is_value, ..field("it", Kind::Scalar(Scalar::String), Occurs::One) };
        Schema::new(Name::new("urn:test", "s"), Shape::new("s", "", vec![], Content::Text(field)))
    };
    assert!(text(true).is_same(&text(true)) && !text(true).is_same(&text(false)));
}

#[test]
fn the_example_for_a_field_that_may_be_repeated_is_an_array() {
    let marks = field("marks", Kind::Scalar(Scalar::U8), Occurs::Many);
    let told = from_json(&schema(Vec::new(), vec![marks]), &json!({ "marks": "x" }));
    let told = told.expect_err("a mistake");
    assert_eq!(told.all[0].example.as_deref(), Some("[1]"), "{told}");
}
