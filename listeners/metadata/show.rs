//! Writes the parts of a prompt that describe an agent's metadata fields and show their values.

use serde_json::Value;

use super::words::{Handed, MetadataError};
use super::{Field, Fields, Kind, KnownFields, Method};

/// Text for an agent whose values are copied to the agents that it calls.
const INHERITS: &str = "\nAn agent that you call in a thread of its own begins with a copy of \
                        your values. \"metadata\": \"none\" in the action leaves it without, \
                        and \"share\" lets it change yours.";
/// Text for an agent whose values are copied to the agents that it calls. Changes by these agents
/// change its own values, too.
const SHARES: &str = "\nAn agent that you call in a thread of its own begins with a copy of your \
                      values, and what it sets changes yours. \"metadata\": \"none\" in the \
                      action leaves it without, and \"inherit\" lets it change only its own.";

/// Describes the fields, for the beginning of a prompt. Empty if there are no fields, if the
/// injection is off, or if a template is used.
#[must_use]
pub fn declared(fields: &Fields) -> String {
    let injection = &fields.injection;
    if fields.is_empty() || injection.method == Method::None || injection.template.is_some() {
        return String::new();
    }
    let mut text = "Available metadata fields (use <metadata> tag to update):\n".to_owned();
    for field in fields.all() {
        text += &format!("- {}: {}", field.name(), values(field));
        if !field.description().is_empty() {
            text += &format!(" – {}", field.description());
        }
        text.push('\n');
    }
    text += "\n<metadata>{\"FIELD\": VALUE, …}</metadata> sets them; what you leave out stays as \
             it is. They are for your own state, and their values last until you set others.";
    text + match fields.children {
        Handed::None => "",
        Handed::Inherit => INHERITS,
        Handed::Share => SHARES,
    }
}

/// Shows the values of the fields and the errors of the last turn's update, for the end of a
/// prompt. Empty if there are no fields or the injection is off.
#[must_use]
pub fn current(fields: &Fields, known: &KnownFields, last_turn: u64) -> String {
    if fields.is_empty() || fields.injection.method == Method::None {
        return String::new();
    }
    let errors = if known.turn == last_turn { &known.errors[..] } else { &[] };
    let held = |errors| held(fields, known, errors);
    let told = match (&fields.injection.template, errors) {
        (None, _) => held(errors),
        (Some(template), []) => filled(template, fields, known),
        // After an error, the values are listed even if there is a template, since the template may
        // not show them.
        (Some(template), _) => format!("{}\n\n{}", held(errors), filled(template, fields, known)),
    };
    let mut text = String::new();
    if !errors.is_empty() {
        text += "⚠️ Previous metadata update had errors:\n";
        for error in errors {
            text += &format!("  - {}\n", error.message);
        }
        text.push('\n');
    }
    text + told.trim_end()
}

/// Lists the values of the fields. The fields with errors are marked as unchanged. If the update
/// changed no field, the heading is marked instead.
fn held(fields: &Fields, known: &KnownFields, errors: &[MetadataError]) -> String {
    let nothing = !errors.is_empty() && !known.has_changed;
    let mut text =
        if nothing { "Current metadata (unchanged):" } else { "Current metadata:" }.to_owned();
    for field in fields.all() {
        text += &format!("\n  - {}: {}", field.name(), value(fields, known, field));
        if !nothing && errors.iter().any(|error| error.field == field.name()) {
            text += " (unchanged)";
        }
    }
    text
}

/// Fills in a template. The placeholders in a line refer to the field whose name begins the line.
fn filled(template: &str, fields: &Fields, known: &KnownFields) -> String {
    let line = |line: &str| {
        let begins = line.trim_start().trim_start_matches(['-', '*']).trim_start();
        let name = begins.split_once(':').map_or(begins, |(name, _)| name).trim_end();
        match fields.get(name) {
            Some(other) => line
                .replace("{values}", &values(other))
                .replace("{current_value}", &value(fields, known, other)),
            None => line.to_owned(),
        }
    };
    template.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The values that a field allows, in words.
fn values(field: &Field) -> String {
    match field.kind() {
        Kind::Enum(values) => format!("[{}]", values.join(", ")),
        Kind::String => "any text".to_owned(),
        Kind::Number => "any number".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Object => "any JSON object".to_owned(),
        Kind::Array => "any JSON array".to_owned(),
    }
}

/// The value of a field, as text.
fn value(fields: &Fields, known: &KnownFields, field: &Field) -> String {
    match known.value(fields, field.name()) {
        None => "not set".to_owned(),
        Some(Value::String(it)) => it.clone(),
        Some(it) => it.to_string(),
    }
}
