//! Checks the pump's system calls. No acknowledgement is sent and no effect begins before a sync of
//! the disk has covered the message.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

use super::effects::{Place, Process};
use super::load::Client;
use super::times;

/// Acknowledgements, unless `just syncs` says how many.
const ACKNOWLEDGED: u64 = 400;
/// Connections that push at once.
const CLIENTS: u64 = 4;

/// What one thread of the pump asked the system for last, and hadn't when the line ended.
type UnderWay = BTreeMap<String, BTreeSet<String>>;

#[derive(Default)]
struct Seen {
    /// Numbers that were written to the log, and not synced yet.
    written: BTreeSet<String>,
    /// Numbers that a sync covers.
    synced: BTreeSet<String>,
    syncing: UnderWay,
    syncs: u64,
    acknowledged: u64,
    begun: u64,
}

#[test]
fn nothing_is_said_or_begun_before_the_disk_has_it() {
    let acknowledged = times("PUMPHOUSE_SYNCS", ACKNOWLEDGED);
    let folder = tempfile::tempdir().unwrap();
    let (place, trace) = (Place::new(folder.path(), folder.path()), folder.path().join("trace"));
    let calls = "trace=fdatasync,fsync,pwrite64,write,writev,sendto,sendmsg";
    // Whole messages, however long a write is.
    let options = ["-s", "1000000", "-e", calls, "-o", trace.to_str().unwrap()];
    let Some(mut command) = place.traced("full", &options) else { return };
    let mut process = Process::spawn(&mut command);
    let (address, _) = process.ready().expect("it starts");
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let each = acknowledged.div_ceil(CLIENTS);
            let mut left = each;
            let address = &address;
            scope.spawn(move || {
                Client::new(number).push(address, |_, _| {
                    left -= 1;
                    left > 0
                });
            });
        }
    });
    process.stop();
    let mut seen = Seen::default();
    for line in BufReader::new(std::fs::File::open(trace).unwrap()).split(b'\n') {
        seen.line(&String::from_utf8_lossy(&line.unwrap()));
    }
    println!(
        "{} acknowledgements and {} effects, none of them before its sync; {} syncs",
        seen.acknowledged, seen.begun, seen.syncs
    );
    assert!(seen.acknowledged >= acknowledged, "{} were seen", seen.acknowledged);
    assert!(seen.begun > 0, "no effect was seen");
}

impl Seen {
    fn line(&mut self, line: &str) {
        let Some((thread, rest)) = line.split_once(' ') else { return };
        let call = rest.trim_start();
        if let Some((name, _)) = call.strip_prefix("<... ").and_then(|it| it.split_once(' ')) {
            if is_sync(name) {
                let covered = self.syncing.remove(thread).expect("it was begun");
                self.sync(covered, call);
            }
            return;
        }
        let Some((name, given)) = call.split_once('(') else { return };
        let in_log = given.split_once('>').is_some_and(|(to, _)| to.ends_with(".db-wal"));
        if is_sync(name) && in_log {
            let covered = std::mem::take(&mut self.written);
            match call.contains("<unfinished") {
                true => drop(self.syncing.insert(thread.to_owned(), covered)),
                false => self.sync(covered, call),
            }
        } else if name == "pwrite64" && in_log {
            let new = numbers(given).filter(|it| !self.synced.contains(*it));
            self.written.extend(new.map(str::to_owned));
        } else if is_sync(name) {
            // Of the file itself, which is no earlier than the log beside it.
            self.syncing.insert(thread.to_owned(), BTreeSet::new());
        } else {
            self.said(given, line);
        }
    }

    fn sync(&mut self, covered: BTreeSet<String>, call: &str) {
        assert!(call.trim_end().ends_with("= 0"), "a sync failed: {call}");
        self.synced.extend(covered);
        self.syncs += 1;
    }

    /// Looks at what went to a client, or into the ledger.
    fn said(&mut self, given: &str, line: &str) {
        for accepted in given.split("<accepted ").skip(1) {
            let (_, rest) = accepted.split_once("id=\\\"n").expect("each push has an id");
            let number = rest.split('\\').next().unwrap();
            assert!(self.synced.contains(number), "{number} isn't synced: {line}");
            self.acknowledged += 1;
        }
        if let Some((_, begun)) = given.split_once(", \"begin ") {
            let number = begun.split([' ', '\\']).nth(3).unwrap();
            assert!(self.synced.contains(number), "{number} isn't synced: {line}");
            self.begun += 1;
        }
    }
}

fn is_sync(name: &str) -> bool {
    matches!(name, "fdatasync" | "fsync")
}

/// The numbers of pushes in what was written, as strace quotes it: `n=\"1000000007\"`.
fn numbers(given: &str) -> impl Iterator<Item = &str> {
    let quoted = given.split("=\\\"").skip(1).filter_map(|it| it.split_once('\\'));
    quoted.map(|it| it.0).filter(|it| it.len() == 10 && it.bytes().all(|it| it.is_ascii_digit()))
}
