//! The view of a thread: the entries of its history that an agent's prompt shows. A clear removes
//! entries from the view, but never from the log.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::listener::context::{PAGE, all};
use crate::listener::{Apply, Context, Entry, Fold, FromContext, History, Need};
use crate::wire::Fault;
use crate::wire::core::{ContextCleared, ContextRestored};

/// The entries of the [`History`], without those that a clear hides. [`Clears`] says which entries
/// these are.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
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

    fn from_context(context: &Context<S>) -> Result<View, Fault> {
        let Fold(clears) = Fold::from_context(context)?;
        Ok(View { history: History::from_context(context)?, clears })
    }
}

impl View {
    /// Up to `limit` entries of the view whose number is greater than `after`.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn read(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
        let (mut page, mut after) = (Vec::new(), after);
        for stretch in self.hidden() {
            let (first, last) = stretch.into_inner();
            let between = first.saturating_sub(after.saturating_add(1));
            let between = usize::try_from(between).unwrap_or(usize::MAX);
            let wanted = between.min(limit - page.len());
            let read = match wanted {
                0 => Vec::new(),
                _ => self.history.read(after, wanted).await?,
            };
            // The history may give fewer entries than it is asked for.
            let is_part = read.len() < wanted;
            page.extend(read);
            if is_part || page.len() == limit {
                return Ok(page);
            }
            after = after.max(last);
        }
        page.extend(self.history.read(after, limit - page.len()).await?);
        Ok(page)
    }

    /// Every entry of the view.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn all(&self) -> Result<Vec<Entry>, Fault> {
        all(|after| Box::pin(self.read(after, PAGE))).await
    }

    /// The ranges of the numbers of hidden entries, the lowest first.
    #[must_use]
    pub fn hidden(&self) -> Vec<RangeInclusive<u64>> {
        self.clears.hidden()
    }
}

/// A fold of a thread's clears that are in force. A clear is in force until a `context-restored`
/// takes it back. A handler that takes a [`View`] registers this fold.
///
/// A clear is an entry `context-cleared`. It hides the entries from number 2 to its `upto`, except
/// those in its `except`. A clear never hides its request or later entries. When several clears are
/// in force, an entry is hidden if any of them hides it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clears {
    /// For each clear, the oldest first: the entries that this clear and all earlier ones hide.
    in_force: Vec<Hidden>,
}

/// The entries that one or several clears hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hidden {
    /// The end of the hidden range: entries from number 2 to this one are hidden, unless they are
    /// exceptions.
    upto: u64,
    /// The exceptions: entries of the range that stay in view.
    except: BTreeSet<u64>,
    /// How many messages are hidden.
    messages: u64,
}

impl Apply for Clears {
    fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() {
            return;
        }
        if let Some(cleared) = entry.decode_if::<ContextCleared>() {
            self.clear(&cleared, entry);
        } else if entry.is::<ContextRestored>() {
            self.in_force.pop();
        }
    }
}

impl Clears {
    /// How many clears are in force.
    #[must_use]
    pub fn count(&self) -> usize {
        self.in_force.len()
    }

    /// The ranges of the numbers of hidden entries, the lowest first.
    #[must_use]
    pub fn hidden(&self) -> Vec<RangeInclusive<u64>> {
        self.in_force.last().map_or_else(Vec::new, Hidden::stretches)
    }

    /// How many messages are hidden. This is the count that prompts show; it leaves out bookkeeping
    /// entries.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.in_force.last().map_or(0, |it| it.messages)
    }

    /// Whether an entry is hidden.
    #[must_use]
    pub fn hides(&self, seq: u64) -> bool {
        self.in_force.last().is_some_and(|it| it.hides(seq))
    }

    fn clear(&mut self, cleared: &ContextCleared, entry: &Entry) {
        let asked = entry.cause().filter(|it| it.thread == *entry.thread());
        let asked = asked.map_or(entry.seq(), |it| it.seq);
        // A clear whose `upto` is too large still can't hide its request or later entries.
        let upto = cleared.upto.min(asked.saturating_sub(1));
        let except = cleared.except.iter().flatten().copied().collect();
        let new = Hidden { upto, except, messages: cleared.hidden };
        let before = self.in_force.last();
        self.in_force.push(before.map_or_else(|| new.clone(), |before| before.and(&new)));
    }
}

impl Hidden {
    fn hides(&self, seq: u64) -> bool {
        (2..=self.upto).contains(&seq) && !self.except.contains(&seq)
    }

    /// The entries that these clears or the clear `new` hide.
    fn and(&self, new: &Hidden) -> Hidden {
        let both = self.except.union(&new.except).copied();
        let except = both.filter(|it| !self.hides(*it) && !new.hides(*it)).collect();
        Hidden { upto: self.upto.max(new.upto), except, messages: new.messages }
    }

    fn stretches(&self) -> Vec<RangeInclusive<u64>> {
        let (mut all, mut from) = (Vec::new(), 2);
        for end in self.except.range(2..=self.upto.max(2)).copied().chain([self.upto + 1]) {
            if from < end {
                all.push(from..=end - 1);
            }
            from = end + 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::{EntryId, ThreadId};
    use crate::log::{Draft, Flags};
    use crate::wire::Payload;

    /// The hidden entries of a thread with these clears. Each item is an entry's number and a text.
    /// A clear's text is `clear`, the value of `upto`, and exceptions.
    /// A text of one word takes the newest clear back. If a text begins with `no`, the entry is
    /// refused. The cause of each entry is the entry before it.
    fn hidden(all: &[(u64, &str)]) -> Vec<RangeInclusive<u64>> {
        let (thread, mut clears) = (ThreadId::new("sess-a"), Clears::default());
        for (seq, what) in all {
            let words: Vec<&str> = what.split(' ').collect();
            let number = |it: &&str| it.parse::<u64>().unwrap();
            let (name, element) = if words.len() == 1 {
                let restored = ContextRestored { was_cleared: true };
                (ContextRestored::NAME, restored.encode().unwrap())
            } else {
                let upto = number(&words[1]);
                let except = words.get(2..).map(|it| it.iter().map(number).collect());
                let cleared = ContextCleared { kept_messages: 1, upto, except, hidden: upto };
                (ContextCleared::NAME, cleared.encode().unwrap())
            };
            let flags = if what.starts_with("no") { Flags::REFUSED } else { Flags::NONE };
            let id = EntryId::new(&thread, *seq);
            let draft = Draft::new(id, 1, "view".into(), name, Bytes::new());
            let cause = Some(EntryId::new(&thread, seq - 1));
            clears.apply(&Entry::fresh(&Draft { cause, flags, ..draft }, element));
        }
        let hidden = clears.hidden();
        for seq in 0..50 {
            let is_hidden = hidden.iter().any(|it| it.contains(&seq));
            assert_eq!(clears.hides(seq), is_hidden, "{seq} of {hidden:?}");
        }
        hidden
    }

    #[test]
    fn a_clear_hides_up_to_the_entry_that_it_names_but_for_those_it_excepts() {
        assert_eq!(hidden(&[]), []);
        assert_eq!(hidden(&[(22, "clear 5")]), [2..=5]);
        assert_eq!(hidden(&[(22, "clear 1")]), []);
        assert_eq!(hidden(&[(22, "clear 0")]), []);
        assert_eq!(hidden(&[(22, "clear 15 4 9 10")]), [2..=3, 5..=8, 11..=15]);
        assert_eq!(hidden(&[(22, "clear 5 2 5 9")]), [3..=4]);
        assert_eq!(hidden(&[(22, "clear 2 2")]), []);
        // A clear can hide neither the first entry nor entries after its request.
        assert_eq!(hidden(&[(22, "clear 4000 1")]), [2..=20]);
    }

    #[test]
    fn clears_add_up_and_the_newest_is_taken_back_first() {
        let all = [(22, "clear 11"), (32, "clear 26"), (35, "clear 4"), (37, "undo"), (39, "undo")];
        let upto = |n: usize| *hidden(&all[..n]).last().unwrap().end();
        assert_eq!((1..=5).map(upto).collect::<Vec<_>>(), [11, 26, 26, 26, 11]);
        assert_eq!(hidden(&[(9, "undo"), (22, "clear 11")]), [2..=11]);
        // The second clear may hide an exception of the first. Its own exceptions don't show an
        // entry that the first hides.
        let (one, two) = ((22, "clear 15 4 9"), (32, "clear 17 3 9 16"));
        assert_eq!(hidden(&[one, two]), [2..=8, 10..=15, 17..=17]);
        assert_eq!(hidden(&[one, two, (33, "undo")]), hidden(&[one]));
    }

    #[test]
    fn what_was_refused_hides_nothing() {
        assert_eq!(hidden(&[(22, "no 10")]), []);
        assert_eq!(hidden(&[(22, "clear 11"), (24, "no")]), [2..=11]);
    }
}
