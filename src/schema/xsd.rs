//! Writes a schema as XSD 1.0, one document per payload.

use super::facet::{Bound, Facets};
use super::markup::Node;
use super::{Content, ENTRY, Field, KEY, Kind, Occurs, Scalar, Schema, Shape, Words};

/// Returns the payload's schema as an XSD document.
///
/// The document may differ from the schema where XSD can't express the schema:
///
/// * XSD may be unable to distinguish an element of any name from the fields beside it. Then the
///   document requires another namespace for that element, and so is stricter.
/// * For some scalars, the document is more permissive. For example, it allows any text where the
///   schema requires JSON.
#[must_use]
pub fn xsd(schema: &Schema) -> String {
    let mut writer = Writer::default();
    let root = writer.root(schema);
    writer.define();
    let namespace = schema.name.namespace();
    let document = Node::new("xs:schema")
        .with("xmlns:xs", "http://www.w3.org/2001/XMLSchema")
        .with("xmlns:t", namespace)
        .with("targetNamespace", namespace)
        .with("elementFormDefault", "qualified");
    let header = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let document = document.holding(std::iter::once(root).chain(writer.defined));
    format!("{header}{}", document.render())
}

/// Writes one document. The writer collects the types and groups that need definitions, and the
/// definitions that it has written.
#[derive(Default)]
struct Writer<'a> {
    types: Vec<(&'a Shape, String)>,
    groups: Vec<(&'a Shape, String)>,
    words: Vec<(&'a Words, String)>,
    /// The type names that are already taken. In XSD, simple and complex types share their names.
    taken: Vec<String>,
    keys: usize,
    defined: Vec<Node>,
}

/// A simple type: a reference by name, or a definition in place.
enum Simple {
    Named(String),
    Inline(Node),
}

impl<'a> Writer<'a> {
    fn root(&mut self, schema: &'a Schema) -> Node {
        let node = Node::new("xs:element").with("name", schema.name.local());
        let doc = documented(node, &schema.shape.doc);
        if reaches(&schema.shape, &schema.shape, &mut Vec::new()) {
            return doc.with("type", self.type_of(&schema.shape));
        }
        match self.text_only(&schema.shape) {
            Some(simple) => typed(doc, simple),
            None => doc.holding([self.complex(&schema.shape)]),
        }
    }

    /// Writes the definition of every type and group that is needed. A definition may need further
    /// definitions.
    fn define(&mut self) {
        let (mut types, mut groups, mut words) = (0, 0, 0);
        loop {
            if let Some((shape, name)) = self.types.get(types).cloned() {
                types += 1;
                let node = self.named_type(shape, &name);
                self.defined.push(node);
            } else if let Some((shape, name)) = self.groups.get(groups).cloned() {
                groups += 1;
                let group = documented(Node::new("xs:group").with("name", name), &shape.doc);
                let choice = self.choice(shape);
                self.defined.push(group.holding([choice]));
            } else if let Some((list, name)) = self.words.get(words).cloned() {
                words += 1;
                self.defined.push(word_type(list, &name));
            } else {
                return;
            }
        }
    }

    fn named_type(&mut self, shape: &'a Shape, name: &str) -> Node {
        match self.text_only(shape) {
            Some(Simple::Inline(node)) => {
                node.with("name", name).holding_first(annotation(&shape.doc))
            }
            Some(Simple::Named(base)) => {
                let node = documented(Node::new("xs:simpleType").with("name", name), &shape.doc);
                node.holding([Node::new("xs:restriction").with("base", base)])
            }
            None => {
                let node = self.complex(shape).with("name", name);
                node.holding_first(annotation(&shape.doc))
            }
        }
    }

    /// Returns the simple type of an element that has only text. Returns `None` for other elements.
    fn text_only(&mut self, shape: &'a Shape) -> Option<Simple> {
        match &shape.content {
            Content::Text(field) if shape.attributes.is_empty() => match &field.kind {
                Kind::Scalar(scalar) => Some(self.simple(scalar)),
                _ => None,
            },
            _ => None,
        }
    }

    fn complex(&mut self, shape: &'a Shape) -> Node {
        let node = Node::new("xs:complexType");
        let attributes: Vec<Node> = shape.attributes.iter().map(|it| self.attribute(it)).collect();
        match &shape.content {
            Content::Empty => node.holding(attributes),
            Content::Text(field) => {
                let base = match &field.kind {
                    Kind::Scalar(scalar) => {
                        let simple = self.simple(scalar);
                        self.name(simple, &format!("{}-text", shape.name))
                    }
                    _ => "xs:string".to_owned(),
                };
                let extension = Node::new("xs:extension").with("base", base).holding(attributes);
                node.holding([Node::new("xs:simpleContent").holding([extension])])
            }
            Content::Sequence(fields) => {
                let particles = (0..fields.len()).map(|it| self.particle(fields, it));
                let sequence = Node::new("xs:sequence").holding(particles.collect::<Vec<_>>());
                node.holding([sequence]).holding(attributes)
            }
            Content::Choice(_) => node.holding([self.choice(shape)]).holding(attributes),
            Content::Any => {
                let any = any("##any").with("minOccurs", "0").with("maxOccurs", "unbounded");
                let attributes = Node::new("xs:anyAttribute").with("processContents", "lax");
                let sequence = Node::new("xs:sequence").holding([any]);
                node.with("mixed", "true").holding([sequence, attributes])
            }
        }
    }

    fn choice(&mut self, shape: &'a Shape) -> Node {
        let variants: &'a [Field] = match &shape.content {
            Content::Choice(variants) => variants,
            _ => &[],
        };
        let variants: Vec<Node> = variants.iter().map(|it| self.element(it)).collect();
        Node::new("xs:choice").holding(variants)
    }

    fn particle(&mut self, fields: &'a [Field], place: usize) -> Node {
        let field = &fields[place];
        let node = match &field.kind {
            Kind::Element => {
                let before = fields[..place].last().is_some_and(|it| it.occurs != Occurs::One);
                let behind = field.occurs != Occurs::One && place + 1 < fields.len();
                documented(any(if before || behind { "##other" } else { "##any" }), &field.doc)
            }
            Kind::Choice(link) => {
                let name = self.group_of(link.shape());
                documented(Node::new("xs:group").with("ref", name), &field.doc)
            }
            _ => self.element(field),
        };
        match field.occurs {
            Occurs::One => node,
            Occurs::Optional => node.with("minOccurs", "0"),
            Occurs::Many => node.with("minOccurs", "0").with("maxOccurs", "unbounded"),
        }
    }

    fn element(&mut self, field: &'a Field) -> Node {
        let node = Node::new("xs:element").with("name", field.name.clone());
        let node = documented(node, &field.doc);
        match &field.kind {
            Kind::Scalar(scalar) => typed(node, self.simple(scalar)),
            Kind::Shape(link) | Kind::Choice(link) if link.shape().name.is_empty() => {
                let complex = self.complex(link.shape());
                node.holding([complex])
            }
            Kind::Shape(link) | Kind::Choice(link) => node.with("type", self.type_of(link.shape())),
            Kind::Map(entry) => {
                let map = self.map(entry);
                self.keys += 1;
                let unique = Node::new("xs:unique").with("name", format!("key-{}", self.keys));
                let selector = Node::new("xs:selector").with("xpath", format!("t:{ENTRY}"));
                let key = Node::new("xs:field").with("xpath", format!("@{KEY}"));
                node.holding([map, unique.holding([selector, key])])
            }
            Kind::Element => node,
        }
    }

    fn map(&mut self, entry: &'a Field) -> Node {
        let (content, base) = match &entry.kind {
            Kind::Shape(link) | Kind::Choice(link) => {
                let simple = self.text_only(link.shape()).is_some();
                (!simple, self.type_of(link.shape()))
            }
            Kind::Scalar(scalar) => {
                let simple = self.simple(scalar);
                (false, self.name(simple, "entry-text"))
            }
            Kind::Map(_) | Kind::Element => (true, "xs:anyType".to_owned()),
        };
        let key = Node::new("xs:attribute").with("name", KEY).with("type", "xs:string");
        let extension =
            Node::new("xs:extension").with("base", base).holding([key.with("use", "required")]);
        let content = Node::new(if content { "xs:complexContent" } else { "xs:simpleContent" });
        let complex = Node::new("xs:complexType").holding([content.holding([extension])]);
        let element = Node::new("xs:element").with("name", ENTRY).with("minOccurs", "0");
        let element = element.with("maxOccurs", "unbounded").holding([complex]);
        Node::new("xs:complexType").holding([Node::new("xs:sequence").holding([element])])
    }

    fn attribute(&mut self, field: &'a Field) -> Node {
        let node = Node::new("xs:attribute").with("name", field.name.clone());
        let node = match field.occurs {
            Occurs::One => node.with("use", "required"),
            Occurs::Optional | Occurs::Many => node,
        };
        let node = documented(node, &field.doc);
        match &field.kind {
            Kind::Scalar(scalar) => typed(node, self.simple(scalar)),
            _ => node,
        }
    }

    fn simple(&mut self, scalar: &'a Scalar) -> Simple {
        let built_in = |name: &str| Simple::Named(format!("xs:{name}"));
        match scalar {
            Scalar::String => built_in("string"),
            Scalar::Character => restricted("string", "length", "1"),
            Scalar::Boolean => built_in("boolean"),
            Scalar::I8 => built_in("byte"),
            Scalar::I16 => built_in("short"),
            Scalar::I32 => built_in("int"),
            Scalar::I64 => built_in("long"),
            Scalar::I128 => built_in("integer"),
            Scalar::U8 => built_in("unsignedByte"),
            Scalar::U16 => built_in("unsignedShort"),
            Scalar::U32 => built_in("unsignedInt"),
            Scalar::U64 => built_in("unsignedLong"),
            Scalar::U128 => built_in("nonNegativeInteger"),
            Scalar::F32 => built_in("float"),
            Scalar::F64 => built_in("double"),
            Scalar::Bytes => built_in("base64Binary"),
            Scalar::Timestamp => {
                let pattern = r"[0-9]{4}-.*(Z|[+\-][0-9]{2}:[0-9]{2})";
                restricted("dateTime", "pattern", pattern)
            }
            Scalar::Duration => {
                let pattern = r"-?P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]{1,9})?S)?)?";
                restricted("duration", "pattern", pattern)
            }
            Scalar::Json => built_in("string"),
            Scalar::Uuid => {
                let pattern = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
                restricted("token", "pattern", pattern)
            }
            Scalar::Words(words) => self.word(words),
            Scalar::List(list) => {
                let item = self.simple(&list.item);
                let node = match item {
                    Simple::Named(name) => Node::new("xs:list").with("itemType", name),
                    Simple::Inline(node) => Node::new("xs:list").holding([node]),
                };
                let simple = Simple::Inline(Node::new("xs:simpleType").holding([node]));
                let (length_min, length_max) = (list.length_min, list.length_max);
                narrowed(simple, &Facets { length_min, length_max, ..Facets::NONE })
            }
            Scalar::Narrow(it) => self.narrow(it.base(), it.facets(), scalar),
        }
    }

    fn narrow(&mut self, base: &'a Scalar, facets: &Facets, whole: &Scalar) -> Simple {
        let digits = whole.narrowest();
        let decimal = digits.digits.is_some() || digits.fraction_digits.is_some();
        let simple = match base {
            // In XSD, facets on digits are only for decimal numbers, which have no exponent.
            Scalar::F32 | Scalar::F64 if decimal => Simple::Named("xs:decimal".to_owned()),
            base => self.simple(base),
        };
        narrowed(simple, facets)
    }

    fn word(&mut self, words: &'a Words) -> Simple {
        if words.name.is_empty() {
            return Simple::Inline(word_type(words, ""));
        }
        if let Some((_, name)) = self.words.iter().find(|(it, _)| it.list == words.list) {
            return Simple::Named(format!("t:{name}"));
        }
        let name = self.free(&words.name);
        self.words.push((words, name.clone()));
        Simple::Named(format!("t:{name}"))
    }

    /// Returns the name of a simple type, for a place where XSD requires a name. A type without a
    /// name is defined under a new name that resembles `liked`.
    fn name(&mut self, simple: Simple, liked: &str) -> String {
        match simple {
            Simple::Named(name) => name,
            Simple::Inline(node) => {
                let name = self.free(liked.trim_start_matches('-'));
                self.defined.push(node.with("name", name.clone()));
                format!("t:{name}")
            }
        }
    }

    fn type_of(&mut self, shape: &'a Shape) -> String {
        if let Some((_, name)) = self.types.iter().find(|(it, _)| std::ptr::eq(*it, shape)) {
            return format!("t:{name}");
        }
        let name = self.free(&shape.name);
        self.types.push((shape, name.clone()));
        format!("t:{name}")
    }

    fn group_of(&mut self, shape: &'a Shape) -> String {
        if let Some((_, name)) = self.groups.iter().find(|(it, _)| std::ptr::eq(*it, shape)) {
            return format!("t:{name}");
        }
        let taken: Vec<String> = self.groups.iter().map(|(_, it)| it.clone()).collect();
        let name = unlike(&shape.name, &taken);
        self.groups.push((shape, name.clone()));
        format!("t:{name}")
    }

    fn free(&mut self, liked: &str) -> String {
        let name = unlike(liked, &self.taken);
        self.taken.push(name.clone());
        name
    }
}

/// Returns the name `liked`, with a number appended if the name is taken. An empty name is replaced
/// by `part`.
pub(super) fn unlike(liked: &str, taken: &[String]) -> String {
    let liked = if liked.is_empty() { "part" } else { liked };
    let numbered = (2..).map(|it| format!("{liked}-{it}"));
    let mut names = std::iter::once(liked.to_owned()).chain(numbered);
    names.find(|it| !taken.contains(it)).unwrap_or_default()
}

/// Returns whether the shape `to` is a part of the shape `from`, at any depth.
fn reaches<'a>(from: &'a Shape, to: &Shape, seen: &mut Vec<&'a Shape>) -> bool {
    let fields: Vec<&Field> = from.fields().collect();
    fields.into_iter().any(|field| {
        let kind = match &field.kind {
            Kind::Map(entry) => &entry.kind,
            kind => kind,
        };
        let (Kind::Shape(link) | Kind::Choice(link)) = kind else { return false };
        let shape = link.shape();
        if std::ptr::eq(shape, to) {
            return true;
        }
        if seen.iter().any(|it| std::ptr::eq(*it, shape)) {
            return false;
        }
        seen.push(shape);
        reaches(shape, to, seen)
    })
}

fn word_type(words: &Words, name: &str) -> Node {
    let node = Node::new("xs:simpleType");
    let node = if name.is_empty() { node } else { node.with("name", name) };
    let each = words
        .list
        .iter()
        .map(|it| documented(Node::new("xs:enumeration").with("value", it.text.clone()), &it.doc));
    let restriction = Node::new("xs:restriction").with("base", "xs:token").holding(each);
    documented(node, &words.doc).holding([restriction])
}

fn any(namespace: &str) -> Node {
    Node::new("xs:any").with("namespace", namespace).with("processContents", "lax")
}

fn annotation(doc: &str) -> Option<Node> {
    let text = Node::text("xs:documentation", doc);
    (!doc.is_empty()).then(|| Node::new("xs:annotation").holding([text]))
}

fn documented(node: Node, doc: &str) -> Node {
    node.holding(annotation(doc))
}

fn typed(node: Node, simple: Simple) -> Node {
    match simple {
        Simple::Named(name) => node.with("type", name),
        Simple::Inline(inline) => node.holding([inline]),
    }
}

fn restricted(base: &str, facet: &str, value: &str) -> Simple {
    let facet = Node::new(format!("xs:{facet}")).with("value", value);
    let base = Node::new("xs:restriction").with("base", format!("xs:{base}")).holding([facet]);
    Simple::Inline(Node::new("xs:simpleType").holding([base]))
}

/// Restricts a simple type by these facets. Returns the type unchanged if the facets restrict
/// nothing.
fn narrowed(simple: Simple, facets: &Facets) -> Simple {
    let mut all = Vec::new();
    let mut say = |facet: &str, value: Option<String>| {
        all.extend(value.map(|it| Node::new(format!("xs:{facet}")).with("value", it)));
    };
    let count = |it: Option<usize>| it.map(|it| it.to_string());
    let bound = |it: Option<Bound>| it.map(|it| it.to_string());
    facets.one_of.iter().for_each(|it| say("enumeration", Some(it.to_string())));
    say("pattern", facets.pattern.as_ref().map(ToString::to_string));
    say("minInclusive", bound(facets.min));
    say("maxInclusive", bound(facets.max));
    if facets.length_min == facets.length_max {
        say("length", count(facets.length_min));
    } else {
        say("minLength", count(facets.length_min));
        say("maxLength", count(facets.length_max));
    }
    say("totalDigits", count(facets.digits));
    say("fractionDigits", count(facets.fraction_digits));
    if all.is_empty() {
        return simple;
    }
    let restriction = Node::new("xs:restriction");
    let restriction = match simple {
        Simple::Named(name) => restriction.with("base", name),
        Simple::Inline(node) => restriction.holding([node]),
    };
    Simple::Inline(Node::new("xs:simpleType").holding([restriction.holding(all)]))
}
