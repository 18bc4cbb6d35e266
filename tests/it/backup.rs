//! `backup`, run as an operator runs it.

use std::process::{Command, Stdio};

use pumphouse::log::{Batch, Draft, Durability, Log as _, NewThread, SqliteLog};
use pumphouse::{EntryId, Name, ThreadId};

use crate::program::{Ran, Scene, Server, log_in};

const SUM: &str = "<calculate xmlns=\"https://xml-pipeline.org/ns/calculate/v1\">\
                   <expression>6*7</expression></calculate>";

fn send(scene: &Scene, server: &Server) {
    scene.pipe(&["send", "--connect", &server.address], SUM).code(0);
}

#[test]
fn a_running_pump_is_backed_up_and_a_rollback_is_found() {
    let scene = Scene::new();
    let mut server = scene.serve(&[]);
    send(&scene, &server);
    let made = scene.run(&["backup", "copy.db"]).code(0);
    assert_eq!(made.err, "", "a meter is for terminals");
    made.says(&["sound: copy.db: ", "\nhead ", "verify --expect HEAD"]);
    scene.run(&["verify", "--data", "copy.db"]).code(0).says(&["sound: "]);
    scene.run(&["backup", "copy.db"]).code(2).says(&["copy.db is there already", "--force"]);
    send(&scene, &server);
    let object = scene.run(&["backup", "copy.db", "--force", "--json"]).code(0).objects().remove(0);
    assert_eq!((&object["sound"], &object["threads"]), (&true.into(), &2.into()));
    let head = object["head"].as_str().unwrap();
    send(&scene, &server);
    let later = scene.run(&["backup", "later.db", "--json"]).code(0).objects().remove(0);
    server.stop("-INT");
    // Without a server it is no different.
    scene.run(&["backup", "last.db"]).code(0);
    scene.run(&["verify", "--expect", head]).code(0);

    std::fs::copy(scene.path("copy.db"), log_in(&scene.path("data"))).unwrap();
    let later = later["head"].as_str().unwrap();
    scene
        .run(&["verify", "--expect", later])
        .code(1)
        .says(&["isn't on the chain", "was rewritten"]);
    let restored = scene.serve(&[]);
    send(&scene, &restored);
    scene.run(&["verify", "--expect", head]).code(0);
}

#[test]
fn what_can_not_be_backed_up_is_said() {
    let scene = Scene::new();
    scene.run(&["backup", "copy.db"]).code(2).says(&["there is no folder data"]);
    let mut server = scene.serve(&[]);
    send(&scene, &server);
    scene.run(&["backup", "no/where"]).code(2).says(&["no backup was made", "no/where"]);
    scene.run(&["backup", "data"]).code(2).says(&["is a folder; name a file in it"]);
    let log = log_in(&scene.path("data"));
    let itself = scene.run(&["backup", log.to_str().unwrap(), "--force"]);
    itself.code(2).says(&["the log itself"]);
    server.stop("-INT");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(3).position(|it| it == b"6*7").unwrap();
    bytes[at] = b'9';
    std::fs::write(&log, bytes).unwrap();
    scene.run(&["backup", "copy.db"]).code(1).says(&["damaged log: sess-", "`pumphouse verify`"]);
    assert!(!scene.path("copy.db").exists());
}

#[cfg(unix)]
#[test]
fn an_export_never_takes_the_place_of_the_log() {
    let scene = Scene::new();
    let mut server = scene.serve(&[]);
    send(&scene, &server);
    let thread = scene.run(&["threads", "--json"]).objects()[0]["thread"].clone();
    let thread = thread.as_str().unwrap();
    let log = log_in(&scene.path("data"));
    let beside = |suffix| format!("{}{suffix}", log.display());
    std::fs::hard_link(&log, scene.path("hard")).unwrap();
    std::os::unix::fs::symlink(&log, scene.path("soft")).unwrap();
    let own = ["", "-wal", "-lock", "-failed"].map(beside);
    for to in own.iter().map(String::as_str).chain(["hard", "soft"]) {
        let ran = scene.run(&["export", thread, "--output", to, "--force"]);
        ran.code(2).says(&["can't be written", "log", "name another file"]);
        scene.run(&["backup", to, "--force"]).code(2).says(&["name another file"]);
    }
    std::os::unix::fs::symlink("nowhere", scene.path("dangling")).unwrap();
    let ran = scene.run(&["export", thread, "--output", "dangling", "--force"]);
    ran.code(2).says(&["a link that leads nowhere"]);
    send(&scene, &server);
    assert_eq!(server.stop("-INT").0, Some(0));
    scene.run(&["verify"]).code(0);
}

#[cfg(unix)]
#[test]
fn the_note_of_a_backup_is_its_owners_only() {
    let scene = Scene::new();
    drop(scene.serve(&[]));
    scene.run(&["backup", "copy.db"]).code(0);
    let note = scene.path("data/pumphouse.db-backups").metadata().unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&note) & 0o777, 0o600);
}

#[test]
fn a_pump_whose_log_is_gone_ends_with_1() {
    let scene = Scene::new();
    let mut server = scene.serve(&[]);
    send(&scene, &server);
    std::fs::remove_file(log_in(&scene.path("data"))).unwrap();
    scene.pipe(&["send", "--connect", &server.address], SUM).code(1).says(&["P0019"]);
    assert_eq!(server.stop("-INT").0, Some(1));
}

/// A log of so many mebibytes.
async fn large(scene: &Scene, size: u64) {
    std::fs::create_dir(scene.path("data")).unwrap();
    let log = SqliteLog::open(log_in(&scene.path("data")), Durability::Normal).unwrap();
    let id = ThreadId::new("sess-large000");
    let threads = vec![NewThread { id: id.clone(), parent: None, fork: None }];
    log.append(Batch { threads, ..Batch::default() }).await.unwrap();
    for seq in 1..=size {
        let (entry, body) = (EntryId::new(&id, seq), vec![b'x'; 1 << 20]);
        let name = Name::of("urn:x", "large");
        let entries = vec![Draft::new(entry, seq, "ada".into(), name, body.into())];
        log.append(Batch { entries, ..Batch::default() }).await.unwrap();
    }
    log.close().await.unwrap();
}

#[tokio::test]
async fn a_backup_that_is_stopped_leaves_no_half_file() {
    let scene = Scene::new();
    large(&scene, 48).await;
    let mut command = scene.command(&["backup", "out/copy.db"]);
    std::fs::create_dir(scene.path("out")).unwrap();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let names = || std::fs::read_dir(scene.path("out")).unwrap().count();
    crate::until(|| names() > 0);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    match ran.code {
        // It was quicker than the signal.
        0 => assert_eq!(names(), 1),
        _ => {
            ran.code(1).says(&["Ctrl-C stopped it, and no backup was made"]);
            assert_eq!(names(), 0);
        }
    }
}
