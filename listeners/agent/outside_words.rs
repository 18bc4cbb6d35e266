//! The text of a reply outside of all elements. It may be the answer of a model that writes none.

/// The last pieces of text outside of all elements.
#[derive(Default)]
pub(super) struct OutsideWords {
    /// The current piece: its beginning, its end, and whether it is more than white space.
    last: (usize, usize, bool),
    /// The last piece before the current one that is more than white space.
    before: Option<(usize, usize)>,
}

impl OutsideWords {
    /// Records a text outside of all elements, with its range of bytes.
    pub(super) fn says(&mut self, text: &str, (from, to): (usize, usize)) {
        if self.last.1 != from {
            self.before = self.last();
            self.last = (from, to, false);
        }
        self.last.1 = to;
        self.last.2 |= !text.trim().is_empty();
    }

    /// The last piece that is more than white space. None if there is no such piece.
    fn last(&self) -> Option<(usize, usize)> {
        let (from, to, has_words) = self.last;
        if has_words { Some((from, to)) } else { self.before }
    }

    /// The byte range of the last text that isn't blank and that stands outside all elements or
    /// within the agent's own element. If a model writes no `<response>`, this text may be its
    /// answer. White space around the text is left out, except where the text is a piece of an
    /// answer: `continues` says that it goes on with one, and `is_cut` that one goes on with it.
    pub(super) fn answer(
        &self,
        reply: &str,
        continues: bool,
        is_cut: bool,
    ) -> Option<(usize, usize)> {
        let words = self.last()?;
        let text = reply.get(words.0..words.1)?;
        let start = if continues { text } else { text.trim_start() };
        let end = if is_cut { text } else { text.trim_end() };
        Some((words.1 - start.len(), words.0 + end.len()))
    }
}
