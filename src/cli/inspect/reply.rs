//! `inspect reply`: shows what the pump understands of a model's reply, event by event.

use std::fs;
use std::io::{self, Read as _};

use serde_json::{Map, Value, json};

use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::inspect::chunks::Chunks;
use crate::reply::{
    Attribute, Broken, Config, Dialect, Element, Event, Kind, Markup, Parser, What,
};
use crate::xml::Place;

/// Reads a model's reply as an agent does, and prints one JSON object a line for each event, with
/// adjacent text joined. The reply's calls don't run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse inspect reply reply.txt
  pumphouse inspect reply --dialect tool_use --peer calculate reply.txt
  pumphouse inspect reply --chunks 1 reply.txt | jq -r 'select(.event == \"broken\") | .reason'

The `text` or `source` of all lines, joined, is the reply.
Exits with 0 whatever the reply is; bytes that aren't UTF-8 become U+FFFD.")]
pub(crate) struct Reply {
    /// How the model writes its calls.
    #[arg(long, value_enum, default_value_t = Calls::Tags)]
    dialect: Calls,
    /// The chunks that the reply is read in: whole, N characters each, or random sizes by a seed.
    #[arg(long, default_value = "whole", value_name = "whole|N|random:SEED")]
    chunks: Chunks,
    /// The local name of the agent's own payload. The content of such an element is parsed as if it
    /// stood outside the element.
    #[arg(long, value_name = "NAME")]
    root: Vec<String>,
    /// The local name of a peer's payload.
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,
    /// Reads calls within a response as calls; without this they are text.
    #[arg(long)]
    actions_in_response: bool,
    /// The file to read; - stands for the standard input.
    #[arg(value_name = "FILE")]
    file: String,
}

/// How calls are written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Calls {
    /// As tags.
    Tags,
    /// As tags, or as JSON in the text.
    ToolUse,
}

impl Reply {
    pub(crate) fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let text = self.read()?;
        let mut config = Config::default();
        let markup = self.root.iter().fold(Markup::default(), |it, name| it.root(name));
        config.markup = self.peer.iter().fold(markup, |it, name| it.peer(name));
        config.actions_in_response = self.actions_in_response;
        config.dialect = match self.dialect {
            Calls::Tags => Dialect::Tags,
            Calls::ToolUse => Dialect::ToolUse,
        };
        let mut lines = Lines { waiting: None, to, ended: Ok(()) };
        let mut parser = Parser::new(config);
        let (mut chunks, mut rest) = (self.chunks, &*text);
        while !rest.is_empty() {
            let count = chunks.next();
            let end = rest.char_indices().nth(count).map_or(rest.len(), |(end, _)| end);
            let (chunk, later) = rest.split_at(end);
            parser.feed(chunk, &mut |event| lines.take(event));
            rest = later;
        }
        parser.finish(&mut |event| lines.take(event));
        lines.ended.map(|()| Ending::Well)
    }

    fn read(&self) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        let read = match &*self.file {
            "-" => io::stdin().lock().read_to_end(&mut bytes).map(drop),
            file => fs::read(file).map(|it| bytes = it),
        };
        read.map_err(|it| Failure::Untried(format!("{}: {it}", self.file)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Prints events, with adjacent text joined.
struct Lines<'a, 'b> {
    /// Text that may still be continued: the name of its event, the text, and its place.
    waiting: Option<(&'static str, String, Place)>,
    to: &'a mut Screen<'b>,
    ended: Result<(), Failure>,
}

impl Lines<'_, '_> {
    fn take(&mut self, event: Event<'_>) {
        let piece = match event.what {
            What::Text { within: Some(Kind::Thought) } => Some("thought"),
            What::Text { within: Some(Kind::Response) } => Some("response"),
            What::Text { .. } => Some("text"),
            What::Discarded { .. } => Some("discarded"),
            _ => None,
        };
        if let (Some(piece), Some((name, text, _))) = (piece, &mut self.waiting)
            && piece == *name
        {
            text.push_str(event.source);
            return;
        }
        if let Some((name, text, Place { line, column, .. })) = self.waiting.take() {
            self.print(&json!({ "event": name, "text": text, "line": line, "column": column }));
        }
        match piece {
            Some(piece) => {
                self.waiting = Some((piece, event.source.to_owned(), event.place));
            }
            None => self.print(&object(&event)),
        }
    }

    fn print(&mut self, object: &Value) {
        if self.ended.is_ok() {
            self.ended = self.to.object(object).map_err(Failure::from);
        }
    }
}

/// Returns an event other than text as a JSON object.
fn object(event: &Event<'_>) -> Value {
    let Event { what, source, place: Place { line, column, .. }, .. } = event;
    let place = |mut object: Value| {
        object["source"] = json!(source);
        object["line"] = json!(line);
        object["column"] = json!(column);
        object
    };
    place(match what {
        What::Opened(Element { name, attributes, .. }) => {
            json!({ "event": "opened", "name": name, "attributes": pairs(attributes) })
        }
        What::Closed(Element { name, attributes, body, .. }) => json!({
            "event": "closed",
            "name": name,
            "attributes": pairs(attributes),
            "body": body.as_str(),
        }),
        What::Broken(Broken { name, reason, snippet, .. }) => {
            json!({ "event": "broken", "name": name, "reason": reason, "snippet": snippet })
        }
        What::Ignored { element: Element { name, attributes, body, .. }, why } => json!({
            "event": "ignored",
            "name": name,
            "attributes": pairs(attributes),
            "body": body.as_str(),
            "reason": why.as_str(),
        }),
        What::Repaired(note) => json!({ "event": "repaired", "reason": note }),
        What::Finished { cut } => json!({ "event": "finished", "cut": cut.map(|it| it.name) }),
        _ => Value::Null,
    })
}

fn pairs(attributes: &[Attribute]) -> Map<String, Value> {
    attributes.iter().map(|it| (it.name.clone(), json!(it.value))).collect()
}
