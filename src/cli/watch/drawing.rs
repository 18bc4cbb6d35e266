//! Draws the rows of agents on a terminal, in place.
//!
//! The rows are drawn on the terminal's alternate screen. So the terminal shows its former content
//! again once `watch` has ended.

use std::io;

use crate::audit::{self, Paint, Style};
use crate::cli::watch::agent_row::{AgentRow, head};

/// The height that is assumed if the terminal doesn't report its own.
const ROWS: usize = 24;
/// The escape sequence that moves the cursor to the first cell.
const HOME: &str = "\u{1b}[H";
/// The escape sequences that clear the rest of a line, and the rest of the screen.
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_SCREEN: &str = "\u{1b}[J";

/// The size of the terminal, and the style of what is drawn there.
pub(super) struct Drawing {
    style: Style,
    height: usize,
}

impl Default for Drawing {
    fn default() -> Drawing {
        Drawing { style: Style::PLAIN, height: ROWS }
    }
}

impl Drawing {
    /// Switches to the alternate screen, and hides the cursor.
    pub(super) const BEGIN: &str = "\u{1b}[?1049h\u{1b}[?25l";
    /// Shows the cursor, and switches back to the normal screen.
    pub(super) const END: &str = "\u{1b}[?25h\u{1b}[?1049l";

    /// Measures the terminal. Returns whether its size has changed.
    pub(super) fn measure(&mut self, style: Style) -> bool {
        let size = terminal_size::terminal_size_of(io::stdout());
        let size = size.map(|(width, height)| (usize::from(width.0), usize::from(height.0)));
        let (width, height) = size.unwrap_or((style.width, ROWS));
        let style = Style { width, ..style };
        let has_changed = (self.style, self.height) != (style, height);
        (self.style, self.height) = (style, height);
        has_changed
    }

    /// Returns the text that draws the rows of agents. An agent's row is shown if the agent is at
    /// work or has open runs. It is also shown if something happened in the agent's thread since
    /// `since_us`. If there are more rows than lines, only the rows of the threads with the newest
    /// entries are drawn. The order of the rows stays the same.
    pub(super) fn frame(&self, rows: &[(&AgentRow, u64)], since_us: u64) -> String {
        let is_shown = |(row, at_us): &&(&AgentRow, u64)| {
            row.doing.is_at_work() || !row.runs.is_empty() || *at_us >= since_us
        };
        let shown: Vec<&(&AgentRow, u64)> = rows.iter().filter(is_shown).collect();
        // One line is for the head, and one for the end.
        let room = self.height.saturating_sub(2).max(1);
        let mut newest: Vec<u64> = shown.iter().map(|(_, at_us)| *at_us).collect();
        newest.sort_unstable_by(|one, other| other.cmp(one));
        let least_us = newest.get(room - 1).copied().unwrap_or(0);
        let fitting = shown.iter().filter(|(_, at_us)| *at_us >= least_us).take(room);
        let mut lines = vec![head(self.style)];
        lines.extend(fitting.map(|(row, _)| row.line("", self.style)));
        let rest = match shown.len().saturating_sub(room) {
            0 if shown.is_empty() => "no agent has been at work lately; Ctrl-C ends".to_owned(),
            0 => "Ctrl-C ends".to_owned(),
            more => format!("… and {}; Ctrl-C ends", audit::count(more as u64, "more", "more")),
        };
        let rest = audit::cut(&rest, self.style.width).into_owned();
        lines.push(self.style.paint(Paint::Faint, &rest));
        // The last line has no line end, so that the terminal doesn't scroll.
        format!("{HOME}{}{CLEAR_LINE}{CLEAR_SCREEN}", lines.join(&format!("{CLEAR_LINE}\n")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::cli::watch::agent_row::Doing;
    use crate::id::ThreadId;

    fn row(agent: &str, doing: Doing) -> AgentRow {
        AgentRow {
            agent: agent.to_owned(),
            thread: ThreadId::new("sess-a"),
            turn: 2,
            doing,
            waits_for: 0,
            reason: None,
            metadata: Map::new(),
            runs: Vec::new(),
        }
    }

    /// Returns the lines of a frame, without its escape sequences.
    fn lines(height: usize, rows: &[(AgentRow, u64)]) -> Vec<String> {
        let drawing = Drawing { style: Style { colour: false, width: 60 }, height };
        let rows: Vec<(&AgentRow, u64)> = rows.iter().map(|(row, at)| (row, *at)).collect();
        let frame = drawing.frame(&rows, 100);
        assert!(frame.starts_with(HOME) && frame.ends_with(CLEAR_SCREEN), "{frame:?}");
        let text = frame.replace(HOME, "").replace(CLEAR_LINE, "").replace(CLEAR_SCREEN, "");
        text.split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn agents_that_rest_leave_after_a_while() {
        let rows = [
            (row("ada", Doing::Done), 99),
            (row("bob", Doing::Thinking), 1),
            (row("eve", Doing::Done), 100),
        ];
        let lines = lines(24, &rows);
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1], "bob         sess-a             2  thinking");
        assert!(lines[2].starts_with("eve") && lines[3] == "Ctrl-C ends", "{lines:#?}");
    }

    #[test]
    fn where_rows_do_not_fit_the_newest_are_drawn() {
        let rows: Vec<(AgentRow, u64)> =
            (0..9).map(|it| (row(&format!("a{it}"), Doing::Waiting), 200 - it)).collect();
        let lines = lines(5, &rows);
        let begin = |it: &String| it.chars().take(2).collect::<String>();
        assert_eq!(lines.iter().skip(1).map(begin).collect::<Vec<_>>(), ["a0", "a1", "a2", "… "]);
        assert_eq!(lines[4], "… and 6 more; Ctrl-C ends");
    }
}
