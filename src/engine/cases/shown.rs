//! Formats a step for the cases: its entries, marks and effects.

use super::stage::{BEGIN_US, Stage};
use crate::engine::tree::effect::{Effect, Step};
use crate::engine::tree::observer::PushEvent;
use crate::log::{Draft, Flags, Mark};
use crate::wire::Payload;
use crate::wire::core::Huh;

/// Returns a step as one line of text: its entries, then its marks, then its effects.
pub(super) fn step(stage: &Stage, step: &Step) -> String {
    let entries = step.batch.entries.iter().map(entry).collect::<Vec<_>>();
    let marks = step.batch.marks.iter().map(mark).collect::<Vec<_>>();
    let waits = step.starving.iter().map(|(listener, thread)| {
        format!("{thread} waits for a place of {}", stage.plan.routes.listeners[*listener].name)
    });
    let effects = step.effects.iter().map(|it| effect(stage, it)).chain(waits);
    let parts = [entries, marks, effects.collect()];
    let parts = parts.iter().filter(|it| !it.is_empty()).map(|it| it.join(", "));
    let shown = parts.collect::<Vec<_>>().join("; ");
    if shown.is_empty() { "nothing".to_owned() } else { shown }
}

/// Returns an entry as text, such as `s/2 calc>ada sum re s/1 [error]`.
fn entry(draft: &Draft) -> String {
    let to = draft.to.as_deref().unwrap_or("");
    let mut shown = format!("{} {}>{to} {}", draft.id, draft.from, draft.name.local());
    if draft.name == Huh::NAME {
        let body = String::from_utf8_lossy(&draft.body).into_owned();
        let code = body.split("P00").nth(1).map_or("", |it| &it[..2]);
        shown.push_str(&format!(" P00{code}"));
    }
    if let Some(asked) = &draft.reply_to {
        shown.push_str(&format!(" re {asked}"));
    }
    if let Some(cause) = draft.cause.as_ref().filter(|cause| draft.reply_to.as_ref() != Some(cause))
    {
        shown.push_str(&format!(" by {cause}"));
    }
    let dull = [Flags::FROM_IDENTITY, Flags::TO_IDENTITY];
    let words = draft.flags.to_string();
    let dull = dull.map(|it| it.to_string());
    let words: Vec<&str> = words.split(' ').filter(|it| !dull.iter().any(|of| of == it)).collect();
    if words.iter().any(|it| !it.is_empty()) {
        shown.push_str(&format!(" [{}]", words.join(" ")));
    }
    shown
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::Started { entry, listener, attempt: 0, .. } => {
            format!("{listener} chosen for {entry}")
        }
        Mark::Started { entry, listener, attempt, as_of } => {
            let again = match attempt {
                ..=1 => String::new(),
                attempt => format!(" once more, {attempt}"),
            };
            let sees = as_of.filter(|it| *it != entry.seq);
            let sees = sees.map(|it| format!(" seeing /{it}")).unwrap_or_default();
            format!("{listener} begins {entry}{again}{sees}")
        }
        Mark::Stopped { entry, listener } => format!("{listener} didn't begin {entry}"),
        Mark::Waits { entry, listener, until_us } => {
            let until = match until_us {
                until_us if *until_us < BEGIN_US + (1 << 40) => {
                    format!("until {}", until_us.saturating_sub(BEGIN_US) / 1_000_000)
                }
                _ => "for something".to_owned(),
            };
            format!("{listener} keeps {entry} {until}")
        }
        Mark::Consumed { entry, listener, .. } => format!("{listener} done with {entry}"),
    }
}

fn effect(stage: &Stage, effect: &Effect) -> String {
    let name = |listener: usize| &stage.plan.routes.listeners[listener].name;
    match effect {
        Effect::Tell(_, push, PushEvent::Accepted { id, .. }) => format!("push {push} is {id}"),
        Effect::Tell(_, push, PushEvent::Reply(entry)) => {
            format!("push {push} hears {}", entry.id())
        }
        Effect::Tell(_, push, PushEvent::Refused(it)) => format!("push {push} refused {}", it.code),
        Effect::Tell(_, push, PushEvent::Lost(it)) => format!("push {push} lost {}", it.code),
        Effect::Tell(_, push, PushEvent::Settled) => format!("push {push} settled"),
        Effect::Start(start) => {
            let with: Vec<String> = start.queue.iter().map(|it| it.id().to_string()).collect();
            let with = if with.is_empty() {
                String::new()
            } else {
                format!(" and {}", with.join(" and "))
            };
            format!("start {} on {}{with}", name(start.receiver.listener), start.entry.id())
        }
        Effect::Kept(_, Ok(())) => "sent".to_owned(),
        Effect::Kept(_, Err(it)) => format!("not sent {}", it.code),
        Effect::Arrived(_, message) => format!("its handler hears of {}", message.name().local()),
        Effect::Cancel(_) => "a handler is told to stop".to_owned(),
        Effect::Leave(listener) => format!("{} gives a place back", name(*listener)),
    }
}
