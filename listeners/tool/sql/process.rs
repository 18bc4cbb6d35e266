//! The processes that read a database. Each is this executable again, runs one statement at a time,
//! and is used for the next statement if the last one ended by itself. A statement that takes too
//! long, or whose call is cancelled, ends with its process, and no other statement does.
//!
//! If the kernel has Landlock, a process has no network and sees only the database's own files. Of
//! these it may write only the two that belong to a write-ahead log, because readers of such a
//! database say there what they read. If these two don't exist yet, it may write their folder.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pumphouse::regular_file;
use socket2::SockRef;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::super::command::Bounds;
use super::super::command::limits::CommandLimits;
use super::super::command::run::{Serving, serve_confined};
use super::super::command::supervise::SELF;
use super::super::time::pass_time;
use super::SqlLimits;
use super::statement::{self, Answer, Order, Why};

/// The argument with which the executable runs as a reader of a database. The database's path
/// follows.
const READ: &str = "read-a-database";
/// The time that a process may take beyond a statement's own limit: to begin, and to answer.
const MARGIN: Duration = Duration::from_secs(2);
/// The maximum number of processes that wait for the next statement. More of them end at once.
const IDLE_MAX: usize = 20;
/// The time after which a process ends that waits for the next statement.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// The maximum number of bytes of a process's memory, besides four of its largest values.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// The maximum number of bytes of a file in which a process sorts rows.
const SORTED_BYTES_MAX: u64 = 1 << 30;
/// The maximum number of files that a process has open.
const DESCRIPTORS_MAX: u64 = 64;
/// The maximum number of bytes of an answer, besides those that are shown.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The maximum number of bytes that JSON writes for one byte.
const JSON_BYTES_PER_BYTE: usize = 6;
/// The bytes at the beginning of a database, and the place of the byte that is 2 if the database
/// has a write-ahead log.
const HEAD_BYTES: u64 = 20;
const READ_VERSION: usize = 19;

/// Why there is no answer.
pub(super) enum Failure {
    /// The statement took too long, and was ended with its process.
    OutOfTime,
    /// The process ended, or couldn't be begun. The variant has a sentence about it.
    Ended(String),
}

/// The processes for one database.
pub(super) struct Processes {
    /// The database's path, with all links resolved.
    path: String,
    limits: SqlLimits,
    idle: Mutex<Vec<Process>>,
}

/// A process that waits for a statement. When this value is dropped, the process is ended.
struct Process {
    talk: BufReader<UnixStream>,
    _control: UnixStream,
}

impl Process {
    /// Returns whether the process that waits hasn't ended. Such a process has said nothing that
    /// wasn't read.
    fn is_there(&self) -> bool {
        let peeked = SockRef::from(self.talk.get_ref()).peek(&mut [MaybeUninit::uninit()]);
        peeked.is_err_and(|it| it.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Processes {
    pub(super) fn new(path: &Path, limits: SqlLimits) -> Result<Processes, String> {
        let path = path.canonicalize().map_err(|it| it.to_string())?;
        let path = path.into_os_string().into_string();
        let path = path.map_err(|_| "its name is no text".to_owned())?;
        Ok(Processes { path, limits, idle: Mutex::default() })
    }

    /// Runs a statement. If this future is dropped earlier, the statement ends with its process.
    pub(super) async fn ask(&self, order: &Order) -> Result<Answer, Failure> {
        let time = Duration::from_secs(order.limits.seconds_max).saturating_add(MARGIN);
        tokio::select! {
            answer = self.run(order) => answer.map_err(|error| {
                let text = format!("the process that reads the database ended: {error}");
                Failure::Ended(text)
            }),
            () = pass_time(time) => Err(Failure::OutOfTime),
        }
    }

    /// Ends the processes that wait.
    pub(super) fn end(&self) {
        self.idle().clear();
    }

    async fn run(&self, order: &Order) -> io::Result<Answer> {
        let line = serde_json::to_string(order)? + "\n";
        if let Some(process) = self.take_idle() {
            // It may end just now, and the database may have files that it doesn't see. Then a new
            // process runs the statement, which only reads.
            match self.run_in(process, &line).await {
                Ok(Answer::Refused { why: Why::NotOpened | Why::ReadOnly, .. }) | Err(_) => {}
                answer => return answer,
            }
        }
        self.run_in(self.begin().await?, &line).await
    }

    async fn run_in(&self, mut process: Process, line: &str) -> io::Result<Answer> {
        process.talk.write_all(line.as_bytes()).await?;
        let most = self.limits.shown_bytes_max.saturating_mul(JSON_BYTES_PER_BYTE);
        let most = most.saturating_add(ANSWER_BYTES_MAX);
        let mut answer = Vec::new();
        let mut from = (&mut process.talk).take(most as u64);
        from.read_until(b'\n', &mut answer).await?;
        if answer.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let answer = serde_json::from_slice(&answer)?;
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(process);
        }
        Ok(answer)
    }

    /// Takes a process that waits, if there is one that hasn't ended.
    fn take_idle(&self) -> Option<Process> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(Process::is_there)
    }

    async fn begin(&self) -> io::Result<Process> {
        let values = 4 * u64::from(self.limits.value_bytes_max.unsigned_abs());
        let bounds = Bounds::closed(CommandLimits {
            memory_bytes_max: MEMORY_BYTES_MAX + values,
            file_bytes_max: SORTED_BYTES_MAX,
            descriptors_max: DESCRIPTORS_MAX,
            ..CommandLimits::default()
        });
        let (read, write) = files(&self.path);
        let bounds = bounds.with_paths(read, write);
        let arguments = vec![READ.to_owned(), self.path.clone()];
        let Serving { talk, control, .. } = serve_confined(&bounds, SELF, arguments).await?;
        Ok(Process { talk: BufReader::new(talk), _control: control })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the files that a process may read, and those that it may also write.
fn files(path: &str) -> (Vec<String>, Vec<String>) {
    let own = SELF.to_owned();
    if !has_write_ahead_log(path) {
        return (vec![own, path.to_owned(), format!("{path}-journal")], Vec::new());
    }
    let log = [format!("{path}-wal"), format!("{path}-shm")];
    let write = match log.iter().all(|it| Path::new(it).is_file()) {
        true => log.to_vec(),
        false => {
            let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
            vec![folder.display().to_string()]
        }
    };
    (vec![own, path.to_owned()], write)
}

fn has_write_ahead_log(path: &str) -> bool {
    let head = || {
        let mut head = Vec::new();
        regular_file::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
        io::Result::Ok(head)
    };
    head().is_ok_and(|it| it.get(READ_VERSION) == Some(&2))
}

/// If this process was started as a reader of a database, runs statements until the pump closes the
/// socket, and returns the exit code. Otherwise returns `None`.
pub(in super::super) fn child_process(
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != READ {
        return None;
    }
    let path = arguments.next()?;
    match read(Path::new(&path)) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

fn read(path: &Path) -> io::Result<()> {
    let mut out = io::stdout();
    // Reading fails after this time, and the process ends.
    SockRef::from(&io::stdin()).set_read_timeout(Some(IDLE_TIME))?;
    for line in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let answer = serde_json::to_string(&statement::answer(path, order))? + "\n";
        out.write_all(answer.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_the_databases_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db").display().to_string();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        let (read, write) = files(&path);
        assert_eq!(read, [SELF, &path, &format!("{path}-journal")]);
        assert!(write.is_empty(), "{write:?}");
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert_eq!(files(&path).1, [format!("{path}-wal"), format!("{path}-shm")]);
        drop(connection);
        assert_eq!(files(&path).1, [folder.path().display().to_string()]);
    }
}
