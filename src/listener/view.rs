//! The view of a thread: what of its history a prompt would show.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::listener::context::{PAGE, all};
use crate::listener::{Apply, Context, Entry, Fold, FromContext, History, Need};
use crate::wire::Fault;
use crate::wire::core::{ContextCleared, ContextRestored};

/// What a prompt would show of the thread, up to the message at hand: its [`History`] without what
/// the clears in force hide. The log is what it was.
///
/// ```
/// use pumphouse::prelude::*;
///
/// /// Asks how much there is to read.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Count;
///
/// /// How much there is to read.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Counted {
///     messages: u64,
/// }
///
/// async fn count(view: View, _: Count) -> Result<Counted, Fault> {
///     Ok(Counted { messages: view.all().await?.len() as u64 })
/// }
///
/// let reader = Listener::new("reader").on(count);
/// assert!(pumphouse::builder().with(reader).build().is_ok());
/// ```
pub struct View {
    history: History,
    clears: Arc<Clears>,
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for View {
    fn needs() -> Vec<Need> {
        vec![Need::Log, Need::keep::<Clears>()]
    }

    fn from_context(it: &Context<S>) -> Result<View, Fault> {
        let Fold(clears) = Fold::from_context(it)?;
        Ok(View { history: History::from_context(it)?, clears })
    }
}

impl View {
    /// Up to `limit` entries in view whose number is greater than `after`.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn read(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
        let Some((first, last)) = self.hidden().map(RangeInclusive::into_inner) else {
            return self.history.read(after, limit).await;
        };
        if after + 1 >= first {
            return self.history.read(after.max(last), limit).await;
        }
        let before = usize::try_from(first - 1 - after).unwrap_or(usize::MAX).min(limit);
        let mut page = self.history.read(after, before).await?;
        if page.len() < limit {
            page.extend(self.history.read(last, limit - page.len()).await?);
        }
        Ok(page)
    }

    /// Every entry in view, the message at hand included.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn all(&self) -> Result<Vec<Entry>, Fault> {
        all(|after| Box::pin(self.read(after, PAGE))).await
    }

    /// The numbers of the entries that are hidden, if any are: they stand side by side.
    #[must_use]
    pub fn hidden(&self) -> Option<RangeInclusive<u64>> {
        self.clears.hidden()
    }
}

/// The clears of a thread that are in force. A fold; [`View`] keeps it where it is asked for.
///
/// What clears hide is one stretch, from the second entry on: each keeps the first entry, and of
/// those that were in view before what asked for it the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clears {
    /// The last entry that each of them hides, the newest clear last.
    upto: Vec<u64>,
}

impl Apply for Clears {
    fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() {
            return;
        }
        if let Some(it) = entry.decode_if::<ContextCleared>() {
            let asked = entry.cause().filter(|it| it.thread == *entry.thread());
            let asked = asked.map_or(entry.seq(), |it| it.seq);
            self.upto.push(asked.saturating_sub(it.kept_messages));
        } else if entry.is::<ContextRestored>() {
            self.upto.pop();
        }
    }
}

impl Clears {
    /// How many are in force.
    #[must_use]
    pub fn count(&self) -> usize {
        self.upto.len()
    }

    /// The numbers of the entries that are hidden, if any are: they stand side by side.
    #[must_use]
    pub fn hidden(&self) -> Option<RangeInclusive<u64>> {
        let last = self.upto.iter().copied().max().filter(|it| *it > 1)?;
        Some(2..=last)
    }

    /// Whether an entry is hidden.
    #[must_use]
    pub fn hides(&self, seq: u64) -> bool {
        self.hidden().is_some_and(|it| it.contains(&seq))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::{EntryId, ThreadId};
    use crate::log::{Draft, Flags};
    use crate::wire::Payload;

    /// What a thread comes to in which these happen, each because of the message before it.
    fn hidden(all: &[(u64, &str)]) -> Option<RangeInclusive<u64>> {
        let (thread, mut clears) = (ThreadId::new("sess-a"), Clears::default());
        for (seq, what) in all {
            let element = match what.split_once(' ') {
                Some((_, kept)) => {
                    ContextCleared { kept_messages: kept.parse().unwrap() }.encode().unwrap()
                }
                None => ContextRestored { was_cleared: true }.encode().unwrap(),
            };
            let name =
                if what.contains(' ') { ContextCleared::NAME } else { ContextRestored::NAME };
            let flags = if what.starts_with("no") { Flags::REFUSED } else { Flags::NONE };
            let id = EntryId::new(&thread, *seq);
            let draft = Draft::new(id, 1, "view".into(), name, Bytes::new());
            let cause = Some(EntryId::new(&thread, seq - 1));
            clears.apply(&Entry::fresh(&Draft { cause, flags, ..draft }, element));
        }
        clears.hidden()
    }

    #[test]
    fn a_clear_keeps_the_first_message_and_the_newest() {
        assert_eq!(hidden(&[]), None);
        // Asked for with the 21st: of the twenty before, the first and the last nine stay.
        assert_eq!(hidden(&[(22, "clear 10")]), Some(2..=11));
        assert_eq!(hidden(&[(22, "clear 1")]), Some(2..=20));
        assert_eq!(hidden(&[(22, "clear 19")]), Some(2..=2));
        assert_eq!(hidden(&[(22, "clear 20")]), None);
        assert_eq!(hidden(&[(22, "clear 4000")]), None);
        assert_eq!(hidden(&[(2, "clear 1")]), None);
    }

    #[test]
    fn clears_add_up_and_the_newest_is_taken_back_first() {
        let all = [(22, "clear 10"), (32, "clear 5"), (35, "clear 30"), (37, "undo"), (39, "undo")];
        let upto = |n: usize| hidden(&all[..n]).map(|it| *it.end());
        assert_eq!((1..=5).map(upto).collect::<Vec<_>>(), [11, 26, 26, 26, 11].map(Some));
        assert_eq!(hidden(&[(9, "undo"), (22, "clear 10")]), Some(2..=11));
    }

    #[test]
    fn what_was_refused_hides_nothing() {
        assert_eq!(hidden(&[(22, "no 10")]), None);
        assert_eq!(hidden(&[(22, "clear 10"), (24, "no")]), Some(2..=11));
    }
}
