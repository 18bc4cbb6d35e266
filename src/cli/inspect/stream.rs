//! `inspect stream`: shows what the pump understands of a recorded stream of a provider.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use crate::cli::base::organism::{told, variable};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::inspect::chunks::Chunks;
use crate::cli::inspect::{each, unreadable};
use crate::limits::ModelLimits;
use crate::manifest::provider;
use crate::model::wire::{Framing, Reader};
use crate::model::{self, Call, Error, Piece, Provider, Usage, Wire};

/// Reads recorded bodies of a provider's answers as a pump reads them, and prints one JSON object a
/// line for each file. Nothing is sent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse inspect stream --wire anthropic-messages reply.sse
  pumphouse inspect stream --wire openai-chat --chunks 1 *.sse | jq -r .text
  pumphouse inspect stream --wire acme.yaml reply.sse
  find . -name '*.sse' | pumphouse inspect stream --wire gemini -

Each line has text, thinking, refusal, tools, usage, stop (the wire's own word), error, and
terminal: whether the wire's end mark came.
Exits with 0 whatever the stream is; a file that can't be read has a line that says so.")]
pub(crate) struct Stream {
    /// The wire that the provider speaks, or a provider file.
    #[arg(long, value_name = "WIRE|PROVIDER.yaml", value_parser = WireOrFile)]
    wire: String,
    /// The chunks that the stream is read in: whole, N bytes each, or random sizes by a seed.
    #[arg(long, default_value = "whole", value_name = "whole|N|random:SEED")]
    chunks: Chunks,
    /// Also prints, as `signed`, what the provider signed and wants back.
    #[arg(long)]
    signed: bool,
    /// The files to read; - stands for a list of files on the standard input, one a line.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

/// Parses the name of a wire or of a provider file.
#[derive(Clone)]
struct WireOrFile;

impl TypedValueParser for WireOrFile {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        match value.to_str() {
            Some(file) if provider::is_file(file) => Ok(file.to_owned()),
            _ => {
                PossibleValuesParser::new(Wire::ALL.map(Wire::name)).parse_ref(command, arg, value)
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Wire::ALL.map(|it| PossibleValue::new(it.name())).into_iter()))
    }
}

impl Stream {
    pub(crate) fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let provider = match self.wire.parse::<Wire>() {
            Ok(wire) => model::of_wire(wire).clone(),
            Err(_) => {
                let read = provider::read(Path::new(&self.wire), &variable);
                Arc::new(read.map_err(|all| Failure::Untried(told(&all)))?.provider)
            }
        };
        each(&self.files, to, |file| match fs::read(file) {
            Ok(bytes) => self.verdict(&provider, bytes.into()),
            Err(error) => json!({ "error": unreadable(&error) }),
        })
    }

    fn verdict(&self, provider: &Provider, bytes: Bytes) -> Value {
        // Without streaming, a server sends a single document.
        let first = bytes.iter().find(|it| !it.is_ascii_whitespace());
        let framing = match first {
            Some(b'{') if !provider.has_lines() => Framing::whole(),
            _ => provider.framing(ModelLimits::default().event_bytes_max),
        };
        let mut reader = provider.reader(framing.is_whole());
        let is_wrong = self.read(bytes, framing, &mut *reader).map_or(true, |it| it > 0);
        let mut found = Found::default();
        let gathered = reader.gathered_mut();
        let stop = gathered.word().map(str::to_owned);
        // Some wires, such as Gemini's, mark the end only by giving the reason for the stop.
        let terminal = gathered.is_over() || provider.ends_with_its_reason() && stop.is_some();
        gathered.finish();
        gathered.pieces.drain(..).for_each(|it| found.add(it));
        let usage = found.usage.map(|it| {
            json!({
                "input": it.input,
                "output": it.output,
                "cached": it.cached,
                "reasoning": it.reasoning,
            })
        });
        let mut verdict = json!({
            "text": found.text,
            "thinking": found.thinking,
            "refusal": found.refusal,
            "tools": found.tools.iter().map(tool).collect::<Vec<_>>(),
            "usage": usage,
            "stop": stop,
            "error": is_wrong,
            "terminal": terminal,
        });
        if self.signed {
            verdict["signed"] = found.signed.into();
        }
        verdict
    }

    /// Reads all events, and returns how many of them are errors. A pump stops at the first error,
    /// but here the rest of the recording is read as well.
    fn read(
        &self,
        mut bytes: Bytes,
        mut framing: Framing,
        reader: &mut dyn Reader,
    ) -> Result<usize, Error> {
        let mut errors = 0;
        let limits = ModelLimits::default();
        let mut chunks = self.chunks;
        while !bytes.is_empty() {
            let mut chunk = bytes.split_to(chunks.next().min(bytes.len()));
            while !chunk.is_empty() {
                if let Some(data) = framing.next(&mut chunk)? {
                    errors += usize::from(take(reader, &data, &limits).is_err());
                }
            }
        }
        if let Some(last) = framing.end()? {
            errors += usize::from(take(reader, &last, &limits).is_err());
        }
        Ok(errors)
    }
}

fn take(reader: &mut dyn Reader, data: &str, limits: &ModelLimits) -> Result<(), Error> {
    let data = data.trim();
    if data.is_empty() {
        return Ok(());
    }
    reader.take(data)?;
    reader.gathered().within(limits.reply_bytes_max)
}

/// What was found in a stream.
#[derive(Default)]
struct Found {
    text: String,
    thinking: String,
    refusal: String,
    tools: Vec<Call>,
    usage: Option<Usage>,
    signed: Vec<Value>,
}

impl Found {
    fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Text(it) => self.text += &it,
            Piece::Reasoning(it) => self.thinking += &it,
            Piece::Refusal(it) => self.refusal += &it,
            Piece::Call(it) | Piece::ServerCall(it) => self.tools.push(it),
            Piece::Usage(it) => self.usage = Some(it),
            Piece::Signed(it) => self.signed.extend(serde_json::from_str::<Value>(&it.json)),
            _ => {}
        }
    }
}

fn tool(call: &Call) -> Value {
    json!({ "id": call.id, "name": call.name, "arguments": call.arguments })
}
