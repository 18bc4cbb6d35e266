//! Every document that our reader accepts is read in the same way by three other parsers.

mod others;

use proptest::prelude::*;
use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Child, Profile, View, read};

use super::{cases, suites};
use others::{OTHERS, Other};

/// What a document says, whoever reads it: a line for each start, attribute, text and end.
#[derive(Debug, Default, PartialEq)]
struct Said(Vec<String>);

impl Said {
    fn start(&mut self, namespace: &str, local: &str) {
        self.0.push(format!("<{{{namespace}}}{local}"));
    }

    /// Attributes have no order.
    fn attributes(&mut self, mut attributes: Vec<(String, String, String)>) {
        attributes.sort();
        let line = |(namespace, local, value)| format!("@{{{namespace}}}{local}={value:?}");
        self.0.extend(attributes.into_iter().map(line));
    }

    /// Text that touches text is one text.
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.starts_with('"') => last.push_str(text),
            _ => self.0.push(format!("\"{text}")),
        }
    }

    fn end(&mut self) {
        self.0.push(">".to_owned());
    }
}

/// How we read it.
fn ours(view: View<'_>, said: &mut Said) {
    said.start(view.namespace(), view.local());
    let own = |it: pumphouse::xml::Attribute<'_>| {
        (it.namespace.to_owned(), it.local.to_owned(), it.value.to_owned())
    };
    said.attributes(view.attributes().map(own).collect());
    for child in view.children() {
        match child {
            Child::Element(it) => ours(it, said),
            Child::Text(it) => said.text(it),
        }
    }
    said.end();
}

/// Who reads it otherwise, and how; empty where we refuse it.
fn differences(name: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(element) = read(bytes, Profile::Document, &XmlLimits::DOOR) else { return Vec::new() };
    let mut expected = Said::default();
    ours(element.view(), &mut expected);
    let source = std::str::from_utf8(bytes).unwrap();
    let canonical = element.canonical();
    let lent = element.with_tree(|tree| {
        let mut said = Said::default();
        others::tree(tree.root_element(), &mut said);
        said
    });
    let lent = lent.is_ok_and(|said| said != expected);
    let texts = [("as it is", source), ("canonical", std::str::from_utf8(&canonical).unwrap())];
    let mut differences = Vec::new();
    if lent {
        differences.push(format!("{name}: the tree that is lent is another"));
    }
    for Other { name: other, parse, errs } in OTHERS {
        for (form, text) in texts.iter().filter(|(_, text)| !errs(text)) {
            match parse(text) {
                Ok(said) if said == expected => {}
                Ok(said) => {
                    let at = said.0.iter().zip(&expected.0).position(|(a, b)| a != b);
                    let at = at.unwrap_or(said.0.len().min(expected.0.len()));
                    let line = |it: &Said| it.0.get(at).cloned();
                    let (theirs, ours) = (line(&said), line(&expected));
                    differences.push(format!("{name}, {form}: {other}: {theirs:?}, not {ours:?}"));
                }
                Err(error) => differences.push(format!("{name}, {form}: {other}: {error}")),
            }
        }
    }
    differences
}

#[test]
fn other_parsers_read_the_suites_as_we_do() {
    let Some(suites) = suites() else { return };
    let indexes = ["xmlconf/index.jsonl", "xmlconf/canonical_outputs.jsonl"];
    let indexes = indexes.into_iter().chain(["xml-attacks/index.jsonl"]);
    let cases = indexes.flat_map(|it| cases(&suites, it));
    let wrong: Vec<String> = cases.flat_map(|it| differences(it.file(), &it.bytes())).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn two_others_refuse_an_element_in_the_namespace_of_xml() {
    let differences = differences("it", b"<xml:test/>");
    let [roxmltree, _, xml, _] = &differences[..] else { panic!("{differences:?}") };
    assert!(roxmltree.contains("roxmltree: an unknown namespace prefix 'xml'"), "{roxmltree}");
    assert!(xml.contains("'xml' cannot be an element name prefix"), "{xml}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn other_parsers_read_whatever_we_accept_as_we_do(document in document()) {
        let wrong = differences(&document, document.as_bytes());
        prop_assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    }
}

/// Documents that we mostly accept: every way to write the same, and prefixes bound anew.
fn document() -> impl Strategy<Value = String> {
    let leaf = (tag(), pieces()).prop_map(|(tag, inside)| element(&tag, &inside));
    let inner = leaf.prop_recursive(5, 40, 5, |inner| {
        let child = prop_oneof![1 => pieces(), 2 => inner];
        let inside = prop::collection::vec(child, 0..5);
        (tag(), inside).prop_map(|(tag, inside)| element(&tag, &inside.concat()))
    });
    let prolog = prop::sample::select(vec![
        "",
        "\u{FEFF}",
        "<?xml version='1.0'?>",
        "<?xml version=\"1.0\" encoding='UTF-8' standalone=\"yes\" ?>\r\n",
        "<!-- a -->\n<?b c?>",
    ]);
    let root = prop::sample::select(vec!["<r xmlns:p='u' xmlns:q=\"v\">", "<p:r xmlns:p='u'\n>"]);
    let tail = prop::sample::select(vec!["", "\n", "<!--z-->", "\r<?y?> "]);
    (prolog, root, inner, tail).prop_map(|(prolog, root, inner, tail)| {
        let name = if root.starts_with("<r") { "r" } else { "p:r" };
        format!("{prolog}{root}{inner}</{name}>{tail}")
    })
}

/// A start tag without its ends, and its name.
fn tag() -> impl Strategy<Value = (String, String)> {
    let names = vec!["a", "b", "p:a", "p:b", "q:a", "xmlish", "é", "p:名", "_-.1", "p:xmlns"];
    let default = vec!["", "", " xmlns='u'", " xmlns=\"\"", "\nxmlns = 'v&#x26;w'"];
    let bound = vec!["", "", "", " xmlns:p='v'", "\txmlns:p=\"u\"", " xmlns:p='&#117;&#10;'"];
    let other = vec!["", "", " xmlns:q='u'", " xmlns:q=' a\tb\r\n'", " xmlns:q='v' xmlns:x='u'"];
    let bare = vec!["", "", " c='1'", " c='\"'", " c=\"&lt;&#x9;&amp;'\"", " c='a\r\nb\tc \rd'"];
    let prefixed = vec![
        "",
        "",
        " p:c='2'",
        " p:xmlns='w'",
        " q:c=''",
        " xml:lang='de'",
        " xml:space='preserve'",
    ];
    let select = prop::sample::select;
    let attributes =
        (select(default), select(bound), select(other), select(bare), select(prefixed));
    (select(names), attributes)
        .prop_map(|(name, (a, b, c, d, e))| (name.to_owned(), format!("<{name}{e}{a}{d}{b}{c}")))
}

fn element((name, start): &(String, String), inside: &str) -> String {
    match inside {
        "" if start.len() % 2 == 0 => format!("{start}/>"),
        _ => format!("{start} >{inside}</{name}\n>"),
    }
}

/// Text in all its forms, and what parts it.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "x",
        " ",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "&lt;",
        "&amp;amp;",
        "&#13;",
        "&#x1F600;",
        "é",
        "\u{85}",
        "\u{2028}",
        "]]",
        "]]&gt;",
        ">",
        "<![CDATA[]]>",
        "<![CDATA[<a>&amp;\r\n]]]>",
        "<![CDATA[]]]]><![CDATA[>]]>",
        "<!-- <b> & -->",
        "<?pi <c> ?>",
        "\"'",
    ]);
    prop::collection::vec(piece, 0..6).prop_map(|it| it.concat())
}
