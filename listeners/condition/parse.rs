//! Reads a condition's text.
//!
//! ```text
//! condition  = part { "or" part }
//! part       = negation { "and" negation }
//! negation   = "not" negation | comparison
//! comparison = operand [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in" ) operand ]
//! operand    = literal | reference | "(" condition ")" | "[" [ operand { "," operand } ] "]"
//! ```

use super::expression::{Comparison, Expression, Operator, PathStep, Reference};
use super::token::{Token, TokenKind, begins_name, continues_name, tokens};
use super::{CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX, WrongCondition};

/// Reads a whole condition.
pub(super) fn expression(text: &str) -> Result<Expression, WrongCondition> {
    if text.len() > CONDITION_BYTES_MAX {
        let message = format!(
            "{} bytes are too many: condition_bytes_max is {CONDITION_BYTES_MAX}",
            text.len()
        );
        return Err(WrongCondition::new(0, message));
    }
    let mut reader = Reader { tokens: tokens(text)?, next: 0, end: text.len(), depth: 0 };
    let root = reader.any()?;
    match reader.peek() {
        None => Ok(root),
        Some(_) => Err(reader.unexpected("`and`, `or` or the end")),
    }
}

/// Reads a reference, such as `steps.fetch.items[0]`. `at` is the reference's place in the
/// condition's text.
pub(super) fn reference(written: &str, at: usize) -> Result<Reference, WrongCondition> {
    let wrong = || {
        let message = format!("`{written}` is no reference; one is `steps.fetch.items[0]`");
        WrongCondition::new(at, message)
    };
    let end = written.find(['.', '[']).unwrap_or(written.len());
    let (name, mut rest) = written.split_at(end);
    if !name.starts_with(begins_name) || !name.chars().all(continues_name) {
        return Err(wrong());
    }
    let mut path = Vec::new();
    while !rest.is_empty() {
        if let Some(item) = rest.strip_prefix('[') {
            let (number, after) = item.split_once(']').ok_or_else(wrong)?;
            // `parse` alone would also accept a sign.
            if !number.bytes().all(|it| it.is_ascii_digit()) {
                return Err(wrong());
            }
            path.push(PathStep::Item(number.parse().map_err(|_| wrong())?));
            rest = after;
        } else {
            let field = rest.strip_prefix('.').ok_or_else(wrong)?;
            let end = field.find(['.', '[']).unwrap_or(field.len());
            let (field, after) = field.split_at(end);
            if field.is_empty() || !field.chars().all(continues_name) {
                return Err(wrong());
            }
            path.push(match field.parse() {
                Ok(number) => PathStep::Item(number),
                Err(_) => PathStep::Field(field.to_owned()),
            });
            rest = after;
        }
    }
    Ok(Reference { name: name.to_owned(), path, at })
}

/// A parser over the tokens of a text.
struct Reader {
    tokens: Vec<Token>,
    next: usize,
    /// The length of the text.
    end: usize,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.next).map(|it| &it.kind)
    }

    /// The place of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |it| it.at)
    }

    /// Consumes the next token if it is of this kind. Returns whether it is.
    fn take(&mut self, kind: &TokenKind) -> bool {
        let is_next = self.peek() == Some(kind);
        self.next += usize::from(is_next);
        is_next
    }

    fn unexpected(&self, expected: &str) -> WrongCondition {
        let found = if self.peek().is_some() { "" } else { ", and the condition ends" };
        WrongCondition::new(self.at(), format!("here {expected} is expected{found}"))
    }

    /// Reads a nested part of an expression, one level deeper. Fails if the nesting is too deep.
    fn within<T>(
        &mut self,
        read: impl FnOnce(&mut Reader) -> Result<T, WrongCondition>,
    ) -> Result<T, WrongCondition> {
        if self.depth == CONDITION_DEPTH_MAX {
            return Err(too_deep(self.at()));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn any(&mut self) -> Result<Expression, WrongCondition> {
        let mut parts = vec![self.all()?];
        while self.take(&TokenKind::Or) {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, WrongCondition> {
        let mut parts = vec![self.negation()?];
        while self.take(&TokenKind::And) {
            parts.push(self.negation()?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn negation(&mut self) -> Result<Expression, WrongCondition> {
        if !self.take(&TokenKind::Not) {
            return self.comparison();
        }
        let part = self.within(Reader::negation)?;
        Ok(Expression::Not(Box::new(part)))
    }

    fn comparison(&mut self) -> Result<Expression, WrongCondition> {
        let left = self.operand()?;
        let at = self.at();
        let operator = match self.peek() {
            Some(TokenKind::Compare(operator)) => *operator,
            Some(TokenKind::In) => Operator::In,
            Some(TokenKind::Not) => Operator::NotIn,
            _ => return Ok(left),
        };
        self.next += 1;
        if operator == Operator::NotIn && !self.take(&TokenKind::In) {
            return Err(self.unexpected("`in`"));
        }
        let right = self.operand()?;
        Ok(Expression::Compare(Box::new(Comparison { left, operator, right, at })))
    }

    fn operand(&mut self) -> Result<Expression, WrongCondition> {
        let at = self.at();
        let expected = "a value, a reference or `(`";
        let Some(kind) = self.peek().cloned() else { return Err(self.unexpected(expected)) };
        match kind {
            TokenKind::Literal(value) => {
                self.next += 1;
                Ok(Expression::Literal(value))
            }
            TokenKind::Reference(written) => {
                self.next += 1;
                reference(&written, at).map(Expression::Reference)
            }
            TokenKind::Open => {
                self.next += 1;
                let inner = self.within(Reader::any)?;
                match self.take(&TokenKind::Close) {
                    true => Ok(inner),
                    false => Err(self.unexpected("`)`")),
                }
            }
            TokenKind::OpenList => {
                self.next += 1;
                self.within(Reader::list)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Reads the items of a list, up to its closing bracket.
    fn list(&mut self) -> Result<Expression, WrongCondition> {
        let mut items = Vec::new();
        while !self.take(&TokenKind::CloseList) {
            if !items.is_empty() && !self.take(&TokenKind::Comma) {
                return Err(self.unexpected("`,` or `]`"));
            }
            items.push(self.operand()?);
        }
        Ok(Expression::List(items))
    }
}

/// Returns the only part, or combines several parts by `together`.
pub(super) fn one_or(
    mut parts: Vec<Expression>,
    together: impl FnOnce(Vec<Expression>) -> Expression,
) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => together(parts),
    }
}

/// The error of a condition that nests too deeply.
pub(super) fn too_deep(at: usize) -> WrongCondition {
    let message = format!("this nests too deeply: condition_depth_max is {CONDITION_DEPTH_MAX}");
    WrongCondition::new(at, message)
}
