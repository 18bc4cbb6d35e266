//! The listener `sql`: answers SQL queries to a SQLite file, and never changes the file.
//!
//! ```yaml
//! listeners:
//!   - {use: sql, settings: {file: shop.db}}
//! ```
//!
//! Each query runs in a process of its own, so that it can be ended at any time: a
//! single call of a function of SQL may take minutes, and SQLite looks at a time limit only between
//! calls. For each query, the file is opened again, read-only. An authorizer allows a statement to
//! read tables, to call functions other than `load_extension` and `fts3_tokenizer`, and to use the
//! pragmas that describe the schema. Everything else is refused: for example, a statement can't
//! attach another file or load an extension.

mod statement;
pub(super) mod process;

use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::ManifestPath;
use pumphouse::prelude::*;
use pumphouse::wire::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::process::{Failure, Processes};
use self::statement::{Answer, Order, Why};
use super::database_files;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "sql";
/// The time that the pump waits for the handler once `seconds_max` has passed.
const GRACE: Duration = Duration::from_secs(10);

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
    pub file: ManifestPath,
    /// The limits of one query.
    #[serde(default)]
    pub limits: SqlLimits,
}

struct Database {
    processes: Processes,
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
    database_files::check(&path).map_err(wrong)?;
    let opened = statement::open(&path)
        .and_then(|it| it.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(())));
    match opened {
        Ok(()) | Err(rusqlite::Error::QueryReturnedNoRows) => {}
        Err(error) => return Err(wrong(error.to_string())),
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let processes = Processes::new(&path, settings.limits).map_err(wrong)?;
    let database = Arc::new(Database { processes, limits: settings.limits });
    let ending = database.clone();
    let timeout = Duration::from_secs(settings.limits.seconds_max).saturating_add(GRACE);
    Ok(Listener::with_state(NAME, database)
        .own_namespace()
        .on(ask)
        .at_stop(move || {
            ending.processes.end();
            async {}
        })
        .timeout(timeout)
        .reader()
        .describe(format!("Reads the database {name} by SQL."))
        .stateless())
}

async fn ask(State(it): State<Arc<Database>>, asked: Sql) -> Result<Rows, Refused> {
    let limits = it.limits;
    if asked.query.len() > limits.query_bytes_max {
        let most = limits.query_bytes_max;
        return Err(too_large(
            format!("the statement is too large; the limit is {most} bytes"),
            "query_bytes_max",
        ));
    }
    let parameters = parameters(asked.parameters)?;
    let order = Order { query: asked.query, parameters, limits };
    match it.processes.ask(&order).await {
        Ok(Answer::Rows { stopped_by, column, row }) => {
            Ok(Rows { stopped_by, column, row: row.into_iter().map(Json).collect() })
        }
        Ok(Answer::Refused { why, limit, text }) => {
            Err(Refused { reason: why.into(), limit, text })
        }
        Err(Failure::OutOfTime) => Err(out_of_time(limits)),
        Err(Failure::Ended(text)) => Err(refused(Reason::Failed, text)),
    }
}

impl From<Why> for Reason {
    fn from(why: Why) -> Reason {
        match why {
            Why::Statement => Reason::Statement,
            Why::NotAllowed | Why::ReadOnly => Reason::NotAllowed,
            Why::Parameters => Reason::Parameters,
            Why::Timeout => Reason::Timeout,
            Why::TooLarge => Reason::TooLarge,
            Why::NotOpened | Why::Failed => Reason::Failed,
        }
    }
}

/// Checks the parameters of a statement. Returns their values.
fn parameters(given: Option<Json>) -> Result<Vec<Value>, Refused> {
    let wrong = |text: &str| Err(refused(Reason::Parameters, text));
    let all = match given {
        None => return Ok(Vec::new()),
        Some(Json(Value::Array(all))) => all,
        Some(_) => return wrong("`parameters` are an array, as in [10, \"tea\"]"),
    };
    match all.iter().any(|it| it.is_array() || it.is_object()) {
        true => wrong("a parameter is a text, a number or null"),
        false => Ok(all),
    }
}

fn refused(reason: Reason, text: impl Into<String>) -> Refused {
    Refused { reason, limit: None, text: text.into() }
}

fn too_large(text: String, limit: &str) -> Refused {
    Refused { limit: Some(limit.to_owned()), ..refused(Reason::TooLarge, text) }
}

fn out_of_time(limits: SqlLimits) -> Refused {
    let refused = refused(Reason::Timeout, statement::out_of_time(&limits));
    Refused { limit: Some("seconds_max".to_owned()), ..refused }
}
