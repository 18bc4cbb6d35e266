//! A page's fenced blocks.

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of its fence.
    pub(super) line: usize,
    /// The first word after the fence.
    pub(super) kind: String,
    pub(super) text: String,
}

pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<&str> = None;
    for (text, line) in page.lines().zip(1..) {
        let ticks = &text[..text.len() - text.trim_start_matches('`').len()];
        match fence {
            Some(open) if text.trim_end() == open => fence = None,
            Some(_) => {
                if let Some(block) = blocks.last_mut() {
                    block.text.push_str(text);
                    block.text.push('\n');
                }
            }
            None if ticks.len() >= 3 => {
                fence = Some(ticks);
                let info = text[ticks.len()..].trim();
                let kind = info.split([',', ' ']).next().unwrap_or_default().to_owned();
                blocks.push(Block { line, kind, text: String::new() });
            }
            None => {}
        }
    }
    assert!(fence.is_none(), "a block isn't closed");
    blocks
}

#[test]
fn a_block_ends_with_its_own_fence() {
    let page = "a\n```sh\nb\n```\n````rust,no_run\n```\nc\n````\n```\n```\n";
    let told: Vec<_> = blocks(page).into_iter().map(|it| (it.line, it.kind, it.text)).collect();
    let expected = [(2, "sh", "b\n"), (5, "rust", "```\nc\n"), (9, "", "")];
    assert_eq!(told, expected.map(|(line, kind, text)| (line, kind.into(), text.into())));
}
