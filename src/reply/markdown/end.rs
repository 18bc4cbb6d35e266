//! Handles the end of a line in a Markdown text: determines the line's kind, and the blocks that
//! stay open for the next line.

use super::{Blocks, Container, Fence, Leaf, Line, Stage};
use crate::reply::html::{End, Region};
use crate::reply::inline::Inline;

impl Blocks {
    pub(super) fn end_line(&mut self) {
        let is_blank = self.line.stage == Stage::Lead && !self.line.is_tagged;
        self.is_bare &= is_blank && !self.line.is_marked;
        match self.line.stage {
            Stage::Lead => self.end_blank(),
            Stage::Hashes(_) | Stage::Marks(_) => {}
            Stage::Opening(count, _) => self.fence(Fence { mark: b'`', count }),
            Stage::Underline(_) => self.leaf = Leaf::None,
            Stage::Rule(mark, spaced) => {
                let is_line = mark == b'-' && !spaced && self.is_underline();
                self.end_rule(is_line);
            }
            Stage::Mark(mark, width, _) | Stage::Padding(mark, width, ..) => {
                self.end_mark(mark, width);
            }
            Stage::Closing(..) => self.leaf = Leaf::None,
            Stage::Digits(..) => self.paragraph(b'0'),
            Stage::Text | Stage::Info | Stage::Code => {}
        }
        if self.line.stage == Stage::Text {
            self.end_text();
        }
        if matches!(self.leaf, Leaf::None | Leaf::Heading) {
            (self.leaf, self.inline) = (Leaf::None, Inline::default());
        }
        self.is_blank_before = is_blank && !self.is_bare;
        self.line = Line::NEW;
    }

    fn end_blank(&mut self) {
        while self.line.matched < self.depth {
            match self.containers[self.line.matched] {
                Container::Item { is_empty: false, .. } => self.line.matched += 1,
                _ => break,
            }
        }
        if !self.all() {
            self.close();
        }
        if matches!(self.leaf, Leaf::Paragraph | Leaf::Html(End::Blank)) {
            self.leaf = Leaf::None;
        }
    }

    /// Whether a `-` on this line makes a heading of the paragraph above it. The paragraph must be
    /// in the same containers.
    fn is_underline(&self) -> bool {
        let line = &self.line;
        self.leaf == Leaf::Paragraph && self.all() && line.rule.2 == line.matched
    }

    fn end_rule(&mut self, is_underline: bool) {
        let (_, count, depth) = self.line.rule;
        if count >= 3 {
            self.line.matched = depth.min(self.depth);
            self.close();
            self.fill();
        } else if is_underline {
            self.leaf = Leaf::None;
        } else {
            self.paragraph(b'-');
        }
    }

    /// Handles a list marker with nothing after it.
    fn end_mark(&mut self, mark: u8, width: u32) {
        let is_rule = self.line.rule.1 >= 3 && self.line.rule.0 == mark;
        if is_rule || mark == b'-' && self.is_underline() && self.line.rule.1 == 1 {
            return self.end_rule(true);
        }
        if self.all() && self.leaf == Leaf::Paragraph {
            return self.paragraph(b'-');
        }
        let need = self.line.mark - self.line.start + width + 1;
        self.open(Container::Item { need, is_empty: true });
    }

    fn end_text(&mut self) {
        let ends = self.line.html.as_mut().and_then(|it| it.step(b'\n'));
        let is_alone = self.line.alone == Some(Region::None);
        if let Some(end) = ends.or(is_alone.then_some(End::Blank)) {
            self.html(end);
        }
        if self.line.is_ended && matches!(self.leaf, Leaf::Html(_)) {
            self.leaf = Leaf::None;
        }
        self.inline.step(b'\n');
    }
}
