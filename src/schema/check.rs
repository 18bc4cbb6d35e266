//! Checks an element against a schema, without making a value of a Rust type.

use super::walk::{At, Found, choose, entries, walk};
use super::{Error, Kind, Scalar, Schema, Shape, error};
use crate::xml::View;

impl Schema {
    /// Checks an element against this schema.
    ///
    /// # Errors
    ///
    /// Returns an error for the first place where the element breaks the schema.
    pub fn check(&self, element: View<'_>) -> Result<(), Error> {
        match &self.source {
            // The conversion to JSON also checks the shape.
            Some(source) => {
                let value = super::to_json(self, element)?;
                let wrong = source.judge(&value, 1).pop();
                wrong.map_or(Ok(()), |it| Err(error::judged(element, &it)))
            }
            None => shape(&self.shape, At::root(element, self)?),
        }
    }
}

fn shape(shape: &Shape, at: At<'_>) -> Result<(), Error> {
    walk(shape, at, &mut |it| field(&it))
}

fn field(found: &Found<'_>) -> Result<(), Error> {
    match &found.field.kind {
        Kind::Scalar(form) => scalar(form, found),
        Kind::Shape(link) => shape(link.shape(), found.at),
        Kind::Choice(link) => field(&choose(link.shape(), found.at)?),
        Kind::Element => Ok(()),
        Kind::Map(entry) => entries(found.at, &mut |_, at| field(&Found::entry(entry, at))),
    }
}

fn scalar(form: &Scalar, found: &Found<'_>) -> Result<(), Error> {
    if form.accepts(&found.text()?) {
        return Ok(());
    }
    Err(found.mismatch(form))
}
