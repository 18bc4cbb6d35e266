//! Reads YAML into a tree with the place of each value.
//!
//! Two parsers read the same text: serde_yaml finds the kind of each value, and saphyr-parser its
//! place. A text that the two read differently is refused, because a person might read it in a
//! third way.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::bounded_yaml::{BYTES_MAX, DEPTH_MAX, NODES_MAX};
use crate::manifest::mistake::{Mistake, Place, cut};

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A value without its place.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Pair>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) value: Node,
}

/// A value that is neither a list nor a map.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    /// The text as the manifest has it, with the names of variables and not their values.
    /// [`Node::said`] shows this text, because the values may be secrets.
    pub(super) source: String,
    /// The text with its variables filled in.
    pub(super) text: String,
    pub(super) kind: Plain,
    /// Whether the scalar is written without quotes, and not as a block.
    pub(super) is_plain: bool,
}

/// The kind of a scalar, as serde_yaml reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Flag(bool),
    Whole(i128),
    Number(f64),
    Text,
}

impl Node {
    /// Describes the value for an error, with the names of variables in place of their values.
    pub(super) fn said(&self) -> String {
        match &self.value {
            Value::Scalar(it) if it.kind == Plain::Null => "nothing".to_owned(),
            Value::Scalar(it) if it.is_plain => format!("`{}`", cut(&it.source)),
            Value::Scalar(it) => format!("`\"{}\"`", cut(&it.source)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "keys with values".to_owned(),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(it) if it.kind == Plain::Null)
    }

    /// The value of a key, if it isn't null.
    pub(super) fn key(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        let found = entries.iter().find(|it| it.key == key)?;
        (!found.value.is_null()).then_some(&found.value)
    }

    /// A map without keys.
    fn empty() -> Node {
        Node { place: Place::new(1, 1), value: Value::Map(Vec::new()) }
    }
}

/// Reads a manifest. A text without a value, or with null, is read as a map without keys.
pub(super) fn read(bytes: &[u8]) -> Result<Node, Mistake> {
    let text = &*spaced(text_of(bytes)?);
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        nodes: 0,
        depth: 0,
    };
    let Some(mut node) = reader.document()? else { return Ok(Node::empty()) };
    let known: Doc = serde_yaml::from_str(text).map_err(|it| disliked(&it))?;
    agree(&mut node, known)?;
    match node.is_null() {
        true => Ok(Node { value: Value::Map(Vec::new()), ..node }),
        false => Ok(node),
    }
}

/// Returns the text of a manifest, without a byte order mark.
fn text_of(bytes: &[u8]) -> Result<&str, Mistake> {
    let start = Place::new(1, 1);
    if bytes.len() > BYTES_MAX {
        return Err(over("manifest_bytes_max", BYTES_MAX, start).advice("is it a manifest at all?"));
    }
    let no_text = |valid: &[u8], what: &str| {
        let valid = String::from_utf8_lossy(valid);
        let line = valid.matches('\n').count() + 1;
        let column = valid.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Mistake::new(Place::new(line, column), format!("a manifest is text, and here is {what}"))
            .advice("save it in UTF-8")
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|it| no_text(&bytes[..it.valid_up_to()], "a byte that is no UTF-8"))?;
    let strange = |it: char| it.is_control() && !matches!(it, '\n' | '\r' | '\t' | '\u{85}');
    if let Some((at, it)) = text.char_indices().find(|(_, it)| strange(*it)) {
        let what = format!("the control character U+{:04X}", u32::from(it));
        return Err(no_text(&bytes[..at], &what));
    }
    Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text))
}

/// Replaces each tab between a key's colon and its value by a space. YAML 1.2 allows both there,
/// but saphyr-parser allows only a space. Tabs elsewhere stay. The parser's own error has the place
/// of such a tab, so a `:` within a quoted text isn't taken for the end of a key.
fn spaced(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    let mut read = 0;
    for _ in 0..TABS_MAX {
        let refused = Parser::new_from_str(&text).find_map(Result::err);
        let Some(refused) = refused.filter(|it| it.info().contains(NO_SPACE)) else { break };
        // For each tab, the parser reads all text before the tab again.
        read += refused.marker().index();
        if read > REREAD_MAX {
            break;
        }
        let end =
            text.char_indices().map(|(at, it)| at + it.len_utf8()).nth(refused.marker().index());
        let Some(at) = text[..end.unwrap_or(text.len())].rfind(":\t") else { break };
        text.to_mut().replace_range(at + 1..at + 2, " ");
    }
    text
}

/// A part of saphyr-parser's error for a tab between a key's colon and its value.
const NO_SPACE: &str = "':' must be followed by";
/// The most tabs between a key and its value that are read as spaces.
const TABS_MAX: usize = 1_000;
/// The most characters that the parser reads to find these tabs. The characters before a tab count
/// again for each tab. If more are needed, the other tabs stay, and the parser refuses the text.
const REREAD_MAX: usize = 2 << 20;

fn over(limit: &str, max: usize, place: Place) -> Mistake {
    Mistake::new(place, format!("the manifest is over a limit: {limit} is {max}"))
}

fn too_deep(place: Place) -> Mistake {
    over("manifest_depth_max", DEPTH_MAX, place).advice("put fewer lists and keys into one another")
}

/// Counts the brackets that are open before a character. The parser looks ahead, and may fail on
/// deep nesting before `Reader` has seen the values in these brackets.
fn open_before(text: &str, index: usize) -> usize {
    let count = |open: usize, it: char| match it {
        '[' | '{' => open + 1,
        ']' | '}' => open.saturating_sub(1),
        _ => open,
    };
    text.chars().take(index).fold(0, count)
}

/// The mistake for a text that saphyr-parser accepts and serde_yaml refuses.
fn disliked(error: &serde_yaml::Error) -> Mistake {
    let place = error.location().map(|it| Place::new(it.line(), it.column()));
    let whole = error.to_string();
    // A mistake shows its place itself, so the place in the text is cut off.
    let text = whole.split(" at line ").next().unwrap_or_default();
    Mistake::new(place.unwrap_or(Place::new(1, 1)), format!("this is no YAML: {text}"))
}

/// Builds the tree of values and their places from the events of saphyr-parser.
struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    /// Maps the number of an anchor to its value, and to the value's number of nodes.
    anchors: BTreeMap<usize, (Node, usize)>,
    nodes: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Reads the only document of a text. None if the document has no value.
    fn document(&mut self) -> Result<Option<Node>, Mistake> {
        let mut found = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(found),
                Event::DocumentStart(_) if found.is_some() => {
                    let text = "a manifest is one document, and here another begins";
                    return Err(Mistake::new(place(span), text).advice("leave out the `---`"));
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                event => found = Some(self.node(event, span)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Mistake> {
        match self.parser.next_event() {
            Some(Ok(it)) => Ok(it),
            Some(Err(error)) => {
                let at = error.marker();
                let place = Place::new(at.line(), at.col() + 1);
                if open_before(self.text, at.index()) > DEPTH_MAX {
                    return Err(too_deep(place));
                }
                Err(Mistake::new(place, format!("this is no YAML: {}", error.info())))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Result<Node, Mistake> {
        let (place, before) = (place(span), self.nodes);
        self.count(1, place)?;
        let (value, anchor, tag) = match event {
            Event::Alias(id) => return self.alias(id, place),
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = Scalar {
                    source: text.clone().into_owned(),
                    text: text.into_owned(),
                    kind: Plain::Text,
                    is_plain: style == ScalarStyle::Plain,
                };
                (Value::Scalar(scalar), anchor, tag)
            }
            Event::SequenceStart(anchor, tag) => (Value::List(self.list(place)?), anchor, tag),
            Event::MappingStart(anchor, tag) => (Value::Map(self.map(place)?), anchor, tag),
            _ => return Err(Mistake::new(place, "here a value is missing")),
        };
        if tag.is_some() {
            let text = "a manifest has no tags, and here is one";
            return Err(Mistake::new(place, text).advice("leave out the word that begins with `!`"));
        }
        let node = Node { place, value };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - before));
        }
        Ok(node)
    }

    /// Returns the value that an alias stands for, with that value's own place. The nodes of the
    /// value are counted again.
    fn alias(&mut self, id: usize, place: Place) -> Result<Node, Mistake> {
        let Some((node, count)) = self.anchors.get(&id) else {
            let text = "this alias stands within what it stands for";
            return Err(Mistake::new(place, text).advice("write out what is meant"));
        };
        let (node, count) = (node.clone(), *count);
        self.count(count - 1, place)?;
        Ok(node)
    }

    fn count(&mut self, more: usize, place: Place) -> Result<(), Mistake> {
        self.nodes += more;
        match self.nodes > NODES_MAX {
            true => Err(over("manifest_nodes_max", NODES_MAX, place)
                .advice("an alias counts as all that it stands for; write less")),
            false => Ok(()),
        }
    }

    fn deeper(&mut self, place: Place) -> Result<(), Mistake> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(too_deep(place)),
            false => Ok(()),
        }
    }

    fn list(&mut self, place: Place) -> Result<Vec<Node>, Mistake> {
        self.deeper(place)?;
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                self.depth -= 1;
                return Ok(items);
            }
            items.push(self.node(event, span)?);
        }
    }

    fn map(&mut self, at: Place) -> Result<Vec<Pair>, Mistake> {
        self.deeper(at)?;
        let mut entries = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                self.depth -= 1;
                return Ok(entries);
            }
            let key = self.node(event, span)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span)?;
            let Value::Scalar(Scalar { source, .. }) = key.value else {
                return Err(Mistake::new(key.place, "a key is a word, not a list or keys"));
            };
            entries.push(Pair { key: source, place: key.place, value });
        }
    }
}

fn place(span: Span) -> Place {
    Place::new(span.start.line(), span.start.col() + 1)
}

/// Gives each scalar the kind that serde_yaml read, and compares what the two parsers have read.
fn agree(node: &mut Node, known: Doc) -> Result<(), Mistake> {
    let place = node.place;
    let otherwise = || {
        let text = "this can be read in two ways";
        Mistake::new(place, text).advice("put the text into double quotes")
    };
    match (&mut node.value, known) {
        (Value::List(items), Doc::List(known)) if items.len() == known.len() => {
            items.iter_mut().zip(known).try_for_each(|(node, known)| agree(node, known))
        }
        (Value::Map(entries), Doc::Map(known)) if entries.len() == known.len() => {
            for (entry, (key, known)) in entries.iter_mut().zip(known) {
                if matches!(&key, Doc::Text(it) if *it != entry.key) {
                    return Err(otherwise());
                }
                if !matches!(key, Doc::Text(_)) {
                    let text = format!("a key is a word, not `{}`", cut(&entry.key));
                    return Err(Mistake::new(entry.place, text));
                }
                agree(&mut entry.value, known)?;
            }
            Ok(())
        }
        (Value::Scalar(scalar), Doc::Text(text)) if scalar.text == text => Ok(()),
        (Value::Scalar(scalar), Doc::Plain(kind)) if scalar.is_plain => {
            scalar.kind = kind;
            Ok(())
        }
        _ => Err(otherwise()),
    }
}

/// The kind of a scalar whose variables are filled in. Such a text never becomes a list or a map.
pub(super) fn kind_of(text: &str) -> Plain {
    let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.' | '_');
    match text.chars().all(is_word).then(|| serde_yaml::from_str(text)) {
        Some(Ok(Doc::Plain(kind))) => kind,
        _ => Plain::Text,
    }
}

/// A document as serde_yaml reads it. A map keeps repeated keys.
enum Doc {
    Plain(Plain),
    Text(String),
    List(Vec<Doc>),
    Map(Vec<(Doc, Doc)>),
}

impl<'de> Deserialize<'de> for Doc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Doc, D::Error> {
        from.deserialize_any(Docs)
    }
}

struct Docs;

impl<'de> Visitor<'de> for Docs {
    type Value = Doc;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Null))
    }

    fn visit_none<E>(self) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Null))
    }

    fn visit_bool<E>(self, it: bool) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Flag(it)))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Whole(it.into())))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Whole(it.into())))
    }

    fn visit_i128<E>(self, it: i128) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Whole(it)))
    }

    fn visit_u128<E>(self, it: u128) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Whole(i128::try_from(it).unwrap_or(i128::MAX))))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Doc, E> {
        Ok(Doc::Plain(Plain::Number(it)))
    }

    fn visit_str<E>(self, it: &str) -> Result<Doc, E> {
        Ok(Doc::Text(it.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Doc, A::Error> {
        let mut items = Vec::new();
        while let Some(it) = from.next_element()? {
            items.push(it);
        }
        Ok(Doc::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Doc, A::Error> {
        let mut entries = Vec::new();
        while let Some(it) = from.next_entry()? {
            entries.push(it);
        }
        Ok(Doc::Map(entries))
    }
}
