//! Calls in code never run, as `pulldown-cmark` reads the text around them; and sound calls do,
//! however they are indented.

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
    text
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

/// Whether a line begins at this byte but for blanks.
fn begins(text: &str, at: usize) -> bool {
    text[..at].rsplit(['\n', '\r']).next().unwrap().trim_matches([' ', '\t']).is_empty()
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
        // A line that begins with a tag ends the paragraph; by its indent it is no code where
        // no blank line stands before it.
        let mut told = part.to_owned();
        let mut place_told = place;
        if begins(part, place) {
            let line = part[..place].trim_end_matches([' ', '\t']).len();
            told = format!("{}\n<div>{}", &part[..line], &part[place..]);
            place_told = line + 1 + 5;
            let indent = part[line..place].len();
            if indent > 0 && line > 0 {
                told = format!("{}<div>{}", &part[..line], &part[place..]);
                place_told = line + 5;
            }
        }
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
    let count = std::env::var("PUMPHOUSE_REPLY_CODE").ok().and_then(|it| it.parse().ok());
    let (mut ran, count) = (0, count.unwrap_or(5_000));
    for seed in 0..count {
        ran += compare(seed);
    }
    println!("{count} documents: {ran} calls ran, none of them in code");
    assert!(u64::try_from(ran).unwrap() > count / 4, "{ran}");
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
                let is_first = open.is_empty() && indent > 3 && before == "\n";
                if is_code || is_first {
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
    assert!(count >= 1_000, "{count}");
}
