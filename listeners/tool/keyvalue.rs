//! The listener `keyvalue`: stores values by key in a file. A value may have a time to live.
//!
//! ```yaml
//! listeners:
//!   - {use: keyvalue, name: redis_cache, settings: {file: cache.db}}
//! ```
//!
//! The file is a SQLite database. A value is on the disk before `set` is answered.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse::listener::{Effects, ManifestPath};
use pumphouse::prelude::*;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior,
    params,
};
use serde::Deserialize;

use super::database_files;
use super::listener_files::ListenerFiles;
use super::text::clean;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "keyvalue";
/// The maximum time that the listener waits while another program locks the file.
const BUSY: Duration = Duration::from_secs(5);
/// The SQLite `application_id` that marks a file of this listener.
const APPLICATION: i32 = 0x7075_6b76;

/// Stores values by key: sets, gets or deletes one, or lists the keys.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/keyvalue/v1")]
pub struct Keyvalue {
    /// The operation.
    pub operation: Operation,
    /// The key; for `list`, a prefix of the keys.
    #[payload(example = "result_123")]
    pub key: Option<String>,
    /// The value to `set`.
    #[payload(example = "42")]
    pub value: Option<String>,
    /// For how many seconds `set` keeps the value; by default forever.
    #[payload(min = 1, example = "3600")]
    pub ttl: Option<u64>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Operation {
    /// Returns a value.
    Get,
    /// Stores a value, in place of an earlier one.
    Set,
    /// Deletes a value.
    Delete,
    /// Lists the keys.
    List,
}

/// The operation is done.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/keyvalue/v1")]
pub struct Kept {
    /// Whether the key was there before; for `list`, whether any key was found.
    #[payload(attribute)]
    pub found: bool,
    /// Seconds until the value expires, if it does.
    #[payload(attribute, note)]
    pub ttl: Option<u64>,
    /// Whether there are more keys than are shown.
    #[payload(attribute, note)]
    pub more: Option<bool>,
    /// The value that `get` found.
    #[payload(value, example = "42")]
    pub value: Option<String>,
    /// What `set` or `delete` did, in words; for `list`, a line for each key.
    #[payload(value, no_example)]
    pub text: Option<String>,
    /// The keys that `list` found, in order.
    pub key: Vec<String>,
}

/// The operation failed: nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/keyvalue/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The limit that was exceeded, if any.
    #[payload(attribute, no_example)]
    pub limit: Option<String>,
    /// Why, and how to correct it.
    #[payload(value, example = "`set` wants a `value`")]
    pub text: String,
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// A key, value or time is missing or invalid.
    BadRequest,
    /// A limit is exceeded.
    TooLarge,
    /// There are too many keys.
    Full,
    /// The file can't be used: the disk is full, or another program holds it.
    Failed,
}

/// The limits of the stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KeyvalueLimits {
    /// The maximum number of bytes of a key.
    pub key_bytes_max: usize,
    /// The maximum number of bytes of a value.
    pub value_bytes_max: usize,
    /// The maximum number of keys at a time.
    pub keys_max: u32,
    /// The maximum time to live of a value, in seconds. A value without a time to live isn't
    /// limited.
    pub ttl_seconds_max: u64,
    /// The maximum number of keys that one `list` shows.
    pub listed_max: u32,
}

impl Default for KeyvalueLimits {
    fn default() -> KeyvalueLimits {
        KeyvalueLimits {
            key_bytes_max: 512,
            value_bytes_max: 256 * 1024,
            keys_max: 10_000,
            ttl_seconds_max: 10 * 366 * 24 * 3600,
            listed_max: 500,
        }
    }
}

/// The `settings` of `use: keyvalue` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The file with the values. The file is created if it doesn't exist.
    pub file: ManifestPath,
    /// The limits of the stored values.
    #[serde(default)]
    pub limits: KeyvalueLimits,
}

struct Store {
    path: PathBuf,
    /// The connection to the file. The connection is opened at the first request, so that checking
    /// a manifest creates no file.
    connection: Mutex<Option<Connection>>,
    limits: KeyvalueLimits,
}

/// Makes the listener `keyvalue`.
///
/// # Errors
/// If the file can't be opened or belongs to another program, or if its folder doesn't exist.
pub fn keyvalue(settings: &Settings) -> Result<Listener, String> {
    let path = settings.file.path();
    check(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let files = ListenerFiles::own(path.clone());
    let store = Store { path, connection: Mutex::new(None), limits: settings.limits };
    Ok(Listener::with_state(NAME, Arc::new(store))
        .own_namespace()
        .blocking()
        .extension(files)
        .on(keep)
        .effects(Effects::Writes)
        .describe("Keeps values by their keys, for as long as each is to last.")
        .stateless())
}

/// If the file exists, checks that it is a database without tables or a database of this listener.
/// If there is no file, checks that its folder exists.
fn check(path: &Path) -> Result<(), String> {
    database_files::check(path)?;
    if path.exists() {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let there = Connection::open_with_flags(path, flags);
        return there.and_then(|it| is_own(&it)).map_err(|error| error.to_string()).and_then(own);
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => Ok(()),
        false => Err("there is no such folder; make it first".to_owned()),
    }
}

fn own(is_own: bool) -> Result<(), String> {
    match is_own {
        true => Ok(()),
        false => Err("it is another program's; give this listener a file of its own".to_owned()),
    }
}

/// Returns whether a database has no tables, or has this listener's `application_id`.
fn is_own(connection: &Connection) -> rusqlite::Result<bool> {
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |it| it.get(0))?;
    let kind = connection.pragma_query_value(None, "application_id", |it| it.get::<_, i32>(0))?;
    Ok(tables == 0 || kind == APPLICATION)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    database_files::check(path).map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    make(path);
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    if !is_own(&connection)? {
        return Err(rusqlite::Error::InvalidPath(path.to_owned()));
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value TEXT NOT NULL, \
         ends_us INTEGER) STRICT, WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS kept_ends ON kept (ends_us) WHERE ends_us IS NOT NULL",
    )?;
    Ok(connection)
}

/// Makes the file, for its owner alone. SQLite gives its other files the same mode. An error shows
/// when the file is opened.
fn make(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

async fn keep(
    State(store): State<Arc<Store>>,
    clock: Clock,
    request: Keyvalue,
) -> Result<Kept, Refused> {
    store.check(&request)?;
    let now = i64::try_from(clock.now_us()).unwrap_or(i64::MAX);
    let key = request.key.unwrap_or_default();
    let done = store.write(now, |open| match request.operation {
        Operation::Get => get(open, &key, now),
        Operation::Set => {
            let value = request.value.as_deref().unwrap_or_default();
            set(open, &key, value, request.ttl, now, store.limits.keys_max)
        }
        Operation::Delete => {
            let gone = open.execute("DELETE FROM kept WHERE key = ?", [&key])?;
            let text = if gone > 0 { "deleted" } else { "there was no such key" };
            Ok(Some(Kept { text: Some(text.to_owned()), ..nothing(gone > 0) }))
        }
        Operation::List => list(open, &key, store.limits.listed_max),
    });
    let most = store.limits.keys_max;
    match done {
        Ok(Some(it)) => Ok(it),
        Ok(None) => Err(Refused {
            reason: Reason::Full,
            limit: Some("keys_max".to_owned()),
            text: format!("there are as many keys as there may be; the limit keys_max is {most}"),
        }),
        Err(error) => {
            // SQLite's own message about a file that it can't open contains the file's whole path.
            let text = match (&error, error.sqlite_error_code()) {
                (rusqlite::Error::InvalidPath(_), _) => "the file is another program's".to_owned(),
                (_, Some(ErrorCode::CannotOpen)) => "the file can't be opened".to_owned(),
                _ => clean(&error.to_string()),
            };
            Err(Refused { reason: Reason::Failed, limit: None, text })
        }
    }
}

impl Store {
    fn check(&self, request: &Keyvalue) -> Result<(), Refused> {
        let bad = |text: &str| {
            Err(Refused { reason: Reason::BadRequest, limit: None, text: text.to_owned() })
        };
        let large = |what: &str, limit: &str, most: u64| {
            let text = format!("the {what} is too large; the limit {limit} is {most}");
            Err(Refused { reason: Reason::TooLarge, limit: Some(limit.to_owned()), text })
        };
        let limits = &self.limits;
        let is_set = matches!(request.operation, Operation::Set);
        match &request.key {
            None if !matches!(request.operation, Operation::List) => {
                return bad("a `key` is missing");
            }
            Some(key) if key.len() > limits.key_bytes_max => {
                return large("key", "key_bytes_max", limits.key_bytes_max as u64);
            }
            _ => {}
        }
        match &request.value {
            None if is_set => return bad("`set` wants a `value`"),
            Some(_) if !is_set => return bad("a `value` is for `set` alone"),
            Some(value) if value.len() > limits.value_bytes_max => {
                return large("value", "value_bytes_max", limits.value_bytes_max as u64);
            }
            _ => {}
        }
        match request.ttl {
            Some(_) if !is_set => bad("a `ttl` is for `set` alone"),
            Some(0) => bad("a `ttl` is a second at the least"),
            Some(ttl) if ttl > limits.ttl_seconds_max => {
                large("ttl", "ttl_seconds_max", limits.ttl_seconds_max)
            }
            _ => Ok(()),
        }
    }

    /// Deletes the expired values, then runs `work`, both in one transaction. If `work` fails,
    /// nothing changes.
    fn write<T>(
        &self,
        now: i64,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Option<T>>,
    ) -> rusqlite::Result<Option<T>> {
        // A poisoned mutex is usable: the transaction of the call that panicked was rolled back.
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &mut *held {
            Some(it) => it,
            none => none.insert(open(&self.path)?),
        };
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        begun.execute("DELETE FROM kept WHERE ends_us <= ?", [now])?;
        let done = work(&begun)?;
        begun.commit()?;
        Ok(done)
    }
}

fn get(open: &Transaction<'_>, key: &str, now: i64) -> rusqlite::Result<Option<Kept>> {
    let row = "SELECT value, ends_us FROM kept WHERE key = ?";
    let found = open.query_row(row, [key], |it| Ok((it.get(0)?, it.get::<_, Option<i64>>(1)?)));
    Ok(Some(match found.optional()? {
        None => nothing(false),
        Some((value, ends)) => {
            let left = ends.map(|it| u64::try_from(it.saturating_sub(now)).unwrap_or(0));
            // A remaining fraction of a second counts as a whole second.
            let ttl = left.map(|it| it.div_ceil(1_000_000));
            Kept { value: Some(value), ttl, ..nothing(true) }
        }
    }))
}

/// Stores a value. Returns `None` if the key is new and there are already `most` keys.
fn set(
    open: &Transaction<'_>,
    key: &str,
    value: &str,
    ttl: Option<u64>,
    now: i64,
    most: u32,
) -> rusqlite::Result<Option<Kept>> {
    let there = "SELECT count(*) FROM kept WHERE key = ?";
    let found = open.query_row(there, [key], |it| it.get::<_, i64>(0))? > 0;
    let all: i64 = open.query_row("SELECT count(*) FROM kept", [], |it| it.get(0))?;
    if !found && all >= i64::from(most) {
        return Ok(None);
    }
    let lasts = ttl.map(|it| i64::try_from(it.saturating_mul(1_000_000)).unwrap_or(i64::MAX));
    let ends = lasts.map(|it| now.saturating_add(it));
    let text = "INSERT OR REPLACE INTO kept (key, value, ends_us) VALUES (?, ?, ?)";
    open.execute(text, params![key, value, ends])?;
    let text = if found { "set, in place of another value" } else { "set" };
    Ok(Some(Kept { ttl, text: Some(text.to_owned()), ..nothing(found) }))
}

fn list(open: &Transaction<'_>, start: &str, most: u32) -> rusqlite::Result<Option<Kept>> {
    let text = "SELECT key FROM kept WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 \
                ORDER BY key LIMIT ?2";
    let mut rows = open.prepare(text)?;
    let keys = rows.query_map(params![start, most.saturating_add(1)], |it| it.get(0))?;
    let mut key = keys.collect::<rusqlite::Result<Vec<String>>>()?;
    let more = key.len() as u64 > u64::from(most);
    key.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let text = match &key[..] {
        [] => "There are no keys.\n".to_owned(),
        keys => keys.iter().map(|it| format!("{it}\n")).collect(),
    };
    let (more, found) = (Some(more), !key.is_empty());
    Ok(Some(Kept { more, text: Some(text), key, ..nothing(found) }))
}

fn nothing(found: bool) -> Kept {
    Kept { found, ttl: None, more: None, value: None, text: None, key: Vec::new() }
}
