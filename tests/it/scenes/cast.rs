//! The listeners of the scenes: some share payloads, some send messages to themselves, some
//! misbehave.

use std::time::Duration;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Charge, Charges, Context, Cost, FromContext};
use pumphouse::prelude::*;
use pumphouse::xml::Writer;

/// Where the cast's payloads live.
const SCENES: &str = "https://example.org/scenes/v1";

/// Wants to be answered by whoever hears it.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Call;

/// Says who heard a call.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Heard {
    by: String,
}

/// Counts down to nothing, one message at a time.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Count {
    left: u32,
}

/// How many messages a count took.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Counted {
    messages: u64,
}

/// Makes its handler panic.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Stumble;

/// Makes its handler wait for what never comes.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Doze;

/// Makes its handler wait until it is told to stop.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Hibernate;

/// Makes its handler address a listener that isn't among its peers.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Gossip;

/// Says which fault a listener met.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Met {
    code: String,
}

/// Makes its handler return one of the pump's own payloads.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Forge;

/// Makes its handler return what its schema doesn't allow.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Garble;

/// Makes its handler emit more than one message may cause.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Chatter;

/// Makes its handler ask for a fold that nobody registered.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Forget;

/// Makes its handler read an entry as what it isn't.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Misread;

/// Wants an image looked at.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct AnalyzeImage {
    #[payload(text)]
    image: String,
}

/// Says what an image shows.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Shown {
    #[payload(text)]
    what: String,
}

/// Wants to know what a prompt would show.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Look;

/// Says what a prompt would show.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Seen {
    #[payload(list)]
    entries: Vec<u64>,
}

/// Wants to be thought about, for so many tokens.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Ponder {
    #[payload(attribute)]
    tokens: u64,
}

/// Says that it was thought about.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Pondered;

/// Makes two listeners say the same to each other, again and again.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Squawk;

/// What both of them say.
#[derive(Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
struct Polly;

/// Has no answer.
#[derive(Debug, Payload)]
#[payload(ns = "https://example.org/scenes/v1")]
pub(super) struct Quiet {}

/// What the scenes are played with: nobody needs more than ten emissions there, or thinks for
/// more than 100,000 tokens.
pub(super) fn limits() -> Limits {
    Limits { emissions_max: 10, tree_tokens_max: 100_000, ..Limits::default() }
}

/// The listeners.
pub(super) fn cast() -> Vec<Listener> {
    let hears = |name: &'static str| {
        let answer = move |_: Call| async move { Heard { by: name.into() } };
        Listener::new(name).shared().inline().on(answer)
    };
    vec![
        hears("left-ear"),
        hears("right-ear"),
        Listener::new("counter").on(count),
        Listener::new("clumsy").on(stumble),
        Listener::new("sleepy").timeout(Duration::from_millis(50)).on(doze),
        Listener::new("bear").on(async |_: Hibernate| std::future::pending::<()>().await),
        Listener::new("shy").peers(["counter"]).on(gossip).on_reply(met),
        Listener::new("forger").on(forge),
        Listener::new("garbler").on(garble),
        Listener::new("chatterbox").on(chatter),
        Listener::new("forgetful").on(forget),
        Listener::new("confused").on(misread),
        Listener::new("quiet").on(hush),
        Listener::new("analyst").on(analyze),
        Listener::new("reader").on(look),
        Listener::new("thinker").on(ponder).grant::<Charges>(),
        Listener::new("parrot").on(squawk).on_reply(answer),
        Listener::new("mirror").on(async |_: Polly| Polly),
    ]
}

/// Answers the message that began the count, once it is over.
async fn count(
    history: History,
    out: Outbox<Counted>,
    message: Message,
    Count { left }: Count,
) -> Result<Option<Again<Count>>, Fault> {
    if let Some(left) = left.checked_sub(1) {
        return Ok(Some(Again(Count { left })));
    }
    let first = history.read(0, 1).await?;
    out.reply_to(&first[0], Counted { messages: message.seq() }).await?;
    Ok(None)
}

async fn stumble(_: Stumble) {
    // The page of P0015 shows what becomes of this.
    std::panic::panic_any("over its own feet");
}

async fn doze(_: Doze) {
    std::future::pending::<()>().await;
}

async fn gossip(_: Gossip) -> To<Gossip> {
    To("clumsy", Gossip)
}

/// Tells the sender of the message that began the thread.
async fn met(history: History, out: Outbox<Met>, huh: Huh) -> Result<(), Fault> {
    let first = history.read(0, 1).await?;
    out.reply_to(&first[0], Met { code: huh.code }).await
}

async fn forge(_: Forge) -> Element {
    element("https://xml-pipeline.org/ns/core/v1", "done", None)
}

async fn garble(_: Garble) -> Element {
    element(SCENES, "count", Some("plenty"))
}

async fn chatter(_: Chatter) -> Vec<Heard> {
    (0..11).map(|it| Heard { by: format!("number {it}") }).collect()
}

/// A fold that its listener doesn't register.
#[derive(Clone, Debug, Default)]
struct Nothing;

impl Apply for Nothing {
    fn apply(&mut self, _: &Entry) {}
}

/// An argument that hides what it is made of: it has no `needs()`.
struct Hidden;

impl FromContext<()> for Hidden {
    fn from_context(context: &Context<()>) -> Result<Hidden, Fault> {
        Fold::<Nothing>::from_context(context).map(|_| Hidden)
    }
}

async fn forget(_: Hidden, _: Forget) {}

async fn misread(message: Message, _: Misread) -> Result<(), Fault> {
    message.decode::<Count>().map(|_| ())
}

async fn hush(_: Quiet) {}

async fn analyze(it: AnalyzeImage) -> Shown {
    Shown { what: format!("{} shows a cat", it.image.trim()) }
}

async fn look(view: View, _: Look) -> Result<Seen, Fault> {
    let all = view.all().await?;
    // What is read in pieces is the same.
    let mut pieces: Vec<Entry> = Vec::new();
    loop {
        let piece = view.read(pieces.last().map_or(0, |it| it.seq()), 2).await?;
        if piece.is_empty() {
            break;
        }
        pieces.extend(piece);
    }
    assert!(all.iter().map(Entry::id).eq(pieces.iter().map(Entry::id)));
    Ok(Seen { entries: all.iter().map(Entry::seq).collect() })
}

async fn ponder(out: Outbox<Charge>, Ponder { tokens }: Ponder) -> Result<Pondered, Fault> {
    let cost = Cost { tokens, ..Cost::default() };
    out.send(Charge::reserve(cost)).await?;
    out.send(Charge::settle(cost, cost)).await?;
    Ok(Pondered)
}

async fn squawk(_: Squawk) -> To<Polly> {
    To("mirror", Polly)
}

async fn answer(_: Polly) -> To<Polly> {
    To("mirror", Polly)
}

fn element(namespace: &str, local: &str, left: Option<&str>) -> Element {
    let mut to = Writer::new(XmlLimits::INSIDE);
    to.start(namespace, local);
    if let Some(left) = left {
        to.start(namespace, "left");
        to.text(left);
        to.end();
    }
    to.end();
    to.finish().unwrap()
}
