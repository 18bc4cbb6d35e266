//! The setting `agent_context` of tools: the fields of the calling agent's context that each call
//! hands on.

use pumphouse::schema::nearest;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use pumphouse::listeners::agent_context::{AgentContext, CallingAgent, FIELDS};

/// The field that may have secrets, which no tool gets.
const ENVIRONMENT: &str = "environment";

/// The names of fields of an agent's context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextFields(Vec<String>);

impl<'de> Deserialize<'de> for ContextFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ContextFields, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        let known: Vec<&str> = FIELDS.into_iter().filter(|it| *it != ENVIRONMENT).collect();
        match names.iter().find(|it| !known.contains(&it.as_str())) {
            None => Ok(ContextFields(names)),
            Some(name) if name == ENVIRONMENT => {
                Err(serde::de::Error::custom("`environment` may have secrets, and no tool gets it"))
            }
            Some(name) => {
                let near = nearest(name, known.iter().copied());
                let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
                let all = known.join(", ");
                let text = format!("an agent's context has no `{name}`{near} (it has {all})");
                Err(serde::de::Error::custom(text))
            }
        }
    }
}

impl ContextFields {
    /// The context of the calling agent, with these fields, as JSON. None if the setting names no
    /// field, or if no agent caused the call. The inner error says that the JSON has more than
    /// `max` bytes.
    pub(super) async fn of(
        &self,
        agent: &CallingAgent,
        max: usize,
    ) -> Result<Result<Option<String>, String>, pumphouse::prelude::Fault> {
        if self.0.is_empty() {
            return Ok(Ok(None));
        }
        let context = agent.context().await?;
        Ok(context.map(|it| self.json(&it, max)).transpose())
    }

    /// The fields as JSON of ASCII characters, which a header may have, too.
    fn json(&self, context: &AgentContext, max: usize) -> Result<String, String> {
        let field = |name: &String| Some((name.clone(), context.field(name)?));
        let fields: Map<String, Value> = self.0.iter().filter_map(field).collect();
        let text = ascii(&Value::Object(fields).to_string());
        if text.len() > max {
            let have = format!("the agent's context has {} bytes", text.len());
            let advice = "name fewer fields in the setting `agent_context`";
            return Err(format!("{have}; agent_context_bytes_max is {max}: {advice}"));
        }
        Ok(text)
    }
}

/// JSON whose other characters than those of ASCII are written as escapes.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() && letter != '\u{7f}' {
            text.push(letter);
            continue;
        }
        let mut units = [0; 2];
        for unit in letter.encode_utf16(&mut units) {
            text += &format!("\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_context_is_handed_on_with_the_fields_that_are_asked_for() {
        let fields: ContextFields =
            serde_json::from_value(json!(["agent_name", "metadata"])).unwrap();
        let mut context = AgentContext::default();
        context.agent_name = "coder".to_owned();
        context.metadata.0 = json!({"title": "Ähre 🌾"});
        let text = fields.json(&context, 200).unwrap();
        assert!(text.is_ascii() && text.contains("\\u00c4hre \\ud83c\\udf3e"), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, json!({"agent_name": "coder", "metadata": {"title": "Ähre 🌾"}}));
        let told = fields.json(&context, 20).unwrap_err();
        assert!(told.contains("agent_context_bytes_max is 20"), "{told}");
    }

    #[test]
    fn a_field_that_is_unknown_or_may_have_secrets_is_refused() {
        let wrong = |name: &str| {
            let read = serde_json::from_value::<ContextFields>(json!([name]));
            read.unwrap_err().to_string()
        };
        assert!(wrong("metadta").contains("no `metadta`; did you mean `metadata`?"));
        assert!(wrong("environment").contains("may have secrets"));
    }
}
