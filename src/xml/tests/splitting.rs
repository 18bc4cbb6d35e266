//! Tests of where messages begin and end, for any chunks in which they arrive.

use proptest::prelude::*;

use super::scraps;
use crate::limits::XmlLimits;
use crate::xml::{Error, Framing, Kind, Profile, Splitter, frame, read};

/// Returns the messages of a stream that arrives in these chunks, and how the stream ends.
fn split<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Result<(), Error>) {
    split_within(&XmlLimits::DOOR, chunks)
}

fn split_within<'a>(
    limits: &XmlLimits,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Vec<u8>>, Result<(), Error>) {
    let mut splitter = Splitter::new(*limits);
    let mut frames = Vec::new();
    for chunk in chunks {
        splitter.feed(chunk);
        loop {
            match splitter.next() {
                Ok(Some(frame)) => frames.push(frame.bytes.to_vec()),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, splitter.finish())
}

fn whole(input: &[u8]) -> (Vec<Vec<u8>>, Result<(), Error>) {
    split([input])
}

fn check(input: &str, expected: &[&str]) {
    let (frames, end) = whole(input.as_bytes());
    let frames: Vec<_> = frames.iter().map(|it| String::from_utf8_lossy(it)).collect();
    assert_eq!(frames, expected, "{input:?}");
    assert_eq!(end, Ok(()), "{input:?}");
    assert_eq!(split(input.as_bytes().chunks(1)), whole(input.as_bytes()), "{input:?}");
}

#[test]
fn elements_follow_one_another() {
    check("", &[]);
    check(" \r\n\t", &[]);
    check("<a/>", &["<a/>"]);
    check("<a/><b/>\n<c></c>\n", &["<a/>", "<b/>", "<c></c>"]);
    check("\u{FEFF}<a/>\u{FEFF}<b/>", &["<a/>", "<b/>"]);
    check("<?xml version='1.0'?>\n<a/> <b/>", &["<?xml version='1.0'?>\n<a/>", "<b/>"]);
    check("<!-- 1 --> <a/> <!-- 2 -->", &["<a/>"]);
    check("<?p?><!-- 1 --><a/>", &["<?p?><!-- 1 --><a/>"]);
}

#[test]
fn what_may_not_stand_before_a_document_is_refused_between_elements_too() {
    let declared = "an XML declaration stands at the very start or nowhere";
    let marked = "a byte order mark stands at the very start";
    for (input, whole_before, message) in [
        (" <?xml version='1.0'?><a/>", 0, declared),
        ("\u{FEFF} <?xml version='1.0'?><a/>", 0, declared),
        ("<!-- --><?xml version='1.0'?><a/>", 0, declared),
        ("<a/><!-- -->\n<?xml version='1.0'?><b/>", 1, declared),
        ("\u{FEFF}\u{FEFF}<a/>", 0, marked),
        (" \u{FEFF}<a/>", 0, marked),
        ("<!-- -->\u{FEFF}<a/>", 0, marked),
        ("<a/>\u{FEFF}\u{FEFF}<b/>", 1, marked),
    ] {
        let (frames, end) = whole(input.as_bytes());
        assert_eq!(frames.len(), whole_before, "{input:?}");
        assert!(end.unwrap_err().to_string().contains(message), "{input:?}");
        if whole_before == 0 {
            assert!(read(input, Profile::Wire, &XmlLimits::DOOR).is_err(), "{input:?}");
        }
        assert_eq!(split(input.as_bytes().chunks(1)), whole(input.as_bytes()), "{input:?}");
    }
    // White space after an element belongs to no message.
    check("<a/>\n<?xml version='1.0'?><b/>", &["<a/>", "<?xml version='1.0'?><b/>"]);
    check("<a/> \u{FEFF}<?xml version='1.0'?><b/>", &["<a/>", "<?xml version='1.0'?><b/>"]);
    check(" <?xmly ?><a/>", &["<?xmly ?><a/>"]);
}

#[test]
fn a_border_is_no_text_that_looks_like_one() {
    for input in [
        "<a><a/><b></b></a>",
        "<a>></a>",
        "<a b='</a>' c=\"'</a>\"/>".replace('<', "&lt;").replacen("&lt;", "<", 1).as_str(),
        "<a b='>' c=\">\"></a>",
        "<a b='/>'></a>",
        "<a b=\"'>\" c='\">'/>",
        "<a><!-- </a> > - -> -- ' --></a>",
        "<a><!---></a>--></a>",
        "<a><![CDATA[</a>]]]>]]></a>",
        "<a><![CDATA[]]></a>",
        "<a><?p </a> ? > ??></a>",
        "<a / ></a>",
        "<a></a\n>",
    ] {
        check(input, &[input]);
    }
}

#[test]
fn a_length_says_where_a_message_ends() {
    let mut stream = Vec::new();
    frame(Framing::Length, b"<a/>", &mut stream);
    frame(Framing::Length, b"not looked at", &mut stream);
    let expected = vec![b"<a/>".to_vec(), b"not looked at".to_vec()];
    assert_eq!(whole(&stream), (expected.clone(), Ok(())));
    for size in 1..stream.len() {
        assert_eq!(split(stream.chunks(size)), (expected.clone(), Ok(())), "{size}");
    }
    stream.pop();
    let error = whole(&stream).1.unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 13: the stream ends within a message");
}

#[test]
fn a_message_is_refused_by_its_length_alone() {
    let (frames, end) = whole(b"\x00\x10\x00\x01");
    let error = end.unwrap_err();
    assert_eq!((frames.len(), error.kind), (0, Kind::Limit));
    assert!(error.message.ends_with("a message of 1048577 bytes: message_bytes_max is 1048576"));
    let mut later = b"\x00\x00\x00\x04<a/>".to_vec();
    later.extend(u32::MAX.to_be_bytes());
    let (frames, end) = whole(&later);
    assert_eq!((frames.len(), end.unwrap_err().kind), (1, Kind::Limit));
    assert_eq!(whole(&[0; 4]).1.unwrap_err().kind, Kind::Framing);
}

#[test]
fn an_element_is_refused_as_soon_as_it_is_too_long() {
    let limits = XmlLimits { message_bytes_max: 10, ..XmlLimits::DOOR };
    let cases: [(&[u8], usize, Option<usize>); 5] = [
        (b"<a>56</a> ", 1, None),
        (b"<a>567</a>", 1, None),
        (b"<a>567</a><a>5678</a>", 1, Some(10)),
        (b"<a> 567 9 1", 0, Some(10)),
        (b"           <a/>           ", 1, None),
    ];
    for (input, count, refused) in cases {
        for size in [1, 3, input.len()] {
            let (frames, end) = split_within(&limits, input.chunks(size));
            assert_eq!(frames.len(), count, "{input:?}");
            assert_eq!(end.as_ref().err().map(|it| it.place.offset), refused, "{input:?}");
            assert!(end.is_ok() || end.unwrap_err().kind == Kind::Limit);
        }
    }
    let mut splitter = Splitter::new(limits);
    splitter.feed(b"<!-- 34567");
    assert_eq!(splitter.next(), Ok(None));
    splitter.feed(b"8");
    assert_eq!(splitter.next().unwrap_err().kind, Kind::Limit);
}

#[test]
fn what_begins_no_message_is_refused_at_once() {
    use Kind::{Doctype, Framing, Limit, Syntax};
    let deep = "<a>".repeat(129);
    let cases: &[(&str, Kind, u32, u32)] = &[
        ("A", Framing, 1, 1),
        ("{\"a\": 1}", Framing, 1, 1),
        ("\u{E9}", Framing, 1, 1),
        ("\u{F0FF}", Framing, 1, 1),
        ("<a/>\n text", Framing, 1, 1),
        ("<a/></a>", Syntax, 1, 1),
        ("<?p?>\n x", Framing, 2, 2),
        ("<!D", Doctype, 1, 1),
        ("<a>\n<!DOC", Doctype, 2, 1),
        ("<![", Syntax, 1, 3),
        ("<!e", Syntax, 1, 3),
        ("<!-a", Syntax, 1, 4),
        ("<a><![CDATB", Syntax, 1, 11),
        ("<>", Syntax, 1, 2),
        ("<<", Syntax, 1, 2),
        ("<a <", Syntax, 1, 4),
        ("<a b='<", Syntax, 1, 7),
        ("<a></a <", Syntax, 1, 8),
        ("<a></a b=\"", Syntax, 1, 10),
        (&deep, Limit, 1, 387),
    ];
    for &(input, kind, line, column) in cases {
        let error = whole(input.as_bytes()).1.unwrap_err();
        let place = (error.kind, error.place.line, error.place.column);
        assert_eq!(place, (kind, line, column), "{input:?}: {error}");
    }
}

#[test]
fn an_error_is_final() {
    let mut splitter = Splitter::new(XmlLimits::DOOR);
    splitter.feed(b"x");
    let error = splitter.next().unwrap_err();
    splitter.feed(b"<a/>");
    assert_eq!(splitter.next(), Err(error.clone()));
    assert_eq!(splitter.finish(), Err(error));
}

#[test]
fn between_is_where_nothing_but_white_space_has_come() {
    let between = |input: &[u8]| {
        let mut splitter = Splitter::new(XmlLimits::DOOR);
        splitter.feed(input);
        while splitter.next().unwrap().is_some() {}
        assert_eq!(splitter.is_between(), splitter.finish().is_ok());
        splitter.is_between()
    };
    for input in ["", " ", "<a/>", "<a/> \n", "<a/> <!-- -->\n", "\u{FEFF}", "\0\0\0\x04<a/>"] {
        assert!(between(input.as_bytes()), "{input:?}");
    }
    for input in ["<", "<a>", "<a/> <!--", "\0", "\0\0\0\x04<a/", "\0\0\0\x04<a/>\0", "<?p?>"] {
        assert!(!between(input.as_bytes()), "{input:?}");
    }
    assert!(!between(b"\xEF\xBB"));
}

#[test]
fn the_first_byte_decides() {
    for (first, framing) in [
        (b'\0', Some(Framing::Length)),
        (b'<', Some(Framing::Element)),
        (b'\r', Some(Framing::Element)),
        (0xEF, Some(Framing::Element)),
        (b'a', None),
    ] {
        let mut splitter = Splitter::new(XmlLimits::DOOR);
        assert_eq!(splitter.framing(), None);
        splitter.feed(&[first]);
        assert_eq!(splitter.framing(), framing);
    }
    let mut out = Vec::new();
    frame(Framing::Element, b"<a></a>", &mut out);
    assert_eq!(out, b"<a></a>\n");
}

#[test]
fn empty_comments_by_the_thousand_cost_no_stack() {
    let input = format!("{}{}<a/>", "<!---->".repeat(100_000), "<!----> ".repeat(100_000));
    assert_eq!(whole(input.as_bytes()), (vec![b"<a/>".to_vec()], Ok(())));
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        input in scraps(),
        cuts in prop::collection::vec(1..9_usize, 1..60),
    ) {
        let expected = whole(input.as_bytes());
        prop_assert_eq!(split(input.as_bytes().chunks(1)), expected.clone());
        let mut rest = input.as_bytes();
        let mut chunks = Vec::new();
        for cut in cuts {
            let (chunk, after) = rest.split_at(cut.min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        chunks.push(rest);
        prop_assert_eq!(split(chunks), expected);
    }

    #[test]
    fn any_bytes_in_any_chunks_are_split_alike(input in prop::collection::vec(any::<u8>(), 0..60)) {
        prop_assert_eq!(split(input.chunks(1)), whole(&input));
    }

    #[test]
    fn what_read_accepts_is_one_frame(input in scraps()) {
        use crate::xml::{Profile, read};
        if let Ok(element) = read(&input, Profile::Wire, &XmlLimits::DOOR) {
            let (frames, end) = whole(input.as_bytes());
            prop_assert_eq!(end, Ok(()));
            prop_assert_eq!(frames.len(), 1);
            let again = read(&frames[0], Profile::Wire, &XmlLimits::DOOR);
            prop_assert_eq!(again, Ok(element));
        }
    }
}

#[test]
fn a_wrong_comment_between_messages_is_left_for_the_reader() {
    for comment in ["<!-- a -- b -->", "<!-- \u{1} -->", "<!----->"] {
        let mut splitter = Splitter::new(XmlLimits::DOOR);
        splitter.feed(format!("<!-- right -->{comment}<!-- right --><a/><b/>").as_bytes());
        let frame = splitter.next().unwrap().unwrap();
        assert_eq!(frame.bytes, format!("{comment}<!-- right --><a/>"));
        assert!(read(&frame.bytes, Profile::Wire, &XmlLimits::DOOR).is_err());
        assert_eq!(splitter.next().unwrap().unwrap().bytes, "<b/>");
    }
}

#[test]
fn what_follows_a_large_message_keeps_none_of_its_memory() {
    for head in [&b"\0\x03\x0d\x47"[..], b""] {
        let message = format!("<a>{}</a>", "x".repeat(200_000));
        let mut splitter = Splitter::new(XmlLimits::DOOR);
        splitter.feed(head);
        splitter.feed(message.as_bytes());
        splitter.feed(if head.is_empty() { b"<b" } else { b"\0" });
        assert_eq!(splitter.next().unwrap().unwrap().bytes.len(), 200_007);
        assert!(splitter.held_bytes() < 1_024, "{}", splitter.held_bytes());
    }
}
