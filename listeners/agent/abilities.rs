//! The text in a prompt about an agent's abilities: what the agent may do besides calling its
//! peers. The house staff handles an ability's payloads even if the prompt doesn't mention the
//! ability.

use super::settings::{Ability, Settings};

/// The element by which a reply says what its agent waits for.
pub(super) const AWAIT: &str = "await";

impl Ability {
    /// The text about this ability in a prompt.
    fn text(self) -> &'static str {
        match self {
            Ability::Spawn => {
                "- <spawn-thread><initial-payload><helper \
                 xmlns=\"https://xml-pipeline.org/ns/helper/v1\">…</helper></initial-payload>\
                 </spawn-thread> has the agent helper work beside you; its end comes as a \
                 <thread-result>.\n"
            }
            Ability::Timers => {
                "- <set-timer in=\"PT1H\" note=\"…\"/> wakes you later; every=\"P1D\" or \
                 cron=\"0 9 * * 1\" in place of `in`, again and again.\n"
            }
            Ability::Todo => {
                "- <todo-until condition=\"…\"><step>…</step></todo-until> keeps a checklist; \
                 write it again with <step done=\"true\">.\n"
            }
            Ability::Clear => {
                "- <clear-context keep=\"10\"/> hides older messages; <undo-clear/> shows them.\n"
            }
            Ability::Feeds => {
                "- <action type=\"internal\">{\"name\": \"add_context_feed\", \"parameters\": \
                 {\"id\": \"log\", \"type\": \"on_demand\", \"source\": {\"type\": \"relic\", \
                 \"name\": \"WHOM\"}}}</action> shows you a peer's answer each turn.\n"
            }
        }
    }
}

/// The text in a prompt about the blocks around actions.
const CONTROL: &str = include_str!("control.txt");

/// Listeners of the house staff, each with the ability whose text describes the listener's
/// payloads.
pub(super) const STAFF: [(&str, Ability); 5] = [
    ("feed", Ability::Feeds),
    ("thread", Ability::Spawn),
    ("timer", Ability::Timers),
    ("todo", Ability::Todo),
    ("view", Ability::Clear),
];

/// The text in a prompt about an agent's abilities, blocks and action templates. Empty if the agent
/// has none of these.
pub(super) fn text(settings: &Settings) -> String {
    let may_add = settings.internal_actions.allows("add_context_feed");
    let is_true = |it: &&Ability| **it != Ability::Feeds || may_add;
    let abilities = settings.abilities.iter().filter(is_true).map(|it| it.text());
    let control = settings.control_flow.then_some(CONTROL);
    let mut text: String = abilities.chain(control).collect();
    for (name, placeholders) in settings.action_templates.all() {
        let each = placeholders.iter().map(|it| format!("\"{it}\": …"));
        let parameters = each.collect::<Vec<_>>().join(", ");
        let body = format!("{{\"template\": \"{name}\", \"parameters\": {{{parameters}}}}}");
        text += &format!("- <action>{body}</action> is a call that is prepared for you.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::system_prompt::HEADINGS;
    use super::*;

    #[test]
    fn all_abilities_take_at_most_200_tokens() {
        let text = text(&Settings::default());
        let bytes = text.len() + HEADINGS[1].1.len();
        assert!(bytes / 4 <= 200, "{bytes} bytes: {text}");
    }
}
