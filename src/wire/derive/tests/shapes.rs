//! Tests of how values are written, and that values are read back unchanged.

use super::*;

fn all() -> All {
    All {
        id: "<1>".into(),
        level: Some(3),
        color: Some(Color::DarkGreen),
        name: "a & b".into(),
        other_names: vec!["c".into(), String::new()],
        note: Some(Note(" spaced ".into())),
        step: vec![
            Step { done: true, what: "one".into() },
            Step { done: false, what: String::new() },
        ],
        figure: Figure::Polygon { closed: true, corner: vec![Corner { x: 0.5, y: -1.0 }] },
        size: Some(Size::Wide { by: 2 }),
        r#type: Some(Box::new(Color::Blue)),
        inside: vec![Figures { figure: Figure::Point, more: vec![Size::Small, Size::Small] }],
        rest: vec![element("<o:x xmlns:o=\"urn:o\"><y></y></o:x>"), element("<z></z>")],
    }
}

#[test]
fn a_struct_is_its_fields_in_their_order() {
    round(&Add { a: 1, b: -2 }, "<add xmlns=\"urn:test\"><a>1</a><b>-2</b></add>");
    round(
        &all(),
        "<everything xmlns=\"urn:test\" id=\"&lt;1>\" level=\"3\" tint=\"dark-green\">\
         <name>a &amp; b</name><aka>c</aka><aka></aka><note> spaced </note>\
         <step done=\"true\">one</step><step done=\"false\"></step>\
         <polygon closed=\"true\"><corner x=\"0.5\" y=\"-1\"></corner></polygon>\
         <wide><by>2</by></wide><type>BLUE</type>\
         <inside><point></point><small></small><small></small></inside>\
         <o:x xmlns:o=\"urn:o\"><y xmlns=\"\"></y></o:x><z xmlns=\"\"></z></everything>",
    );
}

#[test]
fn what_is_optional_may_be_away() {
    let least = All {
        level: None,
        color: None,
        other_names: vec![],
        note: None,
        step: vec![],
        figure: Figure::Square(2.0),
        size: None,
        r#type: None,
        inside: vec![],
        rest: vec![],
        ..all()
    };
    round(
        &least,
        "<everything xmlns=\"urn:test\" id=\"&lt;1>\"><name>a &amp; b</name>\
         <square>2</square></everything>",
    );
}

#[test]
fn variants_stand_under_their_own_names() {
    let texts = [
        "<point></point>",
        "<circle><radius>1.5</radius></circle>",
        "<polygon closed=\"false\"></polygon>",
        "<group><children></children><children></children></group>",
        "<either><either><square>INF</square></either></either>",
    ];
    for text in texts {
        let text =
            format!("<everything xmlns=\"urn:test\" id=\"\"><name></name>{text}</everything>");
        let all = All::read(element(&text).view()).expect(&text);
        round(&all, &text);
    }
}

#[test]
fn a_root_may_be_empty_a_text_a_word_or_a_choice() {
    round(&Ping, "<ping xmlns=\"urn:test\"></ping>");
    round(&Say(" hi ]]> ".into()), "<say xmlns=\"urn:test\"> hi ]]&gt; </say>");
    round(&Mood::NotSoGood, "<mood xmlns=\"urn:test\">not-so-good</mood>");
    round(&Said::Nothing, "<said xmlns=\"urn:test\"><nothing></nothing></said>");
    round(&Said::Word("x".into()), "<said xmlns=\"urn:test\"><word>x</word></said>");
    round(&Said::Tint(Color::Red), "<said xmlns=\"urn:test\"><tint>red</tint></said>");
    round(&Said::Sum { a: 1, b: 2 }, "<said xmlns=\"urn:test\"><sum><a>1</a><b>2</b></sum></said>");
    round(
        &Said::Again(Box::new(Said::Again(Box::new(Said::Nothing)))),
        "<said xmlns=\"urn:test\"><again><again><nothing></nothing></again></again></said>",
    );
}

#[test]
fn any_element_stands_between_fields() {
    for what in ["<x xmlns=\"urn:test\">t</x>", "<to xmlns=\"urn:o\"></to>"] {
        let carry = Carry { to: None, what: element(what), then: Some("t".into()) };
        same(&carry, &carry.encode().expect("an element"));
        let carry = Carry { to: Some("t".into()), what: element(what), then: None };
        same(&carry, &carry.encode().expect("an element"));
    }
}

#[test]
fn white_space_comments_and_prefixes_change_nothing() {
    for text in [
        "<add xmlns='urn:test'>\n  <a> 1 </a>\n  <!-- two -->\t<b>\r\n2\n</b> </add>",
        "<c:add xmlns:c='urn:test'><c:a>1</c:a><c:b><![CDATA[2]]></c:b></c:add>",
        "<c:add xmlns:c='urn:test'><a xmlns='urn:test'>&#49;</a><c:b><!-- -->2</c:b></c:add>",
        "<add xmlns='urn:test' xml:lang='en' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' \
         i:schemaLocation='urn:test x.xsd'><a xml:space='preserve'>1</a><b>2</b></add>",
    ] {
        same(&Add { a: 1, b: 2 }, &element(text));
    }
}

#[test]
fn a_type_may_hold_itself_as_deep_as_a_message_may_be() {
    let mut tree = Tree { children: vec![] };
    let mut chain = Chain { next: None };
    for _ in 1..128 {
        tree = Tree { children: vec![tree] };
        chain = Chain { next: Some(Box::new(chain)) };
    }
    same(&tree, &tree.encode().expect("128 deep"));
    same(&chain, &chain.encode().expect("128 deep"));
    let mut said = Said::Nothing;
    for _ in 2..128 {
        said = Said::Again(Box::new(said));
    }
    same(&said, &said.encode().expect("128 deep"));
    let deeper = Tree { children: vec![tree.clone()] };
    assert!(deeper.encode().is_err());
    // A trusted file may nest deeper than the writer allows, so the decoder has to refuse it.
    let (open, close) = ("<children>".repeat(4_000), "</children>".repeat(4_000));
    let text = format!("<tree xmlns='urn:test'>{open}{close}</tree>");
    let error = refused::<Tree>(&text);
    assert_eq!(error.rule, Rule::Depth);
    assert_eq!(error.message, "<children> stands more than 128 elements deep");
}

#[test]
fn what_xml_cannot_hold_is_written_as_its_replacement() {
    let said = |text: &str| Say(text.into()).encode().map(|it| it.text().into_owned());
    assert_eq!(said("a\0b").unwrap(), "a\u{FFFD}b");
    assert_eq!(said("\u{FFFE}").unwrap(), "\u{FFFD}");
}

#[test]
fn a_schema_keeps_what_was_said() {
    fn is_live<P: Live>() -> bool {
        P::schema().live
    }
    let schema = All::schema();
    assert_eq!(schema.name, Name::of(NS, "everything"));
    assert_eq!(schema.doc(), "What a fold is for.");
    assert!(!schema.live && !schema.reserved && !schema.bookkeeping);
    assert!(is_live::<Said>() && is_live::<Ping>());
    assert!(Ping::schema().reserved && Ping::schema().bookkeeping);
    let docs = format!("{:#?} {:#?}", schema, Add::schema());
    for text in [
        "Like blood.",
        "Said aside.",
        "What a fold is for.",
        "The first.",
        "The second.",
        "dark-green",
    ] {
        assert!(docs.contains(text), "{text} in {docs}");
    }
    assert!(std::ptr::eq(All::schema(), schema));
}

#[test]
fn a_payload_may_be_declared_anywhere() {
    macro_rules! payload {
        ($name:ident { $($field:ident: $type:ty),* }) => {
            /// Written by a macro.
            #[derive(Payload, Debug, PartialEq)]
            #[payload(ns = "urn:test")]
            struct $name { $($field: $type),* }
        };
    }
    payload!(Made { found: i64, at: Vec<String>, to: Option<bool>, namespace: u8, derive: char });
    round(
        &Made { found: 1, at: vec!["x".into()], to: None, namespace: 3, derive: 'd' },
        "<made xmlns=\"urn:test\"><found>1</found><at>x</at><namespace>3</namespace>\
         <derive>d</derive></made>",
    );
    mod strange {
        #![expect(dead_code, reason = "these names are only in the way")]
        struct Option;
        struct Result;
        struct Vec;
        struct Error;
        struct Shape;
        fn describe() {}
        fn shape() {}

        /// Has strange neighbours.
        #[derive(pumphouse::Payload, Debug, PartialEq)]
        #[payload(ns = "urn:test")]
        pub(super) enum Neighbour {
            Ok { slot: Own },
            Some(Own),
            None,
        }

        /// Has a strange name.
        #[derive(pumphouse::Payload, Debug, PartialEq)]
        pub(super) enum Own {
            Err,
        }
    }
    let ok = strange::Neighbour::Ok { slot: strange::Own::Err };
    round(&ok, "<neighbour xmlns=\"urn:test\"><ok><slot>err</slot></ok></neighbour>");
    let none = strange::Neighbour::None;
    round(&none, "<neighbour xmlns=\"urn:test\"><none></none></neighbour>");
    let some = strange::Neighbour::Some(strange::Own::Err);
    round(&some, "<neighbour xmlns=\"urn:test\"><some>err</some></neighbour>");
}
