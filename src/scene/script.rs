//! The format of scenes.
//!
//! ```text
//! # A message for the thread of alice's last push.
//! alice sends:
//!   <message xmlns="https://xml-pipeline.org/ns/envelope/v1"><meta><thread>$alice</thread>…
//! alice receives:
//!   <echo xmlns="https://xml-pipeline.org/ns/echo/v1"><text>hello</text></echo>
//! ```
//!
//! Each speaker has a connection of its own. The speaker `stranger` has no token, so its identity
//! is `console`. Lines that are indented by two spaces belong to the line above them; the two
//! spaces don't count.
//!
//! | | |
//! | --- | --- |
//! | `alice sends:` | sends the text and a line end |
//! | `alice sends bytes:` | sends the lines without line ends; `\n`, `\\`, `\x00` stand for bytes |
//! | `alice receives:` | receives these elements, in this order; `<accepted>` may be left out |
//! | `alice hangs up` | ends sending; messages under way still come |
//! | `alice is cut off` | waits until the other side ends the connection |
//! | `only over a socket` | the scene has no meaning without a socket |
//! | `$alice` | the thread of alice's last accepted message |
//! | `$any` | any text, up to a quotation mark or a tag |
//!
//! An expected payload matches any message with this payload. If a `<message>` is expected, its
//! envelope must match, too, except `<entry>`, which has the time. After the last step of a scene,
//! no speaker may receive any further message except `<accepted>`.

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scene {
    /// The path of the file.
    pub path: String,
    /// Whether the scene has no meaning without a socket.
    pub only_over_sockets: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One step of a scene: one action of one speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The step's line in the file, from 1.
    pub line: usize,
    /// The speaker's name.
    pub who: String,
    /// The speaker's action.
    pub act: Act,
}

/// An action of a speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Sends bytes.
    Sends(Vec<u8>),
    /// Receives these elements, in this order.
    Receives(String),
    /// Ends sending.
    HangsUp,
    /// Waits until the other side ends the connection.
    IsCutOff,
}

impl Scene {
    /// Reads a scene from a text. The text's first line is line `after + 1` of the file `path`.
    ///
    /// # Errors
    /// If a line doesn't fit the format, or its bytes have an unknown escape. The error names the
    /// file and the line.
    pub fn read(path: &str, after: usize, text: &str) -> Result<Scene, String> {
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
                ("sends bytes:", false) => {
                    let bytes = bytes(&body.concat());
                    Act::Sends(bytes.map_err(|it| format!("{path}:{line}: {it}"))?)
                }
                ("receives:", false) => Act::Receives(body.join("\n")),
                ("hangs up", true) => Act::HangsUp,
                ("is cut off", true) => Act::IsCutOff,
                _ => return Err(format!("{path}:{line}: {head:?} is no line of a scene")),
            };
            scene.steps.push(Step { line, who: who.to_owned(), act });
        }
        Ok(scene)
    }
}

/// Reads the text of `sends bytes:`, with its escapes.
fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, length) = match after.as_bytes() {
            [b'n', ..] => (b'\n', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => return Err(format!("\\{after}: after \\x come two hexadecimal digits")),
            },
            _ => return Err(format!("\\{after}: after a backslash come n, xHH or a backslash")),
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_is_read_as_it_is_written() {
        let text = "# A scene.\nonly over a socket\nalice sends:\n  <a>\n    b</a>\n\n\
                    bob sends bytes:\n  \
                    \\x00\\n\n  \\\\é\nbob hangs up\nalice is cut off\nbob receives:\n  <c/>\n";
        let scene = Scene::read("a.scene", 10, text).unwrap();
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

    #[test]
    fn a_line_that_is_none_is_named() {
        let check = |text: &str, wrong: &str| {
            let told = Scene::read("a.scene", 0, text).err();
            assert!(told.as_ref().is_some_and(|it| it.starts_with(wrong)), "{told:?}");
        };
        check("alice sings:\n  <a/>\n", "a.scene:1: \"alice sings:\" is no line of a scene");
        check("\nalice sends:\n", "a.scene:2: ");
        check("alice sends bytes:\n  \\q\n", "a.scene:1: \\q: after a backslash");
        check("alice sends bytes:\n  \\xé\n", "a.scene:1: \\xé: after \\x come two");
    }
}
