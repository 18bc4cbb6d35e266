//! Compares the log in a file with the log in memory, over random histories.

use proptest::prelude::*;

use super::*;
use crate::log::conformance::{entry, note, thread, wait};
use crate::log::entry::Mark;
use crate::log::memory::MemoryLog;

/// A step of a random history. The numbers choose among the threads and entries that exist.
#[derive(Clone, Debug)]
enum Step {
    Open { parent: Option<u8>, fork: Option<(u8, u8)> },
    Append { entries: Vec<(u8, u8, u8)>, marks: Vec<(u8, u8, u8)> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open = (proptest::option::of(0..8u8), proptest::option::of((0..8u8, 0..6u8)))
        .prop_map(|(parent, fork)| Step::Open { parent, fork });
    let number = || (any::<u8>(), any::<u8>(), any::<u8>());
    let append =
        (proptest::collection::vec(number(), 0..5), proptest::collection::vec(number(), 0..4))
            .prop_map(|(entries, marks)| Step::Append { entries, marks });
    proptest::collection::vec(prop_oneof![1 => open, 3 => append], 1..24)
}

/// Makes the batch of a step. The batch is mostly valid and sometimes invalid, so that refusals are
/// compared as well.
fn batch_of(step: &Step, opened: &mut Vec<String>, lasts: &dyn Fn(&str) -> u64) -> Batch {
    let mut batch = Batch::default();
    match step {
        Step::Open { parent, fork } => {
            let id = format!("t{}", opened.len());
            let parent = parent.map(|at| thread(&format!("t{at}")));
            let fork = fork.map(|(at, seq)| entry(&format!("t{at}/{}", seq + 1)));
            batch.threads.push(NewThread { id: thread(&id), parent, fork });
            opened.push(id);
        }
        Step::Append { entries, marks } => {
            let mut next = std::collections::HashMap::new();
            for (choice, link, extra) in entries {
                let id = format!("t{}", usize::from(*choice) % (opened.len() + 1));
                let seq = next.entry(id.clone()).or_insert_with(|| lasts(&id));
                *seq += if *extra == 255 { 2 } else { 1 };
                let mut draft = note(&format!("{id}/{seq}"));
                draft.receivers = u32::from(extra % 3);
                if link % 3 == 0 && *seq > 1 {
                    draft.cause =
                        Some(entry(&format!("{id}/{}", 1 + u64::from(*link) % (*seq - 1))));
                }
                if link % 7 == 0 {
                    draft.client_id = Some(format!("c{}", extra % 16).into());
                    draft.flags = Flags::of_bits(u32::from(extra % 2));
                }
                batch.entries.push(draft);
            }
            for (choice, seq, attempt) in marks {
                let id = format!("t{}", usize::from(*choice) % (opened.len() + 1));
                let seq = 1 + u64::from(*seq) % (lasts(&id) + 1).max(1);
                let entry = entry(&format!("{id}/{seq}"));
                let (listener, attempt) = (format!("l{}", attempt % 3).into(), u32::from(*attempt));
                let as_of = Some(u64::from(attempt)).filter(|_| choice % 8 == 0);
                batch.marks.push(match choice % 4 {
                    0 => Mark::Started { entry, listener, attempt, as_of },
                    2 => Mark::Stopped { entry, listener },
                    _ => Mark::Consumed { entry, listener, attempt },
                });
            }
        }
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn a_file_answers_as_memory_does(steps in steps()) {
        let (_directory, path) = place();
        let mut file = open(&path);
        let memory = MemoryLog::new();
        let mut opened = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let lasts = |id: &str| {
                let record = wait(memory.thread(&thread(id))).unwrap();
                record.map_or(0, |it| it.last_seq)
            };
            let batch = batch_of(step, &mut opened, &lasts);
            let kept = |it: Receipt| (it.first_position, it.entries, it.head.number);
            let ours = wait(file.append(batch.clone())).map(kept);
            let theirs = wait(memory.append(batch)).map(kept);
            prop_assert_eq!(ours, theirs);
            if at % 7 == 6 {
                drop(file);
                file = open(&path);
            }
        }
        prop_assert_eq!(wait(file.tail(0, 999)), wait(memory.tail(0, 999)));
        prop_assert_eq!(wait(file.threads(None, 999)), wait(memory.threads(None, 999)));
        prop_assert_eq!(wait(file.open_entries()), wait(memory.open_entries()));
        for id in &opened {
            let id = thread(id);
            prop_assert_eq!(wait(file.thread(&id)), wait(memory.thread(&id)));
            for (after, upto, limit) in [(0, 99, 99), (1, 4, 2), (2, 99, 1)] {
                let ours = wait(file.read(&id, after, upto, limit));
                prop_assert_eq!(ours, wait(memory.read(&id, after, upto, limit)));
            }
        }
        for log in [&file as &dyn Log, &memory] {
            let report = wait(log.verify(None)).unwrap();
            prop_assert!(report.is_sound(), "{:?}", report.findings);
        }
    }
}
