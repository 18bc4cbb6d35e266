//! Crashes of a real process under load. Each acknowledged message is in the log once, effects that
//! must not be repeated happened at most once, and the head from before the crash is on the chain.

mod check;
mod demo;
mod effects;
mod load;
mod order;
mod power;
mod sick;
mod works;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::log::{Head, Log};

use check::{Sum, check, wait};
use effects::{Place, Process};
use load::Client;

/// Kills, unless `just crash` says how many.
const KILLS: u64 = 50;
/// Kills of one log; then another begins, for looking at all of it takes longer each time.
const KILLS_OF_ONE: u64 = 25;
/// Logs that are loaded and killed side by side.
const STORIES_AT_ONCE: usize = 2;
/// Connections that push at once, each into threads of its own.
const CLIENTS: u64 = 8;
/// How long a load lasts, at the most.
const LOAD_US_MAX: u64 = 150_000;
/// How soon after its start a pump is killed that is to die while it takes up what it finds.
const START_US_MAX: u64 = 60_000;
/// How long what a crash left behind may take.
const REST_US_MAX: u64 = 30_000_000;
/// How long a start may take; these logs are far below a GiB.
const READY_MAX: Duration = Duration::from_secs(2);

/// How a pump ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// `kill -9`, so long after the load began.
    Loaded(Duration),
    /// `kill -9`, so long after its start.
    Starting(Duration),
    /// By itself, at a batch: before the log takes it, once it has, or once it is kept.
    AtBatch(&'static str, u64),
}

impl End {
    /// Each second one at a batch, one after the other; each sixth at the start.
    fn of(kill: u64) -> End {
        let below = |most| Duration::from_micros(clock::random() % most);
        match kill % 6 {
            1 => End::Starting(below(START_US_MAX)),
            3 | 5 => End::Loaded(below(LOAD_US_MAX)),
            _ => {
                let number = kill / 2;
                let far = ["refused", "taken", "kept"][usize::try_from(number % 3).unwrap()];
                End::AtBatch(far, number / 3 + 1)
            }
        }
    }

    fn at_batch(self) -> Option<(&'static str, u64)> {
        match self {
            End::AtBatch(far, number) => Some((far, number)),
            End::Loaded(_) | End::Starting(_) => None,
        }
    }
}

/// What many crashes came to.
#[derive(Default)]
struct Totals {
    /// Those that died before they were ready.
    unready: u64,
    acknowledged: usize,
    repeated: u64,
    /// Batches that went ahead of others into the log.
    ahead: u64,
    sum: Sum,
    starts: Vec<Duration>,
}

impl Totals {
    fn with(mut self, other: Totals) -> Totals {
        self.unready += other.unready;
        self.acknowledged += other.acknowledged;
        self.repeated += other.repeated;
        self.ahead += other.ahead;
        self.sum.entries += other.sum.entries;
        self.sum.begun += other.sum.begun;
        self.sum.again += other.sum.again;
        self.sum.unknown += other.sum.unknown;
        self.starts.extend(other.starts);
        self
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let kills = times("PUMPHOUSE_CRASHES", KILLS);
    let next = AtomicU64::new(0);
    let work = || {
        let mut totals = Totals::default();
        loop {
            let first = next.fetch_add(KILLS_OF_ONE, Ordering::Relaxed);
            if first >= kills {
                return totals;
            }
            story(first..kills.min(first + KILLS_OF_ONE), &mut totals);
        }
    };
    let totals = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..STORIES_AT_ONCE).map(|_| scope.spawn(work)).collect();
        let all = workers.into_iter().map(|it| it.join().expect("nothing is lost"));
        all.fold(Totals::default(), Totals::with)
    });
    let Totals { unready, acknowledged, repeated, ahead, sum, mut starts } = totals;
    starts.sort_unstable();
    let (median, longest) = (starts[starts.len() / 2], starts[starts.len() - 1]);
    println!(
        "{kills} kills, {unready} of them before the pump was ready; {acknowledged} acknowledged \
         pushes, {repeated} said again under their ids, {} entries: 0 lost, 0 doubled; \
         {} effects begun, {} of them again by who may, {} cut off and told so; \
         {ahead} batches went ahead; ready after {median:?}, at the most {longest:?}",
        sum.entries, sum.begun, sum.again, sum.unknown,
    );
    assert!(median < READY_MAX, "half of the starts took longer than {median:?}");
    if kills >= KILLS {
        assert!(sum.unknown > 0 && sum.again > 0, "nothing was ever cut off");
        assert!(ahead > 0, "nothing ever went ahead");
    }
}

/// How often, where the justfile says it.
#[expect(clippy::disallowed_methods, reason = "the justfile's recipes say how often")]
fn times(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |it| it.parse().expect("a number of times"))
}

/// Loads and kills one log, with an end for each of these numbers.
fn story(kills: Range<u64>, totals: &mut Totals) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), folder.path());
    let mut clients: Vec<Client> = (0..CLIENTS).map(Client::new).collect();
    for kill in kills {
        let end = End::of(kill);
        let mut process = Process::spawn(&mut place.command("full", end.at_batch()));
        if let End::Starting(after) = end {
            std::thread::park_timeout(after);
            process.kill();
            // What it had written by then is still to be read.
            totals.unready += u64::from(process.ready().is_none());
            continue;
        }
        let Some((address, took)) = process.ready() else {
            totals.unready += 1;
            continue;
        };
        totals.starts.push(took);
        if rests(&place, &mut process) {
            look(&place, &clients);
        }
        load(&mut clients, &address, &mut process, end);
    }
    let mut process = Process::spawn(&mut place.command("full", None));
    assert!(process.ready().is_some() && rests(&place, &mut process));
    process.stop();
    let sum = look(&place, &clients);
    let ahead = std::fs::metadata(format!("{}-ahead", place.heads.display()));
    totals.ahead += ahead.unwrap().len();
    totals.acknowledged += clients.iter().map(|it| it.kept.len()).sum::<usize>();
    totals.repeated += clients.iter().map(|it| it.repeated).sum::<u64>();
    totals.sum.entries += sum.entries;
    totals.sum.begun += sum.begun;
    totals.sum.again += sum.again;
    totals.sum.unknown += sum.unknown;
}

/// Waits until nothing is open in the log; not, if the pump ends before.
fn rests(place: &Place, process: &mut Process) -> bool {
    let log = place.log();
    let until_us = clock::now_us() + REST_US_MAX;
    while process.lives() {
        let open = wait(log.open_entries());
        if open.is_empty() {
            return true;
        }
        assert!(clock::now_us() < until_us, "still open: {open:#?}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    false
}

/// Has the clients push until the pump is gone.
fn load(clients: &mut [Client], address: &str, process: &mut Process, end: End) {
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(move || client.push(address, |_, _| true));
        }
        if let End::Loaded(after) = end {
            std::thread::park_timeout(after);
            process.kill();
        }
    });
    process.kill();
}

/// Checks all there is, and that the last head that the pump was told of is on the chain.
fn look(place: &Place, clients: &[Client]) -> Sum {
    let (log, ledger) = (place.log(), std::fs::read_to_string(&place.ledger).unwrap());
    let heads = std::fs::read_to_string(&place.heads).unwrap();
    let head = heads.lines().last().map(|it| it.parse::<Head>().unwrap());
    assert!(head.is_some() || clients.iter().all(|it| it.kept.is_empty()));
    let report = wait(log.verify(head));
    assert!(report.is_sound(), "{report:#?}");
    check(&log, clients, &ledger)
}
