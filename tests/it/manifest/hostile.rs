//! Manifests that no person wrote. Too large ones are refused at once, by a limit that has a name,
//! and none causes a panic.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::read;
use crate::suites;

/// Refused for this reason, and at once.
#[expect(clippy::disallowed_methods, reason = "the test takes the time of a refusal")]
fn refused(text: impl AsRef<[u8]>, reason: &str) {
    let start = Instant::now();
    let mistakes = read(text).err().expect(reason);
    assert!(start.elapsed() < Duration::from_secs(2), "{reason}: {:?}", start.elapsed());
    let [one] = mistakes.all() else { panic!("{reason}: {mistakes}") };
    assert!(one.message.contains(reason), "{reason}: {mistakes}");
}

#[test]
fn what_is_too_much_is_refused_at_once() {
    refused(vec![b'a'; 10 << 20], "manifest_bytes_max is 262144");
    refused("name: x\n".repeat(1 << 17), "manifest_bytes_max is 262144");
    refused("[".repeat(200_000), "manifest_depth_max is 32");
    refused("{a: ".repeat(60_000), "manifest_depth_max is 32");
    refused("- ".repeat(100_000), "manifest_depth_max is 32");
    refused(format!("name: [{}]", "1, ".repeat(80_000)), "manifest_nodes_max is 32768");
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let inside = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs += &format!("a{level}: &a{level} [{inside}]\n");
    }
    refused(&laughs, "manifest_nodes_max is 32768");
    refused("a: &a [*a]", "this alias stands within what it stands for");
    refused("a: &a\n  b: *a", "this alias stands within what it stands for");
}

#[test]
fn many_tabs_before_values_take_no_long_time() {
    let lines: Vec<String> = (0..900).map(|n| format!("k{n}:\t{}\n", "x".repeat(250))).collect();
    let mistakes = read(lines.concat()).err().unwrap();
    let [one] = mistakes.all() else { panic!("all tabs were read: {mistakes}") };
    assert!(one.message.contains("':' must be followed by"), "{mistakes}");
}

#[test]
fn what_is_no_text_is_refused_with_its_place() {
    refused(b"name: x\n\xff\xfe", "a byte that is no UTF-8");
    refused(b"\x7fELF\x02\x01\x01\0\0\0", "the control character U+007F");
    refused("name: a\u{0}b", "the control character U+0000");
    refused(b"\x1f\x8b\x08", "a byte that is no UTF-8");
    refused("name: \u{1b}[31mred", "the control character U+001B");
    let at = read("name: x\ndata: é\u{1}").err().unwrap().all()[0].place;
    assert_eq!((at.line, at.column), (2, 8));
}

/// None of the suite's cases is a manifest; the bad ones are refused with a place.
#[test]
fn the_yaml_suite_crashes_nothing() {
    let Some(folder) = suites::suites() else { return };
    let text = std::fs::read_to_string(folder.join("yaml/cases.jsonl")).unwrap();
    let (mut bad, mut count) = (0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (id, yaml) = (&case["id"], case["yaml"].as_str().unwrap());
        count += 1;
        let Err(mistakes) = read(yaml) else { continue };
        for it in mistakes.all() {
            let lines = yaml.lines().count().max(1) + 1;
            assert!((1..=lines).contains(&it.place.line), "{id}: {mistakes}");
            assert!(it.place.column >= 1 && !it.message.is_empty(), "{id}: {mistakes}");
        }
        bad += usize::from(case["expect"] == "reject");
    }
    println!("{count} texts, {bad} of them bad: each refused with its place");
    assert!(count > 200 && bad > 40, "{bad} of {count}");
    let missed = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let refused = read(case["yaml"].as_str().unwrap()).is_err();
        (case["expect"] == "reject" && !refused).then(|| case["id"].to_string())
    };
    let missed: Vec<String> = text.lines().filter_map(missed).collect();
    assert_eq!(missed, [] as [String; 0], "these were let through");
}

/// A sound manifest with a few bytes changed is right or wrong, but no panic.
#[test]
fn no_change_of_a_manifest_crashes_its_reader() {
    let sound = "name: &n trial\ndoors: [{tcp: \"${HOST}:0\"}]\nlisteners:\n  - use: greeter\n    \
                 settings: {word: *n, times: 2, places: [{x: 1}]}\nlimits: |\n  x\n";
    let signs = b"\0\t\n\r !\"#$%&'*,-.0:<=>?@[]`a{|}~\x80\xc3";
    let mut state = 1_u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for _ in 0..3_000 {
        let mut bytes = sound.as_bytes().to_vec();
        for _ in 0..=next(4) {
            let (at, sign) = (next(bytes.len()), signs[next(signs.len())]);
            match next(3) {
                0 => bytes[at] = sign,
                1 => bytes.insert(at, sign),
                _ => drop(bytes.remove(at)),
            }
        }
        drop(read(&bytes));
    }
}
