//! The tokens of a condition's text.

use serde_json::{Number, Value};

use super::WrongCondition;
use super::expression::Operator;

/// A token with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    And,
    Or,
    Not,
    In,
    Compare(Operator),
    Literal(Value),
    /// A reference as it is written, without `${` and `}`.
    Reference(String),
    Open,
    Close,
    OpenList,
    CloseList,
    Comma,
}

/// Splits a text into its tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, WrongCondition> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            at += blank;
            continue;
        }
        let (kind, length) = token(rest, at)?;
        found.push(Token { at, kind });
        at += length;
    }
    Ok(found)
}

/// Reads the token that a text begins with. Returns it with its length in bytes.
fn token(rest: &str, at: usize) -> Result<(TokenKind, usize), WrongCondition> {
    const SIGNS: [(&str, TokenKind); 11] = [
        ("==", TokenKind::Compare(Operator::Equal)),
        ("!=", TokenKind::Compare(Operator::Unequal)),
        ("<=", TokenKind::Compare(Operator::LessOrEqual)),
        (">=", TokenKind::Compare(Operator::GreaterOrEqual)),
        ("<", TokenKind::Compare(Operator::Less)),
        (">", TokenKind::Compare(Operator::Greater)),
        ("(", TokenKind::Open),
        (")", TokenKind::Close),
        ("[", TokenKind::OpenList),
        ("]", TokenKind::CloseList),
        (",", TokenKind::Comma),
    ];
    let sign = SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign));
    if let Some((sign, kind)) = sign {
        return Ok((kind, sign.len()));
    }
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => quoted(rest, quote, at),
        Some('-' | '0'..='9') => number(rest, at),
        Some('$') => braced(rest, at),
        Some(it) if begins_name(it) => Ok(word(rest)),
        Some('&') => Err(WrongCondition::new(at, "`&&` is written `and`")),
        Some('|') => Err(WrongCondition::new(at, "`||` is written `or`")),
        Some('!') => Err(WrongCondition::new(at, "`!` is written `not`")),
        Some('=') => Err(WrongCondition::new(at, "`=` is written `==`")),
        it => {
            let sign = it.unwrap_or_default().escape_debug().to_string();
            Err(WrongCondition::new(at, format!("a condition has no `{sign}`")))
        }
    }
}

/// Whether a name may begin with this character.
pub(super) fn begins_name(it: char) -> bool {
    it.is_alphabetic() || it == '_'
}

/// Whether a name may have this character after its first one.
pub(super) fn continues_name(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '_' | '-')
}

/// Reads a keyword, or a reference without braces. Returns the token and its length in bytes.
fn word(rest: &str) -> (TokenKind, usize) {
    let mut end = name_end(rest, 0);
    loop {
        let after = rest.get(end..).unwrap_or_default();
        let step = if let Some(field) = after.strip_prefix('.') {
            1 + name_end(field, 0)
        } else if let Some(item) = after.strip_prefix('[') {
            let digits = item.len() - item.trim_start_matches(|it: char| it.is_ascii_digit()).len();
            if digits > 0 && item[digits..].starts_with(']') { digits + 2 } else { 0 }
        } else {
            0
        };
        // A dot without a name after it isn't part of the reference.
        if step <= 1 {
            break;
        }
        end += step;
    }
    let word = &rest[..end];
    let kind = match word {
        "and" => TokenKind::And,
        "or" => TokenKind::Or,
        "not" => TokenKind::Not,
        "in" => TokenKind::In,
        "true" => TokenKind::Literal(Value::Bool(true)),
        "false" => TokenKind::Literal(Value::Bool(false)),
        "null" => TokenKind::Literal(Value::Null),
        _ => TokenKind::Reference(word.to_owned()),
    };
    (kind, end)
}

/// The end of the name or number that begins at `from`.
fn name_end(text: &str, from: usize) -> usize {
    let name = text.get(from..).unwrap_or_default();
    from + name.find(|it: char| !continues_name(it)).unwrap_or(name.len())
}

/// Reads a reference in braces, such as `${steps.fetch.title}`.
fn braced(rest: &str, at: usize) -> Result<(TokenKind, usize), WrongCondition> {
    let wrong = || WrongCondition::new(at, "a reference is written as in `${steps.fetch.title}`");
    let inner = rest.strip_prefix("${").ok_or_else(wrong)?;
    let end = inner.find('}').ok_or_else(wrong)?;
    Ok((TokenKind::Reference(inner[..end].trim().to_owned()), end + "${}".len()))
}

/// Reads a number in the syntax of JSON. A whole number of more than 64 bits is refused, since its
/// last digits would be lost.
fn number(rest: &str, at: usize) -> Result<(TokenKind, usize), WrongCondition> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '+' | '.');
    let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
    let wrong = || WrongCondition::new(at, format!("`{}` is no number", &rest[..end]));
    let number: Number = rest[..end].parse().map_err(|_| wrong())?;
    let is_whole = !rest[..end].contains(['.', 'e', 'E']);
    if is_whole && !number.is_i64() && !number.is_u64() {
        let text =
            format!("`{}` has more than 64 bits; compare it as a text, in quotes", &rest[..end]);
        return Err(WrongCondition::new(at, text));
    }
    Ok((TokenKind::Literal(Value::Number(number)), end))
}

/// Reads a text in quotes. A backslash escapes a quote or a backslash; `\n` and `\t` are a newline
/// and a tab.
fn quoted(rest: &str, quote: char, at: usize) -> Result<(TokenKind, usize), WrongCondition> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((place, it)) = characters.next() {
        match it {
            it if it == quote => {
                return Ok((TokenKind::Literal(Value::String(text)), place + 1));
            }
            '\\' => match characters.next() {
                Some((_, it @ ('\\' | '"' | '\''))) => text.push(it),
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                it => {
                    let sign = it.map(|(_, it)| it.to_string()).unwrap_or_default();
                    let message = format!(
                        "`\\{sign}` is no escape: a text may have \\\\, \\\", \\', \\n and \\t"
                    );
                    return Err(WrongCondition::new(at + place, message));
                }
            },
            it => text.push(it),
        }
    }
    Err(WrongCondition::new(at, format!("the text has no closing {quote}")))
}
