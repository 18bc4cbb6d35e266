//! The plan of a conversion: what becomes of a JSON value on its way into a payload, and back.

use super::super::Scalar;

/// What a place of the original holds.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// One text.
    Scalar(Scalar),
    /// Any number of these.
    Array(Box<Described>),
    /// Any names, each with one of these.
    Map(Box<Described>),
    /// Properties.
    Object(Object),
}

/// What a place holds, and what is said of it.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) plan: Plan,
    pub(super) doc: String,
    /// Whether null may stand there, too.
    pub(super) or_null: bool,
}

/// The properties of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) properties: Vec<Property>,
    /// What any other properties hold, and the element that has them.
    pub(super) rest: Option<(String, Box<Described>)>,
    /// The attribute that lists which properties are null, where leaving them out isn't the same.
    pub(super) nulls: Option<String>,
    /// The attribute that lists which arrays are empty, where leaving them out isn't the same.
    pub(super) empty: Option<String>,
}

/// One property.
#[derive(Clone, Debug)]
pub(super) struct Property {
    pub(super) theirs: String,
    /// Its element's name.
    pub(super) ours: String,
    pub(super) holds: Described,
    pub(super) is_required: bool,
}

impl Plan {
    pub(super) fn is_array(&self) -> bool {
        matches!(self, Plan::Array(_))
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self, Plan::Scalar(it) if *it.base() == Scalar::Json)
    }
}

impl Property {
    /// Whether the payload lists it where it is null.
    pub(super) fn lists_null(&self) -> bool {
        let is_null = self.holds.or_null || self.holds.plan.is_json();
        is_null && (!self.is_required || self.holds.plan.is_array())
    }

    /// Whether null and nothing are the same: it must be there, and so what is missing is null.
    pub(super) fn is_null_where_missing(&self) -> bool {
        self.holds.or_null && self.is_required && !self.holds.plan.is_array()
    }

    /// Whether the payload lists it where it is an empty array.
    pub(super) fn lists_empty(&self) -> bool {
        self.holds.plan.is_array() && !self.is_required
    }
}
