//! Tests of facets, scalars of more than one part, lists and maps.

use std::collections::BTreeMap;

use super::*;
use crate::wire::{Bytes, Code, SignedDuration, Timestamp, Uuid};

/// An order, whose fields have all kinds of facets.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Order {
    #[payload(attribute, pattern = "[A-Z]{3}-[0-9]+")]
    id: String,
    #[payload(attribute, list, min = 0, max = 9, max_length = 3)]
    marks: Option<Vec<u8>>,
    #[payload(min = 1, max = 100)]
    count: i64,
    #[payload(min_length = 1, max_length = 5)]
    name: String,
    #[payload(one_of("small", "large"))]
    size: Option<String>,
    #[payload(one_of(2, 3, 5))]
    prime: Option<u8>,
    #[payload(min = 0, max = 0.1)]
    share: Vec<f32>,
    #[payload(digits = 6, fraction_digits = 2)]
    price: Option<f64>,
    #[payload(digits = 3)]
    short: Option<i32>,
    #[payload(length = 4)]
    key: Option<Bytes>,
    percent: Option<Percent>,
    wish: Vec<Wish>,
    by_name: Option<BTreeMap<String, Percent>>,
}

/// A percentage.
#[derive(Payload, Debug, PartialEq, Clone, Copy)]
struct Percent(#[payload(max = 100)] u8);

/// A wish for a color or a shade.
#[derive(Payload, Debug, PartialEq, Clone)]
enum Wish {
    Color(#[payload(pattern = "#[0-9a-f]{6}")] String),
    Shade {
        #[payload(attribute, max = 10)]
        depth: u8,
    },
}

/// A code as a root.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Ticket(#[payload(pattern = r"\i\c*", max_length = 8)] String);

/// Scalars of more than one part.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Forms {
    #[payload(attribute)]
    at: Timestamp,
    #[payload(attribute)]
    id: Uuid,
    #[payload(attribute, list)]
    tints: Vec<Color>,
    #[payload(list)]
    sizes: Vec<i64>,
    #[payload(list)]
    times: Option<Vec<SignedDuration>>,
    data: Bytes,
    span: Vec<SignedDuration>,
}

/// A list as a text.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Row {
    #[payload(text, list, length = 2)]
    cells: Vec<f64>,
}

/// Maps with values of several kinds.
#[derive(Payload, Debug, PartialEq, Clone, Default)]
#[payload(ns = "urn:test")]
struct Named {
    words: BTreeMap<String, String>,
    steps: BTreeMap<String, Step>,
    figures: BTreeMap<String, Figure>,
    trees: BTreeMap<String, Named>,
}

const ORDER: &str = "<order xmlns='urn:test' id='ABC-1'><count>1</count><name>x</name>";

/// Returns the smallest valid order, with `rest` after its name.
fn order(rest: &str) -> String {
    format!("{ORDER}{rest}</order>")
}

fn least() -> Order {
    Order {
        id: "ABC-1".into(),
        marks: None,
        count: 1,
        name: "x".into(),
        size: None,
        prime: None,
        share: vec![],
        price: None,
        short: None,
        key: None,
        percent: None,
        wish: vec![],
        by_name: None,
    }
}

#[test]
fn what_keeps_to_its_facets_goes_through() {
    let full = Order {
        marks: Some(vec![0, 9]),
        size: Some("large".into()),
        prime: Some(5),
        share: vec![0.0, 0.1],
        price: Some(1234.5),
        short: Some(-999),
        key: Some(Bytes::from_static(b"\0\x01\xfe\xff")),
        percent: Some(Percent(100)),
        wish: vec![Wish::Color("#00ff7f".into()), Wish::Shade { depth: 10 }],
        by_name: Some(BTreeMap::from([("a".into(), Percent(1))])),
        ..least()
    };
    round(
        &full,
        "<order xmlns=\"urn:test\" id=\"ABC-1\" marks=\"0 9\"><count>1</count><name>x</name>\
         <size>large</size><prime>5</prime><share>0</share><share>0.1</share><price>1234.5</price>\
         <short>-999</short><key>AAH+/w==</key><percent>100</percent><color>#00ff7f</color>\
         <shade depth=\"10\"></shade><by_name><entry key=\"a\">1</entry></by_name></order>",
    );
    same(&least(), &element(&order("")));
    round(&Ticket("a-1".into()), "<ticket xmlns=\"urn:test\">a-1</ticket>");
    round(&Row { cells: vec![0.5, 2.0] }, "<row xmlns=\"urn:test\">0.5 2</row>");
}

#[test]
fn what_breaks_its_facets_is_refused() {
    let check = |text: &str, message: &str| {
        let error = refused::<Order>(text);
        assert_eq!(error.message, message, "{text}");
        assert_eq!(error.rule, Rule::Value, "{text}");
    };
    check(
        "<order xmlns='urn:test' id='abc'/>",
        "the attribute id of <order> takes text that matches [A-Z]{3}-[0-9]+, not \"abc\"",
    );
    check(
        "<order xmlns='urn:test' id='ABC-1' marks='1 10'/>",
        "the attribute marks of <order> takes a list of up to 3 with spaces between, each a whole \
         number from 0 to 9, not \"1 10\"",
    );
    let count = |count: &str| format!("<order xmlns='urn:test' id='A'><count>{count}</count>");
    let count = |text: &str| format!("{}</order>", count(text).replace("'A'", "'ABC-1'"));
    for wrong in ["0", "101", "x"] {
        let message = format!("<count> takes a whole number from 1 to 100, not {wrong:?}");
        check(&count(wrong), &message);
    }
    for (rest, message) in [
        (
            "<size>larg</size>",
            "<size> takes one of small, large, not \"larg\"; did you mean large?",
        ),
        ("<prime>4</prime>", "<prime> takes one of 2, 3, 5, not \"4\""),
        ("<share>0.2</share>", "<share> takes a number from 0 to 0.1, not \"0.2\""),
        ("<share>NaN</share>", "<share> takes a number from 0 to 0.1, not \"NaN\""),
        (
            "<price>1.234</price>",
            "<price> takes a number, INF, -INF or NaN, with 6 digits at the most, 2 of them behind \
             the point, not \"1.234\"",
        ),
        ("<key>Zg==</key>", "<key> takes 4 bytes in base64, not \"Zg==\""),
        ("<percent>101</percent>", "<percent> takes a whole number from 0 to 100, not \"101\""),
        ("<color>red</color>", "<color> takes text that matches #[0-9a-f]{6}, not \"red\""),
        (
            "<shade depth='11'/>",
            "the attribute depth of <shade> takes a whole number from 0 to 10, not \"11\"",
        ),
        (
            "<by_name><entry key='a'>101</entry></by_name>",
            "<entry> takes a whole number from 0 to 100, not \"101\"",
        ),
    ] {
        check(&order(rest), message);
    }
    let long = order("").replace(">x<", ">abcdef<");
    check(&long, "<name> takes text of 1 to 5 characters, not \"abcdef\"");
    let ticket = refused::<Ticket>("<ticket xmlns='urn:test'>1</ticket>");
    let message = r#"<ticket> takes text of up to 8 characters that matches \i\c*, not "1""#;
    assert_eq!(ticket.message, message);
    assert_eq!(refused::<Row>("<row xmlns='urn:test'>1 2 3</row>").rule, Rule::Value);
}

#[test]
fn a_value_that_breaks_its_own_facets_is_not_written() {
    let refused = |order: Order| {
        let fault = order.encode().expect_err("it breaks a facet");
        assert_eq!(fault.code, Code::Invalid);
        fault.path.unwrap_or_default()
    };
    assert_eq!(refused(Order { id: "x".into(), ..least() }), "/order/@id");
    assert_eq!(refused(Order { marks: Some(vec![10]), ..least() }), "/order/@marks");
    assert_eq!(refused(Order { marks: Some(vec![1; 4]), ..least() }), "/order/@marks");
    assert_eq!(refused(Order { count: 0, ..least() }), "/order/count");
    assert_eq!(refused(Order { percent: Some(Percent(101)), ..least() }), "/order/percent");
    assert_eq!(refused(Order { wish: vec![Wish::Color("".into())], ..least() }), "/order/color");
    assert!(Ticket("1".into()).encode().is_err());
    let early = Forms { at: Timestamp::MIN, ..forms() };
    assert_eq!(early.encode().expect_err("no such year").path.as_deref(), Some("/forms/@at"));
}

fn forms() -> Forms {
    Forms {
        at: Timestamp::new(1_767_323_045, 500_000_000).expect("a time"),
        id: Uuid::from_u128(0x018f_4e2a_1b2c_7d3e_8f40_1234_5678_9abc),
        tints: vec![Color::Red, Color::DarkGreen],
        sizes: vec![1, -2],
        times: Some(vec![]),
        data: Bytes::from_static(b"foobar"),
        span: vec![SignedDuration::from_secs(90), SignedDuration::from_hours(-36)],
    }
}

#[test]
fn scalars_of_more_than_one_part_are_one_text() {
    round(
        &forms(),
        "<forms xmlns=\"urn:test\" at=\"2026-01-02T03:04:05.5Z\" \
         id=\"018f4e2a-1b2c-7d3e-8f40-123456789abc\" tints=\"red dark-green\"><sizes>1 -2</sizes>\
         <times></times><data>Zm9vYmFy</data><span>PT1M30S</span><span>-P1DT12H</span></forms>",
    );
    let spaced = "<forms xmlns='urn:test' at=' 2026-01-02T04:04:05.50+01:00' tints=' '
        id='018F4E2A-1B2C-7D3E-8F40-123456789ABC'><sizes> 1\n2 </sizes><data> Zm9v\nYmFy </data>
        </forms>";
    let read = Forms::read(element(spaced).view()).expect(spaced);
    assert_eq!(
        read,
        Forms { tints: vec![], sizes: vec![1, 2], times: None, span: vec![], ..forms() }
    );
}

#[test]
fn a_map_has_an_entry_a_key() {
    let step = Step { done: true, what: "x".into() };
    let inner = Named { words: BTreeMap::from([("".into(), "".into())]), ..Named::default() };
    let full = Named {
        words: BTreeMap::from([("b".into(), "2".into()), ("a<".into(), " 1".into())]),
        steps: BTreeMap::from([("s".into(), step)]),
        figures: BTreeMap::from([("f".into(), Figure::Square(2.0))]),
        trees: BTreeMap::from([("t".into(), inner)]),
    };
    round(
        &full,
        "<named xmlns=\"urn:test\"><words><entry key=\"a&lt;\"> 1</entry>\
         <entry key=\"b\">2</entry></words><steps><entry done=\"true\" key=\"s\">x</entry></steps>\
         <figures><entry key=\"f\"><square>2</square></entry></figures><trees><entry key=\"t\">\
         <words><entry key=\"\"></entry></words><steps></steps><figures></figures><trees></trees>\
         </entry></trees></named>",
    );
}

#[test]
fn what_is_wrong_with_a_map_is_told() {
    for (inside, message) in [
        ("<entry>1</entry>", "<entry> needs the attribute key"),
        ("<entry key='a'/><entry key='a'/>", "<words> has the key \"a\" twice"),
        ("<entri key='a'/>", "<words> holds <entry key=\"…\">, not <entri>"),
        (
            "<entry xmlns='' key='a'/>",
            "<entry> is in no namespace, but the fields of <words> are in the namespace \
             \"urn:test\"",
        ),
        ("x", "<words> holds elements and no text, but \"x\" stands there"),
        ("<entry key='a' x=''/>", "<entry> has no attribute x; it has none"),
        ("<entry key='a'><b/></entry>", "<entry> holds text and no elements, but <b> stands there"),
    ] {
        let text = format!("<named xmlns='urn:test'><words>{inside}</words></named>");
        assert_eq!(refused::<Named>(&text).message, message, "{text}");
    }
    let attribute = "<named xmlns='urn:test'><words key='a'/></named>";
    assert_eq!(refused::<Named>(attribute).message, "<words> has no attribute key; it has none",);
}

#[test]
fn schemas_with_other_facets_are_others() {
    let narrow = Ticket::schema();
    let mut wide = narrow.clone();
    wide.shape = Say::schema().shape.clone();
    assert!(!narrow.is_same(&wide));
    assert!(narrow.is_same(&narrow.clone()));
    assert!(Order::schema().is_same(&Order::schema().clone()));
    assert!(narrow.is_narrow() && !Say::schema().is_narrow() && !Tree::schema().is_narrow());
}

mod values {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        "[ -~\\t\\n\u{A0}-\u{D7FF}]{0,8}"
    }

    fn span() -> impl Strategy<Value = SignedDuration> {
        (any::<i64>(), 0..1_000_000_000_i32).prop_map(|(seconds, nanos)| {
            SignedDuration::new(seconds, if seconds < 0 { -nanos } else { nanos })
        })
    }

    fn time() -> impl Strategy<Value = Timestamp> {
        (-62_135_596_800_i64..253_402_207_200, 0..1_000_000_000_i32)
            .prop_filter_map("a time", |(second, nanos)| Timestamp::new(second, nanos).ok())
            .prop_filter("a year", |it| *it >= "0001-01-01T00:00:00Z".parse().expect("a time"))
    }

    prop_compose! {
        fn forms()(
            at in time(),
            id in any::<u128>(),
            tints in prop::collection::vec(
                prop::sample::select(vec![Color::Red, Color::DarkGreen, Color::Blue]), 0..4),
            sizes in prop::collection::vec(any::<i64>(), 0..4),
            times in prop::option::of(prop::collection::vec(span(), 0..3)),
            data in prop::collection::vec(any::<u8>(), 0..20),
            span in prop::collection::vec(span(), 0..3),
        ) -> Forms {
            Forms { at, id: Uuid::from_u128(id), tints, sizes, times, data: data.into(), span }
        }
    }

    prop_compose! {
        fn order()(
            id in "[A-Z]{3}-[0-9]{1,5}",
            marks in prop::option::of(prop::collection::vec(0_u8..=9, 0..=3)),
            count in 1_i64..=100,
            name in "[ -~]{1,5}",
            prime in prop::option::of(prop::sample::select(vec![2_u8, 3, 5])),
            share in prop::collection::vec(0_f32..=0.1, 0..3),
            price in prop::option::of((-999_999..1_000_000).prop_map(|it| f64::from(it) / 100.0)),
            short in prop::option::of(-999..=999),
            key in prop::option::of(any::<[u8; 4]>()),
            percent in prop::option::of((0_u8..=100).prop_map(Percent)),
            by_name in prop::option::of(prop::collection::btree_map(
                text(), (0_u8..=100).prop_map(Percent), 0..3)),
        ) -> Order {
            let key = key.map(|it| Bytes::copy_from_slice(&it));
            let least = Order { id, marks, count, name, prime, share, price, ..least() };
            Order { short, key, percent, by_name, ..least }
        }
    }

    fn same<P: Payload + PartialEq + Debug>(value: &P) -> Result<(), TestCaseError> {
        let written = value.encode().expect("a value of its type");
        let bytes = written.canonical();
        let again = Element::from_canonical(bytes).expect("what was written");
        prop_assert_eq!(&P::read(again.view()).expect("what was written"), value);
        prop_assert_eq!(P::schema().check(again.view()), Ok(()));
        Ok(())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(
            forms in forms(),
            order in order(),
            words in prop::collection::btree_map(text(), text(), 0..4),
            numbers in any::<(i8, i128, u64, u128)>(),
            float in any::<f64>().prop_filter("equal to itself", |it| !it.is_nan()),
        ) {
            same(&forms)?;
            same(&order)?;
            same(&Named { words, ..Named::default() })?;
            let (a, b, c, d) = numbers;
            same(&Widths { a, b, c, d, e: float })?;
        }
    }
}

/// Numbers at the ends of their ranges.
#[derive(Payload, Debug, PartialEq, Clone)]
#[payload(ns = "urn:test")]
struct Widths {
    a: i8,
    b: i128,
    #[payload(attribute)]
    c: u64,
    d: u128,
    e: f64,
}
