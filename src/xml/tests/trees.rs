//! Tests of trees, of their canonical bytes, and of the writer that makes both.

use bytes::Bytes;
use proptest::prelude::*;

use super::scraps;
use crate::limits::XmlLimits;
use crate::xml::{
    Child, Element, Kind, Place, Profile, View, Writer, is_name, place_of, read, writable,
};

fn parse(input: &str) -> Element {
    read(input, Profile::Wire, &XmlLimits::INSIDE).unwrap()
}

fn canonical(input: &str) -> String {
    String::from_utf8(parse(input).canonical().to_vec()).unwrap()
}

/// Returns a dump of a tree, with one line for each node.
fn show(element: View<'_>) -> String {
    let mut out = String::new();
    let mut stack = vec![Child::Element(element)];
    while let Some(child) = stack.pop() {
        match child {
            Child::Text(text) => out += &format!("text {text:?}\n"),
            Child::Element(element) => {
                out += &format!(
                    "{} {:?} {:?} {:?}",
                    element.path(),
                    element.prefix(),
                    element.name(),
                    element.place()
                );
                for a in element.attributes() {
                    out +=
                        &format!(" {:?} {:?} {:?} {:?}", a.prefix, a.namespace, a.local, a.value);
                }
                for prefix in ["", "p", "q", "t", "x", "z"] {
                    out += &format!(" {:?}", element.binding(prefix));
                }
                out.push('\n');
                let children: Vec<_> = element.children().collect();
                stack.extend(children.into_iter().rev());
            }
        }
    }
    out
}

#[test]
fn canonical_form_is_exclusive_c14n() {
    for (input, expected) in [
        ("<a/>", "<a></a>"),
        ("<a b='1' a=\"2\"/>", "<a a=\"2\" b=\"1\"></a>"),
        (
            "<a xmlns:p='u'><p:b/><p:c/></a>",
            "<a><p:b xmlns:p=\"u\"></p:b><p:c xmlns:p=\"u\"></p:c></a>",
        ),
        ("<a xmlns='u'><b xmlns='u'/></a>", "<a xmlns=\"u\"><b></b></a>"),
        ("<a xmlns='u'><b xmlns=''/></a>", "<a xmlns=\"u\"><b xmlns=\"\"></b></a>"),
        ("<a xmlns=''/>", "<a></a>"),
        ("<a>&#13;&gt;&lt;&amp;&quot;'\r\n</a>", "<a>&#xD;&gt;&lt;&amp;\"'\n</a>"),
        (
            "<a b='&#13;&#10;&#9;&lt;&amp;\"&apos; >\t\r\n'/>",
            "<a b=\"&#xD;&#xA;&#x9;&lt;&amp;&quot;' >  \"></a>",
        ),
        ("<a><![CDATA[<&]]>x<!-- c -->y</a>", "<a>&lt;&amp;xy</a>"),
        (
            "<a xmlns:z='u' xmlns:y='v' z:a='' y:a='' b=''/>",
            "<a xmlns:y=\"v\" xmlns:z=\"u\" b=\"\" z:a=\"\" y:a=\"\"></a>",
        ),
        ("<a xml:lang='de'/>", "<a xml:lang=\"de\"></a>"),
        (
            "<p:a xmlns:p='u'><p:b xmlns:p='v'><p:c xmlns:p='u'/></p:b><p:d/></p:a>",
            "<p:a xmlns:p=\"u\"><p:b xmlns:p=\"v\"><p:c xmlns:p=\"u\"></p:c></p:b>\
             <p:d></p:d></p:a>",
        ),
    ] {
        assert_eq!(canonical(input), expected, "{input}");
    }
}

#[test]
fn the_prefix_of_a_type_counts_as_used() {
    const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
    for (value, used) in [
        ("t:n", " xmlns:t=\"u\""),
        (" t:n ", " xmlns:t=\"u\""),
        ("n", " xmlns=\"d\""),
        ("no:n", ""),
        ("xml:n", ""),
    ] {
        let input = format!("<r xmlns='d' xmlns:t='u' xmlns:i='{XSI}'><i:a i:type='{value}'/></r>");
        let root = parse(&input);
        let inner = root.elements().next().unwrap().canonical();
        let (first, last) = if used.contains(":t") { ("", used) } else { (used, "") };
        let expected = format!("<i:a{first} xmlns:i=\"{XSI}\"{last} i:type=\"{value}\"></i:a>");
        assert_eq!(inner, expected.as_bytes(), "{value}");
    }
}

#[test]
fn an_element_within_declares_what_it_uses() {
    let root = parse("<a xmlns='u' xmlns:p='v' xmlns:q='w'><b p:x='1'><q:c/></b></a>");
    let inner = root.elements().next().unwrap();
    let expected = "<b xmlns=\"u\" xmlns:p=\"v\" p:x=\"1\"><q:c xmlns:q=\"w\"></q:c></b>";
    assert_eq!(inner.canonical(), expected);
    assert_eq!(inner.to_element().canonical(), expected);
    assert_eq!(inner, parse(expected).view());
}

#[test]
fn text_that_touches_is_one_text() {
    let root = parse("<a>1&amp;<![CDATA[2]]><!-- -->3\r\n<b/>\r<![CDATA[]]><b/><![CDATA[]]></a>");
    let texts = root.children().map(|it| match it {
        Child::Text(text) => text,
        Child::Element(_) => "<>",
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["1&23\n", "<>", "\n", "<>"]);
    assert_eq!(root.text(), "1&23\n\n");
    assert!(!root.has_text_only() && !root.is_empty());
    assert!(parse("<a>1</a>").has_text_only() && parse("<a><!-- --></a>").is_empty());
}

#[test]
fn an_element_knows_its_names_and_its_place() {
    let root = parse("\u{FEFF}<m:a xmlns:m='u' xmlns='d'\n b='1' m:b='2'>\r\n é<c/></m:a>");
    assert_eq!((root.prefix(), root.namespace(), root.local()), ("m", "u", "a"));
    assert!(root.is("u", "a") && !root.is("", "a") && !root.is("u", "b"));
    assert_eq!(root.name().to_string(), "{u}a");
    assert_eq!(root.attribute("b"), Some("1"));
    assert_eq!(root.attribute("a"), None);
    assert_eq!(root.attributes().map(|it| it.namespace).collect::<Vec<_>>(), ["", "u"]);
    assert_eq!(root.place(), Place { line: 1, column: 1, offset: 3 });
    let inner = root.elements().next().unwrap();
    assert_eq!(inner.place(), Place { line: 3, column: 3, offset: 50 });
    assert_eq!((inner.path().as_str(), inner.namespace()), ("/a/c", "d"));
    assert_eq!(inner.binding("m"), Some("u"));
    assert_eq!(inner.binding(""), Some("d"));
    assert_eq!((inner.binding("n"), root.binding("xml")), (None, Some(crate::xml::XML)));
}

#[test]
fn a_place_counts_characters_and_every_kind_of_line_end() {
    let text = "\u{FEFF}é\n\r\n\rab".as_bytes();
    let at = |offset| {
        let Place { line, column, .. } = place_of(text, offset);
        (line, column)
    };
    assert_eq!([at(0), at(3), at(5), at(6)], [(1, 1), (1, 1), (1, 2), (2, 1)]);
    assert_eq!([at(8), at(9), at(11), at(99)], [(3, 1), (4, 1), (4, 3), (4, 3)]);
}

#[test]
fn namespaces_are_compared_as_decoded() {
    let root = parse("<a xmlns='urn&#58;x'><b xmlns='urn:x'/></a>");
    assert!(root.is("urn:x", "a"));
    assert_eq!(root.canonical(), "<a xmlns=\"urn:x\"><b></b></a>");
}

#[test]
fn many_prefixes_and_attributes_are_found_again() {
    let declarations: String = (0..60).map(|n| format!(" xmlns:p{n}='u{n}'")).collect();
    let attributes: String = (0..60).map(|n| format!(" p{n}:x='{n}' y{n}=''")).collect();
    let root = parse(&format!("<a{declarations}><b{attributes}/><p59:c/></a>"));
    let mut inner = root.elements();
    let numbered = inner.next().unwrap().attributes().filter(|it| it.local == "x");
    assert!(numbered.zip(0..).all(|(it, n)| it.namespace == format!("u{n}")));
    assert_eq!(inner.next().unwrap().namespace(), "u59");
    let twice = format!("<a{declarations} xmlns:q='u5'><b{attributes} q:x=''/></a>");
    assert!(read(twice, Profile::Wire, &XmlLimits::DOOR).is_err());
}

/// Nodes and attributes that don't fit into one place of the node list are read like any others.
/// Such nodes have long names or values, decoded values, white space around an `=`, many prefixes,
/// or large content.
#[test]
fn the_unusual_is_kept_as_the_usual() {
    let (name, value) = ("n".repeat(100), "v".repeat(70_000));
    let inside: String = (0..9_000)
        .map(|n| match n % 5 {
            0 => format!("<q:{name} xmlns:q='{n}' q:a='' b='{n}' {name}='&lt;'>x<q:c/></q:{name}>"),
            1 => format!("<a xmlns:q='{n}' {name}='' b = '{n}' q:b=\"&#9;\"><q:e q:f=''/>y</a>"),
            2 => format!("<{name}/>z<b {name}='{n}'/>"),
            3 => format!("<b b='{n}' xml:lang='x' p:b=''><p:b p:c='' d='' /></b>"),
            _ => format!("{n}"),
        })
        .collect();
    let longest = "m".repeat(XmlLimits::FILE.name_bytes_max);
    let root = format!("r xmlns:p='u' a='{value}' {longest}=''");
    let text = format!("<{root}><{name}>{inside}</{name}>t<b c='{value}'/></r>");
    let element = read(&text, Profile::Wire, &XmlLimits::FILE).unwrap();
    assert_same_tree(element.view(), &text).unwrap();
    let canonical = element.canonical();
    let again = Element::from_canonical(canonical.clone()).unwrap();
    assert_same_tree(again.view(), &text).unwrap();
    let mut writer = Writer::new(XmlLimits::FILE);
    writer.element(element.view());
    let written = writer.finish().unwrap();
    assert_same_tree(written.view(), &text).unwrap();
    assert_eq!(written.canonical(), canonical);
}

#[test]
fn depth_costs_no_stack() {
    let depth = XmlLimits::FILE.depth_max;
    let limits = XmlLimits { depth_max: 200_000, ..XmlLimits::FILE };
    let deep = |depth| format!("{}x{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(read(deep(depth + 1), Profile::Wire, &XmlLimits::FILE).is_err());
    let element = read(deep(200_000), Profile::Wire, &limits).unwrap();
    assert_eq!(element.canonical(), deep(200_000));
    let mut writer = Writer::new(limits);
    writer.element(element.view());
    assert_eq!(writer.finish().unwrap(), element);
    drop(element);
}

#[test]
fn a_tree_of_the_other_library_is_lent() {
    let root = parse("<a xmlns='u'>x<b c='1'/></a>");
    let found = root.with_tree(|tree| {
        let root = tree.root_element();
        (root.has_tag_name(("u", "a")), root.children().count())
    });
    assert_eq!(found, Ok((true, 2)));
    assert_eq!(format!("{root:?}"), "<a xmlns=\"u\">x<b c=\"1\"></b></a>");
}

#[test]
fn what_the_log_kept_comes_back_as_it_was() {
    let bytes = Bytes::from_static(b"<a xmlns=\"u\"><b></b></a>");
    let element = Element::from_canonical(bytes.clone()).unwrap();
    assert_eq!(element.canonical().as_ptr(), bytes.as_ptr());
    assert_eq!(element.elements().next().unwrap().canonical(), "<b xmlns=\"u\"></b>");
    assert_eq!(Element::from_canonical(Bytes::new()).unwrap_err().kind, Kind::Syntax);
}

#[test]
fn a_writer_makes_canonical_bytes_and_their_tree() {
    let foreign = parse("<m xmlns:p='v' xmlns='w'><p:f g='&#10;'> > <h xmlns=''/></p:f><i/></m>");
    let mut writer = Writer::new(XmlLimits::DOOR);
    writer.start("u", "a");
    writer.attribute("z", "\"\t<");
    writer.attribute("b", "");
    writer.text("1");
    writer.text("");
    writer.text(" < ");
    writer.text("2\r");
    writer.start("", "c");
    writer.end();
    for element in foreign.elements() {
        writer.element(element);
    }
    writer.text("x");
    writer.text("y");
    writer.end();
    let written = writer.finish().unwrap();
    let expected = "<a xmlns=\"u\" b=\"\" z=\"&quot;&#x9;&lt;\">1 &lt; 2&#xD;<c xmlns=\"\"></c>\
        <p:f xmlns:p=\"v\" g=\"&#xA;\"> &gt; <h xmlns=\"\"></h></p:f><i xmlns=\"w\"></i>xy</a>";
    assert_eq!(written.canonical(), expected);
    assert_eq!(show(written.view()), show(parse(expected).view()));
    assert_eq!(canonical(expected), expected);
}

type Write = fn(&mut Writer);

/// Calls to a writer, and the first error that they cause.
const WRONG: &[(Write, &str)] = &[
    (|_| {}, "nothing is written"),
    (|w| w.start("", "a"), "an element is started and not ended"),
    (|w| w.end(), "an end without a start"),
    (|w| w.text("x"), "text outside an element"),
    (|w| w.attribute("a", ""), "attribute a comes after its element's content"),
    (|w| w.start("", "1"), "`1` is no name"),
    (|w| w.start("", "a:b"), "`a:b` is no name"),
    (|w| w.start("", ""), "`` is no name"),
    (|w| w.start("\0", "a"), "U+0000, at byte 0, is no XML character"),
    (
        |w| w.start(crate::xml::XML, "a"),
        "http://www.w3.org/XML/1998/namespace can't be a default namespace",
    ),
    (
        |w| {
            w.start("", "a");
            w.attribute("xmlns", "");
        },
        "xmlns is a namespace declaration, not an attribute",
    ),
    (
        |w| {
            w.start("", "a");
            w.attribute("b", "");
            w.attribute("b", "");
            w.end();
        },
        "attribute b is given twice",
    ),
    (
        |w| {
            w.start("", "a");
            w.text("x");
            w.attribute("b", "");
            w.end();
        },
        "attribute b comes after its element's content",
    ),
    (
        |w| {
            w.start("", "a");
            w.end();
            w.start("", "b");
            w.end();
        },
        "a second root element",
    ),
    (
        |w| {
            w.start("", "a");
            w.end();
            w.end();
        },
        "an end without a start",
    ),
];

#[test]
fn a_writer_reports_its_first_error() {
    for (write, message) in WRONG {
        let mut writer = Writer::new(XmlLimits::DOOR);
        write(&mut writer);
        assert_eq!(writer.finish().unwrap_err().message, *message);
    }
}

#[test]
fn a_writer_keeps_limits() {
    type Write = fn(&mut Writer);
    let limits = XmlLimits {
        message_bytes_max: 60,
        depth_max: 3,
        attributes_max: 4,
        nodes_max: 4,
        name_bytes_max: 4,
        ..XmlLimits::DOOR
    };
    let cases: &[(Write, &str)] = &[
        (|w| (0..4).for_each(|_| w.start("", "a")), "depth_max is 3"),
        (
            |w| {
                w.start("", "a");
                w.text(&"x".repeat(60));
            },
            "message_bytes_max is 60",
        ),
        (
            |w| {
                w.start("", "a");
                (0..5).for_each(|it| w.attribute(&format!("b{it}"), "0123456789"));
            },
            "message_bytes_max is 60",
        ),
        (|w| w.start("", "abcde"), "name_bytes_max is 4"),
        (
            |w| {
                w.start("", "a");
                (0..5).for_each(|it| w.attribute(&format!("b{it}"), ""));
            },
            "attributes_max is 4",
        ),
        (
            |w| {
                w.start("", "a");
                (0..4).for_each(|_| {
                    w.start("", "b");
                    w.end();
                });
            },
            "nodes_max is 4",
        ),
        (|w| w.element(parse("<a><b/><b/><b/><b/></a>").view()), "nodes_max is 4"),
        (
            |w| w.element(parse(&format!("<a>{}</a>", "x".repeat(60))).view()),
            "message_bytes_max is 60",
        ),
    ];
    for (write, message) in cases {
        let mut writer = Writer::new(limits);
        write(&mut writer);
        let error = writer.finish().unwrap_err();
        assert_eq!(error.kind, Kind::Limit, "{message}: {error}");
        assert!(error.message.ends_with(message), "{message}: {error}");
    }
}

#[test]
fn a_name_is_one_of_the_fifth_edition() {
    for name in ["a", "_", "é", "a-1.b", "\u{10000}", "a\u{B7}", "a\u{300}", "x\u{203F}"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", "1", "-", ".a", "a:b", ":", "a b", "\u{B7}", "\u{D7}", "a\u{37E}", "\u{F0000}"]
    {
        assert!(!is_name(name), "{name}");
    }
}

/// Checks that `roxmltree` finds the elements, attributes and texts of `root` in `input`.
fn assert_same_tree(root: View<'_>, input: &str) -> Result<(), TestCaseError> {
    let tree = roxmltree::Document::parse(input).unwrap();
    let mut stack = vec![root];
    for node in tree.descendants().filter(roxmltree::Node::is_element) {
        let ours = stack.pop().unwrap();
        prop_assert_eq!(ours.namespace(), node.tag_name().namespace().unwrap_or(""));
        prop_assert_eq!(ours.local(), node.tag_name().name());
        let attribute = |attribute: roxmltree::Attribute<'_, '_>| {
            (
                attribute.namespace().unwrap_or("").to_owned(),
                attribute.name().to_owned(),
                attribute.value().to_owned(),
            )
        };
        let mut theirs: Vec<_> = node.attributes().map(attribute).collect();
        let attributes = ours.attributes().map(|it| (it.namespace, it.local, it.value));
        let mut attributes: Vec<_> =
            attributes.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())).collect();
        theirs.sort();
        attributes.sort();
        prop_assert_eq!(attributes, theirs);
        let texts = node.children().filter(roxmltree::Node::is_text);
        let text: String = texts.filter_map(|it| it.text()).collect();
        prop_assert_eq!(ours.text(), text);
        let is_something = |it: roxmltree::Node<'_, '_>| it.is_element() || it.is_text();
        prop_assert_eq!(ours.is_empty(), !node.children().any(is_something));
        let inner: Vec<_> = ours.elements().collect();
        stack.extend(inner.into_iter().rev());
    }
    prop_assert!(stack.is_empty());
    Ok(())
}

proptest! {
    #[test]
    fn canonical_bytes_read_back_to_themselves(input in scraps()) {
        if let Ok(element) = read(&input, Profile::Document, &XmlLimits::DOOR) {
            let bytes = element.canonical();
            let again = read(&bytes, Profile::Wire, &XmlLimits::DOOR).unwrap();
            prop_assert_eq!(again.canonical(), bytes.clone());
            let mut writer = Writer::new(XmlLimits::DOOR);
            writer.element(element.view());
            let written = writer.finish().unwrap();
            prop_assert_eq!(written.canonical(), bytes);
            prop_assert_eq!(show(written.view()), show(again.view()));
            for inner in element.elements() {
                let mut writer = Writer::new(XmlLimits::DOOR);
                writer.element(inner);
                prop_assert_eq!(writer.finish().unwrap().canonical(), inner.canonical());
            }
        }
    }

    #[test]
    fn what_is_accepted_another_parser_accepts_alike(input in scraps()) {
        if let Ok(element) = read(&input, Profile::Document, &XmlLimits::DOOR) {
            assert_same_tree(element.view(), &input)?;
        }
    }

    #[test]
    fn any_text_comes_through_a_writer(
        text in "\\PC*|[\\t\\r\\n<>&\"']*",
        value in any::<String>(),
    ) {
        let mut writer = Writer::new(XmlLimits::DOOR);
        writer.start("u", "a");
        writer.attribute("b", &value);
        text.split_inclusive('&').for_each(|piece| writer.text(piece));
        writer.end();
        let written = writer.finish().unwrap();
        let again = read(written.canonical(), Profile::Wire, &XmlLimits::DOOR).unwrap();
        prop_assert_eq!(again.text(), text);
        prop_assert_eq!(again.attribute("b"), Some(&*writable(&value)));
        prop_assert_eq!(show(again.view()), show(written.view()));
    }
}

#[test]
fn a_character_that_no_document_may_hold_is_written_as_its_replacement() {
    let mut writer = Writer::new(XmlLimits::INSIDE);
    writer.start("u", "a");
    writer.attribute("b", "\u{1B}[31m");
    writer.text("x\0y");
    writer.text("é\u{FFFE}<\u{FFFF}");
    writer.end();
    let written = writer.finish().unwrap();
    let expected = "<a xmlns=\"u\" b=\"\u{FFFD}[31m\">x\u{FFFD}yé\u{FFFD}&lt;\u{FFFD}</a>";
    assert_eq!(written.canonical(), expected.as_bytes());
    assert_eq!(written.text(), "x\u{FFFD}yé\u{FFFD}<\u{FFFD}");
}
