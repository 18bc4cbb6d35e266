//! Models in manifests, and listeners that name them.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pumphouse::manifest::{Manifest, Mistakes};
use pumphouse::model::{Model, Models, Piece, Price, Prompt, Scripted, UnknownModel};
use pumphouse::prelude::*;
use serde::Deserialize;

use super::{builder, environment};
use crate::program::Scene;

/// Wants a poem.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/poet/v1")]
struct Wish {
    about: String,
}

/// A poem.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/poet/v1")]
struct Poem {
    text: String,
}

#[derive(Deserialize)]
struct Settings {
    model: String,
}

async fn write(State(model): State<Arc<dyn Model>>, Wish { about }: Wish) -> Option<Poem> {
    let mut reply = model.turn(Prompt::new("").user(about)).await.ok()?;
    let mut text = String::new();
    while let Ok(Some(piece)) = reply.next().await {
        if let Piece::Text(more) = piece {
            text += &more;
        }
    }
    Some(Poem { text })
}

fn poet() -> Factory {
    Factory::with_models("poet", |it: Settings, models: &Models| {
        let model = models.get(&it.model)?;
        Ok::<_, UnknownModel>(Listener::with_state("poet", model).on(write))
    })
}

fn fixed(text: &str) -> Arc<dyn Model> {
    Arc::new(Scripted::replies([text]))
}

fn read_in(file: impl AsRef<Path>, text: &str) -> Result<Manifest, Mistakes> {
    let mine = |it: &mut Builder| it.model("mine", fixed("of mine"));
    let builder = builder().with((poet(), mine));
    Manifest::read(file.as_ref(), text.as_bytes(), &environment, &builder)
}

#[tokio::test]
async fn a_listener_gets_the_model_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("replies.txt"), "%% reply\nRoses are red.\n").unwrap();
    for (model, expected) in [("fixed", "Roses are red."), ("mine", "of mine")] {
        let text = format!(
            "models: {{fixed: {{use: scripted, file: replies.txt, window: 4_096}}}}\n\
             listeners: [{{use: poet, settings: {{model: {model}}}}}]\n"
        );
        let manifest = read_in(folder.path().join("organism.yaml"), &text).unwrap();
        assert_eq!(manifest.models.get("fixed").unwrap().window(), Some(4_096));
        let pump = pumphouse::builder().with(manifest).build().unwrap().start();
        let Poem { text } = pump.ask(Wish { about: "roses".into() }).await.unwrap();
        assert_eq!(text, expected);
        pump.shutdown().await.unwrap();
    }
}

#[test]
fn a_server_is_described_without_its_key() {
    let text = "
        models:
          hosted:
            use: openai
            url: http://llm.example.org/v1?key=${SECRET}
            model: large
            key: ${SECRET}
            headers: {X-Key: \"${SECRET}\"}
            window: 131072
            max_tokens: 2048
            temperature: 0.2
            price: {input: 0.15, output: 0.60}
            extra: {top_k: 40, stream_options: null}
            proxy: none
            limits: {first_byte_time_max: 5m, event_bytes_max: 2 MiB}
    ";
    let it = read_in("o.yaml", text).unwrap().models.get("hosted").unwrap();
    assert_eq!(it.describe(), "large at http://llm.example.org/v1");
    assert_eq!((it.window(), it.max_tokens()), (Some(131_072), Some(2_048)));
    assert_eq!(it.price(), Some(Price::new(0.15, 0.60)));
    assert!(!format!("{it:?}").contains("s3cret"), "{it:?}");
}

#[test]
fn a_model_that_isnt_there_is_told_where_it_is_named() {
    let check = |text: &str, expected: &str| {
        let mistakes = read_in("o.yaml", text).err().unwrap().to_string();
        assert!(mistakes.starts_with(expected), "{mistakes}");
    };
    check(
        "listeners: [{use: poet, settings: {model: mines}}]",
        "o.yaml:1:43: there is no model `mines`; did you mean `mine`?",
    );
    check("models: {fixed: {use: scripted, file: no/such.txt}}", "o.yaml:1:39: no/such.txt: ");
    check(
        "models: {mine: {use: openai, url: \"http://a\", model: m}}",
        "o.yaml:1:10: the program has a model `mine` already",
    );
    check(
        "models: {a: {use: openai, url: \"http://a\", model: m, headers: {a b: c}}}",
        "o.yaml:1:63: \"a b\" is no name of a header",
    );
    check(
        "models: {a: {use: openai, url: \"https://a\", model: m, authority: no.pem}}",
        "o.yaml:1:66: no.pem: ",
    );
}

#[test]
fn two_models_of_one_name_are_a_complaint() {
    let twice = |it: &mut Builder| {
        it.model("a", fixed("one"));
        it.model("a", fixed("two"));
    };
    let complaints = builder().with(twice).build().map(drop).unwrap_err();
    let expected = "more than one model is called a; give each a name of its own";
    assert_eq!(complaints.to_string(), expected);
}

#[test]
fn check_shows_models() {
    let scene = Scene::new();
    scene.write("replies.txt", "%% reply\nHello.\n");
    scene.write(
        "organism.yaml",
        "models:\n  fixed: {use: scripted, file: replies.txt}\n  \
         local: {use: openai, url: \"http://127.0.0.1:9/v1\", model: small}\n",
    );
    let told = scene.run(&["check"]).code(0);
    told.says(&[
        "model     fixed  scripted by replies.txt",
        "model     local  small at http://127.0.0.1:9/v1",
    ]);
    let models = scene.run(&["check", "--json"]).code(0).objects()[0]["models"].clone();
    assert_eq!(models[1]["name"], "local");
    scene.write("replies.txt", "%% replay\n");
    scene.run(&["check"]).code(1).says(&["organism.yaml:2:32: replies.txt:1: there is no part"]);
}

/// One model for all agents: `at_once` bounds what they ask of it together.
#[tokio::test]
async fn a_model_has_as_many_replies_at_once_as_its_manifest_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("replies.txt"), "%% reply\na\n%% reply\nb\n").unwrap();
    let text = "models: {m: {use: scripted, file: replies.txt, at_once: 1}}\n";
    let read = read_in(folder.path().join("organism.yaml"), text).unwrap();
    let model = read.models.get("m").unwrap();
    let one = model.turn(Prompt::new("Go.")).await.unwrap();
    let mut two = model.turn(Prompt::new("Go."));
    assert!((&mut two).now_or_never().is_none());
    drop(one);
    assert!(two.await.is_ok());
}
