//! Turns a tree of values into a [`Manifest`]. Finds the mistakes that the table of keys can't
//! show, such as names that nothing has, and files that can't be read.

mod doors;
mod pods;
mod node;
mod includes;
mod schemas;
mod models;
pub(super) mod otel;
mod metadata;
mod known;
mod feeds;
mod workflows;
mod agent;
mod calls;
mod listeners;

pub use workflows::workflow;
use workflows::{trigger_places, workflow_listeners};

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::door::{Tokens, Wrong};
use crate::engine::Builder;
use crate::limits::{Amount, Bound, Limits};
use crate::listeners::describe::Allow;
use crate::listeners::feed_values::SettableFeeds;
use crate::listeners::models::WithModels;
use crate::log::Durability;
use crate::manifest::amount;
use crate::manifest::check;
use crate::manifest::contents::{Context, DATA, Manifest, Overrides, Places, UsedProvider};
use crate::manifest::expand_variables::{Environment, expand};
use crate::manifest::hide_variables::Variables;
use crate::manifest::key_table::ORGANISM;
use crate::manifest::mistake::{Mistake, Mistakes, Place, cut};
use crate::manifest::sinks::SinksOf;
use crate::manifest::yaml;
use crate::manifest::yaml::Node;
use crate::model::{Models, Prices, ProviderEvents};
use crate::schema::Schema;
use crate::sink::{Return, Sink};
use crate::trigger_source::TriggerSource;

impl Manifest {
    /// Reads a manifest, and the files that it names: tokens, certificates, prompts, schemas,
    /// provider files and the like. Paths in the manifest start at the folder of `file`.
    /// `environment` looks up variables. `builder` has the kinds of listeners that the manifest may
    /// use.
    ///
    /// ```
    /// # extern crate pumphouse_organism as pumphouse;
    /// use std::path::Path;
    /// use pumphouse::listeners;
    /// use pumphouse::manifest::Manifest;
    ///
    /// let builder = pumphouse::builder().with(listeners::factories);
    /// let read = |text: &str| {
    ///     Manifest::read(Path::new("organism.yaml"), text.as_bytes(), &|_| None, &builder)
    /// };
    /// assert!(read("listeners: [{use: calculate}]").is_ok());
    /// let mistakes = read("listeners: [{use: calcualte}]").err().unwrap().to_string();
    /// assert!(mistakes.starts_with("organism.yaml:1:19: no listener is of the kind `calcualte`"));
    /// ```
    ///
    /// # Errors
    /// All mistakes of the manifest, and of the files that it names.
    pub fn read(
        file: &Path,
        bytes: &[u8],
        environment: &dyn Fn(&str) -> Option<String>,
        builder: &Builder,
    ) -> Result<Manifest, Mistakes> {
        Manifest::read_with(file, bytes, environment, builder, Overrides::default())
    }

    /// Reads a manifest as `read` does, but with `overrides` in place of the manifest's own values.
    pub fn read_with(
        file: &Path,
        bytes: &[u8],
        environment: &dyn Fn(&str) -> Option<String>,
        builder: &Builder,
        overrides: Overrides<'_>,
    ) -> Result<Manifest, Mistakes> {
        let variables = Variables::of(environment);
        let environment: Environment<'_> = &|name| variables.look_up(name);
        let wrong = |all| Mistakes::new(&file.display().to_string(), all);
        let mut root = yaml::read(bytes).map_err(|it| wrong(vec![it]))?;
        let mut mistakes = Vec::new();
        if let Some((agent, model)) = overrides.model {
            root.set_model(agent, model, environment);
        }
        expand(&mut root, environment, &mut mistakes);
        // An unset variable is one mistake. The check's mistakes at the same place are left out.
        let unset: Vec<_> = mistakes.iter().map(|it| it.place).collect();
        let mut found = Vec::new();
        check::check(&root, "", &ORGANISM, "listeners: [{use: calculate}]", &mut found);
        found.retain(|it| !unset.contains(&it.place));
        mistakes.extend(found);
        let mut pods = pods::load(file, &mut root, environment, overrides.model, &mut mistakes);
        let model = overrides.model;
        let mut includes =
            includes::load(file, &root, environment, model, &mut pods.files, &mut mistakes);
        includes.join(&mut root, &mut mistakes);
        let files = pods.files.clone();
        let (mistakes, models) = (RefCell::new(mistakes), builder.models().clone());
        let named = root.key("models").map(Node::keys).unwrap_or_default();
        let named = named.into_iter().map(str::to_owned).collect();
        let mut reader = Reader {
            file,
            environment,
            builder,
            models,
            named,
            prices: None,
            limits_cost: agent::limits_cost(&root),
            schemas: Vec::new(),
            events: ProviderEvents::default(),
            common_feeds: feeds::CommonFeeds::default(),
            pods,
            includes,
            organism: root.key("name").and_then(Node::text).map(str::to_owned),
            default_model: root.key("default_model").cloned(),
            context: context_folder(file, &root, overrides.data),
            agent_feeds: RefCell::default(),
            settable: RefCell::default(),
            providers: RefCell::default(),
            warnings: RefCell::default(),
            mistakes,
        };
        let own = reader.models(&root);
        reader.schemas = reader.declared(&root);
        reader.common_feeds = reader.common_feeds(&root);
        let mut manifest = Manifest { models: own, ..reader.manifest(&root) };
        let variables = variables.known();
        match reader.mistakes.into_inner() {
            none if none.is_empty() => {
                let warnings = manifest.warnings.into_iter().map(|it| variables.hide(it));
                manifest.warnings = warnings.collect();
                manifest.secrets.extend(variables.secrets());
                manifest.places.variables = variables;
                Ok(manifest)
            }
            all => Err(variables.hide(wrong(all).with_files(files))),
        }
    }
}

/// The folder of agents' files: `context-folder`, or else `context` in the data folder.
fn context_folder(file: &Path, root: &Node, data: Option<&Path>) -> PathBuf {
    let text = |key: &str| root.key(key).and_then(Node::text);
    if let Some(folder) = text("context-folder") {
        return beside(file, folder);
    }
    let said = || text("data").map(|it| beside(file, it));
    let data = data.map(Path::to_owned).or_else(said);
    data.unwrap_or_else(|| DATA.into()).join("context")
}

/// Resolves a path that starts at the folder of the manifest.
pub(super) fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

struct Reader<'a> {
    file: &'a Path,
    environment: Environment<'a>,
    builder: &'a Builder,
    /// The models that listeners may name: the program's, and the manifest's own.
    models: Models,
    /// The names of all models under `models`, including models with mistakes.
    named: Vec<String>,
    /// The table of prices that the manifest names.
    prices: Option<Prices>,
    /// Whether the manifest limits what a tree may cost.
    limits_cost: bool,
    /// The payloads that the manifest declares.
    schemas: Vec<Schema>,
    /// Queues the events of providers' streams for sinks with the key `raw`.
    events: ProviderEvents,
    /// The feeds that the manifest declares outside its agents.
    common_feeds: feeds::CommonFeeds,
    /// The manifest's pod files.
    pods: pods::Pods,
    /// The files that the manifest includes.
    includes: includes::Includes,
    /// The name of the pump.
    organism: Option<String>,
    /// The model of agents that name no model.
    default_model: Option<Node>,
    /// The folder of agents' files.
    context: PathBuf,
    /// Maps the name of an agent to its feeds from services.
    agent_feeds: RefCell<feeds::AgentFeeds>,
    /// The set feeds of agents. Operators, or the senders that a feed lists, set the content.
    settable: RefCell<SettableFeeds>,
    /// The provider files of the models.
    providers: RefCell<Vec<UsedProvider>>,
    /// The warnings about provider files and models.
    warnings: RefCell<Vec<Mistakes>>,
    mistakes: RefCell<Vec<Mistake>>,
}

impl Reader<'_> {
    /// The manifest's own folder.
    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Adds a warning: the pump can run in spite of it.
    fn doubt(&self, warning: Mistake) {
        let all = Mistakes::new(&self.file.display().to_string(), vec![warning]);
        self.warnings.borrow_mut().push(all.with_files(self.pods.files.clone()));
    }

    fn wrong(&self, mistake: Mistake) {
        // Only the first mistake at a place is added: a second one would follow from the first.
        let mut all = self.mistakes.borrow_mut();
        if all.iter().all(|it| it.place != mistake.place) {
            let path = pods::path_in_pod(&mistake.path);
            all.push(if mistake.place.file > 0 { mistake.at(&path) } else { mistake });
        }
    }

    /// Builds the manifest from the parts that have no mistakes. Adds the mistakes of other parts
    /// to `mistakes`.
    fn manifest(&self, root: &Node) -> Manifest {
        let text = |key: &str| root.key(key).and_then(Node::text);
        if let (Some(at), None, false) =
            (root.key("heartbeat"), text("name"), self.builder.has_name())
        {
            let text = "only a pump with a name says that it lives";
            let advice = "add a `name:`, or leave the heartbeat out";
            self.wrong(Mistake::new(at.place, text).at("heartbeat").advice(advice));
        }
        let tokens = root.key("tokens").and_then(|it| self.tokens(it));
        let doors = root.key("doors").map(|it| self.doors(it, tokens.as_ref()));
        let workflows = self.workflows(&self.includes.workflows);
        let mut services = self.services(root);
        self.wrong_sources(root);
        let triggers = self.triggers(&workflows, root);
        let trigger_source = TriggerSource::new(&triggers);
        services.extend(workflow_listeners(&workflows, triggers, root));
        if let Some(it) = root.key("default_model") {
            self.mind(it, "", "default_model");
        }
        let has_any =
            ["listeners", "services", "pods", "include"].iter().any(|it| root.key(it).is_some());
        let listeners = has_any.then(|| {
            let items = self.items(root);
            let of = (&workflows, &trigger_source);
            self.listeners(&items, services, of, tokens.as_ref())
        });
        let (sinks, returns) = root.key("sinks").map(|it| self.sinks(it)).unwrap_or_default();
        let otel = root.key("otel").and_then(|it| self.otel(it));
        Manifest {
            file: self.file.to_owned(),
            name: text("name").map(str::to_owned),
            data: text("data").map(|it| beside(self.file, it)),
            durability: text("durability").and_then(|it| it.parse::<Durability>().ok()),
            tokens,
            doors,
            listeners,
            schemas: self.schemas.clone(),
            models: Models::default(),
            sinks,
            trigger_source,
            returns,
            meta: root.key("meta").map(meta),
            providers: self.providers.take(),
            warnings: self.warnings.take(),
            limits: limits(root),
            workers: text("workers").and_then(amount::count),
            heartbeat: text("heartbeat").and_then(amount::time),
            places: self.places(root),
            secrets: root.key("otel").map(otel::secrets).unwrap_or_default(),
            otel,
            context: Context { folder: self.context.clone(), feeds: self.agent_feeds.take() },
        }
    }

    /// The manifest's sinks that have no mistakes, and separately its sinks of the type `return`.
    fn sinks(&self, node: &Node) -> (Vec<Sink>, Vec<Return>) {
        let of = SinksOf { file: self.file, key: "sinks", events: &self.events, provider: None };
        of.read(node, &mut |it| self.wrong(it))
    }

    /// Returns the items of `listeners`, and the agents of pods and of included files. Each has its
    /// path in its file.
    fn items<'b>(&'b self, root: &'b Node) -> Vec<(String, &'b Node)> {
        let own = root.key("listeners").map(Node::items).unwrap_or_default();
        let own = own.iter().enumerate().map(|(number, it)| (format!("listeners[{number}]"), it));
        let of_pods = self.pods.agents.iter().map(|(path, it)| (path.clone(), it));
        let included = self.includes.agents.iter().map(|it| (String::new(), it));
        own.chain(of_pods).chain(included).collect()
    }

    fn places(&self, root: &Node) -> Places {
        let items = self.items(root);
        let named = items.iter().filter_map(|(_, it)| Some((self.meant(it)?.to_owned(), it.place)));
        let workflows = self.includes.workflows.iter();
        let workflows =
            workflows.filter_map(|it| Some((it.key("name")?.text()?.to_owned(), it.place)));
        let (file, files) = (self.file.display().to_string(), self.pods.files.clone());
        let triggers = trigger_places(&self.includes.workflows);
        let listeners = named.chain(workflows).collect();
        Places { file, files, listeners, triggers, ..Places::default() }
    }

    /// Returns a text such as `line 7` for the place `of`, for a mistake at the place `from`. Adds
    /// the file's path if the two places are in different files.
    fn line(&self, of: Place, from: Place) -> String {
        if of.file == from.file {
            return format!("line {}", of.line);
        }
        let further = of.file.checked_sub(1).and_then(|it| self.pods.files.get(it));
        let file = further.cloned().unwrap_or_else(|| self.file.display().to_string());
        format!("line {} of {file}", of.line)
    }

    fn tokens(&self, node: &Node) -> Option<Tokens> {
        if node.key("file").is_some() && node.key("env").is_some() {
            return None;
        }
        if let Some((at, file)) = node.key("file").and_then(|it| Some((it, it.text()?))) {
            let read = Tokens::read(beside(self.file, file));
            return read.map_err(|it| self.wrong_lines(at, "tokens.file", it.all())).ok();
        }
        let at = node.key("env")?;
        let name = at.text()?;
        let Some(lines) = (self.environment)(name) else {
            let text = format!("the variable {} isn't set", cut(name));
            let advice = "set it to lines NAME:TOKEN, or name a file with `file:`";
            self.wrong(Mistake::new(at.place, text).at("tokens.env").advice(advice));
            return None;
        };
        let wrong = |it: Wrong| {
            let texts = it.all().map(|it| format!("in the variable {}: {it}", cut(name)));
            self.wrong_lines(at, "tokens.env", texts);
        };
        Tokens::parse(&lines).map_err(wrong).ok()
    }

    /// Adds the mistakes in a file or variable of tokens, all at the place that names the file or
    /// the variable. Adds none if that place has a mistake already.
    fn wrong_lines(&self, at: &Node, path: &str, texts: impl Iterator<Item = String>) {
        let mut all = self.mistakes.borrow_mut();
        if all.iter().all(|it| it.place != at.place) {
            all.extend(texts.map(|it| Mistake::new(at.place, it).at(path)));
        }
    }

    /// Whether the manifest has a model of this name. A model with mistakes counts, too.
    pub(super) fn is_named(&self, model: &str) -> bool {
        self.named.iter().any(|it| it == model)
    }
}

/// Reads the permissions to ask `describe`.
fn meta(node: &Node) -> Allow {
    let who = |key: &str| node.key(key).and_then(Node::text)?.parse().ok();
    Allow {
        list: who("list").unwrap_or_default(),
        schema: who("schema").unwrap_or_default(),
        example: who("example").unwrap_or_default(),
        prompt: who("prompt").unwrap_or_default(),
    }
}

/// Returns the limits, with the values that the manifest sets. A value that isn't an amount leaves
/// the default in force.
fn limits(root: &Node) -> Limits {
    let mut limits = Limits::default();
    if let Some(node) = root.key("limits") {
        limits.bounds().into_iter().for_each(|it| set(it, node));
    }
    limits
}

fn set(bound: Bound<'_>, node: &Node) {
    let Some(node) = node.key(bound.name) else { return };
    let text = node.text().unwrap_or_default();
    match bound.amount {
        Amount::Allowance(it) => *it = amount::allowance(text).unwrap_or(*it),
        Amount::Count(it) if bound.name.contains("bytes") => {
            *it = amount::bytes(text).unwrap_or(*it);
        }
        Amount::Count(it) => *it = amount::count(text).unwrap_or(*it),
        Amount::Time(it) => *it = amount::time(text).unwrap_or(*it),
        Amount::Xml(it) => it.bounds().into_iter().for_each(|it| set(it, node)),
    }
}
