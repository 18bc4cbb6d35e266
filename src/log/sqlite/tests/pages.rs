//! Pages of a thread: two readers may read one half each.

use super::*;

/// Appends a thread with 2,000 entries, and a fork of it that has 3,000 entries, 1,500 of them
/// shared.
fn long(log: &dyn Log) {
    let entries: Vec<Draft> = (1..=2_000).map(|seq| note(&format!("a/{seq}"))).collect();
    keep(log, Batch { entries, ..batch(&["a"], &[]) });
    let fork = NewThread { fork: Some(entry("a/1500")), ..session("f") };
    let entries: Vec<Draft> = (1_501..=3_000).map(|seq| note(&format!("f/{seq}"))).collect();
    keep(log, Batch { threads: vec![fork], entries, ..batch(&[], &[]) });
}

#[test]
fn a_page_is_what_stands_behind_a_number_however_long_it_is() {
    let (_directory, path) = place();
    let log = open(&path);
    long(&log);
    let limits = [1, 2, 255, 511, 512, 513, 1_000, 1_024, 4_096, usize::MAX];
    let bounds = [(0, u64::MAX), (0, 2_900), (1, u64::MAX), (999, 1_700), (1_400, u64::MAX)];
    for (name, end) in [("a", 2_000), ("f", 3_000)] {
        for (limit, (after, upto)) in limits.iter().flat_map(|it| bounds.map(|at| (*it, at))) {
            let page = wait(log.read(&thread(name), after, upto, limit)).unwrap();
            let seqs: Vec<u64> = page.iter().map(|it| it.id.seq).collect();
            let expected: Vec<u64> = (after + 1..=upto.min(end)).take(limit).collect();
            assert_eq!(seqs, expected, "{limit} of {name} after {after} up to {upto}");
        }
    }
}

#[test]
fn a_page_goes_on_behind_entries_that_are_missing() {
    let (_directory, path) = place();
    let log = open(&path);
    long(&log);
    wait(log.close()).unwrap();
    let missing = "DELETE FROM entries WHERE thread = 1 AND seq BETWEEN 11 AND 900";
    tamper::change(&path, missing);
    let log = SqliteLog::open_read_only(&path).unwrap();
    for limit in [512, 1_024] {
        let (mut after, mut seqs) = (1, Vec::new());
        loop {
            let page = wait(log.read(&thread("a"), after, u64::MAX, limit)).unwrap();
            let Some(last) = page.last() else { break };
            after = last.id.seq;
            seqs.extend(page.iter().map(|it| it.id.seq));
        }
        let expected: Vec<u64> = (2..=10).chain(901..=2_000).collect();
        assert_eq!(seqs, expected, "{limit} at a time");
    }
}
