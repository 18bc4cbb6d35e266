//! How a scene is written.
//!
//! ```text
//! # What comes from one without a namespace.
//! alice sends:
//!   <message xmlns="https://xml-pipeline.org/ns/envelope/v1"><meta><thread>$alice</thread>…
//! alice receives:
//!   <echo xmlns="https://xml-pipeline.org/ns/echo/v1"><text>hello</text></echo>
//! ```
//!
//! Each speaker has a connection of its own; `stranger` has no token and sends as `console`.
//! What is indented belongs to the line above it, two spaces not counted.
//!
//! | | |
//! | --- | --- |
//! | `alice sends:` | the text as it stands, and a line end |
//! | `alice sends bytes:` | the lines without their ends; `\n`, `\\` and `\x00` mean a byte |
//! | `alice receives:` | these, in this order, and none before; `<accepted>` may be left out |
//! | `alice hangs up` | no more is sent; what is under way still comes |
//! | `alice is cut off` | the other side ends the connection |
//! | `only over a socket` | the scene has no meaning without a socket |
//! | `$alice` | the thread that alice's last accepted message is in |
//!
//! A payload stands for any message that holds it. A `<message>` is compared with its envelope,
//! but for the `<entry>` in it, which says when. At the end nobody may have received more.

/// A conversation.
pub(super) struct Scene {
    pub(super) path: String,
    pub(super) only_over_sockets: bool,
    pub(super) steps: Vec<Step>,
}

/// One thing that one speaker does.
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) who: String,
    pub(super) act: Act,
}

#[derive(Debug, PartialEq)]
pub(super) enum Act {
    Sends(Vec<u8>),
    Receives(String),
    HangsUp,
    IsCutOff,
}

impl Scene {
    /// Reads a scene that begins after a line of a file.
    pub(super) fn read(path: &str, after: usize, text: &str) -> Scene {
        let mut scene =
            Scene { path: path.to_owned(), only_over_sockets: false, steps: Vec::new() };
        let mut lines = text.lines().zip(after + 1..).peekable();
        while let Some((head, line)) = lines.next() {
            if head.is_empty() || head.starts_with('#') {
                continue;
            }
            if head == "only over a socket" {
                scene.only_over_sockets = true;
                continue;
            }
            let mut body = Vec::new();
            while let Some((text, _)) = lines.next_if(|(it, _)| it.starts_with("  ")) {
                body.push(&text[2..]);
            }
            let (who, what) = head.split_once(' ').unwrap_or_default();
            let act = match (what, body.is_empty()) {
                ("sends:", false) => Act::Sends(format!("{}\n", body.join("\n")).into()),
                ("sends bytes:", false) => Act::Sends(bytes(&body.concat())),
                ("receives:", false) => Act::Receives(body.join("\n")),
                ("hangs up", true) => Act::HangsUp,
                ("is cut off", true) => Act::IsCutOff,
                _ => panic!("{path}:{line}: {head:?} is no line of a scene"),
            };
            scene.steps.push(Step { line, who: who.to_owned(), act });
        }
        scene
    }
}

/// Bytes as they are written in a scene.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, length) = match after.as_bytes() {
            [b'n', ..] => (b'\n', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', _, _, ..] => (u8::from_str_radix(&after[1..3], 16).unwrap(), 3),
            _ => panic!("\\{after}: after a backslash come n, xHH or a backslash"),
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[test]
fn a_scene_is_read_as_it_is_written() {
    let text = "# A scene.\nonly over a socket\nalice sends:\n  <a>\n    b</a>\n\n";
    let text = text.to_owned()
        + "bob sends bytes:\n  \\x00\\n\n  \\\\é\nbob hangs up\nalice is cut off\n"
        + "bob receives:\n  <c/>\n";
    let scene = Scene::read("a.scene", 10, &text);
    assert!(scene.only_over_sockets);
    let steps: Vec<_> = scene.steps.into_iter().map(|it| (it.line, it.who, it.act)).collect();
    let expected = [
        (13, "alice", Act::Sends("<a>\n  b</a>\n".into())),
        (17, "bob", Act::Sends("\0\n\\é".into())),
        (20, "bob", Act::HangsUp),
        (21, "alice", Act::IsCutOff),
        (22, "bob", Act::Receives("<c/>".into())),
    ];
    assert_eq!(steps, expected.map(|(line, who, act)| (line, who.to_owned(), act)));
}

/// What stands in the pages of the faults.
pub(super) mod pages {
    use pumphouse::Payload;
    use pumphouse::limits::XmlLimits;
    use pumphouse::wire::core::Huh;
    use pumphouse::xml::{self, Profile};

    use super::super::play::plain;

    /// The fenced blocks of a kind, each after its line.
    pub(in super::super) fn blocks(text: &str, kind: &str) -> Vec<(usize, String)> {
        let fence = format!("```{kind}");
        let mut blocks: Vec<(usize, String)> = Vec::new();
        let mut open = false;
        for (line, at) in text.lines().zip(1..) {
            if !open && line == fence {
                open = true;
                blocks.push((at, String::new()));
            } else if line.starts_with("```") {
                open = false;
            } else if let Some((_, block)) = blocks.last_mut().filter(|_| open) {
                block.push_str(line);
                block.push('\n');
            }
        }
        blocks
    }

    /// Every `<huh>` that a page shows, and its line.
    pub(in super::super) fn huhs(text: &str) -> Vec<(usize, Huh)> {
        let found = text.match_indices("<huh ").map(|(at, _)| {
            let line = text[..at].matches('\n').count() + 1;
            let end = text[at..].find("</huh>").unwrap_or_else(|| panic!("line {line}: no </huh>"));
            let huh = &text[at..at + end + "</huh>".len()];
            let huh = xml::read(huh, Profile::Wire, &XmlLimits::DOOR);
            let huh = huh.unwrap_or_else(|error| panic!("the <huh> in line {line}: {error}"));
            let huh = Huh::decode(&plain(huh.view()));
            (line, huh.unwrap_or_else(|error| panic!("the <huh> in line {line}: {error}")))
        });
        found.collect()
    }
}
