//! The examples of *Reasoning & Iteration* over two turns: the agent's reply, and what the next
//! prompt says of that reply.

use pumphouse::listeners::agent::words::CognitionOut;
use pumphouse::wire::core::{ContextCleared, SystemThreadError, ThreadSpawned};

use super::transcript::thread;
use super::*;

/// What the model is shown in its next turn, and the thread, where it writes this first.
async fn next(writes: &'static str) -> (String, Vec<Entry>) {
    let (model, seen) = remembering([writes, "<response>42</response>"]);
    let agent = oracle(model).peers(["calculate"]);
    let thread = thread(agent).await;
    let seen = seen.lock().unwrap();
    (seen[1].messages.last().unwrap().text.clone(), thread)
}

fn count(thread: &[Entry], line: &str) -> usize {
    let of = |it: &&Entry| {
        format!("{} > {}: {}", it.from(), it.to().unwrap_or("*"), it.name().local()) == line
    };
    thread.iter().filter(of).count()
}

#[tokio::test]
async fn self_reflection_is_a_message_to_oneself() {
    let writes = r#"<oracle xmlns="https://xml-pipeline.org/ns/oracle/v1">
        <thought>Outlining steps...</thought>
        <!-- more thoughts or tool calls -->
        </oracle>"#;
    let (_, thread) = next(writes).await;
    assert_eq!(count(&thread, "oracle > oracle: thought"), 1);
    assert_eq!(count(&thread, "oracle > oracle: oracle"), 1);
    let words: Vec<CognitionOut> = thread.iter().filter_map(|it| it.decode().ok()).collect();
    assert_eq!((words.len(), &*words[0].text), (2, writes));
}

/// What an agent is told that writes this: in its next prompt, and to the letter in its thread.
async fn told<P: Payload>(writes: &'static str) -> P {
    let (prompt, thread) = next(writes).await;
    let element = format!("<{} ", P::NAME.local());
    assert!(prompt.contains(&element), "{prompt}");
    let told = thread.iter().find(|it| it.to() == Some("oracle") && it.is::<P>());
    told.unwrap().decode().unwrap()
}

#[tokio::test]
async fn a_branch_is_spawned_and_confirmed_with_its_id() {
    let ThreadSpawned { assigned_id, parent_id, .. } = told(
        r#"<spawn-thread suggested_sub_id="research">
<initial-payload>
<calculate><expression>6*7</expression></calculate>
</initial-payload>
</spawn-thread>"#,
    )
    .await;
    assert_eq!(assigned_id, format!("{parent_id}.research"));
    assert!(parent_id.starts_with("sess-"), "{parent_id}");
}

#[tokio::test]
async fn an_unknown_thread_is_told_as_it_is_printed() {
    let told: SystemThreadError = told(r#"<cancel-thread thread="bad"/>"#).await;
    let message = "Unknown thread; emit <spawn-thread/> to create.";
    assert_eq!(
        (&*told.unknown_id, &*told.code, &*told.message),
        ("bad", "unknown_thread", message)
    );
}

#[tokio::test]
async fn a_clear_is_confirmed() {
    let told: ContextCleared = told(r#"<clear-context keep="10"/>"#).await;
    assert_eq!(told.kept_messages, 10);
}

#[tokio::test]
async fn a_plan_is_a_checklist_that_stays_in_sight() {
    let (told, thread) = next(
        r#"<todo-until condition="all sources checked">
<step done="true">Search web</step>
<step done="false">Analyze results</step>
</todo-until>"#,
    )
    .await;
    assert!(told.contains("Analyze results"), "{told}");
    assert_eq!(count(&thread, "todo > oracle: todo-registered"), 1);
}

/// The rules of the system message write a step without `done`.
#[tokio::test]
async fn a_step_that_does_not_say_whether_it_is_done_is_open() {
    let (told, thread) =
        next(r#"<todo-until condition="the draft is done"><step>Write it</step></todo-until>"#)
            .await;
    assert!(told.contains("Write it"), "{told}");
    assert_eq!(count(&thread, "todo > oracle: todo-registered"), 1);
}

#[tokio::test]
async fn iteration_ends_with_the_final_response() {
    let (_, thread) = next("<response final=\"false\">Outlining…</response>").await;
    let last = thread.last().unwrap().decode::<Response>().unwrap();
    assert_eq!((last.is_final, &*last.text), (true, "42"));
    assert_eq!(count(&thread, "oracle > oracle: cognition_in"), 2);
}
