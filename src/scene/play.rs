//! Plays a scene on a [`Stage`]: opens a connection for each speaker, sends what the speakers send,
//! and compares what they receive.

use std::collections::BTreeMap;

use crate::engine::{Port, Tokio};
use crate::limits::XmlLimits;
use crate::name::{CORE, ENVELOPE};
use crate::wire::Payload;
use crate::wire::core::Accepted;
use crate::xml::{self, Child, Element, Profile, Splitter, View, Writer};

use crate::scene::{Act, Scene, Step};

/// A place where scenes are played, such as a pump with a socket.
pub trait Stage {
    /// A speaker's connection.
    type Line: Line;
    /// Opens a connection for a speaker.
    fn open(&self, who: &str) -> impl Future<Output = Self::Line>;
}

/// One speaker's connection.
pub trait Line {
    /// Sends bytes.
    fn send(&mut self, bytes: &[u8]) -> impl Future<Output = ()>;
    /// Returns the next `<message>`, or None once the other side has ended the connection.
    fn next(&mut self) -> impl Future<Output = Option<Element>>;
    /// Ends sending. Messages under way can still be received.
    fn hang_up(&mut self) -> impl Future<Output = ()>;
}

/// How long a speaker waits for a message before the scene fails, in microseconds.
const PATIENCE_US: u64 = 10_000_000;

struct Speaker<L> {
    line: L,
    is_over: bool,
}

type Threads = BTreeMap<String, String>;

/// Plays a scene. Then checks that no speaker receives any further message except `<accepted>`.
///
/// # Errors
/// The first difference from the scene. The error names the file and the line. For a difference at
/// the end of the scene, it names only the file.
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
            // Bytes that aren't UTF-8 are sent unchanged: no `$name` in them is replaced.
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

/// Waits for a message and compares it. An `<accepted>` is skipped where another message
/// is expected.
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
        if fits(&shown(&received), &filled(&shown(expected), threads)) {
            return Ok(());
        }
        if payload.is(CORE, "accepted") && !expected.is(CORE, "accepted") {
            continue;
        }
        let received = shown(&received);
        return Err(format!("{who} received\n  {received}\nnot\n  {}", shown(expected)));
    }
}

/// Reads up to the end of the connection. Fails if a message other than `<accepted>` comes.
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

/// Returns whether `received` matches `expected`. Each `$any` in `expected` stands for any text up
/// to a quotation mark or a tag.
fn fits(received: &str, expected: &str) -> bool {
    let mut rest = received;
    let mut parts = expected.split("$any");
    let first = parts.next().unwrap_or_default();
    let Some(left) = rest.strip_prefix(first) else { return false };
    rest = left;
    for part in parts {
        let open = rest.find(['"', '<']).unwrap_or(rest.len());
        let Some(left) = rest[open..].strip_prefix(part) else { return false };
        rest = left;
    }
    rest.is_empty()
}

/// Replaces each `$name` in a text by the thread of the newest `<accepted>` that the speaker `name`
/// received. Longer names come first, since a name may begin with another one.
fn filled(text: &str, threads: &Threads) -> String {
    let mut threads: Vec<_> = threads.iter().collect();
    threads.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    threads.into_iter().fold(text.to_owned(), |text, (name, thread)| text.replace(name, thread))
}

/// Reads all elements of a text, each as a [`plain`] copy.
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

/// Returns the payload of a `<message>`. An element that isn't a `<message>` is returned unchanged.
#[must_use]
pub fn payload(message: &Element) -> Element {
    let inside = message.elements().last().filter(|_| message.is(ENVELOPE, "message"));
    inside.map_or_else(|| message.clone(), View::to_element)
}

fn shown(element: &Element) -> String {
    String::from_utf8_lossy(&element.canonical()).into_owned()
}

/// Returns a copy of an element for comparisons. The copy has no prefixes, no white space between
/// elements, and no `<entry>` of the namespace `CORE` within the element.
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

#[cfg(test)]
mod tests {
    use super::{Threads, filled, fits};

    #[test]
    fn a_name_that_begins_with_another_one_is_filled_in_whole() {
        let named = |(name, thread): (&str, &str)| (name.to_owned(), thread.to_owned());
        let threads: Threads = [("$al", "sess-a"), ("$alice", "sess-b")].map(named).into();
        assert_eq!(filled("$alice $al.b", &threads), "sess-b sess-a.b");
    }

    #[test]
    fn any_stands_for_what_is_between_quotes_or_tags() {
        let received = r#"<tick late="PT0.1S" timer="1"><a>7</a></tick>"#;
        assert!(fits(received, received));
        assert!(fits(received, r#"<tick late="$any" timer="1"><a>$any</a></tick>"#));
        assert!(!fits(received, r#"<tick late="$any" timer="2"><a>$any</a></tick>"#));
        assert!(!fits(received, r#"<tick late="$any">"#));
        assert!(!fits(received, "$any"));
    }
}
