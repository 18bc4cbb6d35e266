//! Evaluates an expression that [`super::parse`] has compiled, with a stack of numbers. The
//! evaluation doesn't recurse, so no expression can overflow the call stack.

use super::Problem;
use super::function::{Operation, Trouble};
use super::number::Number;
use super::parse::Step;

pub(super) fn run(program: &[Step]) -> Result<Number, Problem> {
    let mut stack = Vec::new();
    for step in program {
        match step {
            Step::Push(number) => stack.push(*number),
            Step::Apply { operation, arguments, column } => {
                let from = stack.len().saturating_sub(*arguments);
                let number = apply(*operation, &stack[from..]).map_err(|it| at(*column, &it))?;
                stack.truncate(from);
                stack.push(number);
            }
        }
    }
    match stack[..] {
        [number] => Ok(number),
        _ => unreachable!("a program leaves one number"),
    }
}

fn apply(operation: Operation, arguments: &[Number]) -> Result<Number, Trouble> {
    let number = match (operation, arguments) {
        (Operation::One(of), &[a]) => of(a),
        (Operation::Two(of), &[a, b]) => of(a, b),
        (Operation::Many(of), all) => of(all),
        _ => unreachable!("the parser counts the arguments"),
    }?;
    if number.is_finite() { Ok(number) } else { Err(Trouble::Overflow) }
}

fn at(column: u32, trouble: &Trouble) -> Problem {
    match trouble {
        Trouble::DivisionByZero => Problem::DivisionByZero { column },
        Trouble::Overflow => Problem::Overflow { column },
        Trouble::Outside { found, expected } => {
            Problem::Nonsense { column, found: found.to_string(), expected: (*expected).to_owned() }
        }
    }
}
