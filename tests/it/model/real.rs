//! A real model behind a real server, if one is given: `just model URL`.

use pumphouse::model::{Kind, Model, Piece, Prompt, Remote, Stop, Wire};

use super::text_of;

/// The server that was named, if one was.
#[expect(clippy::disallowed_methods, reason = "a server is nothing that a test can make")]
fn server() -> Option<String> {
    let url = std::env::var("PUMPHOUSE_MODEL").ok();
    if url.is_none() {
        crate::skipped("PUMPHOUSE_MODEL names no server");
    }
    url
}

#[tokio::test]
async fn a_real_model_is_heard_to_its_end() {
    let Some(url) = server() else { return };
    let model = Remote::at(Wire::OpenAiChat, url, "default").build().unwrap();
    println!("{}", model.describe());
    for tokens in [1, 16, 64] {
        let mut prompt = Prompt::new("You answer in one sentence.").user("What is XML for?");
        prompt.max_tokens = Some(tokens);
        let mut reply = model.turn(prompt).await.unwrap();
        let mut pieces = Vec::new();
        while let Some(piece) = reply.next().await.unwrap() {
            pieces.push(piece);
        }
        println!("{} pieces: {:?}", pieces.len(), text_of(&pieces));
        let Some(Piece::Stop(stop)) = pieces.last() else { panic!("no stop: {pieces:?}") };
        assert!(matches!(stop, Stop::End | Stop::MaxTokens), "{stop:?}");
    }
    // Whoever hangs up in the middle leaves the server free for the next.
    let mut prompt = Prompt::new("").user("Count to a thousand.");
    prompt.max_tokens = Some(400);
    drop(model.turn(prompt.clone()).await.unwrap());
    prompt.max_tokens = Some(8);
    let mut reply = model.turn(prompt).await.unwrap();
    while reply.next().await.unwrap().is_some() {}
    // More than it can read at once is refused, or cut off by a server that notices late.
    let error = model.turn(Prompt::new("").user("word ".repeat(20_000))).await.unwrap_err();
    println!("too long: {error}");
    let kinds = [Kind::PromptTooLong, Kind::Refused, Kind::Failed, Kind::Cut];
    assert!(kinds.contains(&error.kind), "{error:?}");
}
