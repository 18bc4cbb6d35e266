//! A log that tests write entry by entry, as a pump writes one.

use std::sync::Arc;

use bytes::Bytes;
use pumphouse_ground::name::Name;
use pumphouse_listeners::action::words::{
    Action, ActionError, ActionKind, ActionResult, Mode, ResultValue, Status,
};
use pumphouse_listeners::agent::root;
use pumphouse_listeners::agent::words::{CognitionIn, CognitionOut, Dispatch, Response};

use crate::id::{EntryId, ThreadId};
use crate::log::{Batch, Draft, Flags, Log, MemoryLog, NewThread};
use crate::wire::Payload;

/// A text that no span without content may have.
pub(crate) const SECRET: &str = "secret4711";
/// The trace that the question belongs to.
pub(crate) const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A log that is written entry by entry. Entry N has the time 1000 N, in microseconds.
pub(crate) struct Written {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) thread: ThreadId,
    pub(crate) seq: u64,
    pub(crate) at: u64,
}

impl Written {
    pub(crate) async fn new() -> Written {
        let written = Written {
            log: Arc::new(MemoryLog::new()),
            thread: ThreadId::new("sess-a"),
            seq: 0,
            at: 0,
        };
        written.open(None, None).await;
        written
    }

    pub(crate) async fn open(&self, parent: Option<&str>, fork: Option<EntryId>) {
        let parent = parent.map(ThreadId::new);
        let new = NewThread { id: self.thread.clone(), parent, fork };
        let batch = Batch { threads: vec![new], entries: Vec::new(), marks: Vec::new() };
        self.log.append(batch).await.unwrap();
    }

    pub(crate) async fn put(
        &mut self,
        from: &str,
        to: &str,
        name: Name,
        body: Bytes,
        more: &[Flags],
    ) -> u64 {
        self.put_with(from, to, (name, body), |draft| {
            draft.flags = more.iter().fold(draft.flags, |all, it| all.with(*it));
        })
        .await
    }

    pub(crate) async fn put_with(
        &mut self,
        from: &str,
        to: &str,
        (name, body): (Name, Bytes),
        change: impl FnOnce(&mut Draft),
    ) -> u64 {
        (self.seq, self.at) = (self.seq + 1, self.at + 1_000);
        let id = EntryId::new(&self.thread, self.seq);
        let mut draft = Draft::new(id, self.at, from.into(), name, body);
        draft.to = (!to.is_empty()).then(|| to.into());
        draft.receivers = u32::from(from != to);
        change(&mut draft);
        if !to.is_empty() && draft.name == root(to) {
            draft.flags = draft.flags.with(Flags::TO_AGENT);
        }
        let batch = Batch { threads: Vec::new(), entries: vec![draft], marks: Vec::new() };
        self.log.append(batch).await.unwrap();
        self.seq
    }

    pub(crate) async fn say<P: Payload>(&mut self, from: &str, to: &str, it: &P) -> u64 {
        self.put(from, to, P::NAME, it.encode().unwrap().canonical(), &[]).await
    }

    /// Writes a message from the console to the agent ada.
    pub(crate) async fn ask(&mut self) -> u64 {
        let (name, body) = (root("ada"), asked());
        let meta = format!("<traceparent xmlns=\"urn:w3c\">{TRACEPARENT}</traceparent>");
        self.put_with("console", "ada", (name, body), |draft| {
            draft.flags = Flags::FROM_IDENTITY;
            draft.meta = Some(meta.into());
        })
        .await
    }

    pub(crate) async fn turn_begins(&mut self, turn: u64) -> u64 {
        let until = self.seq;
        let it = CognitionIn {
            turn,
            model: "small at http://llm.example.org:8080/v1".to_owned(),
            until,
            rendering: 1,
            mark: String::new(),
            rules: 1,
            asker: Some("console".to_owned()),
            is_last: None,
            waiting: None,
            digest: String::new(),
            bytes: 1,
            tokens_estimated: None,
            dispatch: Dispatch::Immediate,
            action_limits: None,
            max_tokens: Some(64),
            temperature: Some(0.5),
            result_bytes_max: None,
            attachments: Vec::new(),
            skipped: Vec::new(),
        };
        self.say("ada", "ada", &it).await
    }

    pub(crate) async fn turn_ends(&mut self, turn: u64, error: Option<&str>) -> u64 {
        let it = CognitionOut {
            turn,
            stop: if error.is_some() { "error" } else { "end" }.to_owned(),
            is_partial: false,
            truncated: false,
            error: error.map(str::to_owned),
            refused: None,
            waits_ms: None,
            completion_percentage: None,
            tokens_in: Some(100),
            tokens_out: Some(20),
            tokens_cached: None,
            tokens_cache_written: None,
            tokens_reasoning: None,
            answered_by: None,
            is_idle: false,
            went_out: None,
            calls: None,
            wrote_root: None,
            awaits: None,
            text: SECRET.to_owned(),
        };
        self.say("ada", "action", &it).await
    }

    pub(crate) async fn acts(&mut self) -> u64 {
        let it = Action {
            id: "sum".to_owned(),
            turn: Some(1),
            kind: ActionKind::Tool,
            mode: Mode::Sync,
            name: "calculate".to_owned(),
            parameters: Some(format!("{{\"expression\":\"{SECRET}\"}}")),
            ..Action::default()
        };
        self.say("ada", "action", &it).await
    }

    pub(crate) async fn result(&mut self, of: u64, error: Option<ActionError>) -> u64 {
        let it = ActionResult {
            id: "sum".to_owned(),
            turn: Some(1),
            of,
            name: "calculate".to_owned(),
            status: if error.is_some() { Status::Failed } else { Status::Ok },
            attempts: 1,
            dialect: None,
            show: None,
            because: None,
            answer: None,
            note: Vec::new(),
            warning: Vec::new(),
            error,
            value: Some(ResultValue::from(serde_json::Value::from(SECRET))),
        };
        self.say("action", "ada", &it).await
    }

    pub(crate) async fn response(&mut self) -> u64 {
        let it = Response {
            is_final: true,
            turn: 1,
            was_held: false,
            at: None,
            text: SECRET.to_owned(),
        };
        self.say("ada", "console", &it).await
    }
}

pub(crate) fn asked() -> Bytes {
    let space = root("ada").namespace().to_owned();
    format!("<ada xmlns=\"{space}\">{SECRET}</ada>").into()
}
