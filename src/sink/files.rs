//! A sink that writes files of JSON lines, and rotates them by their size.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::{Port as _, Tokio};
use crate::follower::{Sent, Target, Unreachable};
use crate::log::{Entry, Error};
use crate::own_files::{make_own_folders, own_options};
use crate::regular_file::opened_no_link;
use crate::sink::NoSink;
use crate::sink::item::{Item, Waiting};
use crate::sink::path::Template;

/// The default of `max_size`, in bytes.
const MAX_SIZE: u64 = 10 * 1024 * 1024;
/// The default of `keep`.
const KEEP: usize = 5;
/// The most files that one write holds open.
const OPEN_MAX: usize = 16;

/// The files that a sink writes JSON lines into.
///
/// ```
/// # extern crate pumphouse_organism as pumphouse;
/// use pumphouse::sink::{Files, Sink};
///
/// let files = Files::at("sinks/{thread_id}/stream.jsonl")?.max_size(1 << 20).keep(3);
/// let sink = Sink::files("audit", files).drop_deltas();
/// assert!(Files::at("sinks/{session}/stream.jsonl").is_err());
/// # Ok::<(), pumphouse::sink::NoSink>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    path: Template,
    max_size: u64,
    keep: usize,
}

impl Files {
    /// Files at a path. `{thread_id}` in the path is replaced by an escaped form of the thread's
    /// id, so that each thread has a file of its own. Missing folders are created.
    ///
    /// # Errors
    /// The path isn't UTF-8, has no file name at its end, or has other braces.
    pub fn at(path: impl AsRef<Path>) -> Result<Files, NoSink> {
        Ok(Files { path: Template::parse(path.as_ref())?, max_size: MAX_SIZE, keep: KEEP })
    }

    /// Sets the size in bytes that a file may reach before a new file is begun; 10 MiB by default.
    /// A line that is longer has a file to itself.
    #[must_use]
    pub fn max_size(self, bytes: u64) -> Files {
        Files { max_size: bytes, ..self }
    }

    /// Sets how many older files stay, as `.1`, `.2` and so on; 5 by default.
    #[must_use]
    pub fn keep(self, files: usize) -> Files {
        Files { keep: files, ..self }
    }

    /// Makes the path relative to this folder.
    pub(crate) fn within(self, folder: &Path) -> Files {
        Files { path: self.path.within(folder), ..self }
    }

    /// Whether the path may name a file of this log.
    pub(super) fn may_be_of(&self, log: &Path) -> bool {
        self.path.may_be_of(log)
    }
}

/// Writes the items of a sink.
pub(super) struct Writer {
    name: String,
    /// None while a write is under way.
    disk: Option<Disk>,
    waiting: Waiting,
}

impl Writer {
    pub(super) fn new(name: String, files: Files, waiting: Waiting) -> Writer {
        let disk = Some(Disk { files, unsynced: BTreeSet::new() });
        Writer { name, disk, waiting }
    }

    /// Runs an operation on the disk in a task that may block. Fails if an earlier operation is
    /// still running.
    async fn with_disk<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Disk) -> R + Send + 'static,
    ) -> Result<R, Unreachable> {
        let busy = || Unreachable("a write before isn't over".to_owned());
        let mut disk = self.disk.take().ok_or_else(busy)?;
        let (done, over) = oneshot::channel();
        Tokio::current().spawn_blocking(async move {
            let result = act(&mut disk);
            // `send` fails only if the caller no longer waits.
            let _ = done.send((disk, result));
        });
        let (disk, result) = over.await.map_err(|_| busy())?;
        self.disk = Some(disk);
        Ok(result)
    }
}

impl Target for Writer {
    async fn take(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        self.waiting.take(entry);
        Ok(())
    }

    fn take_live(&mut self, position: u64) {
        self.waiting.take_live(position);
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.items.is_empty()
    }

    async fn send(&mut self) -> Result<Sent, Unreachable> {
        if self.waiting.items.is_empty() {
            return Ok(Sent::All);
        }
        let items = std::mem::take(&mut self.waiting.items);
        let (left, wrong) = self.with_disk(move |disk| disk.write(items)).await?;
        self.waiting.items = left;
        wrong.map_or(Ok(Sent::All), |it| Err(Unreachable(it)))
    }

    async fn settle(&mut self) -> Result<(), Unreachable> {
        self.with_disk(Disk::sync).await?.map_err(|it| Unreachable(it.to_string()))
    }

    async fn wake(&mut self) {
        self.waiting.grown().await;
    }

    fn report_unreachable(&self, reason: &str) {
        let sink = &*self.name;
        tracing::warn!(sink, reason, "a sink can't write; entries wait in the log until it can");
    }

    fn report_reachable(&self) {
        let sink = &*self.name;
        tracing::info!(sink, "a sink can write again, and gets the entries that waited");
    }
}

/// The files on the disk.
struct Disk {
    files: Files,
    /// Files that have lines which aren't synced to the disk yet.
    unsynced: BTreeSet<PathBuf>,
}

/// A file that lines are added to.
struct Open {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Disk {
    /// Writes each item as a line. Stops at the first error, and returns the items that are left
    /// and the error's text.
    fn write(&mut self, mut items: VecDeque<Item>) -> (VecDeque<Item>, Option<String>) {
        let mut open = VecDeque::new();
        while let Some(item) = items.front() {
            let path = self.files.path.fill(item.thread());
            if let Err(error) = self.line(&mut open, &path, item) {
                return (items, Some(format!("{}: {error}", path.display())));
            }
            items.pop_front();
        }
        (items, None)
    }

    fn line(&mut self, open: &mut VecDeque<Open>, path: &Path, item: &Item) -> io::Result<()> {
        let mut line = serde_json::to_vec(&item.to_json())?;
        line.push(b'\n');
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let at = open.iter().position(|it: &Open| it.path == path);
        let mut to = match at.and_then(|it| open.remove(it)) {
            Some(it) => it,
            None => Open::at(path)?,
        };
        if to.size > 0 && to.size.saturating_add(length) > self.files.max_size {
            to.file.sync_data()?;
            drop(to.file);
            rotate(path, self.files.keep)?;
            to = Open::at(path)?;
        }
        self.unsynced.insert(path.to_owned());
        to.add(&line)?;
        open.push_back(to);
        if open.len() > OPEN_MAX {
            open.pop_front();
        }
        Ok(())
    }

    /// Syncs all files with new lines to the disk.
    fn sync(&mut self) -> io::Result<()> {
        while let Some(path) = self.unsynced.first() {
            match opened_no_link(OpenOptions::new().read(true), path) {
                Ok(it) => it.sync_data()?,
                // The file was removed after it was written.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            self.unsynced.pop_first();
        }
        Ok(())
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Open> {
        if let Some(folder) = path.parent() {
            make_own_folders(folder)?;
        }
        // The folder may be one that an agent writes to, and a link there may lead anywhere.
        let mut file = opened_no_link(own_options().read(true).append(true).create(true), path)?;
        let size = file.metadata()?.len();
        let mut to = Open { path: path.to_owned(), file: file.try_clone()?, size };
        if size > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                // A power cut has cut the last line. The item of that line is written again, on a
                // new line.
                to.add(b"\n")?;
            }
        }
        Ok(to)
    }

    /// Appends a line. After an error, the file is truncated to its previous size.
    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            self.file.set_len(self.size)?;
            return Err(error);
        }
        self.size += u64::try_from(line.len()).unwrap_or(0);
        Ok(())
    }
}

/// Renames a file and the older files: `path` becomes `path.1`, `path.1` becomes `path.2`, and so
/// on. The file with the number `keep` is replaced. With a `keep` of 0, the file itself is removed.
fn rotate(path: &Path, keep: usize) -> io::Result<()> {
    let numbered = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    if keep == 0 {
        return fs::remove_file(path);
    }
    for number in (1..keep).rev() {
        match fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, numbered(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ThreadId;

    fn item(thread: &str, count: u64) -> Item {
        Item::Dropped { thread: Some(ThreadId::new(thread)), count }
    }

    fn disk(path: &Path) -> Disk {
        let files = Files::at(path).unwrap().max_size(80).keep(2);
        Disk { files, unsynced: BTreeSet::new() }
    }

    fn counts(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).unwrap();
        let read = |it: &str| serde_json::from_str::<serde_json::Value>(it).unwrap();
        text.lines().map(|it| read(it)["dropped"].as_u64().unwrap()).collect()
    }

    #[test]
    fn a_file_that_would_grow_too_large_gives_way_and_so_many_older_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/stream.jsonl");
        let mut disk = disk(&path);
        // Two of these lines are less than 80 bytes, and three are more.
        let (left, wrong) = disk.write((1..=9).map(|it| item("t", it)).collect());
        assert_eq!((left.len(), wrong), (0, None));
        let names = ["stream.jsonl", "stream.jsonl.1", "stream.jsonl.2"];
        let all = names.map(|it| counts(&path.with_file_name(it)));
        assert_eq!(all, [vec![9], vec![7, 8], vec![5, 6]]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
        disk.sync().unwrap();
        assert!(disk.unsynced.is_empty());
    }

    #[test]
    fn each_thread_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = disk(&folder.path().join("{thread_id}/s"));
        let items =
            [item("a", 1), item("../b", 2), item("a", 3), Item::Dropped { thread: None, count: 4 }];
        assert_eq!(disk.write(items.into()).1, None);
        assert_eq!(counts(&folder.path().join("a/s")), [1, 3]);
        assert_eq!(counts(&folder.path().join("%2E.%2Fb/s")), [2]);
        assert_eq!(counts(&folder.path().join("-/s")), [4]);
    }

    #[test]
    fn what_cant_be_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = disk(&folder.path().join("{thread_id}/s"));
        fs::write(folder.path().join("b"), "no folder").unwrap();
        let items = [item("a", 1), item("b", 2), item("a", 3)];
        let (left, wrong) = disk.write(items.into());
        assert_eq!(left.len(), 2);
        assert!(wrong.unwrap().contains("/b/s: "));
        fs::remove_file(folder.path().join("b")).unwrap();
        assert_eq!(disk.write(left).1, None);
        assert_eq!(counts(&folder.path().join("a/s")), [1, 3]);
    }

    #[test]
    fn a_line_that_was_cut_is_ended_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        fs::write(&path, "{\"cut").unwrap();
        assert_eq!(disk(&path).write([item("a", 1)].into()).1, None);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"cut\n{\"dropped\":1,\"thread\":\"a\"}\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_a_fifo_are_no_file_of_a_sink() {
        use std::time::Duration;

        let folder = tempfile::tempdir().unwrap();
        let [target, link, nowhere, fifo] =
            ["target", "link", "nowhere", "fifo"].map(|it| folder.path().join(it));
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        std::os::unix::fs::symlink(folder.path().join("new"), &nowhere).unwrap();
        let mode = rustix::fs::Mode::from_bits_truncate(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let is_a_link = "it is a link, which is not followed; name the file";
        for (path, why) in
            [(&link, is_a_link), (&nowhere, is_a_link), (&fifo, "it is no regular file")]
        {
            let (mut disk, (to, told)) = (disk(path), std::sync::mpsc::sync_channel(1));
            std::thread::spawn(move || to.send(disk.write([item("a", 1)].into())));
            let (left, wrong) = told.recv_timeout(Duration::from_secs(30)).unwrap();
            let wrong = wrong.unwrap();
            assert!(left.len() == 1 && wrong.contains(why), "{wrong}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        assert!(!folder.path().join("new").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_replaced_by_a_link_is_not_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut disk = disk(&path);
        assert_eq!(disk.write([item("a", 1)].into()).1, None);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(disk.sync().unwrap_err().to_string().starts_with("it is a link"));
    }
}
