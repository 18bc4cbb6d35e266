//! The blocks around actions in a reply: conditions, loops, and parallel actions. A block adds its
//! condition, its list or its number to each action in it. The listener `action` interprets these
//! additions when it runs the actions.

use std::collections::BTreeMap;

use pumphouse::limits::ActionLimits;
use pumphouse::reply::{Attribute, Body, Element, Kind};
use pumphouse::schema::{json, nearest};
use serde_json::{Map, Value};

use super::super::action::read::{Mistakes, action_within};
use super::super::action::variables::{Piece, list_reference, pieces};
use super::super::action::words::References;
use super::super::action::words::{Action, Dialect, ForEach, ITEMS_MAX, METADATA, When};
use super::super::condition::{Condition, Type};
use super::super::metadata::Fields;
use super::action_templates::Templates;
use super::compensation::{self, Callable, Compensations, Rollback};
use super::settings::Settings;
use super::stream_field;

/// Maximum nesting depth of blocks.
const BLOCKS_DEPTH_MAX: usize = 16;

/// The open blocks of a reply.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: Vec<Block>,
    /// The number of blocks so far.
    count: u64,
    /// Whether the block that is about to open starts within a line of text. Such a block is
    /// refused.
    is_inline: bool,
    /// The reason why no further action of the reply runs: the tag of a block couldn't be read, and
    /// the actions may be inside this block. None if all tags could be read.
    lost: Option<String>,
    compensations: Compensations,
    /// Whether the agent's replies may have blocks.
    is_on: bool,
    turn: u64,
    fields: Fields,
    templates: Templates,
    /// Which texts of an `<action>` are references.
    references: References,
    limits: ActionLimits,
    callable: Callable,
}

#[derive(Debug)]
struct Block {
    name: String,
    kind: BlockKind,
    /// Whether the block has a mistake, so that nothing in it runs.
    is_dead: bool,
    /// Whether the block has no content and no close tag, as in `<rollback/>`.
    is_empty: bool,
}

#[derive(Debug)]
enum BlockKind {
    If(String),
    Else,
    Each(ForEach),
    Parallel {
        number: u64,
        max: Option<u64>,
    },
    /// A block that adds nothing: `then`, `rollback`, or one with a mistake.
    Plain,
}

impl Blocks {
    pub(super) fn new(turn: u64, settings: &Settings) -> Blocks {
        Blocks {
            is_on: settings.control_flow,
            turn,
            fields: settings.metadata.clone(),
            templates: settings.action_templates.clone(),
            references: settings.references_of(None).unwrap_or_default(),
            limits: settings.action_limits,
            ..Blocks::default()
        }
    }

    /// Sets the names that the agent's compensations may call. Until then, these names aren't
    /// checked.
    pub(super) fn allow_calls(&mut self, callable: Callable) {
        self.callable = callable;
    }

    /// Reads an action, fills in its template, and adds what the blocks around it require.
    pub(super) fn action(
        &mut self,
        element: &Element<'_>,
        dialect: Option<Dialect>,
    ) -> Result<Action, Mistakes> {
        let id = element.attribute("id").unwrap_or_default().to_owned();
        let wrong = |why: String| Mistakes::one(&id, why);
        let mut element = *element;
        let filled = self
            .templates
            .filled(&element, self.references, |it| self.callable.command(it))
            .map_err(wrong)?;
        if let Some(it) = &filled {
            element.body = Body::Json(&it.body);
        }
        let taken = if self.is_on { compensation::taken(&element) } else { Ok(None) };
        let (body, compensate) = taken.map_err(wrong)?.unzip();
        if let Some(call) = &compensate {
            self.callable.check(call).map_err(wrong)?;
        }
        if let Some(text) = &body {
            element.body = Body::Json(text);
        }
        let taken = if self.is_on { stream_field::taken(&element) } else { Ok(None) };
        let (body, stream) = taken.map_err(wrong)?.unzip();
        if let Some(text) = &body {
            element.body = Body::Json(text);
        }
        let mut action = action_within(&element, Some(self.turn), dialect, &self.limits)?;
        (action.compensate, action.stream) = (compensate, stream.filter(|it| *it));
        action.template_text = filled.map(|it| it.texts).unwrap_or_default();
        let applied = self.apply(&mut action);
        applied.map_err(|why| Mistakes::one(&action.id, why))?;
        Ok(action)
    }

    /// Records that the block that is about to open starts within a line, so that it is refused.
    pub(super) fn enter_line(&mut self) {
        self.is_inline = true;
    }

    /// Records that the tag of a block couldn't be read. Later actions may be inside this block, so
    /// none of them runs.
    pub(super) fn loses(&mut self, name: &str) {
        if !self.is_on || !["if", "then", "else", "foreach", "parallel"].contains(&name) {
            return;
        }
        self.lost = Some(format!("the tag <{name}> before it couldn't be read"));
    }

    /// Opens a block with the open tag `tag`. For a `<rollback>`, returns the actions that undo
    /// earlier actions. For any other block, the list is empty.
    ///
    /// # Errors
    /// If the block has a mistake, which the error describes. Nothing in the block runs then.
    pub(super) fn opens(
        &mut self,
        element: &Element<'_>,
        tag: &str,
    ) -> Result<Vec<Action>, String> {
        let is_inline = std::mem::take(&mut self.is_inline);
        let is_within_dead = self.open.iter().any(|it| it.is_dead);
        self.count += 1;
        let read = match () {
            () if is_inline => {
                Err("it stands within a line, and counts only where it begins one".to_owned())
            }
            () if self.open.len() >= BLOCKS_DEPTH_MAX => {
                Err(format!("there are {BLOCKS_DEPTH_MAX} blocks around it, which is the most"))
            }
            () => self.kind(element),
        };
        let (kind, read) = match read {
            Ok(it) => (it, Ok(())),
            Err(why) => (BlockKind::Plain, Err(why)),
        };
        let is_dead = read.is_err();
        let is_empty = tag.ends_with("/>");
        self.open.push(Block { name: element.name.to_owned(), kind, is_dead, is_empty });
        // Within a block that has a mistake, further mistakes aren't reported.
        match read {
            Err(why) if !is_within_dead => {
                Err(format!("<{}> and what is in it did not run: {why}", element.name))
            }
            Ok(()) if element.name == "rollback" && !is_within_dead => self.rolls_back(element),
            _ => Ok(Vec::new()),
        }
    }

    /// Closes the innermost block. `tag` is its close tag, and empty if the reply has none. Returns
    /// a notice for the model if the close tag is missing.
    pub(super) fn closes(&mut self, tag: &str) -> Option<String> {
        let Block { name, .. } = self.open.pop().filter(|it| tag.is_empty() && !it.is_empty)?;
        if name == "then" || name == "else" {
            // A branch may lack its close tag. It ends with its `<if>`, or where the other branch
            // begins.
            return None;
        }
        let end = match self.open.last() {
            Some(around) => format!("the end of <{}> around it", around.name),
            None => "the end of your text".to_owned(),
        };
        Some(format!("<{name}> has no </{name}>: all that follows it, up to {end}, stood in it"))
    }

    /// Returns the reason to refuse an element that stands in a block but is no action. None for
    /// thoughts and for blocks.
    pub(super) fn refuses(&self, kind: Kind) -> Option<String> {
        let is_free = matches!(kind, Kind::Thought | Kind::Control);
        let is_call = matches!(kind, Kind::Action | Kind::ToolUse | Kind::ToolCall);
        let block = self.open.last().filter(|_| !is_free && !is_call)?;
        Some(format!("it stands in <{}>, which takes actions only", block.name))
    }

    /// Adds to an action what the blocks around it require.
    ///
    /// # Errors
    /// If the action must not run. The error has the reason.
    fn apply(&mut self, action: &mut Action) -> Result<(), String> {
        if let Some(why) = &self.lost {
            return Err(why.clone());
        }
        if let Some(block) = self.open.iter().find(|it| it.is_dead) {
            return Err(format!("<{}> around it has a mistake", block.name));
        }
        self.surround(action);
        if action.stream == Some(true) && action.for_each.is_some() {
            return Err(stream_field::IN_FOREACH.to_owned());
        }
        self.compensations.record(action);
        Ok(())
    }

    fn surround(&self, action: &mut Action) {
        let own = action.when.take().map(|it| (it.condition, false));
        let condition = joined(self.conditions().chain(own));
        action.when = condition.map(|condition| When { metadata: None, condition });
        for block in &self.open {
            match &block.kind {
                BlockKind::Each(each) => action.for_each = Some(each.clone()),
                BlockKind::Parallel { number, max } => {
                    (action.parallel, action.parallel_max) = (Some(*number), *max);
                }
                _ => {}
            }
        }
    }

    /// Returns the conditions of the open blocks. The flag is true for a condition that must not
    /// hold, since its `<else>` is open.
    fn conditions(&self) -> impl Iterator<Item = (String, bool)> {
        let behind = self.open.iter().skip(1).map(Some).chain([None]);
        self.open.iter().zip(behind).filter_map(|(block, next)| match &block.kind {
            BlockKind::If(condition) => {
                let is_else = next.is_some_and(|it| matches!(it.kind, BlockKind::Else));
                Some((condition.clone(), is_else))
            }
            _ => None,
        })
    }

    fn has(&self, is_meant: impl Fn(&BlockKind) -> bool) -> bool {
        self.open.iter().any(|it| is_meant(&it.kind))
    }

    fn kind(&self, element: &Element<'_>) -> Result<BlockKind, String> {
        match element.name {
            "if" => {
                let test = needed(element, &["test"], "test", "test=\"sum > 3\"")?;
                self.condition(test).map(BlockKind::If)
            }
            "foreach" => {
                if self.has(|it| matches!(it, BlockKind::Each(_))) {
                    let advice = "call an agent or a workflow for each item, with the inner loop";
                    return Err(format!("it stands in a <foreach>; {advice}"));
                }
                self.each(element).map(BlockKind::Each)
            }
            "parallel" => {
                knows(element, &["max"])?;
                if self.has(|it| matches!(it, BlockKind::Parallel { .. })) {
                    let why = "it stands in a <parallel>, where all runs side by side anyway";
                    return Err(why.to_owned());
                }
                let max = count(element, "max", None)?;
                Ok(BlockKind::Parallel { number: self.count, max })
            }
            "else" => knows(element, &[]).map(|()| BlockKind::Else),
            "rollback" if self.has(|it| matches!(it, BlockKind::Each(_))) => {
                Err("it stands in a <foreach>".to_owned())
            }
            "rollback" => knows(element, &["to"]).map(|()| BlockKind::Plain),
            _ => knows(element, &[]).map(|()| BlockKind::Plain),
        }
    }

    /// Checks the condition of a block, and returns it.
    fn condition(&self, test: &str) -> Result<String, String> {
        let read = Condition::parse(test).map_err(|it| format!("test: {it}"))?;
        for reference in read.references().iter().filter(|it| it.name() == METADATA) {
            if let Some(lacks) = reference.path().next().and_then(|it| self.fields.lacks(&it)) {
                return Err(format!("test: your metadata has {lacks}"));
            }
        }
        // The types of results of actions aren't known.
        let mut types = BTreeMap::from([(METADATA.to_owned(), Type::of_metadata(&self.fields))]);
        for reference in read.references() {
            types.entry(reference.name().to_owned()).or_default();
        }
        read.check(&Type::Record(types)).map_err(|it| format!("test: {it}"))?;
        let all = joined(self.conditions().chain([(test.to_owned(), true)])).unwrap_or_default();
        Condition::parse(&all).map_err(|it| format!("with the blocks around it, test: {it}"))?;
        Ok(test.to_owned())
    }

    fn each(&self, element: &Element<'_>) -> Result<ForEach, String> {
        let names = ["var", "in", "max"];
        let example = "<foreach var=\"page\" in=\"search.pages\">";
        let var = needed(element, &names, "var", example)?;
        let list = needed(element, &names, "in", example)?.trim();
        let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let begins = var.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        if !begins || !var.chars().all(word) || var == METADATA {
            return Err(format!(
                "var is a name of letters, digits and _, but not metadata; it is {var:?}"
            ));
        }
        let max = count(element, "max", Some(ITEMS_MAX))?;
        let most = max.map_or(ITEMS_MAX, |it| usize::try_from(it).unwrap_or(ITEMS_MAX));
        if let Some(reference) = list_reference(list) {
            if !matches!(pieces(&reference)[..], [Piece::Reference(_)]) {
                let forms = "a list in JSON or a reference to one, as in search.pages";
                return Err(format!("in takes {forms}, not {list:?}"));
            }
        } else {
            match json::read(list) {
                Ok(Value::Array(items)) if items.len() > most => {
                    let has = items.len();
                    return Err(format!("in has {has} items, and takes {most} at the most"));
                }
                Ok(_) => {}
                Err(error) => return Err(format!("in is no list in JSON: {error}")),
            }
        }
        let (var, list) = (var.to_owned(), list.to_owned());
        Ok(ForEach { var, block: self.count, max, list })
    }

    /// Returns the actions that undo earlier actions.
    fn rolls_back(&mut self, element: &Element<'_>) -> Result<Vec<Action>, String> {
        if let Some(why) = &self.lost {
            return Err(format!("<rollback> did not run: {why}"));
        }
        let rollback = Rollback { to: element.attribute("to") };
        let mut actions = self
            .compensations
            .rollback(&rollback)
            .map_err(|why| format!("<rollback> did not run: {why}"))?;
        for it in &mut actions {
            it.turn = Some(self.turn);
            self.surround(it);
        }
        Ok(actions)
    }
}

/// Stores in an action the metadata fields to which its condition refers, with their values.
pub(super) fn note_metadata(action: &mut Action, value: impl Fn(&str) -> Option<Value>) {
    let Some(when) = &mut action.when else { return };
    let Ok(condition) = Condition::parse(&when.condition) else { return };
    let used = condition.references().into_iter().filter(|it| it.name() == METADATA);
    let used = used.filter_map(|it| it.path().next().map(|it| it.into_owned()));
    let known: Map<String, Value> = used.filter_map(|it| Some((it.clone(), value(&it)?))).collect();
    when.metadata = (!known.is_empty()).then(|| json::text(&Value::Object(known)));
}

/// Joins conditions with `and`. The flag says that a condition must not hold. None if there are no
/// conditions.
fn joined(conditions: impl Iterator<Item = (String, bool)>) -> Option<String> {
    let mut all: Vec<(String, bool)> = conditions.collect();
    match &all[..] {
        [(_, false)] => return all.pop().map(|it| it.0),
        [] => return None,
        _ => {}
    }
    let each = all.into_iter().map(|(condition, is_not)| match is_not {
        true => format!("not ({condition})"),
        false => format!("({condition})"),
    });
    Some(each.collect::<Vec<_>>().join(" and "))
}

/// Checks that an element has no attributes other than these.
fn knows(element: &Element<'_>, names: &[&str]) -> Result<(), String> {
    let is_unknown = |it: &&Attribute| !names.contains(&&*it.name);
    let Some(Attribute { name, .. }) = element.attributes.iter().find(is_unknown) else {
        return Ok(());
    };
    let right = nearest(name, names.iter().copied());
    let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
    let known = match names {
        [] => "it takes no attribute".to_owned(),
        names => format!("it takes {}", names.join(", ")),
    };
    Err(format!("{name} is no attribute of it; {known}{right}"))
}

/// Returns the value of an attribute that an element must have.
fn needed<'e>(
    element: &Element<'e>,
    names: &[&str],
    name: &str,
    example: &str,
) -> Result<&'e str, String> {
    knows(element, names)?;
    let value = element.attribute(name).filter(|it| !it.trim().is_empty());
    value.ok_or_else(|| format!("{name} is missing, as in {example}"))
}

/// Reads an attribute as a whole number from 1 to `most`. None if the attribute is absent.
fn count(element: &Element<'_>, name: &str, most: Option<usize>) -> Result<Option<u64>, String> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    let most = most.unwrap_or(usize::MAX) as u64;
    match text.trim().parse::<u64>() {
        Ok(it) if (1..=most).contains(&it) => Ok(Some(it)),
        _ if most == usize::MAX as u64 => {
            Err(format!("{name} takes a whole number from 1 on, not {text:?}"))
        }
        _ => Err(format!("{name} takes a whole number from 1 to {most}, not {text:?}")),
    }
}
