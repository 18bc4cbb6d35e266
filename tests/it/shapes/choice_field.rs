//! Choices among other fields: exactly one, at most one, or any number.

use pumphouse::Payload;

/// A drawing.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "drawing")]
pub(super) struct Root {
    pub(super) title: String,
    pub(super) frame: Frame,
    pub(super) light: Option<Light>,
    /// What is drawn, in any order.
    pub(super) figures: Vec<Figure>,
}

/// What is around it.
#[derive(Payload)]
pub(super) enum Frame {
    Bare,
    /// A line of this width.
    Line(#[payload(min = 0)] f64),
}

/// What shines on it.
#[derive(Payload)]
pub(super) enum Light {
    Sun,
    Lamp { watts: u16 },
}

/// A figure.
#[derive(Payload)]
pub(super) enum Figure {
    Point,
    Circle {
        #[payload(attribute)]
        filled: bool,
        radius: f64,
    },
    Group(Group),
}

/// Figures that belong together.
#[derive(Payload)]
pub(super) struct Group {
    pub(super) figures: Vec<Figure>,
}
