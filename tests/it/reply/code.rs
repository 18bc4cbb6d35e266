//! Calls within code never run; `pulldown-cmark` says which parts of a reply are code. Valid calls
//! do run, however they are indented.

use pulldown_cmark::{Event as Read, Options, Parser as Reader, Tag, TagEnd};
use pumphouse::reply::{Event, Parser, What};

use super::tell::{config, cuts};

/// What documents are made of.
const PIECES: &[&str] = &[
    "`",
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "~~~~",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\n\n",
    "    ",
    "  ",
    " ",
    "\t",
    "> ",
    ">",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "14. ",
    "2) ",
    "# ",
    "## ",
    "---",
    "***",
    "===",
    "* * *",
    "\\",
    "\\`",
    "|",
    "| a | b |\n|---|---|\n",
    "a",
    "word ",
    "b c",
    "<div>",
    "</div>",
    "<b>",
    "<i t=\"",
    "\">",
    "'",
    "<!-- ",
    " -->",
    "<?p ",
    "?>",
    "<pre>",
    "</pre>",
    "<x:`y>",
    "[a](",
    ")",
    "[",
    "]",
    "]: /u",
    "](",
    "][",
    "<a href='`'>",
    "\r\n",
    "é",
    "\n    ",
    "\n  ",
    "\n\n    ",
    "\n```\n",
    "\n~~~\n",
    "<script>",
    "</script>",
    "&amp;",
    "!",
    "_",
    "<![CDATA[",
    "]]>",
    "<huh m=\"",
    "\"/>",
    "#",
    "-",
    "1.",
    "=",
    "+",
    "#######",
    "\n#",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let it = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((it ^ (it >> 31)) % count as u64).unwrap()
    }
}

/// A document with calls in it, numbered.
fn document(seed: u64) -> String {
    let mut chance = Chance(seed.wrapping_mul(0x5851_F42D_4C95_7F2D));
    let mut text = String::new();
    for _ in 0..4 + chance.below(36) {
        if chance.below(6) == 0 {
            let number = text.matches("<action").count();
            text += &format!("<action id=\"n{number}\">{{}}</action>");
        } else {
            text += PIECES[chance.below(PIECES.len())];
        }
    }
    // pulldown-cmark knows no tab behind the marks that end a fence; CommonMark does.
    let mut is_behind_marks = false;
    let no_tab = text.chars().map(|it| {
        is_behind_marks = matches!(it, '`' | '~') || is_behind_marks && matches!(it, ' ' | '\t');
        if is_behind_marks && it == '\t' { ' ' } else { it }
    });
    no_tab.collect()
}

/// Where the calls stand that ran, by their bytes.
fn ran<'a>(chunks: impl IntoIterator<Item = &'a str>) -> Vec<(usize, usize)> {
    let (mut ran, mut at) = (Vec::new(), 0);
    let mut take = |event: Event<'_>| {
        if let What::Closed(_) = event.what {
            ran.push((at, at + event.source.len()));
        }
        at += event.source.len();
    };
    let mut parser = Parser::new(config());
    for chunk in chunks {
        parser.feed(chunk, &mut take);
    }
    parser.finish(&mut take);
    ran
}

/// Whether a byte of a Markdown text is code.
fn is_code(text: &str, at: usize, options: Options) -> bool {
    let mut inside = false;
    for (event, range) in Reader::new_ext(text, options).into_offset_iter() {
        match event {
            Read::Code(_) if range.contains(&at) => return true,
            Read::Start(Tag::CodeBlock(_)) => inside = range.contains(&at),
            Read::End(TagEnd::CodeBlock) => inside = false,
            Read::Text(_) if inside && range.contains(&at) => return true,
            _ => {}
        }
    }
    false
}

/// What marks of lists and quotes are made of, and blanks.
const LEAD: &[char] = &[' ', '\t', '>', '-', '*', '+', '.', ')', '1', '2', '4'];

/// A document as the pump reads it, and where the tag stands in it that began at a byte.
///
/// A line that begins with one, but for marks, ends the paragraph. Its indent makes no code where
/// no blank line stands before it, or nothing at all. The text ends before a tag, so what ends a
/// fence does there.
fn ended(text: &str, at: usize, is_first: bool) -> (String, usize) {
    let (before, behind) = text.split_at(at);
    let from = before.rfind(['\n', '\r']).map_or(0, |it| it + 1);
    let line = &before[from..];
    let marks = line.trim_end_matches([' ', '\t']);
    let lead = marks.trim_end_matches(['`', '~']);
    let mut above = before[..from].lines();
    let is_blank = above.next_back().is_some_and(|it| it.trim().is_empty())
        && if is_first { !before.trim().is_empty() } else { above.next().is_some() };
    let told = if marks.len() >= lead.len() + 3 && lead.trim_matches([' ', '\t', '>']).is_empty() {
        let quote = |it: char| if it == '>' { '>' } else { ' ' };
        format!("{before}\n{}<div>", lead.chars().map(quote).collect::<String>())
    } else if is_blank || !line.trim_matches(LEAD).is_empty() {
        before.to_owned()
    } else if !marks.is_empty() {
        format!("{before}<div>")
    } else if !line.is_empty() && from > 0 {
        format!("{}<div>", &before[..from])
    } else {
        format!("{before}\n<div>")
    };
    (told.clone() + behind, told.len())
}

#[track_caller]
fn compare(seed: u64) -> usize {
    let text = document(seed);
    let whole = ran([&*text]);
    let characters = text.char_indices().map(|(at, it)| &text[at..at + it.len_utf8()]);
    assert_eq!(ran(characters), whole, "{seed}: {text:?}");
    assert_eq!(ran(cuts(&text, seed)), whole, "{seed}: {text:?}");
    assert_eq!(ran(cuts(&text, !seed)), whole, "{seed}: {text:?}");
    let mut from = 0;
    for &(at, end) in &whole {
        let (part, place) = (&text[from..], at - from);
        let (told, place_told) = ended(part, place, from == 0);
        for options in [Options::empty(), Options::ENABLE_TABLES] {
            assert!(
                !is_code(&told, place_told, options),
                "{seed}: a call in code ran, at {place} of {part:?}"
            );
        }
        from = end;
    }
    whole.len()
}

#[test]
fn no_call_in_code_runs() {
    let (mut ran, count) = (0, number("PUMPHOUSE_REPLY_CODE").unwrap_or(5_000));
    let first = number("PUMPHOUSE_REPLY_SEED").unwrap_or(0);
    for seed in first..first + count {
        ran += compare(seed);
    }
    println!("{count} documents: {ran} calls ran, none of them in code");
    assert!(u64::try_from(ran).unwrap() > count / 4, "{ran}");
}

fn number(variable: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "`just reply-code` says how many")]
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn sound_calls_run_however_they_are_indented() {
    let calls = [
        "<action id=\"a\">\n@{\"a\": 1}\n@</action>",
        "<action id=\"a\">{}</action>",
        "<calculate>\n@  <expression>1</expression>\n@</calculate>",
        "<set-timer in=\"PT1S\"/>",
    ];
    let mut count = 0;
    for (open, close) in [("<thought>", "</thought>"), ("<researcher>", "</researcher>"), ("", "")]
    {
        for before in ["", "\n", "I look.\n", "I look.\n\n", "- one\n- two\n", "a ` b\n"] {
            for indent in 0..=8 {
                let is_code = open.is_empty() && indent > 3 && before.ends_with("\n\n");
                if is_code {
                    continue;
                }
                for call in calls {
                    let blank = " ".repeat(indent);
                    let call = call.replace('@', &blank);
                    let text = format!("{open}{before}{blank}{call}\n{blank}{call}\n{close}");
                    let calls = ran([&*text]).len() - usize::from(!open.is_empty());
                    assert_eq!(calls, 2, "{text}");
                    count += 2;
                }
            }
        }
    }
    println!("{count} sound calls: all of them ran");
    assert!(count >= 1_000, "{count}");
}
