//! The data folder and its log, and the failures for a log, a thread or an entry that is missing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::audit;
use crate::cli::base::screen::Failure;
use crate::id::{EntryId, ThreadId};
use crate::log::{Entry, Log, SqliteLog};
use crate::own_files::make_own_folders;

/// The log's name in its folder.
pub(crate) const LOG: &str = "pumphouse.db";

/// Makes a folder that only its owner can enter. A folder that exists stays as it is.
pub(crate) fn make(data: &Path) -> io::Result<()> {
    make_own_folders(data)
}

/// Opens a log for reading. `data` is the log's folder, or the log's file itself.
pub(crate) fn open(data: &Path) -> Result<SqliteLog, Failure> {
    Ok(SqliteLog::open_read_only(path(data)?)?)
}

/// Returns the path of a log's file. `data` is the log's folder, or the log's file itself. Fails if
/// the log doesn't exist.
pub(crate) fn path(data: &Path) -> Result<PathBuf, Failure> {
    let path = if data.is_file() { data.to_owned() } else { data.join(LOG) };
    if path.exists() { Ok(path) } else { Err(Failure::Untried(missing(data, &path))) }
}

fn missing(data: &Path, path: &Path) -> String {
    let what = match data.is_dir() {
        true => format!("{} holds no log ({LOG})", data.display()),
        false => format!("there is no folder {}", data.display()),
    };
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!(
        "{what}; looked for {}\n`pumphouse run` makes one; `--data DIR` names another folder",
        whole.display()
    )
}

/// Makes the failure for a thread that doesn't exist. Its text names threads with similar ids.
pub(crate) async fn unknown(log: &dyn Log, id: &ThreadId) -> Failure {
    let near = match audit::nearest(log, id.as_str()).await {
        Ok(near) => near,
        Err(error) => return error.into(),
    };
    let near: Vec<&str> = near.iter().map(ThreadId::as_str).collect();
    let hint = match &near[..] {
        [] => match log.threads(None, 1).await {
            Ok(all) if all.is_empty() => "the log holds none yet".to_owned(),
            Ok(_) => "none is called much like it".to_owned(),
            Err(error) => return error.into(),
        },
        [one] => format!("did you mean {one}?"),
        [first, rest @ ..] => format!("did you mean {first}, or {}?", rest.join(", or ")),
    };
    let all = "`pumphouse threads` lists them all";
    Failure::Wrong(format!("there is no thread {id}; {hint}\n{all}"))
}

/// Reads an entry. Fails if the entry or its thread doesn't exist.
pub(crate) async fn entry(log: &dyn Log, id: &EntryId) -> Result<Arc<Entry>, Failure> {
    let Some(record) = log.thread(&id.thread).await? else {
        return Err(unknown(log, &id.thread).await);
    };
    let found = log.entry(id).await?;
    found.ok_or_else(|| {
        let last = EntryId { thread: id.thread.clone(), seq: record.last_seq };
        Failure::Wrong(match record.last_seq {
            0 => format!("there is no {id}; {} has no messages yet", id.thread),
            _ => format!("there is no {id}; the last message of its thread is {last}"),
        })
    })
}
