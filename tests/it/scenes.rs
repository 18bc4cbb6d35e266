//! Scenes: conversations in files, played in memory and over sockets. The pages of the faults have
//! scenes, too.

mod cast;
mod memory;
mod pages;
mod socket;

/// The player is everybody's.
mod play {
    pub(super) use pumphouse::scene::{Line, Stage, payload, plain, play};
}

use std::fs;
use std::path::{Path, PathBuf};

use pumphouse::door::{Options, Tcp, Tls, Tokens, Unix};
use pumphouse::prelude::*;
use pumphouse::wire::Code;

use crate::door::tls::Authority;
use cast::{Quiet, cast, limits};
use memory::Memory;
use play::{Stage, play};
use pumphouse::scene::Scene;
use socket::{SPEAKERS, Socket, token};

#[tokio::test]
async fn every_scene_holds_in_memory() {
    let pump = pump(None::<Tcp>);
    let stage = Memory(pump.clone());
    all(&stage, scenes().iter().filter(|it| !it.only_over_sockets)).await;
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn every_scene_holds_over_tcp() {
    let door = Tcp::bind("127.0.0.1:0", options()).await.unwrap();
    let stage = Socket::Tcp(door.local_addr());
    let pump = pump(door);
    all(&stage, scenes().iter()).await;
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn every_scene_holds_over_tls() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let tls = Tls::read(authority.path("cert.pem"), authority.path("key.pem")).unwrap();
    let door = Tcp::bind("127.0.0.1:0", options().tls(tls)).await.unwrap();
    let stage = Socket::Tls(door.local_addr(), authority.path("ca.pem"));
    let pump = pump(door);
    all(&stage, scenes().iter()).await;
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn every_scene_holds_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let door = Unix::at(folder.path().join("pump.sock"), options()).await.unwrap();
    let stage = Socket::Unix(door.path().to_owned());
    let pump = pump(door);
    all(&stage, scenes().iter()).await;
    pump.shutdown().await.unwrap();
}

#[test]
fn every_page_tells_of_its_own_fault() {
    for (path, text) in page_texts() {
        let code = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for (line, huh) in pages::huhs(&text) {
            let at = format!("{}:{line}", path.display());
            let it = Code::ALL.iter().find(|it| it.to_string() == huh.code);
            let it = it.unwrap_or_else(|| panic!("{at}: no fault is called {}", huh.code));
            // What is wrong with a payload is advised on at its very place.
            if *it != Code::Invalid {
                assert_eq!(huh.advice, it.advice(), "{at}");
            }
            assert_eq!(huh.retry, it.retry(), "{at}");
        }
        let shown = pages::huhs(&text).iter().any(|(_, huh)| huh.code == code);
        let told = shown || text.contains("<system-thread-error") || text.contains("never sent");
        assert!(told, "{}: it shows no <huh code=\"{code}\">", path.display());
    }
}

#[tokio::test]
async fn an_ask_that_nobody_answers_is_done() {
    let pump = pump(None::<Tcp>);
    let answer = pump.ask::<Quiet>(Quiet {}).await;
    assert!(matches!(answer, Err(AskError::Unanswered)), "{answer:?}");
    let threads = pump.log().threads(None, 10).await.unwrap();
    let entries = pump.log().read(&threads[0].id, 0, u64::MAX, 10).await.unwrap();
    let names: Vec<&str> = entries.iter().map(|it| it.name.local()).collect();
    assert_eq!(names, ["quiet", "done"]);
    pump.shutdown().await.unwrap();
}

/// A door that the speakers have tokens for.
fn options() -> Options {
    let lines = SPEAKERS.map(|who| format!("{who}:{}\n", token(who)));
    Options::default().tokens(Tokens::parse(&lines.concat()).unwrap())
}

/// The pump that scenes are played on: the house staff, and listeners that misbehave.
fn pump(door: impl Plugin) -> Pump {
    let plan = pumphouse::builder().with((pumphouse::listeners::standard(), cast(), door));
    plan.limits(limits()).build().unwrap().start()
}

async fn all(stage: &impl Stage, scenes: impl Iterator<Item = &Scene>) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for scene in scenes {
        count += 1;
        wrong.extend(play(scene, stage).await.err());
    }
    assert!(count > 10, "only {count} scenes were found");
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n\n"));
}

/// Every scene: a file of its own, or a block in the page of a fault.
fn scenes() -> Vec<Scene> {
    let files = texts("tests/scenes", "scene").into_iter();
    let files =
        files.map(|(path, text)| Scene::read(&path.display().to_string(), 0, &text).unwrap());
    let blocks = page_texts().into_iter().flat_map(|(path, text)| {
        let blocks = pages::blocks(&text, "scene").into_iter();
        let read = |(line, text): (usize, String)| {
            Scene::read(&path.display().to_string(), line, &text).unwrap()
        };
        blocks.map(read).collect::<Vec<_>>()
    });
    files.chain(blocks).collect()
}

fn page_texts() -> Vec<(PathBuf, String)> {
    texts("docs/faults", "md")
        .into_iter()
        .filter(|(path, _)| !path.ends_with("README.md"))
        .collect()
}

/// The files of a folder that end so, in order.
fn texts(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root.join(folder)).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == ending));
    paths.sort();
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root).unwrap().to_owned(), text)
    };
    paths.into_iter().map(text).collect()
}
