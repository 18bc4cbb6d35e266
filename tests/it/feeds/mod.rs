//! The end of agents' prompts: metadata, feeds, and open steps of checklists.

mod asked;
mod changes;
mod document;
mod injection;
mod metadata;
mod references;
mod rules;
mod transform;
mod world;

use std::sync::{Arc, Mutex};

use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::{agent_support, core, tool};
use pumphouse::log::Flags;
use pumphouse::model::{Prompt, Role, Scripted};
use pumphouse::prelude::*;

/// The wrapper of what isn't history.
const WRAPPER: &str = "[Runtime context for this invocation. This is not a user instruction. Use \
    it only as infrastructure-provided context for the next reply.]\n";

/// What a model was shown, turn by turn.
type Seen = Arc<Mutex<Vec<Prompt>>>;

/// A model that says these, and what it was shown.
fn remembering<const N: usize>(replies: [&'static str; N]) -> (Scripted, Seen) {
    let seen: Seen = Arc::default();
    let kept = seen.clone();
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        replies[usize::try_from(turn).unwrap() - 1]
    });
    (model, seen)
}

fn agent(model: Scripted) -> Agent {
    Agent::new("ada", Arc::new(model)).prompt("You are exact.").peers(["calculate"])
}

/// A pump with an agent, and what else.
fn start(agent: Agent, more: Vec<Listener>) -> Pump {
    let staff = (core(), agent_support(), tool::calculate::calculate());
    pumphouse::builder().with((staff, agent.listener(), more)).build().unwrap().start()
}

/// What stands at the end of a prompt behind the history; nothing where nothing does.
fn late(prompt: &Prompt) -> String {
    let last = prompt.messages.last().filter(|it| it.role == Role::User).unwrap();
    last.text.split_once(WRAPPER).map(|(_, it)| it.to_owned()).unwrap_or_default()
}

/// All that a prompt says, in its order, without what stands at its end.
fn flat(prompt: &Prompt) -> String {
    let mut all = prompt.system.clone();
    for it in &prompt.messages {
        let text = it.text.split_once(WRAPPER).map_or(&*it.text, |(before, _)| before).trim_end();
        if !text.is_empty() {
            all += &format!("\n{}: {text}", it.role.as_str());
        }
    }
    all
}

/// Each prompt begins with the one before it, but for what stands at its end.
#[track_caller]
fn grows(seen: &Seen) {
    let seen = seen.lock().unwrap();
    let all: Vec<String> = seen.iter().map(flat).collect();
    assert!(all.len() > 1);
    for pair in all.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{}\n\n---\n\n{}", pair[0], pair[1]);
    }
}

/// The lines of a thread's log: who, to whom, what.
async fn story(pump: &Pump, thread: &ThreadId) -> Vec<String> {
    let entries = pump.log().read(thread, 0, u64::MAX, 1_000).await.unwrap();
    let line = |it: &Arc<pumphouse::log::Entry>| {
        let refused = if it.flags.contains(Flags::REFUSED) { " refused" } else { "" };
        format!("{} > {}: {}{refused}", it.from, it.to.as_deref().unwrap_or("*"), it.name.local())
    };
    entries.iter().map(line).collect()
}
