//! Tests of the XML module.

mod refusals;
mod splitting;
mod trees;

use proptest::prelude::*;

/// Pieces of markup that seldom fit together.
const SCRAPS: &[&str] = &[
    "<a>",
    "</a>",
    "<b>",
    "</b>",
    "<a/>",
    "<p:a>",
    "</p:a>",
    "<p:b/>",
    "<b c='1' b='2'/>",
    "<a xmlns='u'>",
    "<a xmlns=''>",
    "<p:a xmlns:p='u'>",
    "<p:a xmlns:p='v' p:z='' a='&#9;'>",
    "<b xmlns:q='v' q:c='\"' c=\"'\n\"/>",
    "<a b='x>y'>",
    "x",
    " ",
    "\r",
    "\n",
    "\r\n",
    "é",
    "]]",
    "]]>",
    ">",
    "&amp;",
    "&lt;",
    "&#13;",
    "&#x10FFFF;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "-",
    "<!-- c -->",
    "<![CDATA[]]>",
    "<![CDATA[<a>&amp;]]>",
    "<?p ?>",
    "\"",
    "'",
    "<",
    "/",
    "=",
    "&",
    "\u{FEFF}",
    "<!DOCTYPE a>",
    "<?xml version='1.0'?>",
    "\u{1F980}",
    "<t:a xmlns:t='u' xmlns:x='http://www.w3.org/2001/XMLSchema-instance' x:type='t:u'>",
    "</t:a>",
    "<a xmlns:z='u' xmlns:x='http://www.w3.org/2001/XMLSchema-instance' x:type='z:u'>",
];

/// Pieces of markup that mostly fit into an element.
const CONTENT: &[&str] = &[
    "x",
    " ",
    "\r\n",
    "]]",
    "é",
    "&gt;",
    "&#13;",
    "<![CDATA[]]&amp;]]>",
    "<!-- - -->",
    "<c/>",
    "<c d='1' a='&lt;'/>",
    "<p:c p:a='' a=''/>",
    "<c xmlns=''>1</c>",
    "<p:c xmlns:p='w'/>",
    "<c xmlns='w'><p:d/></c>",
    "<q:c xmlns:q='u'><d q:e='' p:d=''/></q:c>",
    "<d>\t</d>",
];

/// Generates markup that is sometimes well-formed and often nearly well-formed.
fn scraps() -> impl Strategy<Value = String> {
    let loose = prop::collection::vec(prop::sample::select(SCRAPS), 0..12);
    let loose = loose.prop_map(|all| all.concat());
    let tight = prop::collection::vec(prop::sample::select(CONTENT), 0..12)
        .prop_map(|all| format!("<a xmlns='u' xmlns:p='v'>{}</a>", all.concat()));
    prop_oneof![loose, tight]
}
