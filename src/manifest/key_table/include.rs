//! The keys of included files: agents and workflows in files of their own.

use crate::manifest::key_table::{Key, Kind, Map, agent, key};

/// The kinds of included files.
pub(in crate::manifest) const KINDS: [&str; 2] = ["Agent", "Workflow"];

/// The keys of an agent's file that an agent in a manifest doesn't have.
pub(in crate::manifest) const AGENT_ONLY: [&str; 3] = ["kind", "version", "import"];

/// The keys of an agent's file.
pub(in crate::manifest) fn agent_file() -> Kind {
    let kind = "What the file is.";
    let version = "Its author's number for it. It changes nothing.";
    let import = "What the agent may call.";
    let description = "What it is for, in a sentence.";
    let kinds: &[(&str, &str)] = &[("Agent", "An agent."), ("Workflow", "A workflow.")];
    let mut keys = vec![
        Key { needed: true, ..key("kind", Kind::Word(kinds), kind, "kind: Agent") },
        key("version", Kind::Text, version, "version: \"1.0\""),
        key("description", Kind::Text, description, "description: Writes code."),
        key("import", Kind::Map(imports()), import, "import: {tools: [calculate]}"),
    ];
    keys.extend(agent::agent().keys.into_iter().filter(|it| it.name != "use"));
    Kind::Map(Map { what: "an agent's file", keys, one_of: &[] })
}

fn imports() -> Map {
    let texts = || Kind::List(Box::new(Kind::Text));
    let tools = "Listeners that do one thing; ... stands for all of the manifest's.";
    let workflows = "Workflows, by name or by file. Their triggers watch its metadata.";
    let agents = "Other agents.";
    let relics = "Listeners that store data.";
    let keys = vec![
        key("tools", texts(), tools, "tools: [calculate]"),
        key("workflows", texts(), workflows, "workflows: [./workflows/code_finalization.yml]"),
        key("agents", texts(), agents, "agents: [reviewer]"),
        key("relics", texts(), relics, "relics: [notes]"),
    ];
    Map { what: "import", keys, one_of: &[] }
}
