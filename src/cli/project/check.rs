//! `check`: finds mistakes in a manifest, and shows what the manifest serves.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::audit;
use crate::cli::base::organism::{
    Organism, Unread, check_open_doors, check_triggers, complained, told,
};
use crate::cli::base::program_paths::KeptPaths;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::door::Tokens;
use crate::listener::{Described, DoorAccess};
use crate::listeners::agent::offered_tools::{LeftOut, OfferedTools};
use crate::listeners::models::WithModels;
use crate::log::Durability;
use crate::manifest::{Door, Mistake, Mistakes};
use crate::schema::Schema;

/// Reads a manifest, tells every mistake in it at once, and shows what a `run` would serve.
///
/// `check` opens no log and no socket. Without --live, it starts nothing either.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse check
  pumphouse check conf/organism.yaml --json

Exit codes: 0 sound; 1 there are mistakes; 2 the file can't be read.")]
pub(crate) struct Check {
    /// The manifest; without it, organism.yaml in the current folder, if there is one.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Starts the MCP servers, asks them for their tools, and ends them. If a server's tools aren't
    /// recorded yet, they are recorded.
    #[arg(long)]
    live: bool,
}

impl Check {
    pub(crate) fn run(
        self,
        builder: crate::engine::Builder,
        data: Option<&Path>,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let read = if self.live { Organism::read_asking } else { Organism::read };
        let organism = match read(self.file.as_deref(), builder, data) {
            Ok(it) => it,
            Err(unread) => return told_of(unread, to),
        };
        let kept = KeptPaths::of(&organism);
        let Organism { builder, file, name, tokens, doors, durability, places, .. } = organism;
        let warnings = organism.warnings;
        let data = organism.data;
        let file = file.map(|it| it.display().to_string());
        let models = builder.models().iter().map(|(name, it)| (name.to_owned(), it.describe()));
        let models = models.collect();
        let plan = match builder.build() {
            Ok(plan) => plan,
            Err(all) => return told_of(complained(&all, places.as_ref()), to),
        };
        let (source, all) = (&organism.trigger_source, plan.capabilities());
        if let Err(unread) = check_triggers(source, all, places.as_ref()) {
            return told_of(unread, to);
        }
        let found = check_open_doors(&plan, &doors, &tokens, places.as_ref());
        if let Err(unread) = found.and_then(|()| kept.check(&plan, places.as_ref())) {
            return told_of(unread, to);
        }
        let (listeners, advice) = (plan.listeners().to_vec(), plan.warnings().to_vec());
        let left_out = |it: &Described| {
            let offered = it.extension::<OfferedTools>();
            let all = offered.map(|it| it.left_out(plan.capabilities())).unwrap_or_default();
            (!all.is_empty()).then(|| (it.name.clone(), all))
        };
        let left_out = listeners.iter().filter_map(left_out).collect();
        let is_taken = |it: &Schema| plan.capabilities().takers(&it.name).next().is_some();
        let schemas = plan.schemas().into_iter().filter(|it| it.original().is_some());
        let schemas = schemas.filter(|it| !is_taken(it));
        let schemas = schemas.map(|it| (it.name.to_string(), it.loose().len())).collect();
        let report = Report {
            file,
            name,
            data,
            durability,
            tokens,
            doors,
            schemas,
            models,
            listeners,
            advice,
            left_out,
            warnings,
        };
        if to.json {
            to.object(&report.json())?;
        } else {
            report.say(to)?;
        }
        Ok(Ending::Well)
    }
}

/// Shows the mistakes. Any other failure is returned as an error.
fn told_of(unread: Unread, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    match unread {
        Unread::Failure(it) => Err(it),
        Unread::Mistakes(all) => {
            mistakes(&all, to)?;
            Ok(Ending::Wrong)
        }
    }
}

fn mistakes(all: &Mistakes, to: &mut Screen<'_>) -> io::Result<()> {
    if !to.json {
        return to.line(&told(all));
    }
    all.all().iter().try_for_each(|it| to.object(&object(all.file_of(it), it)))
}

fn object(file: &str, it: &Mistake) -> Value {
    json!({
        "file": file,
        "line": it.place.line,
        "column": it.place.column,
        "path": it.path,
        "message": it.message,
        "nearest": it.nearest,
        "help": it.help(),
    })
}

/// What a `run` would serve.
struct Report {
    file: Option<String>,
    name: Option<String>,
    data: PathBuf,
    durability: Durability,
    tokens: Tokens,
    doors: Vec<Door>,
    /// The declared payloads that no listener takes. The number counts the places where a payload's
    /// schema allows more than the JSON Schema that it was made from.
    schemas: Vec<(String, usize)>,
    /// The names and descriptions of models.
    models: Vec<(String, String)>,
    listeners: Vec<Described>,
    /// The plan's warnings about its listeners.
    advice: Vec<String>,
    /// The calls that an agent's model can't be offered.
    left_out: Vec<(String, Vec<LeftOut>)>,
    /// Probable mistakes in files that the manifest names.
    warnings: Vec<Mistakes>,
}

impl Report {
    fn log(&self) -> Option<String> {
        let kept = self.durability != Durability::Memory;
        kept.then(|| self.data.join(crate::cli::base::data::LOG).display().to_string())
    }

    fn json(&self) -> Value {
        let listeners = self.listeners.iter().map(|it| {
            let takes = takes(it);
            json!({
                "name": it.name,
                "text": it.text,
                "takes": takes,
                "door": it.door.to_string(),
                "peers": it.peers.as_ref().map(|it| it.to_vec()),
                "grants": it.grants,
            })
        });
        let doors = self.doors.iter().map(|it| match it {
            Door::Tcp { address, tls } => json!({ "tcp": address, "tls": tls.is_some() }),
            Door::Unix(path) => json!({ "unix": path }),
            Door::Metrics(address) => json!({ "metrics": address }),
            Door::MetricsToAnyone(address) => json!({ "metrics_to_anyone": address }),
        });
        let warnings = self.warnings.iter();
        let warnings = warnings.flat_map(|all| all.all().iter().map(|it| object(all.file(), it)));
        let advice = self.advice.iter().map(|it| json!({ "message": it }));
        let warnings = warnings.chain(advice);
        let schemas = self.schemas.iter().map(|(name, it)| json!({ "name": name, "loose": it }));
        let models = self.models.iter().map(|(name, it)| json!({ "name": name, "text": it }));
        let left_out = self.left_out.iter().flat_map(|(agent, all)| {
            all.iter().map(move |it| json!({ "agent": agent, "name": it.name, "why": it.why }))
        });
        json!({
            "sound": true,
            "file": self.file,
            "name": self.name,
            "log": self.log(),
            "durability": self.durability.as_str(),
            "doors": doors.collect::<Vec<_>>(),
            "identities": self.tokens.names().collect::<Vec<_>>(),
            "schemas": schemas.collect::<Vec<_>>(),
            "models": models.collect::<Vec<_>>(),
            "listeners": listeners.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
            "warnings": warnings.collect::<Vec<_>>(),
        })
    }

    fn say_doors(&self, to: &mut Screen<'_>) -> io::Result<()> {
        for door in &self.doors {
            match door {
                Door::Tcp { address, tls } => {
                    let tls = if tls.is_some() { ", TLS" } else { "" };
                    to.line(&format!("door      tcp {address}{tls}"))?;
                }
                Door::Unix(path) => to.line(&format!("door      unix {}", path.display()))?,
                Door::Metrics(address) | Door::MetricsToAnyone(address) => {
                    to.line(&format!("metrics   http://{address}/metrics"))?;
                }
            }
        }
        if self.doors.is_empty() {
            to.line("door      none: only the program itself can push")?;
        }
        Ok(())
    }

    fn say(&self, to: &mut Screen<'_>) -> io::Result<()> {
        let of = self.name.as_ref().map_or(String::new(), |it| format!(": {it}"));
        match &self.file {
            Some(file) => to.line(&format!("{file} is sound{of}"))?,
            None => to.line("there is no manifest here; without one, `run` serves this")?,
        }
        let log = self.log().unwrap_or_else(|| "in memory".to_owned());
        to.line(&format!("log       {log} ({})", self.durability))?;
        self.say_doors(to)?;
        let names: Vec<String> = self.tokens.names().collect();
        if !names.is_empty() {
            to.line(&format!("identity  {}", names.join(", ")))?;
        }
        for (name, loose) in &self.schemas {
            let loose = match loose {
                0 => String::new(),
                1 => "  1 place is held against the JSON Schema alone".to_owned(),
                it => format!("  {it} places are held against the JSON Schema alone"),
            };
            to.line(&format!("schema    {name}{loose}"))?;
        }
        for (name, model) in &self.models {
            to.line(&format!("model     {name}  {model}"))?;
        }
        for it in &self.listeners {
            let text = it.text.as_deref().unwrap_or("–");
            to.line(&format!("listener  {}  {text}", it.name))?;
            for name in takes(it) {
                to.line(&format!("  takes   {name}"))?;
            }
            if let Some(model) = &it.model {
                to.line(&format!("  model   {}", audit::line(model)))?;
            }
            // Without tokens there are no others than `console`, which counts as an operator.
            let usual = match names.is_empty() {
                true => DoorAccess::by_effects(it.effects),
                false => DoorAccess::Everybody,
            };
            if it.door != usual {
                to.line(&format!("  door    {}", it.door))?;
            }
            if let Some(peers) = &it.peers {
                let peers = if peers.is_empty() { "nobody".to_owned() } else { peers.join(", ") };
                to.line(&format!("  peers   {peers}"))?;
            }
            let left_out = self.left_out.iter().filter(|(agent, _)| *agent == it.name);
            for left_out in left_out.flat_map(|(_, all)| all) {
                let text = format!("{} can't be offered: {}", left_out.name, left_out.why);
                to.line(&format!("  warning {}", audit::line(&text)))?;
            }
            for grant in &it.grants {
                to.line(&format!("  grant   {grant}"))?;
            }
        }
        for warning in &self.advice {
            to.line(&format!("warning   {warning}"))?;
        }
        for all in &self.warnings {
            let count = all.all().len();
            let warnings = if count == 1 { "warning" } else { "warnings" };
            to.line(&format!("{count} {warnings} in {}\n{all}", all.file()))?;
        }
        Ok(())
    }
}

/// Returns the names of the payloads that a listener takes, in order.
fn takes(it: &Described) -> Vec<String> {
    let mut takes: Vec<String> = it.takes.iter().map(ToString::to_string).collect();
    takes.sort();
    takes
}
