//! Reads a log for people, without a running engine: shows entries and threads as text, JSON, XML
//! or Markdown, explains why an entry is there, and reports the findings of a verification.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
use crate as audit;
use pumphouse_core::{entry_json, wire};
use pumphouse_ground::{hidden_characters, id, limits, name, xml};
use pumphouse_log as log;

mod entry;
mod export;
mod read_export;
mod filter;
mod find;
mod markdown;
mod payload;
mod report;
mod state;
mod text;
mod tree;
mod thread_list;
mod time_filter;
mod why;

pub use crate::entry_json::{hex, json};
pub use crate::log::{last_position, last_position_from};
pub use entry::{brief, count, header, hidden_lines, lines, link, margin};
pub use export::{EXPORT, Selected, xml_entry, xml_foot, xml_head, xml_thread};
pub use filter::{Called, Filter, NotCalled, Words};
pub use find::nearest;
pub use hidden_characters::is_hidden;
pub use markdown::{markdown_entry, markdown_head};
pub use payload::{compact, pretty, quoted};
pub use read_export::{ExportReport, check_export};
pub use report::{report, report_json};
pub use state::{NoState, StateWord, States};
pub use text::{Paint, Style, ascii, cells, cut, line, text};
pub use thread_list::{summaries, summary, summary_json, thread};
pub use time_filter::{NoWhen, When};
pub use tree::{Branches, Placed, Remaining, branch, branch_json, paint, placed};
pub use why::{Joined, Step, told, why};
