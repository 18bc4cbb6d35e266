//! Threads that can't be read any more because they are damaged, and which senders are told so.

use std::path::Path;

use pumphouse::engine::Identity;
use pumphouse::limits::XmlLimits;
use pumphouse::listeners::echo::Echo;
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::xml::{self, Profile};

use super::*;

/// A thread below the session, which lives until what is for later comes: an hour.
const SPAWN: &str = "<spawn-thread xmlns=\"https://xml-pipeline.org/ns/core/v1\" \
    suggested_sub_id=\"below\"><initial-payload><down xmlns=\"urn:test\"><n>3600000000</n></down>\
    </initial-payload></spawn-thread>";

fn echo() -> Echo {
    Echo { text: "Hello?".to_owned() }
}

fn pump(path: &Path) -> Pump {
    let later =
        async |clock: Clock, Down { n }: Down| Later::at(clock.now_us() + n, Question { n });
    let later = Listener::new("later").on(later).on(async |_: Question| {}).grant::<Timers>();
    start((crate::usual(), later, SqliteLog::open(path, Durability::Normal).unwrap()))
}

/// What three ways of naming a thread come to, in this name.
async fn named(pump: &Pump, who: &Identity, thread: &ThreadId) -> Vec<String> {
    let pump = pump.clone().speaking_as(who.clone());
    let fork = pump.fork_at(&EntryId::new(thread, 1)).tell(echo()).await;
    [
        pump.in_thread(thread).tell(echo()).await.map(drop),
        pump.may_follow(who, thread).await.map(drop),
        fork.map(drop),
    ]
    .into_iter()
    .map(|it| it.map_or_else(|fault| fault.to_string(), |()| "yes".to_owned()))
    .collect()
}

#[tokio::test]
async fn who_names_a_damaged_thread_of_anothers_hears_that_it_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pumphouse.db");
    let pump = pump(&path);
    let who = |name: &str, operator| Identity { name: name.into(), operator };
    let (ada, bob, operator) = (who("ada", false), who("bob", false), who("root", true));
    let console = who("console", false);
    let hers = pump.clone().speaking_as(ada.clone());
    let spawn = xml::read(SPAWN, Profile::Wire, &XmlLimits::DOOR).unwrap();
    // One is damaged at its beginning, and one below its session, which says whose it is.
    let lost = hers.tell(echo()).await.unwrap().thread;
    let known = hers.ask_element(spawn).await.unwrap().thread().clone();
    let below = known.child("below", 0);
    pump.shutdown().await.unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "DROP TRIGGER entries_no_update;
         UPDATE entries SET body = CAST('<a/>' AS BLOB) WHERE seq = 1 AND thread IN
         (SELECT number FROM threads WHERE id IN ('{lost}', '{below}'));"
    ))
    .unwrap();
    drop(db);
    let pump = self::pump(&path);
    pump.ready().await.unwrap();
    let nobodys = named(&pump, &bob, &ThreadId::new("sess-nobodys")).await;
    assert!(nobodys.iter().all(|it| it.starts_with("P0012: ")), "{nobodys:?}");
    let own = |it: &String| it.starts_with("P0027: the log is damaged: ");
    for (thread, who, learns) in [
        (&lost, &ada, false),
        (&lost, &bob, false),
        (&lost, &console, true),
        (&lost, &operator, true),
        (&below, &ada, true),
        (&below, &bob, false),
        (&below, &console, false),
        (&below, &operator, true),
    ] {
        let told = named(&pump, who, thread).await;
        if learns {
            assert!(told.iter().all(own), "{thread} for {}: {told:?}", who.name);
        } else {
            assert_eq!(told, nobodys, "{thread} for {}", who.name);
        }
    }
    // What is sound beside the damage is as it was to those who may know of it.
    let session = named(&pump, &bob, &known).await;
    assert_eq!(session, nobodys);
    assert_eq!(named(&pump, &ada, &known).await[1], "yes");
    pump.shutdown().await.unwrap();
}
