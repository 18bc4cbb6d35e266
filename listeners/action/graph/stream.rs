//! Streams: an action with `stream` is called with each partial result of another action, its
//! source, while the source still runs.
//!
//! The partial results of an action are the `partial-result`s that its listener sends before the
//! answer. An action may be called several times, in a `foreach` or because it is a stream itself.
//! If one of these calls sends no partial result, the call's answer counts as a partial result.
//!
//! Partial results are kept with the source, so the stream may be defined before or after they
//! come. The stream takes all of them, in their order, one call after another. If the source
//! succeeds without partial results, the stream's action is called once with the source's result,
//! as without `stream`.
//!
//! A stream is over when its source is done and the last partial result is answered. Its result is
//! then the list of the answers. If the source fails, a call of the stream that already runs still
//! gets its answer. Further partial results are dropped. The stream then fails, or is skipped if it
//! has no answer. A stream waits for earlier `sync` actions of its turn, but not for its source or
//! for the source of its source.
//!
//! All of this follows from the inputs of the graph. Each partial result is a message to `action`
//! or a `thread-note`. The key of each call has the number of the partial result that the call
//! takes. So a restart, a fork and a replay lead to the same calls, without a recorded decision.

use std::collections::BTreeSet;

use pumphouse::Element;

use super::super::super::metadata::METADATA;
use super::super::words::{Action, ActionError, PARTS_MAX};
use super::decide::ItemList;
use super::{ActionOutcome, Graph, Id, Node, NodeState, Output, Part, Status};

/// The error code of a stream whose source failed after a call of the stream was answered.
const STREAM: &str = "stream";

/// The partial results of an action.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    all: Vec<Element>,
    /// The largest number of a partial result that the current call has sent. 0 if it has sent
    /// none.
    last: u64,
    /// Whether partial results were dropped, since there were more than `PARTS_MAX`.
    is_over_full: bool,
}

impl Parts {
    fn add(&mut self, payload: Element) {
        match self.all.len() < PARTS_MAX {
            true => self.all.push(payload),
            false => self.is_over_full = true,
        }
    }

    /// Ends a call of an action that is called several times. The answer counts as a partial result
    /// if the call sent none.
    pub(super) fn called(&mut self, answer: Option<&Element>) {
        if self.last == 0 {
            answer.into_iter().for_each(|it| self.add(it.clone()));
        }
        self.last = 0;
    }
}

/// The name of the action whose partial results an action takes. None without `stream`. If the name
/// is missing or ambiguous, returns None and adds the mistake to `wrong`.
pub(super) fn source_name(
    action: &Action,
    refers_to: &BTreeSet<String>,
    wrong: &mut Vec<String>,
) -> Option<String> {
    if action.stream != Some(true) {
        return None;
    }
    if action.for_each.is_some() {
        wrong.push("stream and foreach don't go together".to_owned());
        return None;
    }
    let named: BTreeSet<&String> = action.depends_on.iter().collect();
    let is_metadata = |it: &&String| *it == METADATA && action.metadata_fields.is_some();
    let referred = || refers_to.iter().filter(|it| !is_metadata(it)).collect();
    let named = if named.is_empty() { referred() } else { named };
    let mut each = named.iter();
    match (each.next(), each.next()) {
        (Some(one), None) => return Some((*one).clone()),
        (None, _) => wrong.push(
            "stream takes the partial results of one action, as in \"depends_on\": [\"lines\"]; \
             it names none"
                .to_owned(),
        ),
        (Some(_), Some(_)) => {
            let all: Vec<&str> = named.iter().map(|it| it.as_str()).collect();
            wrong.push(format!(
                "stream takes the partial results of one action, and it names {}; depends_on says \
                 which",
                all.join(", ")
            ));
        }
    }
    None
}

impl Node {
    /// The action whose partial results this one takes. None if this action takes none, or if no
    /// action has the name yet.
    pub(super) fn source(&self) -> Option<Id> {
        self.needs.iter().find(|it| it.is_streamed)?.on
    }

    /// The number of partial results that were answered. None if the action isn't called with any.
    fn taken(&self) -> Option<usize> {
        let items = self.items.as_ref()?;
        matches!(items.list, ItemList::Parts).then_some(items.answers.len())
    }
}

impl Graph {
    /// Records a partial result of a running action.
    pub fn part(&mut self, id: Id, attempt: u32, part: Part) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let is_running = matches!(node.state, NodeState::Running(_));
        if is_running && attempt == node.attempts && part.number > node.parts.last {
            node.parts.last = part.number;
            node.parts.add(part.payload);
        }
    }

    /// The sources of an action: its source, the source of its source, and so on.
    pub(super) fn sources(&self, node: &Node) -> BTreeSet<Id> {
        let (mut all, mut next) = (BTreeSet::new(), node.source());
        while let Some(id) = next.filter(|it| all.insert(*it)) {
            next = self.nodes.get(&id).and_then(Node::source);
        }
        all
    }

    /// Whether the source has a partial result that this action wasn't called with yet, or had more
    /// partial results than `PARTS_MAX`.
    pub(super) fn has_part(&self, node: &Node) -> bool {
        let source = node.source().and_then(|it| self.nodes.get(&it));
        source.is_some_and(|it| {
            it.parts.is_over_full || it.parts.all.len() > node.taken().unwrap_or_default()
        })
    }

    /// The partial result that an action is called with now.
    pub(super) fn current_part(&self, node: &Node) -> Option<&Element> {
        let source = self.nodes.get(&node.source()?)?;
        source.parts.all.get(node.taken()?)
    }

    /// Continues a stream that has begun: queues its next call, or ends the stream. Returns false
    /// if the stream hasn't begun.
    pub(super) fn goes_on(&mut self, id: Id, out: &mut Vec<Output>) -> bool {
        let begun = self.nodes.get(&id).filter(|it| it.taken().is_some());
        let Some(node) = begun else { return false };
        let source = node.source().and_then(|it| self.nodes.get(&it));
        if self.current_part(node).is_some() {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.state = NodeState::Queued;
            }
        } else if let Some(source) = source.filter(|it| it.parts.is_over_full) {
            let message = format!(
                "{} has more partial results than parts_max, {PARTS_MAX}; it was called with these",
                source.definition.action.id
            );
            self.fail(id, "limit", message, out);
        } else {
            let done =
                ActionOutcome { status: Status::Ok, answer: None, error: None, because: None };
            self.finish(id, done, out);
        }
        true
    }

    /// Whether the source of a stream failed before the stream's next call began. Such a call isn't
    /// made.
    pub(super) fn is_cut_off(&self, node: &Node) -> bool {
        let is_before = matches!(node.state, NodeState::Queued | NodeState::Batched)
            && node.items.as_ref().is_some_and(|it| it.before == node.attempts);
        let failed = |source: Id| {
            let done = self.outcome(source);
            done.is_some_and(|it| !self.lets_through(source, it))
        };
        is_before && node.taken().is_some() && node.source().is_some_and(failed)
    }

    /// The outcome of a stream whose source failed after a call of the stream was answered. None if
    /// no call was answered.
    pub(super) fn cut_off(
        &self,
        node: &Node,
        of: Id,
        done: &ActionOutcome,
    ) -> Option<ActionOutcome> {
        let taken = node.taken().filter(|it| *it > 0 && node.source() == Some(of))?;
        let source = &self.nodes.get(&of)?.definition.action.id;
        let many = if taken == 1 { "result" } else { "results" };
        let message = format!("{}; it was called with {taken} partial {many}", done.reason(source));
        let error = Some(ActionError { code: STREAM.to_owned(), message });
        Some(ActionOutcome { status: Status::Failed, answer: None, error, because: None })
    }
}
