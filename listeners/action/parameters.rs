//! References in the parameters of an action. What a model writes is text: only a whole text such
//! as `$name`, `${name}` or `${name.path}` is a reference. `$$name`, as a whole text, is the text
//! `$name` if the name is known. Every other text is passed on as it is. The texts that an author's
//! template made may have references within them; the action marks these places.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pumphouse::schema::json;
use pumphouse::xml::{Child, View};
use serde_json::Value;

use super::filling::{Filling, put};
use super::variables::{Lookup, Reference, whole};
use super::words::{Action, Dialect, References, TemplateText};

/// The JSON pointer of an action's parameters.
const PARAMETERS: &str = "/parameters";

/// The rules by which the texts of an action's parameters are references.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    references: References,
    /// The names that are always references: of the item of the action's list, and of the source of
    /// its partial results.
    own: Vec<String>,
    /// Maps the JSON pointer of each text of a template to the places of its references.
    templates: BTreeMap<String, Vec<Range<usize>>>,
}

/// The names in an action's parameters.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The names of references.
    pub references: BTreeSet<String>,
    /// The names in texts such as `$$name`.
    pub escaped: BTreeSet<String>,
}

impl Parameters {
    /// The rules for an action. `source` is the name of the action whose partial results it takes.
    #[must_use]
    pub fn of(action: &Action, source: Option<&String>) -> Parameters {
        let templates =
            action.template_text.iter().filter_map(|TemplateText { at, references }| {
                let at = at.strip_prefix(PARAMETERS)?.to_owned();
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let places = references.as_deref().unwrap_or_default().chunks_exact(2);
                Some((at, places.map(|it| place(it[0])..place(it[1])).collect()))
            });
        let item = action.for_each.as_ref().map(|it| &it.var);
        Parameters {
            references: action.references.unwrap_or_else(|| by_default(action.dialect)),
            own: item.into_iter().chain(source).cloned().collect(),
            templates: templates.collect(),
        }
    }

    /// Whether the name of a called listener may be a reference.
    #[must_use]
    pub fn has_targets(&self) -> bool {
        self.references == References::All
    }

    fn counts(&self, reference: &Reference<'_>) -> bool {
        counts(self.references, reference) || self.own.iter().any(|it| it == reference.name)
    }

    /// The references in a text, each with its place and whether it is escaped. `at` is the text's
    /// JSON pointer in the parameters.
    fn parts<'a>(&self, at: &str, text: &'a str) -> Vec<(Range<usize>, Reference<'a>, bool)> {
        match self.templates.get(at) {
            None => {
                let found = whole(text).filter(|(it, _)| self.counts(it));
                found.map(|(it, is_escaped)| (0..text.len(), it, is_escaped)).into_iter().collect()
            }
            Some(places) => {
                let part = |place: &Range<usize>| {
                    let (found, is_escaped) = whole(text.get(place.clone())?)?;
                    Some((place.clone(), found, is_escaped))
                };
                places.iter().filter_map(part).collect()
            }
        }
    }

    /// The names in parameters that are JSON.
    #[must_use]
    pub fn names(&self, parameters: &Value) -> Names {
        let mut names = Names::default();
        each(parameters, &mut String::new(), &mut |at, text| names.add(self.parts(at, text)));
        names
    }

    /// The names in parameters that are elements. Child elements with a namespace are skipped,
    /// since they are sent as they are.
    #[must_use]
    pub fn names_within(&self, parameters: View<'_>) -> Names {
        let mut names = Names::default();
        each_within(parameters, &mut |text| names.add(self.parts("", text)));
        names
    }

    /// Replaces the references in parameters that are JSON. A text that is nothing but a reference
    /// becomes the reference's value, of any type. The names of properties stay as they are.
    pub fn resolve<'a>(
        &self,
        parameters: &Value,
        lookup: &impl Fn(&str) -> Lookup<'a>,
        filling: &mut Filling,
    ) -> Value {
        let mut filled = parameters.clone();
        fill(&mut filled, &mut String::new(), &mut |at, text| {
            self.resolve_text(at, text, lookup, filling)
        });
        filled
    }

    /// Returns the value of a text with references. None if the text stays as it is. `at` is the
    /// text's JSON pointer in the parameters.
    pub fn resolve_text<'a>(
        &self,
        at: &str,
        text: &str,
        lookup: &impl Fn(&str) -> Lookup<'a>,
        filling: &mut Filling,
    ) -> Option<Value> {
        let parts = self.parts(at, text);
        let (mut filled, mut from) = (String::new(), 0);
        for (place, reference, is_escaped) in parts {
            let is_whole = place == (0..text.len());
            let value = match is_escaped {
                true if matches!(lookup(reference.name), Lookup::Unknown) => None,
                true => Some(Value::String(reference.whole.to_owned())),
                false => filling.value(&reference, lookup),
            };
            if is_whole {
                return value;
            }
            filled += text.get(from..place.start).unwrap_or_default();
            match value {
                Some(value) => put(&value, &mut filled),
                None => filled += &text[place.clone()],
            }
            from = place.end;
        }
        (from > 0).then(|| filled + &text[from..]).map(Value::String)
    }
}

/// The references to fields of the agent's metadata in an action's parameters: the names of the
/// fields.
#[must_use]
pub fn metadata_fields(action: &Action) -> BTreeSet<String> {
    let (rules, mut fields) = (Parameters::of(action, None), BTreeSet::new());
    let mut add = |at: &str, text: &str| {
        let references = rules.parts(at, text).into_iter().filter(|(.., is_escaped)| !is_escaped);
        let named = references.filter_map(|(_, it, _)| it.metadata_field().map(str::to_owned));
        fields.extend(named);
    };
    if let Some(it) = action.parameters.as_deref().and_then(|it| json::read(it).ok()) {
        each(&it, &mut String::new(), &mut add);
    } else if let Some(it) = &action.elements {
        each_within(it.parameters.view(), &mut |text| add("", text));
    }
    fields
}

impl Names {
    fn add(&mut self, parts: Vec<(Range<usize>, Reference<'_>, bool)>) {
        for (_, reference, is_escaped) in parts {
            let names = if is_escaped { &mut self.escaped } else { &mut self.references };
            names.insert(reference.name.to_owned());
        }
    }
}

/// Which texts are references in an action that doesn't say so.
fn by_default(dialect: Option<Dialect>) -> References {
    match dialect {
        None | Some(Dialect::Tags) => References::All,
        Some(_) => References::None,
    }
}

/// Whether a whole text counts as a reference.
#[must_use]
pub fn counts(references: References, reference: &Reference<'_>) -> bool {
    match references {
        References::All => true,
        References::Braced => reference.whole.starts_with("${"),
        References::None => false,
    }
}

/// Appends the step to a property or an item to a JSON pointer.
pub fn push_step(at: &mut String, step: &str) {
    at.push('/');
    *at += &step.replace('~', "~0").replace('/', "~1");
}

/// Calls `found` with each text in a JSON value, and with the text's JSON pointer.
pub fn each<'a>(value: &'a Value, at: &mut String, found: &mut impl FnMut(&str, &'a str)) {
    let before = at.len();
    match value {
        Value::String(text) => found(at, text),
        Value::Array(items) => {
            for (number, it) in items.iter().enumerate() {
                push_step(at, &number.to_string());
                each(it, at, found);
                at.truncate(before);
            }
        }
        Value::Object(properties) => {
            for (key, it) in properties {
                push_step(at, key);
                each(it, at, found);
                at.truncate(before);
            }
        }
        _ => {}
    }
}

/// Replaces each text in a JSON value for which `by` returns a value. `by` gets the text's JSON
/// pointer, too.
pub fn fill(value: &mut Value, at: &mut String, by: &mut impl FnMut(&str, &str) -> Option<Value>) {
    let before = at.len();
    match value {
        Value::String(text) => {
            if let Some(it) = by(at, text) {
                *value = it;
            }
        }
        Value::Array(items) => {
            for (number, it) in items.iter_mut().enumerate() {
                push_step(at, &number.to_string());
                fill(it, at, by);
                at.truncate(before);
            }
        }
        Value::Object(properties) => {
            for (key, it) in properties.iter_mut() {
                push_step(at, key);
                fill(it, at, by);
                at.truncate(before);
            }
        }
        _ => {}
    }
}

/// Calls `found` with each attribute and each whole text of an element that has no other content.
fn each_within(view: View<'_>, found: &mut impl FnMut(&str)) {
    view.attributes().filter(|it| it.namespace.is_empty()).for_each(|it| found(it.value));
    if view.has_text_only() {
        return found(&view.text());
    }
    for child in view.children() {
        if let Child::Element(it) = child
            && it.namespace().is_empty()
        {
            each_within(it, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::super::words::ForEach;
    use super::*;

    fn lookup(name: &str) -> Lookup<'static> {
        let value = match name {
            "y" => json!(7),
            "page" => json!({"title": "T $y", "links": ["a"]}),
            "fetch" => return Lookup::Failed,
            _ => return Lookup::Unknown,
        };
        Lookup::Value(Cow::Owned(value.into()))
    }

    fn action(references: References) -> Action {
        Action { references: Some(references), ..Action::default() }
    }

    #[track_caller]
    fn check(action: &Action, parameters: &Value, expected: &Value, lost: &[&str]) {
        let mut filling = Filling::default();
        let rules = Parameters::of(action, None);
        assert_eq!(rules.resolve(parameters, &lookup, &mut filling), *expected);
        let told: Vec<&str> = filling.unresolved.iter().map(|it| &*it.reference).collect();
        assert_eq!(told, lost, "{parameters}");
    }

    #[test]
    fn a_whole_text_is_a_reference_and_every_other_text_is_passed_on() {
        let all = action(References::All);
        check(&all, &json!(["$y", "${y}", "${page.links[0]}"]), &json!([7, 7, "a"]), &[]);
        check(
            &all,
            &json!({"$y": "${page}"}),
            &json!({"$y": {"title": "T $y", "links": ["a"]}}),
            &[],
        );
        for text in [
            "$y ",
            " $y",
            "a$y",
            "${y}.",
            "$y$y",
            "$$",
            "$$$",
            "$$ $y",
            "echo $$y $$$$ ${y:-2}",
            "$5",
            "${y",
            "$$$y",
            "${}",
            "$(y)",
            "$y\n",
            "{{ $y }}",
            "£$y",
        ] {
            check(&all, &json!(text), &json!(text), &[]);
        }
    }

    #[test]
    fn an_escape_counts_only_where_the_name_is_known() {
        let all = action(References::All);
        check(
            &all,
            &json!(["$$y", "$${y}", "$${page.none}"]),
            &json!(["$y", "${y}", "${page.none}"]),
            &[],
        );
        check(&all, &json!(["$$HOME", "$${x.y}"]), &json!(["$$HOME", "$${x.y}"]), &[]);
        check(
            &all,
            &json!(["$HOME", "${page.none}"]),
            &json!(["$HOME", "${page.none}"]),
            &["$HOME", "${page.none}"],
        );
    }

    #[test]
    fn other_forms_have_fewer_references_or_none() {
        let texts = json!(["$y", "${y}", "$$y", "$${y}"]);
        check(&action(References::Braced), &texts, &json!(["$y", 7, "$$y", "${y}"]), &[]);
        check(&action(References::None), &texts, &texts, &[]);
        let native = Action { dialect: Some(Dialect::Native), ..Action::default() };
        check(&native, &texts, &texts, &[]);
        check(&Action::default(), &texts, &json!([7, 7, "$y", "${y}"]), &[]);
    }

    #[test]
    fn the_item_of_a_list_is_a_reference_in_every_form() {
        let for_each = Some(ForEach { var: "page".to_owned(), ..ForEach::default() });
        let item = Action { for_each, ..action(References::None) };
        check(
            &item,
            &json!(["${page.links[0]}", "$y", "a $page"]),
            &json!(["a", "$y", "a $page"]),
            &[],
        );
    }

    #[test]
    fn a_template_has_references_only_in_the_places_that_it_marks() {
        let text = |references| TemplateText { at: "/parameters/a~1b/0".to_owned(), references };
        let made = |references| Action {
            template_text: vec![text(references)],
            ..action(References::None)
        };
        let texts = json!({"a/b": ["$y and ${page.links[0]}, $y"], "c": "$y"});
        let expected = json!({"a/b": ["$y and a, 7"], "c": "$y"});
        check(&made(Some(vec![7, 23, 25, 27])), &texts, &expected, &[]);
        check(&made(None), &texts, &texts, &[]);
        let whole = json!({"a/b": ["$y"]});
        check(&made(Some(vec![0, 2])), &whole, &json!({"a/b": [7]}), &[]);
        let unmarked = Action { template_text: vec![text(None)], ..action(References::All) };
        check(&unmarked, &whole, &whole, &[]);
        let lost = json!({"a/b": ["by $x."]});
        check(&made(Some(vec![3, 5])), &lost, &lost, &["$x"]);
    }

    #[test]
    fn names_are_of_references_and_of_escapes() {
        let rules = Parameters::of(&Action::default(), None);
        let names = rules.names(&json!(["$y", "a $b", {"c": "${d.e}", "$f": "$$g"}]));
        assert_eq!(names.references.into_iter().collect::<Vec<_>>(), ["d", "y"]);
        assert_eq!(names.escaped.into_iter().collect::<Vec<_>>(), ["g"]);
    }
}
