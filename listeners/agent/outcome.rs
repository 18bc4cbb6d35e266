//! The emissions of a handling, and the outcomes of a turn.

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Answer, Emit, IntoEmit, Need, NoteAbove, Park};
use pumphouse::prelude::*;
use pumphouse::xml::Writer;

use super::super::action::words::CancelAction;
use super::super::feed::words::{DeclareFeeds, RefreshFeeds};
use super::super::timer::{ClearTimer, SetTimer};
use super::super::todo::words::StepsOpen;
use super::super::view::ClearContext;
use super::generation::Generation;
use super::words::{
    AgentProgress, CognitionOut, ContextFull, ContextSummary, Correction, Notice, RateLimited,
    Response, Stopped,
};

/// Writes an element with this name, attributes and text, such as the root of an agent.
pub(super) fn root(
    name: &Name,
    attributes: &[(&str, String)],
    text: &str,
) -> Result<Element, Fault> {
    let mut writer = Writer::new(XmlLimits::INSIDE);
    writer.start(name.namespace(), name.local());
    for (name, value) in attributes {
        writer.attribute(name, value);
    }
    writer.text(text);
    writer.end();
    Ok(writer.finish()?)
}

/// The emissions of a handling in their order. They include the [`Park`] for messages that stay in
/// the queue.
#[derive(Default)]
pub(super) struct Emissions(Emit);

impl Emissions {
    pub(super) fn add(&mut self, it: impl IntoEmit) {
        self.0.extend(it.into_emit());
    }
}

impl IntoEmit for Emissions {
    fn into_emit(self) -> Emit {
        self.0
    }

    fn emits() -> Vec<Need> {
        [
            Answer::<Response>::emits(),
            Answer::<Stopped>::emits(),
            Answer::<StepsOpen>::emits(),
            Reply::<Done>::emits(),
            Note::<Correction>::emits(),
            Note::<Notice>::emits(),
            Note::<ContextFull>::emits(),
            Note::<ContextSummary>::emits(),
            To::<ClearContext>::emits(),
            To::<CancelAction>::emits(),
            To::<ClearTimer>::emits(),
            To::<SetTimer>::emits(),
            NoteAbove::<RateLimited>::emits(),
            NoteAbove::<AgentProgress>::emits(),
            To::<CognitionOut>::emits(),
            Note::<To<DeclareFeeds>>::emits(),
            To::<RefreshFeeds>::emits(),
            Park::emits(),
        ]
        .concat()
    }
}

/// The outcome of an attempt at a turn.
pub(super) enum TurnOutcome {
    /// The model wrote its reply.
    Turned(Box<Generation>),
    /// The prompt doesn't fit the model's window, so a clear comes first.
    Full(Emissions),
    /// An interrupt came while the turn waited for the budget.
    Interrupted,
    /// The agent stops. The variant has the reason as a word and as a sentence, and the emissions
    /// before the stop.
    Stopped(&'static str, String, Emissions),
}
