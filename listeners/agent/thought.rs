//! The texts of thoughts. Some elements within a thought stay part of the thought's text: tags that
//! are only mentioned, and payloads that can't be sent. Whether a payload can be sent is known only
//! when the agent acts on it.

use pumphouse::reply::Kind;

use super::escape;

/// The text of a thought, and the elements that may become part of it.
#[derive(Debug, Default)]
pub(super) struct ThoughtText {
    text: String,
    asides: Vec<Aside>,
    /// The number of thoughts that enclose this one.
    pub(super) depth: u64,
}

#[derive(Debug)]
struct Aside {
    /// The position in the text at which the element stands, in bytes.
    at: usize,
    /// The position in the reply at which a payload begins, in bytes. None for an element that
    /// stays in any case.
    payload: Option<usize>,
    source: String,
}

impl ThoughtText {
    /// The text as it is recorded, with the payloads that begin at the positions `unsent`.
    pub(super) fn recorded(&self, unsent: &[usize]) -> String {
        let (mut whole, mut from) = (String::new(), 0);
        for Aside { at, payload, source } in &self.asides {
            if payload.is_none_or(|it| unsent.contains(&it)) {
                whole += self.text.get(from..*at).unwrap_or_default();
                whole += source;
                from = *at;
            }
        }
        whole += self.text.get(from..).unwrap_or_default();
        escape::recorded(whole.trim()).into_owned()
    }
}

/// The open elements that hold text, the innermost last.
#[derive(Debug, Default)]
pub(super) struct OpenElements(Vec<OpenElement>);

#[derive(Debug)]
struct OpenElement {
    kind: Kind,
    /// The length of the element's own text so far, in bytes.
    bytes: usize,
    asides: Vec<Aside>,
}

impl OpenElements {
    pub(super) fn opens(&mut self, kind: Kind) {
        self.0.push(OpenElement { kind, bytes: 0, asides: Vec::new() });
    }

    /// Counts this many bytes as text of the innermost element.
    pub(super) fn says(&mut self, bytes: usize) {
        if let Some(it) = self.0.last_mut() {
            it.bytes += bytes;
        }
    }

    /// Forgets the texts of all open elements, and the elements kept within them, since the texts
    /// are too long. Lengths count from here on.
    pub(super) fn begins_anew(&mut self) {
        for it in &mut self.0 {
            (it.bytes, it.asides) = (0, Vec::new());
        }
    }

    /// Whether text at the current place belongs to a thought.
    pub(super) fn is_thought(&self) -> bool {
        self.0.last().is_some_and(|it| it.kind == Kind::Thought)
    }

    /// Records an element that may become part of the text of the open thought.
    pub(super) fn keeps(&mut self, payload: Option<usize>, source: &str) {
        if let Some(it) = self.0.last_mut().filter(|it| it.kind == Kind::Thought) {
            let (at, source) = (it.bytes, source.to_owned());
            it.asides.push(Aside { at, payload, source });
        }
    }

    /// Closes the innermost element, which has this text.
    pub(super) fn closes(&mut self, text: &str) -> ThoughtText {
        let asides = self.0.pop().map(|it| it.asides).unwrap_or_default();
        let depth = self.0.iter().filter(|it| it.kind == Kind::Thought).count() as u64;
        ThoughtText { text: text.to_owned(), asides, depth }
    }
}

#[cfg(test)]
mod tests {
    use pumphouse::reply::Kind;

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
        assert_eq!(it.recorded(&[9]), "a <b/>c<action>");
        assert_eq!(it.recorded(&[]), "a c<action>");
    }
}
