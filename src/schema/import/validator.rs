//! Checks values against a JSON Schema, by the crate `jsonschema`. A build without the feature
//! `json-schema` has no such crate, and reads no JSON Schema.

use serde_json::Value;

use super::Error;

/// A violation of the original: the path to the value, step by step, and a message.
pub(in crate::schema) struct Wrong {
    pub(in crate::schema) path: Vec<String>,
    pub(in crate::schema) message: String,
}

#[cfg(feature = "json-schema")]
pub(super) use with::Validator;
#[cfg(not(feature = "json-schema"))]
pub(super) use without::Validator;

#[cfg(feature = "json-schema")]
mod with {
    use jsonschema::{PatternOptions, ValidationError};

    use super::{Error, Value, Wrong};

    /// The most backtracking steps for matching one text against one pattern.
    const STEPS_BACK_MAX: usize = 100_000;
    /// How many bytes one compiled pattern may have.
    const PATTERN_BYTES_MAX: usize = 1 << 20;

    /// A JSON Schema that values are checked against.
    pub(in crate::schema::import) struct Validator(jsonschema::Validator);

    impl Validator {
        /// Reads a JSON Schema. It fetches nothing.
        pub(in crate::schema::import) fn new(original: &Value) -> Result<Validator, Error> {
            let patterns = PatternOptions::fancy_regex()
                .backtrack_limit(STEPS_BACK_MAX)
                .size_limit(PATTERN_BYTES_MAX)
                .dfa_size_limit(PATTERN_BYTES_MAX);
            let built = jsonschema::options()
                .should_validate_formats(false)
                .with_pattern_options(patterns)
                .offline()
                .build(original);
            built.map(Validator).map_err(|error| {
                let path = format!("#{}", error.instance_path().as_str());
                Error::new(path, cut(&error.to_string()))
            })
        }

        /// Checks a value, and returns up to `most` violations.
        pub(in crate::schema::import) fn judge(&self, value: &Value, most: usize) -> Vec<Wrong> {
            let wrong = |error: ValidationError<'_>| {
                let path = error.instance_path().as_str().split('/').skip(1);
                let path = path.map(|it| it.replace("~1", "/").replace("~0", "~")).collect();
                Wrong { path, message: cut(&error.to_string()) }
            };
            self.0.iter_errors(value).take(most).map(wrong).collect()
        }
    }

    /// Shortens a message and puts it on one line. The validator's messages may repeat long values.
    fn cut(text: &str) -> String {
        const LETTERS_MAX: usize = 300;
        let shown = |it: char| if it.is_control() { ' ' } else { it };
        let mut letters = text.chars();
        let mut short: String = letters.by_ref().take(LETTERS_MAX).map(shown).collect();
        if letters.next().is_some() {
            short.push('…');
        }
        short
    }
}

#[cfg(not(feature = "json-schema"))]
mod without {
    use super::{Error, Value, Wrong};

    /// No validator: there is none without the feature.
    pub(in crate::schema::import) enum Validator {}

    impl Validator {
        pub(in crate::schema::import) fn new(_: &Value) -> Result<Validator, Error> {
            let text = "this build has no JSON Schema; build it with the feature `json-schema`";
            Err(Error::new("#".to_owned(), text.to_owned()))
        }

        pub(in crate::schema::import) fn judge(&self, _: &Value, _: usize) -> Vec<Wrong> {
            match *self {}
        }
    }
}
