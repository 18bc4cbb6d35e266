//! Parses the type that has the derive, with its options and doc comments.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Expr, ExprLit, Fields, Lit, LitStr, Meta, Token, Type};

use crate::error::{self, Errors};
use crate::facets::{self, Facets};

/// A type with `#[derive(Payload)]`.
pub(crate) struct Input {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) options: Options,
    pub(crate) body: Body,
}

/// The fields or the variants of a type.
pub(crate) enum Body {
    /// Fields with names, or no fields at all.
    Fields(Vec<Field>),
    /// One field without a name.
    Newtype(Box<Bare>),
    /// Variants, at least one of which has data.
    Choice(Vec<Variant>),
    /// Variants without data.
    Words(Vec<Variant>),
}

/// One field with a name.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) options: Options,
    pub(crate) place: Place,
    pub(crate) ty: Type,
}

/// The part of an element that holds the field's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Attribute,
    Text,
    Element,
}

/// One variant of an enum.
pub(crate) struct Variant {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) options: Options,
    pub(crate) body: Hold,
}

/// A field without a name: its type, and the facets that narrow it.
pub(crate) struct Bare {
    pub(crate) ty: Type,
    pub(crate) facets: Facets,
}

/// The data of a variant.
pub(crate) enum Hold {
    Nothing,
    One(Box<Bare>),
    Fields(Vec<Field>),
}

/// The options in `#[payload(…)]`. An option without a value, such as `live`, is kept as its path,
/// so that errors can point to the option.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) namespace: Option<LitStr>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) live: Option<syn::Path>,
    pub(crate) reserved: Option<syn::Path>,
    pub(crate) bookkeeping: Option<syn::Path>,
    attribute: Option<syn::Path>,
    text: Option<syn::Path>,
    pub(crate) list: Option<syn::Path>,
    pub(crate) value: Option<syn::Path>,
    pub(crate) note: Option<syn::Path>,
    pub(crate) no_example: Option<syn::Path>,
    pub(crate) facets: Facets,
}

/// The item on which options are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Type,
    Field,
    Bare,
    Variant,
}

/// The options, and the items on which each option may be written.
const KNOWN: &[(&str, &[Owner])] = &[
    ("ns", &[Owner::Type]),
    ("rename", &[Owner::Type, Owner::Field, Owner::Variant]),
    ("live", &[Owner::Type]),
    ("reserved", &[Owner::Type]),
    ("bookkeeping", &[Owner::Type]),
    ("attribute", &[Owner::Field]),
    ("text", &[Owner::Field]),
    ("list", &[Owner::Field]),
    ("value", &[Owner::Field]),
    ("note", &[Owner::Field]),
    ("pattern", NARROWED),
    ("one_of", NARROWED),
    ("min", NARROWED),
    ("max", NARROWED),
    ("length", NARROWED),
    ("min_length", NARROWED),
    ("max_length", NARROWED),
    ("digits", NARROWED),
    ("fraction_digits", NARROWED),
    ("example", NARROWED),
    ("no_example", &[Owner::Field]),
];
/// The items that may have facets.
const NARROWED: &[Owner] = &[Owner::Field, Owner::Bare];

/// Parses the type. Returns `None` for a type that can't be a payload, such as a union.
pub(crate) fn input(input: &DeriveInput, errors: &mut Errors) -> Option<Input> {
    if !input.generics.params.is_empty() {
        errors.push(&input.generics, error::GENERIC);
    }
    let options = options(&input.attrs, Owner::Type, errors);
    let doc = doc(&input.attrs, errors);
    if doc.is_empty() {
        errors.push(&input.ident, error::NO_DOC);
    }
    let body = match &input.data {
        Data::Struct(it) => structure(&it.fields, errors)?,
        Data::Enum(it) if it.variants.is_empty() => {
            errors.push(&input.ident, error::NO_VARIANTS);
            return None;
        }
        Data::Enum(it) => {
            let variants: Vec<_> = it.variants.iter().map(|it| variant(it, errors)).collect();
            match it.variants.iter().all(|it| matches!(it.fields, Fields::Unit)) {
                true => Body::Words(variants),
                false => Body::Choice(variants),
            }
        }
        Data::Union(it) => {
            errors.push(&it.union_token, error::UNION);
            return None;
        }
    };
    let name = options.name(&input.ident, kebab);
    Some(Input { ident: input.ident.clone(), name, doc, options, body })
}

fn structure(fields: &Fields, errors: &mut Errors) -> Option<Body> {
    match fields {
        Fields::Named(named) => {
            Some(Body::Fields(named.named.iter().filter_map(|it| field(it, errors)).collect()))
        }
        Fields::Unit => Some(Body::Fields(Vec::new())),
        Fields::Unnamed(unnamed) => match unnamed.unnamed.first() {
            Some(one) if unnamed.unnamed.len() == 1 => {
                Some(Body::Newtype(Box::new(bare(one, errors))))
            }
            _ => {
                errors.push(unnamed, error::TUPLE);
                None
            }
        },
    }
}

fn field(field: &syn::Field, errors: &mut Errors) -> Option<Field> {
    let ident = field.ident.clone()?;
    let options = options(&field.attrs, Owner::Field, errors);
    let place = match (&options.attribute, &options.text) {
        (Some(_), Some(text)) => {
            errors.push(text, error::TWO_PLACES);
            Place::Attribute
        }
        (Some(_), None) => Place::Attribute,
        (None, Some(_)) => Place::Text,
        (None, None) => Place::Element,
    };
    let name = options.name(&ident, str::to_owned);
    let doc = doc(&field.attrs, errors);
    Some(Field { ident, name, doc, options, place, ty: field.ty.clone() })
}

fn variant(variant: &syn::Variant, errors: &mut Errors) -> Variant {
    let options = options(&variant.attrs, Owner::Variant, errors);
    let body = match &variant.fields {
        Fields::Unit => Hold::Nothing,
        Fields::Named(it) => {
            Hold::Fields(it.named.iter().filter_map(|it| field(it, errors)).collect())
        }
        Fields::Unnamed(it) => match it.unnamed.first() {
            Some(one) if it.unnamed.len() == 1 => Hold::One(Box::new(bare(one, errors))),
            _ => {
                errors.push(it, error::TUPLE_VARIANT);
                Hold::Nothing
            }
        },
    };
    let name = options.name(&variant.ident, kebab);
    let doc = doc(&variant.attrs, errors);
    Variant { ident: variant.ident.clone(), name, doc, options, body }
}

/// Parses a field without a name. Its options may only be facets.
fn bare(field: &syn::Field, errors: &mut Errors) -> Bare {
    let options = options(&field.attrs, Owner::Bare, errors);
    Bare { ty: field.ty.clone(), facets: options.facets }
}

impl Options {
    /// Returns the name that `rename` sets, or else the identifier, converted by `change`.
    fn name(&self, ident: &Ident, change: fn(&str) -> String) -> String {
        match &self.rename {
            Some(name) => name.value(),
            None => change(&ident.unraw().to_string()),
        }
    }
}

fn options(attributes: &[Attribute], owner: Owner, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("payload")) {
        let Meta::List(list) = &attribute.meta else {
            errors.push(attribute, error::OPTIONS);
            continue;
        };
        match list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) {
            Ok(all) => all.iter().for_each(|it| options.option(it, owner, errors)),
            Err(error) => errors.add(error),
        }
    }
    options
}

impl Options {
    fn option(&mut self, meta: &Meta, owner: Owner, errors: &mut Errors) {
        let path = meta.path();
        let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
        let Some((_, owners)) = KNOWN.iter().find(|(it, _)| *it == name) else {
            errors.say(path, &unknown(&name, owner));
            return;
        };
        if !owners.contains(&owner) && owner == Owner::Bare {
            errors.push(path, error::UNNAMED_OPTION);
            return;
        }
        if !owners.contains(&owner) {
            let field = owners.contains(&Owner::Field);
            errors.push(path, if field { error::ON_FIELD } else { error::ON_TYPE });
            return;
        }
        if facets::NAMES.contains(&name.as_str()) {
            self.facets.option(&name, meta, errors);
            return;
        }
        let text = matches!(name.as_str(), "ns" | "rename");
        let given = match name.as_str() {
            "ns" => self.namespace.is_some(),
            "rename" => self.rename.is_some(),
            _ => self.flag(&name).is_some(),
        };
        match (given, text, value(meta)) {
            (true, _, _) => errors.push(path, error::OPTION_TWICE),
            (_, true, Some(value)) if name == "ns" => self.namespace = Some(value),
            (_, true, Some(value)) => self.rename = Some(value),
            (_, true, None) => errors.named(meta, &name, error::NO_VALUE),
            (_, false, _) if !matches!(meta, Meta::Path(_)) => {
                errors.named(meta, &name, error::FLAG);
            }
            (_, false, _) => *self.flag(&name) = Some(path.clone()),
        }
    }

    fn flag(&mut self, name: &str) -> &mut Option<syn::Path> {
        match name {
            "live" => &mut self.live,
            "reserved" => &mut self.reserved,
            "bookkeeping" => &mut self.bookkeeping,
            "attribute" => &mut self.attribute,
            "list" => &mut self.list,
            "value" => &mut self.value,
            "note" => &mut self.note,
            "no_example" => &mut self.no_example,
            _ => &mut self.text,
        }
    }
}

fn value(meta: &Meta) -> Option<LitStr> {
    match meta {
        Meta::NameValue(it) => match &it.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The names of options in other derives and schema languages, with the names that these options
/// have here.
const ELSEWHERE: [(&str, &str); 7] = [
    ("namespace", "ns"),
    ("xmlns", "ns"),
    ("name", "rename"),
    ("tag", "rename"),
    ("regex", "pattern"),
    ("enumeration", "one_of"),
    ("values", "one_of"),
];

fn unknown(name: &str, owner: Owner) -> String {
    let known: Vec<_> =
        KNOWN.iter().filter(|(_, owners)| owners.contains(&owner)).map(|(it, _)| *it).collect();
    let begins = |it: &str| it.len() > 2 && name.starts_with(it);
    let alike = |it: &&&str| begins(it) || steps(name, it) <= 1.max(name.len() / 3);
    let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, ours)| ours);
    let elsewhere = elsewhere.filter(|it| known.contains(it));
    let near = known.iter().filter(alike).min_by_key(|it| steps(name, it));
    let hint = match elsewhere.or(near) {
        Some(it) => format!("did you mean `{it}`?"),
        None => format!("there is `{}`", known.join("`, `")),
    };
    format!("unknown option `{name}`\nhint: {hint}")
}

/// Returns the edit distance of two texts: how many letters must be changed, added or dropped to
/// turn one text into the other.
fn steps(left: &str, right: &str) -> usize {
    let right: Vec<_> = right.chars().collect();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.chars().enumerate() {
        let mut this = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let change = last[column] + usize::from(letter != *other);
            this.push(change.min(last[column + 1] + 1).min(this[column] + 1));
        }
        last = this;
    }
    last[right.len()]
}

/// Returns the lines of one doc attribute. In a comment between `/**` and `*/`, each line after the
/// first may begin with a star, which isn't part of the text.
fn without_stars(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let starred = |it: &String| it.trim_start().starts_with('*');
    if lines.len() > 1 && lines[1..].iter().all(|it| it.trim().is_empty() || starred(it)) {
        for line in &mut lines[1..] {
            *line = line.trim_start().trim_start_matches('*').to_owned();
        }
    }
    lines
}

/// Returns the doc comment as one text, without the indentation that all its lines share.
fn doc(attributes: &[Attribute], errors: &mut Errors) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("doc")) {
        match (&attribute.meta, value(&attribute.meta)) {
            (_, Some(text)) => lines.extend(without_stars(&text.value())),
            (Meta::NameValue(it), None) => errors.push(&it.value, error::DOC),
            _ => {}
        }
    }
    let margin = |it: &String| it.len() - it.trim_start().len();
    let filled = lines.iter().filter(|it| !it.trim().is_empty());
    let least = filled.map(margin).min().unwrap_or_default();
    let lines: Vec<_> =
        lines.iter().map(|it| it.get(least..).unwrap_or_default().trim_end()).collect();
    lines.join("\n").trim().to_owned()
}

/// Converts an identifier into kebab-case: `HttpRequest` and `HTTPRequest` become `http-request`.
fn kebab(ident: &str) -> String {
    let letters: Vec<_> = ident.chars().collect();
    let mut name = String::with_capacity(ident.len() + 4);
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|it| letters[it]);
        let after = letters.get(place + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|it| {
                let in_word = it.is_uppercase() && !after.is_some_and(|it| it.is_lowercase());
                it != '_' && !in_word
            });
        if begins {
            name.push('-');
        }
        match letter {
            '_' => name.push('-'),
            _ => name.extend(letter.to_lowercase()),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_become_kebab_case() {
        for (ident, name) in [
            ("Add", "add"),
            ("ByZero", "by-zero"),
            ("HTTPRequest", "http-request"),
            ("HttpURL", "http-url"),
            ("Sha256Sum", "sha256-sum"),
            ("A", "a"),
            ("AB", "ab"),
            ("ÄpfelÖl", "äpfel-öl"),
            ("Snake_Case", "snake-case"),
        ] {
            assert_eq!(kebab(ident), name);
        }
    }

    #[test]
    fn a_doc_has_no_margin() {
        let check = |item: DeriveInput, expected: &str| {
            assert_eq!(doc(&item.attrs, &mut Errors::default()), expected);
        };
        check(
            syn::parse_quote!(
                /** One. */
                struct A;
            ),
            "One.",
        );
        check(
            syn::parse_quote!(
                #[doc = " One."]
                #[doc = "   - two"]
                struct A;
            ),
            "One.\n  - two",
        );
        check(
            syn::parse_quote!(
                /// Kinds:
                /// * one
                /// * two
                struct A;
            ),
            "Kinds:\n* one\n* two",
        );
        check(
            syn::parse_quote!(
                #[doc = "\n * One.\n *\n * Two.\n "]
                struct A;
            ),
            "One.\n\nTwo.",
        );
        check(
            syn::parse_quote!(
                #[doc(hidden)]
                struct A;
            ),
            "",
        );
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let hint = unknown("atribute", Owner::Field);
        assert_eq!(hint, "unknown option `atribute`\nhint: did you mean `attribute`?");
        let hint = unknown("skip", Owner::Variant);
        assert_eq!(hint, "unknown option `skip`\nhint: there is `rename`");
    }
}
