//! The tools of a request as its wire takes them, and the way back to the tools' own names.

use std::borrow::Cow;

use super::property_names::{Toward, has_refused, renamed};
use super::tool_schema::rewritten;
use crate::model::piece::Call;
use crate::model::prompt::{Prompt, Tool};
use crate::model::wire_name::Wire;
use crate::schema::json;

/// The tools of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentTools {
    wire: Wire,
    /// The tools as they are sent.
    pub(crate) all: Vec<Tool>,
    /// The tools of which properties are sent by other names.
    renamed: Vec<Tool>,
}

/// Returns the tools that a server can't take, each with the reason.
pub(crate) fn left_out(wire: Wire, tools_max: usize, tools: &[Tool]) -> Vec<(String, String)> {
    let all = each_rewritten(wire, tools_max, tools);
    all.filter_map(|(tool, it)| Some((tool.name.clone(), it.err()?))).collect()
}

/// Rewrites each tool for a wire, or says why the server can't take it. Of the tools that the wire
/// can take, the server takes the first `tools_max`.
fn each_rewritten(
    wire: Wire,
    tools_max: usize,
    tools: &[Tool],
) -> impl Iterator<Item = (&Tool, Result<Tool, String>)> {
    let mut room = tools_max;
    tools.iter().map(move |tool| {
        let one = rewritten(wire, tool).and_then(|it| {
            let left = room.checked_sub(1);
            room = left.unwrap_or_default();
            let why = || format!("the server takes {tools_max} tools, and this is one more");
            left.map(|_| it).ok_or_else(why)
        });
        (tool, one)
    })
}

impl SentTools {
    /// Rewrites tools for a wire. Tools that the server can't take are left out.
    pub(crate) fn new(wire: Wire, tools_max: usize, tools: &[Tool]) -> SentTools {
        let all = each_rewritten(wire, tools_max, tools).filter_map(|(_, it)| it.ok()).collect();
        let renamed = tools.iter().filter(|it| has_refused(wire, &it.parameters)).cloned();
        SentTools { wire, all, renamed: renamed.collect() }
    }

    /// Returns a prompt whose earlier calls have the names that are sent.
    pub(crate) fn prompt<'a>(&self, prompt: &'a Prompt) -> Cow<'a, Prompt> {
        if self.renamed.is_empty() {
            return Cow::Borrowed(prompt);
        }
        let mut prompt = prompt.clone();
        for call in prompt.messages.iter_mut().flat_map(|it| &mut it.calls) {
            self.rename(call, Toward::Provider);
        }
        Cow::Owned(prompt)
    }

    /// Returns a call of the model with the tool's own names.
    pub(crate) fn meant(&self, mut call: Call) -> Call {
        self.rename(&mut call, Toward::Tool);
        call
    }

    fn rename(&self, call: &mut Call, toward: Toward) {
        let Some(tool) = self.renamed.iter().find(|it| it.name == call.name) else { return };
        // Arguments that can't be read are told as the model wrote them.
        if let Ok(arguments) = json::read(&call.arguments) {
            call.arguments = renamed(self.wire, &tool.parameters, arguments, toward).to_string();
        }
    }
}
