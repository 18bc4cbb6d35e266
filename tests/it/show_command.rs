//! What `show` and `tree` tell of a thread beside its messages: what is hidden from prompts, and
//! checklists.

use pumphouse::listeners::echo::Echo;
use pumphouse::listeners::standard;
use pumphouse::listeners::todo::words::{
    Step, TodoClosed, TodoComplete, TodoRegistered, TodoUntil,
};
use pumphouse::listeners::view::{ClearContext, UndoClear};
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::wire::core::{ContextCleared, ContextRestored};

use crate::program::{Scene, log_in};

/// A pump that writes what the program reads.
fn start(scene: &Scene) -> Pump {
    let data = scene.write("data/here", "");
    let log = SqliteLog::open(log_in(data.parent().unwrap()), Durability::Normal).unwrap();
    pumphouse::builder().with((standard(), log)).build().unwrap().start()
}

/// Something that comes back.
fn echo(text: &str) -> Echo {
    Echo { text: text.into() }
}

#[tokio::test]
async fn what_prompts_do_not_show_is_marked() {
    let scene = Scene::new();
    let pump = start(&scene);
    let thread = pump.tell(echo("first")).await.unwrap().thread;
    let here = pump.in_thread(&thread);
    here.ask::<Echo>(echo("second")).await.unwrap();
    here.ask::<ContextCleared>(ClearContext { keep: 2 }).await.unwrap();
    let hidden = |scene: &Scene| -> Vec<bool> {
        let shown = scene.run(&["show", thread.as_str(), "--json"]).code(0).objects();
        shown.iter().map(|it| it["hidden"].as_bool().unwrap_or(false)).collect()
    };
    assert_eq!(hidden(&scene), [false, true, true, false, false, false]);
    let shown = scene.run(&["show", thread.as_str()]).code(0).out;
    let headers: Vec<bool> =
        shown.lines().filter(|it| it.contains(" → ")).map(|it| it.ends_with("  hidden")).collect();
    assert_eq!(headers, [false, true, true, false, false, false], "{shown}");
    let one = scene.run(&["show", &format!("{thread}/3")]).code(0).out;
    assert!(one.lines().next().unwrap().ends_with("  hidden"), "{one}");
    here.ask::<ContextRestored>(UndoClear).await.unwrap();
    assert_eq!(hidden(&scene), [false; 8]);
    pump.shutdown().await.unwrap();
}

fn list(condition: &str, steps: &[(&str, bool)]) -> TodoUntil {
    let step = |(text, done): &(&str, bool)| Step { done: Some(*done), text: (*text).into() };
    let (condition, step) = (condition.into(), steps.iter().map(step).collect());
    TodoUntil { condition, wait_for: None, from: None, step }
}

#[tokio::test]
async fn checklists_stand_in_show_and_are_counted_in_tree() {
    let scene = Scene::new();
    let pump = start(&scene);
    let steps = [("Search web", true), ("Analyze results", false)];
    let thread = pump.tell(list("all sources checked", &steps)).await.unwrap().thread;
    let here = pump.in_thread(&thread);
    let other: TodoRegistered = here.ask(list("fed\nthe cat", &[])).await.unwrap();
    let shown = scene.run(&["show", thread.as_str()]).code(0).out;
    let (_, end) = shown.split_once("\ntodo ").unwrap();
    let second = format!("\ntodo /{}  fed&#xA;the cat  1 of 1 open\n", other.id);
    let first = "/1  all sources checked  1 of 2 open\n  [x] Search web\n  [ ] Analyze results\n";
    assert_eq!(end, format!("{first}{second}"));
    let tree = scene.run(&["tree", thread.as_str()]).code(0);
    assert!(tree.out.contains("  todo 2/3  ") && !tree.out.contains("under way"), "{tree:?}");
    let tree = scene.run(&["tree", "--json"]).code(0).objects().remove(0);
    assert_eq!((&tree["steps_open"], &tree["steps"]), (&2.into(), &3.into()));
    for id in [1, other.id] {
        let _: TodoClosed = here.ask(TodoComplete { id }).await.unwrap();
    }
    let shown = scene.run(&["show", thread.as_str()]).code(0).out;
    assert!(!shown.contains("\ntodo "), "{shown}");
    let tree = scene.run(&["tree", thread.as_str()]).code(0).out;
    assert!(!tree.contains("  todo "), "{tree}");
    pump.shutdown().await.unwrap();
}
