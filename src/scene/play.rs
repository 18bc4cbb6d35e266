//! Plays a scene on a stage: opens the speakers' connections, sends, waits and compares.

use std::collections::BTreeMap;

use crate::engine::{Port, Tokio};
use crate::limits::XmlLimits;
use crate::name::{CORE, ENVELOPE};
use crate::wire::Payload;
use crate::wire::core::Accepted;
use crate::xml::{self, Child, Element, Profile, Splitter, View, Writer};

use crate::scene::{Act, Scene, Step};

/// Where scenes are played.
pub trait Stage {
    /// A speaker's connection.
    type Line: Line;
    /// Opens a speaker's own connection.
    fn open(&self, who: &str) -> impl Future<Output = Self::Line>;
}

/// One speaker's connection.
pub trait Line {
    /// Sends bytes.
    fn send(&mut self, bytes: &[u8]) -> impl Future<Output = ()>;
    /// The next `<message>`; nothing once the other side has ended.
    fn next(&mut self) -> impl Future<Output = Option<Element>>;
    /// Sends no more.
    fn hang_up(&mut self) -> impl Future<Output = ()>;
}

/// How long a speaker waits for a message before the scene is given up.
const PATIENCE_US: u64 = 10_000_000;

struct Speaker<L> {
    line: L,
    is_over: bool,
}

type Threads = BTreeMap<String, String>;

/// Plays a scene to its end.
///
/// # Errors
/// Where it went another way.
pub async fn play<S: Stage>(scene: &Scene, stage: &S) -> Result<(), String> {
    let mut speakers: BTreeMap<&str, Speaker<S::Line>> = BTreeMap::new();
    let mut threads = Threads::new();
    for step in &scene.steps {
        let who = step.who.as_str();
        if !speakers.contains_key(who) {
            let line = stage.open(who).await;
            speakers.insert(who, Speaker { line, is_over: false });
        }
        let Some(speaker) = speakers.get_mut(who) else { continue };
        let done = act(step, speaker, &mut threads).await;
        done.map_err(|wrong| format!("{}:{}: {wrong}", scene.path, step.line))?;
    }
    for (who, mut speaker) in speakers {
        if !speaker.is_over {
            speaker.line.hang_up().await;
        }
        let over = end(who, &mut speaker, &mut threads).await;
        over.map_err(|wrong| format!("{}: at the end {wrong}", scene.path))?;
    }
    Ok(())
}

async fn act<L: Line>(
    step: &Step,
    speaker: &mut Speaker<L>,
    threads: &mut Threads,
) -> Result<(), String> {
    let who = &step.who;
    match &step.act {
        Act::Sends(bytes) => {
            // Bytes that aren't text name no thread.
            let bytes = match std::str::from_utf8(bytes) {
                Ok(text) => filled(text, threads).into_bytes(),
                Err(_) => bytes.clone(),
            };
            speaker.line.send(&bytes).await;
            Ok(())
        }
        Act::HangsUp => {
            speaker.is_over = true;
            speaker.line.hang_up().await;
            Ok(())
        }
        Act::IsCutOff => {
            speaker.is_over = true;
            end(who, speaker, threads).await
        }
        Act::Receives(text) => {
            for expected in elements(text)? {
                receive(who, speaker, threads, &expected).await?;
            }
            Ok(())
        }
    }
}

/// Waits for a message and compares it.
async fn receive<L: Line>(
    who: &str,
    speaker: &mut Speaker<L>,
    threads: &mut Threads,
    expected: &Element,
) -> Result<(), String> {
    loop {
        let Some(message) = hear(who, &mut speaker.line, threads).await? else {
            return Err(format!("{who} received nothing more, not\n  {}", shown(expected)));
        };
        let payload = payload(&message);
        let whole = expected.is(ENVELOPE, "message");
        let received = if whole { plain(message.view()) } else { plain(payload.view()) };
        if shown(&received) == filled(&shown(expected), threads) {
            return Ok(());
        }
        if payload.is(CORE, "accepted") && !expected.is(CORE, "accepted") {
            continue;
        }
        let received = shown(&received);
        return Err(format!("{who} received\n  {received}\nnot\n  {}", shown(expected)));
    }
}

/// Reads up to the end, where nothing but `<accepted>` may come.
async fn end<L: Line>(
    who: &str,
    speaker: &mut Speaker<L>,
    threads: &mut Threads,
) -> Result<(), String> {
    while let Some(message) = hear(who, &mut speaker.line, threads).await? {
        let payload = payload(&message);
        if !payload.is(CORE, "accepted") {
            return Err(format!("{who} also received\n  {}", shown(&plain(payload.view()))));
        }
    }
    Ok(())
}

async fn hear<L: Line>(
    who: &str,
    line: &mut L,
    threads: &mut Threads,
) -> Result<Option<Element>, String> {
    let port = Tokio::current();
    let message = tokio::select! {
        message = line.next() => message,
        () = port.sleep_until(port.now_us() + PATIENCE_US) => {
            return Err(format!("{who} waited in vain"));
        }
    };
    if let Some(message) = &message
        && let Ok(accepted) = Accepted::decode(&payload(message))
    {
        threads.insert(format!("${who}"), accepted.thread);
    }
    Ok(message)
}

/// The text with the threads of the speakers it names.
fn filled(text: &str, threads: &Threads) -> String {
    threads.iter().fold(text.to_owned(), |text, (name, thread)| text.replace(name, thread))
}

/// Every element of a text.
fn elements(text: &str) -> Result<Vec<Element>, String> {
    let mut splitter = Splitter::new(XmlLimits::DOOR);
    splitter.feed(text.as_bytes());
    let mut found = Vec::new();
    while let Some(frame) = splitter.next().map_err(|it| it.to_string())? {
        let element = xml::read(&frame.bytes, Profile::Wire, &XmlLimits::DOOR);
        found.push(plain(element.map_err(|it| it.to_string())?.view()));
    }
    splitter.finish().map_err(|it| it.to_string())?;
    Ok(found)
}

/// The payload of a `<message>`; what is none stands for itself.
#[must_use]
pub fn payload(message: &Element) -> Element {
    let inside = message.elements().last().filter(|_| message.is(ENVELOPE, "message"));
    inside.map_or_else(|| message.clone(), View::to_element)
}

fn shown(element: &Element) -> String {
    String::from_utf8_lossy(&element.canonical()).into_owned()
}

/// The same without prefixes, without white space between elements, and without `<entry>`.
#[must_use]
#[expect(clippy::expect_used, reason = "a part of an element is within the bounds of the whole")]
pub fn plain(element: View<'_>) -> Element {
    let mut to = Writer::new(XmlLimits::FILE);
    copy(element, &mut to);
    to.finish().expect("an element can be copied")
}

fn copy(element: View<'_>, to: &mut Writer) {
    to.start(element.namespace(), element.local());
    for attribute in element.attributes() {
        to.attribute(attribute.local, attribute.value);
    }
    let holds_elements = element.elements().next().is_some();
    for child in element.children() {
        match child {
            Child::Element(it) if it.is(CORE, "entry") => {}
            Child::Element(it) => copy(it, to),
            Child::Text(it) if holds_elements && it.trim().is_empty() => {}
            Child::Text(it) => to.text(it),
        }
    }
    to.end();
}
