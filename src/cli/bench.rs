//! `bench`: how fast this machine takes messages, in one sitting, with the floor beside it.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cli::folder::Folder;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::client::{Client, Incoming, Push};
use crate::clock;
use crate::door::{Options, Tcp};
use crate::engine::Pump;
use crate::listener::{Again, Listener};
use crate::log::{Durability, Log, MemoryLog, SqliteLog};
use crate::wire::core::Done;
use crate::wire::{Fault, Payload};
use crate::xml;

/// Measures: the floor, hops between listeners, pushes over one connection, and answers.
///
/// Figures hold for this machine and this minute only; compare the ratios.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// How much to do: 1 takes some twenty seconds.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    scale: f64,
    /// Only the rows whose name and durability hold this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  pumphouse bench                    the whole table
  pumphouse bench --only push        the rows about pushes
  pumphouse bench --only full        the rows of this durability
  pumphouse bench --json             one object a row, for machines";

/// What the rows are called.
const FLOOR: &str = "floor: NsReader pass";
const HOP: &str = "hop, 1,000 threads";
const PUSH: &str = "push, one connection";
const ANSWER: &str = "push to answer";

/// How many threads the messages are spread over.
const HOP_THREADS: u64 = 1_000;
const PUSH_THREADS: usize = 100;

/// Counts down, one message a step.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
struct Add {
    /// What is left.
    a: u64,
    /// What is there beside it.
    b: u64,
}

/// Is taken, and nothing comes of it.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Sink {
    /// A number.
    a: u64,
    /// Some text.
    text: String,
}

/// One row of the table.
struct Row {
    name: &'static str,
    durability: Option<Durability>,
    figures: Vec<(&'static str, f64)>,
}

impl Bench {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let folder = Folder::make("bench")?;
        let wanted = |name: &str, durability: Option<Durability>| {
            let said = format!("{name} {}", durability.map_or("-", Durability::as_str));
            self.only.as_deref().is_none_or(|it| said.contains(it))
        };
        let times = |count: f64| {
            #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a count")]
            let count = (count * self.scale).max(1.0) as u64;
            count
        };
        if !to.json {
            to.line("what                       durability    figures")?;
        }
        if wanted(FLOOR, None) {
            show(to, &floor(times(1e6)))?;
        }
        if wanted(HOP, Some(Durability::Memory)) {
            show(to, &hop(times(2_000.0)).await?)?;
        }
        for durability in [Durability::Memory, Durability::Normal, Durability::Full] {
            if wanted(PUSH, Some(durability)) {
                show(to, &push(folder.path(), durability, times(300_000.0)).await?)?;
            }
        }
        for durability in [Durability::Memory, Durability::Normal, Durability::Full] {
            if wanted(ANSWER, Some(durability)) {
                show(to, &answer(folder.path(), durability, times(5_000.0)).await?)?;
            }
        }
        folder.remove()?;
        Ok(Ending::Well)
    }
}

fn show(to: &mut Screen<'_>, row: &Row) -> Result<(), Failure> {
    let durability = row.durability.map(Durability::as_str);
    if to.json {
        let mut object = json!({ "what": row.name, "durability": durability });
        for (name, figure) in &row.figures {
            object[*name] = json!(figure.round());
        }
        to.object(&object)?;
    } else {
        let figures: Vec<String> = row.figures.iter().map(|it| figure(it.0, it.1)).collect();
        let (name, durability) = (row.name, durability.unwrap_or("-"));
        to.line(&format!("{name:26} {durability:12}  {}", figures.join("   ")))?;
    }
    Ok(to.flush()?)
}

fn figure(name: &str, figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {}", name.replace('_', " "))
}

/// How long something took, as a rate.
fn rate(count: u64, since_us: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = count as f64 * 1e6 / clock::now_us().saturating_sub(since_us).max(1) as f64;
    rate
}

/// The 250-byte envelope that the rows are about.
fn envelope(thread: &str, number: u64) -> String {
    let text = format!(
        "<message xmlns=\"{}\"><meta><to>sink</to><thread>{thread}</thread></meta>\
         <sink xmlns=\"https://xml-pipeline.org/ns/bench/v1\"><a>{number}</a><text>",
        crate::name::ENVELOPE
    );
    let tail = "</text></sink></message>\n";
    let fill = 250_usize.saturating_sub(text.len() + tail.len());
    format!("{text}{}{tail}", "x".repeat(fill))
}

/// One pass of the tokenizer with namespaces, checking nothing: what a parser can't go below.
fn floor(count: u64) -> Row {
    let text = envelope("sess-k3v9x2ma", 12_345);
    let since = clock::now_us();
    let events: usize = (0..count).map(|_| xml::tokens(std::hint::black_box(&text))).sum();
    assert!(events > 0, "the envelope has tokens");
    let per_second = rate(count, since);
    Row { name: FLOOR, durability: None, figures: vec![("per_second", per_second)] }
}

/// Messages from a listener to itself: emit, encode, check, route, append, decode, handle.
async fn hop(length: u64) -> Result<Row, Failure> {
    let down = async |Add { a, b }: Add| (a > 1).then(|| Again(Add { a: a - 1, b }));
    let listener = Listener::new("chain").on(down).inline().pure();
    let pump = start(Arc::new(MemoryLog::new()), listener, None)?;
    pump.ready().await?;
    let since = clock::now_us();
    let chains = (0..HOP_THREADS).map(|b| {
        let pump = pump.clone();
        async move { pump.ask::<Done>(Add { a: length, b }).await }
    });
    for ended in futures_util::future::join_all(chains).await {
        ended.map_err(|error| Failure::Wrong(error.to_string()))?;
    }
    let per_second = rate(length * HOP_THREADS, since);
    pump.shutdown().await?;
    let durability = Some(Durability::Memory);
    Ok(Row { name: HOP, durability, figures: vec![("per_second", per_second)] })
}

fn start(log: Arc<dyn Log>, listener: Listener, door: Option<Tcp>) -> Result<Pump, Failure> {
    let builder = crate::engine::Builder::default().with(listener);
    let builder = builder.with(|it: &mut crate::engine::Builder| it.log(log));
    let builder = match door {
        Some(door) => builder.with(door),
        None => builder,
    };
    Ok(builder.build().map_err(|error| Failure::Wrong(error.to_string()))?.start())
}

fn log(folder: &Path, durability: Durability, name: &str) -> Result<Arc<dyn Log>, Failure> {
    if durability == Durability::Memory {
        return Ok(Arc::new(MemoryLog::new()));
    }
    let file = folder.join(format!("{name}-{durability}.db"));
    Ok(Arc::new(SqliteLog::open(file, durability)?))
}

async fn door() -> Result<Tcp, Failure> {
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await;
    door.map_err(|error| Failure::Untried(error.to_string()))
}

/// Pushes over one connection without waiting, to a listener that returns nothing; counted until
/// the last is acknowledged.
async fn push(folder: &Path, durability: Durability, count: u64) -> Result<Row, Failure> {
    let door = door().await?;
    let address = door.local_addr();
    let sink = Listener::new("sink").on(async |_: Sink| {}).inline().pure();
    let pump = start(log(folder, durability, "push")?, sink, Some(door))?;
    pump.ready().await?;
    let mut threads = Vec::new();
    for number in 0..PUSH_THREADS as u64 {
        let opened = pump.tell(Sink { a: number, text: String::new() }).await;
        threads.push(opened.map_err(|fault: Fault| Failure::Wrong(fault.to_string()))?.thread);
    }
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let (mut reader, mut writer) = socket.into_split();
    let since = clock::now_us();
    let write = async {
        let mut block = String::new();
        for number in 0..count {
            let thread = &threads[usize::try_from(number).unwrap_or(0) % threads.len()];
            block.push_str(&envelope(thread.as_str(), number));
            if block.len() > 32 * 1024 {
                writer.write_all(block.as_bytes()).await?;
                block.clear();
            }
        }
        writer.write_all(block.as_bytes()).await
    };
    let read = async {
        let (mut answers, mut buffer) = (0, vec![0; 64 * 1024]);
        while answers < count {
            let read = reader.read(&mut buffer).await?;
            if read == 0 {
                return Err(std::io::Error::other("the connection was closed"));
            }
            answers += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        }
        Ok(())
    };
    let (written, answered) = tokio::join!(write, read);
    written?;
    answered?;
    let per_second = rate(count, since);
    let refused: u64 = pump.refusals().values().sum();
    if refused > 0 {
        return Err(Failure::Wrong(format!("{refused} pushes were refused")));
    }
    drop(writer);
    pump.shutdown().await?;
    let figures = vec![("per_second", per_second)];
    Ok(Row { name: PUSH, durability: Some(durability), figures })
}

/// Pushes one at a time and waits for each answer.
async fn answer(folder: &Path, durability: Durability, count: u64) -> Result<Row, Failure> {
    let door = door().await?;
    let address = door.local_addr();
    let echo = Listener::new("sink").on(async |it: Sink| it).inline().pure();
    let pump = start(log(folder, durability, "answer")?, echo, Some(door))?;
    pump.ready().await?;
    let wrong = |error: crate::client::Error| Failure::Wrong(error.to_string());
    let mut client = Client::connect(address).await.map_err(wrong)?;
    let sink = Sink { a: 1, text: "x".repeat(60) };
    let first = pump.tell(sink.clone()).await;
    let thread = first.map_err(|fault| Failure::Wrong(fault.to_string()))?.thread;
    let push = Push::of(&sink).map_err(|fault| Failure::Wrong(fault.to_string()))?;
    let push = push.in_thread(&thread);
    let mut times = Vec::new();
    for _ in 0..count {
        let since = clock::now_us();
        client.push(&push);
        client.flush().await.map_err(wrong)?;
        loop {
            match client.recv().await.map_err(wrong)? {
                Some(Incoming::Message(_)) => break,
                Some(Incoming::Accepted { .. }) => {}
                other => return Err(Failure::Wrong(format!("{other:?} came instead"))),
            }
        }
        times.push(clock::now_us().saturating_sub(since));
    }
    drop(client);
    pump.shutdown().await?;
    times.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a round trip")]
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)] as f64;
    let figures = vec![("us_p50", at(50)), ("us_p99", at(99))];
    Ok(Row { name: ANSWER, durability: Some(durability), figures })
}
