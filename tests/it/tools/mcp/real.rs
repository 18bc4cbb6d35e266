//! MCP servers of other projects, each used by an agent in a scene. `just mcp-servers` installs
//! them.

use std::path::PathBuf;
use std::process::Command;

use crate::program::Scene;
use crate::tools::{asked, in_order, organism};

/// Where a server's program is, in the folder that `MCP_SERVERS` names.
#[expect(clippy::disallowed_methods, reason = "where a program is, the machine says")]
fn installed(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("MCP_SERVERS").map(PathBuf::from);
    let found = folder.and_then(|folder| {
        let places = ["venv/bin", "node_modules/.bin"];
        places.iter().map(|it| folder.join(it).join(name)).find(|it| it.exists())
    });
    if found.is_none() {
        crate::skipped(&format!("no {name}; `just mcp-servers` installs it"));
    }
    found
}

/// Where `node` is, and `git`.
#[expect(clippy::disallowed_methods, reason = "where a program is, the machine says")]
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// An agent with the server `it`, which answers with what its one action came to.
fn scene(server: &str, more: &str, action: &str) -> Option<Scene> {
    let program = installed(server)?;
    let path = search_path();
    let settings = format!(
        "use: mcp, settings: {{command: [\"{}\"{more}], env: {{PATH: \"{path}\"}}}}",
        program.display()
    );
    let replies = format!(
        "%% reply\n<action id=\"a\">{action}</action>\n\
         %% reply\n<response>It is: ${{a}}</response>\n"
    );
    let scene = organism(&[("it", &settings)], &replies);
    scene.run(&["check", "--live"]).code(0);
    Some(scene)
}

#[test]
fn mcp_server_time_tells_an_agent_the_time() {
    let action = r#"{"name": "it.convert_time", "parameters": {"source_timezone": "UTC",
        "time": "12:00", "target_timezone": "Asia/Tokyo"}}"#;
    let Some(scene) = scene("mcp-server-time", ", --local-timezone, UTC", action) else { return };
    in_order(&asked(&scene, "What time is it in Tokyo?"), &["Asia/Tokyo", "21:00", "It is: "]);
}

#[test]
fn mcp_server_git_shows_an_agent_a_commit() {
    let action = r#"{"name": "it.git_log", "parameters": {"repo_path": "work"}}"#;
    let Some(scene) = scene("mcp-server-git", "", action) else { return };
    scene.write("work/a.txt", "a\n");
    for arguments in [
        &["init", "-q"][..],
        &["add", "a.txt"],
        &["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "The first of all"],
    ] {
        let git = Command::new("git").args(arguments).current_dir(scene.path("work")).status();
        assert!(git.unwrap().success());
    }
    in_order(&asked(&scene, "What is new?"), &["git_log", "The first of all", "It is: "]);
}

#[test]
fn server_filesystem_writes_a_file_for_an_agent() {
    let action = r#"{"name": "it.write_file", "parameters": {"path": "work/tea.txt",
        "content": "green & black"}}"#;
    let Some(scene) = scene("mcp-server-filesystem", ", .", action) else { return };
    scene.write("work/a.txt", "a\n");
    in_order(&asked(&scene, "Note the tea."), &["write_file", "It is: "]);
    assert_eq!(std::fs::read_to_string(scene.path("work/tea.txt")).unwrap(), "green & black");
}

#[test]
fn server_everything_shows_an_agent_a_picture() {
    let action = r#"{"name": "it.get-tiny-image"}"#;
    let Some(scene) = scene("mcp-server-everything", ", stdio", action) else { return };
    let entries = asked(&scene, "Show it.");
    in_order(&entries, &["<attachment", "image/png", "iVBORw0KGgo", "tool-result", "attached]"]);
}

#[test]
fn server_everything_says_how_far_it_is() {
    let action = r#"{"name": "it.trigger-long-running-operation",
        "parameters": {"duration": 1, "steps": 4}}"#;
    let Some(scene) = scene("mcp-server-everything", ", stdio", action) else { return };
    let events = scene.pipe(&["chat", "--json"], "Do it.\n").code(0).objects();
    let of = |kind: &str| events.iter().filter(|it| it["type"] == kind).count();
    assert!(of("tool_call_progress") > 0, "{events:#?}");
    assert_eq!(of("tool_call_result"), 1, "{events:#?}");
}
