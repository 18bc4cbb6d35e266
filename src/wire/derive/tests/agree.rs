//! Tests that check and decoder agree about every payload, valid or invalid.

use proptest::prelude::*;

use super::*;
use crate::xml::{Child, View};

/// An element that tests can change.
#[derive(Clone, Debug, Default)]
struct Node {
    namespace: String,
    local: String,
    attributes: Vec<(String, String)>,
    children: Vec<Inside>,
}

#[derive(Clone, Debug)]
enum Inside {
    Element(Node),
    Text(String),
}

/// A change of a node: the kind of the change, the node, and two numbers that the change uses. Each
/// number is taken modulo its range.
type Change = (u8, usize, usize, usize);

const SEEDS: &[&str] = &[
    "<add xmlns='urn:test'><a>1</a><b>2</b></add>",
    "<everything xmlns='urn:test' id='' level='3' tint='red'><name>x</name><aka/><aka/><note/>\
     <step done='1'>x</step><step done='0'/><polygon closed='1'><corner x='1' y='2'/></polygon>\
     <small/><type>red</type><inside><point/><small/><wide><by>1</by></wide></inside>\
     <inside><circle><radius>1</radius></circle></inside><x><y/></x></everything>",
    "<everything xmlns='urn:test' id=''><name/><either><square>1</square></either></everything>",
    "<tree xmlns='urn:test'><children><children/></children><children/></tree>",
    "<said xmlns='urn:test'><again><sum><a>1</a><b>2</b></sum></again></said>",
    "<said xmlns='urn:test'><nothing/></said>",
    "<mood xmlns='urn:test'>good</mood>",
    "<say xmlns='urn:test'>x</say>",
    "<ping xmlns='urn:test'/>",
    "<carry xmlns='urn:test'><to/><x xmlns=''/><then/></carry>",
];
const NAMES: &[&str] =
    &["a", "b", "aka", "note", "point", "small", "name", "then", "children", "x", "good", "id"];
const TEXTS: &[&str] = &[
    "",
    " ",
    "1",
    " 2 ",
    "-1",
    "x",
    "true",
    "red",
    "INF",
    "good",
    "1e400",
    "99999999999999999999",
];

impl Node {
    fn of(view: View<'_>) -> Node {
        let inside = |it| match it {
            Child::Element(it) => Inside::Element(Node::of(it)),
            Child::Text(it) => Inside::Text(it.to_owned()),
        };
        Node {
            namespace: view.namespace().to_owned(),
            local: view.local().to_owned(),
            attributes: view.attributes().map(|it| (it.local.into(), it.value.into())).collect(),
            children: view.children().map(inside).collect(),
        }
    }

    fn write(&self, to: &mut String) {
        *to += &format!("<{} xmlns='{}'", self.local, self.namespace);
        for (local, value) in &self.attributes {
            *to += &format!(" {local}='{value}'");
        }
        *to += ">";
        for child in &self.children {
            match child {
                Inside::Element(it) => it.write(to),
                Inside::Text(it) => *to += it,
            }
        }
        *to += &format!("</{}>", self.local);
    }

    /// Returns the nth element of the tree, the root first.
    fn nth(&mut self, n: &mut usize) -> Option<&mut Node> {
        if *n == 0 {
            return Some(self);
        }
        *n -= 1;
        self.children.iter_mut().find_map(|it| match it {
            Inside::Element(it) => it.nth(n),
            Inside::Text(_) => None,
        })
    }

    fn count(&self) -> usize {
        let inside = |it: &Inside| match it {
            Inside::Element(it) => it.count(),
            Inside::Text(_) => 0,
        };
        1 + self.children.iter().map(inside).sum::<usize>()
    }

    fn change(&mut self, (what, which, one, other): Change) {
        let mut which = which % self.count();
        let Some(found) = self.nth(&mut which) else { return };
        let name = NAMES[one % NAMES.len()].to_owned();
        let text = TEXTS[other % TEXTS.len()].to_owned();
        let many = found.children.len();
        match what % 11 {
            0 => found.local = name,
            1 => found.namespace = ["", "urn:test", "urn:o"][one % 3].to_owned(),
            2 => found.attributes.retain(|(local, _)| *local != name),
            3 if found.attributes.iter().all(|(local, _)| *local != name) => {
                found.attributes.push((name, text));
            }
            4 => found.attributes.iter_mut().for_each(|(_, value)| value.clone_from(&text)),
            5 if many > 0 => drop(found.children.remove(one % many)),
            6 if many > 0 => found.children.push(found.children[one % many].clone()),
            7 if many > 0 => found.children.swap(one % many, other % many),
            8 => found.children.insert(one % (many + 1), Inside::Text(text)),
            9 => found.children = vec![Inside::Text(text)],
            10 => {
                let node =
                    Node { namespace: found.namespace.clone(), local: name, ..Node::default() };
                found.children.insert(other % (many + 1), Inside::Element(node));
            }
            _ => {}
        }
    }
}

/// Asserts that check and decoder give the same error, or that the value that was read can be
/// written and read again.
fn agree<P: Payload + Debug>(element: &Element) {
    let read = P::read(element.view());
    assert_eq!(P::schema().check(element.view()).err(), read.as_ref().err().cloned());
    if let Ok(value) = read {
        let again = value.encode().expect("read from XML");
        let value_again = P::read(again.view()).expect("written by us");
        assert_eq!(format!("{value:?}"), format!("{value_again:?}"));
    }
}

fn all_agree(element: &Element) {
    agree::<Add>(element);
    agree::<All>(element);
    agree::<Tree>(element);
    agree::<Said>(element);
    agree::<Mood>(element);
    agree::<Say>(element);
    agree::<Ping>(element);
    agree::<Carry>(element);
}

#[test]
fn the_seeds_are_right() {
    for seed in SEEDS {
        let seed = element(seed);
        let right = [
            Add::schema().check(seed.view()),
            All::schema().check(seed.view()),
            Tree::schema().check(seed.view()),
            Said::schema().check(seed.view()),
            Mood::schema().check(seed.view()),
            Say::schema().check(seed.view()),
            Ping::schema().check(seed.view()),
            Carry::schema().check(seed.view()),
        ];
        assert_eq!(right.iter().filter(|it| it.is_ok()).count(), 1, "{seed:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn check_and_decoder_agree(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec(any::<Change>(), 0..4),
    ) {
        let mut node = Node::of(element(SEEDS[seed]).view());
        for change in changes {
            node.change(change);
        }
        let mut text = String::new();
        node.write(&mut text);
        all_agree(&element(&text));
    }
}
