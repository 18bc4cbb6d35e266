//! Other threads that handlers read: the threads of their own tree, and the organism's own thread.
//! With the grant of `ReadIdentity`, handlers also read other trees that the same identity opened.

use std::sync::Arc;

use crate::engine::read_fault::unread;
use crate::engine::tree::event::ORGANISM;
use crate::engine::worker::history::history;
use crate::id::ThreadId;
use crate::listener::{Entry, Grant, HandlerCall, OtherThreads, ReadIdentity};
use crate::log::{self, Log};
use crate::wire::Fault;

/// The number of threads of the log that are examined for one page of an identity's threads. It is
/// also the largest number of entries of a thread that are read at a time.
const PAGE: usize = 256;

/// Returns the threads of a message's tree, in the order in which they were opened.
pub(crate) async fn tree(log: &dyn Log, call: &HandlerCall) -> Result<Vec<ThreadId>, Fault> {
    let root = call.message().thread().tree();
    let all = log.tree(&root).await.map_err(|it| unread(&it))?;
    Ok(all.into_iter().map(|it| it.id).collect())
}

/// Returns the next threads after `after` that are in other trees of the identity that opened the
/// message's tree.
pub(crate) async fn others(
    log: &dyn Log,
    call: &HandlerCall,
    after: Option<&ThreadId>,
) -> Result<OtherThreads, Fault> {
    let found = async {
        let own_tree = call.message().thread().tree();
        let Some(owner) = reader(log, call).await? else { return Ok(OtherThreads::default()) };
        if let Some(after) = after
            && log.thread(after).await?.is_none()
        {
            return Ok(OtherThreads::default());
        }
        let page = log.threads(after, PAGE).await?;
        let next = page.last().map(|it| it.id.clone());
        let (mut threads, looked_at) = (Vec::new(), page.len());
        for thread in page.into_iter().filter(|it| it.id.tree_str() != own_tree.as_str()) {
            if opener(log, &thread.id.tree()).await?.as_ref() == Some(&owner) {
                threads.push(thread.id);
            }
        }
        Ok(OtherThreads { threads, looked_at, next })
    };
    found.await.map_err(|it: log::Error| unread(&it))
}

/// Returns the entries of a thread after the number `after` that the log got before the current
/// message. For the message's own thread, returns what `history` returns. Any other thread must be
/// in the message's tree, or, with the grant, in another tree of the same identity. Otherwise the
/// result is empty.
pub(crate) async fn read(
    log: &dyn Log,
    call: &HandlerCall,
    thread: &ThreadId,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    if thread == call.message().thread() {
        return history(log, call, after, limit).await;
    }
    let found = async {
        let is_own_tree = thread.tree_str() == call.message().thread().tree_str();
        if !is_own_tree {
            let owner = reader(log, call).await?;
            if owner.is_none() || opener(log, &thread.tree()).await? != owner {
                return Ok(Vec::new());
            }
        }
        let Some(record) = log.thread(thread).await? else { return Ok(Vec::new()) };
        // The entries that a fork shares belong to its source, so they are left out.
        let after = after.max(record.fork.map_or(0, |it| it.seq));
        earlier(log, call, thread, (after, limit)).await
    };
    found.await.map_err(|it: log::Error| unread(&it))
}

/// Returns the entries of the organism's own thread after the number `after` that the log got
/// before the current message.
pub(crate) async fn organism(
    log: &dyn Log,
    call: &HandlerCall,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    let thread = ThreadId::new(ORGANISM);
    let found = async {
        // An organism without a name has this thread only once something was recorded there.
        match log.thread(&thread).await? {
            Some(_) => earlier(log, call, &thread, (after, limit)).await,
            None => Ok(Vec::new()),
        }
    };
    found.await.map_err(|it: log::Error| unread(&it))
}

/// Returns the entries of a thread after the number `after` that the log got before the current
/// message.
async fn earlier(
    log: &dyn Log,
    call: &HandlerCall,
    thread: &ThreadId,
    (after, limit): (u64, usize),
) -> Result<Vec<Entry>, log::Error> {
    let Some(message) = log.entry(call.message().id()).await? else { return Ok(Vec::new()) };
    let page = log.read(thread, after, u64::MAX, limit.min(PAGE)).await?;
    let earlier = page.iter().filter(|it| it.position < message.position);
    Ok(earlier.map(|it| Entry::kept(it)).collect())
}

/// Returns the identity whose threads a listener may read. Returns None if the listener lacks the
/// grant, or if no identity opened the message's tree.
async fn reader(log: &dyn Log, call: &HandlerCall) -> Result<Option<Arc<str>>, log::Error> {
    if !call.grants.contains(ReadIdentity::GRANT) {
        return Ok(None);
    }
    opener(log, &call.message().thread().tree()).await
}

/// Returns the identity that opened a tree.
async fn opener(log: &dyn Log, root: &ThreadId) -> Result<Option<Arc<str>>, log::Error> {
    let Some(root) = log.thread(root).await? else { return Ok(None) };
    let first = log.opening(&root).await?;
    let by_identity = first.filter(|it| it.flags.contains(log::Flags::FROM_IDENTITY));
    Ok(by_identity.map(|it| it.from.clone()))
}
