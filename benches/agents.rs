//! Measures what agents cost: the time from `</action>` to the tool, a turn whose tools run while
//! its reply still streams, a thousand agents, many waiting turns, a long thread, and cached feeds.
//! Run it with `just agents`, or with `just agents WHAT` for one of `tool`, `research`, `crowd`,
//! `waits`, `storage` and `feeds`.
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::expect_used, reason = "what fails here measures nothing")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pumphouse::limits::UNLIMITED;
use pumphouse::listeners::agent::settings::{Keep, Settings};
use pumphouse::listeners::agent::words::{CognitionOut, Dispatch};
use pumphouse::listeners::feed::{Definition, Feeds, Source};
use pumphouse::listeners::{agent::Agent, staff};
use pumphouse::log::{Durability, Log, MemoryLog, SqliteLog};
use pumphouse::model::{
    Boxed, Error, Model, Piece, Prompt, Remote, Reply, Script, Scripted, Stop, Wire,
};
use pumphouse::prelude::*;

/// The same allocator as in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Something to do that takes its time.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Work {
    ms: u64,
}

/// What came of it.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Worked {
    ms: u64,
}

/// The times at which a tool's handler ran.
type Ran = Arc<Mutex<Vec<Instant>>>;

async fn work(State(ran): State<Ran>, Work { ms }: Work) -> Worked {
    ran.lock().expect("nobody panics").push(Instant::now());
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Worked { ms }
}

/// Limits without the bounds that would stop the benchmarks.
fn limits() -> Limits {
    Limits {
        tree_messages_max: UNLIMITED,
        thread_turns_max: UNLIMITED,
        tree_seconds_max: UNLIMITED,
        chain_max: usize::MAX,
        ..Limits::default()
    }
}

fn start(log: Arc<dyn Log>, agents: Vec<Agent>, ran: &Ran) -> Pump {
    let tool = Listener::with_state("tool", ran.clone()).on(work).idempotent();
    let agents: Vec<Listener> = agents.into_iter().map(Agent::listener).collect();
    let log = move |it: &mut Builder| it.log(log);
    let builder = pumphouse::builder().with((staff(), tool, agents, log)).limits(limits());
    builder.build().expect("it is sound").start()
}

fn oracle(model: Arc<dyn Model>, change: impl FnOnce(&mut Settings)) -> Agent {
    let mut settings = Settings { max_turns: UNLIMITED, ..Settings::default() };
    change(&mut settings);
    Agent::new("oracle", model).settings(settings).peers(["tool"])
}

/// Asks a question and waits for the final response.
async fn ask(pump: &Pump, question: Element) -> Entry {
    pump.ask_element(question).await.expect("it answers")
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |it: &str| wanted.is_empty() || wanted.iter().any(|other| other == it);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        if is_wanted("tool") {
            tool().await;
        }
        if is_wanted("research") {
            research().await;
        }
        if is_wanted("crowd") {
            crowd().await;
        }
        if is_wanted("waits") {
            waits().await;
        }
        if is_wanted("storage") {
            storage().await;
        }
        if is_wanted("feeds") {
            feeds().await;
        }
    });
}

/// A model that notes the time at which it returns the last piece of an action.
#[derive(Clone, Debug)]
struct Prompter {
    /// Characters per piece.
    at_once: usize,
    said: Arc<Mutex<Vec<Instant>>>,
}

const CALL: &str = r#"<action id="a">{"name": "tool", "parameters": {"ms": 0}}</action>"#;

#[derive(Debug)]
struct Prompted {
    said: Arc<Mutex<Vec<Instant>>>,
    /// The index of the piece that ends the action, if the reply has one.
    last: Option<usize>,
    pieces: std::iter::Enumerate<std::vec::IntoIter<Piece>>,
}

impl Model for Prompter {
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        let is_first = prompt.messages.last().is_none_or(|it| !it.text.contains("action-result"));
        let text = if is_first { CALL } else { "<response>.</response>" };
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (next, after) = rest.split_at(rest.len().min(self.at_once));
            pieces.push(Piece::Text(next.to_owned()));
            rest = after;
        }
        pieces.push(Piece::Stop(Stop::End));
        let (said, last) = (self.said.clone(), is_first.then(|| pieces.len() - 2));
        let reply = Prompted { said, last, pieces: pieces.into_iter().enumerate() };
        Box::pin(async move { Ok(Box::new(reply) as Box<dyn Reply>) })
    }

    fn describe(&self) -> String {
        "a prompter".to_owned()
    }
}

impl Reply for Prompted {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        Box::pin(async move {
            let next = self.pieces.next();
            if next.as_ref().is_some_and(|(at, _)| Some(*at) == self.last) {
                self.said.lock().expect("nobody panics").push(Instant::now());
            }
            Ok::<_, Error>(next.map(|(_, piece)| piece))
        })
    }
}

/// Measures the time from the last character of `</action>` to the tool's handler. The action comes
/// once in pieces of 4 characters, as a model writes it, and once whole.
async fn tool() {
    for durability in [Durability::Memory, Durability::Normal, Durability::Full] {
        for (at_once, how) in [(4, "4 characters at a time"), (CALL.len(), "whole")] {
            let (said, ran) = (Arc::default(), Ran::default());
            let prompter = Prompter { at_once, said };
            let agent = oracle(Arc::new(prompter.clone()), |_| {});
            let question = agent.ask("Go.").expect("it is text");
            let folder = tempfile::tempdir().expect("a folder");
            let pump = start(log(folder.path(), durability), vec![agent], &ran);
            for _ in 0..2_000 {
                ask(&pump, question.clone()).await;
            }
            let said = prompter.said.lock().expect("nobody panics").clone();
            let ran = ran.lock().expect("nobody panics").clone();
            let mut took: Vec<Duration> = said.iter().zip(&ran).map(|(a, b)| *b - *a).collect();
            took.sort_unstable();
            let at = |part: usize| took[took.len() * part / 100];
            println!("tool: {durability:?}, {how}  p50 {:?}, p99 {:?}", at(50), at(99));
            pump.shutdown().await.expect("it stops");
        }
    }
}

/// Times a turn with three tools, which take 1.0, 1.2 and 0.8 s, in a reply that streams for 2 s.
async fn research() {
    let mut text = String::from("<thought>Three sources.</thought>\n");
    for (id, ms) in [("wiki", 1_000), ("arxiv", 1_200), ("news", 800)] {
        text += &format!("<action mode=\"async\" id=\"{id}\">");
        text += &format!("{{\"name\": \"tool\", \"parameters\": {{\"ms\": {ms}}}}}</action>\n");
    }
    text += &format!("<thought>{}</thought>\n", "While they run, I think on. ".repeat(30));
    text += "<response>$wiki $arxiv $news</response>";
    for dispatch in [Dispatch::Immediate, Dispatch::AfterResponse] {
        let chunk = 12;
        let every =
            Duration::from_secs(2) / u32::try_from(text.len() / chunk).expect("it is short");
        let script = Script::text(text.clone()).chunks(chunk).every(every);
        let model = Scripted::replies([script]);
        let ran = Ran::default();
        let agent = oracle(Arc::new(model), |it| it.dispatch = dispatch);
        let question = agent.ask("Go.").expect("it is text");
        let pump = start(Arc::new(MemoryLog::new()), vec![agent], &ran);
        let begun = Instant::now();
        ask(&pump, question).await;
        let took = begun.elapsed();
        let first = ran.lock().expect("nobody panics").first().map(|it| *it - begun);
        println!("research: {dispatch:?}  {took:.2?}, the first tool after {first:.2?}");
        pump.shutdown().await.expect("it stops");
    }
}

/// Runs a thousand agents, each with a session of its own and ten turns.
async fn crowd() {
    const AGENTS: u64 = 1_000;
    const TURNS: u64 = 10;
    let before = resident();
    let model: Arc<dyn Model> = Arc::new(Scripted::new(|_: &Prompt, turn| match turn {
        TURNS => "<response>Done.</response>".to_owned(),
        _ => {
            let thought = "So it goes on. ".repeat(20);
            format!("<thought>{thought}</thought><response final=\"false\">{turn}</response>")
        }
    }));
    let named = |at: u64| Agent::new(format!("agent-{at}"), model.clone());
    let agents: Vec<Agent> = (0..AGENTS).map(named).collect();
    let questions = agents.iter().map(|it| it.ask("Go.").expect("it is text"));
    let questions: Vec<Element> = questions.collect();
    let pump = start(Arc::new(MemoryLog::new()), agents, &Ran::default());
    let begun = Instant::now();
    for question in questions {
        pump.tell_element(question).await.expect("it is taken");
    }
    let log = pump.log().clone();
    while log.open_entries().await.expect("it is read").iter().any(|it| it.consumed.is_empty()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = begun.elapsed();
    let rate = (AGENTS * TURNS) as f64 / took.as_secs_f64();
    let more = resident().saturating_sub(before) >> 20;
    println!("crowd: {AGENTS} agents, {TURNS} turns each: {rate:.0} turns a second, {more} MiB");
    pump.shutdown().await.expect("it stops");
}

/// Runs two hundred turns of one agent at once, each in its own thread, beside a server that takes
/// a second for each reply.
async fn waits() {
    let asked: u64 =
        std::env::var("PUMPHOUSE_ASKED").map_or(200, |it| it.parse().expect("a number"));
    let server = tokio::net::TcpSocket::new_v4().expect("a socket");
    server.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    // With the usual backlog of 128, the system would have some connections retry a second later.
    let server = server.listen(1_024).expect("it listens");
    let url = format!("http://{}/v1", server.local_addr().expect("it has one"));
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = server.accept().await {
            tokio::spawn(reply(stream));
        }
    });
    let model = Remote::at(Wire::OpenAiChat, url, "slow").no_proxy().build().expect("it is sound");
    let agent = oracle(Arc::new(model), |_| {});
    let question = agent.ask("Go.").expect("it is text");
    let pump = start(Arc::new(MemoryLog::new()), vec![agent], &Ran::default());
    let begun = Instant::now();
    let all = (0..asked).map(|_| pump.ask_element(question.clone()));
    let answers = futures_util::future::join_all(all).await;
    let took = begun.elapsed();
    let answered = answers.iter().filter(|it| it.is_ok()).count();
    println!(
        "waits: {answered} of {asked} answered in {:.2} s; a reply takes 1 s",
        took.as_secs_f64()
    );
    serving.abort();
    pump.shutdown().await.expect("it stops");
}

/// Answers one request, a second after it came.
async fn reply(mut stream: tokio::net::TcpStream) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (mut request, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    let length = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).to_lowercase();
        let (head, _) = text.split_once("\r\n\r\n")?;
        let body = head.lines().find_map(|it| it.strip_prefix("content-length: "))?;
        Some(head.len() + 4 + body.parse::<usize>().ok()?)
    };
    while length(&request).is_none_or(|it| request.len() < it) {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&piece[..read]),
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let said = r#"{"choices":[{"delta":{"content":"<response>Done.</response>"}}]}"#;
    let end = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n"
    );
    // The client may have closed the connection. It needs no answer then.
    let _ = stream.write_all(text.as_bytes()).await;
}

/// Runs a thread of many turns of 4 KiB each, mostly thought and response, and prints how large the
/// log's file is compared with the text.
async fn storage() {
    let turns: u64 =
        std::env::var("PUMPHOUSE_TURNS").map_or(5_000, |it| it.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let half = |turn: u64| format!("{turn:05} ").repeat(340);
    let model = Scripted::new(move |_: &Prompt, turn| {
        // Each text is different, so a text repeats in the log only where a turn's entries repeat
        // it.
        let thought = half(2 * turn);
        let said = half(2 * turn + 1);
        let is_last = turn.is_multiple_of(10);
        format!("<thought>{thought}</thought>\n<response final=\"{is_last}\">{said}</response>")
    });
    let agent =
        oracle(Arc::new(model.with_window(20_000)), |it| it.context_keep = Keep::Messages(4));
    let question = agent.ask("Go.").expect("it is text");
    let log = log(folder.path(), Durability::Normal);
    let pump = start(log.clone(), vec![agent], &Ran::default());
    let begun = Instant::now();
    let first = pump.tell_element(question.clone()).await.expect("it is taken");
    let here = pump.in_thread(&first.thread);
    let (mut words, mut count, mut after) = (0, 0, 0);
    while count < turns {
        let page = log.read(&first.thread, after, u64::MAX, 4_096).await.expect("it is read");
        after = page.last().map_or(after, |it| it.id.seq);
        for it in page.iter().filter(|it| it.name == CognitionOut::NAME) {
            let element = Element::from_canonical(it.body.clone()).expect("it is whole");
            words += CognitionOut::read(element.view()).expect("it is one").text.len() as u64;
            count += 1;
            if count % 10 == 0 && count < turns {
                here.tell_element(question.clone()).await.expect("it is taken");
            }
        }
        if page.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let took = begun.elapsed();
    pump.shutdown().await.expect("it stops");
    drop((pump, here, log));
    let size = size(&folder.path().join("Normal.db"));
    println!(
        "storage: {turns} turns, {words} bytes of the model's text, file {size} bytes: {:.2}x; \
         {:.0} turns a second",
        size as f64 / words as f64,
        turns as f64 / took.as_secs_f64()
    );
}

/// Measures by how much a turn takes longer if its agent has ten feeds with fresh contents. A
/// hundred agents have a thousand feeds together, and a hundred others have none. The agents are
/// asked one after another.
async fn feeds() {
    const AGENTS: usize = 100;
    const FEEDS: usize = 10;
    const QUESTIONS: usize = 20;
    let model: Arc<dyn Model> = Arc::new(Scripted::new(|_: &Prompt, _| "<response>.</response>"));
    let feed = |at: usize| {
        let source = Source::listener("tool").params(serde_json::json!({"ms": 0}));
        Definition::on_demand(format!("feed-{at}"), source).cache_ttl(Duration::from_secs(3_600))
    };
    let agent = |count: usize| {
        let (model, feed) = (model.clone(), &feed);
        move |at: usize| {
            let feeds = Feeds::new((0..count).map(feed)).expect("they are sound");
            Agent::new(format!("with-{count}-{at}"), model.clone()).feeds(feeds)
        }
    };
    let agents: Vec<Agent> =
        (0..AGENTS).map(agent(FEEDS)).chain((0..AGENTS).map(agent(0))).collect();
    let questions = agents.iter().map(|it| it.ask("Go.").expect("it is text"));
    let questions: Vec<Element> = questions.collect();
    let ran = Ran::default();
    let pump = start(Arc::new(MemoryLog::new()), agents, &ran);
    let mut threads = Vec::new();
    for question in questions {
        let first = pump.ask_element(question.clone()).await.expect("it answers");
        threads.push((pump.in_thread(first.thread()), question));
    }
    let asked = ran.lock().expect("nobody panics").len();
    let mut took = [Duration::ZERO; 2];
    // The two halves alternate, so that the machine's noise affects both alike.
    for _ in 0..QUESTIONS {
        for half in 0..2 {
            let begun = Instant::now();
            for (thread, question) in &threads[half * AGENTS..(half + 1) * AGENTS] {
                ask(thread, question.clone()).await;
            }
            took[half] += begun.elapsed();
        }
    }
    let again = ran.lock().expect("nobody panics").len() - asked;
    let of_turn = |half: usize| took[half].as_secs_f64() * 1e6 / (AGENTS * QUESTIONS) as f64;
    println!(
        "feeds: {} feeds on {AGENTS} agents, asked {asked} times at first and {again} times \
         later; a turn takes {:.0} µs with them and {:.0} µs without: {:.0} µs more",
        AGENTS * FEEDS,
        of_turn(0),
        of_turn(1),
        of_turn(0) - of_turn(1)
    );
    pump.shutdown().await.expect("it stops");
}

fn log(folder: &Path, durability: Durability) -> Arc<dyn Log> {
    match durability {
        Durability::Memory => Arc::new(MemoryLog::new()),
        _ => {
            let path = folder.join(format!("{durability:?}.db"));
            Arc::new(SqliteLog::open(path, durability).expect("it opens"))
        }
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |it| it.len())
}

/// Returns the process's memory, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
