//! Checks a parsed type that derives `Payload` against the rules for payloads.

use std::ops::RangeInclusive;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{GenericArgument, LitStr, PathArguments, Type};

use crate::error::{self, Errors};
use crate::facets::Facets;
use crate::parse::{Bare, Body, Field, Hold, Input, Options, Place};

/// Namespaces that no payload may have, since these belong to XML or to XML Schema.
const TAKEN: &[&str] = &[
    "http://www.w3.org/XML/1998/namespace",
    "http://www.w3.org/2000/xmlns/",
    "http://www.w3.org/2001/XMLSchema-instance",
];

/// The characters with which an XML name may begin, except the colon.
const START: &[RangeInclusive<char>] = &[
    'A'..='Z',
    '_'..='_',
    'a'..='z',
    '\u{C0}'..='\u{D6}',
    '\u{D8}'..='\u{F6}',
    '\u{F8}'..='\u{2FF}',
    '\u{370}'..='\u{37D}',
    '\u{37F}'..='\u{1FFF}',
    '\u{200C}'..='\u{200D}',
    '\u{2070}'..='\u{218F}',
    '\u{2C00}'..='\u{2FEF}',
    '\u{3001}'..='\u{D7FF}',
    '\u{F900}'..='\u{FDCF}',
    '\u{FDF0}'..='\u{FFFD}',
    '\u{10000}'..='\u{EFFFF}',
];
/// The further characters that an XML name may have after its first one.
const MORE: &[RangeInclusive<char>] =
    &['-'..='.', '0'..='9', '\u{B7}'..='\u{B7}', '\u{300}'..='\u{36F}', '\u{203F}'..='\u{2040}'];

/// Reports each broken rule as an error.
pub(crate) fn input(input: &Input, errors: &mut Errors) {
    head(input, errors);
    match &input.body {
        Body::Fields(all) => {
            fields(all, errors);
            value(all, input.options.namespace.is_some(), errors);
        }
        Body::Newtype(it) => {
            text(&it.ty, error::NEWTYPE, errors);
            bare(it, errors);
        }
        Body::Choice(variants) | Body::Words(variants) => {
            let names = variants.iter().map(|it| (&it.ident, it.name.as_str(), &it.options));
            distinct(names, || error::SAME_VARIANT, errors);
            for variant in variants {
                name(&variant.ident, &variant.name, &variant.options, errors);
                match &variant.body {
                    Hold::Nothing => {}
                    Hold::One(it) => {
                        held(&it.ty, errors);
                        bare(it, errors);
                    }
                    Hold::Fields(all) => {
                        fields(all, errors);
                        value(all, false, errors);
                    }
                }
            }
        }
    }
}

fn head(input: &Input, errors: &mut Errors) {
    let options = &input.options;
    name(&input.ident, &input.name, options, errors);
    if let Some(it) = &options.namespace {
        namespace(it, errors);
        return;
    }
    for it in [&options.live, &options.reserved, &options.bookkeeping].into_iter().flatten() {
        errors.push(it, error::NO_NAMESPACE);
    }
    if let Some(it) = &options.rename {
        errors.push(it, error::NO_NAMESPACE);
    }
}

fn namespace(it: &LitStr, errors: &mut Errors) {
    let text = it.value();
    let scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        let letters = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.');
        scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && scheme.chars().all(letters)
            && !rest.is_empty()
    });
    let banned = |it: char| it.is_whitespace() || it.is_control() || "<>\"{}|\\^`".contains(it);
    if TAKEN.contains(&text.as_str()) {
        errors.push(it, error::NAMESPACE_TAKEN);
    } else if !scheme || text.contains(banned) {
        errors.push(it, error::NAMESPACE);
    }
}

fn fields(fields: &[Field], errors: &mut Errors) {
    let texts: Vec<_> = fields.iter().filter(|it| it.place == Place::Text).collect();
    for another in texts.iter().skip(1) {
        errors.push(&another.ident, error::TWO_TEXTS);
    }
    let element = fields.iter().find(|it| it.place == Place::Element);
    if let (Some(text), Some(_)) = (texts.first(), element) {
        errors.push(&text.ident, error::TEXT_AND_ELEMENTS);
    }
    let named = fields.iter().filter(|it| it.place != Place::Text);
    let names = named.map(|it| (&it.ident, it.name.as_str(), &it.options));
    distinct(names, || error::SAME_NAME, errors);
    for field in fields {
        name(&field.ident, &field.name, &field.options, errors);
        narrowed(&field.options.facets, &field.ty, field.options.list.is_some(), errors);
        if let Some(option) = &field.options.list {
            list(field, option, errors);
            continue;
        }
        match field.place {
            Place::Attribute => match generic(&field.ty, "Option") {
                Some(inner) => text(inner, error::ATTRIBUTE_TYPE, errors),
                None => text(&field.ty, error::ATTRIBUTE_TYPE, errors),
            },
            Place::Text => {
                if let Some(it) = &field.options.rename {
                    errors.push(it, error::TEXT_NAME);
                }
                match generic(&field.ty, "Option") {
                    Some(_) => errors.push(&field.ty, error::TEXT_TYPE),
                    None => text(&field.ty, error::TEXT_TYPE, errors),
                }
            }
            Place::Element => items(&field.ty, errors),
        }
    }
}

/// Checks that only fields of a payload have the options `value` and `note`, and no field both.
fn value(fields: &[Field], is_payload: bool, errors: &mut Errors) {
    for Field { options, .. } in fields {
        for it in options.value.iter().chain(&options.note).filter(|_| !is_payload) {
            errors.push(it, error::NO_VALUE_HERE);
        }
        if let (true, Some(_), Some(it)) = (is_payload, &options.value, &options.note) {
            errors.push(it, error::VALUE_AND_NOTE);
        }
    }
}

/// Checks a field with the option `list`. Its type must be a `Vec` or, unless the list is the
/// element's text, an `Option` of a `Vec`.
fn list(field: &Field, option: &syn::Path, errors: &mut Errors) {
    let inner = generic(&field.ty, "Option").filter(|_| field.place != Place::Text);
    match generic(inner.unwrap_or(&field.ty), "Vec") {
        Some(it) => text(it, error::NO_LIST, errors),
        None => errors.push(option, error::NO_LIST),
    }
    if let (Place::Text, Some(it)) = (field.place, &field.options.rename) {
        errors.push(it, error::TEXT_NAME);
    }
}

fn bare(it: &Bare, errors: &mut Errors) {
    narrowed(&it.facets, &it.ty, false, errors);
}

/// Checks that facets don't contradict each other, and fit the range and precision of the field's
/// type.
fn narrowed(facets: &Facets, ty: &Type, is_list: bool, errors: &mut Errors) {
    if facets.is_empty() {
        return;
    }
    facets.check(is_list, errors);
    let inner = ["Option", "Vec", "Box"].iter().fold(ty, |ty, it| generic(ty, it).unwrap_or(ty));
    if let Type::Path(it) = bare_type(inner)
        && let Some(last) = it.path.segments.last()
    {
        facets.check_width(&last.ident.to_string(), errors);
    }
    if named(inner, "f32") || named(inner, "f64") {
        facets.check_float(errors);
    }
}

fn distinct<'a>(
    names: impl Iterator<Item = (&'a Ident, &'a str, &'a Options)>,
    message: fn() -> error::Message,
    errors: &mut Errors,
) {
    let mut seen = Vec::new();
    for (ident, name, options) in names {
        match seen.contains(&name) {
            true => errors.named(culprit(ident, options), name, message()),
            false => seen.push(name),
        }
    }
}

fn name(ident: &Ident, name: &str, options: &Options, errors: &mut Errors) {
    let begins = |it: char| START.iter().any(|range| range.contains(&it));
    let goes_on = |it: char| begins(it) || MORE.iter().any(|range| range.contains(&it));
    if !name.starts_with(begins) || !name.chars().all(goes_on) {
        errors.push(culprit(ident, options), error::NAME);
    }
}

/// Returns the tokens that determine a name: the value of `rename`, or else the identifier.
fn culprit<'a>(ident: &'a Ident, options: &'a Options) -> &'a dyn ToTokens {
    match &options.rename {
        Some(it) => it,
        None => ident,
    }
}

/// Checks the type of a field that is an element: an item, or an `Option` or a `Vec` of items.
fn items(ty: &Type, errors: &mut Errors) {
    if let Some(inner) = generic(ty, "Option") {
        if generic(inner, "Option").is_some() {
            return errors.push(ty, error::OPTION_OF_OPTION);
        }
        if generic(inner, "Vec").is_some_and(|it| !named(it, "u8")) {
            return errors.push(ty, error::OPTION_OF_VEC);
        }
        return item(inner, errors);
    }
    match generic(ty, "Vec") {
        Some(inner) if generic(inner, "Option").is_some() => {
            errors.push(ty, error::VEC_OF_OPTION);
        }
        Some(inner) if generic(inner, "Vec").is_some_and(|it| !named(it, "u8")) => {
            errors.push(ty, error::VEC_OF_VEC);
        }
        Some(inner) if named(inner, "u8") => errors.push(ty, error::BYTES),
        Some(inner) => item(inner, errors),
        None => item(ty, errors),
    }
}

/// Checks the type of one item. The compiler checks types that aren't known here.
fn item(ty: &Type, errors: &mut Errors) {
    if let Some(inner) = generic(ty, "Box") {
        return item(inner, errors);
    }
    let bytes = generic(ty, "Vec").is_some_and(|it| named(it, "u8"));
    let maps = ["HashMap", "IndexMap", "HashSet", "BTreeSet"];
    match ty {
        _ if bytes => errors.push(ty, error::BYTES),
        _ if generic(ty, "BTreeMap").is_some_and(|it| !named(it, "String")) => {
            errors.push(ty, error::MAP_KEY);
        }
        _ if named(ty, "usize") || named(ty, "isize") => errors.push(ty, error::MACHINE_SIZE),
        _ if maps.iter().any(|it| named(ty, it)) => errors.push(ty, error::MAP),
        Type::Reference(_) | Type::Ptr(_) => errors.push(ty, error::BORROWED),
        Type::Tuple(_) | Type::Array(_) | Type::Slice(_) => errors.push(ty, error::UNNAMED),
        _ => {}
    }
}

/// Checks the type of an attribute, of a text, or of the field in a newtype struct.
fn text(ty: &Type, message: error::Message, errors: &mut Errors) {
    let wrong = ["Option", "Vec", "Box", "Element", "BTreeMap"].iter().any(|it| named(ty, it));
    let bytes = generic(ty, "Vec").is_some_and(|it| named(it, "u8"));
    match wrong && !bytes {
        true => errors.push(ty, message),
        false => item(ty, errors),
    }
}

/// Checks the type of a variant's unnamed field.
fn held(ty: &Type, errors: &mut Errors) {
    let wrong = ["Option", "Vec", "Element", "BTreeMap"].iter().any(|it| named(ty, it));
    let bytes = generic(ty, "Vec").is_some_and(|it| named(it, "u8"));
    match wrong && !bytes {
        true => errors.push(ty, error::VARIANT_TYPE),
        false => item(ty, errors),
    }
}

/// Returns whether the last segment of the type's path is this name. An alias isn't recognized; the
/// compiler checks its type.
fn named(ty: &Type, name: &str) -> bool {
    match bare_type(ty) {
        Type::Path(it) => it.path.segments.last().is_some_and(|it| it.ident == name),
        _ => false,
    }
}

/// Returns the first type argument of a type with this name.
fn generic<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(it) = bare_type(ty) else { return None };
    let last = it.path.segments.last().filter(|it| it.ident == name)?;
    let PathArguments::AngleBracketed(brackets) = &last.arguments else { return None };
    match brackets.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

fn bare_type(ty: &Type) -> &Type {
    match ty {
        Type::Group(it) => bare_type(&it.elem),
        Type::Paren(it) => bare_type(&it.elem),
        _ => ty,
    }
}
