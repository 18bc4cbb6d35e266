//! Models in manifests, and listeners that name them.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pumphouse::manifest::{Manifest, Mistakes};
use pumphouse::model::{Model, Models, Piece, Price, PriceSource, Prices, Prompt};
use pumphouse::model::{Scripted, UnknownModel};
use pumphouse::prelude::*;
use serde::Deserialize;

use super::{builder, environment};
use crate::model::fake::{Server, say};
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
    Factory::with("poet", |it: Settings, models: &Models| {
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
fn a_key_that_is_too_short_to_be_hidden_is_a_mistake() {
    let check = |more: &str, place: &str| {
        let text =
            format!("models: {{m: {{use: openai, url: \"http://a.org\", model: m, {more}}}}}");
        let told = read_in("o.yaml", &text).err().unwrap().to_string();
        assert!(told.contains("bytes is too short to be hidden"), "{told}");
        assert!(told.starts_with(&format!("o.yaml:1:{place}")), "{told}");
        assert!(!told.contains("1234567"), "{told}");
    };
    check("key: \"${KEY:-1234567}\"", "63");
    check("headers: {X-Api-Key: \"1234567\"}", "79");
    check("headers: {Authorization: \"Bearer 1234567\"}", "83");
    check("proxy: \"http://me:1234567@127.0.0.1:1\"", "65");
    let fine =
        "models: {m: {use: openai, url: \"http://a.org\", model: m, headers: {X-Title: pump}}}";
    assert!(read_in("o.yaml", fine).is_ok());
}

#[test]
fn a_secret_that_is_an_ordinary_word_is_warned_of_unless_the_manifest_says_that_it_is_none() {
    let environment = |name: &str| match name {
        "API_VERSION" => Some("2023-06-01".to_owned()),
        "DB_PASSWORD" => Some("postgres".to_owned()),
        _ => None,
    };
    let check = |more: &str, secrets: &[&str]| {
        let text =
            format!("models: {{m: {{use: openai, url: \"http://a.org\", model: m, {more}}}}}");
        let manifest = Manifest::read("o.yaml".as_ref(), text.as_bytes(), &environment, &builder());
        let plan = pumphouse::builder().with(manifest.unwrap()).build().unwrap();
        let warnings = plan.warnings();
        assert_eq!(warnings.len(), secrets.len(), "{warnings:?}");
        for (warning, of) in warnings.iter().zip(secrets) {
            assert!(
                warning.starts_with(&format!("the secret of {of} is an ordinary")),
                "{warning}"
            );
            assert!(!warning.contains("2023") && !warning.contains("postgres"), "{warning}");
        }
    };
    check("headers: {X-Version: \"${API_VERSION}\"}", &["the model m"]);
    check("headers: {X-Version: \"${API_VERSION}-0123456789\"}", &[]);
    check("headers: {X-Version: \"2023-06-01\"}", &[]);
    check("public_headers: {X-Version: \"${API_VERSION}\"}", &[]);
    check("key: \"${DB_PASSWORD}\"", &["${DB_PASSWORD}"]);
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
            attachments: [image/*, application/pdf]
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
    assert_eq!(it.attachments(), ["image/*", "application/pdf"]);
    assert!(!format!("{it:?}").contains("s3cret"), "{it:?}");
}

/// A model of the manifest `o.yaml`, in a folder with a table of prices.
fn model_of(text: &str) -> Arc<dyn Model> {
    let folder = tempfile::tempdir().unwrap();
    let table = "
        as_of: 2026-11-01
        from: our contract
        providers:
          ours:
            hosts: [llm.example.org]
            models:
              large: {window: 8192, input: 3, output: 15, cached: 0.3, match: [\"large*\"]}
    ";
    std::fs::write(folder.path().join("ours.yaml"), table).unwrap();
    read_in(folder.path().join("o.yaml"), text).unwrap().models.get("m").unwrap()
}

#[test]
fn a_model_takes_what_isnt_said_from_the_table_that_ships() {
    let claude = "use: anthropic-messages, model: claude-sonnet-4-5";
    let it = model_of(&format!("models: {{m: {{{claude}}}}}"));
    let listed = Prices::shipped().of_provider("anthropic", "claude-sonnet-4-5").unwrap();
    assert_eq!((it.price(), it.window()), (Some(listed.price), listed.window));
    assert_eq!(it.details().price_source, Some(PriceSource::Table(listed.table)));
    let own = "window: 1000, price: {input: 1, output: 2, cached: 0.5, cache_write: 4}";
    let it = model_of(&format!("models: {{m: {{{claude}, {own}}}}}"));
    let price = Price::new(1.0, 2.0).with_cached(0.5).with_cache_write(4.0);
    assert_eq!((it.price(), it.window()), (Some(price), Some(1_000)), "what is said counts");
    assert_eq!(it.details().price_source, Some(PriceSource::Setting));
    let it = model_of(&format!("models: {{m: {{{claude}, price: none}}}}"));
    assert_eq!((it.price(), it.window()), (None, listed.window));
    let it = model_of("models: {m: {use: openai-chat, model: no-such}}");
    assert_eq!((it.price(), it.window(), it.details().price_source), (None, None, None));
    let local = "use: openai, url: \"http://127.0.0.1:8080/v1\", model: gpt-4o-mini";
    let it = model_of(&format!("models: {{m: {{{local}}}}}"));
    assert_eq!((it.price(), it.window()), (None, None), "another host, another price");
    let it = model_of(&format!("models: {{m: {{{local}, price: openai}}}}"));
    assert!(it.price().is_some_and(|it| it.input_micros > 0));
}

#[test]
fn a_table_of_ones_own_replaces_the_one_that_ships() {
    let large = "use: openai, url: \"https://llm.example.org/v1\", model: large-2";
    let it = model_of(&format!("prices: ours.yaml\nmodels: {{m: {{{large}, at_once: 3}}}}"));
    assert_eq!(it.price(), Some(Price::new(3.0, 15.0).with_cached(0.3)));
    let table = PriceSource::Table("our contract, as of 2026-11-01".into());
    assert_eq!((it.window(), it.details().price_source), (Some(8_192), Some(table)));
    let it = "prices: ours.yaml\nmodels: {m: {use: anthropic-messages, model: claude-sonnet-4-5}}";
    assert_eq!(model_of(it).price(), None);
    let check = |text: &str, expected: &str| {
        let mistakes = read_in("o.yaml", text).err().unwrap().to_string();
        assert!(mistakes.starts_with(expected), "{mistakes}");
    };
    check("prices: no/such.yaml", "o.yaml:1:9: no/such.yaml: ");
    let model = |price: &str| {
        format!("models: {{m: {{use: openai, url: \"http://a\", model: x, price: {price}}}}}")
    };
    check(&model("opanai"), "o.yaml:1:61: the table of prices has no provider `opanai`; did you");
    check(&model("openai"), "o.yaml:1:61: the table of prices has no model `x` of `openai`");
    check(&model("{input: 1, output: 1, cached: -1}"), "o.yaml:1:91: a price is 0 or more");
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
    check(
        "models: {a: {use: openai, url: \"https://a\", model: m, attachments: [image]}}",
        "o.yaml:1:69: `image` is no media type",
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

#[test]
fn only_a_router_that_leads_to_itself_would_ask_itself() {
    let router = |name: &str, of: &str| format!("  {name}: {{use: router, of: [{of}]}}\n");
    let all = [router("a", "b"), router("b", "c"), router("c", "b"), router("d", "d")];
    let mistakes = read_in("o.yaml", &format!("models:\n{}", all.concat())).err().unwrap();
    let said: Vec<&str> = mistakes.all().iter().map(|it| &*it.message).collect();
    let expected = ["b", "c", "d"].map(|it| format!("the router `{it}` would ask itself"));
    assert_eq!(said, expected);
}

/// YAML has three ways to write each of `true` and `false`.
#[tokio::test]
async fn whether_replies_stream_is_a_flag_in_any_form() {
    for (flag, streams) in [("false", false), ("False", false), ("TRUE", true)] {
        let server = Server::start(vec![vec![say(String::new())]]).await;
        let url = server.url();
        let settings = format!("url: \"{url}/v1\", model: x, stream: {{enabled: {flag}}}");
        let model = model_of(&format!("models: {{m: {{use: openai, {settings}}}}}"));
        if let Ok(mut reply) = model.turn(Prompt::new("").user("Go.")).await {
            let _: Result<Option<Piece>, _> = reply.next().await;
        }
        assert_eq!(server.asked().remove(0).body["stream"] == true, streams, "{flag}");
    }
}
