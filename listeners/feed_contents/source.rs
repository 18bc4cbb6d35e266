//! The sources of feeds, as definitions name them.

use pumphouse::prelude::*;
use pumphouse::wire::Json;
use serde::Deserialize;
use serde_json::Value;

use super::pump_sources::Internal;

/// An [extension](pumphouse::listener::Described::extension) of listeners whose parameter `path` is
/// the path of a URL. Values of an agent's metadata are percent-encoded in such a path.
#[derive(Clone, Copy, Debug)]
pub struct UrlPath;

/// A feed's source.
#[derive(Clone, Debug, PartialEq, Payload, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Source {
    /// The type of source.
    #[payload(attribute, rename = "type")]
    #[serde(rename = "type")]
    pub kind: SourceKind,
    /// The listener to ask, or `listener.payload` if it takes several.
    #[payload(attribute, example = "log_service")]
    #[serde(default)]
    pub name: Option<String>,
    /// For `internal`: `system_clock`, `random_number`, `thread_statistics` or `debug_context`.
    #[payload(attribute, no_example)]
    #[serde(default)]
    pub action: Option<String>,
    /// For `metadata`: the agent whose metadata it shows.
    #[payload(attribute, no_example)]
    #[serde(default)]
    pub agent: Option<String>,
    /// For `metadata`: the fields that it shows; by default all.
    #[payload(no_example)]
    #[serde(default)]
    pub fields: Option<FieldNames>,
    /// The parameters of the request, as a JSON object.
    #[payload(example = "{\"filter\":\"ERROR\",\"since\":\"1h\"}")]
    #[serde(default)]
    pub params: Option<Json>,
}

impl Source {
    /// The names of the parameters.
    #[must_use]
    pub fn given(&self) -> Vec<&str> {
        let params = self.params.as_ref().and_then(|it| it.0.as_object());
        params.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

/// The names of fields. A manifest writes them as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct FieldNames {
    /// The names.
    #[payload(example = "status")]
    pub name: Vec<String>,
}

impl From<Vec<String>> for FieldNames {
    fn from(name: Vec<String>) -> FieldNames {
        FieldNames { name }
    }
}

/// The type of a feed's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload, Deserialize)]
#[serde(rename_all = "lowercase")]
// The enum is exhaustive, since code that handles feeds must know each kind.
pub enum SourceKind {
    /// A listener that does one thing.
    #[default]
    Tool,
    /// An agent.
    Agent,
    /// A listener that stores data.
    Relic,
    /// A listener that does several things in order.
    Workflow,
    /// A listener that asks a model once.
    Llm,
    /// The pump itself.
    Internal,
    /// Operators and the senders in `set_by`.
    Set,
    /// The metadata of another agent.
    Metadata,
}

impl Source {
    /// A source that is a listener. `name` is a listener's name or `listener.payload`.
    #[must_use]
    pub fn listener(name: impl Into<String>) -> Source {
        Source { name: Some(name.into()), ..Source::of(SourceKind::Tool) }
    }

    /// A source that is a listener for an HTTP service.
    #[must_use]
    pub fn service(name: impl Into<String>) -> Source {
        Source { kind: SourceKind::Relic, ..Source::listener(name) }
    }

    /// An internal source, which the pump itself answers.
    #[must_use]
    pub fn internal(action: impl Into<String>) -> Source {
        Source { action: Some(action.into()), ..Source::of(SourceKind::Internal) }
    }

    /// The source of a feed whose content is set with `set-feed`.
    #[must_use]
    pub fn set() -> Source {
        Source::of(SourceKind::Set)
    }

    /// A source that is the metadata of another agent in the same tree of threads.
    #[must_use]
    pub fn metadata(agent: impl Into<String>) -> Source {
        Source { agent: Some(agent.into()), ..Source::of(SourceKind::Metadata) }
    }

    /// Sets the fields that a source of the type `metadata` shows. By default the source shows all
    /// fields.
    #[must_use]
    pub fn fields<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Source {
        let name = names.into_iter().map(Into::into).collect();
        Source { fields: Some(FieldNames { name }), ..self }
    }

    /// The name of the listener or internal source to ask, or of the agent whose metadata the
    /// source shows. None for a source of the type `set`.
    #[must_use]
    pub fn asked(&self) -> Option<&str> {
        self.name.as_deref().or(self.action.as_deref()).or(self.agent.as_deref())
    }

    fn of(kind: SourceKind) -> Source {
        Source { kind, name: None, action: None, agent: None, fields: None, params: None }
    }

    /// Sets the parameters of the request, a JSON object.
    #[must_use]
    pub fn params(self, params: impl Into<Value>) -> Source {
        Source { params: Some(Json(params.into())), ..self }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.params.as_ref().is_some_and(|it| !it.0.is_object()) {
            return Err("params are an object".to_owned());
        }
        let is_alone = self.name.is_none() && self.action.is_none() && self.params.is_none();
        if self.kind == SourceKind::Metadata {
            return match &self.agent {
                _ if !is_alone => {
                    Err("a source of the type metadata has no name, action or params".to_owned())
                }
                None => Err("a source of the type metadata needs an agent".to_owned()),
                Some(_) => Ok(()),
            };
        }
        if self.agent.is_some() || self.fields.is_some() {
            return Err("agent and fields are for a source of the type metadata".to_owned());
        }
        if self.kind == SourceKind::Set {
            let text = "a source of the type set has no name, action or params";
            return if is_alone { Ok(()) } else { Err(text.to_owned()) };
        }
        if self.kind != SourceKind::Internal {
            return match (&self.name, &self.action) {
                (_, Some(_)) => Err("action is for a source of the type internal".to_owned()),
                (None, _) => Err("its source needs a name: whom to ask".to_owned()),
                _ => Ok(()),
            };
        }
        if self.name.is_some() {
            return Err("a source of the type internal has an action and no name".to_owned());
        }
        let Some(action) = &self.action else {
            let all = Internal::ACTIONS.join(", ");
            return Err(format!("a source of the type internal needs an action: {all}"));
        };
        Internal::read(action, self.params.as_ref().map(|it| &it.0)).map(drop)
    }
}

impl SourceKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            SourceKind::Tool => "tool",
            SourceKind::Agent => "agent",
            SourceKind::Relic => "relic",
            SourceKind::Workflow => "workflow",
            SourceKind::Llm => "llm",
            SourceKind::Internal => "internal",
            SourceKind::Set => "set",
            SourceKind::Metadata => "metadata",
        }
    }
}
