//! The listener `sql`: answers SQL queries to a SQLite file, and never changes the file.
//!
//! ```yaml
//! listeners:
//!   - {use: sql, settings: {file: shop.db}}
//! ```
//!
//! For each query, the file is opened again, read-only. An authorizer allows a statement to read
//! tables, to call functions other than `load_extension` and `fts3_tokenizer`, and to use the
//! pragmas that describe the schema. Everything else is refused: for example, a statement can't
//! attach another file or load an extension.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pumphouse::clock::now_us;
use pumphouse::listener::{Beside, Effects};
use pumphouse::prelude::*;
use pumphouse::wire::Json;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};
use serde::Deserialize;
use serde_json::Value;

use super::text::clean;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "sql";
/// The maximum time that the listener waits while another program locks the file.
const BUSY: Duration = Duration::from_secs(5);
/// The time that the pump waits for the handler once `seconds_max` has passed.
const GRACE: Duration = Duration::from_secs(10);
/// The number of instructions of SQLite's virtual machine between two checks of the time limit and
/// of the call's cancellation.
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

/// Queries the database with one read-only statement of SQLite's SQL. The tables and their columns:
/// SELECT sql FROM sqlite_schema.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/sql/v1")]
pub struct Sql {
    /// The statement.
    #[payload(example = "SELECT name FROM items WHERE price < ?")]
    pub query: String,
    /// A JSON array with a value for each `?` in the statement.
    #[payload(example = "[10]")]
    pub parameters: Option<Json>,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/sql/v1")]
pub struct Rows {
    /// The limit that cut off the rows, if there are more.
    #[payload(attribute, note, no_example)]
    pub stopped_by: Option<String>,
    /// The names of the columns, in order.
    #[payload(note, example = "name")]
    pub column: Vec<String>,
    /// Each row, as a JSON array of its values.
    #[payload(value, example = "[\"tea\"]")]
    pub row: Vec<Json>,
}

/// The query was refused, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/sql/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The limit that was exceeded, if any.
    #[payload(attribute, no_example)]
    pub limit: Option<String>,
    /// Why, and how to correct it.
    #[payload(value, example = "no such table: item")]
    pub text: String,
}

/// Why there are no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// The statement is invalid, or names something that doesn't exist.
    Statement,
    /// The statement does more than read.
    NotAllowed,
    /// The parameters aren't an array, or don't match.
    Parameters,
    /// It took too long.
    Timeout,
    /// A limit is exceeded.
    TooLarge,
    /// The file can't be read.
    Failed,
}

/// The limits of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SqlLimits {
    /// The maximum time of a statement, in seconds.
    pub seconds_max: u64,
    /// The maximum number of bytes of a statement.
    pub query_bytes_max: usize,
    /// The maximum number of rows that are shown.
    pub rows_max: usize,
    /// The maximum number of bytes of the shown rows and column names together.
    pub shown_bytes_max: usize,
    /// The maximum number of bytes of one value, even if the value is only computed and not shown.
    pub value_bytes_max: i32,
}

impl Default for SqlLimits {
    fn default() -> SqlLimits {
        SqlLimits {
            seconds_max: 10,
            query_bytes_max: 16 * 1024,
            rows_max: 500,
            shown_bytes_max: 64 * 1024,
            value_bytes_max: 4 * 1024 * 1024,
        }
    }
}

/// The `settings` of `use: sql` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The database's file, which must exist.
    pub file: Beside,
    /// The limits of one query.
    #[serde(default)]
    pub limits: SqlLimits,
}

struct Database {
    path: PathBuf,
    limits: SqlLimits,
}

/// Makes the listener `sql`.
///
/// # Errors
/// If the file doesn't exist, can't be opened, or is no SQLite database.
pub fn sql(settings: &Settings) -> Result<Listener, String> {
    let path = settings.file.path();
    let wrong = |why: String| format!("{}: {why}", path.display());
    if !path.is_file() {
        return Err(wrong("there is no such file".to_owned()));
    }
    let opened =
        open(&path).and_then(|it| it.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(())));
    match opened {
        Ok(()) | Err(rusqlite::Error::QueryReturnedNoRows) => {}
        Err(error) => return Err(wrong(error.to_string())),
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let database = Database { path, limits: settings.limits };
    let timeout = Duration::from_secs(settings.limits.seconds_max).saturating_add(GRACE);
    Ok(Listener::with_state(NAME, Arc::new(database))
        .own_namespace()
        .blocking()
        .on(ask)
        .timeout(timeout)
        .effects(Effects::Reads)
        .describe(format!("Reads the database {name} by SQL."))
        .idempotent()
        .stateless())
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

async fn ask(State(it): State<Arc<Database>>, cancel: Cancel, asked: Sql) -> Result<Rows, Refused> {
    let limits = &it.limits;
    if asked.query.len() > limits.query_bytes_max {
        let most = limits.query_bytes_max;
        return Err(too_large(
            format!("the statement is too large; the limit is {most} bytes"),
            "query_bytes_max",
        ));
    }
    let parameters = parameters(asked.parameters)?;
    let mut connection = open(&it.path).map_err(|error| failed(&error, limits))?;
    bind(&mut connection, limits, cancel).map_err(|error| failed(&error, limits))?;
    rows(&connection, &asked.query, parameters, limits)
}

/// Applies the limits to a connection: the actions that a statement may take, the size of its
/// values, and the time at which it is interrupted.
fn bind(connection: &mut Connection, limits: &SqlLimits, cancel: Cancel) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limits.value_bytes_max)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.authorizer(Some(may))?;
    let end = now_us().saturating_add(limits.seconds_max.saturating_mul(1_000_000));
    connection.progress_handler(STEPS, Some(move || now_us() >= end || cancel.is_cancelled()))
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

fn parameters(given: Option<Json>) -> Result<Vec<Cell>, Refused> {
    let wrong = |text: &str| refused(Reason::Parameters, text);
    let all = match given {
        None => return Ok(Vec::new()),
        Some(Json(Value::Array(all))) => all,
        Some(_) => return Err(wrong("`parameters` are an array, as in [10, \"tea\"]")),
    };
    let cell = |it: Value| match it {
        Value::Null => Ok(Cell::Null),
        Value::Bool(it) => Ok(Cell::Integer(it.into())),
        Value::Number(it) => match (it.as_i64(), it.as_f64()) {
            (Some(it), _) => Ok(Cell::Integer(it)),
            (None, Some(it)) => Ok(Cell::Real(it)),
            (None, None) => Err(wrong("a number is too large")),
        },
        Value::String(it) => Ok(Cell::Text(it)),
        Value::Array(_) | Value::Object(_) => Err(wrong("a parameter is a text, a number or null")),
    };
    all.into_iter().map(cell).collect()
}

fn rows(
    connection: &Connection,
    query: &str,
    parameters: Vec<Cell>,
    limits: &SqlLimits,
) -> Result<Rows, Refused> {
    let fail = |error: rusqlite::Error| failed(&error, limits);
    let mut statement = connection.prepare(query).map_err(fail)?;
    let column: Vec<String> = statement.column_names().map(clean).collect();
    let mut bytes = column.iter().map(String::len).sum::<usize>();
    let mut found = statement.query(params_from_iter(parameters)).map_err(fail)?;
    let mut shown = Rows { stopped_by: None, column, row: Vec::new() };
    while let Some(row) = found.next().map_err(fail)? {
        let mut cells = Vec::new();
        for at in 0..shown.column.len() {
            let cell = row.get_ref(at).map_err(fail)?;
            cells.push(shown_cell(cell, limits.shown_bytes_max));
        }
        let row = Value::Array(cells);
        bytes += row.to_string().len();
        let stop = match () {
            () if shown.row.len() >= limits.rows_max => "rows_max",
            () if bytes > limits.shown_bytes_max => "shown_bytes_max",
            () => {
                shown.row.push(Json(row));
                continue;
            }
        };
        if shown.row.is_empty() {
            let most = limits.shown_bytes_max;
            let text = format!("one row is too large; the limit is {most} bytes: ask for substr()");
            return Err(too_large(text, stop));
        }
        shown.stopped_by = Some(stop.to_owned());
        break;
    }
    Ok(shown)
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

fn refused(reason: Reason, text: impl Into<String>) -> Refused {
    Refused { reason, limit: None, text: text.into() }
}

fn too_large(text: String, limit: &str) -> Refused {
    Refused { limit: Some(limit.to_owned()), ..refused(Reason::TooLarge, text) }
}

/// Makes the refusal for an error of SQLite.
fn failed(error: &rusqlite::Error, limits: &SqlLimits) -> Refused {
    let text = clean(&error.to_string());
    match error {
        rusqlite::Error::SqliteFailure(it, _) if it.code == ErrorCode::CannotOpen => {
            // SQLite's own message contains the file's whole path.
            refused(Reason::Failed, "the database can't be opened")
        }
        rusqlite::Error::InvalidParameterCount(given, wanted) => {
            let text = format!("there are {given} parameters, and {wanted} are wanted");
            refused(Reason::Parameters, text)
        }
        rusqlite::Error::MultipleStatement => refused(Reason::Statement, "give one statement"),
        _ => match error.sqlite_error_code() {
            Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
                let text = format!("{text}; a statement reads here, and does no more");
                refused(Reason::NotAllowed, text)
            }
            Some(ErrorCode::OperationInterrupted) => {
                let most = limits.seconds_max;
                let text = format!("the statement was ended; the limit seconds_max is {most}");
                let refused = refused(Reason::Timeout, text);
                Refused { limit: Some("seconds_max".to_owned()), ..refused }
            }
            Some(ErrorCode::TooBig) => too_large(text, "value_bytes_max"),
            Some(ErrorCode::Unknown) | None => refused(Reason::Statement, text),
            Some(_) => refused(Reason::Failed, text),
        },
    }
}
