//! The writer's queue of batches. Chooses the batches of the next commit.

use std::collections::VecDeque;

use flume::{Receiver, Sender};

use crate::limits::HURRY_US;
use crate::log::admit::Job;
use crate::log::entry::Receipt;
use crate::log::error::Error;
use crate::log::sqlite::limits::{
    BATCHES_MAX, GROUP_BYTES_MAX, GROUP_ENTRIES_IN_HURRY, GROUP_ENTRIES_MAX,
};

/// About how many microseconds one entry takes, with a page to write and to sync. While the
/// priority lane is in use, the entries of a commit may take about as long as its sync. If a sync
/// is slow, fewer entries wouldn't make the wait much shorter.
const ENTRY_US: usize = 20;

/// A batch's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precedence {
    /// The priority lane: the batch overtakes the batches that wait for a commit.
    Ahead,
    Behind,
}

/// A batch, and the channel of its caller.
pub(super) struct QueuedBatch {
    pub(super) job: Job,
    pub(super) answer: Sender<Result<Receipt, Error>>,
}

/// A message to the writer.
pub(super) enum Command {
    Append(Precedence, QueuedBatch),
    Close(Sender<Result<(), Error>>),
}

/// The writer's next action.
pub(super) enum Next {
    /// Commit these batches together.
    Group(Vec<QueuedBatch>),
    /// Close the log, and tell the caller of `close`. `None` if the log is closed because every
    /// handle is gone.
    Close(Option<Sender<Result<(), Error>>>),
}

/// The batches that the writer has taken out of its inbox and that wait for a commit.
#[derive(Default)]
pub(super) struct Queue {
    ahead: Vec<QueuedBatch>,
    behind: VecDeque<QueuedBatch>,
    /// Set once the log is to be closed. From then on no further batch is taken, but the batches
    /// that wait are still written. The inner value is the channel of the caller that closes the
    /// log, if there is one.
    close: Option<Option<Sender<Result<(), Error>>>>,
    /// Whether the last commit was reserved for batches of the priority lane.
    was_ahead: bool,
    /// The time of the last use of the priority lane, in microseconds.
    ahead_us: Option<u64>,
}

impl Queue {
    /// Returns what the writer does next, and waits if there is nothing to do. `shared_us` is the
    /// fixed cost of a commit.
    pub(super) fn next(
        &mut self,
        inbox: &Receiver<Command>,
        shared_us: u64,
        now_us: impl FnOnce() -> u64,
    ) -> Next {
        if self.is_empty() && self.close.is_none() {
            match inbox.recv() {
                Ok(command) => self.take(command),
                Err(_) => self.close = Some(None),
            }
        }
        // Batches for which there is no room stay in the inbox, which is bounded as well.
        while self.close.is_none()
            && self.behind.len() < BATCHES_MAX
            && let Ok(command) = inbox.try_recv()
        {
            self.take(command);
        }
        let is_empty = self.is_empty();
        match self.close.take_if(|_| is_empty) {
            Some(closed) => Next::Close(closed),
            None => Next::Group(self.group(shared_us, now_us())),
        }
    }

    fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.behind.is_empty()
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Append(Precedence::Ahead, it) => self.ahead.push(it),
            Command::Append(Precedence::Behind, it) => self.behind.push_back(it),
            Command::Close(closed) => self.close = Some(Some(closed)),
        }
    }

    /// Takes the batches of the next commit. Batches of the priority lane come first. As long as
    /// there are such batches, every second commit has no others. The commits in between also take
    /// other batches, up to a bound.
    fn group(&mut self, shared_us: u64, now_us: u64) -> Vec<QueuedBatch> {
        let mut group = std::mem::take(&mut self.ahead);
        if !group.is_empty() {
            self.ahead_us = Some(now_us);
            self.was_ahead = !self.was_ahead;
            if self.was_ahead {
                return group;
            }
        }
        self.was_ahead = false;
        let short = usize::try_from(shared_us).unwrap_or(usize::MAX) / ENTRY_US;
        let short = short.clamp(GROUP_ENTRIES_IN_HURRY, GROUP_ENTRIES_MAX);
        self.ahead_us = self.ahead_us.filter(|it| now_us.abs_diff(*it) < HURRY_US);
        let entries_max = if self.ahead_us.is_some() { short } else { GROUP_ENTRIES_MAX };
        let (mut entries, mut bytes) = (0, 0);
        while entries < entries_max
            && bytes < GROUP_BYTES_MAX
            && let Some(next) = self.behind.pop_front()
        {
            let job = &next.job;
            entries += job.entries.len() + job.marks.len() / 4;
            bytes += job.entries.iter().map(|it| it.body.len()).sum::<usize>();
            group.push(next);
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::admit::Origins;
    use crate::log::conformance::batch;

    /// A batch of one entry.
    fn one(id: &str) -> QueuedBatch {
        let (answer, _) = flume::bounded(1);
        QueuedBatch { job: Job::seal(batch(&[], &[id]), &Origins::default()), answer }
    }

    /// Sends batches of one entry each, all at once, and returns the commits that the queue makes
    /// of them. In `batches`, the letter `a` stands for a batch in the priority lane, and `b` for a
    /// batch in the other lane.
    fn groups(batches: &str, shared_us: u64) -> Vec<String> {
        let (commands, inbox) = flume::bounded(512);
        let (closed, _) = flume::bounded(1);
        for (seq, letter) in (1..).zip(batches.chars()) {
            let place = if letter == 'a' { Precedence::Ahead } else { Precedence::Behind };
            commands.send(Command::Append(place, one(&format!("{letter}/{seq}")))).unwrap();
        }
        commands.send(Command::Close(closed)).unwrap();
        let mut queue = Queue::default();
        let mut groups = Vec::new();
        while let Next::Group(group) = queue.next(&inbox, shared_us, || 0) {
            let entries = group.iter().flat_map(|it| &it.job.entries);
            groups.push(entries.map(|it| it.id.to_string()).collect::<Vec<_>>().join(" "));
        }
        groups
    }

    #[test]
    fn what_goes_ahead_is_a_commit_of_its_own_and_both_keep_their_order() {
        assert_eq!(groups("bbb", 0), ["b/1 b/2 b/3"]);
        assert_eq!(groups("babab", 0), ["a/2 a/4", "b/1 b/3 b/5"]);
        assert_eq!(groups("", 0), [""; 0]);
    }

    #[test]
    fn commits_are_small_while_others_go_ahead_of_them() {
        let many = "b".repeat(300);
        assert_eq!(groups(&many, 0).len(), 1);
        let hurried = |shared_us| groups(&format!("{many}a"), shared_us).len() - 1;
        assert_eq!(hurried(0), 300_usize.div_ceil(GROUP_ENTRIES_IN_HURRY));
        // On a slow disk more batches share a sync.
        assert_eq!(hurried(2_000), 3);
        assert_eq!(hurried(100_000), 1);
    }

    #[test]
    fn commits_are_large_again_half_a_second_after_the_last_that_went_ahead() {
        let (commands, inbox) = flume::bounded(512);
        for seq in 1..=100 {
            let place = if seq == 1 { Precedence::Ahead } else { Precedence::Behind };
            commands.send(Command::Append(place, one(&format!("t/{seq}")))).unwrap();
        }
        let mut queue = Queue::default();
        let at = [0, 1, HURRY_US - 1, HURRY_US];
        let sizes = at.map(|now_us| match queue.next(&inbox, 0, || now_us) {
            Next::Group(group) => group.len(),
            Next::Close(_) => 0,
        });
        let few = GROUP_ENTRIES_IN_HURRY;
        assert_eq!(sizes, [1, few, few, 99 - 2 * few]);
    }

    #[test]
    fn what_always_goes_ahead_keeps_nobody_waiting_for_good() {
        let (commands, inbox) = flume::bounded(512);
        let put =
            |place: Precedence, id: &str| commands.send(Command::Append(place, one(id))).unwrap();
        let mut queue = Queue::default();
        put(Precedence::Behind, "b/1");
        let mut sizes = Vec::new();
        for seq in 1..=4 {
            put(Precedence::Ahead, &format!("a/{seq}"));
            let Next::Group(group) = queue.next(&inbox, 0, || 0) else {
                panic!("nobody closed it")
            };
            sizes.push(group.len());
        }
        assert_eq!(sizes, [1, 2, 1, 1]);
    }
}
