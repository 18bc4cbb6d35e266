//! Lays out lines for a terminal: finished lines, and below them a foot that is redrawn.
//!
//! This module is pure: it turns text into the characters to write to the terminal. The current
//! line, which may still grow, is redrawn together with the foot. So finished lines can be put
//! above the current line.

use crate::audit::{Paint, Style, cells};

/// An output: a terminal, or something else, such as a pipe.
pub(super) struct Terminal {
    style: Style,
    /// Whether the output can be overwritten. Only such an output has a foot.
    is_terminal: bool,
    /// Finished lines that aren't shown yet.
    done: String,
    /// The current line.
    line: String,
    paint: Option<Paint>,
    /// Whether the last line was empty. A second empty line in a row is left out.
    is_blank: bool,
    /// How many rows the current line and the foot took when they were last shown.
    drawn: usize,
}

impl Terminal {
    pub(super) fn new(style: Style, is_terminal: bool) -> Terminal {
        let (done, line) = (String::new(), String::new());
        Terminal { style, is_terminal, done, line, paint: None, is_blank: false, drawn: 0 }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Appends a text to the current line.
    pub(super) fn say(&mut self, paint: Option<Paint>, text: &str) {
        if self.paint != paint {
            self.end();
            self.paint = paint;
        }
        for it in text.chars() {
            match it {
                '\n' => self.write(),
                it => self.line.push(it),
            }
            if self.is_terminal && cells(&self.line) >= self.style.width {
                self.wrap();
            }
        }
    }

    /// Ends the current line, if it isn't empty.
    pub(super) fn end(&mut self) {
        if !self.line.is_empty() {
            self.write();
        }
    }

    /// Writes a finished line above the current one.
    pub(super) fn above(&mut self, line: &str) {
        self.done.push_str(line);
        self.done.push('\n');
    }

    /// Breaks the current line at its last space, or at its end if it has no space.
    fn wrap(&mut self) {
        let at = self.line.rfind(' ').filter(|at| *at > 0).unwrap_or(self.line.len());
        let rest = self.line.split_off(at);
        self.write();
        rest.trim_start().clone_into(&mut self.line);
    }

    fn write(&mut self) {
        let line = std::mem::take(&mut self.line);
        let was_blank = std::mem::replace(&mut self.is_blank, line.is_empty());
        if was_blank && line.is_empty() {
            return;
        }
        let line = self.painted(&line);
        self.above(&line);
    }

    fn painted(&self, text: &str) -> String {
        self.paint.map_or_else(|| text.to_owned(), |it| self.style.paint(it, text))
    }

    /// Returns the text that brings the terminal up to date. If the output is no terminal, returns
    /// the finished lines.
    pub(super) fn shown(&mut self, foot: &[String]) -> String {
        let done = std::mem::take(&mut self.done);
        if !self.is_terminal {
            return done;
        }
        let mut out = String::new();
        if self.drawn > 0 {
            out.push_str(&format!("\u{1b}[{}A\r\u{1b}[J", self.drawn));
        }
        out.push_str(&done);
        let line = (!self.line.is_empty()).then(|| self.painted(&self.line));
        let rows = line.iter().chain(foot);
        rows.clone().for_each(|it| out.extend([it, "\n"]));
        self.drawn = rows.count();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(width: usize) -> Terminal {
        Terminal::new(Style { colour: false, width }, true)
    }

    #[test]
    fn a_line_that_grows_is_written_over_until_it_ends() {
        let mut terminal = terminal(80);
        terminal.say(None, "Six times");
        assert_eq!(terminal.shown(&["* sum".to_owned()]), "Six times\n* sum\n");
        terminal.say(None, " seven");
        assert_eq!(terminal.shown(&[]), "\u{1b}[2A\r\u{1b}[JSix times seven\n");
        terminal.above("sum ok");
        terminal.say(None, ".\n");
        assert_eq!(terminal.shown(&[]), "\u{1b}[1A\r\u{1b}[Jsum ok\nSix times seven.\n");
        assert_eq!(terminal.shown(&[]), "");
    }

    #[test]
    fn a_long_line_breaks_between_words() {
        let mut terminal = terminal(10);
        terminal.say(None, "one two three four-and-a-half");
        terminal.end();
        assert_eq!(terminal.shown(&[]), "one two\nthree\nfour-and-a\n-half\n");
    }

    #[test]
    fn without_a_terminal_there_are_lines_only() {
        let mut terminal = Terminal::new(Style::PLAIN, false);
        terminal.say(None, "Six");
        assert_eq!(terminal.shown(&["* sum".to_owned()]), "");
        terminal.end();
        assert_eq!(terminal.shown(&[]), "Six\n");
    }
}
