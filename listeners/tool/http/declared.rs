//! Requests with declared fields to one URL. The fields are sent in the URL's query, or as a JSON
//! object in the body.

use std::sync::Arc;

use pumphouse::listener::DeclaredPayload;
use pumphouse::name::namespace_of;
use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema};
use pumphouse::wire::Json;
use reqwest::{Method, Url};
use serde_json::Value;

use super::{Answered, Client, Http, NAME, Refusal, Refused, bad};
use pumphouse::listeners::agent_context::CallingAgent;

/// The default local name of the payload that the manifest declares.
const TAKES: &str = "request";

/// The URL of a listener, and the method and the payload of requests to this URL.
pub(super) struct Declared {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) takes: Schema,
}

/// Returns the schema of the payload that the listener takes. Returns an error if the type in the
/// declared JSON Schema isn't `object`.
pub(super) fn takes(declared: &DeclaredPayload) -> Result<Schema, String> {
    let own = Name::new(namespace_of(NAME), TAKES);
    let mut schema = declared.schema(&own).map_err(|why| format!("takes: {why}"))?;
    if schema.original().and_then(|it| it.get("type")).is_none_or(|it| it != "object") {
        return Err("`takes` is of no object: write `type: object`".to_owned());
    }
    if schema.doc().is_empty() {
        schema.shape.doc = "What the service is asked.".into();
    }
    Ok(schema)
}

pub(super) async fn send(
    State(it): State<Arc<Declared>>,
    agent: CallingAgent,
    came: Element,
) -> Result<Result<Answered, Refused>, Fault> {
    let context = it.client.context(&agent).await?;
    let answer = match context.and_then(|context| Ok((it.request(&came)?, context))) {
        Ok((request, context)) => it.client.answer(request, context).await,
        Err(refusal) => Err(refusal),
    };
    Ok(answer.map_err(|refusal| it.client.refused(refusal, it.is_safe())))
}

impl Declared {
    /// Whether the requests only read.
    pub(super) fn is_safe(&self) -> bool {
        self.method.is_safe()
    }

    fn request(&self, came: &Element) -> Result<Http, Refusal> {
        let value = schema::to_json(&self.takes, came.view()).map_err(|it| bad(&it.to_string()))?;
        let (url, json) = match self.method {
            Method::GET | Method::DELETE | Method::HEAD => (with_query(&self.url, &value), None),
            _ => (self.url.clone(), Some(Json(value))),
        };
        Ok(Http {
            url: url.into(),
            method: Some(self.method.to_string()),
            headers: None,
            body: None,
            json,
        })
    }
}

/// Returns the URL with the fields at the end of its query. A field becomes one pair, and a list
/// becomes a pair for each item. Fields that are null are left out.
fn with_query(url: &Url, value: &Value) -> Url {
    let mut url = url.clone();
    for (name, value) in value.as_object().into_iter().flatten() {
        let items = match value {
            Value::Null => continue,
            Value::Array(items) => &items[..],
            one => std::slice::from_ref(one),
        };
        for item in items {
            let word = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            url.query_pairs_mut().append_pair(name, &word);
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_stands_with_what_it_takes_and_among_the_hosts() {
        let wrong = |more: Value| {
            let mut settings = serde_json::json!({ "hosts": ["127.0.0.1:9000"] });
            settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            super::super::http(&serde_json::from_value(settings).unwrap()).err()
        };
        let takes = serde_json::json!({ "type": "object" });
        let (here, there) = ("http://127.0.0.1:9000/a", "http://127.0.0.1:9001/a");
        assert_eq!(wrong(serde_json::json!({ "url": here, "takes": takes })), None);
        for (more, word) in [
            (serde_json::json!({ "url": here }), "together"),
            (serde_json::json!({ "takes": takes }), "together"),
            (serde_json::json!({ "method": "POST" }), "only with them"),
            (serde_json::json!({ "url": there, "takes": takes }), "url: "),
            (serde_json::json!({ "url": here, "method": "TRACE", "takes": takes }), "method: "),
            (serde_json::json!({ "url": here, "takes": { "type": "string" } }), "no object"),
        ] {
            let why = wrong(more.clone()).unwrap_or_default();
            assert!(why.contains(word), "{more}: {why}");
        }
    }

    #[test]
    fn fields_stand_in_the_query_each_once_and_each_item_of_a_list() {
        let url: Url = "http://a.org/find?key=1".parse().unwrap();
        let value = serde_json::json!({ "q": "a & b=c", "n": 3, "of": ["x", "y"], "no": null });
        let all = with_query(&url, &value);
        let pairs: Vec<_> = all.query_pairs().map(|(name, it)| format!("{name}:{it}")).collect();
        assert_eq!(pairs[0], "key:1");
        for wrong in ["q:a & b=c", "n:3", "of:x", "of:y"] {
            assert!(pairs.iter().any(|pair| pair == wrong), "{pairs:?}");
        }
        assert_eq!(pairs.len(), 5);
    }
}
