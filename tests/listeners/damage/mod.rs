//! Logs that are damaged in every way. `verify` finds the damage and says where it is, nothing
//! panics, and a pump that is started on such a log delivers nothing that was changed.

mod ways;
mod written;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::log::{Durability, Entry, Error, Log as _, Report, SqliteLog, Wrong};
use pumphouse::prelude::*;

use ways::{Chance, WAYS};
use written::{KEEPER, Said, Written};

/// How many damages are tried, unless `just damage` says.
const DAMAGES: u64 = 104;
/// What one of them takes at the most, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was heard of a message that was there before: where, from whom, what.
type Heard = Arc<Mutex<Vec<(EntryId, String, Vec<u8>)>>>;

/// A message of the log that is damaged.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:damage")]
struct Note {
    text: String,
}

/// How damages ended.
#[derive(Default)]
struct Tally {
    /// Nothing that a log says is different.
    harmless: u64,
    found: u64,
    /// Of those, how many a pump isn't started on.
    refused: u64,
}

#[tokio::test]
async fn every_damage_is_found_and_nothing_damaged_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::into(folder.path()).await;
    let report = verified(&written, &written.path).await.unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let seeds = match number("PUMPHOUSE_DAMAGE") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PUMPHOUSE_DAMAGES").unwrap_or(DAMAGES),
    };
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for seed in seeds {
        let (name, way) = WAYS[usize::try_from(seed).unwrap() % WAYS.len()];
        let copy = folder.path().join(format!("{seed}.db"));
        way(&written, &copy, &mut Chance::of(seed));
        let bytes = std::fs::read(&copy).unwrap();
        let judged = judge(&written, &copy, tallies.entry(name).or_default());
        #[expect(clippy::disallowed_methods, reason = "nobody else ends who walks in circles")]
        let judged = tokio::time::timeout(PATIENCE, judged).await;
        if let Err(why) = judged.unwrap_or_else(|_| Err("somebody walks in circles".to_owned())) {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged.db");
            std::fs::write(&kept, bytes).unwrap();
            let again = format!("`PUMPHOUSE_DAMAGE={seed}` repeats it; {}", kept.display());
            panic!("{name}: {why}\n{again} is the file");
        }
        for beside in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{beside}", copy.display()));
        }
    }
    println!("{:<26} {:>9} {:>9} {:>9}", "way", "harmless", "found", "refused");
    for (name, Tally { harmless, found, refused }) in &tallies {
        println!("{name:<26} {harmless:>9} {found:>9} {refused:>9}");
    }
    let found: u64 = tallies.values().map(|it| it.found).sum();
    let harmless: u64 = tallies.values().map(|it| it.harmless).sum();
    assert!(found + harmless == 1 || found > harmless, "most of a file matters");
}

fn number(variable: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "`just damage` says how many, or which")]
    std::env::var(variable).ok()?.parse().ok()
}

async fn verified(written: &Written, copy: &Path) -> Result<Report, Error> {
    SqliteLog::open_read_only(copy)?.verify(Some(written.head)).await
}

async fn judge(written: &Written, copy: &Path, tally: &mut Tally) -> Result<(), String> {
    let report = verified(written, copy).await;
    let is_sound = report.as_ref().is_ok_and(Report::is_sound);
    let said = match SqliteLog::open_read_only(copy) {
        Ok(log) => {
            if let Ok(report) = &report {
                named(written, &log, report).await?;
            }
            Said::by(&log).await
        }
        Err(error) => Err(error),
    };
    if is_sound && said.as_ref() != Ok(&written.said) {
        return Err(format!("verify finds nothing, but it says other things: {said:?}"));
    }
    if let Err(error) = &report
        && error.to_string().len() < 20
    {
        return Err(format!("nobody learns anything from {error}"));
    }
    tally.harmless += u64::from(is_sound);
    tally.found += u64::from(!is_sound);
    match delivered(copy).await {
        Err(_) if is_sound => Err("it is sound, and no pump starts on it".to_owned()),
        Err(_) => {
            tally.refused += 1;
            Ok(())
        }
        Ok(heard) => as_it_was(written, &heard),
    }
}

/// Whether each entry that reads otherwise than it was written is named, or what it stands on.
async fn named(written: &Written, log: &SqliteLog, report: &Report) -> Result<(), String> {
    let anywhere = [Wrong::Page, Wrong::Schema];
    if report.findings.iter().any(|it| anywhere.contains(&it.wrong)) || report.findings_more > 0 {
        return Ok(());
    }
    let all = log.tail(0, 1_000).await;
    for (at, entry) in written.said.entries.iter().enumerate() {
        let here = match &all {
            Ok(all) => Ok(all.iter().find(|it| it.position == entry.position).cloned()),
            Err(_) => log.tail(at as u64, 1).await.map(|it| it.into_iter().next()),
        };
        let is_named =
            |id: &EntryId| report.findings.iter().any(|it| it.entry.as_ref() == Some(id));
        let is_found = match &here {
            Ok(Some(it)) if it == entry => true,
            Ok(Some(it)) => is_named(&it.id) || is_elsewhere(written, it) && !report.is_sound(),
            // Gone, or not to be read: its neighbours are told, or its commit.
            Ok(None) | Err(_) => !report.is_sound(),
        };
        if !is_found && !report.findings.iter().any(|it| it.wrong == Wrong::Head) {
            return Err(format!("{} is {here:?}, and not named: {:?}", entry.id, report.findings));
        }
    }
    Ok(())
}

/// An entry that is as it was, at another's position: the chain has the order.
fn is_elsewhere(written: &Written, it: &Entry) -> bool {
    written.said.entries.iter().any(|entry| entry.id == it.id && entry.digest == it.digest)
}

/// Starts a pump, which takes up what is open, and hears what its handler is given.
async fn delivered(copy: &Path) -> Result<Vec<(EntryId, String, Vec<u8>)>, Error> {
    let log = SqliteLog::open(copy, Durability::Normal)?;
    let heard = Heard::default();
    let keeper = Listener::with_state(KEEPER, heard.clone()).on(hear);
    let plugin = (keeper.idempotent(), log);
    let pump = pumphouse::builder().with(plugin).workers(1).build().unwrap().start();
    let ready = pump.ready().await;
    // What a damaged entry kept from its end stays open for the next start.
    let _ = pump.shutdown().await;
    ready?;
    Ok(std::mem::take(&mut *heard.lock().unwrap()))
}

async fn hear(
    State(heard): State<Heard>,
    message: Message,
    history: History,
    Note { text: _ }: Note,
) -> Result<(), Fault> {
    let note = |it: &pumphouse::listener::Entry| {
        heard.lock().unwrap().push((it.id().clone(), it.from().to_owned(), it.body().to_vec()));
    };
    note(&message);
    history.all().await?.iter().for_each(note);
    Ok(())
}

fn as_it_was(written: &Written, heard: &[(EntryId, String, Vec<u8>)]) -> Result<(), String> {
    for (id, from, body) in heard {
        let was = written.said.entries.iter().find(|it| it.id == *id);
        let same = was.is_some_and(|it| *it.from == **from && it.body == body[..]);
        // What this start has added comes from the pump, or from the listener.
        if !same && (was.is_some() || from == "ada") {
            let body = String::from_utf8_lossy(body);
            return Err(format!("{id} was delivered as {body} from {from}"));
        }
    }
    Ok(())
}
