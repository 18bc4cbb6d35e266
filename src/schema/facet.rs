//! Facets narrow a scalar: a pattern, bounds, lengths, digits, or a list of allowed texts.

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::forms;
use super::pattern::{self, Wrong};
use super::scalar::{self, Scalar};

/// The most bytes of memory that one compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 64 << 20;

/// The facets of a scalar. Each facet that is set narrows the allowed texts, except for `example`.
#[derive(Clone, Debug, PartialEq)]
pub struct Facets {
    /// The regular expression that the whole text must match, in the syntax of XSD.
    pub pattern: Option<Cow<'static, str>>,
    /// The allowed texts or whole numbers. An empty list restricts nothing.
    pub one_of: Cow<'static, [Cow<'static, str>]>,
    /// The least allowed number.
    pub min: Option<Bound>,
    /// The greatest allowed number.
    pub max: Option<Bound>,
    /// The least number of characters, bytes, or items of a list.
    pub length_min: Option<usize>,
    /// The greatest number of characters, bytes, or items of a list.
    pub length_max: Option<usize>,
    /// The maximum number of digits.
    pub digits: Option<usize>,
    /// The maximum number of digits after the decimal point.
    pub fraction_digits: Option<usize>,
    /// A valid text, for examples.
    pub example: Option<Cow<'static, str>>,
}

/// The least or the greatest number of a range. The bound is part of the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A whole number.
    Whole(i128),
    /// A floating-point number.
    Float(f64),
}

/// A scalar with facets.
#[derive(Clone, Debug)]
pub struct Narrow {
    base: Scalar,
    facets: Facets,
    /// The compiled pattern. `None` if there is no pattern, and also if the pattern couldn't be
    /// compiled. A pattern that couldn't be compiled matches no text.
    pattern: Option<Regex>,
    /// Whether the scalar may refuse a value of the Rust type. Facets with only an example refuse
    /// nothing.
    binds: bool,
}

/// A list of scalars in one text, separated by white space.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The form of each item.
    pub item: Scalar,
    /// The least number of items.
    pub length_min: Option<usize>,
    /// The greatest number of items.
    pub length_max: Option<usize>,
}

impl Facets {
    /// Facets that narrow nothing.
    pub const NONE: Facets = Facets {
        pattern: None,
        one_of: Cow::Borrowed(&[]),
        min: None,
        max: None,
        length_min: None,
        length_max: None,
        digits: None,
        fraction_digits: None,
        example: None,
    };
}

impl Scalar {
    /// Returns this scalar with further facets. For a list, a length among the facets replaces the
    /// list's own bound on the number of items. The other facets apply to each item.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern isn't valid, or if matching it would take too much memory.
    pub fn narrow(self, mut facets: Facets) -> Result<Scalar, Wrong> {
        if facets == Facets::NONE {
            return Ok(self);
        }
        if let Scalar::List(list) = &self {
            let length_min = facets.length_min.take().or(list.length_min);
            let length_max = facets.length_max.take().or(list.length_max);
            let item = list.item.clone().narrow(facets)?;
            return Ok(Scalar::List(Arc::new(List { item, length_min, length_max })));
        }
        let pattern = match &facets.pattern {
            Some(it) => Some(compile(it)?),
            None => None,
        };
        let binds = binds(&facets) || self.may_break();
        Ok(Scalar::Narrow(Arc::new(Narrow { base: self, facets, pattern, binds })))
    }

    /// Returns this scalar with facets that `#[derive(Payload)]` has already checked. If the
    /// pattern can't be compiled nevertheless, the scalar allows no text.
    pub fn narrowed(self, facets: Facets) -> Scalar {
        match self.clone().narrow(facets.clone()) {
            Ok(it) => it,
            Err(wrong) => {
                tracing::error!(pattern = ?facets.pattern, ?wrong, "nothing matches this pattern");
                Scalar::Narrow(Arc::new(Narrow { base: self, facets, pattern: None, binds: true }))
            }
        }
    }

    /// Returns this scalar without its facets.
    #[must_use]
    pub fn base(&self) -> &Scalar {
        match self {
            Scalar::Narrow(it) => it.base.base(),
            it => it,
        }
    }

    /// Returns the scalar's facets, beginning with those that were added last.
    pub fn facets(&self) -> impl Iterator<Item = &Facets> {
        std::iter::successors(self.as_narrow(), |it| it.base.as_narrow()).map(|it| &it.facets)
    }

    fn as_narrow(&self) -> Option<&Narrow> {
        match self {
            Scalar::Narrow(it) => Some(it),
            _ => None,
        }
    }

    /// Returns all facets of the scalar, merged into one value. Of several bounds, the tightest
    /// applies. Of several patterns, examples or lists of allowed texts, the one that was added
    /// last applies.
    #[must_use]
    pub fn narrowest(&self) -> Facets {
        let mut all = Facets::NONE;
        for facet in self.facets() {
            all.pattern = all.pattern.or_else(|| facet.pattern.clone());
            if all.one_of.is_empty() {
                all.one_of = facet.one_of.clone();
            }
            all.min = tighter(all.min, facet.min, |a, b| number(a) >= number(b));
            all.max = tighter(all.max, facet.max, |a, b| number(a) <= number(b));
            all.length_min = tighter(all.length_min, facet.length_min, |a, b| a >= b);
            all.length_max = tighter(all.length_max, facet.length_max, |a, b| a <= b);
            all.digits = tighter(all.digits, facet.digits, |a, b| a <= b);
            all.fraction_digits =
                tighter(all.fraction_digits, facet.fraction_digits, |a, b| a <= b);
            all.example = all.example.or_else(|| facet.example.clone());
        }
        all
    }

    /// Returns whether the scalar may refuse a value of the Rust type. If so, the value must be
    /// checked before it is sent.
    pub(super) fn may_break(&self) -> bool {
        match self {
            Scalar::Timestamp => true,
            Scalar::Narrow(it) => it.binds,
            Scalar::List(list) => {
                let counted = list.length_min.is_some() || list.length_max.is_some();
                counted || list.item.may_break()
            }
            _ => false,
        }
    }
}

impl PartialEq for Narrow {
    fn eq(&self, other: &Narrow) -> bool {
        self.base == other.base && self.facets == other.facets
    }
}

impl Narrow {
    /// Returns the scalar that these facets narrow. That scalar may itself have facets.
    #[must_use]
    pub fn base(&self) -> &Scalar {
        &self.base
    }

    /// Returns the outermost facets. The base may have more.
    #[must_use]
    pub fn facets(&self) -> &Facets {
        &self.facets
    }

    pub(super) fn accepts(&self, text: &str) -> bool {
        if !self.base.accepts(text) {
            return false;
        }
        let Facets { pattern, one_of, length_min, length_max, .. } = &self.facets;
        if pattern.is_some() && !self.pattern.as_ref().is_some_and(|it| it.is_match(text)) {
            return false;
        }
        let whole = scalar::integer::<i128>(text);
        let is = |given: &Cow<'_, str>| match self.base.base() {
            Scalar::String | Scalar::Character => text == given,
            _ => {
                scalar::trim(text) == given || (whole.is_some() && whole == scalar::integer(given))
            }
        };
        if !one_of.is_empty() && !one_of.iter().any(is) {
            return false;
        }
        if length_min.is_some() || length_max.is_some() {
            let length = match self.base.base() {
                Scalar::Bytes => forms::base64(text).map_or(0, |it| it.len()),
                _ => text.chars().count(),
            };
            if length_min.is_some_and(|it| length < it) || length_max.is_some_and(|it| length > it)
            {
                return false;
            }
        }
        self.in_bounds(text) && self.has_digits(text)
    }

    fn in_bounds(&self, text: &str) -> bool {
        let Facets { min, max, .. } = self.facets;
        if min.is_none() && max.is_none() {
            return true;
        }
        match self.base.base() {
            // A number that doesn't fit into an `i128` is greater than every bound.
            Scalar::U128 | Scalar::I128 => match scalar::integer::<i128>(text) {
                Some(limit) => {
                    min.is_none_or(|min| limit >= whole(min))
                        && max.is_none_or(|max| limit <= whole(max))
                }
                None => max.is_none(),
            },
            #[expect(clippy::cast_possible_truncation, reason = "a bound is as wide as its number")]
            Scalar::F32 => scalar::float(text).is_some_and(|float| {
                min.is_none_or(|min| float >= number(min) as f32)
                    && max.is_none_or(|max| float <= number(max) as f32)
            }),
            Scalar::F64 => scalar::double(text).is_some_and(|double| {
                min.is_none_or(|min| double >= number(min))
                    && max.is_none_or(|max| double <= number(max))
            }),
            _ => scalar::integer::<i128>(text).is_some_and(|number| {
                min.is_none_or(|min| number >= whole(min))
                    && max.is_none_or(|max| number <= whole(max))
            }),
        }
    }

    /// Returns whether the number respects the limits on digits. As in XSD, leading zeros and zeros
    /// at the end of the fraction don't count. A number with an exponent is refused.
    fn has_digits(&self, text: &str) -> bool {
        let Facets { digits, fraction_digits, .. } = self.facets;
        if digits.is_none() && fraction_digits.is_none() {
            return true;
        }
        let text = scalar::trim(text).trim_start_matches(['+', '-']);
        let (before, behind) = text.split_once('.').unwrap_or((text, ""));
        let (before, behind) = (before.trim_start_matches('0'), behind.trim_end_matches('0'));
        text.bytes().all(|it| it.is_ascii_digit() || it == b'.')
            && digits.is_none_or(|it| before.len() + behind.len() <= it)
            && fraction_digits.is_none_or(|it| behind.len() <= it)
    }
}

fn binds(facets: &Facets) -> bool {
    *facets != Facets { example: facets.example.clone(), ..Facets::NONE }
}

fn compile(source: &str) -> Result<Regex, Wrong> {
    pattern::parse(source)?;
    let translated = pattern::translate(source)?;
    let built = RegexBuilder::new(&translated).size_limit(PATTERN_BYTES_MAX).build();
    built.map_err(|_| Wrong {
        message: "this pattern takes too much to match".to_owned(),
        hint: "repeat less, or by `*` and `+`",
    })
}

fn tighter<T: Copy>(one: Option<T>, other: Option<T>, is: fn(T, T) -> bool) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if is(one, other) { one } else { other }),
        (one, other) => one.or(other),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number with a fraction has no more digits")]
fn number(bound: Bound) -> f64 {
    match bound {
        Bound::Whole(it) => it as f64,
        Bound::Float(it) => it,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole numbers have whole bounds")]
fn whole(bound: Bound) -> i128 {
    match bound {
        Bound::Whole(it) => it,
        Bound::Float(it) => it as i128,
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Whole(it) => it.fmt(f),
            Bound::Float(it) => it.fmt(f),
        }
    }
}
