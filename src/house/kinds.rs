//! The lists of all kinds of listeners.

use std::time::Duration;

use crate::engine::{Builder, Factory};
use crate::listener::Listener;
use crate::model::Models;
use pumphouse_listeners::{describe, echo, staff};
use pumphouse_tools as tool;

/// The listeners of a server that was started without naming any: [`staff()`], `echo`, `calculate`
/// and `describe`.
#[must_use]
pub fn standard() -> Vec<Listener> {
    staff().into_iter().chain(usual()).collect()
}

/// The listeners that [`standard`] has besides the [`staff()`]: `echo`, `calculate` and `describe`.
#[must_use]
pub fn usual() -> Vec<Listener> {
    let describe = describe::describe(describe::Allow::default());
    vec![echo::echo(), tool::calculate::calculate(), describe]
}

/// How long the recorded MCP servers of a pump that begins are waited for.
const MCP_PATIENCE: Duration = Duration::from_secs(2);

/// Replaces the factory of `mcp` for a pump that is to run. The new factory starts the MCP servers
/// side by side, and asks them for their tools. A server that takes long isn't waited for if its
/// tools are recorded.
pub fn live_factories(builder: &mut Builder) {
    builder.factory(tool::mcp::asking(Some(MCP_PATIENCE)));
}

/// As [`live_factories`], but each MCP server's answer is waited for.
pub fn asking_factories(builder: &mut Builder) {
    builder.factory(tool::mcp::asking(None));
}

/// As [`live_factories`], but accepts an MCP server's tools even if the server describes them
/// differently than before.
pub fn accepting_factories(builder: &mut Builder) {
    builder.factory(Factory::new("mcp", tool::mcp::accepted));
}

/// Registers the factories of all listeners of the house staff that `use:` in a manifest may name.
/// `pumphouse::cli` calls this.
pub fn factories(builder: &mut Builder) {
    builder.factory(Factory::plain("echo", echo::echo));
    builder.factory(Factory::plain("calculate", tool::calculate::calculate));
    let context = |it: tool::agent_context::Settings| tool::agent_context::agent_context(&it);
    builder.factory(Factory::new("agent_context", context));
    builder.factory(Factory::new("alerts", |it: tool::alerts::Settings| {
        Ok::<_, String>(tool::alerts::alerts(it))
    }));
    builder.factory(Factory::new("command", tool::command::command));
    let documents = |it: tool::documents::Settings| tool::documents::documents(&it);
    builder.factory(Factory::new("documents", documents));
    let environment = |it: tool::environment::Settings| tool::environment::environment(&it);
    builder.factory(Factory::new("environment", environment));
    builder.factory(Factory::new("mcp", tool::mcp::recorded));
    builder.factory(Factory::new("shell", tool::shell::shell));
    builder.factory(Factory::new("fetch", |it: tool::fetch::Settings| tool::fetch::fetch(&it)));
    builder.factory(Factory::new("files", |it: tool::files::Settings| tool::files::files(&it)));
    builder.factory(Factory::new("git", |it: tool::git::Settings| tool::git::git(&it)));
    builder.factory(Factory::new("http", |it: tool::http::Settings| tool::http::http(&it)));
    let keyvalue = |it: tool::keyvalue::Settings| tool::keyvalue::keyvalue(&it);
    builder.factory(Factory::new("keyvalue", keyvalue));
    builder.factory(Factory::with("llm", |it: tool::llm::Settings, models: &Models| {
        tool::llm::llm(&it, models)
    }));
    builder.factory(Factory::plain("organism_state", tool::organism_state::organism_state));
    let other = |it: tool::other_organism::Settings| tool::other_organism::other_organism(&it);
    builder.factory(Factory::new("other_organism", other));
    let monitor = |it: tool::system_monitor::Settings| tool::system_monitor::system_monitor(&it);
    builder.factory(Factory::new("system_monitor", monitor));
    builder.factory(Factory::new("recall", |it: tool::recall::Settings| {
        Ok::<_, String>(tool::recall::recall(&it))
    }));
    let service = |it: tool::service::Settings| tool::service::service(&it);
    builder.factory(Factory::new("service", service));
    let skills = |it: tool::skills::Settings| tool::skills::skills(&it);
    builder.factory(Factory::new("skills", skills));
    builder.factory(Factory::plain("subscribe", tool::subscribe::subscribe));
    builder.factory(Factory::new("sql", |it: tool::sql::Settings| tool::sql::sql(&it)));
}
