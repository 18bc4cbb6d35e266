//! Reads the settings for OpenTelemetry.

use crate::manifest::contents::Otel;
use crate::manifest::mistake::Mistake;
use crate::manifest::read::Reader;
use crate::manifest::read::models::is_secret_header;
use crate::manifest::yaml::{Node, Value};
use crate::secret::Secret;

impl Reader<'_> {
    /// Returns the settings under `otel`, if they have no mistakes.
    pub(super) fn otel(&self, node: &Node) -> Option<Otel> {
        let otel = settings(node)?;
        self.otel_is_sound(node, &otel).then_some(otel)
    }

    #[cfg(feature = "otel")]
    fn otel_is_sound(&self, node: &Node, otel: &Otel) -> bool {
        let made = crate::otel::Collector::new(&otel.endpoint, otel.headers());
        let wrong = |it: crate::otel::NoCollector| {
            let place = node.key(it.setting).unwrap_or(node).place;
            let path = crate::manifest::check::joined("otel", it.setting);
            self.wrong(Mistake::new(place, it.to_string()).at(&path));
        };
        made.map_err(wrong).is_ok()
    }

    #[cfg(not(feature = "otel"))]
    fn otel_is_sound(&self, node: &Node, _: &Otel) -> bool {
        let text = "this program is built without the feature `otel`, and sends no spans";
        let advice = "build it with `--features otel`, or leave `otel:` out";
        self.wrong(Mistake::new(node.place, text).at("otel").advice(advice));
        false
    }
}

/// Returns the secret headers under `otel`, each with its place.
pub(super) fn secrets(node: &Node) -> Vec<(String, Secret)> {
    let Some(Value::Map(entries)) = node.key("headers").map(|it| &it.value) else {
        return Vec::new();
    };
    let secret = entries.iter().filter(|it| is_secret_header(it));
    let secret = secret.filter_map(|it| Some((&it.key, Secret::new(it.value.text()?))));
    let parts = secret.flat_map(|(name, it)| {
        let of = format!("`otel.headers.{name}`");
        it.parts().into_iter().map(move |it| (of.clone(), it))
    });
    parts.collect()
}

/// Returns the settings under `otel`, unchecked. Headers whose values aren't texts are left out.
/// Returns None if `endpoint` isn't a text.
pub(in crate::manifest) fn settings(node: &Node) -> Option<Otel> {
    let mut otel = Otel::at(node.key("endpoint").and_then(Node::text)?);
    if let Some(Value::Map(entries)) = node.key("headers").map(|it| &it.value) {
        let texts = entries.iter().filter_map(|it| Some((it.key.clone(), it.value.text()?)));
        otel.headers = texts.map(|(name, value)| (name, Secret::new(value))).collect();
    }
    otel.content = node.key("content").and_then(Node::flag) == Some(true);
    otel.metrics = node.key("metrics").and_then(Node::flag) != Some(false);
    Some(otel)
}
