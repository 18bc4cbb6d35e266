//! Shapes of payloads, each with what is generated from it: XSD, example, prompt text, JSON Schema.

#[allow(dead_code, reason = "only its schema is looked at")]
mod add;
#[allow(dead_code, reason = "only its schema is looked at")]
mod carry;
#[allow(dead_code, reason = "only its schema is looked at")]
mod choice_field;
#[allow(dead_code, reason = "only its schema is looked at")]
mod choice_root;
#[allow(dead_code, reason = "only its schema is looked at")]
mod empty;
#[allow(dead_code, reason = "only its schema is looked at")]
mod facets;
#[allow(dead_code, reason = "only its schema is looked at")]
mod forms;
#[allow(dead_code, reason = "only its schema is looked at")]
mod maps;
#[allow(dead_code, reason = "only its schema is looked at")]
mod newtype;
#[allow(dead_code, reason = "only its schema is looked at")]
mod nested;
#[allow(dead_code, reason = "only its schema is looked at")]
mod numbers;
#[allow(dead_code, reason = "only its schema is looked at")]
mod optional;
#[allow(dead_code, reason = "only its schema is looked at")]
mod recursive;
#[allow(dead_code, reason = "only its schema is looked at")]
mod text;
#[allow(dead_code, reason = "only its schema is looked at")]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use pumphouse::limits::XmlLimits;
use pumphouse::schema::{self, Schema};
use pumphouse::wire::Payload;
use pumphouse::xml::{self, Profile};

use crate::golden;

macro_rules! shapes {
    ($($name:ident)*) => {
        pub(crate) fn all() -> Vec<(&'static str, &'static Schema)> {
            vec![$((stringify!($name), <$name::Root as Payload>::schema())),*]
        }
    };
}

shapes! {
    add carry choice_field choice_root empty facets forms maps newtype nested numbers optional
    recursive text words
}

#[test]
fn every_shape_is_said_in_four_ways() {
    let folder = root().join("tests/it/shapes");
    let mut goldens = golden::Goldens::default();
    for (name, schema) in all() {
        let json = serde_json::to_string_pretty(&schema::json_schema(schema)).unwrap();
        goldens.check(&folder.join(format!("{name}.xsd")), &schema::xsd(schema));
        goldens.check(&folder.join(format!("{name}.example.xml")), &schema::example(schema));
        goldens.check(&folder.join(format!("{name}.prompt")), &schema::prompt(schema));
        goldens.check(&folder.join(format!("{name}.schema.json")), &format!("{json}\n"));
    }
    goldens.finish();
}

#[test]
fn every_example_passes_its_own_check() {
    for (name, schema) in all() {
        let example = schema::example(schema);
        let element = xml::read(example.clone(), Profile::Wire, &XmlLimits::DOOR).expect(name);
        assert_eq!(schema.check(element.view()), Ok(()), "{name}: {example}");
    }
}

#[test]
fn every_xsd_takes_its_own_example() {
    let pairs = all().into_iter().map(|(name, schema)| {
        (name.to_owned(), schema::xsd(schema), vec![schema::example(schema)])
    });
    golden::lint(&pairs.collect::<Vec<_>>());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

#[test]
fn no_golden_is_left_behind() {
    let known: Vec<&str> = all().into_iter().map(|it| it.0).collect();
    for entry in fs::read_dir(root().join("tests/it/shapes")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.split('.').next().unwrap();
        assert!(stem == "mod" || known.contains(&stem), "{name} belongs to no shape");
    }
}

#[test]
fn the_derive_knows_the_same_patterns() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    assert_eq!(read("macros/src/pattern.rs"), read("src/schema/pattern.rs"));
}
