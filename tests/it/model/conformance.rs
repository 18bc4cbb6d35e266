//! The rules that every [`Model`] keeps, as one suite of tests that each implementation passes.
//!
//! An implementation is given as a function from a reply to a model. The model gives this reply to
//! each prompt.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pumphouse::model::{
    Bounded, Call, Error, Kind, Model, Piece, Prompt, Recorded, Reply, Script, Scripted, Stop,
    Take, Usage,
};
use serde_json::json;

use super::fake::{Act, DONE, Server, events, say};

/// A reply, as every implementation can give it.
#[derive(Clone)]
struct Expected {
    texts: &'static [&'static str],
    calls: Vec<Call>,
    stop: Stop,
    usage: Usage,
    /// Whether it breaks off before its end.
    is_cut: bool,
}

impl Expected {
    fn of(texts: &'static [&'static str]) -> Expected {
        let usage = Usage::new(12, 5);
        Expected { texts, calls: Vec::new(), stop: Stop::End, usage, is_cut: false }
    }
}

type Made = Pin<Box<dyn Future<Output = Box<dyn Model>> + Send>>;
type Make = fn(&Expected) -> Made;

fn prompt() -> Prompt {
    Prompt::new("Be brief.").user("6*7?")
}

fn script(said: &Expected) -> Script {
    let mut script = Script::new();
    for text in said.texts {
        script = script.then(Piece::Text((*text).to_owned()));
    }
    for call in &said.calls {
        script = script.call(call.clone());
    }
    let script = script.usage(said.usage).stop(said.stop.clone());
    let characters = said.texts.iter().map(|text| text.chars().count()).sum();
    if said.is_cut { script.fails(characters, Kind::Cut) } else { script }
}

fn scripted(said: &Expected) -> Made {
    let model: Box<dyn Model> = Box::new(Scripted::replies([script(said)]));
    Box::pin(std::future::ready(model))
}

fn at_once(said: &Expected) -> Made {
    let model = Arc::new(Scripted::replies([script(said)]));
    let model: Box<dyn Model> = Box::new(Bounded::new("m", model).at_once(2));
    Box::pin(std::future::ready(model))
}

fn recorded(said: &Expected) -> Made {
    let takes = (0..4).map(|_| Take::new(prompt().digest(), script(said)));
    let model: Box<dyn Model> = Box::new(Recorded::new(takes));
    Box::pin(std::future::ready(model))
}

fn openai(said: &Expected) -> Made {
    let said = said.clone();
    Box::pin(async move {
        let event = |choice: serde_json::Value| {
            say(format!("data: {}\n\n", json!({ "choices": [choice] })))
        };
        let mut acts: Vec<Act> = vec![events()];
        acts.extend(said.texts.iter().map(|text| event(json!({ "delta": { "content": text } }))));
        for (index, call) in said.calls.iter().enumerate() {
            let function = json!({ "name": call.name, "arguments": call.arguments });
            let call = json!({ "index": index, "id": call.id, "function": function });
            acts.push(event(json!({ "delta": { "tool_calls": [call] } })));
        }
        if !said.is_cut {
            let word = match said.stop {
                Stop::Calls => "tool_calls",
                Stop::MaxTokens => "length",
                _ => "stop",
            };
            acts.push(event(json!({ "delta": {}, "finish_reason": word })));
            let usage = json!({
                "prompt_tokens": said.usage.input, "completion_tokens": said.usage.output
            });
            acts.push(say(format!("data: {}\n\n", json!({ "choices": [], "usage": usage }))));
            acts.push(say(DONE));
        }
        let server = Server::start(vec![acts]).await;
        Box::new(server.model().build().unwrap()) as Box<dyn Model>
    })
}

/// All pieces of a reply, and the error that it ends in.
async fn pieces(reply: &mut dyn Reply) -> (Vec<Piece>, Option<Error>) {
    let mut pieces = Vec::new();
    loop {
        match reply.next().await {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return (pieces, None),
            Err(error) => return (pieces, Some(error)),
        }
    }
}

fn text(pieces: &[Piece]) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        _ => None,
    };
    pieces.iter().filter_map(text).collect()
}

/// What is said comes in its order, and is the same as a whole however it is cut.
async fn text_is_what_was_said(make: Make) {
    let model = make(&Expected::of(&["It is ", "42", ": 日本 𝄞."])).await;
    let mut reply = model.turn(prompt()).await.unwrap();
    let (pieces, error) = pieces(&mut *reply).await;
    assert_eq!(error, None);
    assert_eq!(text(&pieces), "It is 42: 日本 𝄞.");
}

/// The last piece is a stop, and nothing comes after it.
async fn a_stop_is_the_last_piece(make: Make) {
    for stop in [Stop::End, Stop::MaxTokens] {
        let model = make(&Expected { stop: stop.clone(), ..Expected::of(&["It is"]) }).await;
        let mut reply = model.turn(prompt()).await.unwrap();
        let (pieces, error) = pieces(&mut *reply).await;
        assert_eq!((pieces.last(), error), (Some(&Piece::Stop(stop)), None));
        let stops = pieces.iter().filter(|piece| matches!(piece, Piece::Stop(_)));
        assert_eq!(stops.count(), 1, "{pieces:?}");
        assert_eq!(reply.next().await, Ok(None), "nothing comes after the stop");
        assert_eq!(reply.next().await, Ok(None), "and nothing the second time");
    }
}

/// Calls are whole, in their order, with the ids that they came with.
async fn calls_are_whole_and_in_order(make: Make) {
    let calls = vec![
        Call::new("c1", "add", r#"{"a": 6, "b": 7}"#),
        Call::new("c2", "add", r#"{"a": 1, "b": "\"x\" ü"}"#),
    ];
    let said =
        Expected { calls: calls.clone(), stop: Stop::Calls, ..Expected::of(&["Let me see."]) };
    let model = make(&said).await;
    let mut reply = model.turn(prompt()).await.unwrap();
    let (pieces, error) = pieces(&mut *reply).await;
    assert_eq!(error, None);
    let called = pieces.iter().filter_map(|piece| match piece {
        Piece::Call(call) => Some(call.clone()),
        _ => None,
    });
    assert_eq!(called.collect::<Vec<_>>(), calls);
    assert_eq!(pieces.last(), Some(&Piece::Stop(Stop::Calls)));
}

/// What a turn has used is told once, before the stop.
async fn usage_is_told_once(make: Make) {
    let model = make(&Expected::of(&["42"])).await;
    let mut reply = model.turn(prompt()).await.unwrap();
    let (pieces, _) = pieces(&mut *reply).await;
    let used: Vec<_> =
        pieces.iter().filter(|piece| matches!(piece, Piece::Usage(_))).cloned().collect();
    assert_eq!(used, [Piece::Usage(Usage::new(12, 5))]);
}

/// A future that is dropped and asked for again loses no piece.
async fn a_dropped_future_loses_nothing(make: Make) {
    let model = make(&Expected::of(&["one ", "two ", "three"])).await;
    let mut reply = model.turn(prompt()).await.unwrap();
    let mut came = Vec::new();
    loop {
        // Polled once and dropped, whether there was something or not.
        let next = match reply.next().now_or_never() {
            Some(next) => next,
            None => {
                tokio::task::yield_now().await;
                continue;
            }
        };
        match next.unwrap() {
            Some(piece) => came.push(piece),
            None => break,
        }
    }
    assert_eq!(text(&came), "one two three");
}

/// Two turns that are read side by side have each its own pieces.
async fn turns_stay_apart(make: Make) {
    let model = make(&Expected::of(&["one ", "two ", "three"])).await;
    let (first, second) = (model.turn(prompt()).await, model.turn(prompt()).await);
    let (mut first, mut second) = (first.unwrap(), second.unwrap());
    let (first, second) = tokio::join!(pieces(&mut *first), pieces(&mut *second));
    assert_eq!((text(&first.0), first.1), ("one two three".to_owned(), None));
    assert_eq!((text(&second.0), second.1), ("one two three".to_owned(), None));
}

/// A turn that nobody waits for any more doesn't harm the next one.
async fn a_dropped_turn_harms_nobody(make: Make) {
    let model = make(&Expected::of(&["one ", "two"])).await;
    drop(model.turn(prompt()).now_or_never());
    let mut reply = model.turn(prompt()).await.unwrap();
    drop(reply.next().await);
    drop(reply);
    let mut reply = model.turn(prompt()).await.unwrap();
    assert_eq!(text(&pieces(&mut *reply).await.0), "one two");
}

/// A reply that breaks off ends with an error, after what had come, and with nothing after that.
async fn a_cut_reply_ends_with_an_error(make: Make) {
    let model = make(&Expected { is_cut: true, ..Expected::of(&["It is 4"]) }).await;
    let mut reply = model.turn(prompt()).await.unwrap();
    let (pieces, error) = pieces(&mut *reply).await;
    assert_eq!((text(&pieces), error.map(|it| it.kind)), ("It is 4".to_owned(), Some(Kind::Cut)));
    assert!(!pieces.iter().any(|piece| matches!(piece, Piece::Stop(_))), "{pieces:?}");
    assert_eq!(reply.next().await, Ok(None), "an error is the last");
}

/// It says what it is in one line.
async fn a_model_describes_itself_in_a_line(make: Make) {
    let model = make(&Expected::of(&["42"])).await;
    let described = model.describe();
    assert!(!described.trim().is_empty() && described.lines().count() == 1, "{described:?}");
}

macro_rules! suite {
    ($($rule:ident),+ $(,)?) => {
        suite! { @of scripted: $($rule),+ }
        suite! { @of at_once: $($rule),+ }
        suite! { @of recorded: $($rule),+ }
        suite! { @of openai: $($rule),+ }
    };
    (@of $make:ident: $($rule:ident),+) => {
        mod $make {
            $(
                #[tokio::test]
                async fn $rule() {
                    super::$rule(super::$make).await;
                }
            )+
        }
    };
}

suite! {
    text_is_what_was_said,
    a_stop_is_the_last_piece,
    calls_are_whole_and_in_order,
    usage_is_told_once,
    a_dropped_future_loses_nothing,
    turns_stay_apart,
    a_dropped_turn_harms_nobody,
    a_cut_reply_ends_with_an_error,
    a_model_describes_itself_in_a_line,
}
