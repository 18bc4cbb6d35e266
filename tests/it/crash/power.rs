//! Power cuts. The log is on a small file system of its own, whose image is copied while the pump
//! is suspended. The copy has what was on the disk, and nothing that was only in the system's
//! memory. The copy is then mounted, as after a power cut, and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::log::{Durability, Head, Log, SqliteLog};

use super::check::{self, wait};
use super::effects::{Place, Process};
use super::load::{Client, Kept};
use super::times;

/// Cuts of each durability, unless `just powercut` says how many.
const CUTS: u64 = 3;
/// Cuts of one log.
const CUTS_OF_ONE: u64 = 25;
/// How long the pump works between two cuts, at the most.
const WORK_US_MAX: u64 = 100_000;
/// The file system's size, of which little is ever written.
const IMAGE_BYTES: u64 = 512 << 20;
/// How long before a cut the earliest may have been acknowledged of what is lost, where nothing is
/// synced before it is. A sync comes each second, and takes its time.
const LOST_US_MAX: u64 = 5_000_000;
/// How often an image is copied again because the system wrote to it meanwhile.
const COPIES_MAX: u32 = 100;

/// A file system in a file; it is let go when it is dropped.
struct Mounted {
    image: PathBuf,
    at: PathBuf,
}

/// What was acknowledged.
#[derive(Clone, Default)]
struct Told {
    /// What, and when.
    kept: BTreeMap<u64, (Kept, u64)>,
    /// How long the pump was held until then, which is no time to it.
    held_us: u64,
}

/// What many cuts came to.
#[derive(Default)]
struct Totals {
    cuts: u64,
    acknowledged: u64,
    lost: u64,
    /// Effects of messages that are lost.
    unfounded: u64,
    /// Cuts that lost something.
    losses: u64,
    /// How long before a cut the earliest of what it lost was acknowledged.
    lost_us: u64,
}

#[test]
fn a_power_cut_loses_nothing_that_is_synced() {
    let Some(totals) = cuts("full", times("PUMPHOUSE_CUTS", CUTS)) else { return };
    assert_eq!((totals.lost, totals.unfounded), (0, 0));
}

#[test]
fn a_power_cut_of_what_is_only_written_leaves_a_sound_beginning() {
    let Some(totals) = cuts("normal", times("PUMPHOUSE_CUTS", CUTS)) else { return };
    assert!(totals.lost_us < LOST_US_MAX, "{} µs are lost", totals.lost_us);
}

/// Cuts the power so many times; nothing, where no file system may be mounted.
fn cuts(durability: &str, cuts: u64) -> Option<Totals> {
    let mut totals = Totals::default();
    while totals.cuts < cuts {
        let last = cuts.min(totals.cuts + CUTS_OF_ONE);
        story(durability, last, &mut totals)?;
    }
    let Totals { cuts, acknowledged, lost, losses, lost_us, .. } = totals;
    let earliest = Duration::from_micros(lost_us);
    println!(
        "{durability}: {cuts} power cuts, {acknowledged} acknowledged pushes looked for; {losses} \
         cuts lost {lost}, the earliest of them acknowledged {earliest:?} before its cut"
    );
    Some(totals)
}

/// Loads one log, and cuts its power until that was done so many times.
fn story(durability: &str, last: u64, totals: &mut Totals) -> Option<()> {
    let folder = tempfile::tempdir().unwrap();
    let disk = Mounted::new(folder.path())?;
    let place = Place::new(&disk.at, folder.path());
    let mut process = Process::spawn(&mut place.command(durability, None));
    let (address, _) = process.ready().expect("it starts");
    let told = Mutex::new(Told::default());
    let mut heads: Vec<Head> = Vec::new();
    std::thread::scope(|scope| {
        // Where a cut fails, it goes at once, and so do the clients.
        let mut process = process;
        for number in 0..4 {
            let (told, address) = (&told, &address);
            scope.spawn(move || {
                Client::new(number).push(address, |n, kept| {
                    let mut told = lock(told);
                    let at_us = clock::now_us() - told.held_us;
                    told.kept.insert(n, (kept.clone(), at_us));
                    true
                });
            });
        }
        while totals.cuts < last {
            std::thread::park_timeout(Duration::from_micros(clock::random() % WORK_US_MAX));
            heads.push(cut(&disk, &process, &told, &place, totals));
            assert!(durability != "full" || totals.lost == 0, "{} are lost", totals.lost);
        }
        process.kill();
    });
    // Each cut left a beginning of what the pump went on with.
    let log = SqliteLog::open(&place.log, Durability::Full).unwrap();
    for head in heads {
        let report = wait(log.verify(Some(head)));
        assert!(report.is_sound(), "{report:#?}");
    }
    Some(())
}

/// One cut: what the disk has at this moment, against what was acknowledged by then.
fn cut(
    disk: &Mounted,
    process: &Process,
    told: &Mutex<Told>,
    place: &Place,
    totals: &mut Totals,
) -> Head {
    let folder = place.ledger.parent().unwrap();
    let copy = folder.join("copy");
    process.hold();
    let began_us = clock::now_us();
    disk.copy(&copy);
    let Told { kept, held_us } = lock(told).clone();
    let ledger = std::fs::read_to_string(&place.ledger).unwrap();
    let after = Mounted::mount(copy, folder.join("after")).expect("it was mounted before");
    let log = SqliteLog::open(after.at.join("pumphouse.db"), Durability::Full).unwrap();
    let report = wait(log.verify(None));
    assert!(report.is_sound(), "{report:#?}");
    let found = check::found(&log, kept.iter().map(|(n, it)| (*n, &it.0)), &ledger);
    totals.cuts += 1;
    totals.acknowledged += kept.len() as u64;
    totals.lost += found.lost.len() as u64;
    totals.unfounded += found.unfounded;
    totals.losses += u64::from(!found.lost.is_empty());
    let earliest = found.lost.iter().map(|n| (began_us - held_us).saturating_sub(kept[n].1)).max();
    totals.lost_us = totals.lost_us.max(earliest.unwrap_or(0));
    let head = wait(log.head());
    lock(told).held_us += clock::now_us() - began_us;
    process.go_on();
    head
}

impl Mounted {
    /// An empty one; none, where this user can't mount any.
    fn new(folder: &Path) -> Option<Mounted> {
        let image = folder.join("image");
        std::fs::File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        // Nothing is left for the system to write later, so that what it writes is ours.
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F", "-E", options]).arg(&image));
        let mounted = made.and_then(|()| Mounted::mount(image, folder.join("disk")));
        if mounted.is_none() {
            crate::skipped("no file system can be made and mounted by this user");
        }
        mounted
    }

    fn mount(image: PathBuf, at: PathBuf) -> Option<Mounted> {
        std::fs::create_dir_all(&at).unwrap();
        run(Command::new("mount").args(["-o", "loop"]).args([&image, &at]))?;
        Some(Mounted { image, at })
    }

    /// Copies the image as it is at one moment: nothing was written to it meanwhile.
    fn copy(&self, to: &Path) {
        for _ in 0..COPIES_MAX {
            let before = self.writes();
            let mut copy = Command::new("cp");
            run(copy.arg("--sparse=always").args([&self.image, to])).expect("it can be copied");
            if self.writes() == before {
                return;
            }
        }
        panic!("the system never stops writing to {}", self.image.display());
    }

    /// How many writes the device behind the mount has done and has at hand.
    fn writes(&self) -> [u64; 2] {
        let device = Command::new("findmnt").args(["-no", "SOURCE"]).arg(&self.at).output();
        let device = String::from_utf8(device.unwrap().stdout).unwrap();
        let name = device.trim().rsplit('/').next().unwrap();
        let told = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let numbers: Vec<u64> = told.split_whitespace().map(|it| it.parse().unwrap()).collect();
        // The fifth is how many writes are done, the ninth how much is at hand.
        [numbers[4], numbers[8]]
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = run(Command::new("umount").arg(&self.at));
        if done.is_none() {
            // Whoever still holds it lets it go when they end.
            run(Command::new("umount").arg("--lazy").arg(&self.at));
        }
        drop(std::fs::remove_file(&self.image));
    }
}

/// Runs a command; none, where that can't be done.
fn run(command: &mut Command) -> Option<()> {
    let ran = command.output().ok()?;
    ran.status.success().then_some(())
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap()
}
