//! Reads the events of a reply by paths.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::error::Error;
use crate::model::error_answer;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::provider_file::keys::{CallPaths, Extract, Mode, StopWord, StreamFile};
use crate::model::provider_file::path::{Path, Paths};
use crate::model::wire::Gathered;

/// The rules for reading the events of a reply.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) mode: Mode,
    pub(super) event_type: Paths,
    /// The paths for every event.
    pub(super) extract: Extract,
    /// Further paths for events of a type.
    pub(super) events: BTreeMap<String, Extract>,
    pub(super) tool_call: CallPaths,
    pub(super) stops: BTreeMap<String, StopWord>,
    /// The data of the event that ends the reply, if that event isn't JSON.
    pub(super) end_mark: Option<String>,
}

impl Rules {
    /// The paths for an event: those for every event, and those for its type.
    fn of<'a>(&'a self, event: &Value) -> impl Iterator<Item = &'a Extract> + use<'a> {
        let kind = self.event_type.last_text(event);
        let typed = kind.and_then(|it| self.events.get(it));
        [&self.extract].into_iter().chain(typed)
    }

    /// Every set of paths, with its key in the file.
    pub(super) fn sets(&self) -> impl Iterator<Item = (String, &Extract)> {
        let typed = self.events.iter().map(|(kind, it)| (format!("stream.events.{kind}"), it));
        [("stream.extract".to_owned(), &self.extract)].into_iter().chain(typed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end_mark.is_none() && self.sets().all(|(_, it)| it.is_empty())
    }

    /// Removes the paths and the end mark that a wire's own file has as well.
    pub(super) fn without(&mut self, own: &StreamFile) {
        self.end_mark = self.end_mark.take().filter(|it| own.end_mark.as_ref() != Some(it));
        self.extract.without(&own.extract);
        for (kind, extract) in &mut self.events {
            own.events.get(kind).into_iter().for_each(|it| extract.without(it));
        }
    }

    /// The paths that find nothing in any of these events, each with its key.
    pub(super) fn unmatched(&self, events: &[Value]) -> Vec<(String, String)> {
        let kinds = [None].into_iter().chain(self.events.keys().map(|it| Some(it.as_str())));
        let mut all = Vec::new();
        for (kind, (key, extract)) in kinds.zip(self.sets()) {
            let is_of = |it: &&Value| kind.is_none() || self.event_type.last_text(it) == kind;
            let of_kind: Vec<&Value> = events.iter().filter(is_of).collect();
            for (name, paths) in extract.paths() {
                let finds_nothing = |path: &&Path| of_kind.iter().all(|it| path.all(it).is_empty());
                let found = paths.iter().filter(finds_nothing);
                all.extend(found.map(|path| (format!("{key}.{name}"), path.text().to_owned())));
            }
        }
        all
    }

    /// The meaning of a stop reason: as the file says it, or else as most providers use the word.
    fn stop(&self, word: &str, has_calls: bool) -> Stop {
        match self.stops.get(word) {
            Some(StopWord::End) => return Stop::End,
            Some(StopWord::StopText) => return Stop::StopText,
            Some(StopWord::MaxTokens) => return Stop::MaxTokens,
            Some(StopWord::Calls) => return Stop::Calls,
            Some(StopWord::Filtered) => return Stop::Filtered,
            None => {}
        }
        match word.to_ascii_lowercase().as_str() {
            "stop" | "eos" | "end" | "end_turn" | "complete" | "completed" if has_calls => {
                Stop::Calls
            }
            "stop" | "eos" | "end" | "end_turn" | "complete" | "completed" => Stop::End,
            "stop_sequence" => Stop::StopText,
            "length" | "max_tokens" | "max_output_tokens" => Stop::MaxTokens,
            "tool_use" | "tool_calls" | "function_call" => Stop::Calls,
            "content_filter" | "refusal" | "safety" => Stop::Filtered,
            _ => Stop::Other(word.to_owned()),
        }
    }
}

/// The places of a reply's calls. The calls themselves are in [`Gathered`].
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Maps each index to the place of the last call that began at this index.
    places: BTreeMap<u64, u64>,
    /// The place of the next call.
    next: u64,
}

/// The parts of an event that the wire's own reader has found. Paths for them are skipped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FoundParts {
    pub(super) text: bool,
    pub(super) reasoning: bool,
    pub(super) refusal: bool,
    pub(super) calls: bool,
    pub(super) usage: bool,
    pub(super) stop: bool,
}

impl Progress {
    /// Progress beside a wire's own reader. Calls found by paths are placed after the calls that
    /// the reader finds.
    pub(super) fn behind() -> Progress {
        Progress { next: 1 << 40, ..Progress::default() }
    }

    /// Reads the parts of an event that `found` doesn't name.
    ///
    /// # Errors
    /// The error that the event reports.
    pub(super) fn read(
        &mut self,
        rules: &Rules,
        event: &Value,
        found: FoundParts,
        gathered: &mut Gathered,
    ) -> Result<(), Error> {
        for extract in rules.of(event) {
            let error = extract.error.first(event).into_iter().find(|it| says_yes(it));
            if let Some(error) = error {
                if is_end(extract, event) {
                    ended(rules, extract, event, found, gathered);
                }
                return Err(error_answer::within(error));
            }
            for (paths, make, is_found) in [
                (&extract.reasoning, Piece::Reasoning as fn(String) -> Piece, found.reasoning),
                (&extract.text, Piece::Text, found.text),
                (&extract.refusal, Piece::Refusal, found.refusal),
            ] {
                if !is_found && !paths.is_empty() {
                    gathered.say(&paths.joined_text(event), make);
                }
            }
            if !found.calls {
                self.calls(rules, extract, event, gathered);
            }
            if !found.usage {
                self.used(extract, event, gathered);
            }
            ended(rules, extract, event, found, gathered);
        }
        Ok(())
    }

    fn calls(&mut self, rules: &Rules, extract: &Extract, event: &Value, gathered: &mut Gathered) {
        let of_event = number(&extract.index, event);
        for (paths, is_servers) in [(&extract.tool_calls, false), (&extract.server_calls, true)] {
            for (at, node) in (0..).zip(paths.first(event)) {
                let index = number(&rules.tool_call.index, node).or(of_event).unwrap_or(at);
                self.call(rules, index, node, is_servers, gathered);
            }
        }
        let more = extract.arguments.joined_text(event);
        let index = of_event.or_else(|| self.places.last_key_value().map(|(index, _)| *index));
        if let (false, Some(place)) = (more.is_empty(), index.and_then(|it| self.places.get(&it))) {
            gathered.change(*place, |it| it.arguments += &more);
        }
    }

    /// Begins a call, or adds to the call that began at this index.
    fn call(
        &mut self,
        rules: &Rules,
        index: u64,
        node: &Value,
        is_servers: bool,
        gathered: &mut Gathered,
    ) {
        let paths = &rules.tool_call;
        let word = |paths: &Paths| paths.last_text(node).unwrap_or_default();
        let (id, name) = (word(&paths.id), word(&paths.name));
        let arguments = match paths.arguments.first(node).first() {
            Some(Value::String(text)) => text.clone(),
            // An empty object stands for arguments that follow.
            Some(Value::Object(it)) if it.is_empty() && rules.mode == Mode::EventTyped => {
                String::new()
            }
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let place = self.places.get(&index).copied();
        let begun = place.and_then(|it| Some((it, gathered.at(it)?)));
        let is_same = |call: &Call| match rules.mode {
            Mode::EventTyped => id.is_empty() || call.id == id,
            Mode::DeltaMerge => {
                let is_named = !id.is_empty() && !name.is_empty() && !call.id.is_empty();
                !is_named || call.id == id
            }
            Mode::CompleteChunks => false,
        };
        match begun {
            Some((place, call)) if is_same(call) => gathered.change(place, |call| {
                if !id.is_empty() {
                    call.id = id.to_owned();
                }
                if !name.is_empty() {
                    call.name = name.to_owned();
                }
                if rules.mode == Mode::DeltaMerge || call.arguments.is_empty() {
                    call.arguments += &arguments;
                }
            }),
            _ => {
                gathered.begin(self.next, &Call::new(id, name, arguments), is_servers);
                if gathered.refusal().is_none() {
                    self.places.insert(index, self.next);
                    self.next += 1;
                }
            }
        }
    }

    /// Takes the counts of tokens. Each count covers the whole reply so far. Counts that the event
    /// doesn't have, or that are 0, stay as they are.
    fn used(&mut self, extract: &Extract, event: &Value, gathered: &mut Gathered) {
        let paths = &extract.usage;
        // These may be counts that the wire's own reader found.
        let mut usage = gathered.usage.unwrap_or_default();
        let counts = [
            (&paths.input, &mut usage.input),
            (&paths.output, &mut usage.output),
            (&paths.cached, &mut usage.cached),
            (&paths.reasoning, &mut usage.reasoning),
        ];
        let mut is_told = false;
        for (paths, count) in counts {
            if let Some(sum) = paths.sum(event) {
                (*count, is_told) = (if sum > 0 { sum } else { *count }, true);
            }
        }
        if is_told {
            gathered.usage = Some(usage);
        }
    }
}

/// Whether an event is the end of the reply.
fn is_end(extract: &Extract, event: &Value) -> bool {
    extract.end.first(event).into_iter().any(says_yes)
}

/// Takes the stop reason and the end of the reply, if the event has them.
fn ended(
    rules: &Rules,
    extract: &Extract,
    event: &Value,
    found: FoundParts,
    gathered: &mut Gathered,
) {
    if let (Some(word), false) = (extract.stop_reason.last_text(event), found.stop) {
        let stop = rules.stop(word, gathered.calls() > 0);
        gathered.stop(word, stop);
    }
    if is_end(extract, event) {
        end(gathered);
    }
}

/// Ends the reply. Without a stop reason, the reason is [`Stop::Calls`] if the reply has calls, and
/// otherwise [`Stop::End`].
pub(super) fn end(gathered: &mut Gathered) {
    if !gathered.is_stopped() {
        let has_calls = gathered.calls() > 0;
        gathered.stop_unsaid(if has_calls { Stop::Calls } else { Stop::End });
    }
    gathered.end();
}

fn says_yes(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn number(paths: &Paths, value: &Value) -> Option<u64> {
    paths.first(value).into_iter().find_map(Value::as_u64)
}
