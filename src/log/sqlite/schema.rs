//! The tables of a log, the triggers that protect them, and the check that a file has them.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension};
use uuid::Uuid;

use crate::log::chain;
use crate::log::chain::CommitRow;
use crate::log::entry::Flags;
use crate::log::error::Error;
use crate::log::identity::Identity;

/// SQLite's application id in the file's header: `PUMP` in ASCII.
const APPLICATION_ID: i64 = 0x5055_4d50;

/// The tables and indexes. SQLite 3.40 is enough to read them, so that other people's tools can
/// read the file.
const TABLES: &str = r#"
CREATE TABLE log (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  format INTEGER NOT NULL,
  uuid BLOB NOT NULL,
  key BLOB NOT NULL,
  created INTEGER NOT NULL
) STRICT;
CREATE TABLE names (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  local TEXT NOT NULL,
  UNIQUE (namespace, local)
) STRICT;
CREATE TABLE threads (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  parent INTEGER,
  fork_thread INTEGER,
  fork_seq INTEGER
) STRICT;
CREATE TABLE entries (
  position INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  time INTEGER NOT NULL,
  "from" TEXT NOT NULL,
  "to" TEXT,
  name INTEGER NOT NULL,
  cause_thread INTEGER,
  cause_seq INTEGER,
  reply_thread INTEGER,
  reply_seq INTEGER,
  flags INTEGER NOT NULL,
  receivers INTEGER NOT NULL,
  client_id TEXT,
  key_id INTEGER,
  digest BLOB NOT NULL,
  meta BLOB,
  body BLOB NOT NULL,
  UNIQUE (thread, seq)
) STRICT;
CREATE UNIQUE INDEX entries_client_id ON entries ("from", client_id)
  WHERE client_id IS NOT NULL AND flags & 1;
CREATE INDEX entries_states ON entries (thread, seq) WHERE flags & 8128;
CREATE INDEX threads_parent ON threads (parent) WHERE parent IS NOT NULL;
CREATE TABLE commits (
  number INTEGER PRIMARY KEY,
  writer BLOB NOT NULL,
  last_position INTEGER NOT NULL,
  last_thread INTEGER NOT NULL,
  chain BLOB NOT NULL,
  marks BLOB NOT NULL
) STRICT;
CREATE TABLE shares (
  entry INTEGER NOT NULL,
  at INTEGER NOT NULL,
  source INTEGER NOT NULL,
  start INTEGER NOT NULL,
  length INTEGER NOT NULL,
  PRIMARY KEY (entry, at)
) STRICT, WITHOUT ROWID;
"#;

/// For each table, a condition that finds rows that REPLACE would delete. REPLACE fires no DELETE
/// trigger, so an INSERT trigger with this condition refuses the statement.
const TAKEN: [(&str, &str); 6] = [
    ("log", "EXISTS (SELECT 1 FROM log)"),
    (
        "names",
        "EXISTS (SELECT 1 FROM names WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM names WHERE namespace = NEW.namespace AND local = NEW.local)",
    ),
    (
        "threads",
        "EXISTS (SELECT 1 FROM threads WHERE number = NEW.number)
    OR EXISTS (SELECT 1 FROM threads WHERE id = NEW.id)",
    ),
    (
        "entries",
        "EXISTS (SELECT 1 FROM entries WHERE position = NEW.position)
    OR EXISTS (SELECT 1 FROM entries WHERE thread = NEW.thread AND seq = NEW.seq)
    OR NEW.client_id IS NOT NULL AND NEW.flags & 1 AND EXISTS (SELECT 1 FROM entries
      WHERE \"from\" = NEW.\"from\" AND client_id = NEW.client_id AND flags & 1)",
    ),
    ("commits", "EXISTS (SELECT 1 FROM commits WHERE number = NEW.number)"),
    ("shares", "EXISTS (SELECT 1 FROM shares WHERE entry = NEW.entry AND at = NEW.at)"),
];

/// A view for people. `FLAGS` is replaced by words for the flags, and `BODY` by the expression that
/// puts a body together.
const MESSAGES: &str = r#"
CREATE VIEW messages AS SELECT
  e.position,
  t.id AS thread,
  e.seq,
  strftime('%Y-%m-%dT%H:%M:%S', e.time / 1000000, 'unixepoch')
    || printf('.%06dZ', e.time % 1000000) AS time,
  e."from",
  e."to",
  n.namespace,
  n.local AS name,
  c.id || '/' || e.cause_seq AS cause,
  r.id || '/' || e.reply_seq AS reply_to,
  trim(FLAGS) AS flags,
  e.receivers,
  e.client_id,
  CAST(e.meta AS TEXT) AS meta,
  CASE WHEN e.key_id IS NULL THEN CAST(BODY AS TEXT) END AS payload,
  lower(hex(e.digest)) AS digest
FROM entries e
JOIN threads t ON t.number = e.thread
JOIN names n ON n.id = e.name
LEFT JOIN threads c ON c.number = e.cause_thread
LEFT JOIN threads r ON r.number = e.reply_thread;
"#;

/// The expression for a whole body: the pieces of the row's own text, with the shared text in
/// between. SQLite returns null for an empty piece.
const BODY: &str = "CASE WHEN EXISTS (SELECT 1 FROM shares WHERE entry = e.position) THEN (
    SELECT group_concat(ifnull(substr(e.body, since + 1, at - since), '') || shared, '')
      || ifnull(substr(e.body, max(at) + 1), '')
    FROM (SELECT at, coalesce(lag(at) OVER (ORDER BY at), 0) AS since,
        (SELECT substr(body, start + 1, length) FROM entries WHERE position = source) AS shared
      FROM shares WHERE entry = e.position ORDER BY at)
  ) ELSE e.body END";

/// The statements that make an empty file into a log.
fn sql() -> String {
    let mut sql = TABLES.to_owned();
    for (table, taken) in TAKEN {
        for verb in ["UPDATE", "DELETE"] {
            let name = verb.to_lowercase();
            sql.push_str(&format!(
                "CREATE TRIGGER {table}_no_{name} BEFORE {verb} ON {table}\n\
                 BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;\n"
            ));
        }
        sql.push_str(&format!(
            "CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}\n  WHEN {taken}\n\
             BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;\n"
        ));
    }
    sql.push_str(&messages());
    sql
}

/// The statement that makes the view.
fn messages() -> String {
    let word = |(flag, word): &(Flags, &str)| {
        format!("CASE WHEN e.flags & {} THEN '{word} ' ELSE '' END", flag.bits())
    };
    let words: Vec<String> = Flags::WORDS.iter().map(word).collect();
    MESSAGES.replace("FLAGS", &words.join("\n    || ")).replace("BODY", BODY)
}

/// The kinds of files that can be opened.
pub(super) enum FileKind {
    /// An empty file, in which a log may be made.
    Nothing,
    /// A log of this version's format.
    Log,
}

/// Determines the kind of a file, without changing it.
pub(super) fn inspect(db: &Connection, path: &Path) -> Result<FileKind, Error> {
    let number = |pragma| number(db, pragma).map_err(|error| opening(path, &error));
    let (application, format) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION_ID {
        return match u32::try_from(format) {
            Ok(Identity::FORMAT) => Ok(FileKind::Log),
            Ok(format @ 1..) => Err(Error::OtherFormat { path: path.to_owned(), format }),
            _ => Err(damaged(path, &format!("its header says format {format}"))),
        };
    }
    let tables = db
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
        .map_err(|error| opening(path, &error))?;
    if application == 0 && format == 0 && tables == 0 {
        return Ok(FileKind::Nothing);
    }
    Err(Error::NotALog { path: path.to_owned() })
}

fn number(db: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Makes an empty file into a log, in one transaction.
pub(super) fn create(db: &Connection, identity: &Identity) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    db.execute_batch(&sql())?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.pragma_update(None, "user_version", identity.format)?;
    db.execute(
        "INSERT INTO log VALUES (1, ?1, ?2, ?3, ?4)",
        (
            identity.format,
            &identity.uuid.as_bytes()[..],
            &identity.key[..],
            identity.created_us.cast_signed(),
        ),
    )?;
    db.execute(
        "INSERT INTO commits VALUES (0, ?1, 0, 0, ?2, x'')",
        (&identity.uuid.as_bytes()[..], &chain::genesis(identity)[..]),
    )?;
    db.execute_batch("COMMIT")
}

/// Reads the log's identity.
pub(super) fn identity(db: &Connection, path: &Path) -> Result<Identity, Error> {
    let row = db
        .query_row("SELECT format, uuid, key, created FROM log", [], |row| {
            let (format, created) = (row.get::<_, i64>(0)?, row.get::<_, i64>(3)?);
            Ok((format, row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?, created))
        })
        .optional()
        .map_err(|error| opening(path, &error))?;
    let identity = row.and_then(|(format, uuid, key, created)| {
        Some(Identity {
            format: u32::try_from(format).ok()?,
            uuid: Uuid::from_slice(&uuid).ok()?,
            key: key.try_into().ok()?,
            created_us: created.cast_unsigned(),
        })
    });
    identity.ok_or_else(|| damaged(path, "the row that says which log it is can't be read"))
}

/// The columns that [`commit`] reads.
pub(super) const COMMIT: &str = "number, writer, last_position, last_thread, chain, marks";

/// Reads a commit from a row with the columns of [`COMMIT`]. A value of the wrong length is read as
/// zeros.
pub(super) fn commit(row: &rusqlite::Row<'_>) -> rusqlite::Result<CommitRow> {
    let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let writer = row.get_ref(1)?.as_bytes().unwrap_or_default();
    let chain = row.get_ref(4)?.as_bytes().unwrap_or_default();
    let marks = row.get_ref(5)?.as_bytes().unwrap_or_default();
    Ok(CommitRow {
        commit: chain::Commit {
            number: number(0)?,
            writer: Uuid::from_slice(writer).unwrap_or_default(),
            last_position: number(2)?,
            last_thread: number(3)?,
        },
        chain: chain.try_into().unwrap_or_default(),
        marks: marks.to_vec(),
    })
}

/// An object in a file's schema: its kind, its name, and the statement that makes it.
struct Object {
    kind: String,
    name: String,
    sql: String,
}

/// A difference between an object and our statement for it: the object's kind, its name, and the
/// difference in words.
type Difference = (String, String, &'static str);

/// Finds each of our tables, indexes, triggers and views that is missing or was changed, and every
/// trigger that isn't ours.
pub(super) fn differences(db: &Connection) -> rusqlite::Result<Vec<Difference>> {
    let (made, theirs) = (expected_objects()?, objects(db)?);
    let mut wrong = Vec::new();
    for Object { kind, name, sql } in &made {
        let what = match theirs.iter().find(|it| it.kind == *kind && it.name == *name) {
            Some(it) if it.sql == *sql => continue,
            Some(_) => "was changed",
            None => "is missing",
        };
        wrong.push((kind.clone(), name.clone(), what));
    }
    // A trigger that isn't ours may change anything that is written.
    for object in theirs {
        if object.kind == "trigger" && !made.iter().any(|ours| ours.name == object.name) {
            wrong.push((object.kind, object.name, "is none of ours"));
        }
    }
    Ok(wrong)
}

/// The objects that this version makes.
fn expected_objects() -> rusqlite::Result<Vec<Object>> {
    let ours = Connection::open_in_memory()?;
    ours.execute_batch(&sql())?;
    objects(&ours)
}

fn objects(db: &Connection) -> rusqlite::Result<Vec<Object>> {
    let mut rows = db
        .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    let rows = rows.query_map([], |row| {
        Ok(Object { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? })
    })?;
    rows.collect()
}

/// Translates an error of SQLite into an error of the log at `path`.
pub(super) fn opening(path: &Path, error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::NotALog { path: path.to_owned() },
        Some(ErrorCode::DatabaseCorrupt) => damaged(path, "its pages contradict each other"),
        Some(ErrorCode::DiskFull) => Error::Full,
        // A table is missing, or a value has the wrong type.
        Some(ErrorCode::Unknown) | None => damaged(path, &error.to_string()),
        _ => Error::Io(format!("{}: {error}", path.display()).into()),
    }
}

pub(super) fn damaged(path: &Path, why: &str) -> Error {
    Error::Damaged { path: path.to_owned(), why: why.into() }
}
