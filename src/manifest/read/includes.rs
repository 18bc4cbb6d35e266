//! The files that a manifest includes, each with an agent or a workflow. A mistake in such a file
//! has its place in this file.

use std::path::{Path, PathBuf};

use ignore::overrides::OverrideBuilder;

use crate::manifest::check;
use crate::manifest::document::bytes_of;
use crate::manifest::expand_variables::{Environment, expand};
use crate::manifest::key_table::AGENT;
use crate::manifest::key_table::include::{AGENT_ONLY, KINDS, agent_file};
use crate::manifest::mistake::{Mistake, Place, cut};
use crate::manifest::read::beside;
use crate::manifest::read::pods::{entry, set_file, text};
use crate::manifest::yaml;
use crate::manifest::yaml::{Node, Pair, Value};
use crate::schema::nearest;

/// The wildcards of a pattern. A path without these characters names one file.
const WILD: [char; 3] = ['*', '?', '['];
/// The key of an item of `listeners` that names its workflows.
pub(super) const WORKFLOWS: &str = "workflows";
/// The item of `import.tools` that stands for all tools of the manifest.
const ALL: &str = "...";
/// The lists of `import` that have names of listeners.
const LISTENERS: [&str; 3] = ["tools", "agents", "relics"];

/// The content of a manifest's included files.
#[derive(Default)]
pub(super) struct Includes {
    /// The agents, each as a listener of a manifest.
    pub(super) agents: Vec<Node>,
    /// The workflows, each as its file has it.
    pub(super) workflows: Vec<Node>,
}

/// Reads the files that a manifest includes, and the files that these files import. `files` has the
/// paths of the manifest's further files, as mistakes name them. `model` holds the name of an
/// agent, and the name of the model that the agent gets.
pub(super) fn load(
    file: &Path,
    root: &Node,
    environment: Environment<'_>,
    model: Option<(&str, &str)>,
    files: &mut Vec<String>,
    wrong: &mut Vec<Mistake>,
) -> Includes {
    let tools = tools(root);
    let mut loader = Loader { file, environment, model, tools, read: Vec::new(), files, wrong };
    let mut includes = Includes::default();
    let patterns = root.key("include").map(Node::items).unwrap_or_default();
    for (number, at) in patterns.iter().enumerate() {
        let Value::Scalar(pattern) = &at.value else { continue };
        if pattern.text.is_empty() {
            continue;
        }
        match matching(file, &pattern.text) {
            Ok(paths) => paths.iter().for_each(|it| {
                drop(loader.load(it, (at.place, &format!("include[{number}]")), &mut includes));
            }),
            Err(why) => {
                // A part of a variable's value, such as its folder, would not be known as secret.
                let text = format!("{}: {why}", cut(&pattern.source));
                let mistake = Mistake::new(at.place, text).at(&format!("include[{number}]"));
                loader.wrong.push(mistake);
            }
        }
    }
    includes
}

/// The names of the manifest's own listeners that aren't agents.
fn tools(root: &Node) -> Vec<String> {
    let items = root.key("listeners").map(Node::items).unwrap_or_default();
    let named = items.iter().filter_map(|it| {
        let kind = it.key("use")?.text().filter(|it| *it != AGENT)?;
        Some(it.key("name").and_then(Node::text).unwrap_or(kind).to_owned())
    });
    named.collect()
}

/// Returns the files that a pattern matches, in the order of their names. Only the last part of
/// `pattern` may have wildcards. An error shows no part of the pattern.
fn matching(file: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let whole = beside(file, pattern);
    if !pattern.contains(WILD) {
        return Ok(vec![whole]);
    }
    let folder = Path::new(pattern).parent().unwrap_or(Path::new(""));
    if folder.to_string_lossy().contains(WILD) {
        return Err("only the file name of a pattern may have *, ? and [".to_owned());
    }
    let pattern = &*whole;
    let folder = pattern.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    let mut builder = OverrideBuilder::new(folder);
    let unreadable = |_| "no pattern of a file name".to_owned();
    let set = builder.add(&name).and_then(|it| it.build()).map_err(unreadable)?;
    let read = |error: std::io::Error| error.to_string();
    let mut found = Vec::new();
    for item in std::fs::read_dir(folder).map_err(read)? {
        let path = item.map_err(read)?.path();
        if path.is_file() && set.matched(&path, false).is_whitelist() {
            found.push(path);
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err("no file matches".to_owned()),
        false => Ok(found),
    }
}

struct Loader<'a> {
    file: &'a Path,
    environment: Environment<'a>,
    model: Option<(&'a str, &'a str)>,
    tools: Vec<String>,
    /// The files that were read, each with what [`Loader::load`] returns for it.
    read: Vec<(PathBuf, Result<Option<String>, WrongFile>)>,
    files: &'a mut Vec<String>,
    wrong: &'a mut Vec<Mistake>,
}

/// A file can't be read, or has no kind. The mistake has been added.
#[derive(Clone, Copy, Debug)]
struct WrongFile;

impl Loader<'_> {
    /// Reads a file, unless it was read before. `at` is the place that names the file. Returns the
    /// name of the file's workflow, if there is one.
    fn load(
        &mut self,
        path: &Path,
        at: (Place, &str),
        includes: &mut Includes,
    ) -> Result<Option<String>, WrongFile> {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some((_, found)) = self.read.iter().find(|(it, _)| *it == whole) {
            return found.clone();
        }
        let bytes = match bytes_of(path) {
            Ok(it) => it,
            Err(error) => {
                let text = format!("{}: {error}", path.display());
                self.wrong.push(Mistake::new(at.0, text).at(at.1));
                return Err(WrongFile);
            }
        };
        self.files.push(path.display().to_string());
        let Some((node, kind)) = self.parse(&bytes) else {
            self.read.push((whole, Err(WrongFile)));
            return Err(WrongFile);
        };
        let is_workflow = kind == "Workflow";
        let name = node.key("name").and_then(Node::text).map(str::to_owned);
        let name = name.filter(|_| is_workflow);
        self.read.push((whole, Ok(name.clone())));
        if is_workflow {
            includes.workflows.push(node);
        } else {
            self.agent(path, node, includes);
        }
        Ok(name)
    }

    /// Parses the file that `files` lists last. Returns its content and its kind. If the file isn't
    /// YAML or has no kind, adds a mistake and returns None.
    fn parse(&mut self, bytes: &[u8]) -> Option<(Node, &'static str)> {
        let number = self.files.len();
        let mut node = match yaml::read(bytes) {
            Ok(it) => it,
            Err(mut mistake) => {
                mistake.place.file = number;
                self.wrong.push(mistake);
                return None;
            }
        };
        set_file(&mut node, number);
        let kind = self.kind(&node)?;
        Some((node, kind))
    }

    /// Returns the kind of a file, which is one of [`KINDS`]. If the file has no such kind, adds a
    /// mistake and returns None.
    fn kind(&mut self, node: &Node) -> Option<&'static str> {
        let at = node.key("kind");
        let said = at.and_then(Node::text);
        if let Some(kind) = said.and_then(|said| KINDS.into_iter().find(|it| *it == said)) {
            return Some(kind);
        }
        let all = KINDS.join(" or ");
        let mistake = match said {
            Some(it) => {
                let text = format!("`{}` is no kind of file: it is {all}", cut(it));
                let place = at.map_or(node.place, |it| it.place);
                Mistake::new(place, text).at("kind").or_nearest(it, KINDS)
            }
            None => Mistake::new(node.place, format!("an included file needs `kind: {all}`")),
        };
        self.wrong.push(mistake.example("kind: Workflow"));
        None
    }

    /// Adds the agent of a file, with the keys that it would have in a manifest.
    fn agent(&mut self, path: &Path, mut node: Node, includes: &mut Includes) {
        let mut found = Vec::new();
        expand(&mut node, self.environment, &mut found);
        let unset: Vec<Place> = found.iter().map(|it| it.place).collect();
        let mut checked = Vec::new();
        check::check(&node, "", &agent_file(), "kind: Agent", &mut checked);
        checked.retain(|it| !unset.contains(&it.place));
        found.extend(checked);
        let file = node.place.file;
        found.iter_mut().for_each(|it| it.place.file = file);
        self.wrong.extend(found);
        let peers = self.imported(path, &node, includes);
        let place = node.place;
        let Value::Map(pairs) = node.value else { return };
        let is_model = |it: &Pair| it.key == "model";
        let is_meant = self.model.filter(|(agent, _)| {
            pairs.iter().any(|it| it.key == "name" && it.value.text() == Some(*agent))
        });
        let mut kept: Vec<Pair> =
            pairs.into_iter().filter(|it| !AGENT_ONLY.contains(&&*it.key)).collect();
        if let Some((_, model)) = is_meant {
            kept.retain(|it| !is_model(it));
            kept.push(entry("model", text(place, model)));
        }
        kept.iter_mut().filter(|it| it.key == "description").for_each(|it| {
            "describe".clone_into(&mut it.key);
        });
        kept.push(entry("use", text(place, AGENT)));
        let (peers, workflows) = peers;
        let list = |items| Node { place, value: Value::List(items) };
        for (key, items) in [("peers", peers), (WORKFLOWS, workflows)] {
            match kept.iter_mut().find(|it| it.key == key).map(|it| &mut it.value.value) {
                Some(Value::List(own)) => own.extend(items),
                Some(_) => {}
                None => kept.push(entry(key, list(items))),
            }
        }
        kept.iter_mut().for_each(|it| it.place.file = file);
        includes.agents.push(Node { place, value: Value::Map(kept) });
    }

    /// Returns the names of the listeners and the names of the workflows that an agent imports.
    fn imported(
        &mut self,
        path: &Path,
        node: &Node,
        includes: &mut Includes,
    ) -> (Vec<Node>, Vec<Node>) {
        let (mut peers, mut workflows) = (Vec::new(), Vec::new());
        let Some(import) = node.key("import") else { return (peers, workflows) };
        let items = |key: &str| import.key(key).map(Node::items).unwrap_or_default();
        for item in LISTENERS.iter().flat_map(|it| items(it)) {
            match item.text() {
                Some(ALL) => peers.extend(self.tools.iter().map(|it| text(item.place, it))),
                Some(name) if !name.is_empty() => peers.push(text(item.place, name)),
                _ => {}
            }
        }
        for (number, item) in items(WORKFLOWS).iter().enumerate() {
            let Some(said) = item.text().filter(|it| !it.is_empty()) else { continue };
            if check::is_name(said) && !is_file_name(said) {
                workflows.push(text(item.place, said));
                continue;
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            let here = folder.join(said);
            // A path that isn't found beside the agent's file starts at the manifest's folder. The
            // specification of metadata writes `./workflows/…` in agents' files of any folder.
            let path = if here.exists() { here } else { beside(self.file, said) };
            let at = (item.place, &*format!("import.workflows[{number}]"));
            let Ok(name) = self.load(&path, at, includes) else { continue };
            if name.is_none() {
                let text = format!("{} has no workflow", path.display());
                self.wrong.push(Mistake::new(at.0, text).at(at.1));
            }
            workflows.extend(name.map(|it| text(item.place, &it)));
        }
        (peers, workflows)
    }
}

/// Whether a text names a file, and not a workflow.
fn is_file_name(text: &str) -> bool {
    [".yml", ".yaml", ".json"].iter().any(|it| text.ends_with(it))
}

impl Includes {
    /// Adds the workflows of each agent to the agent's peers. Adds a mistake for each workflow that
    /// doesn't exist.
    pub(super) fn join(&mut self, root: &mut Node, wrong: &mut Vec<Mistake>) {
        let names =
            self.workflows.iter().filter_map(|it| it.key("name")?.text().map(str::to_owned));
        let known: Vec<String> = names.collect();
        let own = match &mut root.value {
            Value::Map(pairs) => pairs.iter_mut().find(|it| it.key == "listeners"),
            _ => None,
        };
        let own = match own.map(|it| &mut it.value.value) {
            Some(Value::List(items)) => &mut items[..],
            _ => &mut [],
        };
        let own = own.iter_mut().enumerate();
        let own = own.map(|(number, it)| (format!("listeners[{number}]"), it));
        let included = self.agents.iter_mut().map(|it| (String::new(), it));
        join_peers(own.chain(included), &known, wrong);
    }
}

fn join_peers<'a>(
    items: impl Iterator<Item = (String, &'a mut Node)>,
    known: &[String],
    wrong: &mut Vec<Mistake>,
) {
    for (path, item) in items {
        let named: Vec<Node> = item.key(WORKFLOWS).map(Node::items).unwrap_or_default().to_vec();
        for (number, at) in named.iter().enumerate() {
            let Some(name) = at.text().filter(|it| known.iter().all(|known| known != it)) else {
                continue;
            };
            let text = format!("there is no workflow `{}`", cut(name));
            let path =
                format!("{path}{}{WORKFLOWS}[{number}]", if path.is_empty() { "" } else { "." });
            let mistake = Mistake::new(at.place, text).at(&path);
            let near = nearest(name, known.iter().map(String::as_str));
            wrong.push(match (near, known) {
                (Some(it), _) => mistake.or_nearest(name, [it]),
                (None, []) => mistake.advice("name its file under `include`"),
                (None, all) => mistake.advice(format!("there is {}", all.join(", "))),
            });
        }
        let place = item.place;
        let Value::Map(pairs) = &mut item.value else { continue };
        if named.is_empty() {
            continue;
        }
        match pairs.iter_mut().find(|it| it.key == "peers").map(|it| &mut it.value.value) {
            Some(Value::List(peers)) => peers.extend(named),
            Some(_) => {}
            None => pairs.push(entry("peers", Node { place, value: Value::List(named) })),
        }
    }
}
