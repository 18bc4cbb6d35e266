//! JSON texts from other projects. Each is read or refused. Parameters of a payload, and texts,
//! survive routing, the log and a restart.

use std::path::Path;
use std::sync::Arc;

use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::schema::json::BrokenKind;
use pumphouse::schema::{self, Content, Field, Kind, Link, Occurs, Scalar, Schema, Shape, json};
use pumphouse::xml::{is_character, is_name};
use serde_json::{Value, json};

use super::{Case, Score, cases, naughty, suites};

#[test]
fn json_texts_are_read_or_refused() {
    let Some(suites) = suites() else { return };
    verdicts(&suites).assert_none_wrong(100);
}

#[tokio::test]
async fn json_parameters_survive_route_log_and_restart() {
    let Some(suites) = suites() else { return };
    parameters(&suites).await.assert_none_wrong(30);
}

#[tokio::test]
async fn json_texts_survive_as_text() {
    let Some(suites) = suites() else { return };
    let (kept, refused) = texts(&suites).await;
    kept.assert_none_wrong(100);
    refused.assert_none_wrong(1);
}

/// Whether each is accepted that should be. One that has a property twice is JSON by its grammar,
/// and is refused all the same: nobody can say which of the two is meant.
pub(super) fn verdicts(suites: &Path) -> Score {
    let mut score = Score::default();
    for case in cases(suites, "json/index.jsonl") {
        let bytes = case.bytes();
        let read = std::str::from_utf8(&bytes).ok().map(json::read);
        let is_twice = matches!(&read, Some(Err(it)) if it.kind == BrokenKind::Twice);
        let accepted = matches!(read, Some(Ok(_)));
        match case.text("expect") {
            "accept" if accepted => score.right += 1,
            "reject" if !accepted => score.right += 1,
            "accept" if is_twice => score.either += 1,
            "either" => score.either += 1,
            other => score.wrong.push(format!("{}: not {other}: {read:?}", case.file())),
        }
    }
    score
}

/// Every text of the suite as the text of a payload.
pub(super) async fn texts(suites: &Path) -> (Score, Score) {
    let all = cases(suites, "json/index.jsonl");
    let texts: Vec<String> =
        all.iter().filter_map(|it| String::from_utf8(it.bytes()).ok()).collect();
    naughty::survive(&texts).await
}

/// A call of an action: of which number, with what parameters.
#[derive(Payload)]
#[payload(ns = "urn:suites")]
struct Act {
    number: u32,
    parameters: String,
}

/// Why an action can't be called so.
#[derive(Payload)]
#[payload(ns = "urn:suites")]
struct Wrong {
    why: String,
}

/// What the parameters of a text come to.
struct Target {
    schema: Schema,
    text: String,
    value: Value,
}

/// Every text that is read and that some schema describes, as parameters for a payload of that
/// schema; what holds a character that XML doesn't have is refused by its path.
pub(super) async fn parameters(suites: &Path) -> Score {
    let all = cases(suites, "json/index.jsonl");
    let targets: Vec<Target> = all.iter().filter_map(target).collect();
    let targets = Arc::new(targets);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let pump = start(&file, &targets).await;
    let mut sent = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        let told = pump
            .tell(Act { number: u32::try_from(number).unwrap(), parameters: target.text.clone() })
            .await
            .unwrap();
        sent.push((told.thread, target));
    }
    pump.shutdown().await.unwrap();
    drop(pump);
    let pump = start(&file, &targets).await;
    let mut score = Score::default();
    for (thread, target) in sent {
        let entries = pump.log().read(&thread, 0, u64::MAX, 10).await.unwrap();
        let said = entries.get(1).map(|it| Element::from_canonical(it.body.clone()).unwrap());
        score.count(is_kept(target, said).map_err(|it| format!("{}: {it}", target.text)));
    }
    assert!(pump.log().verify(None).await.unwrap().is_sound());
    pump.shutdown().await.unwrap();
    score
}

fn is_kept(target: &Target, said: Option<Element>) -> Result<(), String> {
    let Target { schema, value, .. } = target;
    let said = said.ok_or("nothing came of it")?;
    if is_xml(value) {
        let made = schema::from_json(schema, value).map_err(|it| it.to_string())?;
        if said.canonical() != made.canonical() {
            return Err(format!("{said:?} is not {made:?}"));
        }
        let back = schema::to_json(schema, said.view()).map_err(|it| it.to_string())?;
        return if back == *value { Ok(()) } else { Err(format!("{back} came back")) };
    }
    let Wrong { why } = Wrong::decode(&said).map_err(|it| it.to_string())?;
    if why.contains("which is no XML character") { Ok(()) } else { Err(why) }
}

/// Whether XML has all the characters of its strings.
fn is_xml(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().all(is_character),
        Value::Array(items) => items.iter().all(is_xml),
        Value::Object(all) => all.values().all(is_xml),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

async fn start(file: &Path, targets: &Arc<Vec<Target>>) -> Pump {
    let log = SqliteLog::open(file, Durability::Normal).unwrap();
    let own = Arc::clone(targets);
    let act = Listener::new("act").on(move |Act { number, parameters }: Act| {
        let said = json::read(&parameters).map_err(|it| it.to_string());
        let made = said.and_then(|said| {
            let said =
                if parameters.trim().starts_with('{') { said } else { json!({ "value": said }) };
            schema::from_json(&own[number as usize].schema, &said).map_err(|it| it.to_string())
        });
        async move { made.map(|it| To("keeper", it)).map_err(|why| Wrong { why }) }
    });
    let keeper = targets.iter().fold(Listener::new("keeper"), |keeper, target| {
        keeper.on_named(target.schema.clone(), async |_: Element| {})
    });
    let plan = pumphouse::builder().with(act).with(keeper).with(log).build().unwrap();
    let pump = plan.start();
    pump.ready().await.unwrap();
    pump
}

/// A schema that a text's value is a form of, if there is one: JSON of any other sort, such as
/// null or arrays of arrays, is no payload's form.
fn target(case: &Case) -> Option<Target> {
    let text = String::from_utf8(case.bytes()).ok().filter(|it| it.chars().all(is_character))?;
    let value = json::read(&text).ok()?;
    let value = if value.is_object() { value } else { json!({ "value": value }) };
    let Kind::Shape(link) = kind(&value)? else { return None };
    let stem = Path::new(case.file()).file_stem()?.to_str()?;
    let local: String =
        stem.chars().map(|it| if it.is_alphanumeric() { it } else { '_' }).collect();
    let mut shape = link.shape().clone();
    shape.doc = "What a text says.".into();
    let schema = Schema::new(Name::new("urn:suites", local), shape);
    Some(Target { schema, text, value })
}

fn kind(value: &Value) -> Option<Kind> {
    let scalar = match value {
        Value::String(_) => Scalar::String,
        Value::Bool(_) => Scalar::Boolean,
        Value::Number(it) if it.is_i64() => Scalar::I64,
        Value::Number(it) if it.is_u64() => Scalar::U64,
        Value::Number(_) => Scalar::F64,
        Value::Object(all) if all.keys().all(|it| is_name(it)) => {
            let fields: Option<Vec<Field>> = all.iter().map(|(name, it)| field(name, it)).collect();
            let shape = Shape::new("", "", Vec::new(), Content::Sequence(fields?));
            return Some(Kind::Shape(Link::new(shape)));
        }
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(Kind::Scalar(scalar))
}

fn field(name: &str, value: &Value) -> Option<Field> {
    let name = name.to_owned();
    let Value::Array(items) = value else {
        return Some(Field::new(name, "", kind(value)?, Occurs::One));
    };
    let Some(first) = items.first() else {
        return Some(Field::new(name, "", Kind::Scalar(Scalar::String), Occurs::Many));
    };
    let kinds: Option<Vec<Kind>> = items.iter().map(kind).collect();
    let alike = kinds?.iter().all(|it| match (it, kind(first)) {
        (Kind::Scalar(it), Some(Kind::Scalar(first))) => *it == first,
        _ => false,
    });
    alike.then(|| Some(Field::new(name, "", kind(first)?, Occurs::Many))).flatten()
}
