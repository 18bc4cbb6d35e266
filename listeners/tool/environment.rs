//! The listener `environment`: shows those variables of the pump's environment that its settings
//! list.
//!
//! ```yaml
//! listeners:
//!   - {use: environment, settings: {variables: [TZ, DEPLOYMENT]}}
//! ```
//!
//! The environment often contains keys and tokens. So the listener knows only the variables that
//! the manifest lists, and no call can read another variable.

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::schema::nearest;
use serde::Deserialize;

use super::text::clean;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "environment";
/// The maximum number of bytes that are shown of a variable's value.
const VALUE_BYTES_MAX: usize = 4_096;

/// Asks for variables of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/environment/v1")]
pub struct Read {
    /// The names of the variables; by default all that are listed.
    #[payload(example = "DEPLOYMENT")]
    pub name: Vec<String>,
}

/// Variables of the environment. A variable that isn't set is left out.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/environment/v1")]
pub struct Variables {
    /// The variables, by their names.
    #[payload(value)]
    pub variable: BTreeMap<String, String>,
}

/// A requested variable isn't among the listed ones.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/environment/v1")]
pub struct Unlisted {
    /// Which variable, and what to ask for instead.
    #[payload(value, example = "DEPLOYMNT isn't listed; did you mean DEPLOYMENT?")]
    pub text: String,
}

/// The `settings` of `use: environment` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// The names of the variables that the listener shows.
    pub variables: Vec<String>,
}

/// Makes the listener `environment`. This function reads the values of the variables, once.
///
/// # Errors
/// If no variable is listed, or if a listed name can't be the name of a variable.
pub fn environment(settings: &Settings) -> Result<Listener, String> {
    if settings.variables.is_empty() {
        return Err("variables: at least one, as in `variables: [TZ]`".to_owned());
    }
    let wrong = |it: &&String| it.is_empty() || it.contains(['=', '\0']);
    if let Some(name) = settings.variables.iter().find(wrong) {
        return Err(format!("variables: {name:?} can't be the name of a variable"));
    }
    #[expect(clippy::disallowed_methods, reason = "the listener is there to show the environment")]
    let value = |name: &String| Some((name.clone(), shown(&std::env::var(name).ok()?)));
    let environment = Environment {
        listed: settings.variables.clone(),
        values: settings.variables.iter().filter_map(value).collect(),
    };
    Ok(Listener::with_state(NAME, Arc::new(environment))
        .own_namespace()
        .on(read)
        .describe("Shows listed variables of the environment.")
        .reader()
        .stateless())
}

struct Environment {
    /// The listed names, in the order of the settings.
    listed: Vec<String>,
    /// The values of the variables that are set.
    values: BTreeMap<String, String>,
}

async fn read(
    State(environment): State<Arc<Environment>>,
    Read { name: asked }: Read,
) -> Result<Variables, Unlisted> {
    let Environment { listed, values } = &*environment;
    if let Some(name) = asked.iter().find(|it| !listed.contains(it)) {
        let near = nearest(name, listed.iter().map(String::as_str));
        let advice = match near {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there is {}", listed.join(", ")),
        };
        return Err(Unlisted { text: clean(&format!("{name} isn't listed; {advice}")) });
    }
    let is_asked = |name: &String| asked.is_empty() || asked.contains(name);
    let all = values.iter().filter(|(name, _)| is_asked(name));
    Ok(Variables { variable: all.map(|(name, it)| (name.clone(), it.clone())).collect() })
}

/// Replaces the characters that a payload can't have, and cuts the value to `VALUE_BYTES_MAX`.
fn shown(value: &str) -> String {
    let value = clean(value);
    match value.floor_char_boundary(VALUE_BYTES_MAX) {
        end if end == value.len() => value,
        end => format!("{}…", &value[..end]),
    }
}
