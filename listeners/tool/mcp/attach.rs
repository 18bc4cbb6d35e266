//! Images, sounds and files in an answer become entries of the thread, and the answer names these
//! entries. The progress that a tool reports during a call is shown live to followers.

use std::collections::BTreeMap;
use std::convert::Infallible;

use pumphouse::id::EntryId;
use pumphouse::listener::{FromContext, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::wire::core::{Attachment, Progress};
use serde_json::Value;
use tokio::sync::mpsc;

use super::super::text::shown;
use super::limits::{ENTRIES_SEARCHED_MAX, PROGRESS_BYTES_MAX};

/// The number of entries per page in the search for an attachment.
const PAGE: usize = 256;

/// An image, a sound or a file that came with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Attached {
    /// The entry that has it.
    #[payload(attribute, example = "sess-k3v9x2ma/4")]
    pub entry: String,
    /// Its media type.
    #[payload(attribute, example = "image/png")]
    pub media_type: String,
    /// Its bytes' BLAKE3 digest, in hexadecimal.
    #[payload(attribute)]
    pub digest: String,
    /// How many bytes it has.
    #[payload(attribute)]
    pub bytes: u64,
}

/// A fold that maps the digests of a thread's attachments to their entries. Of equal attachments,
/// the first counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Attachments(BTreeMap<String, EntryId>);

impl Apply for Attachments {
    fn apply(&mut self, entry: &Entry) {
        if let Some(attachment) = entry.decode_if::<Attachment>() {
            // A pushed attachment may name a wrong digest, so the digest is computed here.
            self.0.entry(attachment.computed()).or_insert_with(|| entry.id().clone());
        }
    }
}

/// Returns whether an entry is the attachment with this digest.
fn is_of(entry: &Entry, digest: &str) -> bool {
    entry.decode_if::<Attachment>().is_some_and(|it| it.computed() == digest)
}

/// The contexts with which a call records its attachments and shows its progress.
#[derive(FromContext)]
pub(super) struct Outlets {
    kept: Fold<Attachments>,
    tree: TreeHistory,
    thread: Thread,
    notes: Outbox<Note<Attachment>>,
    live: Outbox<Progress>,
}

impl Outlets {
    /// Records each attachment in the thread, unless this thread or another thread of the tree has
    /// it already. Other threads are searched only up to a limit.
    pub(super) async fn keep(&self, contents: Vec<Attachment>) -> Result<Vec<Attached>, String> {
        let mut all = Vec::new();
        for content in contents {
            let mut attached = Attached {
                entry: String::new(),
                media_type: content.media_type.clone(),
                digest: content.computed(),
                bytes: content.content.len() as u64,
            };
            attached.entry = self.entry(content).await?.to_string();
            all.push(attached);
        }
        Ok(all)
    }

    async fn entry(&self, attachment: Attachment) -> Result<EntryId, String> {
        let digest = attachment.computed();
        if let Some(id) = self.kept.0.0.get(&digest) {
            return Ok(id.clone());
        }
        // An earlier attempt to handle the same message may have recorded the attachment.
        if let Some(id) = self.sent(&digest).await? {
            return Ok(id);
        }
        if let Some(id) = self.in_tree(&digest).await? {
            return Ok(id);
        }
        self.notes.send(Note(attachment)).await.map_err(|it| it.to_string())?;
        self.sent(&digest).await?.ok_or_else(|| "it isn't in the log".to_owned())
    }

    /// Finds the entry with the attachment of this digest in another thread of the tree. Only a
    /// limited number of entries is searched.
    async fn in_tree(&self, digest: &str) -> Result<Option<EntryId>, String> {
        let told = |it: Fault| it.to_string();
        let mut left = ENTRIES_SEARCHED_MAX;
        let threads = self.tree.threads().await.map_err(told)?;
        for thread in threads.iter().filter(|it| **it != self.thread.0) {
            let mut after = 0;
            while left > 0 {
                let page = self.tree.read(thread, after, PAGE.min(left)).await.map_err(told)?;
                if let Some(entry) = page.iter().find(|it| is_of(it, digest)) {
                    return Ok(Some(entry.id().clone()));
                }
                let Some(last) = page.last() else { break };
                after = last.seq();
                left -= page.len();
            }
        }
        Ok(None)
    }

    async fn sent(&self, digest: &str) -> Result<Option<EntryId>, String> {
        let sent = self.notes.sent().await.map_err(|it| it.to_string())?;
        Ok(sent.iter().find(|it| is_of(it, digest)).map(|it| it.id().clone()))
    }

    /// Shows a tool's progress to followers. This future never completes.
    pub(super) async fn show(&self, mut said: mpsc::Receiver<Value>) -> Infallible {
        while let Some(message) = said.recv().await {
            self.live.live(&progress(&message));
        }
        std::future::pending().await
    }
}

/// Converts a server's message about the progress of a call to a payload.
fn progress(value: &Value) -> Progress {
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    let text = value.get("message").and_then(Value::as_str).unwrap_or_default();
    let end = text.floor_char_boundary(PROGRESS_BYTES_MAX);
    Progress { done: number("progress"), total: number("total"), text: shown(&text[..end]) }
}
