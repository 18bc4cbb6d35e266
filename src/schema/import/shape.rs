//! Makes the shape of a payload from a plan.

use std::sync::Arc;

use super::super::{Content, ENTRY, Field, Kind, Link, List, Occurs, Scalar, Shape, Word, Words};
use super::plan::{Described, Object, Plan};

/// The name of each item's element, in an array that has an element around its items.
pub(super) const ITEM: &str = "item";

/// Returns the shape of a whole payload.
pub(super) fn root(local: &str, doc: &str, plan: &Plan) -> Shape {
    let named = |shape: Shape| Shape { name: local.to_owned().into(), ..shape };
    let doc = doc.to_owned();
    match plan {
        Plan::Scalar(scalar) => {
            let field = Field::new("", "", Kind::Scalar(scalar.clone()), Occurs::One);
            named(Shape::new("", doc, Vec::new(), Content::Text(field)))
        }
        Plan::Array(item) => named(array(doc, item)),
        // A map never occurs here, since the reader turns a map at the root into an object.
        Plan::Map(_) => named(Shape::new("", doc, Vec::new(), Content::Empty)),
        Plan::Object(it) => named(object(doc, it)),
    }
}

/// Returns the shape of an array that has an element around its items.
fn array(doc: String, item: &Described) -> Shape {
    let field = Field::new(ITEM, item.doc.clone(), kind(item), Occurs::Many);
    Shape::new("", doc, Vec::new(), Content::Sequence(vec![field]))
}

fn object(doc: String, object: &Object) -> Shape {
    let mut fields: Vec<Field> = Vec::new();
    for property in &object.properties {
        let (holds, name) = (&property.holds, property.ours.clone());
        let (kind, occurs) = match &holds.plan {
            Plan::Array(item) => (kind(item), Occurs::Many),
            _ if property.is_required && !holds.or_null => (kind(holds), Occurs::One),
            _ => (kind(holds), Occurs::Optional),
        };
        fields.push(Field::new(name, holds.doc.clone(), kind, occurs));
    }
    if let Some((name, each)) = &object.rest {
        let entry = Field::new(ENTRY, each.doc.clone(), kind(each), Occurs::Many);
        let doc = "Any other properties.";
        let field = Field::new(name.clone(), doc, Kind::Map(Box::new(entry)), Occurs::Optional);
        fields.push(Field { in_example: object.properties.is_empty(), ..field });
    }
    let named = |keep: fn(&super::plan::Property) -> bool| {
        let names = object.properties.iter().filter(move |it| keep(it)).map(|it| it.ours.clone());
        names.collect::<Vec<String>>()
    };
    let nulls = object
        .nulls
        .as_ref()
        .map(|name| list(name, "The properties that are null.", named(|it| it.lists_null())));
    let empty = object.empty.as_ref().map(|name| {
        list(name, "The arrays that are there and empty.", named(|it| it.lists_empty()))
    });
    let attributes = nulls.into_iter().chain(empty).collect();
    let content = if fields.is_empty() { Content::Empty } else { Content::Sequence(fields) };
    Shape::new("", doc, attributes, content)
}

/// Returns an optional attribute that lists some of these names.
fn list(name: &str, doc: &'static str, names: Vec<String>) -> Field {
    let list = names.into_iter().map(|it| Word { text: it.into(), doc: "".into() }).collect();
    let words = Words { name: "property".into(), doc: "".into(), list };
    let item = Scalar::Words(std::borrow::Cow::Owned(words));
    let scalar = Scalar::List(Arc::new(List { item, length_min: Some(1), length_max: None }));
    let field = Field::new(name.to_owned(), doc, Kind::Scalar(scalar), Occurs::Optional);
    Field { in_example: false, ..field }
}

/// Returns the field kind for values with this plan.
fn kind(described: &Described) -> Kind {
    match &described.plan {
        Plan::Scalar(it) => Kind::Scalar(it.clone()),
        Plan::Array(item) => Kind::Shape(Link::new(array(String::new(), item))),
        Plan::Map(each) => {
            let entry = Field::new(ENTRY, each.doc.clone(), kind(each), Occurs::Many);
            Kind::Map(Box::new(entry))
        }
        Plan::Object(it) => Kind::Shape(Link::new(object(String::new(), it))),
    }
}
