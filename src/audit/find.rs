//! Finds the threads whose ids are similar to an unknown id.

use crate::id::ThreadId;
use crate::log::{Error, Log, ThreadPages};

/// After this many threads, no more are compared.
const COMPARED_MAX: usize = 100_000;

/// The threads whose ids are most similar to this id, at most three. The most similar thread comes
/// first. Ids that differ in more than a third of their characters aren't similar.
///
/// # Errors
/// If the log can't be read.
pub async fn nearest(log: &dyn Log, id: &str) -> Result<Vec<ThreadId>, Error> {
    const SHOWN_MAX: usize = 3;
    let mut found: Vec<(usize, ThreadId)> = Vec::new();
    let (mut pages, mut compared) = (ThreadPages::of(log), 0);
    while let Some(page) = pages.next().await? {
        compared += page.len();
        let near = |it: ThreadId| {
            let (steps, most) = (distance(id, it.as_str()), id.len().max(it.as_str().len()));
            (steps <= most / 3).then_some((steps, it))
        };
        found.extend(page.into_iter().filter_map(|it| near(it.id)));
        found.sort_by_key(|(distance, _)| *distance);
        found.truncate(SHOWN_MAX);
        if compared >= COMPARED_MAX {
            break;
        }
    }
    Ok(found.into_iter().map(|(_, id)| id).collect())
}

/// How many characters must be changed, added or removed to turn `a` into `b`. Only the first 64
/// characters of `a` and of `b` are compared. 0 if `b` contains `a`.
fn distance(a: &str, b: &str) -> usize {
    const CHARACTERS_MAX: usize = 64;
    if !a.is_empty() && b.contains(a) {
        return 0;
    }
    let b: Vec<char> = b.chars().take(CHARACTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, x) in a.chars().take(CHARACTERS_MAX).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, y) in b.iter().enumerate() {
            let same = diagonal + usize::from(x != *y);
            diagonal = row[place + 1];
            row[place + 1] = same.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::EntryId;
    use crate::log::{Batch, Draft, MemoryLog, NewThread};
    use crate::name::Name;

    async fn log(entries: u64) -> MemoryLog {
        let log = MemoryLog::new();
        let id = ThreadId::new("sess-a");
        let threads = vec![NewThread { id: id.clone(), parent: None, fork: None }];
        let draft = |seq| {
            let body = Bytes::from_static(b"<a></a>");
            Draft::new(EntryId::new(&id, seq), 1, "console".into(), Name::of("urn:x", "a"), body)
        };
        let entries = (1..=entries).map(draft).collect();
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        log
    }

    #[tokio::test]
    async fn an_entry_is_found_or_its_thread_is_missed() {
        let log = log(3).await;
        let find = async |id: &str| log.entry(&id.parse().unwrap()).await;
        assert_eq!(find("sess-a/3").await.unwrap().map(|it| it.id.seq), Some(3));
        assert_eq!(find("sess-a/4").await, Ok(None));
        let missing = ThreadId::new("sess-b");
        assert_eq!(find("sess-b/1").await, Err(Error::UnknownThread(missing)));
    }

    #[tokio::test]
    async fn what_looks_alike_is_near() {
        assert_eq!(distance("sess-abc", "sess-abd"), 1);
        assert_eq!(distance("abc", "sess-abc"), 0);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        let near = nearest(&log(1).await, "sess-b").await.unwrap();
        assert_eq!(near, [ThreadId::new("sess-a")]);
    }
}
