//! A pump whose listeners have effects outside of it. Each effect adds lines to a file that no
//! crash of the pump takes back. The last arguments may say at which of its batches the pump dies,
//! and how far that batch gets. `tests/it/crash` starts the program, loads it and kills it.
//!
//! `effects LOG LEDGER HEADS full|normal [refused|taken|kept NUMBER]`

#![expect(clippy::expect_used, reason = "a test's program may fail where it stands")]

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::door::{Options, Tcp};
use pumphouse::id::ThreadId;
use pumphouse::listeners;
use pumphouse::log::{
    self, Batch, Boxed, Durability, Entry as Logged, Head, Health, Identity, Log, Noted, Open,
    Receipt, Report, SqliteLog, ThreadRecord, ThreadSummary,
};
use pumphouse::prelude::*;

/// How long an effect takes, at the most: so long there is a handler to be cut off.
const EFFECT_US_MAX: u64 = 2_000;
/// How much later a reminder comes, at the most.
const REMIND_US_MAX: u64 = 20_000;

macro_rules! numbered {
    ($($(#[$doc:meta])* $It:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Payload)]
        #[payload(ns = "urn:effects")]
        struct $It {
            /// Which one it is.
            #[payload(attribute)]
            n: u64,
        }
    )* };
}

numbered! {
    /// Does something that must not be done twice.
    Charge
    /// It is done.
    Charged
    /// Does something that may be done again.
    Post
    /// It is done.
    Posted
    /// Wants something to be done a little later.
    Remind
}

/// Now is later.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:effects")]
struct Ring {
    /// Which one it is.
    #[payload(attribute)]
    n: u64,
    /// When it is to be, in microseconds since the epoch.
    #[payload(attribute)]
    due: u64,
}

/// What was done outside.
#[derive(Clone)]
struct Ledger(Arc<File>);

impl Ledger {
    /// Begins and ends an effect; between the two the pump may die.
    async fn work(&self, what: &str, message: &Entry, attempt: u32, n: u64) {
        self.write("begin", what, message, attempt, n);
        #[expect(clippy::disallowed_methods, reason = "what happens outside takes real time")]
        tokio::time::sleep(Duration::from_micros(clock::random() % EFFECT_US_MAX)).await;
        self.write("end", what, message, attempt, n);
    }

    /// A line, whole, which outlives the process.
    fn write(&self, step: &str, what: &str, message: &Entry, attempt: u32, n: u64) {
        let line = format!("{step} {what} {} {attempt} {n}\n", message.id());
        (&*self.0).write_all(line.as_bytes()).expect("the ledger can be written");
    }
}

async fn charge(
    State(ledger): State<Ledger>,
    Message(message): Message,
    Attempt(attempt): Attempt,
    Charge { n }: Charge,
) -> Charged {
    ledger.work("charge", &message, attempt, n).await;
    Charged { n }
}

async fn post(
    State(ledger): State<Ledger>,
    Message(message): Message,
    Attempt(attempt): Attempt,
    Post { n }: Post,
) -> Posted {
    ledger.work("post", &message, attempt, n).await;
    Posted { n }
}

async fn remind(clock: Clock, Remind { n }: Remind) -> Later<Ring> {
    let due = clock.now_us() + clock::random() % REMIND_US_MAX;
    Later::at(due, Ring { n, due })
}

async fn ring(
    State(ledger): State<Ledger>,
    Message(message): Message,
    Attempt(attempt): Attempt,
    Ring { n, due }: Ring,
) {
    let what = if clock::now_us() < due { "early" } else { "ring" };
    ledger.work(what, &message, attempt, n).await;
}

/// How far the last batch comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Far {
    /// The log never hears of it.
    Refused,
    /// The log has taken it, and may be writing it.
    Taken,
    /// It is kept, and nobody was told.
    Kept,
}

/// A log in a file, with which the process dies at a batch.
struct Mortal {
    log: SqliteLog,
    /// Each head that the pump was told of, outside of it.
    heads: Arc<File>,
    ahead: Arc<File>,
    batches: AtomicU64,
    dies: Option<(Far, u64)>,
}

type Append = fn(&SqliteLog, Batch) -> Boxed<'static, Receipt>;

impl Mortal {
    fn put(&self, append: Append, batch: Batch) -> Boxed<'static, Receipt> {
        let number = self.batches.fetch_add(1, Ordering::Relaxed) + 1;
        let dies = self.dies.filter(|(_, at)| *at == number).map(|(far, _)| far);
        if dies == Some(Far::Refused) {
            std::process::abort();
        }
        let appending = append(&self.log, batch);
        if dies == Some(Far::Taken) {
            std::process::abort();
        }
        let heads = self.heads.clone();
        Box::pin(async move {
            let receipt = appending.await?;
            if dies == Some(Far::Kept) {
                std::process::abort();
            }
            let line = format!("{}\n", receipt.head);
            let told = (&*heads).write_all(line.as_bytes());
            told.map_err(|it| log::Error::Io(it.to_string().into()))?;
            Ok(receipt)
        })
    }
}

impl Log for Mortal {
    fn append(&self, batch: Batch) -> Boxed<'static, Receipt> {
        self.put(SqliteLog::append, batch)
    }

    fn append_ahead(&self, batch: Batch) -> Boxed<'static, Receipt> {
        // How many went this way is counted outside of the process.
        drop((&*self.ahead).write_all(b"."));
        self.put(SqliteLog::append_ahead, batch)
    }

    fn identity(&self) -> Identity {
        self.log.identity()
    }

    fn durability(&self) -> Durability {
        self.log.durability()
    }

    fn health(&self) -> Health {
        self.log.health()
    }

    fn thread<'a>(&'a self, id: &'a ThreadId) -> Boxed<'a, Option<ThreadRecord>> {
        self.log.thread(id)
    }

    fn tree<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<ThreadRecord>> {
        self.log.tree(root)
    }

    fn charges<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Arc<Logged>>> {
        self.log.charges(root)
    }

    fn count<'a>(&'a self, root: &'a ThreadId, but_from: &'a str) -> Boxed<'a, u64> {
        self.log.count(root, but_from)
    }

    fn marks<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Noted>> {
        self.log.marks(root)
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Arc<Logged>>> {
        self.log.read(thread, after, upto, limit)
    }

    fn tail(&self, after_position: u64, limit: usize) -> Boxed<'_, Vec<Arc<Logged>>> {
        self.log.tail(after_position, limit)
    }

    fn threads<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: usize,
    ) -> Boxed<'a, Vec<ThreadSummary>> {
        self.log.threads(after, limit)
    }

    fn client_id<'a>(&'a self, identity: &'a str, id: &'a str) -> Boxed<'a, Option<Arc<Logged>>> {
        self.log.client_id(identity, id)
    }

    fn open_entries(&self) -> Boxed<'_, Vec<Open>> {
        self.log.open_entries()
    }

    fn head(&self) -> Boxed<'_, Head> {
        self.log.head()
    }

    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report> {
        self.log.verify(expect)
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.log.close()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let pump = runtime.block_on(start())?;
    // Whoever started it holds the other end, and when that is gone, so are we.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(runtime.block_on(pump.shutdown())?)
}

async fn start() -> Result<Pump, Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [path, ledger, heads, durability, rest @ ..] = given.as_slice() else {
        return Err("effects LOG LEDGER HEADS full|normal [refused|taken|kept NUMBER]".into());
    };
    let beside = |path: &str| OpenOptions::new().append(true).create(true).open(path).map(Arc::new);
    let ledger = Ledger(beside(ledger)?);
    let log = SqliteLog::open(path, durability.parse()?)?;
    let (ahead, heads, dies) = (beside(&format!("{heads}-ahead"))?, beside(heads)?, dies(rest)?);
    let mortal = Arc::new(Mortal { log, heads, ahead, batches: AtomicU64::new(0), dies });
    let new = |name| Listener::with_state(name, ledger.clone());
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await?;
    let address = door.local_addr();
    let pump = pumphouse::builder()
        .with(listeners::standard())
        .with(new("till").on(charge))
        .with(new("mail").on(post).idempotent())
        .with(new("bell").on(remind).on(ring).idempotent().grant::<Timers>())
        .with(door)
        .with(move |builder: &mut Builder| builder.log(mortal))
        .build()?
        .start();
    pump.ready().await?;
    writeln!(std::io::stdout(), "{address}")?;
    Ok(pump)
}

/// When it is to die, if so.
fn dies(given: &[String]) -> Result<Option<(Far, u64)>, Box<dyn Error>> {
    let [far, number] = given else { return Ok(None) };
    let far = match far.as_str() {
        "refused" => Far::Refused,
        "taken" => Far::Taken,
        "kept" => Far::Kept,
        other => return Err(format!("a batch is refused, taken or kept, not {other}").into()),
    };
    Ok(Some((far, number.parse()?)))
}
