//! Writes a file `feeds.json` into the folder of each agent. It lists the feeds that the agent gets
//! from services, in the form of ADR-013.

use std::io::{self, Write as _};
use std::path::Path;

use crate::atomic_file::AtomicFile;
use crate::cli::base::data;
use crate::cli::base::screen::Failure;
use crate::manifest::{AgentFeed, Context};
use crate::regular_file;

/// Writes `feeds.json` for each agent that gets feeds from services. An agent without such feeds
/// gets an empty list, but only if it has the file already.
pub(crate) fn write(context: &Context) -> Result<(), Failure> {
    for (agent, feeds) in &context.feeds {
        let path = context.folder.join(agent).join("feeds.json");
        if feeds.is_empty() && !path.exists() {
            continue;
        }
        replace(&path, &text(feeds)).map_err(|error| {
            let way = "name another folder with `context-folder:`";
            let text = format!("{} can't be written: {error}; {way}", path.display());
            Failure::Untried(text)
        })?;
    }
    Ok(())
}

/// Writes a file, unless it has this text already.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if regular_file::text(path, text.len() as u64).is_ok_and(|it| it == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        data::make(folder)?;
    }
    let mut file = AtomicFile::in_place_of_anything(path)?;
    file.write_all(text.as_bytes())?;
    file.commit()
}

/// Formats the feeds as a list in JSON, with a line for each feed.
fn text(feeds: &[AgentFeed]) -> String {
    let feeds = feeds.iter().filter_map(|it| serde_json::to_string(it).ok());
    match feeds.collect::<Vec<_>>().join(",\n  ") {
        none if none.is_empty() => "[]\n".to_owned(),
        all => format!("[\n  {all}\n]\n"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_stands_in_place_of_the_file_holds_nothing_up_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, link) = (folder.path().join("fifo"), folder.path().join("link"));
        let mode = rustix::fs::Mode::from_bits_truncate(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [fifo, link] {
            let (at, (to, done)) = (path.clone(), std::sync::mpsc::sync_channel(1));
            std::thread::spawn(move || to.send(replace(&at, "[]")));
            done.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
            assert_eq!(regular_file::text(&path, 2).unwrap(), "[]");
            assert!(!path.is_symlink());
        }
    }
}
