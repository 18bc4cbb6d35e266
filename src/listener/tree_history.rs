//! [`TreeHistory`], an argument with which a handler reads entries of other threads than the
//! message's own.

use std::sync::Arc;

use crate::id::ThreadId;
use crate::listener::{
    Context, Entry, FromContext, Grant, HandlerCall, Need, OtherThreads, ReadIdentity,
};
use crate::wire::Fault;

/// Reads the entries of every thread of the message's tree, up to the moment when the log got the
/// message. With the grant [`ReadIdentity`], it also reads the entries of the other trees that the
/// same identity opened. If another thread is a fork, only its entries after the fork are read.
///
/// A tree is a session with all threads below it.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::TreeHistory;
/// use pumphouse::prelude::*;
///
/// /// How much was said in the tree's first thread.
/// async fn count(tree: TreeHistory, _: Done) -> Result<(), Fault> {
///     let threads = tree.threads().await?;
///     let first = tree.read(&threads[0], 0, 100).await?;
///     assert!(first.len() <= 100);
///     Ok(())
/// }
/// # let _ = Listener::new("counter").on(count);
/// ```
#[derive(Clone)]
pub struct TreeHistory(Arc<HandlerCall>);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for TreeHistory {
    fn needs() -> Vec<Need> {
        vec![Need::Log, Need::MayGrant(ReadIdentity::GRANT)]
    }

    fn from_context(context: &Context<S>) -> Result<TreeHistory, Fault> {
        Ok(TreeHistory(context.log("TreeHistory")?))
    }
}

impl TreeHistory {
    /// Every thread of the message's tree, in the order in which they were opened.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn threads(&self) -> Result<Vec<ThreadId>, Fault> {
        self.0.host.tree(&self.0).await
    }

    /// The next page of threads in other trees that the same identity opened. The page begins after
    /// the thread `after`, or with the first thread. Empty without the grant [`ReadIdentity`].
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn others(&self, after: Option<&ThreadId>) -> Result<OtherThreads, Fault> {
        self.0.host.others(&self.0, after).await
    }

    /// Up to `limit` entries of a thread whose number is greater than `after`: at most 1024 of the
    /// message's own thread, and at most 256 of another thread. Empty if the listener may not read
    /// the thread.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn read(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, Fault> {
        self.0.host.read_thread(&self.0, thread, after, limit).await
    }
}
