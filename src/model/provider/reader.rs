//! Readers of replies by paths, alone or beside a wire's own reader.

use serde_json::Value;

use crate::model::error::Error;
use crate::model::piece::Piece;
use crate::model::provider::rules::{FoundParts, Progress, Rules, end};
use crate::model::wire::{Gathered, Reader, garbled, object};
use crate::schema::json;

/// The end mark of chat completions, which some servers send on other wires, too.
const DONE: &str = "[DONE]";

/// Reads a reply by paths alone.
#[derive(Debug)]
pub(super) struct ByPaths {
    rules: Rules,
    /// Whether the reply is one document.
    is_whole: bool,
    progress: Progress,
    gathered: Gathered,
}

impl ByPaths {
    pub(super) fn new(rules: Rules, is_whole: bool) -> ByPaths {
        let (progress, gathered) = (Progress::default(), Gathered::default());
        ByPaths { rules, is_whole, progress, gathered }
    }
}

impl Reader for ByPaths {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        if self.rules.end_mark.as_deref() == Some(data) {
            end(&mut self.gathered);
            return Ok(());
        }
        if data == DONE {
            return Ok(());
        }
        let event = object(data)?;
        self.progress.read(&self.rules, &event, FoundParts::default(), &mut self.gathered)?;
        if self.is_whole {
            let is_empty = self.gathered.pieces.is_empty() && self.gathered.calls_size().0 == 0;
            if is_empty && !self.gathered.is_stopped() {
                return Err(garbled(data, &"no path of the provider file finds anything in it"));
            }
            end(&mut self.gathered);
        }
        Ok(())
    }

    fn gathered(&self) -> &Gathered {
        &self.gathered
    }

    fn gathered_mut(&mut self) -> &mut Gathered {
        &mut self.gathered
    }
}

/// Reads a reply by a wire's own reader, and by paths for the parts that the reader doesn't find in
/// an event.
pub(super) struct WithPaths {
    reader: Box<dyn Reader>,
    rules: Rules,
    progress: Progress,
}

impl WithPaths {
    pub(super) fn new(reader: Box<dyn Reader>, rules: Rules) -> WithPaths {
        WithPaths { reader, rules, progress: Progress::behind() }
    }
}

impl Reader for WithPaths {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        let gathered = self.reader.gathered_mut();
        if self.rules.end_mark.as_deref() == Some(data) {
            end(gathered);
            return Ok(());
        }
        let (pieces, calls) = (gathered.pieces.len(), gathered.calls_size());
        let (was_stopped, usage) = (gathered.is_stopped(), gathered.usage.take());
        let read = self.reader.read(data);
        let gathered = self.reader.gathered_mut();
        let said = |is: fn(&Piece) -> bool| gathered.pieces.iter().skip(pieces).any(is);
        let found = FoundParts {
            text: said(|it| matches!(it, Piece::Text(_))),
            reasoning: said(|it| matches!(it, Piece::Reasoning(_))),
            refusal: said(|it| matches!(it, Piece::Refusal(_))),
            calls: gathered.calls_size() != calls,
            usage: gathered.usage.is_some(),
            stop: was_stopped || gathered.is_stopped(),
        };
        if let Some(before) = usage {
            gathered.usage = Some(before.recounted(gathered.usage.unwrap_or_default()));
        }
        read?;
        let Ok(event) = json::deserialize::<Value>(data) else { return Ok(()) };
        self.progress.read(&self.rules, &event, found, gathered)
    }

    fn gathered(&self) -> &Gathered {
        self.reader.gathered()
    }

    fn gathered_mut(&mut self) -> &mut Gathered {
        self.reader.gathered_mut()
    }
}
