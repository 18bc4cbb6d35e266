//! Tests of the values of expressions, and of the columns of problems.

use proptest::prelude::*;
use pumphouse::wire::Json;
use serde_json::{Value, json};

use super::{Problem, evaluate, parse, values};

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(evaluate(expression).as_deref(), Ok(*expected), "{expression}");
    }
}

#[track_caller]
fn check_problems(cases: &[(&str, Problem)]) {
    for (expression, expected) in cases {
        assert_eq!(evaluate(expression).as_ref(), Err(expected), "{expression}");
    }
}

fn nonsense(column: u32, found: &str, expected: &str) -> Problem {
    Problem::Nonsense { column, found: found.to_owned(), expected: expected.to_owned() }
}

const OPERAND: &str = "a number, a name, a sign or `(`";
const OPERATOR: &str = "an operator or the end";

#[test]
fn operators_bind_as_in_school() {
    check(&[
        ("6*7", "42"),
        ("1+2*3", "7"),
        ("(1+2)*3", "9"),
        ("2*3^2", "18"),
        ("10-4-3", "3"),
        ("100/10/5", "2"),
        ("7%4*2", "6"),
        ("2^3^2", "512"),
        ("2**3**2", "512"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^-1", "0.5"),
        ("2^-2^2", "0.0625"),
        ("--5", "5"),
        ("-+-5", "5"),
        ("3--2", "5"),
        ("3*-2", "-6"),
        (" \n 1 +\t1 ", "2"),
        ("6×7÷2−1", "20"),
        ("((((1))))", "1"),
    ]);
}

#[test]
fn fractions_are_exact() {
    check(&[
        ("0.1+0.2", "0.3"),
        ("1/3*3", "1"),
        ("1/3+1/6", "0.5"),
        ("1/8", "0.125"),
        ("-1/8", "-0.125"),
        ("5.", "5"),
        (".5", "0.5"),
        ("1.50", "1.5"),
        ("4.2e-3", "0.0042"),
        ("1E3", "1000"),
        ("007", "7"),
        ("7 % 3", "1"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("7.5 % 2", "1.5"),
        ("0^0", "1"),
        ("1.1^2", "1.21"),
        ("(2/3)^-2", "2.25"),
        ("2^100", "1267650600228229401496703205376"),
        ("2^126", "85070591730234615865843651857942052864"),
        ("-170141183460469231731687303715884105727", "-170141183460469231731687303715884105727"),
        ("1e-30", "0.000000000000000000000000000001"),
        ("1^170141183460469231731687303715884105727", "1"),
        ("(-1)^99999999999999999999", "-1"),
        ("-0", "0"),
    ]);
}

#[test]
fn what_is_not_exact_is_rounded() {
    check(&[
        ("1/3", "0.3333333333333333"),
        ("2/3", "0.6666666666666666"),
        ("2^0.5", "1.4142135623730951"),
        ("2^200", "1.6069380442589903e60"),
        ("1e300", "1e300"),
        ("1e-300", "1e-300"),
        ("1e-400", "0"),
        ("(1/3)^1000", "0"),
        ("170141183460469231731687303715884105727+1", "1.7014118346046923e38"),
        ("pi", "3.141592653589793"),
        ("π-PI", "0"),
        ("e", "2.718281828459045"),
        ("2*e", "5.43656365691809"),
        ("-sin(0)", "0"),
    ]);
}

#[test]
fn functions_do_what_they_are_called() {
    check(&[
        ("abs(-3)", "3"),
        ("abs(3/4)", "0.75"),
        ("sign(-2)+sign(0)+sign(3)*10", "9"),
        ("sqrt(16)", "4"),
        ("sqrt(2)", "1.4142135623730951"),
        ("sqrt(10^30)", "1000000000000000"),
        ("Sqrt(0)", "0"),
        ("cbrt(-27)", "-3"),
        ("floor(-1.5)", "-2"),
        ("ceil(-1.5)", "-1"),
        ("ceil(1.2)", "2"),
        ("trunc(-1.5)", "-1"),
        ("floor(pi)", "3"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.4)", "2"),
        ("round(3.14159, 2)", "3.14"),
        ("round(pi, 2)", "3.14"),
        ("round(1234, -2)", "1200"),
        ("min(3, 1, 2)", "1"),
        ("max(1/3, 0.3)*3", "1"),
        ("max(7)", "7"),
        ("pow(2, 10)", "1024"),
        ("ln(e)", "1"),
        ("ln(1)", "0"),
        ("log(1000)", "3"),
        ("log10(0.001)", "-3"),
        ("log2(8)", "3"),
        ("log(125, 5)", "3"),
        ("log(9, 1/3)", "-2"),
        ("log(2)", "0.3010299956639812"),
        ("exp(0)", "1"),
        ("sin(0)+cos(0)+tan(0)", "1"),
        ("asin(1)*2-pi", "0"),
        ("acos(1)", "0"),
        ("atan(1)*4-pi", "0"),
        ("atan2(1, 1)*4-pi", "0"),
        ("max(min(1, 2), abs(-(1 + 2)))", "3"),
    ]);
}

#[test]
fn division_by_zero_points_at_its_operator() {
    check_problems(&[
        ("1/0", Problem::DivisionByZero { column: 2 }),
        ("1 + 2 / (3 - 3)", Problem::DivisionByZero { column: 7 }),
        ("6×7 % 0", Problem::DivisionByZero { column: 5 }),
        ("0^-1", Problem::DivisionByZero { column: 2 }),
        ("1/sin(0)", Problem::DivisionByZero { column: 2 }),
        ("1/-sin(0)", Problem::DivisionByZero { column: 2 }),
        ("pow(0, -2)", Problem::DivisionByZero { column: 1 }),
    ]);
}

#[test]
fn overflow_points_at_what_overflows() {
    check_problems(&[
        ("1e400", Problem::Overflow { column: 1 }),
        ("1 + 10^400", Problem::Overflow { column: 7 }),
        ("1e300 * 1e300", Problem::Overflow { column: 7 }),
        ("exp(1000)", Problem::Overflow { column: 1 }),
        ("9^9^9^9", Problem::Overflow { column: 4 }),
    ]);
}

#[test]
fn nonsense_says_what_was_expected() {
    check_problems(&[
        ("", nonsense(1, "the end", OPERAND)),
        ("  ", nonsense(3, "the end", OPERAND)),
        ("6*", nonsense(3, "the end", OPERAND)),
        ("*6", nonsense(1, "`*`", OPERAND)),
        ("2 * * 3", nonsense(5, "`*`", OPERAND)),
        (".", nonsense(1, "`.`", OPERAND)),
        ("1 2", nonsense(3, "`2`", OPERATOR)),
        ("1.2.3", nonsense(4, "`.`", OPERATOR)),
        ("2pi", nonsense(2, "`pi`", OPERATOR)),
        ("2e", nonsense(2, "`e`", OPERATOR)),
        ("1)", nonsense(2, "`)`", OPERATOR)),
        ("1,000", nonsense(2, "`,`", OPERATOR)),
        ("ü+é", nonsense(1, "`ü`", &format!("one of {}", super::function::names()))),
        ("6×7 = ?", nonsense(5, "`=`", OPERATOR)),
        ("(1", nonsense(3, "the end", "an operator or `)`")),
        ("(1]", nonsense(3, "`]`", "an operator or `)`")),
        ("()", nonsense(2, "`)`", OPERAND)),
        ("sqrt 2", nonsense(6, "`2`", "`(` after sqrt")),
        ("sqrt()", nonsense(6, "`)`", OPERAND)),
        ("sqrt(1, 2)", nonsense(7, "`,`", "`)`: sqrt takes one number")),
        ("log(1, 2, 3)", nonsense(9, "`,`", "`)`: log takes one number or two")),
        ("pow(2)", nonsense(6, "`)`", "`,`: pow takes 2 numbers")),
        ("max(1 2)", nonsense(7, "`2`", "an operator, `,` or `)`")),
        ("1 \u{0}", nonsense(3, "`\\u{0}`", OPERATOR)),
        ("1 / 0 +", nonsense(8, "the end", OPERAND)),
    ]);
}

#[test]
fn a_function_says_what_it_takes() {
    check_problems(&[
        ("1 + sqrt(-1)", nonsense(5, "-1", "a number that is not below zero")),
        ("ln(0)", nonsense(1, "0", "a number above zero")),
        ("log(8, 1)", nonsense(1, "1", "a base other than 1")),
        ("asin(2)", nonsense(1, "2", "a number from -1 to 1")),
        ("round(1, 0.5)", nonsense(1, "0.5", "whole digits, from -30 to 30")),
        (
            "(-8)^(1/3)",
            nonsense(5, "0.3333333333333333", "a whole exponent, or a base that is not below zero"),
        ),
    ]);
}

#[test]
fn an_expression_has_its_limits() {
    let nested = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(evaluate(&nested(64)).as_deref(), Ok("1"));
    let deep = nonsense(66, "`1`", "at most 64 levels of nesting");
    assert_eq!(evaluate(&nested(65)), Err(deep));
    let deep = nonsense(66, "`(`", "at most 64 levels of nesting");
    assert_eq!(evaluate(&nested(2_000)), Err(deep));
    assert_eq!(evaluate(&nested(100_000)), Err(nonsense(1, "200001 bytes", "at most 4096 bytes")));
    let long = |signs: usize| format!("{}1", "-".repeat(signs));
    assert_eq!(evaluate(&long(4_095)).as_deref(), Ok("-1"));
    assert!(evaluate(&long(4_096)).is_err());
    assert_eq!(evaluate(&format!("1{}", "+1".repeat(2_047))).as_deref(), Ok("2048"));
    assert!(evaluate(&format!("2{}", "^2".repeat(65))).is_err());
}

/// Pieces of expressions. Random sequences of these pieces are often almost valid.
const PIECES: [&str; 34] = [
    "0",
    "1",
    "-2",
    "3.5",
    "1e9",
    "1e-9",
    "9e37",
    "170141183460469231731687303715884105727",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "**",
    "(",
    ")",
    ",",
    " ",
    "pi",
    "e",
    "min(",
    "max(",
    "pow(",
    "log(",
    "sqrt(",
    "round(",
    "floor(",
    "tan(",
    "atan2(",
    ".",
    "÷",
    "é",
    "\u{0}",
];

#[test]
fn every_operator_takes_every_pair() {
    for (left, operator, right) in PIECES[..8].iter().flat_map(|left| {
        let operators = PIECES[8..15].iter();
        operators.flat_map(move |it| PIECES[..8].iter().map(move |right| (left, it, right)))
    }) {
        let text = format!("({left}){operator}({right})");
        check_total(&text).unwrap_or_else(|it| panic!("{text}: {it}"));
    }
}

/// Checks the value of an expression with named values.
#[track_caller]
fn check_with(expression: &str, values: &Value, expected: Result<&str, (&str, &str, &str)>) {
    let Value::Object(values) = values else { panic!("no object") };
    let values = values.iter().map(|(name, it)| (name.clone(), Json(it.clone()))).collect();
    let read = values::read(&values);
    let found = read.and_then(|it| evaluate::run(&parse::parse(expression, &it)?));
    let expected = expected.map(str::to_owned).map_err(|(name, found, expected)| Problem::Value {
        name: name.to_owned(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    });
    assert_eq!(found.map(|it| it.to_string()), expected, "{expression}");
}

#[test]
fn an_expression_uses_named_values() {
    check_with("a + 2*b_2", &json!({"a": 40, "b_2": 1}), Ok("42"));
    check_with("a - b", &json!({"a": "42", "b": " -0.1 "}), Ok("42.1"));
    check_with("-n^2 + _m", &json!({"n": -3, "_m": 1.5e3}), Ok("1491"));
    check_with("big + 1", &json!({"big": "9007199254740993"}), Ok("9007199254740994"));
    check_with("größe * 2", &json!({"größe": 21, "unused": 7}), Ok("42"));
}

#[test]
fn a_wrong_named_value_is_told() {
    let number = "a number";
    check_with("a", &json!({"a": "Rome"}), Err(("a", "`Rome`", number)));
    check_with("a", &json!({"a": "1+1"}), Err(("a", "`1+1`", number)));
    check_with("a", &json!({"a": null}), Err(("a", "`null`", number)));
    check_with("a", &json!({"a": ""}), Err(("a", "``", number)));
    check_with("a", &json!({"a": [1]}), Err(("a", "`[1]`", number)));
    let name = "a name of letters, digits and _";
    check_with("1", &json!({"a b": 1}), Err(("a b", "the name `a b`", name)));
    let own = "a name that isn't a function's or a constant's";
    check_with("1", &json!({"Pi": 1}), Err(("Pi", "the name `Pi`", own)));
    let problem =
        parse::parse("a + c", &values::read(&[("a".into(), Json(json!(1)))].into()).unwrap());
    let Err(Problem::Nonsense { column: 5, found, expected }) = problem else { panic!() };
    assert_eq!(found, "`c`");
    assert!(expected.starts_with("one of a, abs, "), "{expected}");
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in any::<String>()) {
        check_total(&text)?;
    }

    #[test]
    fn no_expression_is_too_strange(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
        check_total(&pieces.iter().map(|it| PIECES[*it]).collect::<String>())?;
    }

    #[test]
    fn integers_agree_with_the_machine(a in any::<i32>(), b in any::<i32>(), c in 1..i32::MAX) {
        let (x, y, z) = (i128::from(a), i128::from(b), i128::from(c));
        let expected = (x * y - x) % z + y;
        let text = format!("({a} * {b} - {a}) % {c} + {b}");
        prop_assert_eq!(evaluate(&text), Ok(expected.to_string()));
    }

    #[test]
    fn a_value_reads_as_itself(a in any::<i32>(), b in 1..10_000_i32) {
        let value = evaluate(&format!("{a}/{b}"));
        prop_assert_eq!(evaluate(value.as_deref().unwrap_or_default()), value);
    }
}

/// Checks that an expression gives a number that can be read again, or a problem whose column is
/// within the text.
fn check_total(text: &str) -> Result<(), TestCaseError> {
    let columns = u32::try_from(text.chars().count()).unwrap_or(u32::MAX) + 1;
    match evaluate(text) {
        Ok(value) => prop_assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{}", value),
        Err(
            Problem::DivisionByZero { column }
            | Problem::Overflow { column }
            | Problem::Nonsense { column, .. },
        ) => prop_assert!((1..=columns).contains(&column), "{} of {}", column, columns),
        Err(it @ Problem::Value { .. }) => prop_assert!(false, "{:?}", it),
    }
    Ok(())
}
