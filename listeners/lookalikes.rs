//! Words in a text that only look like themselves. A model may read a word although it has letters
//! of another script, wide or raised ones, accents, or characters that can't be seen.

use pumphouse::hidden_characters::is_hidden;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Letters that look like a digit or a letter of a thread's mark, in lower case.
const LOOKALIKES: [(char, &str); 10] = [
    ('0', "oοоօ"),
    ('1', "liıіιӏ"),
    ('3', "зʒӡ"),
    ('6', "б"),
    ('a', "аɑαᴀ"),
    ('b', "ьвβʙƅ"),
    ('c', "сϲᴄↄ"),
    ('d', "ԁᴅժ"),
    ('e', "еєεᴇҽ"),
    ('f', "ƒꜰғϝք"),
];

/// The end of a word that a text begins with, if a reader may read this word there. Characters that
/// can't be seen, and those that `may_stand_between` names, are passed over. Up to a third of the
/// word may be any letters outside ASCII.
pub(super) fn end_of(text: &str, word: &str, may_stand_between: fn(char) -> bool) -> Option<usize> {
    let mut wanted = word.chars().peekable();
    let mut unknown_max = word.chars().count() / 3;
    for (at, it) in text.char_indices() {
        if wanted.peek().is_none() {
            return Some(at);
        }
        if is_hidden(it) || may_stand_between(it) {
            continue;
        }
        for part in plain(it).filter(|it| !may_stand_between(*it)) {
            let Some(next) = wanted.next() else { break };
            if may_be(part, next) {
                continue;
            }
            if part.is_ascii() || !part.is_alphanumeric() || unknown_max == 0 {
                return None;
            }
            unknown_max -= 1;
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

/// A character as the plain characters that it stands for: without accents, circles and the like.
pub(super) fn plain(it: char) -> impl Iterator<Item = char> {
    // Letters in filled circles and squares, and those of which flags are made.
    let letter = match it {
        '\u{1f150}'..='\u{1f169}' => Some((it, '\u{1f150}')),
        '\u{1f170}'..='\u{1f189}' => Some((it, '\u{1f170}')),
        '\u{1f1e6}'..='\u{1f1ff}' => Some((it, '\u{1f1e6}')),
        _ => None,
    };
    let letter = letter.and_then(|(it, a)| char::from_u32(u32::from('a') + it as u32 - a as u32));
    std::iter::once(letter.unwrap_or(it)).nfkd().filter(|it| !is_combining_mark(*it))
}

/// Whether a reader may take a character for another one, which is of ASCII.
fn may_be(it: char, wanted: char) -> bool {
    let lower = it.to_lowercase().next().unwrap_or(it);
    let looks = |(letter, all): &(char, &str)| *letter == wanted && all.contains(lower);
    it.eq_ignore_ascii_case(&wanted)
        || wanted.is_ascii_digit() && it.is_numeric() && !it.is_ascii()
        || wanted == '-' && matches!(it, '\u{2010}'..='\u{2015}' | '\u{2212}')
        || LOOKALIKES.iter().any(looks)
}
