//! What stays in a thought's text as it is written: tags that are only spoken of, and payloads that
//! can't be sent. Whether one can, is known only when the agent acts on it.

use pumphouse::reply::{Kind, Reading};

use super::escape;

/// The text of a thought, and what may stay in it.
#[derive(Debug, Default)]
pub(super) struct ThoughtText {
    text: String,
    asides: Vec<Aside>,
}

#[derive(Debug)]
struct Aside {
    /// Before which byte of the text.
    at: usize,
    /// Where the payload begins in the reply; none for what stays in any case.
    payload: Option<usize>,
    source: String,
}

impl ThoughtText {
    /// The text as it is recorded, with the payloads in it that weren't sent.
    pub(super) fn recorded(&self, unsent: &[usize], reading: Reading) -> String {
        let (mut whole, mut from) = (String::new(), 0);
        for Aside { at, payload, source } in &self.asides {
            if payload.is_none_or(|it| unsent.contains(&it)) {
                whole += self.text.get(from..*at).unwrap_or_default();
                whole += source;
                from = *at;
            }
        }
        whole += self.text.get(from..).unwrap_or_default();
        match reading {
            Reading::CommonMark => escape::recorded(whole.trim()).into_owned(),
            _ => whole.trim().to_owned(),
        }
    }
}

/// The elements of text that are open, the innermost last.
#[derive(Debug, Default)]
pub(super) struct OpenElements(Vec<OpenElement>);

#[derive(Debug)]
struct OpenElement {
    kind: Kind,
    /// Bytes of its own text.
    bytes: usize,
    asides: Vec<Aside>,
}

impl OpenElements {
    pub(super) fn opens(&mut self, kind: Kind) {
        self.0.push(OpenElement { kind, bytes: 0, asides: Vec::new() });
    }

    /// So many bytes of text come.
    pub(super) fn says(&mut self, bytes: usize) {
        if let Some(it) = self.0.last_mut() {
            it.bytes += bytes;
        }
    }

    /// The texts are too long: what is kept of them begins here.
    pub(super) fn begins_anew(&mut self) {
        for it in &mut self.0 {
            (it.bytes, it.asides) = (0, Vec::new());
        }
    }

    /// Whether text that comes now is a thought's.
    pub(super) fn is_thought(&self) -> bool {
        self.0.last().is_some_and(|it| it.kind == Kind::Thought)
    }

    /// Something that isn't its text may stay in the thought at hand.
    pub(super) fn keeps(&mut self, payload: Option<usize>, source: &str) {
        if let Some(it) = self.0.last_mut().filter(|it| it.kind == Kind::Thought) {
            let (at, source) = (it.bytes, source.to_owned());
            it.asides.push(Aside { at, payload, source });
        }
    }

    /// The innermost is closed, and this is its text.
    pub(super) fn closes(&mut self, text: &str) -> ThoughtText {
        let asides = self.0.pop().map(|it| it.asides).unwrap_or_default();
        ThoughtText { text: text.to_owned(), asides }
    }
}

#[cfg(test)]
mod tests {
    use pumphouse::reply::{Kind, Reading};

    use super::OpenElements;

    #[test]
    fn a_payload_that_is_not_sent_stays_where_it_stood() {
        let mut open = OpenElements::default();
        open.opens(Kind::Thought);
        open.says(2);
        open.keeps(Some(9), "<b/>");
        open.says(1);
        open.keeps(None, "<action>");
        let it = open.closes("a c");
        assert_eq!(it.recorded(&[9], Reading::default()), "a <b/>c<action>");
        assert_eq!(it.recorded(&[], Reading::default()), "a c<action>");
    }
}
