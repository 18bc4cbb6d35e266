//! `use: recall`: what an agent finds in its thread.

use super::{in_order, organism};

#[test]
fn an_agent_finds_what_was_said_and_is_told_its_entries() {
    let replies = "%% reply\n<response>Noted.</response>\n\
                   %% reply\n<action id=\"a\">{\"name\": \"recall\", \"parameters\": \
                   {\"text\": \"GREEN tea\", \"name\": \"coder\"}}</action>\n\
                   %% reply\n<action id=\"b\">{\"name\": \"recall\", \"parameters\": \
                   {\"text\": \"coffee\"}}</action>\n\
                   %% reply\n<action id=\"c\">{\"name\": \"recall\"}</action>\n\
                   %% reply\n<action id=\"d\">{\"name\": \"recall\", \"parameters\": \
                   {\"text\": \"green\"}}</action>\n\
                   %% reply\n<response>It is green.</response>\n";
    let scene = organism(&[("recall", "use: recall")], replies);
    scene.run(&["check"]).code(0);
    scene.pipe(&["chat"], "My tea is green.\nWhich tea?\n").code(0);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let thread = threads[0]["thread"].as_str().unwrap();
    let entries = scene.run(&["show", thread, "--json"]).code(0).objects();
    let payloads: Vec<&str> = entries.iter().map(|it| it["payload"].as_str().unwrap()).collect();
    let answers: Vec<&&str> = payloads.iter().filter(|it| it.starts_with("<recalled")).collect();
    let [found, nothing, again] = answers[..] else { panic!("{payloads:#?}") };
    let first = format!("entry=\"{thread}/1\"");
    let from = format!("from={}", entries[0]["from"]);
    in_order(found, &["left_out=\"0\"", "<found", &first, &from, "My tea is green."]);
    assert_eq!(found.matches("<found").count(), 1, "{found}");
    assert!(!nothing.contains("<found"), "{nothing}");
    // Neither what was asked nor what was answered is found again.
    in_order(again, &["left_out=\"0\"", "<found", &first]);
    assert_eq!(again.matches("<found").count(), 1, "{again}");
    let refused = payloads.iter().find(|it| it.starts_with("<not-recalled"));
    assert!(refused.is_some_and(|it| it.contains("say which")), "{payloads:#?}");
}
