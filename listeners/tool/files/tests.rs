//! Tests of reading, writing, editing, listing and searching, and of their refusals.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;

/// A folder `work` with some files, and a file `secret` beside this folder.
struct Place {
    folder: TempDir,
    root: Root,
}

fn place() -> Place {
    place_with(|_| {})
}

fn place_with(change: impl Fn(&mut FileLimits)) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    fs::create_dir_all(work.join("src")).unwrap();
    fs::write(folder.path().join("secret"), "the secret\n").unwrap();
    fs::write(work.join("src/main.rs"), "fn main() {\n    run();\n    run();\n}\n").unwrap();
    fs::write(work.join("three.txt"), "one\ntwo\nthree").unwrap();
    let mut limits = FileLimits::default();
    change(&mut limits);
    let root = Root::open(&work, limits).unwrap();
    Place { folder, root }
}

impl Place {
    fn work(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    fn read(&self, path: &str, from: Option<u64>, lines: Option<u64>) -> Result<FileText, Refused> {
        read::read(&self.root, Read { path: path.to_owned(), from, lines })
    }

    fn write(&self, path: &str, text: &str) -> Result<Written, Refused> {
        write::write(&self.root, &Write { path: path.to_owned(), text: text.to_owned() }, 1)
    }

    fn edit(&self, path: &str, old: &str, new: &str) -> Result<Edited, Refused> {
        let (old, new) = (old.to_owned(), new.to_owned());
        edit::edit(&self.root, &Edit { path: path.to_owned(), old, new }, 2)
    }

    fn search(&self, pattern: &str) -> Result<Found, Refused> {
        search::search(&self.root, pattern, ".", &|| false)
    }

    fn has(&self, path: &str) -> String {
        fs::read_to_string(self.work(path)).unwrap()
    }
}

#[track_caller]
fn check<T: std::fmt::Debug>(found: Result<T, Refused>, reason: Reason, text: &str) {
    let refusal = found.unwrap_err();
    assert_eq!((refusal.reason, refusal.text.as_str()), (reason, text));
}

#[track_caller]
fn check_read(found: Result<FileText, Refused>, lines: (u64, u64), next: Option<u64>, text: &str) {
    let file = found.unwrap();
    assert_eq!(((file.from, file.to), file.next, file.text.as_str()), (lines, next, text));
}

#[test]
fn lines_are_read_in_parts() {
    let place = place_with(|limits| limits.read_bytes_max = 10);
    check_read(place.read("three.txt", None, None), (1, 2), Some(3), "one\ntwo\n");
    check_read(place.read("three.txt", Some(3), None), (3, 3), None, "three");
    check_read(place.read("three.txt", Some(2), Some(1)), (2, 2), Some(3), "two\n");
    check_read(place.read("./src/../three.txt", Some(3), Some(9)), (3, 3), None, "three");
    check(
        place.read("three.txt", Some(4), None),
        Reason::Missing,
        "three.txt has 3 lines, and no line 4",
    );
    fs::write(place.work("empty"), "").unwrap();
    check_read(place.read("empty", None, None), (1, 0), None, "");
    fs::write(place.work("long"), "12345678901\n").unwrap();
    let text = "line 1 of long is too long; the limit read_bytes_max is 10";
    check(place.read("long", None, None), Reason::TooLarge, text);
}

#[test]
fn a_tree_shows_what_a_search_would_look_at() {
    let place = place();
    fs::create_dir_all(place.work("deep/er")).unwrap();
    for (name, text) in [("deep/er/a.txt", "a"), ("deep/.hidden", "h"), ("deep/left.log", "l")] {
        fs::write(place.work(name), text).unwrap();
    }
    fs::write(place.work("deep/.gitignore"), "*.log\n").unwrap();
    let asked = |path: &str, depth, format| {
        let (path, max_depth) = (Some(path.to_owned()), Some(depth));
        list::tree(&place.root, &Tree { path, max_depth, format }, &|| false)
    };
    let tree = |path: &str, depth| asked(path, depth, None);
    let deep = tree("deep", 8).unwrap();
    assert_eq!((deep.files, deep.more, &*deep.text), (1, false, "er/\n  a.txt\n"));
    assert!(tree(".", 1).unwrap().text.contains("deep/ (1 file)\n"));
    assert_eq!(asked("deep", 8, Some(TreeForm::Paths)).unwrap().text, "er/a.txt\n");
    fs::create_dir(place.work("empty")).unwrap();
    assert_eq!(tree("empty", 8).unwrap().text, "There are no files.\n");
    // The folder's own path stands for the folder.
    let whole = place.root.path.join("deep");
    assert_eq!(tree(whole.to_str().unwrap(), 8).unwrap().text, deep.text);
    let above = place.root.path.parent().unwrap().to_str().unwrap();
    let from = "paths are written from it, as in `a/b.txt`";
    let outside = format!("`{above}` leads out of the folder; {from}");
    check(tree(above, 8), Reason::Outside, &outside);
    check(tree("three.txt", 8), Reason::WrongKind, "in `three.txt` something is no folder");
    check(tree("nowhere", 8), Reason::Missing, "there is no `nowhere`");
    let outside = "`../x` leads out of the folder; paths are written from it, as in `a/b.txt`";
    check(tree("../x", 8), Reason::Outside, outside);
}

#[test]
fn what_is_ignored_is_said_by_regular_files_below_the_root_alone() {
    let place = place();
    for folder in ["a", "b", "c", "d"] {
        fs::create_dir_all(place.work(folder)).unwrap();
        fs::write(place.work(&format!("{folder}/seen.txt")), "a").unwrap();
    }
    // A device without an end, a FIFO, a file without a bound, and one outside of the root.
    symlink("/dev/zero", place.work("a/.gitignore")).unwrap();
    let mode = rustix::fs::Mode::from_bits_truncate(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, place.work("b/.ignore"), fifo, mode, 0).unwrap();
    fs::File::create(place.work("c/.gitignore")).unwrap().set_len(1 << 40).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("all"), "*\n").unwrap();
    symlink(outside.path().join("all"), place.work("d/.gitignore")).unwrap();
    let tree = |path: &str| {
        let (path, format) = (Some(path.to_owned()), Some(TreeForm::Paths));
        list::tree(&place.root, &Tree { path, max_depth: None, format }, &|| false).unwrap().text
    };
    for folder in ["a", "b", "c", "d"] {
        assert_eq!(tree(folder), "seen.txt\n", "{folder}");
    }
    // The deeper folder's patterns count before, and `.ignore` before `.gitignore`.
    fs::create_dir_all(place.work("e/f")).unwrap();
    for (name, text) in [
        ("e/.gitignore", "*.log\nf/out/\n"),
        ("e/f/.gitignore", "!kept.log\n!b.txt\n"),
        ("e/f/.ignore", "b.txt\n"),
    ] {
        fs::write(place.work(name), text).unwrap();
    }
    fs::create_dir(place.work("e/f/out")).unwrap();
    for name in ["e/a.log", "e/f/kept.log", "e/f/b.txt", "e/f/out/c.txt", "e/f/d.txt"] {
        fs::write(place.work(name), "x").unwrap();
    }
    assert_eq!(tree("e"), "f/d.txt\nf/kept.log\n");
}

#[test]
fn what_is_not_there_has_a_nearest_name() {
    let place = place();
    let text = "there is no `src/mian.rs`; did you mean `src/main.rs`?";
    check(place.read("src/mian.rs", None, None), Reason::Missing, text);
    check(place.read("none/x", None, None), Reason::Missing, "there is no `none/x`");
    check(
        place.edit("three.tx", "a", "b"),
        Reason::Missing,
        "there is no `three.tx`; did you mean `three.txt`?",
    );
    check(
        list::list(&place.root, "scr"),
        Reason::Missing,
        "there is no `scr`; did you mean `src`?",
    );
    check(place.read("src", None, None), Reason::WrongKind, "`src` is a folder");
    let text = "in `three.txt/x` something is no folder";
    check(place.read("three.txt/x", None, None), Reason::WrongKind, text);
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let place = place();
    symlink("../secret", place.work("up")).unwrap();
    symlink(place.folder.path().join("secret"), place.work("away")).unwrap();
    symlink("..", place.work("out")).unwrap();
    let all = ["../secret", "src/../../secret", "/etc/passwd", "up", "away", "out/secret"];
    for path in all {
        let text =
            format!("`{path}` leads out of the folder; paths are written from it, as in `a/b.txt`");
        check(place.read(path, None, None), Reason::Outside, &text);
        check(place.write(path, "x"), Reason::Outside, &text);
        check(place.edit(path, "the", "a"), Reason::Outside, &text);
    }
    for path in ["..", "/", "out"] {
        assert_eq!(list::list(&place.root, path).unwrap_err().reason, Reason::Outside, "{path}");
        let found = search::search(&place.root, "secret", path, &|| false);
        assert_eq!(found.unwrap_err().reason, Reason::Outside, "{path}");
    }
    assert_eq!(place.write("../new/x", "x").unwrap_err().reason, Reason::Outside);
    assert!(!place.folder.path().join("new").exists());
    assert_eq!(fs::read_to_string(place.folder.path().join("secret")).unwrap(), "the secret\n");
    assert_eq!(place.search("secret").unwrap().hit, []);
}

#[test]
fn a_link_within_the_folder_is_followed() {
    let place = place();
    symlink("three.txt", place.work("link")).unwrap();
    check_read(place.read("link", None, Some(1)), (1, 1), Some(2), "one\n");
    place.edit("link", "one", "eins").unwrap();
    assert!(place.work("link").is_symlink());
    assert_eq!(place.has("three.txt"), "eins\ntwo\nthree");
    symlink("nowhere", place.work("dangling")).unwrap();
    check(place.write("dangling", "x"), Reason::Missing, "there is no `dangling`");
}

#[test]
fn a_link_swapped_in_between_leads_nowhere() {
    let place = place();
    fs::create_dir(place.work("d")).unwrap();
    fs::write(place.work("d/secret"), "harmless\n").unwrap();
    symlink("..", place.work("link")).unwrap();
    let (work, is_over) =
        (fs::File::open(place.work("")).unwrap(), Arc::new(AtomicBool::new(false)));
    let over = is_over.clone();
    let swapping = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(&work, "d", &work, "link", flags).unwrap();
        }
    });
    for _ in 0..500 {
        if let Ok(read) = place.read("d/secret", None, None) {
            assert_eq!(read.text, "harmless\n");
        }
        let _ = place.write("d/new", "x");
        let hits = place.search("the secret").unwrap().hit;
        assert_eq!(hits, []);
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(!place.folder.path().join("new").exists());
}

#[test]
fn nothing_that_is_no_file_holds_a_call_up() {
    let place = place();
    let made = std::process::Command::new("mkfifo").arg(place.work("fifo")).status().unwrap();
    assert!(made.success());
    let text = "`fifo` is neither a file nor a folder";
    check(place.read("fifo", None, None), Reason::WrongKind, text);
    check(place.write("fifo", "x"), Reason::WrongKind, text);
    check(place.edit("fifo", "a", "b"), Reason::WrongKind, text);
    assert_eq!(place.search("x").unwrap().files, 2);
    symlink("/dev/zero", place.work("zero")).unwrap();
    assert_eq!(place.read("zero", None, None).unwrap_err().reason, Reason::Outside);
}

#[test]
fn a_sparse_file_fills_no_memory() {
    let place = place();
    let file = fs::File::create(place.work("sparse")).unwrap();
    file.set_len(100_000_000_000).unwrap();
    let text = "line 1 of sparse is too long; the limit read_bytes_max is 131072";
    check(place.read("sparse", None, None), Reason::TooLarge, text);
    let text = "line 2 of sparse is too far from its beginning; the limit scan_bytes_max is \
                67108864";
    check(place.read("sparse", Some(2), None), Reason::TooLarge, text);
    let text = "sparse is too large to be edited; the limit file_bytes_max is 1048576";
    check(place.edit("sparse", "a", "b"), Reason::TooLarge, text);
    assert_eq!(place.search("x").unwrap().files, 2);
}

#[test]
fn what_is_no_text_is_said_to_be_none() {
    let place = place();
    fs::write(place.work("zip"), b"PK\x03\x04\0\0").unwrap();
    fs::write(place.work("latin"), b"caf\xe9\n").unwrap();
    check(place.read("zip", None, None), Reason::NoText, "`zip` holds no text in UTF-8");
    check(place.read("latin", None, None), Reason::NoText, "`latin` holds no text in UTF-8");
    fs::write(place.work("colours"), "\x1b[1mred\u{ffff}\n").unwrap();
    let read = place.read("colours", None, None).unwrap();
    assert_eq!((read.text.as_str(), read.replaced), ("\u{fffd}[1mred\u{fffd}\n", Some(2)));
}

#[test]
fn a_file_is_written_as_a_whole() {
    let place = place();
    let written = place.write("new/deep/x.txt", "hé\n").unwrap();
    assert_eq!((written.bytes, written.created), (4, true));
    assert_eq!(place.has("new/deep/x.txt"), "hé\n");
    fs::set_permissions(place.work("three.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    assert!(!place.write("three.txt", "new").unwrap().created);
    let mode = fs::metadata(place.work("three.txt")).unwrap().permissions().mode();
    assert_eq!((place.has("three.txt").as_str(), mode & 0o777), ("new", 0o750));
    let left: Vec<_> =
        fs::read_dir(place.work("")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    check(place.write("src", "x"), Reason::WrongKind, "`src` is a folder");
    check(place.write(".", "x"), Reason::WrongKind, "`.` is a folder");
    let small = place_with(|limits| limits.file_bytes_max = 3);
    let text = "the text has 4 bytes; the limit file_bytes_max is 3";
    check(small.write("x", "1234"), Reason::TooLarge, text);
    fs::set_permissions(place.work("three.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    check(place.write("three.txt", "x"), Reason::Failed, "`three.txt` is read-only");
}

#[test]
fn a_text_that_stands_once_is_replaced() {
    let place = place();
    let edited =
        place.edit("src/main.rs", "main() {\n    run();", "main() {\n    walk();").unwrap();
    let diff = "@@ -1,4 +1,4 @@\n fn main() {\n-    run();\n+    walk();\n     run();\n }\n";
    assert_eq!(edited.diff, diff);
    assert_eq!(place.has("src/main.rs"), "fn main() {\n    walk();\n    run();\n}\n");
    place.edit("three.txt", "three", "").unwrap();
    assert_eq!(place.has("three.txt"), "one\ntwo\n");
}

#[test]
fn a_text_that_stands_twice_is_refused_with_its_lines() {
    let place = place();
    let refusal = place.edit("src/main.rs", "run();", "walk();").unwrap_err();
    assert_eq!((refusal.reason, &refusal.line[..]), (Reason::Ambiguous, &[2, 3][..]));
    let text = "this text stands twice in src/main.rs, in the lines 2, 3; give more of what is \
                around the one that is meant";
    assert_eq!(refusal.text, text);
    fs::write(place.work("a"), "aaa").unwrap();
    assert_eq!(place.edit("a", "aa", "b").unwrap_err().line, [1, 1], "it overlaps with itself");
    assert_eq!(place.has("src/main.rs").matches("run").count(), 2);
}

#[test]
fn a_text_that_is_missing_is_refused_with_what_is_like_it() {
    let place = place();
    let text = "this text doesn't stand in src/main.rs; line 2 is like its first one, but white \
                space or what follows is different: read the file, and copy it exactly";
    check(place.edit("src/main.rs", "\trun();\n", "x"), Reason::NotFound, text);
    let text = "this text doesn't stand in three.txt; read the file, and copy it exactly";
    check(place.edit("three.txt", "four", "x"), Reason::NotFound, text);
    let text = "`old` is empty; `write` makes a file or replaces all of it";
    check(place.edit("three.txt", "", "x"), Reason::NotFound, text);
    check(place.edit("three.txt", "one", "one"), Reason::Unchanged, "`old` and `new` are the same");
}

#[test]
fn lines_keep_their_ends() {
    let place = place();
    fs::write(place.work("dos"), "one\r\ntwo\r\n").unwrap();
    place.edit("dos", "one\ntwo", "1\n2").unwrap();
    assert_eq!(place.has("dos"), "1\r\n2\r\n");
    place.edit("dos", "1\n2", "one\r\n2").unwrap();
    assert_eq!(place.has("dos"), "one\r\n2\r\n");
    place.edit("dos", "2", "2\n3\n4").unwrap();
    assert_eq!(place.has("dos"), "one\r\n2\r\n3\r\n4\r\n");
    fs::write(place.work("both"), "one\r\ntwo\n").unwrap();
    place.edit("both", "two", "2\n3").unwrap();
    assert_eq!(place.has("both"), "one\r\n2\n3\n");
}

#[test]
fn of_two_edits_at_once_neither_is_lost() {
    let place = place();
    let words: Vec<String> = (0..32).map(|it| format!("<{it}>")).collect();
    fs::write(place.work("many"), words.concat()).unwrap();
    std::thread::scope(|scope| {
        for word in &words {
            let place = &place;
            scope.spawn(move || place.edit("many", word, "x").unwrap());
        }
    });
    assert_eq!(place.has("many"), "x".repeat(32));
}

#[test]
fn a_folder_is_listed_by_name() {
    let place = place();
    symlink("three.txt", place.work("link")).unwrap();
    let listing = list::list(&place.root, ".").unwrap();
    let item = |name: &str, kind, bytes| Listed { name: name.to_owned(), kind, bytes };
    let expected = [
        item("link", Kind::Link, None),
        item("src", Kind::Folder, None),
        item("three.txt", Kind::File, Some(13)),
    ];
    assert_eq!((listing.more, &listing.item[..]), (false, &expected[..]));
    let small = place_with(|limits| limits.items_max = 2);
    for nth in 0..20 {
        fs::write(small.work(&format!("z{nth}")), "").unwrap();
    }
    let listing = list::list(&small.root, "").unwrap();
    let names: Vec<_> = listing.item.iter().map(|it| &*it.name).collect();
    assert_eq!((listing.more, &names[..]), (true, &["src", "three.txt"][..]));
}

#[test]
fn lines_are_found() {
    let place = place();
    fs::write(place.work(".hidden"), "run();").unwrap();
    fs::write(place.work(".gitignore"), "left\n").unwrap();
    fs::write(place.work("left"), "run();").unwrap();
    let found = place.search(r"run\(\)").unwrap();
    let lines: Vec<_> = found.hit.iter().map(|it| (it.path.as_str(), it.line, &*it.text)).collect();
    let expected = [("src/main.rs", 2, "    run();"), ("src/main.rs", 3, "    run();")];
    assert_eq!((&lines[..], found.files), (&expected[..], 2));
    let found = search::search(&place.root, "t", "three.txt", &|| false).unwrap();
    let lines: Vec<u64> = found.hit.iter().map(|it| it.line).collect();
    assert_eq!(lines, [2, 3]);
    let found = search::search(&place.root, "main", "src", &|| false).unwrap();
    assert_eq!(found.hit[0].path, "src/main.rs");
}

#[test]
fn a_search_has_its_limits() {
    let stopped = |change: fn(&mut FileLimits), pattern: &str| {
        let place = place_with(change);
        let found = place.search(pattern).unwrap();
        (found.hit.len(), found.stopped_by)
    };
    let of = |it: &str| Some(it.to_owned());
    assert_eq!(stopped(|it| it.hits_max = 2, "."), (2, of("hits_max")));
    assert_eq!(stopped(|it| it.searched_files_max = 1, "three"), (0, of("searched_files_max")));
    assert_eq!(stopped(|it| it.searched_bytes_max = 20, "}"), (0, of("searched_bytes_max")));
    assert_eq!(stopped(|it| it.searched_file_bytes_max = 20, "three|run"), (1, None));
    let place = place_with(|it| it.hit_bytes_max = 5);
    assert_eq!(place.search("main").unwrap().hit[0].text, "…main(…");
    let over = search::search(&place.root, "one|run", ".", &|| true).unwrap();
    assert_eq!(over.stopped_by, of("timeout"));
    let text = "the pattern has 2000 bytes; the limit pattern_bytes_max is 1024";
    check(place.search(&"x".repeat(2_000)), Reason::TooLarge, text);
    let refusal = place.search("(").unwrap_err();
    assert!(refusal.text.contains("unclosed group"), "{}", refusal.text);
    assert_eq!(place.search(r"\w{500}{500}{500}").unwrap_err().reason, Reason::Pattern);
}

#[test]
fn a_root_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    let error = files(&Settings::new(path.to_str().unwrap())).err().unwrap().to_string();
    assert_eq!(error, format!("there is no folder {}; make it first", path.display()));
    fs::write(&path, "").unwrap();
    assert!(files(&Settings::new(path.to_str().unwrap())).is_err());
    assert!(files(&Settings::new(folder.path().to_str().unwrap())).is_ok());
}

/// Each case: the file, the old text, the new text, and the file afterwards.
#[test]
fn an_edit_leaves_the_ends_of_other_lines_as_they_are() {
    let place = place();
    for (before, old, new, after) in [
        ("one\ntwo\r\nthree\nfour\n", "one\ntwo\nthree", "1\n2\n3", "1\n2\r\n3\nfour\n"),
        ("a\r\nb\nc\r\nd\n", "b\nc", "b\nx\nc", "a\r\nb\nx\nc\r\nd\n"),
        ("a\r\nb\nc\r\nd\n", "b\nc\nd", "c\nd", "a\r\nc\r\nd\n"),
        ("a\nb\r\nc\n", "b", "b1\nb2", "a\nb1\r\nb2\r\nc\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a\r\nb\nc\n", "\nb\n", "\nB\n", "a\r\nB\nc\n"),
        ("a\r\nb\nc\n", "a\r\nb\r\nc", "a\nB\nc", "a\r\nB\nc\n"),
        ("a\r\nb\n", "a\r\n", "a\n", "a\nb\n"),
        ("é\r\nü\nß\r\n", "ü\nß", "ü\nss", "é\r\nü\nss\r\n"),
        ("a\nb\nc\n", "a\r\nb\r\n", "a\r\nX\r\nb\r\n", "a\nX\nb\nc\n"),
        ("a\r\nb\nc\r\n", "a\r\nb\r\nc", "A\r\nB\r\nC", "A\r\nB\nC\r\n"),
        ("a\nb", "a\r\nb", "A\r\nB\r\n", "A\nB\n"),
    ] {
        fs::write(place.work("mixed"), before).unwrap();
        let edited = place.edit("mixed", old, new);
        assert!(edited.is_ok(), "{before:?} {old:?}: {edited:?}");
        assert_eq!(place.has("mixed"), after, "{before:?} {old:?} {new:?}");
    }
    fs::write(place.work("mixed"), "a\nb\r\na\r\nb\n").unwrap();
    check(
        place.edit("mixed", "a\nb", "c"),
        Reason::Ambiguous,
        "this text stands twice in mixed, in the lines 1, 3; give more of what is around the one \
         that is meant",
    );
    fs::write(place.work("mixed"), "a\r\nb\n").unwrap();
    check(place.edit("mixed", "a\nb", "a\r\nb"), Reason::Unchanged, "`old` and `new` are the same");
}

#[test]
fn a_search_finds_the_ends_of_windows_lines() {
    let place = place();
    fs::write(place.work("dos.rs"), "fn a() {\r\n    b();\r\n}\r\n\r\nend").unwrap();
    for (pattern, lines) in
        [("^}$", &[3][..]), (r"b\(\);$", &[2]), ("^$", &[4]), ("^end$", &[5]), (r"\{\s*$", &[1])]
    {
        let found = place.search(pattern).unwrap();
        let dos = found.hit.iter().filter(|it| it.path == "dos.rs");
        assert_eq!(dos.map(|it| it.line).collect::<Vec<_>>(), lines, "{pattern}");
    }
    let found = place.search("(").unwrap_err();
    assert!(!found.text.contains("(?R)"), "{}", found.text);
}

/// A pattern that names the carriage return finds it.
#[test]
fn a_search_finds_the_character_of_windows_lines() {
    let place = place();
    fs::write(place.work("mixed.rs"), "one\r\ntwo\nthree\\r\r\n").unwrap();
    for (pattern, lines) in [
        (r"\r$", &[1, 3][..]),
        (r"\x0d", &[1, 3]),
        (r"\x{D}$", &[1, 3]),
        (r"\u000D$", &[1, 3]),
        ("e\r$", &[1]),
        (r"^[^\r]*$", &[2]),
        (r"\\r$", &[3]),
        (r"o$", &[2]),
        (r"e$", &[1]),
    ] {
        let found = place.search(pattern).unwrap();
        let mixed = found.hit.iter().filter(|it| it.path == "mixed.rs");
        assert_eq!(mixed.map(|it| it.line).collect::<Vec<_>>(), lines, "{pattern}");
    }
}

#[test]
fn a_hit_in_a_long_line_is_shown_with_what_is_around_it() {
    let place = place_with(|limits| limits.hit_bytes_max = 20);
    for (line, expected) in [
        (format!("{}needle{}", "x".repeat(50), "y".repeat(50)), "…xxxxneedleyyyyyyyyyy…"),
        (format!("needle{}", "y".repeat(50)), "needleyyyyyyyyyyyyyy…"),
        (format!("{}needle", "x".repeat(50)), "…xxxxxxxxxxxxxxneedle"),
        (format!("{}needle{}", "é".repeat(30), "é".repeat(30)), "…ééneedleééééé…"),
        ("xneedley".to_owned(), "xneedley"),
    ] {
        fs::write(place.work("long"), &line).unwrap();
        assert_eq!(place.search("needle").unwrap().hit[0].text, expected, "{line}");
    }
}
