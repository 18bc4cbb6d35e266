//! Compiles an expression into a list of steps for a stack of numbers, in the order of evaluation.

use super::Problem;
use super::function::{self, Function, Operation};
use super::number::{Number, number_length};
use super::values::Values;

/// The maximum number of bytes of an expression. Expressions are usually much shorter.
const EXPRESSION_BYTES_MAX: usize = 4_096;
/// The maximum nesting depth of parentheses, calls and exponents. The parser recurses, so each
/// level takes a few frames of the call stack.
const NESTING_MAX: u32 = 64;
/// The maximum number of characters of an unexpected word that an error repeats.
const WORD_CHARACTERS_MAX: usize = 32;

/// A step of a compiled expression. Steps work on a stack of numbers.
#[derive(Debug)]
pub(super) enum Step {
    /// Puts a number on the stack.
    Push(Number),
    /// Replaces the topmost numbers by the operation's result.
    Apply { operation: Operation, arguments: usize, column: u32 },
}

pub(super) fn parse(text: &str, values: &Values) -> Result<Vec<Step>, Problem> {
    let mut parser = Parser { rest: text, column: 1, nesting: 0, steps: Vec::new(), values };
    if text.len() > EXPRESSION_BYTES_MAX {
        let found = format!("{} bytes", text.len());
        return Err(nonsense(1, found, format!("at most {EXPRESSION_BYTES_MAX} bytes")));
    }
    parser.sum()?;
    match parser.peek() {
        None => Ok(parser.steps),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    column: u32,
    nesting: u32,
    steps: Vec<Step>,
    values: &'a Values,
}

impl Parser<'_> {
    /// Parses `product (± product)*`.
    fn sum(&mut self) -> Result<(), Problem> {
        self.product()?;
        loop {
            let column = self.place();
            let operation = match self.peek() {
                Some('+') => function::ADD,
                Some('-' | '−') => function::SUBTRACT,
                _ => return Ok(()),
            };
            self.take(1);
            self.product()?;
            self.apply(operation, 2, column);
        }
    }

    /// Parses `signed (×÷% signed)*`.
    fn product(&mut self) -> Result<(), Problem> {
        self.signed()?;
        loop {
            let column = self.place();
            let operation = match self.peek() {
                Some('*' | '×') => function::MULTIPLY,
                Some('/' | '÷') => function::DIVIDE,
                Some('%') => function::REMAIN,
                _ => return Ok(()),
            };
            self.take(1);
            self.signed()?;
            self.apply(operation, 2, column);
        }
    }

    /// Parses `±* power`. A sign applies to the whole power to its right.
    fn signed(&mut self) -> Result<(), Problem> {
        let mut signs = Vec::new();
        while let Some(sign @ ('+' | '-' | '−')) = self.peek() {
            if sign != '+' {
                signs.push(self.column);
            }
            self.take(1);
        }
        self.power()?;
        for column in signs.into_iter().rev() {
            self.apply(function::NEGATE, 1, column);
        }
        Ok(())
    }

    /// Parses `atom (^ signed)?`. For example, `2^3^2` is `2^(3^2)`.
    fn power(&mut self) -> Result<(), Problem> {
        self.nest()?;
        self.atom()?;
        let column = self.place();
        let length = match self.rest {
            rest if rest.starts_with("**") => 2,
            rest if rest.starts_with('^') => 1,
            _ => 0,
        };
        if length > 0 {
            self.take(length);
            self.signed()?;
            self.apply(function::POWER, 2, column);
        }
        self.nesting -= 1;
        Ok(())
    }

    /// Parses a number, a constant, a call, or a sum in parentheses.
    fn atom(&mut self) -> Result<(), Problem> {
        match self.peek() {
            Some('(') => {
                self.take(1);
                self.sum()?;
                self.close("an operator or `)`")
            }
            Some(it) if it.is_ascii_digit() || it == '.' => self.number(),
            Some(it) if it.is_alphabetic() || it == '_' => self.name(),
            _ => Err(self.unexpected("a number, a name, a sign or `(`")),
        }
    }

    fn number(&mut self) -> Result<(), Problem> {
        let (column, length) = (self.column, number_length(self.rest));
        let text = &self.rest[..length];
        if text == "." {
            return Err(self.unexpected("a number, a name, a sign or `(`"));
        }
        let number = Number::read(text).ok_or(Problem::Overflow { column })?;
        self.take(length);
        self.steps.push(Step::Push(number));
        Ok(())
    }

    fn name(&mut self) -> Result<(), Problem> {
        let column = self.column;
        let name = word(self.rest);
        if let Some(number) = self.values.get(name).copied().or_else(|| function::constant(name)) {
            self.take(name.chars().count());
            self.steps.push(Step::Push(number));
            return Ok(());
        }
        let Some(function) = function::find(name) else {
            let mut names: Vec<&str> = self.values.keys().map(String::as_str).collect();
            let functions = function::names();
            names.push(&functions);
            return Err(self.unexpected(&format!("one of {}", names.join(", "))));
        };
        self.take(name.chars().count());
        if self.peek() != Some('(') {
            return Err(self.unexpected(&format!("`(` after {}", function.name)));
        }
        self.take(1);
        let arguments = self.arguments(function)?;
        self.apply(function.operation, arguments, column);
        Ok(())
    }

    /// Parses `sum (, sum)* )`, with as many sums as the function takes.
    fn arguments(&mut self, function: &Function) -> Result<usize, Problem> {
        let mut count = 0;
        loop {
            self.sum()?;
            count += 1;
            match self.peek() {
                Some(',') if count == function.most => {
                    return Err(self.unexpected(&format!("`)`: {}", function.takes())));
                }
                Some(',') => self.take(1),
                _ if count >= function.least => break,
                _ => return Err(self.unexpected(&format!("`,`: {}", function.takes()))),
            }
        }
        let more =
            if count < function.most { "an operator, `,` or `)`" } else { "an operator or `)`" };
        self.close(more)?;
        Ok(count)
    }

    fn close(&mut self, expected: &str) -> Result<(), Problem> {
        if self.peek() != Some(')') {
            return Err(self.unexpected(expected));
        }
        self.take(1);
        Ok(())
    }

    fn nest(&mut self) -> Result<(), Problem> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX + 1 {
            return Err(self.unexpected(&format!("at most {NESTING_MAX} levels of nesting")));
        }
        Ok(())
    }

    fn apply(&mut self, operation: Operation, arguments: usize, column: u32) {
        self.steps.push(Step::Apply { operation, arguments, column });
    }

    /// Skips spaces and returns the next character without taking it.
    fn peek(&mut self) -> Option<char> {
        let spaces = self.rest.chars().take_while(|it| it.is_whitespace()).count();
        self.take(spaces);
        self.rest.chars().next()
    }

    /// Skips spaces and returns the column of the next character.
    fn place(&mut self) -> u32 {
        self.peek();
        self.column
    }

    /// Takes this many characters.
    fn take(&mut self, characters: usize) {
        let mut rest = self.rest.chars();
        for _ in rest.by_ref().take(characters) {
            self.column += 1;
        }
        self.rest = rest.as_str();
    }

    /// Makes a problem that names the next character or word, and what is `expected` instead.
    fn unexpected(&mut self, expected: &str) -> Problem {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(it) if it.is_alphabetic() || it == '_' => {
                format!(
                    "`{}`",
                    word(self.rest).chars().take(WORD_CHARACTERS_MAX).collect::<String>()
                )
            }
            Some(letter) if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                format!("`{}`", letter.escape_unicode())
            }
            Some(it) => format!("`{it}`"),
        };
        nonsense(self.column, found, expected.to_owned())
    }
}

fn nonsense(column: u32, found: String, expected: String) -> Problem {
    Problem::Nonsense { column, found, expected }
}

/// Returns the word with which `text` begins.
fn word(text: &str) -> &str {
    let end = text.find(|it: char| !(it.is_alphanumeric() || it == '_')).unwrap_or(text.len());
    &text[..end]
}
