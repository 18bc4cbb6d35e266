//! Rooms, the layers within a module. There, too, the `mod` lines are in the order of dependency. A
//! file may use only what is above it, in its own room or in the rooms above that.

use std::collections::BTreeMap;

use super::code::{File, identifier};
use super::floors::group;

/// A module's place: its number among the `mod` lines of each module around it, from the outside.
type Order = Vec<usize>;

/// The modules within one of lib.rs, by their path in it: `tree::step`.
pub(super) struct Rooms<'a> {
    folder: &'a str,
    orders: BTreeMap<String, Order>,
}

impl<'a> Rooms<'a> {
    /// Reads the rooms in a folder, such as `src/engine`.
    pub(super) fn read(folder: &'a str, files: &[File]) -> Rooms<'a> {
        let mut rooms = Rooms { folder, orders: BTreeMap::new() };
        let mut next = vec![(String::new(), Order::new())];
        while let Some((path, order)) = next.pop() {
            let inner = path.replace("::", "/");
            let names = ["/mod.rs", "/lib.rs", ".rs"].map(|it| format!("{folder}/{inner}{it}"));
            let names = names.map(|it| it.replace("//", "/"));
            let Some(file) = files.iter().find(|it| names.contains(&it.path)) else { continue };
            for (number, name) in modules(file).into_iter().enumerate() {
                let path = if path.is_empty() { name } else { format!("{path}::{name}") };
                let order: Order = order.iter().copied().chain([number]).collect();
                rooms.orders.insert(path.clone(), order.clone());
                next.push((path, order));
            }
        }
        rooms
    }

    /// How many modules there are.
    pub(super) fn count(&self) -> usize {
        self.orders.len()
    }

    /// What a file uses and may not.
    pub(super) fn complaints(&self, file: &File) -> Vec<String> {
        let Some(own) = self.module(&file.path) else { return Vec::new() };
        let Some(order) = self.orders.get(&own) else { return Vec::new() };
        let mut complaints = Vec::new();
        let relative = relative(file, &own).into_iter().filter(|(_, it)| self.home(it).is_some());
        for (at, path) in self.uses(file).into_iter().chain(relative) {
            match self.home(&path) {
                None => complaints.push(file.complaint(
                    at,
                    &format!("`{path}` names no room: say the module that it is from"),
                )),
                Some(home) if related(&own, &home) || self.orders[&home] < *order => {}
                Some(home) => complaints.push(
                    file.complaint(at, &format!("`{own}` uses `{home}`, which stands below it")),
                ),
            }
        }
        complaints
    }

    /// The module that a file is, within the folder.
    fn module(&self, path: &str) -> Option<String> {
        let inner = path.strip_prefix(self.folder)?.strip_prefix('/')?;
        let inner = inner.strip_suffix(".rs")?;
        Some(inner.trim_end_matches("/mod").replace('/', "::"))
    }

    /// The deepest module that a path leads through.
    fn home(&self, path: &str) -> Option<String> {
        let names: Vec<&str> = path.split("::").collect();
        let paths = (1..=names.len()).rev().map(|count| names[..count].join("::"));
        paths.into_iter().find(|it| self.orders.contains_key(it))
    }

    /// The paths behind `crate::engine::`, each one of a group by itself.
    fn uses(&self, file: &File) -> Vec<(usize, String)> {
        let root = self.folder.trim_start_matches("src/");
        let start = format!("crate::{root}::");
        let starts = file.code.match_indices(&start);
        starts.flat_map(|(at, _)| paths(&file.code, at, at + start.len(), &[])).collect()
    }
}

/// Whether one of two modules is around the other, or both are one: what a `mod.rs` has, the files
/// of its room may use, and it may use theirs.
fn related(one: &str, other: &str) -> bool {
    let is_around = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    is_around(one, other) || is_around(other, one)
}

/// The paths behind `super::` and `self::` in a module, but for its inline ones.
fn relative(file: &File, own: &str) -> Vec<(usize, String)> {
    let own: Vec<&str> = own.split("::").collect();
    let inline = file.inline_modules();
    let is_inline = |at: usize| inline.iter().any(|(_, open, end)| (*open..*end).contains(&at));
    let firsts = ["super", "self"].into_iter().flat_map(|root| file.words(root));
    let firsts = firsts.filter(|&at| !file.code[..at].ends_with("::") && !is_inline(at));
    let all = firsts.flat_map(|at| {
        let (mut base, mut from) = (own.clone(), at);
        while let Some(rest) = file.code[from..].strip_prefix("super::") {
            base.pop();
            from = file.code.len() - rest.len();
        }
        let from = if file.code[from..].starts_with("self::") { from + 6 } else { from };
        if from == at { Vec::new() } else { paths(&file.code, at, from, &base) }
    });
    all.collect()
}

/// The path that begins at `from`, below `base`; of a group each one by itself.
fn paths(code: &str, at: usize, from: usize, base: &[&str]) -> Vec<(usize, String)> {
    let (mut names, mut end) = (base.to_vec(), from);
    loop {
        let name = identifier(&code[end..]);
        if name.is_empty() {
            break;
        }
        names.push(name);
        end += name.len();
        match code[end..].strip_prefix("::") {
            Some(_) => end += 2,
            None => break,
        }
    }
    let path = names.join("::");
    if !code[end..].starts_with('{') {
        return vec![(at, path)];
    }
    let join = |(at, name)| (at, format!("{path}::{name}"));
    let all = group(code, end).into_iter().map(join);
    all.map(|(at, it)| (at, it.trim_start_matches(':').into())).collect()
}

/// The modules that a file declares and doesn't write out, in their order.
fn modules(file: &File) -> Vec<String> {
    let declared = file.words("mod").filter_map(|at| {
        let name = identifier(file.code[at + 3..].trim_start());
        let end = at + 3 + file.code[at + 3..].find([';', '{'])?;
        let is_file = file.code[end..].starts_with(';') && name != "tests";
        (is_file && !name.is_empty()).then(|| name.to_owned())
    });
    declared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, code: &str) -> Vec<String> {
        let files = [
            File::new("src/pump/mod.rs", "mod port;\nmod tree;\nmod worker;\n"),
            File::new("src/pump/tree/mod.rs", "pub(crate) mod event;\nmod step;\nmod tests;\n"),
            File::new("src/pump/worker/mod.rs", "mod slot;\nmod driver;\n"),
        ];
        Rooms::read("src/pump", &files).complaints(&File::new(path, code))
    }

    #[test]
    fn what_stands_above_in_a_room_or_in_an_upper_room_may_be_used() {
        let step = "src/pump/tree/step.rs";
        for code in [
            "use crate::pump::tree::event::Event;",
            "use crate::pump::port::Port; use crate::wire;",
            "use crate::pump::{port, tree::event};",
            "use crate::pump::tree::step::Own;",
        ] {
            assert_eq!(complaints(step, code), [""; 0], "{code}");
        }
        let code = "use crate::pump::tree::{step, event::{Event}};";
        assert_eq!(complaints("src/pump/worker/slot.rs", code), [""; 0]);
        assert_eq!(complaints("src/door/tcp.rs", "use crate::pump::Anything;"), [""; 0]);
    }

    #[test]
    fn a_file_and_the_mod_rs_around_it_may_use_each_other() {
        for (path, code) in [
            ("src/pump/tree/step.rs", "use super::{Tree, event::Event};"),
            ("src/pump/tree/step.rs", "use super::super::{port, Pump};"),
            ("src/pump/tree/mod.rs", "use self::step::Step; pub(super) fn a() {}"),
            ("src/pump/tree/event.rs", "mod tests { use super::*; use super::super::step; }"),
        ] {
            assert_eq!(complaints(path, code), [""; 0], "{path}: {code}");
        }
    }

    #[test]
    fn what_stands_below_may_not_by_a_relative_path_either() {
        let below = "`tree::event` uses `tree::step`, which stands below it";
        for code in ["use super::step::Tree;", "use super::{Tree, step};", "super::step::go()"] {
            let why = format!("src/pump/tree/event.rs:1: {below}");
            assert_eq!(complaints("src/pump/tree/event.rs", code), [why], "{code}");
        }
        let why = "src/pump/tree/mod.rs:1: `tree` uses `worker::slot`, which stands below it";
        let code = "use super::worker::slot::Slot;";
        assert_eq!(complaints("src/pump/tree/mod.rs", code), [why]);
    }

    #[test]
    fn what_stands_below_may_not() {
        for (path, code, why) in [
            (
                "src/pump/tree/event.rs",
                "use crate::pump::tree::step::Tree;",
                "`tree::event` uses `tree::step`, which stands below it",
            ),
            (
                "src/pump/tree/step.rs",
                "use crate::pump::worker::driver::Worker;",
                "`tree::step` uses `worker::driver`, which stands below it",
            ),
            (
                "src/pump/worker/slot.rs",
                "use crate::pump::worker::{slot, driver};",
                "`worker::slot` uses `worker::driver`, which stands below it",
            ),
            (
                "src/pump/port.rs",
                "use crate::pump::Pump;",
                "`Pump` names no room: say the module that it is from",
            ),
        ] {
            assert_eq!(complaints(path, code), [format!("{path}:1: {why}")]);
        }
    }
}
