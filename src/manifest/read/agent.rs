//! Reads the agents of a manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;

use crate::limits::{ActionLimits, UNLIMITED};
use crate::listener::Listener;
use crate::listeners::action::InternalActions;
use crate::listeners::agent::Agent;
use crate::listeners::agent::settings::{
    Ability, Calls, Dialect, FinalWithActions, OnFull, Settings, Wake,
};
use crate::listeners::agent::words::{Dispatch, is_for_others};
use crate::manifest::amount;
use crate::manifest::check::joined;
use crate::manifest::document::bytes_of;
use crate::manifest::mistake::{Mistake, Place, cut};
use crate::manifest::read::known::Known;
use crate::manifest::read::{Reader, beside, set};
use crate::manifest::settings::{At, Findings};
use crate::manifest::yaml::Node;
use crate::model::Model;
use crate::name::Name;
use crate::regular_file;
use crate::reply::Streaming;
use crate::schema::{self, Schema, nearest};
use crate::xml;

/// The most bytes of a file that holds an agent's prompt. Prompts are far shorter.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// Names that are refused if the namespace of a listener's payloads contains its name. The
/// namespace would be one of the pump's own.
pub(super) const TAKEN: [&str; 4] = ["agent", "core", "envelope", "meta"];

impl Reader<'_> {
    /// Reads an agent. `is_watched` says whether any trigger watches its metadata. The caller reads
    /// the keys that every listener may have, such as `peers`.
    pub(super) fn agent(&self, item: &Node, path: &str, is_watched: bool) -> Option<Listener> {
        // The name, the model and the settings are all read before any `?` returns, so that
        // mistakes in one don't hide mistakes in another.
        let name = item.key("name").and_then(|it| self.name(it, path));
        let model = match item.key("model").or(self.default_model.as_ref()) {
            Some(it) => self.mind(it, path, "model"),
            None => {
                self.wrong_without_model(item, path);
                None
            }
        };
        if let Some(why) = model.as_ref().and_then(|it| it.refuses_temperature()) {
            self.unsent(item.key("temperature"), &joined(path, "temperature"), why);
        }
        let settings = self.settings(item, path);
        let organism = self.organism.clone();
        let settings = Settings { has_triggers: is_watched, organism, ..settings? };
        Some(Agent::new(name?, model?).settings(settings).listener())
    }

    /// Adds the mistake that an agent names no model although there is no `default_model`.
    fn wrong_without_model(&self, item: &Node, path: &str) {
        if self.pods.agents.iter().any(|(of_pod, _)| of_pod == path) {
            let text =
                "an agent of a pod has the model `default_model`, and the manifest says none";
            let advice = match &self.named[..] {
                [] => "add `models:` and `default_model:` to the manifest".to_owned(),
                all => format!("add `default_model:` to the manifest: there is {}", all.join(", ")),
            };
            return self.wrong(Mistake::new(item.place, text).at(path).advice(advice));
        }
        // A misspelt key is reported as an unknown key.
        if item.keys().into_iter().all(|it| nearest(it, ["model"].into_iter()).is_none()) {
            let mistake = Mistake::new(item.place, "an agent needs the key `model`").at(path);
            self.wrong(mistake.example("model: local"));
        }
    }

    /// Returns the model that `node` names. If there is no such model, adds a mistake and returns
    /// None.
    pub(super) fn mind(&self, node: &Node, path: &str, key: &str) -> Option<Arc<dyn Model>> {
        let unknown = match self.models.get(node.text()?) {
            Ok(model) => {
                if self.limits_cost && model.price().is_none() {
                    self.wrong(unpriced(node).at(&joined(path, key)));
                }
                return Some(model);
            }
            Err(it) => it,
        };
        // A model with mistakes is reported where it is declared.
        if !self.is_named(&unknown.name) {
            let mistake = Mistake::new(node.place, unknown.to_string());
            self.wrong(mistake.at(&joined(path, key)));
        }
        None
    }

    /// Returns the agent's name, which its payload has as well. If this name is one of [`TAKEN`],
    /// or can't be the name of an element, adds a mistake and returns None.
    fn name<'b>(&self, node: &'b Node, path: &str) -> Option<&'b str> {
        let name = node.text()?;
        let (text, advice) = match () {
            () if TAKEN.contains(&name) => {
                (format!("`{name}` is a word of the pump's own"), "give it another `name:`")
            }
            () if !xml::is_name(name) => {
                let text = format!(
                    "an agent's payload has its name, and no element can be <{}>",
                    cut(name)
                );
                (text, "begin it with a letter, as in `name: researcher`")
            }
            () => return Some(name),
        };
        self.wrong(Mistake::new(node.place, text).at(&joined(path, "name")).advice(advice));
        None
    }

    /// The agent's `streaming_config`: how calls are written and batched. The outer `None` stands
    /// for mistakes, the inner one for an absent key.
    #[expect(
        clippy::option_option,
        reason = "none where it is wrong, and none where it isn't said"
    )]
    fn streaming(&self, item: &Node, path: &str) -> Option<Option<Streaming>> {
        let Some(node) = item.key("streaming_config") else { return Some(None) };
        let path = joined(path, "streaming_config");
        if let Some(at) = node.key("file") {
            return self.streaming_file(node, at, &path).map(Some);
        }
        let findings = Findings::of(self.file);
        let read = Streaming::deserialize(At { node, path: path.clone(), findings: &findings });
        let mistakes = findings.all();
        if !mistakes.is_empty() {
            mistakes.into_iter().for_each(|it| self.wrong(it));
            return None;
        }
        let sound = read.map_err(|it| it.to_string());
        let sound = sound.and_then(|it| it.sound().map_err(|it| it.to_string()));
        let wrong = |text: String| self.wrong(Mistake::new(node.place, text).at(&path));
        sound.map_err(wrong).ok().map(Some)
    }

    /// The document `streaming_config` in a file of its own, as *Streaming Inline Tool Execution*
    /// has it. Adds a mistake and returns None if it can't be used.
    fn streaming_file(&self, node: &Node, at: &Node, path: &str) -> Option<Streaming> {
        if let Some(other) = node.keys().into_iter().find(|it| *it != "file") {
            let text = format!("beside `file` there is no other key, such as `{}`", cut(other));
            let other = node.key(other).unwrap_or(node);
            self.wrong(Mistake::new(other.place, text).at(path));
            return None;
        }
        let file = beside(self.file, at.text()?);
        let read = bytes_of(&file).map_err(|it| it.to_string());
        let text = read.and_then(|it| String::from_utf8(it).map_err(|it| it.to_string()));
        let read = text.and_then(|it| Streaming::from_yaml(&it).map_err(|it| it.to_string()));
        let wrong = |text: String| {
            let text = format!("{}: {text}", file.display());
            self.wrong(Mistake::new(at.place, text).at(&joined(path, "file")));
        };
        read.map_err(wrong).ok()
    }

    fn settings(&self, item: &Node, path: &str) -> Option<Settings> {
        let text = |key: &str| item.key(key).and_then(Node::text);
        let count = |key: &str| text(key).and_then(amount::count);
        let usual = Settings::default();
        let mut reply_limits = usual.reply_limits;
        if let Some(node) = item.key("reply_limits") {
            reply_limits.bounds().into_iter().for_each(|it| set(it, node));
        }
        let mut action_limits = usual.action_limits;
        if let Some(node) = item.key("action_limits") {
            action_limits.bounds().into_iter().for_each(|it| set(it, node));
        }
        let streaming = self.streaming(item, path)?;
        streaming.iter().for_each(|it| batched(it, item, &mut action_limits));
        let prompt = item.key("prompt").map(|it| self.words(it, &joined(path, "prompt")));
        Some(Settings {
            prompt: prompt.unwrap_or(Some(usual.prompt))?,
            dialect: chosen(
                item,
                "dialect",
                &[("tool_use", Dialect::ToolUse), ("native", Dialect::Native)],
            ),
            references: flag(item, "references"),
            dispatch: choose_dispatch(item, streaming.as_ref()),
            final_default: flag(item, "final_default").unwrap_or(usual.final_default),
            text_is_response: flag(item, "text_is_response"),
            final_with_actions: chosen(
                item,
                "final_with_actions",
                &[("strict", FinalWithActions::Strict), ("trust", FinalWithActions::Trust)],
            ),
            final_payloads: names(item, "final_payloads"),
            wake: chosen(item, "wake", &[("all", Wake::All)]),
            max_turns: text("max_turns").and_then(amount::allowance).unwrap_or(usual.max_turns),
            agent_calls: chosen(item, "agent_calls", &[("same-thread", Calls::SameThread)]),
            metadata: self.surroundings(item, "metadata", path)?,
            workspace: Some(self.workspace(item, path)?),
            context_feeds: self.context_feeds(item, path)?,
            abilities: item.key("abilities").map_or(usual.abilities, abilities),
            internal_actions: item.key("internal_actions").map(internal).unwrap_or_default(),
            on_context_full: chosen(
                item,
                "on_context_full",
                &[("summarise", OnFull::Summarise), ("stop", OnFull::Stop)],
            ),
            summary_model: item
                .key("summary_model")
                .and_then(|it| self.mind(it, path, "summary_model")),
            context_keep: text("context_keep").and_then(amount::keep).unwrap_or(usual.context_keep),
            result_bytes_max: text("result_bytes_max")
                .and_then(amount::bytes)
                .map_or(usual.result_bytes_max, |it| it as u64),
            rate_limit_wait_max: text("rate_limit_wait_max")
                .and_then(amount::time)
                .unwrap_or(usual.rate_limit_wait_max),
            reply_limits,
            streaming_config: streaming,
            action_limits,
            control_flow: flag(item, "control_flow").unwrap_or(usual.control_flow),
            action_templates: self.surroundings(item, "action_templates", path)?,
            max_tokens: count("max_tokens").and_then(|it| u32::try_from(it).ok()),
            temperature: text("temperature").and_then(amount::number),
            ..usual
        })
    }

    /// Returns the folder in which an agent works: `workspace`, or else the manifest's folder. If
    /// there is no such folder, adds a mistake and returns None.
    fn workspace(&self, item: &Node, path: &str) -> Option<String> {
        let own = self.folder();
        let own = if own.as_os_str().is_empty() { Path::new(".") } else { own };
        let at = item.key("workspace").and_then(|it| Some((it, it.text()?)));
        let Some((node, text)) = at else {
            let folder = own.canonicalize().unwrap_or_else(|_| own.to_owned());
            return Some(folder.display().to_string());
        };
        let folder = own.join(text);
        let wrong = match folder.canonicalize() {
            Ok(it) if it.is_dir() => return Some(it.display().to_string()),
            Ok(_) => "it is no folder".to_owned(),
            Err(error) => error.to_string(),
        };
        let mistake = Mistake::new(node.place, format!("{}: {wrong}", folder.display()));
        self.wrong(mistake.at(&joined(path, "workspace")));
        None
    }

    /// Reads a value such as `metadata` or `context_feeds`. Returns the default if the key is
    /// absent, and None if the value has mistakes.
    pub(super) fn surroundings<T: Default + DeserializeOwned>(
        &self,
        item: &Node,
        key: &str,
        path: &str,
    ) -> Option<T> {
        let Some(node) = item.key(key) else { return Some(T::default()) };
        let (findings, path) = (Findings::of(self.file), joined(path, key));
        // The check has reported mistakes here, and serde would report them again.
        if self.mistakes.borrow().iter().any(|it| it.path.starts_with(&*path)) {
            return None;
        }
        let read = T::deserialize(At { node, path: path.clone(), findings: &findings });
        findings.all().into_iter().for_each(|it| self.wrong(it));
        read.ok()
    }

    /// Adds a mistake for each feed whose source names no listener, or no payload of its listener.
    pub(super) fn sources(
        &self,
        item: &Node,
        path: &str,
        (names, known): (&BTreeMap<&str, Option<Place>>, &Known<'_>),
        made: &[(&Node, String, Listener)],
    ) {
        let feeds = item.key("context_feeds").map(Node::items).unwrap_or_default();
        for (number, feed) in feeds.iter().enumerate() {
            let at = feed.key("source").and_then(|it| it.key("name"));
            let Some((at, name)) = at.and_then(|it| Some((it, it.text()?))) else { continue };
            // The text after a dot may name a payload.
            let points = name.match_indices('.').map(|(at, _)| &name[..at]);
            if points.chain([name]).any(|it| names.contains_key(it)) {
                continue;
            }
            let text = format!("there is no listener `{}`", cut(name));
            let path = joined(path, &format!("context_feeds[{number}].source.name"));
            let mistake = Mistake::new(at.place, text).at(&path);
            self.wrong(self.to_add(mistake, name, known));
        }
        self.source_payloads(item, path, made);
        self.sources_of_feeds(item.key("feeds"), &joined(path, "feeds"), names, known);
    }

    /// Adds a mistake for each feed whose source names a payload that its listener doesn't take.
    /// Also adds one if the source names no payload although its listener takes several.
    fn source_payloads(&self, item: &Node, path: &str, made: &[(&Node, String, Listener)]) {
        let feeds = item.key("context_feeds").map(Node::items).unwrap_or_default();
        for (number, feed) in feeds.iter().enumerate() {
            let at = feed.key("source").and_then(|it| it.key("name"));
            let Some((at, name)) = at.and_then(|it| Some((it, it.text()?))) else { continue };
            let named = made.iter().filter_map(|(.., listener)| {
                let rest = name.strip_prefix(listener.name())?;
                let payload = if rest.is_empty() { None } else { Some(rest.strip_prefix('.')?) };
                Some((listener, payload))
            });
            // A listener's name may itself have a dot. Of several listeners, the longest name is
            // meant.
            let named = named.max_by_key(|(listener, _)| listener.name().len());
            let Some((listener, payload)) = named else { continue };
            // A listener's `payloads` leave out reserved payloads.
            let is_offered =
                |it: &&Name| !is_for_others(it) && listener.payloads().any(|name| name == *it);
            let taken = listener.takes().filter(is_offered).map(Name::local);
            let taken: BTreeSet<&str> = taken.collect();
            let text = match payload {
                Some(it) if taken.contains(it) => continue,
                None if taken.len() < 2 => continue,
                None if Self::has_fitting(feed, listener, &taken) => continue,
                Some(it) => format!("`{}` takes no payload `{}`", listener.name(), cut(it)),
                None => format!("`{}` takes several payloads", listener.name()),
            };
            let path = joined(path, &format!("context_feeds[{number}].source.name"));
            let mistake = Mistake::new(at.place, text).at(&path);
            let mistake = match payload {
                Some(it) => mistake.or_nearest(it, taken.iter().copied()),
                None => mistake,
            };
            let all: Vec<String> =
                taken.iter().map(|it| format!("{}.{it}", listener.name())).collect();
            self.wrong(mistake.advice(format!("name one of {}", all.join(", "))));
        }
    }

    /// Whether the parameters of a feed's source fit exactly one of these payloads of a listener.
    fn has_fitting(feed: &Node, listener: &Listener, taken: &BTreeSet<&str>) -> bool {
        let params = feed.key("source").and_then(|it| it.key("params"));
        let given = params.map(Node::keys).unwrap_or_default();
        let is_taken = |it: &Schema| listener.takes().any(|name| *name == it.name);
        let fitting = listener.accepts().filter(|it| taken.contains(it.name.local()));
        fitting.filter(|it| is_taken(it) && schema::fits(it, &given)).count() == 1
    }

    /// Adds a mistake for each item of a list of feeds from services if its `source` names no
    /// listener.
    pub(super) fn sources_of_feeds(
        &self,
        feeds: Option<&Node>,
        path: &str,
        names: &BTreeMap<&str, Option<Place>>,
        known: &Known<'_>,
    ) {
        for (number, feed) in feeds.map(Node::items).unwrap_or_default().iter().enumerate() {
            let Some((at, name)) = feed.key("source").and_then(|it| Some((it, it.text()?))) else {
                continue;
            };
            if names.contains_key(name) {
                continue;
            }
            let text = format!("there is no service `{}`", cut(name));
            let mistake = Mistake::new(at.place, text).at(&format!("{path}[{number}].source"));
            let mistake = mistake.or_nearest(name, known.names.iter().copied());
            let names = known.names.join(", ");
            let advice = format!("declare it under `services`, or name one of {names}");
            self.wrong(mistake.advice(advice));
        }
    }

    /// Adds a mistake for each of `final_payloads` that no listener has.
    pub(super) fn finals(&self, item: &Node, path: &str, known: &BTreeSet<&Name>) {
        let finals = item.key("final_payloads").map(Node::items).unwrap_or_default();
        // Payloads in the pump's own namespaces aren't suggested.
        let usual = known.iter().filter(|it| !is_own(it)).map(|it| it.local());
        let usual: BTreeSet<&str> = usual.collect();
        for (number, node) in finals.iter().enumerate() {
            let is_known = |name: &str| known.iter().any(|it| it.local() == name);
            let Some(name) = node.text().filter(|it| !is_known(it)) else { continue };
            let text = format!("no listener has a payload `{}`", cut(name));
            let path = joined(path, &format!("final_payloads[{number}]"));
            let mistake = Mistake::new(node.place, text).at(&path);
            let mistake = mistake.or_nearest(name, usual.iter().copied());
            let usual: Vec<&str> = usual.iter().copied().collect();
            self.wrong(mistake.advice(format!("there is {}", usual.join(", "))));
        }
    }

    /// Returns a text, or the content of the file that `file:` names. If the file can't be read or
    /// is larger than `prompt_bytes_max`, adds a mistake and returns None.
    fn words(&self, node: &Node, path: &str) -> Option<String> {
        let Some(at) = node.key("file") else { return node.text().map(str::to_owned) };
        let file = beside(self.file, at.text()?);
        let wrong = match regular_file::text(&file, PROMPT_BYTES_MAX) {
            Ok(text) => return Some(text.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                format!("a prompt has at most {PROMPT_BYTES_MAX} bytes (prompt_bytes_max)")
            }
            Err(error) => error.to_string(),
        };
        let mistake = Mistake::new(at.place, format!("{}: {wrong}", file.display()));
        self.wrong(mistake.at(&joined(path, "file")));
        None
    }
}

/// Chooses when an agent's calls are dispatched. With a `streaming_config`, they are batched unless
/// `dispatch` says otherwise.
fn choose_dispatch(item: &Node, streaming: Option<&Streaming>) -> Dispatch {
    match (streaming, item.key("dispatch")) {
        (Some(_), None) => Dispatch::Batched,
        _ => chosen(
            item,
            "dispatch",
            &[("batched", Dispatch::Batched), ("after_response", Dispatch::AfterResponse)],
        ),
    }
}

/// Copies the size and the delay of batches from a `streaming_config`, except where `action_limits`
/// sets them.
fn batched(streaming: &Streaming, item: &Node, limits: &mut ActionLimits) {
    let said = item.key("action_limits");
    let is_said = |key: &str| said.and_then(|it| it.key(key)).is_some();
    if !is_said("batch") {
        limits.batch = streaming.tool_batch_size;
    }
    if !is_said("batch_delay") {
        limits.batch_delay = Duration::from_secs_f64(streaming.tool_batch_delay);
    }
}

/// Whether a payload stands in a namespace of the pump's own.
fn is_own(name: &Name) -> bool {
    let within = name.namespace().strip_prefix("https://xml-pipeline.org/ns/");
    let word = within.and_then(|it| it.strip_suffix("/v1"));
    word.is_some_and(|it| TAKEN.contains(&it))
}

/// Returns the value that `words` has for the word under `key`. Returns the default for any other
/// word, and if the key is absent.
fn chosen<T: Default + Copy>(item: &Node, key: &str, words: &[(&str, T)]) -> T {
    let text = item.key(key).and_then(Node::text);
    words.iter().find(|(word, _)| text == Some(word)).map(|it| it.1).unwrap_or_default()
}

fn flag(item: &Node, key: &str) -> Option<bool> {
    item.key(key).and_then(Node::flag)
}

fn names(item: &Node, key: &str) -> Vec<String> {
    let all = item.key(key).map(Node::items).unwrap_or_default();
    all.iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn abilities(node: &Node) -> Vec<Ability> {
    let ability = |it: &Node| match it.text()? {
        "spawn" => Some(Ability::Spawn),
        "timers" => Some(Ability::Timers),
        "todo" => Some(Ability::Todo),
        "clear" => Some(Ability::Clear),
        "feeds" => Some(Ability::Feeds),
        _ => None,
    };
    node.items().iter().filter_map(ability).collect()
}

fn internal(node: &Node) -> InternalActions {
    InternalActions {
        enabled: flag(node, "enabled").unwrap_or(true),
        allowed_actions: names(node, "allowed_actions"),
        blocked_actions: names(node, "blocked_actions"),
    }
}

/// The mistake that a model has no price although the manifest limits the cost.
pub(super) fn unpriced(node: &Node) -> Mistake {
    let name = cut(node.text().unwrap_or_default());
    let text = format!("`tree_cost_micros_max` can't hold the model `{name}`: it has no price");
    Mistake::new(node.place, text).advice(
        "say there what its tokens cost, `price: {input: 0.15, output: 0.60}`, or `price: {input: \
         0, output: 0}` if they cost nothing",
    )
}

/// Whether the manifest limits what a tree of threads may cost.
pub(super) fn limits_cost(root: &Node) -> bool {
    let most = root.key("limits").and_then(|it| it.key("tree_cost_micros_max"));
    most.and_then(Node::text).and_then(amount::allowance).is_some_and(|it| it < UNLIMITED)
}
