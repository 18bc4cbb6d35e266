//! Verifies a log: recomputes every digest and the whole chain in one pass. A log passes its
//! commits with their threads and entries to [`Verifier`] in order.

use std::fmt;

use crate::id::{EntryId, ThreadId};
use crate::log::chain;
use crate::log::chain::Commit;
use crate::log::chain::CommitRow;
use crate::log::chain::Link;
use crate::log::chain::Origin;
use crate::log::entry::Entry;
use crate::log::head::Head;
use crate::log::identity::Identity;

/// How many findings are reported one by one. Further findings are only counted, since nobody reads
/// so many.
const FINDINGS_MAX: usize = 1_000;

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The head of the last commit. Keep a copy elsewhere, and pass it as `expect` to a later
    /// verification.
    pub head: Head,
    /// How many commits were read, not counting commit 0.
    pub commits: u64,
    /// How many entries were read.
    pub entries: u64,
    /// How many threads were read.
    pub threads: u64,
    /// The findings, in the order in which they were made. The list ends after 1,000 findings.
    pub findings: Vec<Finding>,
    /// How many further findings there were after those in the list.
    pub findings_more: u64,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// One thing that is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of finding.
    pub wrong: Wrong,
    /// The entry, if the finding is about one.
    pub entry: Option<EntryId>,
    /// The commit, if the finding is about one.
    pub commit: Option<u64>,
    /// A description of the finding.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entry) = &self.entry {
            write!(f, "{entry}: ")?;
        }
        if let Some(commit) = self.commit {
            write!(f, "commit {commit}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wrong {
    /// The chain's hash doesn't match the commit's contents, or commit 0 is missing.
    Chain,
    /// An entry doesn't match its digest, or can't be read.
    Digest,
    /// No commit has the expected head.
    Head,
    /// The row with the log's identity, or commit 0, was changed after the log was made.
    Identity,
    /// A link (a cause, a reply, a parent or a fork) leads to nothing, or to a later entry or
    /// thread. Or the text that an entry shares with an earlier entry is missing.
    Link,
    /// A mark can't be read, or is for an entry that isn't there.
    Mark,
    /// A page of the file is damaged or can't be read.
    Page,
    /// A table, an index, a view or a protecting trigger was changed or is missing, or the database
    /// has a trigger that isn't the log's.
    Schema,
    /// A row is missing or out of order.
    Sequence,
    /// A row belongs to no commit, or shared text belongs to no entry.
    Unchained,
}

/// Verifies commits one after another. Of the earlier commits, the verifier keeps only the last
/// one's head, with which it checks the next commit.
pub(super) struct Verifier {
    expect: Option<Head>,
    /// The commit that is being verified.
    at: Option<(CommitRow, Link)>,
    head: Head,
    /// The position of the next entry, and the number of the next thread.
    next_position: u64,
    next_thread: u64,
    space: Vec<u8>,
    report: Report,
}

impl Verifier {
    /// Begins with commit 0, whose chain hash covers only the log's identity.
    pub(super) fn new(
        identity: &Identity,
        genesis: Option<&CommitRow>,
        expect: Option<Head>,
    ) -> Verifier {
        let head = Head { number: 0, chain: chain::genesis(identity) };
        let mut verifier = Verifier::at(head, 0, 0, expect);
        match genesis {
            None => verifier.wrong(Wrong::Chain, None, Some(0), "it is missing".to_owned()),
            Some(row) if row.chain == head.chain => verifier.begins_with(identity, row),
            Some(row) => {
                let what = "format, uuid, key or time of making was changed".to_owned();
                verifier.wrong(Wrong::Identity, None, Some(0), what);
                verifier.head = row.head();
            }
        }
        verifier.compare();
        verifier
    }

    /// Checks the other fields of commit 0. It must cover no entry, thread or mark, and its writer
    /// must be the log's own UUID.
    fn begins_with(&mut self, identity: &Identity, row: &CommitRow) {
        let Commit { writer, last_position, last_thread, .. } = row.commit;
        if (last_position, last_thread) != (0, 0) || !row.marks.is_empty() {
            let what = "it covers an entry, a thread or a mark, and must cover none".to_owned();
            self.wrong(Wrong::Identity, None, Some(0), what);
        }
        if writer != identity.uuid {
            let what = "its writer isn't the one that made the log".to_owned();
            self.wrong(Wrong::Identity, None, Some(0), what);
        }
    }

    #[cfg(feature = "sqlite")]
    /// Begins after a commit that is trusted without a check.
    pub(super) fn after(row: &CommitRow) -> Verifier {
        let Commit { last_position, last_thread, .. } = row.commit;
        Verifier::at(row.head(), last_position, last_thread, None)
    }

    fn at(head: Head, position: u64, thread: u64, expect: Option<Head>) -> Verifier {
        Verifier {
            expect,
            at: None,
            head,
            next_position: position.saturating_add(1),
            next_thread: thread.saturating_add(1),
            space: Vec::new(),
            report: Report {
                head,
                commits: 0,
                entries: 0,
                threads: 0,
                findings: Vec::new(),
                findings_more: 0,
            },
        }
    }

    pub(super) fn wrong(
        &mut self,
        wrong: Wrong,
        entry: Option<EntryId>,
        commit: Option<u64>,
        what: String,
    ) {
        if self.report.findings.len() == FINDINGS_MAX {
            self.report.findings_more += 1;
            return;
        }
        self.report.findings.push(Finding { wrong, entry, commit, what });
    }

    /// Begins a commit. All threads and entries that are passed before `end` belong to this commit.
    pub(super) fn begin(&mut self, row: CommitRow) {
        let Commit { number, .. } = row.commit;
        let next = self.head.number + 1;
        if number != next {
            let what = format!("commit {next} should stand here");
            self.wrong(Wrong::Sequence, None, Some(number), what);
        }
        let link = Link::new(self.head.chain, row.commit);
        self.at = Some((row, link));
    }

    pub(super) fn thread(&mut self, number: u64, id: &ThreadId, origin: Option<&Origin>) {
        self.report.threads += 1;
        if number != self.next_thread {
            let what = format!("the row of thread number {} is missing", self.next_thread);
            let commit = self.commit();
            self.wrong(Wrong::Sequence, None, commit, what);
        }
        self.next_thread = number + 1;
        if let Some((_, link)) = &mut self.at {
            link.thread(id, origin);
        }
    }

    pub(super) fn entry(&mut self, entry: &Entry, origin: Option<&Origin>) {
        self.report.entries += 1;
        self.position(entry.position);
        if chain::of_entry(entry, origin, &mut self.space) != entry.digest {
            let what = "it doesn't fit its digest: it was changed".to_owned();
            let commit = self.commit();
            self.wrong(Wrong::Digest, Some(entry.id.clone()), commit, what);
        }
        if let Some((_, link)) = &mut self.at {
            link.entry(&entry.digest);
        }
    }

    #[cfg(feature = "sqlite")]
    /// Counts an entry of which only the digest can be read, and adds a finding for it.
    pub(super) fn unreadable(
        &mut self,
        position: u64,
        id: Option<EntryId>,
        digest: &[u8; 32],
        why: &str,
    ) {
        self.report.entries += 1;
        self.position(position);
        let commit = self.commit();
        self.wrong(Wrong::Digest, id, commit, why.to_owned());
        if let Some((_, link)) = &mut self.at {
            link.entry(digest);
        }
    }

    /// Finishes the commit, and checks its chain hash.
    pub(super) fn end(&mut self) {
        let Some((row, link)) = self.at.take() else { return };
        let Commit { number, last_position, last_thread, .. } = row.commit;
        if self.next_position != last_position.saturating_add(1) {
            let what = format!("its entries should end at position {last_position}");
            self.wrong(Wrong::Sequence, None, Some(number), what);
            self.next_position = last_position.saturating_add(1);
        }
        if self.next_thread != last_thread.saturating_add(1) {
            let what = format!("its threads should end at number {last_thread}");
            self.wrong(Wrong::Sequence, None, Some(number), what);
            self.next_thread = last_thread.saturating_add(1);
        }
        if link.finish(&row.marks) != row.chain {
            let what = "its chain doesn't fit what it holds: something was changed".to_owned();
            self.wrong(Wrong::Chain, None, Some(number), what);
        }
        self.report.commits += 1;
        self.head = row.head();
        self.compare();
    }

    /// The number of the commit that is being verified.
    pub(super) fn commit(&self) -> Option<u64> {
        self.at.as_ref().map(|(row, _)| row.commit.number)
    }

    #[cfg(feature = "sqlite")]
    /// The last position and the last thread number that were read so far.
    pub(super) fn covered(&self) -> (u64, u64) {
        (self.next_position - 1, self.next_thread - 1)
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn head(&self) -> Head {
        self.head
    }

    pub(super) fn finish(mut self) -> Report {
        if let Some(expect) = self.expect {
            let what = format!("the head {expect} isn't on the chain");
            self.wrong(Wrong::Head, None, None, what);
        }
        self.report.head = self.head;
        self.report
    }

    fn position(&mut self, position: u64) {
        if position != self.next_position {
            let what = format!("position {} is missing", self.next_position);
            let commit = self.commit();
            self.wrong(Wrong::Sequence, None, commit, what);
        }
        self.next_position = position + 1;
    }

    /// If the head is the expected one, notes that it was found. Otherwise [`Verifier::finish`]
    /// would report it as missing.
    fn compare(&mut self) {
        if self.expect == Some(self.head) {
            self.expect = None;
        }
    }
}
