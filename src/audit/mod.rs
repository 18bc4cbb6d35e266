//! Readers of the log, for people: entries and threads as text, why an entry is there, what a
//! verification found. Knows no running engine.

mod entry;
mod find;
mod payload;
mod report;
mod text;
mod why;

pub use entry::{brief, count, header, hex, json, lines, link, margin, summaries, summary};
pub use entry::{summary_json, thread};
pub use find::{entry, last_position, nearest, threads};
pub use payload::{compact, pretty};
pub use report::{report, report_json};
pub use text::{Paint, Style, ascii, cells, cut, line, text};
pub use why::{Step, told, why};
