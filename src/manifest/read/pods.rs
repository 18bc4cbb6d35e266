//! The pod files of a manifest, in the form of ADR-013. The agents and services of a pod file are
//! read like those of the manifest. Mistakes in them have places in the pod file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::manifest::check;
use crate::manifest::document::bytes_of;
use crate::manifest::expand_variables::{Environment, expand, expand_under};
use crate::manifest::key_table::AGENT;
use crate::manifest::key_table::pod::{COMPOSE, COMPOSE_SERVICE, pod};
use crate::manifest::mistake::{Mistake, Place, cut};
use crate::manifest::read::beside;
use crate::manifest::yaml;
use crate::manifest::yaml::{Node, Pair, Plain, Scalar, Value};
use crate::schema::nearest;

/// The beginning of each item of an agent's `surfaces`.
const SURFACE: &str = "service://";
/// The key under which a pod file has the settings that Compose doesn't know.
const CLAW: &str = "x-claw";
/// YAML's merge key. Its value is merged into the map that has the key.
const MERGE: &str = "<<";
/// The keys of `x-claw` that ADR-013 has. The other keys are those of an agent in a manifest.
const OF_CLAW: [&str; 4] = ["agent", "cllama", "feeds", "surfaces"];
/// The beginning of the labels with which a service advertises its feeds.
const LABEL: &str = "claw.feed.";
/// The parts of such labels that say nothing to the pump: a feed is read when it is needed, and its
/// content shows its form.
const UNUSED_LABELS: [&str; 3] = ["description", "format", "suggested-trigger"];
/// The keys of a service that only a service with a `url` has.
const WITH_URL: [&str; 4] = ["auth", "hosts", "timeout", "feeds"];

/// The content of a manifest's pod files.
#[derive(Default)]
pub(super) struct Pods {
    /// The paths of the pod files, as mistakes name them. A place counts them from 1.
    pub(super) files: Vec<String>,
    /// The agents, each as a listener of a manifest, with its path in the pod file.
    pub(super) agents: Vec<(String, Node)>,
    /// Maps each agent of a pod to the pod's name. None if the pod has no name.
    pub(super) agent_pods: BTreeMap<String, Option<String>>,
    /// Maps each service with a `url` to the name of its pod. Services of pods without a name are
    /// left out.
    pub(super) service_pods: BTreeMap<String, String>,
    /// The feeds that services without a `url` advertise. The manifest has services of these names.
    feeds: Vec<(String, Node)>,
}

/// Reads the pod files that a manifest names. Their services join those of the manifest. `model`
/// holds the name of an agent, and the name of the model that the agent gets.
pub(super) fn load(
    file: &Path,
    root: &mut Node,
    environment: Environment<'_>,
    model: Option<(&str, &str)>,
    wrong: &mut Vec<Mistake>,
) -> Pods {
    let (mut pods, mut services) = (Pods::default(), Vec::new());
    let known = root.key("services").map(Node::keys).unwrap_or_default();
    let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
    let items = root.key("pods").map(Node::items).unwrap_or_default();
    for (number, at) in items.iter().enumerate() {
        let Some(name) = at.text().filter(|it| !it.is_empty()) else { continue };
        let path = beside(file, name);
        let bytes = match bytes_of(&path) {
            Ok(it) => it,
            Err(error) => {
                let text = format!("{}: {error}", path.display());
                wrong.push(Mistake::new(at.place, text).at(&format!("pods[{number}]")));
                continue;
            }
        };
        pods.files.push(path.display().to_string());
        let mut found = Vec::new();
        if let Some(node) = checked(&bytes, environment, &mut found) {
            let folder = Path::new(name).parent().unwrap_or(Path::new(""));
            let pod = Pod { folder, root: &node, known: &known, model };
            services.extend(pod.read(&mut pods, &mut found));
        }
        let number = pods.files.len();
        found.iter_mut().for_each(|it| it.place.file = number);
        pods.agents.iter_mut().for_each(|(_, it)| set_file(it, number));
        services.iter_mut().for_each(|it| set_file_of(it, number));
        pods.feeds.iter_mut().for_each(|(_, it)| set_file(it, number));
        wrong.extend(found);
    }
    add_services(root, services);
    join_feeds(root, std::mem::take(&mut pods.feeds));
    join_agents(root, &mut pods);
    pods
}

/// Adds feeds that services of pods advertise to the manifest's services of the same names.
fn join_feeds(root: &mut Node, feeds: Vec<(String, Node)>) {
    let Value::Map(pairs) = &mut root.value else { return };
    let services = pairs.iter_mut().find(|it| it.key == "services");
    let Some(Value::Map(services)) = services.map(|it| &mut it.value.value) else { return };
    for (name, feeds) in feeds {
        let service = services.iter_mut().find(|it| it.key == name);
        let Some(Value::Map(pairs)) = service.map(|it| &mut it.value.value) else { continue };
        let there = pairs.iter_mut().find(|it| it.key == "feeds");
        match (there.map(|it| &mut it.value.value), feeds.value) {
            (Some(Value::List(there)), Value::List(more)) => there.extend(more),
            (None, value) => pairs.push(entry("feeds", Node { place: feeds.place, value })),
            _ => {}
        }
    }
}

/// Adds the keys of the manifest's own agents to the agents of pods with the same names. Such an
/// agent of the manifest is no listener of its own.
fn join_agents(root: &mut Node, pods: &mut Pods) {
    let Value::Map(pairs) = &mut root.value else { return };
    let listeners = pairs.iter_mut().find(|it| it.key == "listeners");
    let Some(Value::List(items)) = listeners.map(|it| &mut it.value.value) else { return };
    let mut joined = Vec::new();
    items.retain(|item| {
        let said = |key: &str| item.key(key).and_then(Node::text);
        let Some(name) = said("name").filter(|_| said("use") == Some(AGENT)) else { return true };
        let is_it = |it: &&mut (String, Node)| it.1.key("name").and_then(Node::text) == Some(name);
        let Some((_, agent)) = pods.agents.iter_mut().find(is_it) else { return true };
        if joined.iter().any(|it| it == name) {
            return true;
        }
        joined.push(name.to_owned());
        join(agent, item);
        false
    });
}

/// Adds the keys of an agent of the manifest to an agent of a pod. Peers and feeds are added to
/// those of the pod, and any other key counts in place of the pod's.
fn join(agent: &mut Node, own: &Node) {
    let (Value::Map(pairs), Value::Map(own)) = (&mut agent.value, &own.value) else { return };
    for pair in own.iter().filter(|it| !matches!(&*it.key, "use" | "name")) {
        let there = pairs.iter_mut().find(|it| it.key == pair.key);
        match (there.map(|it| &mut it.value), &pair.value.value) {
            (Some(Node { value: Value::List(items), .. }), Value::List(more))
                if matches!(&*pair.key, "peers" | "feeds") =>
            {
                let is_new = |it: &&Node| {
                    it.text().is_none_or(|it| !items.iter().any(|item| item.text() == Some(it)))
                };
                let more: Vec<Node> = more.iter().filter(is_new).cloned().collect();
                items.extend(more);
            }
            (Some(there), _) => *there = pair.value.clone(),
            (None, _) => pairs.push(pair.clone()),
        }
    }
}

/// Reads a pod file, and compares it with the table of its keys. Returns None if the file isn't
/// YAML.
fn checked(bytes: &[u8], environment: Environment<'_>, wrong: &mut Vec<Mistake>) -> Option<Node> {
    let mut root = yaml::read(bytes).map_err(|it| wrong.push(it)).ok()?;
    drop_extensions(&mut root);
    if let Value::Map(pairs) = &mut root.value {
        for pair in pairs.iter_mut().filter(|it| !COMPOSE.contains(&&*it.key)) {
            match &mut pair.value.value {
                Value::Map(services) if pair.key == "services" => {
                    services.iter_mut().for_each(|it| prepare(&mut it.value, environment, wrong));
                }
                _ => expand(&mut pair.value, environment, wrong),
            }
        }
    }
    // An unset variable is one mistake. The check's mistakes at the same place are left out.
    let unset: Vec<Place> = wrong.iter().map(|it| it.place).collect();
    let mut found = Vec::new();
    check::check(&root, "", &pod(), "services: {}", &mut found);
    found.retain(|it| !unset.contains(&it.place));
    wrong.extend(found);
    Some(root)
}

/// Fills in the variables of a service, except in values that only Compose reads. A merge key that
/// brings only such values is dropped.
fn prepare(service: &mut Node, environment: Environment<'_>, wrong: &mut Vec<Mistake>) {
    drop_extensions(service);
    let advertised = labelled_feeds(service);
    let Value::Map(pairs) = &mut service.value else { return };
    match pairs.iter_mut().find(|it| it.key == "feeds").map(|it| &mut it.value.value) {
        Some(Value::List(feeds)) => feeds.extend(advertised),
        Some(_) => {}
        None if advertised.is_empty() => {}
        None => {
            let place = advertised[0].place;
            pairs.push(entry("feeds", Node { place, value: Value::List(advertised) }));
        }
    }
    pairs.retain(|it| it.key != MERGE || !brings_nothing(&it.value));
    for pair in pairs.iter_mut().filter(|it| !COMPOSE_SERVICE.contains(&&*it.key)) {
        expand_under(pair, environment, wrong);
    }
}

/// The feeds that a service advertises by labels, such as `claw.feed.0.path: /fleet/alerts`, in the
/// order of their numbers. They are made into items of the service's key `feeds`.
fn labelled_feeds(service: &Node) -> Vec<Node> {
    let labels: Vec<(String, Node)> = match service.key("labels").map(|it| &it.value) {
        Some(Value::Map(pairs)) => {
            pairs.iter().map(|it| (it.key.clone(), it.value.clone())).collect()
        }
        Some(Value::List(items)) => items.iter().filter_map(label).collect(),
        _ => Vec::new(),
    };
    let mut feeds: BTreeMap<(u64, String), Vec<Pair>> = BTreeMap::new();
    for (name, value) in labels {
        let Some(rest) = name.strip_prefix(LABEL) else { continue };
        let (feed, key) = rest.rsplit_once('.').unwrap_or((rest, "path"));
        let number = feed.parse().unwrap_or(u64::MAX);
        let pairs = feeds.entry((number, feed.to_owned())).or_default();
        if !UNUSED_LABELS.contains(&key) {
            pairs.push(entry(key, value));
        }
    }
    let feed = |((number, name), mut pairs): ((u64, String), Vec<Pair>)| {
        let place = pairs.first()?.place;
        if number == u64::MAX && pairs.iter().all(|it| it.key != "name") {
            pairs.push(entry("name", text(place, &name)));
        }
        Some(Node { place, value: Value::Map(pairs) })
    };
    feeds.into_iter().filter_map(feed).collect()
}

/// A label that is written as an item of a list, `NAME=VALUE`.
fn label(item: &Node) -> Option<(String, Node)> {
    let (name, value) = item.text()?.split_once('=')?;
    Some((name.trim().to_owned(), text(item.place, value.trim())))
}

/// Whether a merge key with this value brings only values that only Compose reads.
fn brings_nothing(node: &Node) -> bool {
    let is_idle = |it: &str| COMPOSE_SERVICE.contains(&it) || is_foreign(it);
    match &node.value {
        Value::Map(pairs) => pairs.iter().all(|it| is_idle(&it.key)),
        Value::List(items) => items.iter().all(brings_nothing),
        Value::Scalar(_) => false,
    }
}

/// Drops the extensions of other programs: the keys that begin with `x-`, except `x-claw` and
/// misspellings of it.
fn drop_extensions(node: &mut Node) {
    if let Value::Map(pairs) = &mut node.value {
        pairs.retain(|it| !is_foreign(&it.key));
    }
}

/// Whether a key is an extension of another program.
fn is_foreign(key: &str) -> bool {
    key.starts_with("x-") && key != CLAW && nearest(key, [CLAW].into_iter()).is_none()
}

/// A pod file that was read.
struct Pod<'a> {
    /// The folder of the pod file, relative to the manifest's folder.
    folder: &'a Path,
    root: &'a Node,
    /// The names of the manifest's own services.
    known: &'a [String],
    /// The name of an agent, and the name of the model that the agent gets.
    model: Option<(&'a str, &'a str)>,
}

impl Pod<'_> {
    /// Adds the agents and the pod's name to `pods`. Returns the services with a `url`.
    fn read(&self, pods: &mut Pods, wrong: &mut Vec<Mistake>) -> Vec<Pair> {
        let mut services = Vec::new();
        let about = self.root.key(CLAW);
        let all = match self.root.key("services").map(|it| &it.value) {
            Some(Value::Map(pairs)) => &pairs[..],
            _ => &[],
        };
        if let Some(master) = about.and_then(|it| it.key("master")) {
            wrong.extend(unknown_master(master, all));
        }
        let name = about.and_then(|it| it.key("pod")).and_then(Node::text);
        for pair in all {
            let path = format!("services.{}", cut(&pair.key));
            let claw = pair.value.key(CLAW);
            let agent = claw.and_then(|it| Some((it, it.key("agent")?)));
            if let Some((claw, file)) = agent {
                let path = format!("{path}.{CLAW}");
                let agent = self.agent(pair, claw, file, &path, wrong);
                pods.agent_pods.insert(pair.key.clone(), name.map(str::to_owned));
                pods.agents.push((path, agent));
            }
            match pair.value.key("url") {
                Some(url) if agent.is_some() => {
                    let text = "an agent has no `url`: a service is an agent or a source of feeds";
                    let advice = "give the source of feeds a name of its own";
                    let path = format!("{path}.url");
                    wrong.push(Mistake::new(url.place, text).at(&path).advice(advice));
                }
                Some(_) => {
                    services.push(self.service(pair));
                    let name = name.map(|it| (pair.key.clone(), it.to_owned()));
                    pods.service_pods.extend(name);
                }
                None => match pair.value.key("feeds").filter(|_| self.known.contains(&pair.key)) {
                    Some(feeds) => pods.feeds.push((pair.key.clone(), feeds.clone())),
                    None => wrong.extend(without_url(&pair.value, &path)),
                },
            }
        }
        services
    }

    /// An agent of the pod, with the keys that it would have in a manifest.
    fn agent(
        &self,
        pair: &Pair,
        claw: &Node,
        file: &Node,
        path: &str,
        wrong: &mut Vec<Mistake>,
    ) -> Node {
        let at = file.place;
        let map = |pairs| Node { place: at, value: Value::Map(pairs) };
        let mut pairs = vec![
            entry("use", text(at, AGENT)),
            entry("name", text(pair.place, &pair.key)),
            entry("prompt", map(vec![entry("file", self.in_folder(file))])),
        ];
        let model = self.model.filter(|(agent, _)| *agent == pair.key);
        pairs.extend(model.map(|(_, model)| entry("model", text(at, model))));
        for (key, value) in claw.entries().into_iter().filter(|it| !OF_CLAW.contains(&it.0)) {
            if key == "model" && model.is_some() {
                continue;
            }
            let value = match key {
                "workspace" => self.in_folder(value),
                "streaming_config" => self.with_file_in_folder(value),
                _ => value.clone(),
            };
            pairs.push(entry(key, value));
        }
        if let Some(feeds) = claw.key("feeds") {
            pairs.push(entry("feeds", feeds.clone()));
        }
        if let Some(surfaces) = claw.key("surfaces") {
            let peers = surfaces.items().iter().enumerate().filter_map(|(number, surface)| {
                let said = surface.text()?;
                let name = said.strip_prefix(SURFACE).filter(|it| check::is_name(it));
                if name.is_none() && !said.is_empty() {
                    let text = format!("`{}` is no surface of a service", cut(said));
                    let mistake = Mistake::new(surface.place, text);
                    let mistake = mistake.at(&format!("{path}.surfaces[{number}]"));
                    wrong.push(mistake.example("surfaces: [\"service://claw-api\"]"));
                }
                Some(text(surface.place, name?))
            });
            let peers = Value::List(peers.collect());
            pairs.push(entry("peers", Node { place: surfaces.place, value: peers }));
        }
        map(pairs)
    }

    /// A service with a `url`. The path of its credential starts at the manifest's folder.
    fn service(&self, pair: &Pair) -> Pair {
        let mut pair = pair.clone();
        if let Value::Map(pairs) = &mut pair.value.value {
            let auth = pairs.iter_mut().filter(|it| it.key == "auth" && !it.value.is_null());
            auth.for_each(|it| it.value = self.in_folder(&it.value));
        }
        pair
    }

    /// A value whose key `file`, if there is one, is a path that starts at the pod's folder.
    fn with_file_in_folder(&self, node: &Node) -> Node {
        let mut node = node.clone();
        if let Value::Map(pairs) = &mut node.value {
            let file = pairs.iter_mut().filter(|it| it.key == "file");
            file.for_each(|it| it.value = self.in_folder(&it.value));
        }
        node
    }

    /// Turns a path that starts at the pod's folder into one that starts at the manifest's folder.
    fn in_folder(&self, node: &Node) -> Node {
        match node.text().filter(|it| !it.is_empty()) {
            Some(it) => text(node.place, &self.folder.join(it).display().to_string()),
            None => node.clone(),
        }
    }
}

/// Returns the mistake of a `master` that names no service of the pod. Returns None if the service
/// is there.
fn unknown_master(master: &Node, services: &[Pair]) -> Option<Mistake> {
    let name = master.text().filter(|it| !it.is_empty())?;
    let all: Vec<&str> = services.iter().map(|it| it.key.as_str()).collect();
    if all.contains(&name) {
        return None;
    }
    let text = format!("the pod has no service `{}`", cut(name));
    let mistake = Mistake::new(master.place, text).at(&format!("{CLAW}.master"));
    let mistake = mistake.or_nearest(name, all.iter().copied());
    Some(mistake.advice(match all.is_empty() {
        true => "declare it under `services`".to_owned(),
        false => format!("there is {}", all.join(", ")),
    }))
}

/// Returns the mistake of a service with a key that needs a `url`, but without a `url`. Returns
/// None if there is no such mistake.
fn without_url(service: &Node, path: &str) -> Option<Mistake> {
    let key = WITH_URL.into_iter().find(|it| service.key(it).is_some())?;
    let at = service.key(key)?;
    let text = format!("a service with `{key}` needs the key `url`");
    let mistake = Mistake::new(at.place, text).at(&check::joined(path, key));
    let advice = match key {
        "feeds" if service.key(CLAW).is_some() => "those of an agent stand under its `x-claw`",
        _ => "write it as in `url: \"http://127.0.0.1:8090\"`",
    };
    Some(mistake.advice(advice))
}

/// Turns the path of a value in an agent that was read from a pod file into the value's path in the
/// pod file.
pub(super) fn path_in_pod(path: &str) -> String {
    let inside = format!(".{CLAW}.");
    let Some((before, after)) = path.split_once(&inside) else { return path.to_owned() };
    match after {
        "name" => before.to_owned(),
        "prompt.file" => format!("{before}{inside}agent"),
        _ => match after.strip_prefix("peers[") {
            Some(rest) => format!("{before}{inside}surfaces[{rest}"),
            None => path.to_owned(),
        },
    }
}

pub(super) fn entry(key: &str, value: Node) -> Pair {
    Pair { key: key.to_owned(), place: value.place, value }
}

pub(super) fn text(place: Place, text: &str) -> Node {
    let (source, text) = (text.to_owned(), text.to_owned());
    let scalar = Scalar { source, text, kind: Plain::Text, is_plain: false };
    Node { place, value: Value::Scalar(scalar) }
}

/// Adds services to those of a manifest.
fn add_services(root: &mut Node, services: Vec<Pair>) {
    let place = root.place;
    let Value::Map(pairs) = &mut root.value else { return };
    if services.is_empty() {
        return;
    }
    let own = pairs.iter_mut().find(|it| it.key == "services");
    match own.map(|it| &mut it.value.value) {
        Some(Value::Map(own)) => own.extend(services),
        Some(own) => *own = Value::Map(services),
        None => pairs.push(entry("services", Node { place, value: Value::Map(services) })),
    }
}

/// Sets the file of all places in a value, except places whose file is set already.
pub(super) fn set_file(node: &mut Node, file: usize) {
    if node.place.file == 0 {
        node.place.file = file;
    }
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|it| set_file(it, file)),
        Value::Map(pairs) => pairs.iter_mut().for_each(|it| set_file_of(it, file)),
        Value::Scalar(_) => {}
    }
}

fn set_file_of(pair: &mut Pair, file: usize) {
    if pair.place.file == 0 {
        pair.place.file = file;
    }
    set_file(&mut pair.value, file);
}
