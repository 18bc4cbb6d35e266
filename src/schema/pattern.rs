//! The regular expressions of XSD. This module translates them into the syntax of the crate
//! `regex`, matches texts without that crate, and makes example texts that match.
//!
//! The crate of `#[derive(Payload)]` has a symbolic link to this file, so that the derive can
//! report wrong patterns at compile time.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// How deep groups may be nested.
const DEPTH_MAX: usize = 40;
/// The greatest number in a counted repetition.
const TIMES_MAX: u32 = 1_000;
/// The greatest size of a pattern once its counted repetitions are written out: the number of
/// ranges in its character classes, plus the bytes of its literal text. A compiled pattern keeps
/// all of these in memory.
const COST_MAX: usize = 50_000;
/// The search for an example gives up on a text that is longer than this many bytes.
const EXAMPLE_MAX: usize = 10_000;

/// The characters with which an XML name may begin.
const INITIAL: &str = concat!(
    r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}",
    r"\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}",
    r"\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}",
);
/// The further characters that an XML name may have after its first one.
const INNER: &str = r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}";
/// The general categories of Unicode that `\p{…}` may name. Unicode blocks aren't supported.
const CATEGORIES: &str = " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po \
                          Z Zs Zl Zp S Sm Sc Sk So C Cc Cf Co Cn ";

/// Why a text isn't a valid pattern, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The description of the mistake.
    pub message: String,
    /// How to correct the mistake.
    pub hint: &'static str,
}

/// Translates a pattern into the syntax of the crate `regex`, anchored so that it matches only
/// whole texts.
///
/// # Errors
///
/// Returns an error if the text isn't a pattern of XSD. Also returns an error for three things that
/// aren't supported: Unicode blocks, groups more than 40 deep, and counts above 1000.
pub fn translate(pattern: &str) -> Result<String, Wrong> {
    let mut reader = Reader { rest: pattern.chars().collect(), out: String::new() };
    reader.rest.reverse();
    reader.expression(0)?;
    match reader.peek() {
        Some(_) => wrong("a `)` closes nothing", "write `\\)` for the character"),
        None => Ok(format!("\\A(?:{})\\z", reader.out)),
    }
}

/// Parses a pattern into a syntax tree.
///
/// # Errors
///
/// Returns the errors of [`translate`]. Also returns an error if matching the pattern would take
/// too much memory.
pub fn parse(pattern: &str) -> Result<Hir, Wrong> {
    let translated = translate(pattern)?;
    let Ok(hir) = regex_syntax::Parser::new().parse(&translated) else {
        return wrong("this is no pattern of XSD", "write a simpler one");
    };
    if cost(&hir) > COST_MAX {
        return wrong("this pattern takes too much to match", "repeat less, or by `*` and `+`");
    }
    Ok(hir)
}

/// Returns whether a parsed pattern matches the whole text.
#[must_use]
pub fn matches(hir: &Hir, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    ends(hir, &text, &BTreeSet::from([0])).contains(&text.len())
}

/// Searches for a text that the pattern matches. The text has from `least` to `most` characters.
/// Returns `None` if the search finds none.
#[must_use]
pub fn example(hir: &Hir, least: usize, most: usize) -> Option<String> {
    let mut empty = None;
    for more in 0..=least.clamp(8, EXAMPLE_MAX) {
        for branch in 0..8 {
            let mut text = String::new();
            let made = make(hir, more, branch, &mut text)
                && text.chars().all(is_xml)
                && matches(hir, &text);
            let length = text.chars().count();
            if !made || length < least || length > most {
                continue;
            }
            if !text.trim().is_empty() {
                return Some(text);
            }
            empty.get_or_insert(text);
        }
    }
    empty
}

fn is_xml(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

fn wrong<T>(message: impl Into<String>, hint: &'static str) -> Result<T, Wrong> {
    Err(Wrong { message: message.into(), hint })
}

/// Translates a pattern. `rest` holds the unread characters in reverse order, and `out` holds the
/// translation so far.
struct Reader {
    rest: Vec<char>,
    out: String,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.last().copied()
    }

    fn next_is(&mut self, letter: char) -> bool {
        let is = self.peek() == Some(letter);
        if is {
            self.rest.pop();
        }
        is
    }

    fn expression(&mut self, depth: usize) -> Result<(), Wrong> {
        if depth > DEPTH_MAX {
            return wrong("too many groups in groups", "write a simpler pattern");
        }
        while let Some(letter) = self.peek() {
            match letter {
                ')' => return Ok(()),
                '|' => {
                    self.rest.pop();
                    self.out.push('|');
                }
                _ => {
                    self.atom(depth)?;
                    self.times()?;
                }
            }
        }
        Ok(())
    }

    fn atom(&mut self, depth: usize) -> Result<(), Wrong> {
        match self.rest.pop() {
            Some('(') => {
                if self.peek() == Some('?') {
                    return wrong("XSD knows groups, and no `(?` of another kind", "leave it out");
                }
                self.out.push_str("(?:");
                self.expression(depth + 1)?;
                if !self.next_is(')') {
                    return wrong("a `(` is not closed", "write `\\(` for the character");
                }
                self.out.push(')');
            }
            Some('.') => self.out.push_str(r"[^\n\r]"),
            Some('\\') => self.escape()?,
            Some('[') => self.class(depth)?,
            Some(letter @ ('?' | '*' | '+' | '{' | '}' | ']')) => {
                let hint = "put a `\\` before it for the character";
                return wrong(format!("`{letter}` stands where there is nothing for it"), hint);
            }
            Some(letter @ ('^' | '$')) => {
                let hint = "leave it out; for the character write `\\^` or `[$]`";
                return wrong(format!("a pattern matches the whole text without `{letter}`"), hint);
            }
            Some(it) => self.out.push_str(&regex_syntax::escape(it.encode_utf8(&mut [0; 4]))),
            None => {}
        }
        Ok(())
    }

    fn times(&mut self) -> Result<(), Wrong> {
        match self.peek() {
            Some(letter @ ('?' | '*' | '+')) => {
                self.rest.pop();
                self.out.push(letter);
            }
            Some('{') => self.counted()?,
            _ => return Ok(()),
        }
        match self.peek() {
            Some(letter @ ('?' | '*' | '+' | '{')) => wrong(
                format!("`{letter}` repeats what is repeated already"),
                "XSD knows no lazy and no possessive repetition; group it to repeat it again",
            ),
            _ => Ok(()),
        }
    }

    fn counted(&mut self) -> Result<(), Wrong> {
        self.rest.pop();
        let least = self.number();
        let comma = self.next_is(',');
        let most = self.number();
        let ordered = match (least, most) {
            (Some(least), Some(most)) => comma && least <= most && most <= TIMES_MAX,
            (Some(least), None) => least <= TIMES_MAX,
            (None, _) => false,
        };
        let (Some(least), true, true) = (least, ordered, self.next_is('}')) else {
            return wrong(
                "this says no number of times",
                "write `{2}`, `{2,}` or `{2,5}`, with 1000 at the most; `\\{` is the character",
            );
        };
        self.out.push_str(&format!("{{{least}"));
        if comma {
            self.out.push(',');
        }
        if let Some(most) = most {
            self.out.push_str(&most.to_string());
        }
        self.out.push('}');
        Ok(())
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|it| it.to_digit(10)) {
            self.rest.pop();
            number = Some(number.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit));
        }
        number
    }

    /// Reads an escape after its `\`, within brackets or outside.
    fn escape(&mut self) -> Result<(), Wrong> {
        let Some(letter) = self.rest.pop() else {
            return wrong("a `\\` ends the pattern", "write `\\\\` for the character");
        };
        match letter {
            'n' | 'r' | 't' => self.out.extend(['\\', letter]),
            '\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^' => {
                self.out.extend(['\\', letter]);
            }
            'd' => self.out.push_str(r"\p{Nd}"),
            'D' => self.out.push_str(r"\P{Nd}"),
            's' => self.out.push_str(r"[ \t\n\r]"),
            'S' => self.out.push_str(r"[^ \t\n\r]"),
            'w' => self.out.push_str(r"[^\p{P}\p{Z}\p{C}]"),
            'W' => self.out.push_str(r"[\p{P}\p{Z}\p{C}]"),
            'i' => self.out.push_str(&format!("[{INITIAL}]")),
            'I' => self.out.push_str(&format!("[^{INITIAL}]")),
            'c' => self.out.push_str(&format!("[{INITIAL}{INNER}]")),
            'C' => self.out.push_str(&format!("[^{INITIAL}{INNER}]")),
            'p' | 'P' => return self.category(letter),
            _ => {
                let hint = "XSD has \\n \\r \\t \\d \\s \\w \\i \\c \\p{…}, their capitals, and a \
                            `\\` before what has a meaning of its own; `[$]` is a `$`";
                return wrong(format!("XSD has no `\\{letter}`"), hint);
            }
        }
        Ok(())
    }

    fn category(&mut self, letter: char) -> Result<(), Wrong> {
        let mut name = String::new();
        if self.next_is('{') {
            while let Some(letter) = self.rest.pop().filter(|it| *it != '}') {
                name.push(letter);
            }
        }
        if name.starts_with("Is") {
            let hint = "write the block as a range: `[\\n-~]`, `[α-ω]`";
            return wrong(format!("blocks of Unicode such as `{name}` are not known"), hint);
        }
        if name.is_empty() || !CATEGORIES.contains(&format!(" {name} ")) {
            return wrong(format!("Unicode has no category `{name}`"), "write `\\p{L}`, `\\p{Nd}`");
        }
        self.out.push_str(&format!("\\{letter}{{{name}}}"));
        Ok(())
    }

    /// Reads the inside of brackets: characters, ranges and escapes. A subtraction such as the
    /// `-[aeiou]` of `[a-z-[aeiou]]` is read as another pair of brackets.
    fn class(&mut self, depth: usize) -> Result<(), Wrong> {
        if depth > DEPTH_MAX {
            return wrong("too many brackets in brackets", "write a simpler pattern");
        }
        let start = self.out.len();
        self.out.push('[');
        if self.next_is('^') {
            self.out.push('^');
        }
        let mut filled = false;
        loop {
            match self.rest.pop() {
                None => return wrong("a `[` is not closed", "write `\\[` for the character"),
                Some(']') if filled => break,
                Some(']') => return wrong("the brackets are empty", "name a character in them"),
                Some('[') => return wrong("`[` stands in brackets", "write `\\[`"),
                Some('-') if filled && self.next_is('[') => {
                    self.out.push(']');
                    self.out.insert(start, '[');
                    self.out.push_str("--");
                    self.class(depth + 1)?;
                    if !self.next_is(']') {
                        let hint = "end the outer brackets there: `[a-z-[aeiou]]`";
                        return wrong("something follows what is taken away", hint);
                    }
                    break;
                }
                Some('\\') if self.rest.last().is_none_or(|it| one(*it).is_none()) => {
                    self.escape()?;
                }
                Some(it) => self.range(it, filled)?,
            }
            filled = true;
        }
        self.out.push(']');
        Ok(())
    }

    /// Reads one character in brackets, or a range that begins with this character.
    fn range(&mut self, first: char, filled: bool) -> Result<(), Wrong> {
        if first == '-' && filled && self.peek() != Some(']') {
            return wrong("`-` stands in brackets and makes no range", "write `\\-`");
        }
        let from = self.single(first);
        literal(from, &mut self.out);
        let ends = self.rest.len() < 2 || matches!(self.rest[self.rest.len() - 2], ']' | '[');
        if self.peek() != Some('-') || ends {
            return Ok(());
        }
        self.rest.pop();
        let next = self.rest.pop().unwrap_or_default();
        let class = next == '\\' && self.peek().is_some_and(|it| one(it).is_none());
        let to = self.single(next);
        if class || to < from {
            let hint = "write the smaller character first; `\\-` is the character";
            return wrong(format!("`{from}-{to}` is no range"), hint);
        }
        self.out.push('-');
        literal(to, &mut self.out);
        Ok(())
    }

    /// Returns the character that `letter` stands for: `letter` itself or, if it is a `\`, the
    /// escaped character after it.
    fn single(&mut self, letter: char) -> char {
        match self.peek().filter(|_| letter == '\\').and_then(one) {
            Some(escaped) => {
                self.rest.pop();
                escaped
            }
            None => letter,
        }
    }
}

/// Returns the character that `\` and this letter stand for. Returns `None` if they stand for
/// several characters, as `\d` does, or if there is no such escape.
fn one(escaped: char) -> Option<char> {
    match escaped {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        it => r"\|.?*+(){}-[]^".contains(it).then_some(it),
    }
}

fn literal(letter: char, out: &mut String) {
    if r"\[]^-&~".contains(letter) {
        out.push('\\');
    }
    out.push(letter);
}

fn cost(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(it) => it.0.len(),
        HirKind::Class(Class::Unicode(it)) => it.ranges().len(),
        HirKind::Class(Class::Bytes(it)) => it.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1) as usize;
            cost(&repetition.sub).saturating_mul(times)
        }
        HirKind::Capture(it) => cost(&it.sub),
        HirKind::Concat(all) | HirKind::Alternation(all) => {
            all.iter().map(cost).fold(0, usize::saturating_add)
        }
    }
}

/// Returns the positions in the text at which a match may end if it begins at one of `starts`.
fn ends(hir: &Hir, text: &[char], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    let step = |fits: &dyn Fn(char) -> bool| -> BTreeSet<usize> {
        let next = starts.iter().filter(|it| text.get(**it).is_some_and(|it| fits(*it)));
        next.map(|it| it + 1).collect()
    };
    match hir.kind() {
        HirKind::Empty => starts.clone(),
        HirKind::Look(look) => {
            let place = if *look == Look::Start { 0 } else { text.len() };
            starts.iter().copied().filter(|it| *it == place).collect()
        }
        HirKind::Literal(bytes) => {
            let literal: Vec<char> = String::from_utf8_lossy(&bytes.0).chars().collect();
            let fits = |it: &&usize| text[**it..].starts_with(&literal);
            starts.iter().filter(fits).map(|it| it + literal.len()).collect()
        }
        HirKind::Class(Class::Unicode(unicode)) => step(&|letter| {
            unicode.ranges().iter().any(|range| (range.start()..=range.end()).contains(&letter))
        }),
        HirKind::Class(Class::Bytes(_)) => BTreeSet::new(),
        HirKind::Capture(it) => ends(&it.sub, text, starts),
        HirKind::Concat(all) => {
            all.iter().fold(starts.clone(), |starts, it| ends(it, text, &starts))
        }
        HirKind::Alternation(all) => all.iter().flat_map(|it| ends(it, text, starts)).collect(),
        HirKind::Repetition(repetition) => {
            let (mut done, mut now) = (BTreeSet::new(), starts.clone());
            for count in 0.. {
                if count >= repetition.min {
                    done.extend(&now);
                }
                if repetition.max == Some(count) {
                    break;
                }
                now = ends(&repetition.sub, text, &now);
                if now.is_empty() || (count >= repetition.min && now.is_subset(&done)) {
                    break;
                }
            }
            done
        }
    }
}

/// Appends a candidate for the pattern's example to `out`. Each repetition is written `more` times
/// beyond its minimum, but not beyond its maximum. Each alternation takes the alternative with the
/// index `branch`, modulo the number of alternatives. Returns false if no candidate can be made.
fn make(hir: &Hir, more: usize, branch: usize, out: &mut String) -> bool {
    if out.len() > EXAMPLE_MAX {
        return false;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            out.push_str(&String::from_utf8_lossy(&literal.0));
            true
        }
        HirKind::Class(Class::Unicode(unicode)) => {
            let ranges = unicode.ranges().iter().map(|it| (it.start(), it.end()));
            let picked = pick(&ranges.collect::<Vec<_>>());
            out.extend(picked);
            picked.is_some()
        }
        HirKind::Class(Class::Bytes(_)) => false,
        HirKind::Capture(it) => make(&it.sub, more, branch, out),
        HirKind::Concat(all) => all.iter().all(|it| make(it, more, branch, out)),
        HirKind::Alternation(all) => make(&all[branch % all.len()], more, branch, out),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map_or(usize::MAX, |it| it as usize);
            let times = (repetition.min as usize).saturating_add(more).min(most);
            (0..times).all(|_| make(&repetition.sub, more, branch, out))
        }
    }
}

/// Returns the character of these ranges that suits an example best. Letters and digits come first.
/// Returns `None` if no suitable character is found.
fn pick(ranges: &[(char, char)]) -> Option<char> {
    let has = |it: &char| ranges.iter().any(|(first, last)| (first..=last).contains(&it));
    let liked = ('a'..='z').chain('1'..='9').chain('A'..='Z').chain("0-_. ".chars());
    liked.chain('!'..='~').chain("\t\n".chars()).find(has).or_else(|| {
        let first = ranges.iter().find(|(_, last)| *last >= '\u{A0}')?;
        Some(first.0.max('\u{A0}')).filter(|it| !matches!(it, '\u{FFFE}' | '\u{FFFF}'))
    })
}
