//! `prompt`: shows the prompt that a model got.

use std::path::Path;

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::{data, transcript};
use crate::id::EntryId;
use crate::listeners::agent::cost::by_part;
use crate::listeners::agent::recall::{Forgotten, Recalled, recall};
use crate::log::Log as _;

/// Prints the exact prompt of an agent's turn: the system prompt, the messages and the tools.
///
/// The log has no copy of a prompt, but a `cognition_in` with the prompt's digest. The prompt is
/// made from the thread again, and shown only if it has this digest. THREAD/SEQ may be any message
/// of the turn.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse prompt sess-k3v9x2ma/3
  pumphouse prompt sess-k3v9x2ma/3 --json | jq -r '.messages[-1].content'
  pumphouse prompt sess-k3v9x2ma/3 --cost     # about how many tokens each part takes

Exits with 1 where there is no such turn, or the digest differs.")]
pub(crate) struct Prompt {
    /// The turn's cognition_in, or another of its messages, as THREAD/SEQ.
    #[arg(value_name = "THREAD/SEQ")]
    entry: EntryId,
    /// Prints about how many tokens each part of the prompt takes, instead of the prompt.
    #[arg(long)]
    cost: bool,
}

impl Prompt {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        data::entry(&log, &self.entry).await?;
        let thread = transcript::read(&log, &self.entry.thread, self.entry.seq).await?;
        log.close().await?;
        let recalled = recall(&thread, self.entry.seq).map_err(|it| self.forgotten(&it))?;
        match to.json {
            true if self.cost => to.object(&cost_object(&recalled))?,
            false if self.cost => to.text(&cost_lines(&recalled))?,
            true => to.object(&object(&recalled))?,
            false => to.text(&lines(&recalled, to.style))?,
        }
        Ok(Ending::Well)
    }

    fn forgotten(&self, why: &Forgotten) -> Failure {
        let EntryId { thread, .. } = &self.entry;
        let advice = match why {
            Forgotten::NoTurn => {
                format!("a turn begins with its cognition_in, which `pumphouse show {thread}` has")
            }
            Forgotten::Form { .. } => "the version that wrote the log knows that form".to_owned(),
            _ => "`pumphouse verify` tells whether the log was changed".to_owned(),
        };
        Failure::Wrong(format!("{}: {why}; {advice}", self.entry))
    }
}

fn lines(it: &Recalled, style: Style) -> String {
    let (begun, prompt) = (&it.begun, &it.prompt);
    let entry = style.paint(Paint::Strong, &audit::line(&it.entry.to_string()));
    let agent = style.paint(Paint::Who, &audit::line(&it.agent));
    let facts = format!("turn {}  of {}  {} bytes", begun.turn, begun.model, begun.bytes);
    let digest = format!("digest {}, as recorded", begun.digest);
    let digest = style.paint(Paint::Faint, &audit::line(&digest));
    let mut out = format!("{entry}  {agent}  {}\n{digest}\n", audit::line(&facts));
    let system = Some(("system", &prompt.system)).filter(|(_, it)| !it.is_empty());
    let said = prompt.messages.iter().map(|it| (it.role.as_str(), &it.text));
    for (role, text) in system.into_iter().chain(said) {
        let role = style.paint(Paint::Strong, role);
        out.push_str(&format!("\n{role}\n{}", audit::quoted(text)));
    }
    for it in &prompt.tools {
        let name = style.paint(Paint::Strong, &audit::line(&format!("tool {}", it.name)));
        let text = format!("{}\n{:#}", it.description, it.parameters);
        out.push_str(&format!("\n{name}\n{}", audit::quoted(&text)));
    }
    if let Some(it) = &prompt.format {
        let name = style.paint(Paint::Strong, &audit::line(&format!("answer {}", it.name)));
        let text = format!("{}\n{:#}", it.description, it.schema);
        out.push_str(&format!("\n{name}\n{}", audit::quoted(&text)));
    }
    out
}

fn cost_lines(it: &Recalled) -> String {
    let parts = by_part(&it.prompt);
    let sum: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
    let line = |part: &str, tokens: u64| {
        let share = (tokens * 100).checked_div(sum).unwrap_or(0);
        format!("{part:<12} {tokens:>9}  {share:>3} %\n")
    };
    let lines: String = parts.iter().map(|(part, tokens)| line(part, *tokens)).collect();
    format!("{lines}{}about, at four bytes a token\n", line("all", sum))
}

fn cost_object(it: &Recalled) -> Value {
    let parts: serde_json::Map<String, Value> =
        by_part(&it.prompt).into_iter().map(|(part, it)| (part.to_owned(), it.into())).collect();
    json!({ "entry": it.entry.to_string(), "agent": it.agent, "tokens": parts })
}

fn object(it: &Recalled) -> Value {
    let said = it.prompt.messages.iter();
    let said = said.map(|it| {
        let mut said = json!({ "role": it.role.as_str(), "content": it.text });
        if !it.attached.is_empty() {
            let types = it.attached.iter().map(|it| Value::from(it.media_type.as_str()));
            said["attached"] = types.collect();
        }
        said
    });
    let tools = it.prompt.tools.iter().map(|it| {
        json!({
            "name": it.name,
            "description": it.description,
            "parameters": it.parameters,
        })
    });
    let mut object = json!({
        "entry": it.entry.to_string(),
        "agent": it.agent,
        "turn": it.begun.turn,
        "model": it.begun.model,
        "until": it.begun.until,
        "digest": it.begun.digest,
        "system": it.prompt.system,
        "messages": said.collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "max_tokens": it.prompt.max_tokens,
        "temperature": it.prompt.temperature,
    });
    if let Some(it) = &it.prompt.format {
        object["format"] = json!({ "name": it.name, "schema": it.schema });
    }
    object
}
