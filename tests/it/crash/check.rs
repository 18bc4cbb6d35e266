//! Checks what must be true after a crash, from the log, from the answers that clients got, and
//! from the ledger of effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::log::{Boxed, Entry, Log, SqliteLog};

use super::load::{Client, Kept, Kind};

/// What came of it all.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub(super) entries: usize,
    /// Effects that were begun.
    pub(super) begun: usize,
    /// Effects that were begun again.
    pub(super) again: usize,
    /// Handlers that were cut off and must not run twice: their senders were told so.
    pub(super) unknown: usize,
}

/// A log at rest, by what is asked of it.
struct Story {
    /// By id.
    entries: BTreeMap<String, Arc<Entry>>,
    /// The names of what answers an entry, by its id.
    replies: BTreeMap<String, Vec<String>>,
    /// What was pushed, by kind and number.
    pushed: BTreeMap<(Kind, u64), Vec<String>>,
    /// Reminders, ticks and ends of threads below, by number.
    rings: BTreeMap<u64, usize>,
    ticks: BTreeMap<u64, usize>,
    results: BTreeMap<u64, usize>,
}

/// An effect, as the ledger has it.
#[derive(Default)]
struct Effect {
    attempts: Vec<u32>,
    ended: usize,
}

/// Checks a log in which nothing is open any more.
pub(super) fn check(log: &SqliteLog, clients: &[Client], ledger: &str) -> Sum {
    let story = Story::read(log);
    story.nothing_is_lost(clients);
    story.nothing_is_doubled();
    let effects = effects(ledger);
    for key in effects.keys() {
        assert!(story.entries.contains_key(&key.1), "an effect of {key:?}, which isn't there");
    }
    let unknown = story.charges(&effects);
    story.posts(&effects);
    story.rings(&effects);
    Sum {
        entries: story.entries.len(),
        begun: effects.values().map(|it| it.attempts.len()).sum(),
        again: effects.values().map(|it| it.attempts.len().saturating_sub(1)).sum(),
        unknown,
    }
}

impl Story {
    fn read(log: &SqliteLog) -> Story {
        let all = wait(log.tail(0, usize::MAX));
        let mut story = Story {
            entries: BTreeMap::new(),
            replies: BTreeMap::new(),
            pushed: BTreeMap::new(),
            rings: BTreeMap::new(),
            ticks: BTreeMap::new(),
            results: BTreeMap::new(),
        };
        for entry in all {
            let (id, name) = (entry.id.to_string(), entry.name.local());
            // It answers what its thread began with, which has its own answer.
            let is_result = name == "thread-result";
            if let Some(to) = entry.reply_to.as_ref().filter(|_| !is_result) {
                story.replies.entry(to.to_string()).or_default().push(name.to_owned());
            }
            let kind = match name {
                "charge" => Some(Kind::Charge),
                "post" => Some(Kind::Post),
                "remind" => Some(Kind::Remind),
                "spawn-thread" => Some(Kind::Spawn),
                "set-timer" => Some(Kind::Timer),
                _ => None,
            };
            // What begins a thread below another was pushed as part of what opened it.
            let below = entry.id.thread.to_string().contains('.');
            if let Some(kind) = kind.filter(|_| !below) {
                let pushed = story.pushed.entry((kind, number(&entry))).or_default();
                pushed.push(id.clone());
            }
            let counted = match name {
                "tick" => Some(&mut story.ticks),
                "ring" => Some(&mut story.rings),
                "thread-result" => Some(&mut story.results),
                _ => None,
            };
            if let Some(counted) = counted {
                *counted.entry(number(&entry)).or_default() += 1;
            }
            story.entries.insert(id, entry);
        }
        story
    }

    fn nothing_is_lost(&self, clients: &[Client]) {
        for (n, kept) in clients.iter().flat_map(|it| &it.kept) {
            let Kept { kind, entry } = kept;
            assert!(self.has(*n, kept), "{n}, a {kind:?}, was acknowledged as {entry} and is lost");
        }
    }

    /// Whether what was acknowledged is there, as what was sent.
    fn has(&self, n: u64, kept: &Kept) -> bool {
        self.pushed.get(&(kept.kind, n)).is_some_and(|it| it.contains(&kept.entry))
    }

    fn nothing_is_doubled(&self) {
        for ((kind, n), ids) in &self.pushed {
            assert_eq!(ids.len(), 1, "{n}, a {kind:?}, is there as {ids:?}");
            let mut replies = self.replies(&ids[0]);
            replies.sort_unstable();
            let count = |them: &BTreeMap<u64, usize>| them.get(n).copied().unwrap_or(0);
            let counts = [&self.rings, &self.ticks, &self.results].map(count);
            let right = match kind {
                // What it may be answered is looked at with its effects.
                Kind::Charge => replies.len() == 1,
                Kind::Post => replies == ["posted"],
                // What waited is sent once more when it is due.
                Kind::Remind => replies.is_empty() && counts == [2, 0, 0],
                Kind::Spawn => replies == ["thread-spawned"] && counts == [0, 0, 1],
                Kind::Timer => replies == ["tick", "timer-set"] && counts == [0, 1, 0],
            };
            assert!(right, "{n}, a {kind:?}: {replies:?}, rings, ticks and results {counts:?}");
        }
    }

    /// What must not be done twice was done once, or its sender knows that nobody knows.
    fn charges(&self, effects: &BTreeMap<(String, String), Effect>) -> usize {
        let mut unknown = 0;
        for (id, entry) in self.entries.iter().filter(|(_, it)| it.name.local() == "charge") {
            let effect = effects.get(&("charge".to_owned(), id.clone()));
            let (begun, ended) = effect.map_or((0, 0), |it| (it.attempts.len(), it.ended));
            assert!(begun <= 1, "charge {id} was begun {begun} times");
            match self.replies(id).as_slice() {
                ["charged"] => assert_eq!((begun, ended), (1, 1), "charge {id}"),
                ["huh"] => {
                    let huh = self.entries.values().find(|it| {
                        it.reply_to.as_ref() == Some(&entry.id) && it.name.local() == "huh"
                    });
                    let body = String::from_utf8(huh.unwrap().body.to_vec()).unwrap();
                    assert!(body.contains("P0016"), "charge {id}: {body}");
                    unknown += 1;
                }
                other => panic!("charge {id} has the answers {other:?}"),
            }
        }
        unknown
    }

    /// What may be done again was done to its end, at some attempt, and each has its own number.
    fn posts(&self, effects: &BTreeMap<(String, String), Effect>) {
        for id in self.entries.iter().filter(|(_, it)| it.name.local() == "post").map(|it| it.0) {
            let effect = effects.get(&("post".to_owned(), id.clone()));
            let effect = effect.unwrap_or_else(|| panic!("post {id} had no effect"));
            assert!(effect.ended >= 1, "post {id} never ended");
            let rising = effect.attempts.windows(2).all(|it| it[0] < it[1]);
            assert!(rising, "post {id} has the attempts {:?}", effect.attempts);
        }
    }

    /// Each reminder came once, at some attempt to its end, and not before its time.
    fn rings(&self, effects: &BTreeMap<(String, String), Effect>) {
        let early = effects.keys().find(|(what, _)| what == "early");
        assert!(early.is_none(), "a reminder came early: {early:?}");
        let rung: Vec<_> = effects.iter().filter(|((what, _), _)| what == "ring").collect();
        assert_eq!(rung.len(), self.rings.len(), "reminders that came, and those that were to");
        let half = rung.iter().find(|(_, it)| it.ended == 0);
        assert!(half.is_none(), "a reminder never ended: {:?}", half.map(|it| it.0));
    }

    fn replies(&self, id: &str) -> Vec<&str> {
        self.replies.get(id).into_iter().flatten().map(String::as_str).collect()
    }
}

/// What was done, by what and for which entry.
fn effects(ledger: &str) -> BTreeMap<(String, String), Effect> {
    let mut effects: BTreeMap<(String, String), Effect> = BTreeMap::new();
    for line in ledger.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [step, what, id, attempt, _] = words.as_slice() else { panic!("{line}") };
        let effect = effects.entry(((*what).to_owned(), (*id).to_owned())).or_default();
        match *step {
            "begin" => effect.attempts.push(attempt.parse().unwrap()),
            _ => effect.ended += 1,
        }
    }
    effects
}

/// What a log has of what was said and done.
pub(super) struct Found {
    /// The numbers of pushes that were acknowledged and aren't there.
    pub(super) lost: BTreeSet<u64>,
    /// Effects of messages that aren't there.
    pub(super) unfounded: u64,
}

/// Looks for what was acknowledged, and for what was done, in a log that isn't at rest.
pub(super) fn found<'a>(
    log: &SqliteLog,
    kept: impl Iterator<Item = (u64, &'a Kept)>,
    ledger: &str,
) -> Found {
    let story = Story::read(log);
    let lost = kept.filter(|(n, it)| !story.has(*n, it)).map(|(n, _)| n).collect();
    let effects = effects(ledger);
    let unfounded = effects.keys().filter(|it| !story.entries.contains_key(&it.1)).count();
    Found { lost, unfounded: unfounded as u64 }
}

/// The number in a payload.
fn number(entry: &Entry) -> u64 {
    let body = std::str::from_utf8(&entry.body).unwrap();
    let after = [" n=\"", " note=\"", ".n"].iter().find_map(|it| body.split_once(it));
    let (_, rest) = after.unwrap_or_else(|| panic!("{body} has no number"));
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    number.parse().unwrap()
}

/// Waits for what a log answers.
pub(super) fn wait<T>(asked: Boxed<'_, T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(asked).unwrap()
}
