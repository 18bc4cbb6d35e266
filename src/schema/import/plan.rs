//! The plan of a conversion: how a value of the original JSON Schema becomes a payload, and how the
//! payload becomes that value again.

use super::super::Scalar;

/// The plan for the values at one place of the original JSON Schema.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// A scalar.
    Scalar(Scalar),
    /// An array whose items have this plan.
    Array(Box<Described>),
    /// An object with arbitrary property names. All its values have this plan.
    Map(Box<Described>),
    /// An object with properties that the original names.
    Object(Object),
}

/// The plan for a place, and the description of that place.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) plan: Plan,
    pub(super) doc: String,
    /// Whether the place also allows null.
    pub(super) or_null: bool,
}

/// The plan of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) properties: Vec<Property>,
    /// The name of the element for properties that the original doesn't name, and the plan of their
    /// values. `None` if the original allows no such properties.
    pub(super) rest: Option<(String, Box<Described>)>,
    /// The name of the attribute that lists the properties with the value null. `None` if
    /// [`lists_null`](Property::lists_null) is false for every property.
    pub(super) nulls: Option<String>,
    /// The name of the attribute that lists the empty arrays. `None` if
    /// [`lists_empty`](Property::lists_empty) is false for every property.
    pub(super) empty: Option<String>,
}

/// The plan of a property.
#[derive(Clone, Debug)]
pub(super) struct Property {
    /// The property's name in the original.
    pub(super) theirs: String,
    /// The name of the property's element.
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
    /// Returns whether the attribute [`nulls`](Object::nulls) lists this property when it is null.
    pub(super) fn lists_null(&self) -> bool {
        let is_null = self.holds.or_null || self.holds.plan.is_json();
        is_null && (!self.is_required || self.holds.plan.is_array())
    }

    /// Returns whether a missing element means null. A missing element means null if the original
    /// requires the property and allows null for it. For an array, a missing element means an empty
    /// array instead.
    pub(super) fn is_null_where_missing(&self) -> bool {
        self.holds.or_null && self.is_required && !self.holds.plan.is_array()
    }

    /// Returns whether the attribute [`empty`](Object::empty) lists this property when it is an
    /// empty array.
    pub(super) fn lists_empty(&self) -> bool {
        self.holds.plan.is_array() && !self.is_required
    }
}
