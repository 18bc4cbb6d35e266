//! `describe` and `inspect payload`: what the program says of its payloads, and of invalid ones.

use std::fs;
use std::path::Path;

use pumphouse::engine::{AskError, CONSOLE, Followed, Identity};
use pumphouse::limits::XmlLimits;
use pumphouse::listeners;
use pumphouse::listeners::describe::{
    self, Allow, CapabilityList, ListCapabilities, PayloadExample, PayloadPrompt, PayloadSchema,
    RequestExample, RequestPrompt, RequestSchema, Untold, Who,
};
use pumphouse::listeners::feed::words::ContextFeedRefused;
use pumphouse::prelude::*;
use pumphouse::schema::Schema;
use pumphouse::xml::{self, Profile};
use serde_json::{Value, json};

use crate::golden;
use crate::program::Scene;

const CALCULATE: &str = "https://xml-pipeline.org/ns/calculate/v1";

#[test]
fn the_list_has_every_payload_and_who_takes_it() {
    let scene = Scene::new();
    let list = scene.run(&["describe"]).code(0).says(&[
        "taken\n",
        "  calculate             by calculate: Works out an arithmetic expression",
        "  calculated            by calculate: The value of an expression.\n",
        "  thread-cancelled      by thread, reserved: A thread was cancelled",
        "the pump's own\n",
        "  huh                   A fault: a message is wrong",
        "`pumphouse describe NAME`",
    ]);
    let objects = scene.run(&["describe", "--json"]).code(0).objects();
    assert!(objects.len() > 9, "{list:?}");
    for it in &objects {
        assert!(list.out.contains(&format!("\n  {} ", it["local"].as_str().unwrap())), "{it}");
    }
    let it = objects.iter().find(|it| it["local"] == "calculate").unwrap();
    let name = |local: &str| format!("{{{CALCULATE}}}{local}");
    assert_eq!(it["taken_by"], json!(["calculate"]));
    assert_eq!(it["may_cause"], json!([name("calculated"), name("problem")]));
    assert_eq!((&it["reserved"], &it["name"]), (&json!(false), &json!(name("calculate"))));
}

#[test]
fn a_payload_has_a_page() {
    let scene = Scene::new();
    let page = scene.run(&["describe", "calculate"]).code(0);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/describe/calculate.txt");
    let mut goldens = golden::Goldens::default();
    goldens.check(&golden, &page.out);
    goldens.finish();
    let full = format!("{{{CALCULATE}}}calculate");
    for word in [&*full, "calculate.calculate"] {
        assert_eq!(scene.run(&["describe", word]).code(0).out, page.out, "{word}");
    }
    scene.run(&["describe", "huh"]).code(0).says(&["reserved   the pump and who has the grant"]);
    scene.run(&["describe", "authenticate"]).code(0).says(&["taken by   the pump itself"]);
}

/// Each form of each payload is what the committed files say, and what other tools accept.
#[test]
fn every_house_payload_is_told_in_four_forms() {
    let scene = Scene::new();
    let mut pairs = Vec::new();
    for it in scene.run(&["describe", "--json"]).code(0).objects() {
        let name = it["name"].as_str().unwrap();
        let form = |form: &str| scene.run(&["describe", name, form]).code(0).out;
        let (xsd, example, prompt) = (form("--xsd"), form("--example"), form("--prompt"));
        let json: Value = serde_json::from_str(&form("--json-schema")).unwrap();
        assert_eq!(xsd, fs::read_to_string(file(&it, "xsd")).unwrap(), "{name}");
        let kept: Value =
            serde_json::from_str(&fs::read_to_string(file(&it, "json")).unwrap()).unwrap();
        assert_eq!(json, kept, "{name}");
        let start = format!("<{}>: ", it["local"].as_str().unwrap());
        assert!(prompt.starts_with(&start) && prompt.ends_with(&example), "{prompt}");

        scene.write("example.xml", &example);
        let verdict = scene.run(&["inspect", "payload", "example.xml"]).code(0).objects();
        assert_eq!(
            (&verdict[0]["verdict"], &verdict[0]["payload"], &verdict[0]["taken_by"]),
            (&json!("accept"), &it["name"], &it["taken_by"]),
            "{verdict:?}"
        );
        let all = scene.run(&["describe", name, "--json"]).code(0).objects();
        let told = json!([all[0]["xsd"], all[0]["example"], all[0]["prompt"]]);
        assert_eq!(told, json!([xsd, example, prompt]));
        let one = scene.run(&["describe", name, "--json", "--prompt"]).code(0).objects();
        assert_eq!(one, [json!({ "name": name, "prompt": prompt })]);
        pairs.push((it["local"].as_str().unwrap().to_owned(), xsd, vec![example]));
    }
    golden::lint(&pairs);
}

/// `schemas/core/huh.xsd` for `{https://xml-pipeline.org/ns/core/v1}huh`.
fn file(it: &Value, ending: &str) -> std::path::PathBuf {
    let namespace = it["namespace"].as_str().unwrap();
    let place = namespace.strip_prefix("https://xml-pipeline.org/ns/").unwrap();
    let place = place.strip_suffix("/v1").unwrap();
    let file = format!("schemas/{place}/{}.{ending}", it["local"].as_str().unwrap());
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn an_unknown_payload_is_answered_with_the_nearest() {
    let scene = Scene::new();
    let lists = "`pumphouse describe` lists what there is";
    for (word, nearest) in [
        ("calcluate", "calculate"),
        ("calculate.calulate", "calculate.calculate"),
        ("Echo", "echo"),
        (&format!("{{{CALCULATE}}}calculatedd"), &format!("{{{CALCULATE}}}calculated")),
    ] {
        let meant = format!(
            "error: no payload and no listener is called {word}; did you mean \
             {nearest}? {lists}\n"
        );
        assert_eq!(scene.run(&["describe", word]).code(1).err, meant);
    }
    let none = format!("error: no payload and no listener is called nonsense; {lists}\n");
    assert_eq!(scene.run(&["describe", "nonsense"]).code(1).err, none);
    scene.run(&["describe", "--xsd"]).code(2).says(&["<NAME>"]);
    scene.run(&["describe", "echo", "--xsd", "--prompt"]).code(2).says(&["cannot be used with"]);
    scene.run(&["describe", "--help"]).code(0).says(&["Examples:"]);
}

/// Several payloads of one local name, and a listener that takes several.
#[test]
fn a_word_that_may_mean_several_lists_them() {
    let any = |namespace: &str, local: &str| Schema::any(Name::new(namespace, local), "Is there.");
    let nothing = async |_: Element| {};
    let one = Listener::new("one").on_named(any("urn:a", "x"), nothing);
    let two = Listener::new("t.wo").on_named(any("urn:b", "x"), nothing);
    let two = two.on_named(any("urn:b", "y"), nothing);
    let plan = pumphouse::builder().with((one, two)).build().unwrap();
    let find = |word: &str| plan.capabilities().find(word).map(|it| it.name.to_string());
    let said = |word: &str| find(word).unwrap_err().to_string();
    assert_eq!(said("x"), "x may be any of {urn:a}x, {urn:b}x; say which");
    assert_eq!(said("t.wo"), "t.wo may be any of {urn:b}x, y; say which");
    for (word, name) in [
        ("one", "{urn:a}x"),
        ("one.x", "{urn:a}x"),
        ("t.wo.x", "{urn:b}x"),
        ("{urn:b}x", "{urn:b}x"),
        ("y", "{urn:b}y"),
    ] {
        assert_eq!(find(word).as_deref(), Ok(name));
    }
    assert_eq!(said("one.y"), "no payload and no listener is called one.y; did you mean one.x?");
}

#[test]
fn inspect_payload_says_what_is_wrong_and_what_would_be_right() {
    let scene = Scene::new();
    let expression = "<expression>6*7</expression>";
    let whole = format!("<calculate xmlns='{CALCULATE}'>\n  {expression}\n</calculate>");
    scene.write("right.xml", &whole);
    scene.write("bare.xml", whole.replace(&format!(" xmlns='{CALCULATE}'"), ""));
    let envelope = "https://xml-pipeline.org/ns/envelope/v1";
    let around = format!("<message xmlns='{envelope}'><meta><to>x</to></meta>{whole}</message>");
    scene.write("message.xml", around);
    scene.write("typo.xml", whole.replace("expression", "expresion"));
    scene.write("root.xml", whole.replace("calculate>", "calc>").replace("<calculate", "<calc"));
    scene.write("alien.xml", "<zzz xmlns='urn:x'/>");
    scene.write("nobodys.xml", "<!-- c -->\n<nothing/>");
    scene.write("broken.xml", "<a>");
    scene.write("empty.xml", format!("<message xmlns='{envelope}'><meta/></message>"));
    let files =
        ["right", "bare", "message", "typo", "root", "alien", "nobodys", "broken", "empty", "no"];
    let list: String = files.iter().map(|it| format!("{it}.xml\n")).collect();
    let told = scene.pipe(&["inspect", "payload", "-"], &list).code(0).objects();
    assert_eq!(told.len(), files.len());
    for it in &told[..3] {
        assert_eq!((&it["verdict"], &it["taken_by"]), (&json!("accept"), &json!(["calculate"])));
    }
    assert_eq!(told[0]["canonical_blake3"], told[2]["canonical_blake3"]);
    let error = json!({
        "code": "P0007",
        "line": 2,
        "column": 3,
        "path": "/calculate/expresion",
        "message": "<calculate> has no field <expresion>; it has <expression>, <values>; did \
                    you mean <expression>?",
        "expected": "<expression>, <values>",
        "nearest": "<expression>",
        "example": expression,
        "advice": format!("Write <expression> instead, as in {expression}."),
    });
    let wrong = json!({
        "file": "typo.xml", "verdict": "reject", "error": error, "payload": null, "taken_by": [],
        "canonical_blake3": null,
    });
    assert_eq!(told[3], wrong);
    let error = |at: usize, key: &str| told[at]["error"][key].clone();
    let name = format!("{{{CALCULATE}}}calculate");
    assert_eq!(error(4, "code"), "P0011");
    assert_eq!(error(4, "nearest"), name, "calc is its beginning");
    assert_eq!(error(5, "message"), "the organism has no payload {urn:x}zzz");
    assert_eq!(error(5, "advice"), "Choose one that `pumphouse describe` lists.");
    assert_eq!((error(6, "line"), error(6, "code")), (json!(2), json!("P0011")));
    assert_eq!(error(7, "code"), "P0001");
    assert_eq!(error(8, "code"), "P0008");
    assert_eq!(error(9, "code"), "unreadable");
    scene.write("short.xml", "<calculate><expresion>6*7</expresion></calculate>");
    let short = scene.run(&["inspect", "payload", "short.xml"]).code(0).objects();
    assert_eq!(short[0]["error"]["column"], 12, "where it was written");
    scene.write(
        "near.xml",
        whole.replace("calculate>", "calcluate>").replace("<calculate", "<calcluate"),
    );
    let near = scene.run(&["inspect", "payload", "near.xml"]).code(0).objects();
    assert_eq!(near[0]["error"]["nearest"], name);
    let advice = format!("Begin with <calculate xmlns=\"{CALCULATE}\">.");
    assert_eq!(near[0]["error"]["advice"], advice);
    scene.run(&["inspect", "payload"]).code(2);
    scene.run(&["inspect", "payload", "--help"]).code(0).says(&["Examples:"]);
}

/// Makes its handler ask what there is.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Curious;

/// What a listener was told: the listeners, and whether it knows of `calculate`.
#[derive(Payload, Debug, PartialEq)]
#[payload(ns = "urn:test")]
struct Told {
    listeners: Vec<String>,
    knows: bool,
}

/// Its peers are what a listener sees, and nothing says that there is more.
#[tokio::test]
async fn a_listener_is_told_of_its_peers_only() {
    let ask = async |_: Curious| {
        let list = ListCapabilities { listener: None };
        (To("describe", list), To("describe", RequestExample { payload: "calculate".into() }))
    };
    let tell = async |history: History, out: Outbox<Told>, it: CapabilityList| {
        let first = &history.read(0, 1).await?[0];
        let listeners = it.capability.into_iter().map(|it| it.listener).collect();
        out.reply_to(first, Told { listeners, knows: true }).await
    };
    let unknown = async |history: History, out: Outbox<Told>, it: Untold| {
        let first = &history.read(0, 1).await?[0];
        let knows = !matches!(&it, Untold::Unknown { word, nearest: None, choice, .. }
            if word == "calculate" && choice.is_empty());
        out.reply_to(first, Told { listeners: Vec::new(), knows }).await
    };
    let curious = Listener::new("curious").peers(["describe", "echo"]).on(ask);
    let curious = curious.on_reply(tell).on_reply(unknown).serial();
    let plan = pumphouse::builder().with((listeners::standard(), curious)).build().unwrap();
    let pump = plan.start();
    let id = pump.tell(Curious).await.unwrap();
    let mut follow = pump.follow(&id.thread, 0);
    let mut told = Vec::new();
    while told.len() < 2 {
        if let Followed::Entry(entry) = follow.next().await.unwrap()
            && entry.is::<Told>()
        {
            told.push(entry.decode::<Told>().unwrap());
        }
    }
    let listeners = ["echo", "describe", "curious"].map(str::to_owned).to_vec();
    assert!(told.contains(&Told { listeners, knows: true }), "{told:?}");
    assert!(told.contains(&Told { listeners: Vec::new(), knows: false }), "{told:?}");
    pump.shutdown().await.unwrap();
}

/// What is refused to everybody outside, or to this one, isn't offered.
#[tokio::test]
async fn what_the_sender_may_not_send_is_not_listed() {
    let pump = pumphouse::builder().with(listeners::standard()).build().unwrap().start();
    let offered = async |name: &str, operator| {
        let pump = pump.speaking_as(Identity { name: name.into(), operator });
        let list = pump.ask::<CapabilityList>(ListCapabilities { listener: None }).await.unwrap();
        let takes = list.capability.into_iter().flat_map(|it| it.takes);
        takes.map(|it| it.name).collect::<Vec<_>>()
    };
    for (name, operator) in [(CONSOLE, false), ("ada", false), ("root", true)] {
        let names = offered(name, operator).await;
        let has = |name: &str| names.iter().any(|it| it == name);
        assert!(has("set-timer") && has("calculate"), "{names:?}");
        for reserved in ["awaiting-threads", "timer-due", "todo-open", "actions-due", "feeds-due"] {
            assert!(!has(reserved), "{reserved} for {name}");
        }
        assert_eq!(has("raise-budget"), operator, "for {name}");
    }
    pump.shutdown().await.unwrap();
}

/// Who may ask: whoever comes in, who is known, operators, nobody.
#[tokio::test]
async fn each_request_is_for_those_it_is_allowed_for() {
    let identity = |name: &str, operator| Identity { name: name.into(), operator };
    let senders = [identity(CONSOLE, false), identity("ada", false), identity("root", true)];
    for (word, may) in [
        ("anyone", [true, true, true]),
        ("authenticated", [false, true, true]),
        ("admin", [false, false, true]),
        ("none", [false, false, false]),
    ] {
        let who: Who = word.parse().unwrap();
        let allow = Allow { list: who, schema: who, example: who, prompt: who };
        let plan = pumphouse::builder().with(describe::describe(allow)).build().unwrap();
        let pump = plan.start();
        for (sender, may) in senders.iter().zip(may) {
            let pump = pump.speaking_as(sender.clone());
            let name = || "describe.list-capabilities".to_owned();
            let list = pump.ask::<CapabilityList>(ListCapabilities { listener: None }).await;
            let schema = RequestSchema { payload: name(), format: None };
            let schema = pump.ask::<PayloadSchema>(schema).await;
            let example = pump.ask::<PayloadExample>(RequestExample { payload: name() }).await;
            let prompt = pump.ask::<PayloadPrompt>(RequestPrompt { payload: name() }).await;
            let told = [list.err(), schema.err(), example.err(), prompt.err()];
            for it in told {
                let refused = it.map(|it| match it {
                    AskError::Other(it) => Untold::decode(&it).unwrap(),
                    other => panic!("{other}"),
                });
                let expected = (!may).then_some(Untold::NotAllowed { needs: who });
                assert_eq!(refused, expected, "{word} to {sender:?}");
            }
        }
        pump.shutdown().await.unwrap();
    }
    let wrong = "everybody".parse::<Who>().unwrap_err().to_string();
    assert_eq!(wrong, "\"everybody\" is nobody: say anyone, authenticated, admin or none");
}

/// What `pumphouse describe PAYLOAD --example | pumphouse send` does with each payload that the
/// house takes from outside. What is about something else comes behind that.
#[tokio::test]
async fn the_example_of_every_house_payload_can_be_sent() {
    let plan = pumphouse::builder().with(listeners::standard()).build().unwrap();
    let pump = plan.start().speaking_as(Identity { name: "ada".into(), operator: true });
    let all = pump.capabilities().clone();
    let example = |word: &str| {
        let text = all.example(all.find(word).unwrap());
        xml::read(text, Profile::Wire, &XmlLimits::DOOR).unwrap()
    };
    let taken = all.listeners().iter().flat_map(|it| &it.takes);
    let taken: Vec<_> = taken.filter(|it| !all.schema(it).unwrap().reserved).collect();
    assert!(taken.len() > 20, "{taken:?}");
    for name in taken {
        let before = match name.local() {
            "fork-thread" => Some("echo.echo"),
            "todo-complete" => Some("todo-until"),
            _ => None,
        };
        let pump = match before {
            None => pump.clone(),
            Some(before) => {
                let entry = pump.tell_element(example(before)).await.unwrap();
                let there = pump.in_thread(&entry.thread);
                if name.local() == "fork-thread" { pump.fork_at(&entry) } else { there }
            }
        };
        match pump.ask_element(example(&name.to_string())).await {
            // Feeds are for agents to change.
            Ok(it) if it.is::<ContextFeedRefused>() => {
                let told: ContextFeedRefused = it.decode().unwrap();
                assert!(told.message.starts_with("ada is no agent, and has no feeds"), "{told:?}");
            }
            Ok(it) if it.name().local().ends_with("refused") => panic!("{name}: {it:?}"),
            Ok(_) | Err(AskError::Unanswered) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
    pump.shutdown().await.unwrap();
    let entries = pump.log().tail(0, 1_000).await.unwrap();
    let wrong = ["huh", "system-thread-error", "untold"];
    let wrong = entries.iter().find(|it| wrong.contains(&it.name.local()));
    assert!(wrong.is_none(), "{wrong:?}");
}

/// An organism that takes nothing of its own has no better word for what may be anything.
#[test]
fn an_example_holds_what_its_own_organism_takes() {
    let spawn = |listeners: Vec<Listener>| {
        let plan = pumphouse::builder().with(listeners).build().unwrap();
        let all = plan.capabilities();
        all.example(all.find("spawn-thread").unwrap())
    };
    let (echo, staff) = (listeners::echo::echo(), listeners::staff);
    assert!(spawn(listeners::standard()).contains("<calculate xmlns="));
    assert!(spawn(staff().into_iter().chain([echo]).collect()).contains("<echo xmlns="));
    assert!(spawn(staff()).contains("<anything xmlns="));
}
