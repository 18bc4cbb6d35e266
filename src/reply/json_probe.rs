//! Decides whether JSON in a text may be a call. By default, a call is `{"type":"tool_use",…}` or
//! an array of such objects.

use crate::reply::config::Shape;

/// The state of reading JSON that may be a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonProbe {
    stage: Stage,
    depth: usize,
    /// Whether the JSON declares itself a call: its first property is `type`, with the value for a
    /// call.
    pub(super) sure: bool,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// After `[`.
    Array,
    /// After `{`.
    Object,
    /// In the first key: how many of its bytes were read, and a bit set of the properties that the
    /// key may name.
    Key(usize, u64),
    Colon {
        mark: bool,
    },
    Quote,
    /// In the value of `type`: how many of its bytes were read.
    Mark(usize),
    Rest {
        string: bool,
        escape: bool,
    },
}

/// How the parser treats the characters of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The characters are held back until the JSON is complete.
    Held,
    /// The characters are discarded: the JSON is a call that crossed its limit.
    Discarded,
    /// The characters are emitted as text: the JSON is longer than a call may be, and hasn't
    /// declared itself a call.
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    More,
    /// The text isn't JSON, or isn't a call. The byte isn't taken.
    Not,
    Whole,
}

impl JsonProbe {
    /// A probe for JSON that begins with this byte, `{` or `[`.
    pub(super) fn new(first: u8) -> JsonProbe {
        let stage = if first == b'[' { Stage::Array } else { Stage::Object };
        JsonProbe { stage, depth: 1, sure: false, fate: Fate::Held }
    }

    pub(super) fn step(&mut self, byte: u8, shape: &Shape) -> Verdict {
        let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.stage = match self.stage {
            Stage::Array | Stage::Object | Stage::Colon { .. } | Stage::Quote if space => {
                self.stage
            }
            Stage::Array if byte == b'{' => {
                self.depth += 1;
                Stage::Object
            }
            Stage::Object if byte == b'"' => Stage::Key(0, u64::MAX),
            Stage::Key(at, keys) => match key(at, keys, byte, shape) {
                Some(stage) => stage,
                None => return Verdict::Not,
            },
            Stage::Colon { mark } if byte == b':' => match mark {
                true => Stage::Quote,
                false => Stage::Rest { string: false, escape: false },
            },
            Stage::Quote if byte == b'"' => Stage::Mark(0),
            Stage::Mark(at) if shape.mark.as_bytes().get(at) == Some(&byte) => Stage::Mark(at + 1),
            Stage::Mark(at) if at == shape.mark.len() && byte == b'"' => {
                self.sure = true;
                Stage::Rest { string: false, escape: false }
            }
            Stage::Rest { string, escape } => return self.rest(string, escape, byte),
            _ => return Verdict::Not,
        };
        Verdict::More
    }

    fn rest(&mut self, string: bool, escape: bool, byte: u8) -> Verdict {
        let quote = byte == b'"' && !escape;
        match byte {
            b'\n' if string => return Verdict::Not,
            b'{' | b'[' if !string => self.depth += 1,
            b'}' | b']' if !string => self.depth -= 1,
            _ => {}
        }
        if self.depth == 0 {
            return Verdict::Whole;
        }
        let escape = string && byte == b'\\' && !escape;
        self.stage = Stage::Rest { string: string != quote, escape };
        Verdict::More
    }
}

/// Takes a byte of the first key. None if no property of a call begins with these bytes.
fn key(at: usize, keys: u64, byte: u8, shape: &Shape) -> Option<Stage> {
    let named = shape.properties.iter().enumerate().take(64).filter(|it| keys >> it.0 & 1 == 1);
    if byte == b'"' {
        let mut whole = named.filter(|(_, (name, _))| name.len() == at);
        return whole.next().map(|(_, (name, _))| Stage::Colon { mark: name == "type" });
    }
    let next = named.filter(|(_, (name, _))| name.as_bytes().get(at) == Some(&byte));
    let keys = next.fold(0, |keys, (place, _)| keys | 1 << place);
    (keys != 0).then_some(Stage::Key(at + 1, keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::JsonFormat;

    #[test]
    fn a_call_may_begin_with_its_type_though_the_schema_has_no_such_property() {
        let mut format = JsonFormat::default();
        format.schema.properties.remove("type");
        let shape = Shape::new(&format);
        for text in [r#"{"type":"tool_use"}"#, r#"{"name":"a"}"#] {
            let mut probe = JsonProbe::new(b'{');
            let verdicts: Vec<Verdict> =
                text.bytes().skip(1).map(|it| probe.step(it, &shape)).collect();
            assert!(!verdicts.contains(&Verdict::Not), "{text}: {verdicts:?}");
        }
    }
}
