//! Asks the MCP servers of a manifest for their tools, side by side. A server that takes long
//! delays nobody: if its tools are recorded, they are offered, and compared at its first call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse::engine::Factory;
use pumphouse::prelude::*;
use serde_json::{Map, Value};

use super::server::Launch;
use super::tools::{changes, pinned};
use super::{Settings, Trust, listener, prepared, shown, unanswered, unknown};

/// The answer of a server that was asked for its tools.
type Answer = Result<Vec<Value>, String>;

/// The servers that were asked and whose listeners aren't made yet.
#[derive(Default)]
struct Questions {
    /// Each server's settings, as a text, and the channel for its answer.
    asked: Mutex<Vec<(String, Receiver<Answer>)>>,
    /// Whether a server took longer than the others are waited for.
    is_late: AtomicBool,
}

/// Makes the factory `mcp` of a pump that is to run. It starts all servers of the manifest at once,
/// and makes a listener after the server has answered.
///
/// - If the server can't be asked, the listener offers the recorded tools.
/// - If the server doesn't answer within `patience`, too. Without a `patience`, every answer is
///   waited for, up to `start_seconds_max`.
/// - If the server answers and nothing is recorded yet, the answer is recorded, and the listener
///   offers the tools of the answer. With [`Trust::All`], this holds for every answer.
/// - In all other cases, the listener offers the recorded tools. A tool that the server now
///   describes in another way is refused, and a new tool isn't offered.
///
/// - If nothing is recorded and the server doesn't answer within `start_seconds_max`, the pump
///   starts without its tools. The next start asks it again.
///
/// A listener isn't made if its program isn't found, if its settings don't fit together, if the
/// record can't be read, if no tool can be offered, or if nothing is recorded and the server says
/// within `patience` that it can't be asked.
#[must_use]
pub fn asking(patience: Option<Duration>) -> Factory {
    let questions = Arc::<Questions>::default();
    let ahead = questions.clone();
    let make = move |settings: Settings| questions.listener(settings, patience);
    Factory::new("mcp", make).beforehand(move |settings: Settings| ahead.ask(settings))
}

impl Questions {
    /// Asks a server, without waiting for its answer.
    fn ask(&self, settings: Settings) {
        let key = format!("{settings:?}");
        // Wrong settings are told when the listener is made.
        let Ok((launch, ..)) = prepared(settings) else { return };
        let answer = ask(launch);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((key, answer));
    }

    /// Returns the channel for the answer of a server. If the server wasn't asked, it is asked now.
    fn answer(&self, key: &str, launch: &Launch) -> Receiver<Answer> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.iter().position(|(it, _)| it == key) {
            Some(at) => asked.swap_remove(at).1,
            None => ask(launch.clone()),
        }
    }

    fn listener(&self, settings: Settings, patience: Option<Duration>) -> Result<Listener, String> {
        let key = format!("{settings:?}");
        let (launch, record, settings) = prepared(settings)?;
        let (recorded, answer) = (record.read()?, self.answer(&key, &launch));
        let name = launch.name.clone();
        let there = match self.in_time(&answer, patience) {
            Some(there) => there,
            None => match recorded {
                Some(tools) => {
                    tracing::warn!(
                        server = name,
                        "a server hasn't answered yet: its recorded tools are offered meanwhile"
                    );
                    return listener(launch, &tools, &Map::new(), &settings);
                }
                None => {
                    let seconds = settings.limits.start_seconds_max;
                    tracing::warn!(
                        server = name,
                        seconds,
                        "a server hasn't answered yet: nothing is recorded of it, \
                         so it is waited for"
                    );
                    match received(&answer) {
                        Err(why) => {
                            unasked(&name, &why);
                            return Ok(unknown(&name));
                        }
                        there => there,
                    }
                }
            },
        };
        match (recorded, there) {
            (Some(tools), Ok(there)) if settings.trust != Some(Trust::All) => {
                let changed = changes(&tools, &pinned(&there));
                listener(launch, &tools, &changed, &settings)
            }
            (_, Ok(there)) => {
                let tools = pinned(&there);
                if let Err(why) = record.write(&tools) {
                    tracing::warn!(server = name, why, "the tools can't be recorded");
                }
                listener(launch, &tools, &Map::new(), &settings)
            }
            (Some(tools), Err(why)) => {
                unasked(&name, &why);
                listener(launch, &tools, &Map::new(), &settings)
            }
            (None, Err(why)) => Err(unanswered(&launch, &why)),
        }
    }

    /// Waits for an answer. `None` if it takes too long. All servers were asked at the same time,
    /// so after the first that took too long, none is waited for.
    fn in_time(&self, answer: &Receiver<Answer>, patience: Option<Duration>) -> Option<Answer> {
        let Some(patience) = patience else { return Some(received(answer)) };
        let is_late = self.is_late.load(Ordering::Relaxed);
        let there = answer.recv_timeout(if is_late { Duration::ZERO } else { patience }).ok();
        self.is_late.fetch_or(there.is_none(), Ordering::Relaxed);
        there
    }
}

/// Asks a server for its tools, on a thread of its own.
fn ask(launch: Launch) -> Receiver<Answer> {
    let (to, answer) = sync_channel(1);
    std::thread::spawn(move || {
        // The receiver is gone if the listener isn't made.
        let _ = to.send(launch.tools());
    });
    answer
}

fn received(answer: &Receiver<Answer>) -> Answer {
    answer.recv().unwrap_or_else(|_| Err("it can't be asked".to_owned()))
}

fn unasked(server: &str, why: &str) {
    let why = shown(why);
    tracing::warn!(server, why, "a server can't be asked for its tools");
}
