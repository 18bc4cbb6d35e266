//! Tests conditions: their language, their types, and patterns in comparison with a simple matcher.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// The types of the values in [`values`].
fn known() -> Type {
    let metadata = [
        ("status", Type::one_of(["IDLE", "CODING", "TESTING"])),
        ("count", Type::Number),
        ("title", Type::Text),
        ("done", Type::Boolean),
        ("context", Type::Map),
        ("tags", Type::List),
    ];
    let steps = Type::record([("fetch", Type::Any)]);
    Type::record([
        ("metadata", Type::record(metadata)),
        ("steps", steps),
        ("previous_steps_success", Type::Boolean),
    ])
}

fn values() -> Value {
    json!({
        "metadata": {
            "status": "CODING",
            "count": 7,
            "done": false,
            "context": {"project": "cortex", "phase": "testing", "people": [{"name": "Ada"}]},
            "tags": ["a", "b"],
        },
        "steps": {"fetch": {"lines": 3.0, "ok": true}},
        "previous_steps_success": true,
    })
}

fn holds(condition: &Condition, values: &Value) -> bool {
    condition.evaluate(&|it| it.within(values).cloned()).holds
}

/// Reads a valid condition, and says whether it holds.
#[track_caller]
fn decide(text: &str) -> bool {
    let condition = Condition::parse(text).unwrap_or_else(|it| panic!("{text}: {it}"));
    condition.check(&known()).unwrap_or_else(|it| panic!("{text}: {it}"));
    // The text of a condition is read as the same condition.
    let again = Condition::parse(&condition.to_string()).unwrap();
    assert_eq!(again.to_string(), condition.to_string());
    assert_eq!(holds(&again, &values()), holds(&condition, &values()), "{text}");
    holds(&condition, &values())
}

/// The error of a condition's text, by its syntax or its types.
#[track_caller]
fn wrong(text: &str) -> String {
    let checked = Condition::parse(text).and_then(|it| it.check(&known()));
    checked.expect_err(text).to_string()
}

#[test]
fn a_comparison_holds_by_its_values() {
    for text in [
        "metadata.status == 'CODING'",
        "${metadata.status} == \"CODING\"",
        "${ metadata.status } != 'IDLE'",
        "metadata.status in ['IDLE', 'CODING']",
        "metadata.status not in ['IDLE']",
        "'a' in metadata.tags",
        "metadata.count == 7.0",
        "metadata.count >= 7 and metadata.count <= 7",
        "steps.fetch.lines == 3",
        "steps.fetch.lines > -1e3",
        "metadata.status < 'D'",
        "metadata.context.phase == 'testing'",
        "metadata.context.people[0].name == 'Ada'",
        "metadata.context.people.0.name == 'Ada'",
        "metadata.title == null",
        "not metadata.done",
        "not not steps.fetch.ok",
        "previous_steps_success",
        "metadata.done == false and (metadata.count < 3 or steps.fetch.ok)",
        "metadata.tags == ['a', 'b']",
        "true",
    ] {
        assert!(decide(text), "{text}");
    }
    for text in [
        "metadata.status == 'IDLE'",
        "metadata.context.absent == 'x'",
        "steps.fetch.absent",
        "steps.fetch.lines",
        "steps.fetch.absent > 3",
        "steps.fetch.lines > 'a'",
        "'x' in steps.fetch.absent",
        "metadata.done or metadata.count > 7",
        "not (metadata.count == 7)",
        "metadata.status in []",
    ] {
        assert!(!decide(text), "{text}");
    }
}

#[test]
fn texts_compare_as_texts_and_beside_a_number_as_numbers() {
    let values = json!({"a": "1.10", "b": "1.9", "c": " 42 ", "n": 42, "list": ["41", 42],
        "large": "340282366920938463463374607431768211455", "id": "9007199254740993"});
    let holds = |text: &str| holds(&Condition::parse(text).unwrap(), &values);
    for text in [
        "a == '1.10'",
        "a != '1.1'",
        "a in ['1.9', '1.10']",
        "a not in ['1.1']",
        "a == 1.1 and 1.1 == a",
        "a in [1.1]",
        "a < '1.9'",
        "a < b",
        "n > c or n == c",
        "c >= 42 and c != '42'",
        "'41' in list and 41 in list and '42' in list",
        "list == [41, '42']",
        "id != 9007199254740992",
        "id > 9007199254740992",
        "id == 9007199254740993",
    ] {
        assert!(holds(text), "{text}");
    }
    for text in ["a == '1.1'", "a == a and a > '1.9'", "a > 'x'", "'x' > 3", "a == true"] {
        assert!(!holds(text), "{text}");
    }
    // Neither side is written in the condition, so numbers have their own order.
    let order = |one: &str, two: &str| {
        let condition = Condition::parse("a < b").unwrap();
        self::holds(&condition, &json!({"a": one, "b": two}))
    };
    assert!(order("9", "10") && !order("10", "9") && order("10a", "9a"));
    assert!(order("18446744073709551616", "18446744073709551617"));
}

#[test]
fn a_number_in_a_path_may_name_a_field() {
    let values = json!({"steps": {"fetch": {"2024": {"sum": 3}}, "list": [1, 2]}});
    let fetch = Type::record([("2024", Type::Map)]);
    let steps = Type::record([("fetch", fetch), ("list", Type::List)]);
    let known = Type::record([("steps", steps)]);
    let pattern = json!({"2024": {"sum": 3}});
    let pattern = Condition::matching(&pattern, "steps.fetch", true).unwrap().to_string();
    for text in [&*pattern, "steps.fetch[2024].sum == 3", "steps.list.1 == 2"] {
        let condition = Condition::parse(text).unwrap();
        condition.check(&known).unwrap_or_else(|it| panic!("{text}: {it}"));
        assert!(holds(&condition, &values), "{text}");
    }
    let missing = Condition::parse("steps.fetch.2023.sum == 3").unwrap().check(&known);
    assert!(missing.unwrap_err().message.contains("has no `2023`"));
}

#[test]
fn the_place_of_an_item_has_no_sign() {
    for text in ["${metadata.tags[+1]} == 'b'", "${metadata.tags[-1]} == 'b'"] {
        assert!(wrong(text).contains("is no reference"), "{text}");
    }
}

#[test]
fn a_field_with_a_dot_in_its_name_is_no_path() {
    let pattern = json!({"a.b": 1, "a": {"b": 2}});
    let condition = Condition::matching(&pattern, "metadata", true).unwrap();
    assert!(holds(&condition, &json!({"metadata": pattern})));
    assert!(!holds(&condition, &json!({"metadata": {"a.b": 2, "a": {"b": 2}}})));
}

#[test]
fn and_binds_closer_than_or_and_not_closest() {
    let read = |text: &str| Condition::parse(text).unwrap().to_string();
    assert_eq!(read("a or b and not c"), "a or (b and (not c))");
    assert_eq!(read("(a or b) and c"), "(a or b) and c");
    assert_eq!(read("not a == b"), "not (a == b)");
}

#[test]
fn a_text_has_escapes_and_either_quote() {
    let is_equal = |written: &str, text: &str| {
        let condition = Condition::parse(&format!("x == {written}")).unwrap();
        holds(&condition, &json!({"x": text}))
    };
    assert!(is_equal(r#""it's""#, "it's"));
    assert!(is_equal(r"'it\'s'", "it's"));
    assert!(is_equal(r#"'"\\\n\t'"#, "\"\\\n\t"));
    assert!(is_equal("'und so weiter: ü €'", "und so weiter: ü €"));
}

#[test]
fn a_whole_number_is_exact() {
    let decide = |value: &str, text: &str| {
        let condition = Condition::parse(text).unwrap();
        holds(&condition, &json!({ "event": { "v": value } }))
    };
    assert!(decide("18446744073709551615", "event.v == 18446744073709551615"));
    assert!(!decide("18446744073709551616", "event.v == 18446744073709551615"));
    assert!(decide("18446744073709551616", "event.v == '18446744073709551616'"));
    assert!(!decide("18446744073709551616", "event.v == '18446744073709551617'"));
}

#[test]
fn what_is_no_condition_is_told_with_its_place() {
    for (text, told) in [
        ("", "here a value, a reference or `(` is expected, and the condition ends"),
        ("a ==", "byte 5: here a value, a reference or `(` is expected, and the condition ends"),
        ("a b", "byte 3: here `and`, `or` or the end is expected"),
        ("a == b == c", "byte 8: here `and`, `or` or the end is expected"),
        ("a && b", "byte 3: `&&` is written `and`"),
        ("a || b", "byte 3: `||` is written `or`"),
        ("not !a", "byte 5: `!` is written `not`"),
        ("a = 1", "byte 3: `=` is written `==`"),
        ("a not b", "byte 7: here `in` is expected"),
        ("(a", "byte 3: here `)` is expected, and the condition ends"),
        ("a in [1", "byte 8: here `,` or `]` is expected, and the condition ends"),
        ("a in [1 2]", "byte 9: here `,` or `]` is expected"),
        ("a == 'x", "byte 6: the text has no closing '"),
        (r"a == '\x'", r#"byte 7: `\x` is no escape: a text may have \\, \", \', \n and \t"#),
        ("a == 1.2.3", "byte 6: `1.2.3` is no number"),
        (
            "a == 18446744073709551616",
            "byte 6: `18446744073709551616` has more than 64 bits; compare it as a text, in quotes",
        ),
        (
            "a in [1, -9223372036854775809]",
            "byte 10: `-9223372036854775809` has more than 64 bits; compare it as a text, in \
             quotes",
        ),
        ("a == $b", "byte 6: a reference is written as in `${steps.fetch.title}`"),
        ("${a..b}", "`a..b` is no reference; one is `steps.fetch.items[0]`"),
        ("${}", "`` is no reference; one is `steps.fetch.items[0]`"),
        ("a ; b", "byte 3: a condition has no `;`"),
        ("a.", "byte 2: a condition has no `.`"),
    ] {
        assert_eq!(Condition::parse(text).expect_err(text).to_string(), told, "{text}");
    }
}

#[test]
fn a_condition_that_no_value_could_fit_is_refused() {
    let here = "(it has metadata, previous_steps_success, steps)";
    for (text, told) in [
        (
            "metadata.statsu == 'IDLE'",
            "`metadata` has no `statsu`; did you mean `status`? (it has context, count, done, \
             status, tags, title)"
                .to_owned(),
        ),
        ("trigger.x == 1", format!("this place has no `trigger` {here}")),
        (
            "metadata.done and metadta.count == 1",
            format!("byte 19: this place has no `metadta`; did you mean `metadata`? {here}"),
        ),
        (
            "metadata.status == 'CODIGN'",
            "byte 17: `metadata.status` is one of IDLE, CODING, TESTING, never \"CODIGN\"; did \
             you mean \"CODING\"?"
                .to_owned(),
        ),
        (
            "metadata.status in ['IDLE', 3]",
            "byte 17: `metadata.status` is one of IDLE, CODING, TESTING, never 3".to_owned(),
        ),
        (
            "metadata.count == metadata.title",
            "byte 16: `metadata.count` is a number, `metadata.title` is a text, so they are never \
             equal"
                .to_owned(),
        ),
        (
            "metadata.done < 3",
            "byte 15: `metadata.done` is true or false and `3` is a number: < compares two \
             numbers or two texts"
                .to_owned(),
        ),
        (
            "'x' in metadata.title",
            "byte 5: `metadata.title` is a text; after `in` a list is expected".to_owned(),
        ),
        (
            "metadata.status.x == 1",
            "`metadata.status` is one of IDLE, CODING, TESTING, and has no parts of this name"
                .to_owned(),
        ),
        ("metadata.count", "`metadata.count` is a number; a condition is true or false".to_owned()),
        (
            "true and not metadata.tags",
            "byte 14: `metadata.tags` is a list; a condition is true or false".to_owned(),
        ),
    ] {
        assert_eq!(wrong(text), told, "{text}");
    }
}

#[test]
fn length_and_depth_have_limits() {
    let long = format!("a == '{}'", "x".repeat(CONDITION_BYTES_MAX));
    let told = Condition::parse(&long).unwrap_err().to_string();
    assert_eq!(told, "4103 bytes are too many: condition_bytes_max is 4096");
    let nested: [&dyn Fn(usize) -> String; 3] = [
        &|depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth)),
        &|depth| format!("{}a", "not ".repeat(depth)),
        &|depth| format!("a in {}{}", "[".repeat(depth), "]".repeat(depth)),
    ];
    for nested in nested {
        assert!(Condition::parse(&nested(CONDITION_DEPTH_MAX)).is_ok());
        let told = Condition::parse(&nested(CONDITION_DEPTH_MAX + 1)).unwrap_err().to_string();
        assert!(told.contains("condition_depth_max is 32"), "{told}");
    }
    let mut pattern = json!("x");
    for _ in 0..=CONDITION_DEPTH_MAX {
        pattern = json!({ "a": pattern });
    }
    let told = Condition::matching(&pattern, "metadata", true).unwrap_err().to_string();
    assert!(told.contains("condition_depth_max is 32"), "{told}");
}

#[test]
fn a_verdict_has_each_reference_once_with_its_value() {
    let text = "metadata.status == 'IDLE' or ${metadata.status} == 'CODING' or steps.fetch.no";
    let values = values();
    let verdict = Condition::parse(text).unwrap().evaluate(&|it| it.within(&values).cloned());
    let saw = [
        ("metadata.status".to_owned(), json!("CODING")),
        ("steps.fetch.no".to_owned(), Value::Null),
    ];
    assert_eq!((verdict.holds, &verdict.saw[..]), (true, &saw[..]));
}

#[track_caller]
fn pattern(pattern: &Value, is_all: bool) -> Result<String, String> {
    let condition =
        Condition::matching(pattern, "metadata", is_all).map_err(|it| it.to_string())?;
    condition.check(&known()).map_err(|it| it.to_string())?;
    Ok(condition.to_string())
}

#[test]
fn the_patterns_of_the_seed_are_conditions() {
    let is = |text: &str| Ok(text.to_owned());
    let status = r#"metadata.status == "CODING""#;
    assert_eq!(pattern(&json!({"status": "CODING"}), true), is(status));
    assert_eq!(
        pattern(&json!({"status": ["CODING", "TESTING"]}), true),
        is(r#"metadata.status in ["CODING", "TESTING"]"#)
    );
    let two = json!({"status": "CODING", "count": 3});
    assert_eq!(
        pattern(&two, true),
        is(r#"(metadata.status == "CODING") and (metadata.count == 3)"#)
    );
    assert_eq!(
        pattern(&two, false),
        is(r#"(metadata.status == "CODING") or (metadata.count == 3)"#)
    );
    let nested = json!({"context": {"project": "cortex", "phase": ["testing", "review"]}});
    assert_eq!(
        pattern(&nested, true),
        is("(metadata.context.project == \"cortex\") and \
            (metadata.context.phase in [\"testing\", \"review\"])")
    );
}

#[test]
fn patterns_combine_and_take_texts() {
    let all = json!({"any": [{"status": "CODING"}, "metadata.count > 3"], "not": {"done": true}});
    assert_eq!(
        pattern(&all, true).unwrap(),
        "((metadata.status == \"CODING\") or (metadata.count > 3)) and \
         (not (metadata.done == true))"
    );
    // Below a field, `any` is a name like any other.
    let below = pattern(&json!({"context": {"any": 1}}), true).unwrap();
    assert_eq!(below, "metadata.context.any == 1");
}

#[test]
fn a_pattern_that_cannot_match_is_refused() {
    for (it, told) in [
        (json!({}), "the pattern of `metadata` is empty, so it says nothing"),
        (json!({"context": {}}), "the pattern of `metadata.context` is empty, so it says nothing"),
        (json!({"status": []}), "`metadata.status` has no alternatives, so it never matches"),
        (json!({"any": {}}), "`any` has a list of patterns, as in `any: [{status: IDLE}]`"),
        (json!(3), "a pattern is a map of fields or a condition's text, not 3"),
        (
            json!({"status": "COMPILING"}),
            "`metadata.status` is one of IDLE, CODING, TESTING, never \"COMPILING\"",
        ),
        (json!({"tags": "a"}), "`metadata.tags` is a list, never \"a\""),
    ] {
        assert_eq!(pattern(&it, true), Err(told.to_owned()), "{it}");
    }
}

/// The simple matcher: whether a value matches a pattern. A list has alternatives. A map matches if
/// each of its fields matches the value's field.
fn matches(pattern: &Value, value: Option<&Value>) -> bool {
    match pattern {
        Value::Object(fields) => {
            fields.iter().all(|(name, it)| matches(it, value.and_then(|value| value.get(name))))
        }
        Value::Array(all) => all.iter().any(|it| match it {
            Value::Object(_) => matches(it, value),
            scalar => value.unwrap_or(&Value::Null) == scalar,
        }),
        scalar => value.unwrap_or(&Value::Null) == scalar,
    }
}

/// Whether values match a pattern whose keys are fields, or combine patterns.
fn matches_all(pattern: &Value, values: &Value, is_all: bool) -> bool {
    let one = |it: &Value| matches_all(it, values, true);
    let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
    let matched = |(key, it): (&String, &Value)| match &**key {
        "all" => list(it).iter().all(one),
        "any" => list(it).iter().any(one),
        "not" => !one(it),
        field => matches(it, values.get(field)),
    };
    let Value::Object(keys) = pattern else { unreachable!("it is a map") };
    if is_all { keys.iter().all(matched) } else { keys.iter().any(matched) }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        prop_oneof![Just("x"), Just("y")].prop_map(Value::from),
    ]
}

fn fields(of: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(str::to_owned);
    proptest::collection::btree_map(name, of, 1..3)
        .prop_map(|it| Value::Object(it.into_iter().collect::<Map<String, Value>>()))
}

/// A pattern of a field.
fn part() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let list = proptest::collection::vec(prop_oneof![scalar(), fields(inner.clone())], 1..3);
        prop_oneof![list.prop_map(Value::Array), fields(inner)]
    })
}

/// A pattern with nested `all`, `any` and `not`.
fn combined() -> impl Strategy<Value = Value> {
    fields(part()).prop_recursive(3, 24, 3, |inner| {
        let list = || proptest::collection::vec(inner.clone(), 1..3).prop_map(Value::Array);
        let some = proptest::option::of::<BoxedStrategy<Value>>;
        let (all, any) = (some(list().boxed()), some(list().boxed()));
        let combined = (fields(part()), all, any, some(inner.clone().boxed()));
        combined.prop_map(|(mut pattern, all, any, not)| {
            for (key, it) in [("all", all), ("any", any), ("not", not)] {
                if let Some(it) = it {
                    pattern[key] = it;
                }
            }
            pattern
        })
    })
}

/// The value of a field.
fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, fields)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_pattern_matches_as_the_reference_does(
        pattern in combined(),
        value in fields(value()),
    ) {
        for is_all in [true, false] {
            let condition = Condition::matching(&pattern, "metadata", is_all).unwrap();
            let expected = matches_all(&pattern, &value, is_all);
            let values = json!({ "metadata": value });
            prop_assert_eq!(holds(&condition, &values), expected, "{} of {}", condition, values);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        text in "[a-c.$\\{\\}\\[\\]()'\"=!<>&| ,0-9notrin\\\\é-]{0,40}",
    ) {
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.check(&known());
            let _ = holds(&condition, &values());
            let again = Condition::parse(&condition.to_string());
            prop_assert_eq!(again.map(|it| it.to_string()), Ok(condition.to_string()));
        }
    }
}
