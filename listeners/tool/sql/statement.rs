//! Runs one statement, in the process that reads the database, and returns its rows or the reason
//! of the failure.

use std::path::Path;
use std::time::Duration;

use pumphouse::clock::now_us;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::text::clean;
use super::SqlLimits;

/// The maximum time that a statement waits while another program locks the file.
const BUSY: Duration = Duration::from_secs(5);
/// The number of instructions of SQLite's virtual machine between two checks of the time limit.
const STEPS: i32 = 1_000;
/// The pragmas that a statement may use. Each of them describes the schema.
const PRAGMAS: [&str; 7] = [
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// An order to run a statement.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) query: String,
    /// A value for each `?` in the statement, none of them an array or an object.
    pub(super) parameters: Vec<Value>,
    pub(super) limits: SqlLimits,
}

/// The rows of a statement, or the reason of its failure.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Answer {
    Rows { stopped_by: Option<String>, column: Vec<String>, row: Vec<Value> },
    Refused { why: Why, limit: Option<String>, text: String },
}

/// Why there are no rows.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) enum Why {
    Statement,
    NotAllowed,
    Parameters,
    Timeout,
    TooLarge,
    /// This process can't open the file, or one that belongs to it.
    NotOpened,
    /// This process can't write a file that belongs to the database.
    ReadOnly,
    Failed,
}

/// Runs a statement on the database at `path`.
pub(super) fn answer(path: &Path, order: Order) -> Answer {
    let limits = order.limits;
    let found = || {
        let mut connection = open(path)?;
        bind(&mut connection, &limits)?;
        rows(&connection, &order.query, order.parameters, &limits)
    };
    found().unwrap_or_else(|error: rusqlite::Error| failed(&error, &limits))
}

/// Opens a database, to read it alone.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Says that a statement took too long.
pub(super) fn out_of_time(limits: &SqlLimits) -> String {
    format!("the statement was ended; the limit seconds_max is {}", limits.seconds_max)
}

/// Applies the limits to a connection: the actions that a statement may take, the size of its
/// values, and the time at which it is interrupted.
fn bind(connection: &mut Connection, limits: &SqlLimits) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limits.value_bytes_max)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.authorizer(Some(may))?;
    connection.busy_timeout(BUSY.min(Duration::from_secs(limits.seconds_max)))?;
    let end = now_us().saturating_add(limits.seconds_max.saturating_mul(1_000_000));
    connection.progress_handler(STEPS, Some(move || now_us() >= end))
}

/// Decides whether a statement may take the action about which SQLite asks. A statement may only
/// read and compute.
fn may(asked: AuthContext<'_>) -> Authorization {
    let is_allowed = match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !["load_extension", "fts3_tokenizer"]
            .iter()
            .any(|it| it.eq_ignore_ascii_case(function_name)),
        AuthAction::Pragma { pragma_name, .. } => {
            PRAGMAS.iter().any(|it| it.eq_ignore_ascii_case(pragma_name))
        }
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Bool(it) => Cell::Integer(it.into()),
        Value::Number(it) => match (it.as_i64(), it.as_f64()) {
            (Some(it), _) => Cell::Integer(it),
            (None, it) => it.map_or(Cell::Null, Cell::Real),
        },
        Value::String(it) => Cell::Text(it),
        Value::Null | Value::Array(_) | Value::Object(_) => Cell::Null,
    }
}

fn rows(
    connection: &Connection,
    query: &str,
    parameters: Vec<Value>,
    limits: &SqlLimits,
) -> rusqlite::Result<Answer> {
    let mut statement = connection.prepare(query)?;
    let column: Vec<String> = statement.column_names().map(clean).collect();
    let most = limits.shown_bytes_max;
    let mut bytes = column.iter().map(String::len).sum::<usize>();
    if bytes > most {
        let text = format!("the columns' names are too large; the limit is {most} bytes");
        return Ok(too_large(text, "shown_bytes_max"));
    }
    let mut found = statement.query(params_from_iter(parameters.into_iter().map(cell)))?;
    let (mut all, mut stopped_by) = (Vec::new(), None);
    while let Some(row) = found.next()? {
        let mut cells = Vec::new();
        for at in 0..column.len() {
            cells.push(shown_cell(row.get_ref(at)?, most));
        }
        let row = Value::Array(cells);
        bytes += row.to_string().len();
        let stop = match () {
            () if all.len() >= limits.rows_max => "rows_max",
            () if bytes > most => "shown_bytes_max",
            () => {
                all.push(row);
                continue;
            }
        };
        if all.is_empty() {
            let text = format!("one row is too large; the limit is {most} bytes: ask for substr()");
            return Ok(too_large(text, stop));
        }
        stopped_by = Some(stop.to_owned());
        break;
    }
    Ok(Answer::Rows { stopped_by, column, row: all })
}

/// Converts a value to JSON. Of a text, only the first `most + 1` bytes are copied, which is enough
/// to see that the text is too large.
fn shown_cell(cell: ValueRef<'_>, most: usize) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(it) => it.into(),
        ValueRef::Real(number) => serde_json::Number::from_f64(number)
            .map_or_else(|| number.to_string().into(), Value::Number),
        ValueRef::Text(it) => clean(&String::from_utf8_lossy(&it[..it.len().min(most + 1)])).into(),
        ValueRef::Blob(it) => format!("(a blob of {} bytes)", it.len()).into(),
    }
}

fn refused(why: Why, text: impl Into<String>) -> Answer {
    Answer::Refused { why, limit: None, text: text.into() }
}

fn too_large(text: String, limit: &str) -> Answer {
    Answer::Refused { why: Why::TooLarge, limit: Some(limit.to_owned()), text }
}

/// Makes the refusal for an error of SQLite.
fn failed(error: &rusqlite::Error, limits: &SqlLimits) -> Answer {
    let text = clean(&error.to_string());
    match error {
        rusqlite::Error::SqliteFailure(it, _) if it.code == ErrorCode::CannotOpen => {
            // SQLite's own message contains the file's whole path.
            refused(Why::NotOpened, "the database can't be opened")
        }
        rusqlite::Error::InvalidParameterCount(given, wanted) => {
            let text = format!("there are {given} parameters, and {wanted} are wanted");
            refused(Why::Parameters, text)
        }
        rusqlite::Error::MultipleStatement => refused(Why::Statement, "give one statement"),
        _ => match error.sqlite_error_code() {
            Some(ErrorCode::AuthorizationForStatementDenied) => {
                let text = format!("{text}; a statement reads here, and does no more");
                refused(Why::NotAllowed, text)
            }
            Some(ErrorCode::ReadOnly) => refused(Why::ReadOnly, text),
            Some(ErrorCode::OperationInterrupted) => Answer::Refused {
                why: Why::Timeout,
                limit: Some("seconds_max".to_owned()),
                text: out_of_time(limits),
            },
            Some(ErrorCode::TooBig) => too_large(text, "value_bytes_max"),
            Some(ErrorCode::Unknown) | None => refused(Why::Statement, text),
            Some(_) => refused(Why::Failed, text),
        },
    }
}
