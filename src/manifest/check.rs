//! Checks a manifest's tree of values against the table of keys.

use std::collections::BTreeMap;

use crate::manifest::amount;
use crate::manifest::key_table::{Key, Kind, Map};
use crate::manifest::mistake::{Mistake, cut, listed};
use crate::manifest::yaml::{Node, Pair, Plain, Scalar, Value};
use crate::schema::nearest;

/// Adds the mistakes of a value to `wrong`. `example` is a right value, for the texts of mistakes.
pub(super) fn check(node: &Node, path: &str, kind: &Kind, example: &str, wrong: &mut Vec<Mistake>) {
    match (kind, &node.value) {
        // A key without a value counts as absent.
        _ if node.is_null() => {}
        (Kind::Any, _) | (Kind::Settings, Value::Map(_)) => twice_below(node, path, wrong),
        (Kind::Map(map) | Kind::Words(map), Value::Map(entries)) => {
            keys(node, entries, path, map, wrong);
        }
        (Kind::Named(of), Value::Map(entries)) => named(entries, path, of, example, wrong),
        (Kind::Use { by, maps, other }, Value::Map(entries)) => {
            used(node, entries, path, (by, maps, other.as_ref()), wrong);
        }
        (Kind::FlagOrNames, Value::List(_)) => {
            check(node, path, &Kind::List(Box::new(Kind::Name)), example, wrong);
        }
        (Kind::List(of), Value::List(items)) => {
            for (number, item) in items.iter().enumerate() {
                let path = format!("{path}[{number}]");
                if item.is_null() {
                    let text = "here an item is missing";
                    wrong.push(Mistake::new(item.place, text).at(&path).example(example));
                }
                check(item, &path, of, example, wrong);
            }
        }
        (
            Kind::Map(_) | Kind::Named(_) | Kind::Use { .. } | Kind::List(_) | Kind::Settings,
            there,
        ) => {
            // The value isn't shown: it may be a secret, such as a token that is written directly
            // after `tokens:`.
            let there = match there {
                Value::Scalar(_) => "a single value".to_owned(),
                _ => node.said(),
            };
            let text = format!("this is {there}, and {} is expected", expected(kind));
            wrong.push(Mistake::new(node.place, text).at(path).example(example));
        }
        (_, Value::Scalar(scalar)) => {
            if let Err(mistake) = word(node, scalar, kind) {
                wrong.push(mistake.at(path).example(example));
            }
        }
        _ => {
            let text = format!("this is {}, and {} is expected", node.said(), expected(kind));
            wrong.push(Mistake::new(node.place, text).at(path).example(example));
        }
    }
}

/// Describes the values of a kind, for an error.
fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Text => "a text".to_owned(),
        Kind::Name => "a name of letters, digits, `-`, `_` and `.`".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Word(words) => listed(words.iter().map(|it| it.0)).replace(" and ", " or "),
        Kind::Allowance => "a whole number, or unlimited,".to_owned(),
        Kind::Keep => {
            format!("a whole number from 1 to {}, or of tokens as in 4000 tokens,", u32::MAX)
        }
        Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::FlagOrNames => "`true`, `false` or a list of names".to_owned(),
        Kind::Number => "a number".to_owned(),
        Kind::Bytes { min } => {
            let least = if *min == 0 { String::new() } else { format!("at least {min}, ") };
            format!("a number of bytes, {least}such as 65536 or 64 KiB,")
        }
        Kind::Time { min } => {
            let least = if min.is_zero() { String::new() } else { format!("at least {min:?}, ") };
            format!("a time with a unit, {least}such as 500ms, 30s or 5m,")
        }
        Kind::Address => "HOST:PORT, such as 127.0.0.1:8765,".to_owned(),
        Kind::Words(map) => format!("a text, or {},", map.what),
        Kind::List(_) => "a list".to_owned(),
        Kind::Map(map) => format!("a value with the keys of {}", map.what),
        Kind::Named(_) => "names with values".to_owned(),
        Kind::Use { by, .. } => format!("a value with the key `{by}`"),
        Kind::Settings => "a value with keys".to_owned(),
        Kind::Any => "a value".to_owned(),
    }
}

/// Finds keys that are unknown, repeated or missing, and checks the values of the known ones.
fn keys(node: &Node, entries: &[Pair], path: &str, map: &Map, wrong: &mut Vec<Mistake>) {
    twice(entries, path, wrong);
    for entry in entries {
        let below = joined(path, &entry.key);
        match map.keys.iter().find(|it| it.name == entry.key) {
            Some(key) => check(&entry.value, &below, &key.kind, &key.example, wrong),
            None => wrong.push(unknown(entry, map).at(&below)),
        }
    }
    let is_there = |name: &str| entries.iter().any(|it| it.key == name && !it.value.is_null());
    // A misspelt key is reported, and the key that it stands for isn't reported as missing.
    let is_unknown = |it: &&Pair| map.keys.iter().all(|key| key.name != it.key);
    let misspelt: Vec<&Pair> = entries.iter().filter(is_unknown).collect();
    let meant = |it: &&Pair| nearest(&it.key, map.keys.iter().map(|key| key.name));
    let meant: Vec<&str> = misspelt.iter().filter_map(meant).collect();
    let is_missing = |it: &&Key| it.needed && !is_there(it.name) && !meant.contains(&it.name);
    for key in map.keys.iter().filter(is_missing) {
        let text = format!("{} needs the key `{}`", map.what, key.name);
        wrong.push(Mistake::new(node.place, text).at(path).example(key.example.as_str()));
    }
    let there: Vec<&str> = map.one_of.iter().copied().filter(|it| is_there(it)).collect();
    let any = |it: &Key| map.one_of.contains(&it.name);
    if let (Some(key), true) = (map.keys.iter().find(|it| any(it)), there.is_empty())
        && misspelt.is_empty()
    {
        let names = listed(map.one_of.iter().copied()).replace(" and ", " or ");
        let text = format!("{} needs the key {names}", map.what);
        wrong.push(Mistake::new(node.place, text).at(path).example(key.example.as_str()));
    }
    if there.len() > 1 {
        let text = format!("{} has one of {}", map.what, listed(there));
        wrong.push(Mistake::new(node.place, text).at(path).advice("keep one of them"));
    }
}

/// Checks names that the manifest's author chooses, and their values.
fn named(entries: &[Pair], path: &str, of: &Kind, example: &str, wrong: &mut Vec<Mistake>) {
    twice(entries, path, wrong);
    for entry in entries {
        let below = joined(path, &entry.key);
        if !is_name(&entry.key) {
            let text = format!("`{}` isn't {}", cut(&entry.key), expected(&Kind::Name));
            wrong.push(Mistake::new(entry.place, text).at(&below));
        }
        check(&entry.value, &below, of, example, wrong);
    }
}

/// Checks a map whose keys depend on the word under its key `by`. If `maps` lacks that word and
/// there is no `other`, only the word is checked.
fn used(
    node: &Node,
    entries: &[Pair],
    path: &str,
    (by, maps, other): (&str, &[(&'static str, Map)], Option<&Map>),
    wrong: &mut Vec<Mistake>,
) {
    let is_used = |word: &str| match node.key(by).map(|it| &it.value) {
        Some(Value::Scalar(it)) => match word.strip_prefix('*') {
            Some(end) => it.text.ends_with(end),
            None => it.text == word,
        },
        _ => false,
    };
    let own = maps.iter().find(|(word, _)| is_used(word)).map(|(_, map)| map);
    if let Some(map) = own.or(other) {
        return keys(node, entries, path, map, wrong);
    }
    let first = maps.first().and_then(|(_, map)| map.keys.iter().find(|it| it.name == by));
    let Some(key) = first else { return };
    match node.key(by) {
        Some(there) => check(there, &joined(path, by), &key.kind, &key.example, wrong),
        None => {
            let mistake =
                Mistake::new(node.place, format!("here the key `{by}` is missing")).at(path);
            wrong.push(mistake.example(key.example.as_str()));
        }
    }
}

fn unknown(entry: &Pair, map: &Map) -> Mistake {
    let names = || map.keys.iter().map(|it| it.name);
    let text = format!("{} has no key `{}`", map.what, cut(&entry.key));
    let mistake = Mistake::new(entry.place, text).or_nearest(&entry.key, names());
    match map.keys.iter().find(|it| mistake.nearest.as_deref() == Some(it.name)) {
        Some(key) => mistake.example(key.example.as_str()),
        None => {
            let all: Vec<&str> = names().collect();
            mistake.advice(format!("it has {}", all.join(", ")))
        }
    }
}

fn twice(entries: &[Pair], path: &str, wrong: &mut Vec<Mistake>) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        let key = entry.key.as_str();
        match first.get(key) {
            Some(line) => {
                let text = format!("`{}` stands here again, after line {line}", cut(key));
                let mistake = Mistake::new(entry.place, text).at(&joined(path, key));
                wrong.push(mistake.advice("keep one of the two"));
            }
            None => drop(first.insert(key, entry.place.line)),
        }
    }
}

/// Finds keys that a value has twice, at any depth.
pub(super) fn twice_below(node: &Node, path: &str, wrong: &mut Vec<Mistake>) {
    match &node.value {
        Value::Map(entries) => {
            twice(entries, path, wrong);
            for entry in entries {
                twice_below(&entry.value, &joined(path, &entry.key), wrong);
            }
        }
        Value::List(items) => {
            for (number, item) in items.iter().enumerate() {
                twice_below(item, &format!("{path}[{number}]"), wrong);
            }
        }
        Value::Scalar(_) => {}
    }
}

pub(super) fn joined(path: &str, key: &str) -> String {
    match path {
        "" => cut(key).into_owned(),
        path => format!("{path}.{}", cut(key)),
    }
}

/// Checks that a scalar is of this kind.
fn word(node: &Node, scalar: &Scalar, kind: &Kind) -> Result<(), Mistake> {
    let text = scalar.text.as_str();
    let fits = match kind {
        Kind::Text | Kind::Words(_) => !text.is_empty(),
        Kind::Flag | Kind::FlagOrNames => matches!(scalar.kind, Plain::Flag(_)),
        // A number without quotes probably isn't meant as a file's name.
        Kind::Path => !text.is_empty() && scalar.kind == Plain::Text,
        Kind::Name => is_name(text),
        Kind::Word(words) => words.iter().any(|it| it.0 == text),
        Kind::Allowance => amount::allowance(text).is_some(),
        Kind::Keep => amount::keep(text).is_some(),
        Kind::Count { min, max } => {
            amount::count(text).is_some_and(|it| (*min..=*max).contains(&it))
        }
        Kind::Number => amount::number(text).is_some(),
        Kind::Bytes { min } => amount::bytes(text).is_some_and(|it| it >= *min),
        Kind::Time { min } => amount::time(text).is_some_and(|it| it >= *min),
        Kind::Address => is_address(text),
        Kind::Any => true,
        Kind::List(_) | Kind::Map(_) | Kind::Named(_) | Kind::Use { .. } | Kind::Settings => false,
    };
    if fits {
        return Ok(());
    }
    let mut message = format!("this is {}, and {} is expected", node.said(), expected(kind));
    let is_filled = scalar.source != scalar.text;
    if is_filled {
        let fault = if text.is_empty() { "is empty, and" } else { "isn't" };
        let end = if text.is_empty() { " is expected" } else { "" };
        message = format!("what {} comes to {fault} {}{end}", node.said(), expected(kind));
    }
    let mistake = Mistake::new(node.place, message.trim_end_matches(','));
    Err(match kind {
        Kind::Word(words) if !is_filled => mistake.or_nearest(text, words.iter().map(|it| it.0)),
        Kind::Path if !text.is_empty() && !is_filled => {
            mistake.advice("put it in quotes if a file has this name")
        }
        Kind::Allowance => mistake.or_nearest(text, ["unlimited"]),
        Kind::Time { .. }
            if matches!(scalar.kind, Plain::Whole(_) | Plain::Number(_)) && !is_filled =>
        {
            mistake.advice(format!("say which unit, such as {}s", cut(text)))
        }
        _ => mistake,
    })
}

/// Whether a text is a name, by the rules of the builder and the doors.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(fits)
}

pub(super) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(inside) => inside.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_name(host),
    };
    is_host && port.parse::<u16>().is_ok()
}
