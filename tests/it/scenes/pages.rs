//! Finds fenced blocks and `<huh>` elements in the pages of the faults.

use pumphouse::Payload;
use pumphouse::limits::XmlLimits;
use pumphouse::wire::core::Huh;
use pumphouse::xml::{self, Profile};

use super::play::plain;

/// The fenced blocks of a kind, each after its line.
pub(super) fn blocks(text: &str, kind: &str) -> Vec<(usize, String)> {
    let fence = format!("```{kind}");
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (line, at) in text.lines().zip(1..) {
        if !open && line == fence {
            open = true;
            blocks.push((at, String::new()));
        } else if line.starts_with("```") {
            open = false;
        } else if let Some((_, block)) = blocks.last_mut().filter(|_| open) {
            block.push_str(line);
            block.push('\n');
        }
    }
    blocks
}

/// Every `<huh>` that a page shows, and its line.
pub(super) fn huhs(text: &str) -> Vec<(usize, Huh)> {
    let found = text.match_indices("<huh ").map(|(at, _)| {
        let line = text[..at].matches('\n').count() + 1;
        let end = text[at..].find("</huh>").unwrap_or_else(|| panic!("line {line}: no </huh>"));
        let huh = &text[at..at + end + "</huh>".len()];
        let huh = xml::read(huh, Profile::Wire, &XmlLimits::DOOR);
        let huh = huh.unwrap_or_else(|error| panic!("the <huh> in line {line}: {error}"));
        let huh = Huh::decode(&plain(huh.view()));
        (line, huh.unwrap_or_else(|error| panic!("the <huh> in line {line}: {error}")))
    });
    found.collect()
}
