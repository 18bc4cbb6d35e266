//! Tests of the spans that are made from the entries of threads.

use std::sync::Arc;

use bytes::Bytes;

use crate::id::{EntryId, ThreadId};
use crate::log::{Entry, Flags};
use crate::otel::written::{SECRET, TRACEPARENT, Written, asked};
use crate::otel::{Kind, Projection, Span, SpanId, TraceId, Value, names};
use pumphouse_ground::name::Name;
use pumphouse_listeners::action::words::ActionError;
use pumphouse_listeners::agent::root;
use pumphouse_listeners::agent::words::Stopped;

impl Written {
    /// Returns the spans that end after a position.
    async fn spans(&self, after: u64, content: bool) -> Vec<Span> {
        let mut projection = Projection::new(self.log.clone()).content(content);
        let mut spans = Vec::new();
        let entries: Vec<Arc<Entry>> = self.log.tail(after, 1_000).await.unwrap();
        for entry in entries {
            spans.extend(projection.take(&entry).await.unwrap());
        }
        spans
    }
}

/// Writes a thread in which an agent is asked, calls a tool in its first turn, and responds in its
/// second.
async fn worked() -> Written {
    let mut it = Written::new().await;
    it.ask().await;
    it.turn_begins(1).await;
    let action = it.acts().await;
    it.turn_ends(1, None).await;
    it.result(action, None).await;
    it.turn_begins(2).await;
    it.turn_ends(2, None).await;
    it.response().await;
    it
}

fn entry(seq: u64) -> EntryId {
    EntryId::new(&ThreadId::new("sess-a"), seq)
}

fn text(span: &Span, named: names::Named) -> Option<&str> {
    match span.attribute(named)? {
        Value::Text(it) => Some(it),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn work_turns_and_actions_are_spans_in_one_trace() {
    let spans = worked().await.spans(0, false).await;
    let work = SpanId::of_work(&entry(1), "ada");
    let shape = |it: &Span| (it.name.clone(), it.id, it.parent, it.start_us, it.end_us);
    let shapes: Vec<_> = spans.iter().map(shape).collect();
    let chat = |seq| ("chat small".to_owned(), SpanId::of(&entry(seq)), Some(work));
    let with = |(name, id, parent): (String, SpanId, Option<SpanId>), start, end| {
        (name, id, parent, start, end)
    };
    let tool = ("execute_tool calculate".to_owned(), SpanId::of(&entry(3)), Some(work));
    assert_eq!(
        shapes,
        [
            with(chat(2), 2_000, 4_000),
            with(tool, 3_000, 5_000),
            with(chat(6), 6_000, 7_000),
            with(("invoke_agent ada".to_owned(), work, None), 1_000, 8_000),
        ]
    );
    for it in &spans {
        assert_eq!(it.trace, TraceId::of(&ThreadId::new("sess-a")));
        assert_eq!(text(it, names::CONVERSATION_ID), Some("sess-a"));
        assert_eq!(text(it, names::AGENT_NAME), Some("ada"));
        assert_eq!(it.failure, None);
    }
}

#[tokio::test]
async fn a_turn_says_what_was_asked_of_which_model_and_what_it_took() {
    let spans = worked().await.spans(0, false).await;
    let chat = &spans[0];
    assert_eq!(chat.kind, Kind::Client);
    assert_eq!(text(chat, names::OPERATION_NAME), Some("chat"));
    assert_eq!(text(chat, names::REQUEST_MODEL), Some("small"));
    assert_eq!(text(chat, names::PROVIDER_NAME), Some("llm.example.org"));
    assert_eq!(chat.attribute(names::SERVER_PORT), Some(&Value::Whole(8_080)));
    assert_eq!(chat.attribute(names::REQUEST_MAX_TOKENS), Some(&Value::Whole(64)));
    assert_eq!(chat.attribute(names::INPUT_TOKENS), Some(&Value::Whole(100)));
    let reasons = Value::Texts(vec!["stop".to_owned()]);
    assert_eq!(chat.attribute(names::FINISH_REASONS), Some(&reasons));
    let work = &spans[3];
    assert_eq!(work.attribute(names::INPUT_TOKENS), Some(&Value::Whole(200)));
    assert_eq!(work.attribute(names::OUTPUT_TOKENS), Some(&Value::Whole(40)));
    assert_eq!(work.attribute(names::SERVER_PORT), None);
}

#[tokio::test]
async fn spans_are_the_same_from_whatever_position_they_are_made() {
    let written = worked().await;
    let all = written.spans(0, true).await;
    for after in 1..8 {
        let later = written.spans(after, true).await;
        assert_eq!(later, all[all.len() - later.len()..], "after {after}");
    }
    assert_eq!(written.spans(4, false).await.len(), 3);
    assert_eq!(written.spans(7, false).await.len(), 1);
}

#[tokio::test]
async fn texts_of_messages_are_in_a_span_only_where_content_is_wanted() {
    let mut written = worked().await;
    written.ask().await;
    written.turn_begins(3).await;
    written.turn_ends(3, Some(SECRET)).await;
    let bare = written.spans(0, false).await;
    assert!(!format!("{bare:?}").contains(SECRET), "{bare:?}");
    let spans = written.spans(0, true).await;
    let has = |at: usize, named| text(&spans[at], named).is_some_and(|it| it.contains(SECRET));
    assert!(has(0, names::OUTPUT_MESSAGES));
    assert!(has(1, names::TOOL_CALL_ARGUMENTS) && has(1, names::TOOL_CALL_RESULT));
    assert!(has(3, names::INPUT_MESSAGES) && has(3, names::OUTPUT_MESSAGES));
    assert_eq!(spans[4].failure.as_ref().unwrap().message.as_deref(), Some(SECRET));
}

#[tokio::test]
async fn content_is_cut_where_it_is_long() {
    let mut it = Written::new().await;
    it.ask().await;
    it.turn_begins(1).await;
    let long = "é".repeat(10_000);
    let error = Some(ActionError { code: "P0011".to_owned(), message: long });
    let action = it.acts().await;
    it.result(action, error).await;
    let spans = it.spans(0, true).await;
    let message = spans[0].failure.as_ref().unwrap().message.as_ref().unwrap();
    assert!((8_000..=8_192).contains(&message.len()), "{}", message.len());
}

#[tokio::test]
async fn a_fault_is_the_type_of_an_error() {
    let mut it = Written::new().await;
    it.ask().await;
    it.turn_begins(1).await;
    let action = it.acts().await;
    let error = ActionError { code: "P0016".to_owned(), message: SECRET.to_owned() };
    it.result(action, Some(error)).await;
    it.turn_ends(1, Some("no")).await;
    let stopped =
        Stopped { turns: 1, reason: "budget".to_owned(), until: 5, text: SECRET.to_owned() };
    it.say("ada", "console", &stopped).await;
    let spans = it.spans(0, false).await;
    let kinds: Vec<_> = spans.iter().map(|it| text(it, names::ERROR_TYPE).unwrap()).collect();
    assert_eq!(kinds, ["P0016", "error", "budget"]);
    assert!(spans.iter().all(|it| it.failure.as_ref().unwrap().message.is_none()));
}

#[tokio::test]
async fn what_is_under_way_ends_with_its_thread() {
    let mut it = Written::new().await;
    it.ask().await;
    it.turn_begins(1).await;
    it.acts().await;
    assert_eq!(it.spans(0, false).await, []);
    let name = Name::of("urn:x", "cancelled");
    let body = Bytes::from_static(b"<cancelled xmlns=\"urn:x\"></cancelled>");
    it.put("core", "", name, body, &[Flags::CANCELS]).await;
    let spans = it.spans(0, false).await;
    let names: Vec<&str> = spans.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["execute_tool calculate", "chat small", "invoke_agent ada"]);
    let kinds: Vec<_> = spans.iter().map(|it| text(it, names::ERROR_TYPE).unwrap()).collect();
    assert_eq!(kinds, ["cancelled", "unfinished", "cancelled"]);
    assert_eq!(it.spans(3, false).await, spans);
}

#[tokio::test]
async fn the_traceparent_of_a_push_is_a_link_of_the_work() {
    let spans = worked().await.spans(0, false).await;
    let linked: Vec<bool> = spans.iter().map(|it| it.link.is_some()).collect();
    assert_eq!(linked, [false, false, false, true]);
    let link = spans[3].link.unwrap();
    assert_eq!(format!("00-{}-{}-01", link.trace, link.span), TRACEPARENT);
}

#[tokio::test]
async fn a_thread_below_belongs_to_the_trace_and_to_the_action_that_called() {
    let mut it = Written::new().await;
    it.ask().await;
    it.turn_begins(1).await;
    let action = it.acts().await;
    let above = (it.thread.clone(), it.seq);
    (it.thread, it.seq) = (ThreadId::new("sess-a.ada"), 0);
    it.open(Some("sess-a"), None).await;
    let key = crate::listener::key_meta(&format!("sess-a/{action}"));
    it.put_with("action", "ada", (root("ada"), asked()), |draft| draft.meta = Some(key)).await;
    it.turn_begins(1).await;
    it.turn_ends(1, None).await;
    it.response().await;
    (it.thread, it.seq) = above;
    it.result(action, None).await;
    it.turn_ends(1, None).await;
    it.response().await;
    let spans = it.spans(0, false).await;
    let below = &spans[1];
    assert_eq!(text(below, names::THREAD_ID), Some("sess-a.ada"));
    assert_eq!((&*below.name, below.parent), ("invoke_agent ada", Some(SpanId::of(&entry(3)))));
    assert!(spans.iter().all(|it| text(it, names::CONVERSATION_ID) == Some("sess-a")));
    // Wherever a projection begins, its spans are the same: later entries of the parent thread
    // don't change them.
    for after in 1..10 {
        let later = it.spans(after, false).await;
        assert_eq!(later, spans[spans.len() - later.len()..], "after {after}");
    }
}

#[tokio::test]
async fn a_fork_has_spans_of_its_own_work_only() {
    let mut it = worked().await;
    let all = it.spans(0, false).await;
    let last = it.seq;
    it.thread = ThreadId::new("sess-b");
    it.seq = 2;
    it.open(None, Some(entry(2))).await;
    it.ask().await;
    it.turn_begins(2).await;
    it.turn_ends(2, None).await;
    it.response().await;
    let own = it.spans(last, false).await;
    assert_eq!(
        own.iter().map(|it| &*it.name).collect::<Vec<_>>(),
        ["chat small", "invoke_agent ada"]
    );
    assert!(own.iter().all(|it| it.trace == TraceId::of(&ThreadId::new("sess-b"))));
    assert!(own.iter().all(|one| all.iter().all(|it| it.id != one.id)));
}

#[tokio::test]
async fn spans_with_content_have_other_ids_in_a_trace_of_their_own() {
    let written = worked().await;
    let (bare, content) = (written.spans(0, false).await, written.spans(0, true).await);
    assert_eq!(bare.len(), content.len());
    for (bare, content) in bare.iter().zip(&content) {
        assert_eq!(content.trace, bare.trace.with_content());
        assert_eq!(content.id, bare.id.with_content());
        assert_eq!(content.parent, bare.parent.map(|it| it.with_content()));
        assert_ne!((content.trace, content.id), (bare.trace, bare.id));
    }
}
