//! Writes the paths of files as an indented tree, for `files.tree` and `git.tree`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The default number of levels that a tree shows.
pub(super) const DEPTH: u64 = 8;
/// The maximum number of lines of a tree.
const LINES_MAX: usize = 2_000;
/// The maximum number of levels that are stored. A folder at the last of these levels is shown as a
/// file.
const KEPT_LEVELS: usize = 64;

/// A folder, or a file if nothing is below it.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    below: BTreeMap<String, PathTree>,
    /// The number of files below this folder.
    files: u64,
}

impl PathTree {
    /// Makes a tree of files from their paths, which are relative to the root and have `/` between
    /// their parts.
    pub(super) fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> PathTree {
        let mut tree = PathTree::default();
        for path in paths {
            let mut folder = &mut tree;
            for part in path.split('/').filter(|it| !it.is_empty()).take(KEPT_LEVELS) {
                folder.files += 1;
                let name = part.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it });
                folder = folder.below.entry(name.collect()).or_default();
            }
        }
        tree
    }

    /// Returns the number of files.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Writes the first `depth` levels of the tree as text, with a line for each file and folder.
    /// The line of a folder at the last of these levels has the number of files below the folder.
    pub(super) fn text(&self, depth: u64) -> String {
        let mut lines = Vec::new();
        self.write(depth, 0, &mut lines);
        shown(lines)
    }

    /// Writes the first `depth` levels of the tree as text, with a line for the path of each file
    /// and of each folder at the last of these levels.
    pub(super) fn paths(&self, depth: u64) -> String {
        let mut lines = Vec::new();
        self.write_paths(depth, "", &mut lines);
        shown(lines)
    }

    fn write_paths(&self, depth: u64, folder: &str, lines: &mut Vec<String>) {
        for (name, it) in &self.below {
            let path = format!("{folder}{name}");
            match (it.below.is_empty(), depth) {
                (true, _) => lines.push(format!("{path}\n")),
                (false, 0 | 1) => lines.push(format!("{path}/ ({})\n", count(it.files))),
                (false, _) => it.write_paths(depth - 1, &format!("{path}/"), lines),
            }
        }
    }

    fn write(&self, depth: u64, level: usize, lines: &mut Vec<String>) {
        if depth == 0 {
            return;
        }
        let indent = "  ".repeat(level);
        for (name, it) in &self.below {
            let is_file = it.below.is_empty();
            lines.push(match (is_file, depth) {
                (true, _) => format!("{indent}{name}\n"),
                (false, 1) => format!("{indent}{name}/ ({})\n", count(it.files)),
                (false, _) => format!("{indent}{name}/\n"),
            });
            it.write(depth - 1, level + 1, lines);
        }
    }
}

/// The lines as a text, of which at most `LINES_MAX` are shown.
fn shown(mut lines: Vec<String>) -> String {
    let left = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    let mut text = lines.concat();
    if left > 0 {
        _ = writeln!(text, "[{left} more lines]");
    }
    text
}

fn count(files: u64) -> String {
    format!("{files} file{}", if files == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 4] = ["src/main.rs", "src/engine/mod.rs", "README.md", "src/lib.rs"];

    #[test]
    fn files_stand_below_their_folders_by_name() {
        let tree = PathTree::of(PATHS);
        let text = "README.md\nsrc/\n  engine/\n    mod.rs\n  lib.rs\n  main.rs\n";
        assert_eq!((tree.files(), &*tree.text(DEPTH)), (4, text));
    }

    #[test]
    fn a_folder_at_the_last_level_tells_how_many_files_are_below_it() {
        let tree = PathTree::of(PATHS);
        assert_eq!(tree.text(1), "README.md\nsrc/ (3 files)\n");
        let text = "README.md\nsrc/\n  engine/ (1 file)\n  lib.rs\n  main.rs\n";
        assert_eq!(tree.text(2), text);
    }

    #[test]
    fn paths_stand_whole_on_their_lines() {
        let tree = PathTree::of(PATHS);
        assert_eq!(tree.paths(DEPTH), "README.md\nsrc/engine/mod.rs\nsrc/lib.rs\nsrc/main.rs\n");
        assert_eq!(tree.paths(2), "README.md\nsrc/engine/ (1 file)\nsrc/lib.rs\nsrc/main.rs\n");
    }

    #[test]
    fn a_long_tree_ends_with_the_number_of_further_lines() {
        let paths: Vec<String> = (0..2_500).map(|at| format!("{at:04}")).collect();
        let text = PathTree::of(paths.iter().map(String::as_str)).text(DEPTH);
        assert!(text.ends_with("\n1999\n[500 more lines]\n"), "{}", text.len());
    }

    #[test]
    fn a_deep_path_is_written_to_the_depth_alone() {
        let deep = "a/".repeat(10_000) + "b";
        assert_eq!(PathTree::of([&*deep]).text(2), "a/\n  a/ (1 file)\n");
    }
}
