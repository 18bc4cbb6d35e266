//! Tests of converting JSON to XML and back, for random schemas and values.

use proptest::prelude::*;

use super::generated::shape;
use super::judge::judge;
use super::values::{Chance, value};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn json_to_xml_and_back_is_the_same(shape in shape(), seed in any::<u64>()) {
        let schema = Schema::new(name("s"), shape);
        let json = value(&schema, &mut Chance(seed));
        let element = from_json(&schema, &json);
        let element = element.map_err(|it| TestCaseError::fail(format!("{it}\n{json:#}")))?;
        prop_assert_eq!(schema.check(element.view()), Ok(()), "{:?}", element);
        let back = to_json(&schema, element.view()).expect("it was checked");
        prop_assert_eq!(&back, &json, "{:?}", element);
        let again = from_json(&schema, &back).expect("it was accepted");
        prop_assert_eq!(again.canonical(), element.canonical());
        let judged = judge(&json_schema(&schema), &json_schema(&schema), &json);
        prop_assert_eq!(judged, Ok(()), "{:#}", json_schema(&schema));
    }

    #[test]
    fn a_text_of_it_is_read_as_the_same(shape in shape(), seed in any::<u64>()) {
        let schema = Schema::new(name("s"), shape);
        let json = value(&schema, &mut Chance(seed));
        prop_assert_eq!(json::read(&json.to_string()), Ok(json.clone()));
        prop_assert_eq!(json::read(&format!("{json:#}")), Ok(json));
    }

    #[test]
    fn an_example_has_a_json_form(shape in shape()) {
        let schema = Schema::new(name("s"), shape);
        let json = json::example(&schema);
        let element = from_json(&schema, &json);
        let element = element.map_err(|it| TestCaseError::fail(format!("{it}\n{json:#}")))?;
        prop_assert_eq!(to_json(&schema, element.view()), Ok(json.clone()));
        let judged = judge(&json_schema(&schema), &json_schema(&schema), &json);
        prop_assert_eq!(judged, Ok(()), "{:#}", json_schema(&schema));
    }

    /// Checks that a damaged value is either refused with a path, or still a valid JSON form.
    #[test]
    fn a_damaged_form_is_told_or_taken(shape in shape(), seed in any::<u64>()) {
        let schema = Schema::new(name("s"), shape);
        let mut chance = Chance(seed);
        let mut json = value(&schema, &mut chance);
        damage(&mut json, &mut chance);
        match from_json(&schema, &json) {
            Ok(element) => {
                let back = to_json(&schema, element.view()).expect("it was checked");
                let again = from_json(&schema, &back).expect("it was written");
                prop_assert_eq!(again.canonical(), element.canonical());
            }
            Err(errors) => {
                prop_assert!(!errors.all.is_empty() && errors.all.len() <= 16);
                for error in errors.all {
                    prop_assert!(error.path.starts_with('$'), "{}", error);
                    prop_assert!(error.message.len() < 1_000, "{}", error);
                    prop_assert!(error.advice().ends_with('.'), "{}", error.advice());
                }
            }
        }
    }
}

/// Replaces, adds or removes one part of a value.
fn damage(value: &mut serde_json::Value, chance: &mut Chance) {
    use serde_json::{Value, json};
    let count = match value {
        Value::Object(all) => all.len(),
        Value::Array(all) => all.len(),
        _ => 0,
    };
    if count > 0 && chance.below(4) > 0 {
        let place = chance.below(count);
        let inside = match value {
            Value::Object(all) => all.values_mut().nth(place),
            Value::Array(all) => all.get_mut(place),
            _ => None,
        };
        if let Some(inside) = inside {
            return damage(inside, chance);
        }
    }
    match (value, chance.below(3)) {
        (Value::Object(all), 0) => drop(all.insert("f9".to_owned(), json!(1))),
        (Value::Object(all), 1) => drop(all.keys().next().cloned().and_then(|it| all.remove(&it))),
        (value, _) => {
            let other = [json!(null), json!("x"), json!(-7.5), json!([]), json!({}), json!("\0")];
            *value = other[chance.below(other.len())].clone();
        }
    }
}
