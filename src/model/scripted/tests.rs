//! Tests of scripted models: their replies, and the pauses in them.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::usage::Usage;

fn text(it: &str) -> Piece {
    Piece::Text(it.to_owned())
}

/// All pieces of a turn, and the error at its end, if there is one.
async fn heard(model: &Scripted, prompt: Prompt) -> (Vec<Piece>, Option<Error>) {
    let mut pieces = Vec::new();
    let mut reply = match model.turn(prompt).await {
        Ok(reply) => reply,
        Err(error) => return (pieces, Some(error)),
    };
    loop {
        match reply.next().await {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return (pieces, None),
            Err(error) => {
                assert_eq!(reply.next().await, Ok(None), "an error is the last");
                return (pieces, Some(error));
            }
        }
    }
}

fn at_turn(turn: u64) -> Prompt {
    Prompt { turn, ..Prompt::new("") }
}

#[tokio::test]
async fn replies_come_one_a_turn() {
    let check = async |repeat, turns: [Option<&str>; 4]| {
        let model = Scripted::repeating(["one", "two"], repeat);
        for (turn, expected) in (1..).zip(turns) {
            let (pieces, error) = heard(&model, at_turn(turn)).await;
            match expected {
                Some(expected) => assert_eq!(pieces, [text(expected), Piece::Stop(Stop::End)]),
                None => assert_eq!(error.map(|it| it.kind), Some(Kind::Spent)),
            }
        }
    };
    check(Repeat::Never, [Some("one"), Some("two"), None, None]).await;
    check(Repeat::Last, [Some("one"), Some("two"), Some("two"), Some("two")]).await;
    check(Repeat::All, [Some("one"), Some("two"), Some("one"), Some("two")]).await;
    let (_, error) = heard(&Scripted::replies([""; 0]), at_turn(1)).await;
    assert_eq!(error.unwrap().to_string(), "the script has 0 replies, and this is turn 1");
}

#[tokio::test]
async fn a_function_is_told_the_prompt_and_its_turn() {
    let model = Scripted::new(|prompt, turn| format!("{turn} {}", prompt.messages[0].text));
    let prompt = Prompt::new("").user("a").assistant("b").user("c");
    let (pieces, _) = heard(&model, prompt).await;
    assert_eq!(pieces, [text("2 a"), Piece::Stop(Stop::End)]);
}

#[tokio::test]
async fn pieces_are_of_so_many_characters() {
    let check = async |script: Script, expected: &[Piece]| {
        let (pieces, _) = heard(&Scripted::replies([script]), at_turn(1)).await;
        assert_eq!(pieces, expected);
    };
    let end = Piece::Stop(Stop::End);
    check(Script::text("aé日𝄞").chunks(3), &[text("aé日"), text("𝄞"), end.clone()]).await;
    check(Script::text("ab").chunks(3), &[text("ab"), end.clone()]).await;
    check(Script::text(""), &[text(""), end.clone()]).await;
    check(Script::new(), &[end]).await;
    let call = Call::new("c1", "add", "{\"a\": 1}");
    let script = Script::new().reasoning("ab").call(call.clone()).usage(Usage::new(3, 4));
    let expected = [
        Piece::Reasoning("a".to_owned()),
        Piece::Reasoning("b".to_owned()),
        Piece::Call(call),
        Piece::Usage(Usage::new(3, 4)),
        Piece::Stop(Stop::Calls),
    ];
    check(script.chunks(1).stop(Stop::Calls), &expected).await;
}

#[tokio::test]
async fn a_reply_fails_where_it_is_told_to() {
    let check = async |at, chunk, expected: &[&str]| {
        let script = Script::text("abcd").chunks(chunk).fails(at, Kind::Cut);
        let (pieces, error) = heard(&Scripted::replies([script]), at_turn(1)).await;
        assert_eq!(pieces, expected.iter().map(|it| text(it)).collect::<Vec<_>>());
        assert_eq!(error.map(|it| (it.kind, it.retry)), Some((Kind::Cut, true)));
    };
    check(0, 0, &[]).await;
    check(2, 0, &["ab"]).await;
    check(3, 2, &["ab", "c"]).await;
    check(4, 2, &["ab", "cd"]).await;
    check(9, 0, &["abcd"]).await;
}

/// A clock whose pauses end at once. The clock adds up their lengths.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn of(&self, model: Scripted) -> Scripted {
        let it = self.clone();
        model.sleeping(move |time| {
            let it = it.clone();
            async move {
                it.0.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
            }
        })
    }

    fn passed_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn time_passes_before_and_between_pieces() {
    let slow = Script::text("abc").chunks(1);
    let slow = slow.after(Duration::from_secs(5)).every(Duration::from_millis(10));
    let clock = Clock::default();
    let model = clock.of(Scripted::replies([slow]));
    let mut reply = model.turn(at_turn(1)).await.unwrap();
    for passed_ms in [5_000, 5_010, 5_020, 5_020] {
        assert!(reply.next().await.unwrap().is_some());
        assert_eq!(clock.passed_ms(), passed_ms);
    }
    assert_eq!(reply.next().await, Ok(None));
}

#[tokio::test]
async fn whoever_gives_up_waiting_loses_no_piece() {
    // Each pause is over when it has been polled three times.
    let slow = Script::text("abc").chunks(1).every(Duration::from_secs(10));
    let model = Scripted::replies([slow]).sleeping(|_| {
        let mut asked = 0;
        poll_fn(move |_| {
            asked += 1;
            if asked < 3 { Poll::Pending } else { Poll::Ready(()) }
        })
    });
    let mut reply = model.turn(at_turn(1)).await.unwrap();
    let (mut pieces, mut given_up) = (Vec::new(), 0);
    loop {
        match reply.next().now_or_never() {
            Some(piece) => match piece.unwrap() {
                Some(piece) => pieces.push(piece),
                None => break,
            },
            None => given_up += 1,
        }
    }
    assert_eq!(pieces, [text("a"), text("b"), text("c"), Piece::Stop(Stop::End)]);
    assert_eq!(given_up, 4);
}

#[tokio::test]
async fn a_reply_that_hangs_says_no_more() {
    let model = Scripted::replies([Script::text("abc").hangs(2)]);
    let mut reply = model.turn(at_turn(1)).await.unwrap();
    assert_eq!(reply.next().await, Ok(Some(text("ab"))));
    for _ in 0..3 {
        assert_eq!(reply.next().now_or_never(), None);
    }
}

const SHEET: &str = r#"# Adds, and says what came of it.
%% script chunk=4 every=20ms repeat=last window=8192

%% reply usage=120/40/80 after=1.5s

<thought>An addition.
%%% is no mark.</thought>

<action>…</action>

%% reasoning
It went well.

%% text
<response>42</response>
%% reply when="the weather" stop=max-tokens chunk=0
<response>It ra
%% reply fail=cut at=7 every=0s
<response>
%% reply fail=hang
%% call name=add id=c1
{"a": 1}
"#;

#[tokio::test]
async fn a_text_is_a_script() {
    let clock = Clock::default();
    let model = clock.of(Scripted::parse(SHEET).unwrap());
    assert_eq!(model.window(), Some(8_192));
    let words = |pieces: &[Piece]| {
        let texts = pieces.iter().map(|it| match it {
            Piece::Text(it) => it.clone(),
            Piece::Reasoning(it) => format!("({it})"),
            other => format!("{other:?}"),
        });
        texts.collect::<Vec<_>>().concat().replace(")(", "")
    };
    let (pieces, error) = heard(&model, at_turn(1)).await;
    assert_eq!(error, None);
    let stop = "Usage(Usage { input: 120, output: 40, cached: 80, cache_written: 0, \
                reasoning: 0, cost_micros: None })Stop(End)";
    let first = "<thought>An addition.\n%% is no mark.</thought>\n\n<action>…</action>";
    let expected = format!("{first}(It went well.)<response>42</response>{stop}");
    assert_eq!(words(&pieces), expected);
    assert_eq!(pieces[0], text("<tho"));
    let between = pieces.len() as u64 - 3;
    assert_eq!(clock.passed_ms(), 1_500 + 20 * between);
    let (pieces, _) = heard(&model, at_turn(1).user("How is the weather?")).await;
    assert_eq!(pieces, [text("<response>It ra"), Piece::Stop(Stop::MaxTokens)]);
    let (pieces, error) = heard(&model, at_turn(2)).await;
    assert_eq!((words(&pieces).as_str(), error.unwrap().kind), ("<respon", Kind::Cut));
    for turn in [3, 4, 100] {
        let mut reply = model.turn(at_turn(turn)).await.unwrap();
        let call = Call::new("c1", "add", "{\"a\": 1}");
        assert_eq!(reply.next().await, Ok(Some(Piece::Call(call))));
    }
}

#[tokio::test]
async fn a_call_without_arguments_is_in_the_reply() {
    let sheet =
        "%% reply\n%% call name=now\n\n%% call name=add id=c2\n{\"a\": 1}\n%% call name=list";
    let (pieces, _) = heard(&Scripted::parse(sheet).unwrap(), at_turn(1)).await;
    let calls = [("", "now", ""), ("c2", "add", "{\"a\": 1}"), ("", "list", "")];
    let calls = calls.map(|(id, name, arguments)| Piece::Call(Call::new(id, name, arguments)));
    assert_eq!(pieces[..calls.len()], calls);
}

#[tokio::test]
async fn a_reply_is_made_of_what_was_heard_where_it_says_so() {
    let sheet = "%% script repeat=all chunk=3\n\
                 %% reply heard={words}\n<response>{words}, says she: {words}.</response>\n\
                 %% reasoning\nHm, {words}.\n%% call name=ask id=c1\n{\"of\": \"{words}\"}\n\
                 %% reply\n{words}\n%% reply when=twice heard=WORDS chunk=0\nWORDS {words}\n";
    let model = Scripted::parse(sheet).unwrap();
    let said = async |prompt: Prompt| {
        let (pieces, error) = heard(&model, prompt).await;
        assert_eq!(error, None);
        let texts = pieces.iter().map(|it| match it {
            Piece::Text(it) | Piece::Reasoning(it) => it.clone(),
            Piece::Call(it) => format!("{} {}", it.id, it.arguments),
            _ => String::new(),
        });
        texts.collect::<Vec<_>>().concat()
    };
    let told = "[ada #7f3a9c]\n<ask xmlns=\"urn:x\"><of>\"AI\"</of></ask>";
    let expected = "<response>\"AI\", says she: \"AI\".</response>Hm, \"AI\".\
                    c1 {\"of\": \"\\\"AI\\\"\"}";
    assert_eq!(said(at_turn(1).user(told)).await, expected);
    assert_eq!(said(at_turn(2).user(told)).await, "{words}");
    assert_eq!(said(at_turn(2).user("{words}, twice")).await, "{words}, twice {words}");
}

#[test]
fn a_text_that_is_no_script_says_where() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Scripted::parse(text).unwrap_err().to_string(), expected, "{text}");
    };
    check("", "line 1: here is no reply; write one below a line `%% reply`");
    check(
        "\n\n# x\nHello",
        "line 4: here no reply has begun; begin with `%% reply`, or with # for a remark",
    );
    check("%% replay", "line 1: there is no part `replay`; did you mean `reply`?");
    check(
        "%% poem",
        "line 1: there is no part `poem`; there is script, reply, text, reasoning, call",
    );
    check("%% text", "line 1: `%% text` stands within a `%% reply`");
    check("%% reply\n%% script", "line 2: `%% script` stands before the replies");
    check("%% reply chunks=3", "line 1: there is no option `chunks`; did you mean `chunk`?");
    check("%% reply\n%% text chunk=3", "line 2: there is no option `chunk`; leave it out");
    check("%% reply chunk", "line 1: `chunk` has no value; write chunk=…");
    check("%% reply chunk=x", "line 1: `chunk=x`: a whole number is expected");
    check("%% reply chunk=1 chunk=2", "line 1: `chunk` stands there twice; keep one");
    check("%% reply when=\"a", "line 1: the quotes of `when` have no end");
    check(
        "%% reply after=3",
        "line 1: `after=3`: a time with a unit, such as 20ms or 1.5s, is expected",
    );
    check("%% reply usage=3", "line 1: `usage=3`: tokens as in 120/40 or 120/40/80 is expected");
    check("%% reply at=3", "line 1: `at` goes with `fail`");
    check("%% reply heard=", "line 1: `heard=`: a word that stands in the reply is expected");
    check("%% reply fail=cat", "line 1: there is no failure `cat`; did you mean `cut`?");
    check("%% reply\n%% call id=3", "line 2: a call has a name; write name=…");
    check("%% script repeat=ever\n", "line 1: `repeat=ever`: never, last or all is expected");
    let error = Scripted::read("no/such.script").unwrap_err().to_string();
    assert!(error.starts_with("no/such.script: "), "{error}");
}

#[tokio::test]
async fn a_file_names_its_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.script");
    std::fs::write(&file, "%% reply\nHello\n").unwrap();
    let model = Scripted::read(&file).unwrap();
    assert_eq!(model.describe(), "scripted by a.script");
    assert_eq!(heard(&model, at_turn(1)).await.0[0], text("Hello"));
    std::fs::write(&file, "%% replay").unwrap();
    let error = Scripted::read(&file).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1: ", file.display())), "{error}");
}
