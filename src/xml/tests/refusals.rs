//! Tests of every refusal of `read`, with its line and column.

use crate::limits::XmlLimits;
use crate::xml::Kind::{Doctype, Limit, Namespace, ProcessingInstruction, Syntax, Utf8};
use crate::xml::{Error, Kind, Place, Profile, read};

#[rustfmt::skip]
const REFUSALS: &[(&str, Kind, u32, u32, &str)] = &[
    ("", Syntax, 1, 1, "there is no element"),
    ("  \n", Syntax, 2, 1, "there is no element"),
    ("\u{feff}", Syntax, 1, 1, "there is no element"),
    ("<!-- only -->", Syntax, 1, 14, "there is no element"),
    ("\u{feff}\u{feff}<a/>", Syntax, 1, 1, "text stands outside the root element"),
    ("text<a/>", Syntax, 1, 1, "text stands outside the root element"),
    ("<a/>text", Syntax, 1, 5, "text stands outside the root element"),
    ("<a/>\n &amp;", Syntax, 2, 2, "text stands outside the root element"),
    ("<a/><![CDATA[ ]]>", Syntax, 1, 5, "text stands outside the root element"),
    ("<a/><b/>", Syntax, 1, 5, "a second root element"),
    ("<a></a><b>", Syntax, 1, 8, "a second root element"),
    ("<a>", Syntax, 1, 1, "<a> is never closed"),
    ("<a>\r\n <b>\r</b>\r <c>", Syntax, 4, 2, "<c> is never closed"),
    ("<a></b>", Syntax, 1, 4, "</b> stands where </a> must"),
    ("<a></a b='1'>", Syntax, 1, 4, "</a b='1'> stands where </a> must"),
    ("<a></ a>", Syntax, 1, 4, "</ a> stands where </a> must"),
    ("</a>", Syntax, 1, 1, "</a> closes nothing"),
    ("<a/></a>", Syntax, 1, 5, "</a> closes nothing"),
    ("<a><b></a></b>", Syntax, 1, 7, "</a> stands where </b> must"),
    ("<a", Syntax, 1, 1, "a tag is never closed"),
    ("<", Syntax, 1, 1, "a tag is never closed"),
    ("<a><", Syntax, 1, 4, "a tag is never closed"),
    ("<a><>", Syntax, 1, 5, "`>` can't stand here"),
    ("<a>< b/>", Syntax, 1, 5, "white space can't stand here"),
    ("<1a/>", Syntax, 1, 2, "`1` can't stand here"),
    ("<-a/>", Syntax, 1, 2, "`-` can't stand here"),
    ("<a>\n<é·/><×/></a>", Syntax, 2, 7, "`×` can't stand here"),
    ("<a&b/>", Syntax, 1, 3, "`&` can't stand here"),
    ("<a b/>", Syntax, 1, 5, "attribute b needs `=` and a quoted value"),
    ("<a b=/>", Syntax, 1, 6, "the value of attribute b must stand in quotes"),
    ("<a b=c/>", Syntax, 1, 6, "the value of attribute b must stand in quotes"),
    ("<a b='c/>", Syntax, 1, 6, "an attribute value is never closed"),
    ("<a b='1'c='2'/>", Syntax, 1, 9, "white space is missing before this attribute"),
    ("<a b='1' 'c'/>", Syntax, 1, 10, "`'` can't stand here"),
    ("<a\n b='x\n<'/>", Syntax, 3, 1, "`<` in an attribute value must be written `&lt;`"),
    ("<a b='&'/>", Syntax, 1, 7, "`&` must be written `&amp;`"),
    ("<a b='&nope;'/>", Syntax, 1, 7, "&nope; is none of &lt; &gt; &amp; &quot; &apos;"),
    ("<a b='&amp'/>", Syntax, 1, 7, "`&` must be written `&amp;`"),
    ("<a b='&#xD800;'/>", Syntax, 1, 7, "&#xD800; is no XML character"),
    ("<a b='1' b='2'/>", Syntax, 1, 10, "attribute b is given twice"),
    ("<a / >", Syntax, 1, 4, "`/` can't stand here"),
    ("<a/ >", Syntax, 1, 3, "`/` can't stand here"),
    ("<a>]]></a>", Syntax, 1, 4, "`]]>` in text must be written `]]&gt;`"),
    ("<a>xéy]]></a>", Syntax, 1, 7, "`]]>` in text must be written `]]&gt;`"),
    ("<a>&</a>", Syntax, 1, 4, "`&` must be written `&amp;`"),
    ("<a>& b</a>", Syntax, 1, 4, "`&` must be written `&amp;`"),
    ("<a>&b</a>", Syntax, 1, 4, "`&` must be written `&amp;`"),
    ("<a>&b;</a>", Syntax, 1, 4, "&b; is none of &lt; &gt; &amp; &quot; &apos;"),
    ("<a>&nbsp;</a>", Syntax, 1, 4, "&nbsp; is none of &lt; &gt; &amp; &quot; &apos;"),
    ("<a>&#0;</a>", Syntax, 1, 4, "&#0; is no XML character"),
    ("<a>&#x1F;</a>", Syntax, 1, 4, "&#x1F; is no XML character"),
    ("<a>&#xFFFE;</a>", Syntax, 1, 4, "&#xFFFE; is no XML character"),
    ("<a>&#x110000;</a>", Syntax, 1, 4, "&#x110000; is no XML character"),
    ("<a>&#99999999999;</a>", Syntax, 1, 4, "&#99999999999; is no XML character"),
    ("<a>&#xG;</a>", Syntax, 1, 4, "a character reference is written `&#10;` or `&#xA;`"),
    ("<a>&#X41;</a>", Syntax, 1, 4, "a character reference is written `&#10;` or `&#xA;`"),
    ("<a>&#;</a>", Syntax, 1, 4, "a character reference is written `&#10;` or `&#xA;`"),
    ("<a>&#x;</a>", Syntax, 1, 4, "a character reference is written `&#10;` or `&#xA;`"),
    ("<a>&#65</a>", Syntax, 1, 4, "`&` must be written `&amp;`"),
    ("<a>\0</a>", Syntax, 1, 4, "U+0000 is no XML character"),
    ("<a>\n\u{1f}</a>", Syntax, 2, 1, "U+001F is no XML character"),
    ("<a b='\u{c}'/>", Syntax, 1, 7, "U+000C is no XML character"),
    ("<a>é\u{ffff}</a>", Syntax, 1, 5, "U+FFFF is no XML character"),
    ("<!-- \u{fffe} --><a/>", Syntax, 1, 6, "U+FFFE is no XML character"),
    ("<!-- -- --><a/>", Syntax, 1, 6, "`--` stands in a comment"),
    ("<a><!-- --->\n</a>", Syntax, 1, 9, "`--` stands in a comment"),
    ("<a><!--></a>", Syntax, 1, 4, "a comment is never closed"),
    ("<a><!--->", Syntax, 1, 4, "a comment is never closed"),
    ("<a><!- b --></a>", Syntax, 1, 4, "`<!` begins neither a comment nor a CDATA section"),
    ("<a><!b></a>", Syntax, 1, 4, "`<!` begins neither a comment nor a CDATA section"),
    ("<a><![CDATA[x]]</a>", Syntax, 1, 4, "a CDATA section is never closed"),
    ("<a><![cdata[x]]></a>", Syntax, 1, 4, "`<!` begins neither a comment nor a CDATA section"),
    ("<a><![CDAT[x]]></a>", Syntax, 1, 4, "`<!` begins neither a comment nor a CDATA section"),
    ("<!DOCTYPE a><a/>", Doctype, 1, 1, "a document type declaration is refused"),
    ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
     Doctype, 1, 1, "a document type declaration is refused"),
    ("<!DOCTYPE", Doctype, 1, 1, "a document type declaration is refused"),
    ("<!DOCTYPE>", Doctype, 1, 1, "a document type declaration is refused"),
    ("\n<!DOCTYPE a [ <a/>", Doctype, 2, 1, "a document type declaration is refused"),
    ("<!doctype a><a/>", Doctype, 1, 1, "a document type declaration is refused"),
    ("<a><!DOCTYPE a></a>", Doctype, 1, 4, "a document type declaration is refused"),
    ("<!ENTITY a 'b'><a/>", Syntax, 1, 1, "`<!` begins neither a comment nor a CDATA section"),
    ("<?pi x?><a/>", ProcessingInstruction, 1, 1, "<?pi?>: processing instructions are refused"),
    ("<a>\n  <?pi?></a>",
     ProcessingInstruction, 2, 3, "<?pi?>: processing instructions are refused"),
    ("<a/><?pi ?>", ProcessingInstruction, 1, 5, "<?pi?>: processing instructions are refused"),
    ("<??><a/>", Syntax, 1, 3, "a processing instruction needs a name"),
    ("<? pi?><a/>", Syntax, 1, 3, "a processing instruction needs a name"),
    ("<?1?><a/>", Syntax, 1, 3, "a processing instruction needs a name"),
    ("<?a:b c?><a/>", Namespace, 1, 4, "a processing instruction's name has no colon"),
    ("<?a+b?><a/>", Syntax, 1, 4, "white space is missing after a processing instruction's name"),
    ("<?pi <a/>", Syntax, 1, 1, "a processing instruction is never closed"),
    ("<?XML version='1.0'?><a/>", Syntax, 1, 1, "<?XML?> is reserved for the XML declaration"),
    ("<?xMl?><a/>", Syntax, 1, 1, "<?xMl?> is reserved for the XML declaration"),
    ("<?xml-style x?><a/>",
     ProcessingInstruction, 1, 1, "<?xml-style?>: processing instructions are refused"),
    (" <?xml version='1.0'?><a/>",
     Syntax, 1, 2, "an XML declaration stands at the very start or nowhere"),
    ("<!-- --><?xml version='1.0'?><a/>",
     Syntax, 1, 9, "an XML declaration stands at the very start or nowhere"),
    ("<a><?xml version='1.0'?></a>",
     Syntax, 1, 4, "an XML declaration stands at the very start or nowhere"),
    ("<?xml version='1.0'?><?xml version='1.0'?><a/>",
     Syntax, 1, 22, "an XML declaration stands at the very start or nowhere"),
    ("<?xml?><a/>", Syntax, 1, 6, "an XML declaration begins with its version"),
    ("<?xml ?><a/>", Syntax, 1, 7, "an XML declaration begins with its version"),
    ("<?xml encoding='utf-8'?><a/>", Syntax, 1, 7, "an XML declaration begins with its version"),
    ("<?xml version='1.1'?><a/>", Syntax, 1, 7, "only XML 1.0 is read"),
    ("<?xml version='1.0' encoding='latin1'?><a/>",
     Syntax, 1, 21, "only UTF-8 and US-ASCII are read"),
    ("<?xml version='1.0' encoding='utf-16'?><a/>",
     Syntax, 1, 21, "only UTF-8 and US-ASCII are read"),
    ("<?xml version='1.0' standalone='maybe'?><a/>", Syntax, 1, 21, "standalone is yes or no"),
    ("<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>",
     Syntax, 1, 38, "an XML declaration has no encoding here"),
    ("<?xml version='1.0'encoding='utf-8'?><a/>",
     Syntax, 1, 20, "white space is missing before this attribute"),
    ("<?xml version='1.0' version='1.0'?><a/>",
     Syntax, 1, 21, "an XML declaration has no version here"),
    ("<?xml version='1.0' more='1'?><a/>", Syntax, 1, 21, "an XML declaration has no more here"),
    ("<?xml version=1.0?><a/>", Syntax, 1, 14, "`=` and a quoted value are needed here"),
    ("<?xml version '1.0'?><a/>", Syntax, 1, 15, "`=` and a quoted value are needed here"),
    ("<?xml version='1.0?><a/>", Syntax, 1, 15, "a value is never closed"),
    ("<?xml version='1.0'", Syntax, 1, 1, "a processing instruction is never closed"),
    ("<?xml version='1.0' encoding='us-ascii'?>\n<a>é</a>",
     Utf8, 2, 4, "a document that says US-ASCII holds another character"),
    ("<:a/>", Namespace, 1, 2, "a prefix can't be empty"),
    ("<a:/>", Namespace, 1, 4, "a name must follow the colon"),
    ("<a:1/>", Namespace, 1, 4, "a name must follow the colon"),
    ("<a:b:c/>", Namespace, 1, 5, "a name has one colon at the most"),
    ("<p:a/>", Namespace, 1, 2, "the prefix p is bound to nothing"),
    ("<a p:b='1'/>", Namespace, 1, 4, "the prefix p is bound to nothing"),
    ("<a>\n<b xmlns:p='u'/><p:c/></a>", Namespace, 2, 18, "the prefix p is bound to nothing"),
    ("<a :b='1'/>", Namespace, 1, 4, "a prefix can't be empty"),
    ("<a b:='1'/>", Namespace, 1, 6, "a name must follow the colon"),
    ("<xmlns:a/>", Namespace, 1, 2, "the prefix xmlns is reserved"),
    ("<a xmlns='u' xmlns='v'/>", Namespace, 1, 14, "xmlns is declared twice"),
    ("<a xmlns:p='u' xmlns:p='u'/>", Namespace, 1, 16, "xmlns:p is declared twice"),
    ("<a xmlns:p=''/>", Namespace, 1, 4, "a prefix can't be bound to the empty namespace"),
    ("<a xmlns:xml='u'/>", Namespace, 1, 4, "xml can't be bound to another namespace"),
    ("<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
     Namespace, 1, 4, "only xml can be bound to the namespace of xml"),
    ("<a xmlns='http://www.w3.org/XML/1998/namespace'/>",
     Namespace, 1, 4, "only xml can be bound to the namespace of xml"),
    ("<a xmlns:xmlns='u'/>", Namespace, 1, 4, "xmlns can't be declared"),
    ("<a xmlns:p='http://www.w3.org/2000/xmlns/'/>",
     Namespace, 1, 4, "nothing can be bound to the namespace of xmlns"),
    ("<a xmlns='http&#58;//www.w3.org/2000/xmlns/'/>",
     Namespace, 1, 4, "nothing can be bound to the namespace of xmlns"),
    ("<a xmlns:xml='http://www.w3.org/XML/1998/namespace' \
      xmlns:xml='http://www.w3.org/XML/1998/namespace'/>",
     Namespace, 1, 53, "xmlns:xml is declared twice"),
    ("<a xmlns:p='u' xmlns:q='u' p:b='1' q:b='2'/>",
     Namespace, 1, 36, "attribute q:b is given twice"),
    ("<a xmlns:p='u&#x3A;x' xmlns:q='u:x'\n p:b='1' q:b='2'/>",
     Namespace, 2, 10, "attribute q:b is given twice"),
    ("<a xml:b='' xml:b=''/>", Namespace, 1, 13, "attribute xml:b is given twice"),
];

#[test]
fn every_refusal_has_its_place() {
    for &(input, kind, line, column, message) in REFUSALS {
        let error = refusal(input.as_bytes(), Profile::Wire, &XmlLimits::DOOR);
        let found = (error.kind, error.place.line, error.place.column, error.message.as_str());
        assert_eq!(found, (kind, line, column, message), "{input:?}");
    }
}

#[test]
fn a_file_may_hold_processing_instructions_but_not_broken_ones() {
    for &(input, kind, line, column, _) in REFUSALS {
        let read = read(input, Profile::Document, &XmlLimits::DOOR);
        if kind == ProcessingInstruction {
            assert!(read.is_ok(), "{input:?}");
        } else {
            let Place { line: l, column: c, .. } = read.unwrap_err().place;
            assert_eq!((l, c), (line, column), "{input:?}");
        }
    }
}

#[test]
fn bytes_are_checked_before_anything_else() {
    let cases: &[(&[u8], u32, u32, usize)] = &[
        (b"<a>\n\xC3\xA9\xFF</a>", 2, 2, 6),
        (b"<!DOCTYPE a>\n<a>\xC0\x80</a>", 2, 4, 16),
        (b"<a>\xED\xA0\x80</a>", 1, 4, 3),
        (b"<a>\xF5\x80\x80\x80</a>", 1, 4, 3),
        (b"<a>\xE2\x82", 1, 4, 3),
        (b"\xFF\xFE<\0a\0/\0>\0", 1, 1, 0),
        (b"\xFE\xFF\0<\0a\0/\0>", 1, 1, 0),
    ];
    for &(input, line, column, offset) in cases {
        let error = refusal(input, Profile::Document, &XmlLimits::DOOR);
        assert_eq!(error.kind, Utf8, "{input:?}");
        assert_eq!(error.place, Place { line, column, offset }, "{input:?}");
    }
}

#[test]
fn a_limit_is_named_with_its_value() {
    const LIMITS: XmlLimits = XmlLimits {
        message_bytes_max: 200,
        depth_max: 3,
        attributes_max: 2,
        nodes_max: 10,
        name_bytes_max: 8,
        declarations_max: 2,
        bindings_max: 3,
    };
    let at_limit = [
        "<a><b><c/></b></a>",
        "<a b='1' c='2' xmlns='u' xmlns:p='v'/>",
        "<abcdefgh/>",
        "<p:abcdef xmlns:p='u'/>",
        "<a>1<b/>2<b/>3<b/>4<b/>5</a>",
        "<a xmlns='u' xmlns:p='u'><b xmlns:q='u'/><b xmlns:q='u'/></a>",
    ];
    for input in at_limit {
        read(input, Profile::Wire, &LIMITS).unwrap();
    }
    let over: &[(&str, u32, u32, &str)] = &[
        ("<a>\n<b><c><d/></c></b></a>", 2, 7, "depth_max is 3"),
        ("<a b='1' c='2' d='3'/>", 1, 16, "attributes_max is 2"),
        ("<a><abcdefghi/></a>", 1, 5, "name_bytes_max is 8"),
        ("<a abcdefghi=''/>", 1, 4, "name_bytes_max is 8"),
        ("<a><p:abcdefg/></a>", 1, 5, "name_bytes_max is 8"),
        ("<a>1<b/>2<b/>3<b/>4<b/>5<b/></a>", 1, 25, "nodes_max is 10"),
        ("<a xmlns='u' xmlns:p='u' xmlns:q='u'/>", 1, 26, "declarations_max is 2"),
        ("<a xmlns='u' xmlns:p='u'><b xmlns:q='u' xmlns='v'/></a>", 1, 41, "bindings_max is 3"),
    ];
    for &(input, line, column, message) in over {
        let error = refusal(input.as_bytes(), Profile::Wire, &LIMITS);
        assert!(error.message.ends_with(message), "{input:?}: {error}");
        assert_eq!((error.kind, error.place.line, error.place.column), (Limit, line, column));
    }
    let error = refusal(&[b' '; 201], Profile::Wire, &LIMITS);
    assert_eq!(
        error.to_string(),
        "line 1, column 201: a message of 201 bytes: \
        message_bytes_max is 200"
    );
}

#[test]
fn a_long_namespace_used_everywhere_is_refused_before_it_swells() {
    let limits = XmlLimits { message_bytes_max: 10_000, ..XmlLimits::DOOR };
    let uri = "u".repeat(5_000);
    let many = |count| format!("<a xmlns:p='{uri}'>{}</a>", "<p:b/>".repeat(count));
    read(many(16), Profile::Wire, &limits).unwrap();
    let error = refusal(many(17).as_bytes(), Profile::Wire, &limits);
    assert!(error.message.ends_with("8 times message_bytes_max is 80000"), "{error}");
}

#[test]
fn an_error_never_echoes_more_than_a_line() {
    let long = "n".repeat(4_000);
    for input in [format!("<{long}>"), format!("<a></{long}>"), format!("<a>&{long};</a>")] {
        let error = refusal(input.as_bytes(), Profile::Wire, &XmlLimits::DOOR);
        assert!(error.message.len() < 200, "{error}");
    }
}

fn refusal(input: &[u8], profile: Profile, limits: &XmlLimits) -> Error {
    match read(input, profile, limits) {
        Err(error) => error,
        Ok(_) => panic!("{} is accepted", String::from_utf8_lossy(input)),
    }
}
