//! Warns of serial listeners whose folds take in what the listeners answer themselves. A fold ends
//! at the message at hand, so messages that came at the same time don't see each other's answers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::id::{EntryId, ThreadId};
use crate::limits::XmlLimits;
use crate::listener::{Awake, Entry, FoldOf, HandlerKey, Need, Spec};
use crate::log::Draft;
use crate::name::Name;
use crate::schema::{Schema, example};
use crate::xml;
use crate::xml::Profile;

/// Returns a warning for each fold of a serial listener that takes in an answer of the listener
/// itself. Nothing is wrong if the listener's folds reach further than the message, or if its
/// author has decided that they end there.
pub(super) fn own_answers(spec: &Spec) -> Vec<String> {
    let traits = &spec.traits;
    let takes_queue = spec.needs.iter().any(|it| matches!(it, Need::Queue));
    let reaches = traits.up_to_date || traits.at_message || takes_queue;
    let takes_folds = spec.handlers.iter().any(|(_, it)| it.takes_folds);
    if !traits.serial || traits.pure || reaches || !takes_folds {
        return Vec::new();
    }
    let routes = |name: &Name| {
        spec.handlers.iter().any(|(key, _)| matches!(key, HandlerKey::Route(it) if it == name))
    };
    let answers = spec.needs.iter().filter_map(|it| match it {
        Need::Emit(it) if !it.reserved && !routes(&it.name) => Some(&**it),
        _ => None,
    });
    let answers: Vec<&Schema> = answers.collect();
    let accepted = spec.needs.iter().filter_map(|it| match it {
        Need::Accept(it) if routes(&it.name) => entry(it, "ada"),
        _ => None,
    });
    let accepted: Vec<Entry> = accepted.collect();
    let mut warnings = Vec::new();
    for ((_, fold), of) in &spec.folds {
        let taken = answers.iter().find(|it| takes_in(of, it, &spec.name, &accepted));
        warnings.extend(taken.map(|answer| {
            format!(
                "{}: its fold {fold} takes in {}, which it answers itself, but ends at the message \
                 at hand: messages that come at once don't see each other's answers; add \
                 .up_to_date(), or .as_of_message() if that is meant",
                spec.name, answer.name
            )
        }));
    }
    warnings
}

/// Returns whether a fold makes something of a payload: it reads the payload, changes its state or
/// panics, and doesn't do so with a payload that no fold knows.
fn takes_in(fold: &FoldOf, answer: &Schema, from: &str, accepted: &[Entry]) -> bool {
    let unknown = Name::new("https://xml-pipeline.org/ns/core/v1", "no-payload");
    let unknown = Schema::any(unknown, "A payload that no fold knows.");
    let Some(answer) = entry(answer, from) else { return false };
    let Some(other) = entry(&unknown, from) else { return false };
    has_effect(fold, &answer, accepted) && !has_effect(fold, &other, accepted)
}

/// Returns whether a fold reads an entry or changes by it, after the entries in `before`.
fn has_effect(fold: &FoldOf, entry: &Entry, before: &[Entry]) -> bool {
    let applied = catch_unwind(AssertUnwindSafe(|| {
        let mut state: Awake = (fold.empty)();
        before.iter().for_each(|it| (fold.apply)(&mut state, it));
        let shown = (fold.show)(&state);
        (fold.apply)(&mut state, entry);
        (fold.show)(&state) != shown
    }));
    entry.is_parsed() || applied.unwrap_or(false)
}

/// Returns an entry with an example of a payload, not parsed yet.
fn entry(schema: &Schema, from: &str) -> Option<Entry> {
    let element = xml::read(example(schema), Profile::Wire, &XmlLimits::INSIDE).ok()?;
    let id = EntryId::new(&ThreadId::new("sess-example"), 1);
    let draft = Draft::new(id, 0, from.into(), schema.name.clone(), element.canonical());
    Some(Entry::unparsed(&draft))
}
