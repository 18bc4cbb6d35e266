//! The decoder of server-sent events, checked against test cases and streams from elsewhere.

use std::fs;

use proptest::prelude::*;
use pumphouse::model::sse::{Decoder, Error, Event};
use serde_json::{Value, json};

use crate::suites::suites;

const EVENT_BYTES_MAX: usize = 1 << 20;

/// Every event, fed in these chunks.
fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    read(chunks).unwrap()
}

/// The same, or why there are no more.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Event>, Error> {
    let (mut decoder, mut events) = (Decoder::new(EVENT_BYTES_MAX), Vec::new());
    for mut chunk in chunks {
        while let Some(event) = decoder.next(&mut chunk)? {
            events.push(event);
        }
    }
    Ok(events)
}

#[test]
fn the_contract_is_kept() {
    let Some(suites) = suites() else { return };
    let cases = fs::read_to_string(suites.join("sse-contract/cases.jsonl")).unwrap();
    let mut count = 0;
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let chunks: Vec<Vec<u8>> = case["chunks_hex"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| bytes(it.as_str().unwrap()))
            .collect();
        let whole = chunks.concat();
        for chunks in [chunks, vec![whole.clone()], whole.chunks(1).map(<[u8]>::to_vec).collect()] {
            let events = events(chunks.iter().map(Vec::as_slice));
            match case.get("events") {
                Some(expected) => assert_eq!(json!(standard(&events)), *expected, "{line}"),
                None => checks(&case, &events),
            }
        }
        count += 1;
    }
    assert!(count >= 61, "only {count} cases were there");
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The events that the standard knows, without what is empty.
fn standard(events: &[Event]) -> Vec<Value> {
    let known = events.iter().filter_map(|it| Some((it, it.data.as_ref()?)));
    let shown = known.map(|(event, data)| {
        let mut shown = json!({ "data": data });
        for (key, value) in [("type", &event.kind), ("id", &event.id)] {
            if !value.is_empty() {
                shown[key] = json!(value);
            }
        }
        shown
    });
    shown.collect()
}

/// What the SDKs of providers check, event by event: `event` begins a new one, or else `data`.
fn checks(case: &Value, events: &[Event]) {
    let checks = case["checks"].as_array().unwrap();
    if checks.is_empty() {
        assert_eq!(events.len(), 1, "{case}");
        return;
    }
    let mut left = events.iter();
    let mut event: Option<&Event> = None;
    for check in checks {
        let (what, expected) = (check[0].as_str().unwrap(), check[1].as_str().unwrap());
        match what {
            "event" => {
                event = left.next();
                let kind =
                    event.unwrap_or_else(|| panic!("no further event: {case}")).kind.as_str();
                let expected = expected.trim_matches('"').replace("None", "");
                assert_eq!(kind, expected, "{case}");
            }
            "data" => {
                let data = event.unwrap().data.clone().unwrap_or_default();
                assert_eq!(data, expected.trim_matches('"'), "{case}");
            }
            "json()" => {
                let data = event.unwrap().data.as_deref().unwrap_or_default();
                let expected = expected.replace("True", "true").replace("False", "false");
                let expected: Value = serde_json::from_str(&expected).unwrap();
                assert_eq!(serde_json::from_str::<Value>(data).unwrap(), expected, "{case}");
            }
            other => panic!("an unknown check: {other}"),
        }
    }
    assert_eq!(left.next(), None, "{case}");
}

/// Streams that are mostly nearly right.
fn streams() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "data", "event", "id", "retry", ":", ": ", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n",
            " ", "7", "\0", "\u{FEFF}", "é", "日本", "𝄞", "\u{2028}", "data: {\"a\": 1}\n\n",
        ]).prop_map(str::to_owned),
        1 => "[a-z]{1,4}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn every_chunking_gives_the_same_events(
        text in streams(),
        mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = text.as_bytes();
        let whole = events([bytes]);
        prop_assert_eq!(&events(bytes.chunks(1)), &whole);
        let mut at: Vec<usize> = cuts.drain(..).map(|it| it.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        prop_assert_eq!(&events(at.windows(2).map(|it| &bytes[it[0]..it[1]])), &whole);
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(read([&bytes[..]]), read(bytes.chunks(1)));
    }
}
