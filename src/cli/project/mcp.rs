//! `mcp`: accepts the tools of MCP servers that a manifest names.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::audit::{self, Paint};
use crate::cli::base::organism::{Organism, here};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::engine::Builder;
use crate::listeners::tool::mcp::record::{Digests, digests};

/// How many characters of a digest are shown to people.
const DIGEST_SHOWN: usize = 12;

/// Accepts the tools of the manifest's MCP servers.
#[derive(Debug, clap::Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Accept(Accept),
}

/// Asks each MCP server of the manifest for its tools, and accepts every change: tools that were
/// added, changed or removed.
///
/// The accepted descriptions are in mcp.lock.json beside the manifest. A running pump uses them
/// from its next start on. Before that start, read what changed, such as by
/// `git diff mcp.lock.json`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse check --live                  which tools changed, with nothing accepted
  pumphouse mcp accept
  pumphouse mcp accept conf/organism.yaml --json

Exit codes: 0 accepted; 2 the manifest has mistakes, or a server can't be asked.")]
struct Accept {
    /// The manifest; without it, organism.yaml in the current folder.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Mcp {
    pub(crate) fn run(self, builder: Builder, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        match self.verb {
            Verb::Accept(it) => it.run(builder, to),
        }
    }
}

impl Accept {
    fn run(self, builder: Builder, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let missing = || "there is no organism.yaml here: name a manifest".to_owned();
        let file = self.file.or_else(|| here().map(Path::to_owned));
        let file = file.ok_or_else(|| Failure::Untried(missing()))?;
        let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let before = digests(folder).map_err(Failure::Untried)?;
        let read = Organism::read_accepting(Some(&file), builder).map(drop);
        let after = digests(folder).map_err(Failure::Untried)?;
        let changes = changes(&before, &after);
        // If one server can't be asked, the tools of the others are accepted all the same.
        if to.json {
            changes.iter().try_for_each(|it| it.object(to))?;
        } else if read.is_ok() || !changes.is_empty() {
            tell(&changes, &after, to)?;
        }
        read?;
        Ok(Ending::Well)
    }
}

/// A tool that was added or removed, or whose description has changed. `before` and `after` are the
/// digests of its descriptions.
struct Change<'a> {
    server: &'a str,
    tool: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl Change<'_> {
    fn object(&self, to: &mut Screen<'_>) -> io::Result<()> {
        to.object(&json!({
            "server": self.server,
            "tool": self.tool,
            "before": self.before,
            "after": self.after,
        }))
    }
}

fn changes<'a>(before: &'a Digests, after: &'a Digests) -> Vec<Change<'a>> {
    let servers: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of_server = |server: &'a String| {
        let (before, after) = (before.get(server), after.get(server));
        let names = before.into_iter().chain(after).flat_map(|it| it.keys());
        let tools: BTreeSet<&String> = names.collect();
        tools.into_iter().map(move |tool| Change {
            server,
            tool,
            before: before.and_then(|it| it.get(tool)).map(String::as_str),
            after: after.and_then(|it| it.get(tool)).map(String::as_str),
        })
    };
    servers.into_iter().flat_map(of_server).filter(|it| it.before != it.after).collect()
}

fn tell(changes: &[Change<'_>], after: &Digests, to: &mut Screen<'_>) -> io::Result<()> {
    let mut server = "";
    for it in changes {
        if it.server != server {
            server = it.server;
            let head = to.style.paint(Paint::Strong, &audit::line(server));
            to.line(&head)?;
        }
        let short = |it: &str| it.chars().take(DIGEST_SHOWN).collect::<String>();
        let (sign, paint, digests) = match (it.before, it.after) {
            (Some(before), Some(after)) => {
                ("~", Paint::Who, format!("{} → {}", short(before), short(after)))
            }
            (None, Some(after)) => ("+", Paint::Well, short(after)),
            (before, None) => ("-", Paint::Wrong, short(before.unwrap_or_default())),
        };
        let sign = to.style.paint(paint, sign);
        to.line(&format!("  {sign} {}  {digests}", audit::line(it.tool)))?;
    }
    let tools: usize = after.values().map(|it| it.len()).sum();
    let servers = after.len();
    let changed = if changes.is_empty() { "nothing changed; " } else { "" };
    to.line(&format!("{changed}{tools} tools of {servers} servers are accepted"))
}
