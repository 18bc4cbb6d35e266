//! Naughty strings: each survives routing, the log and a restart byte for byte, or is refused with
//! a reason.

use std::fs;
use std::path::Path;

use pumphouse::limits::XmlLimits;
use pumphouse::listeners::echo::{Echo, echo};
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::wire::Code;
use pumphouse::xml::{Profile, escape_text, read};

use super::{Score, suites};

/// How many hold a character that XML forbids, such as U+0001 or U+FFFE.
pub(super) const FORBIDDEN: usize = 6;

#[tokio::test]
async fn naughty_strings_survive_route_log_and_restart() {
    let Some(suites) = suites() else { return };
    let (kept, refused) = survive(&strings(&suites)).await;
    kept.assert_none_wrong(500);
    refused.assert_none_wrong(FORBIDDEN);
    assert_eq!(refused.right, FORBIDDEN);
}

pub(super) fn strings(suites: &Path) -> Vec<String> {
    let text = fs::read_to_string(suites.join("blns/blns.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// How many are kept through route, log and restart, and how many are refused.
pub(super) async fn survive(strings: &[String]) -> (Score, Score) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let (mut kept, mut refused) = (Score::default(), Score::default());
    let pump = start(&file).await;
    let mut sent: Vec<(ThreadId, &String)> = Vec::new();
    for (number, text) in strings.iter().enumerate() {
        let said = Echo { text: text.clone() };
        if text.chars().all(is_allowed) {
            let echoed = pump.ask::<Echo>(said.clone()).await;
            let same = echoed.as_ref().is_ok_and(|it| it.text == *text);
            let told = pump.tell(said).await.unwrap();
            sent.push((told.thread, text));
            if !same {
                kept.wrong.push(format!("string {number}: echoed as {echoed:?}"));
            }
        } else {
            refused.count(is_refused(&pump, said).await.map_err(|it| format!("{number}: {it}")));
        }
    }
    pump.shutdown().await.unwrap();
    drop(pump);
    let pump = start(&file).await;
    for (thread, text) in sent {
        let entries = pump.log().read(&thread, 0, u64::MAX, 10).await.unwrap();
        let right = !entries.is_empty() && entries.iter().all(|it| is_kept(it.body.clone(), text));
        kept.count(right.then_some(()).ok_or_else(|| format!("{text:?} in {thread}")));
    }
    assert!(pump.log().verify(None).await.unwrap().is_sound());
    pump.shutdown().await.unwrap();
    (kept, refused)
}

async fn start(file: &Path) -> Pump {
    let log = SqliteLog::open(file, Durability::Normal).unwrap();
    let pump = pumphouse::builder().with(echo()).with(log).build().unwrap().start();
    pump.ready().await.unwrap();
    pump
}

/// Whether a payload out of the log is the text: as it was decoded, and as its bytes stand.
fn is_kept(body: bytes::Bytes, text: &str) -> bool {
    let mut bytes = r#"<echo xmlns="https://xml-pipeline.org/ns/echo/v1"><text>"#.to_owned();
    escape_text(text, &mut bytes);
    bytes.push_str("</text></echo>");
    let element = Element::from_canonical(body).unwrap();
    Echo::decode(&element).is_ok_and(|it| it.text == text) && element.canonical() == bytes
}

/// Neither a handler nor the wire can say it, and both are told which character it is.
async fn is_refused(pump: &Pump, said: Echo) -> Result<(), String> {
    let character = said.text.chars().find(|it| !is_allowed(*it)).unwrap();
    let name = format!("U+{:04X}", u32::from(character));
    let is_clear = |it: &str| it.contains(&name) && it.contains("is no XML character");
    let wire = format!("<text>{}</text>", said.text.replace('&', "&amp;").replace('<', "&lt;"));
    let error = read(wire, Profile::Wire, &XmlLimits::DOOR).unwrap_err();
    if !is_clear(&error.message) {
        return Err(format!("the wire: {error}"));
    }
    match pump.tell(said).await {
        Err(fault) if fault.code == Code::Malformed && is_clear(&fault.message) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn is_allowed(it: char) -> bool {
    matches!(it, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}
