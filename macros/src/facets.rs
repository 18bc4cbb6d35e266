//! Facets of a field. This module parses the options, checks them, and generates the code that
//! builds the facets of the schema.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprUnary, Lit, LitStr, Meta, Token, UnOp};

use crate::error::{self, Errors};
use crate::pattern;

/// The greatest value of `digits` for a floating-point type. Numbers with more digits aren't exact.
const FLOAT_DIGITS_MAX: usize = 15;
/// The greatest value of `fraction_digits`. A number with more digits after the decimal point may
/// be written with an exponent.
const FRACTION_DIGITS_MAX: usize = 5;

/// The facets of one field, each with its span in the source.
#[derive(Default)]
pub(crate) struct Facets {
    pattern: Option<LitStr>,
    one_of: Option<(Span, Vec<Choice>)>,
    min: Option<(Span, Bound)>,
    max: Option<(Span, Bound)>,
    length: Option<(Span, usize)>,
    length_min: Option<(Span, usize)>,
    length_max: Option<(Span, usize)>,
    digits: Option<(Span, usize)>,
    fraction_digits: Option<(Span, usize)>,
    example: Option<LitStr>,
}

/// One of the values of `one_of`: a text, or a whole number.
struct Choice {
    text: String,
    whole: bool,
    span: Span,
}

#[derive(Clone, Copy)]
enum Bound {
    Whole(i128),
    Float(f64),
}

impl Bound {
    #[expect(clippy::cast_precision_loss, reason = "for comparing with one that has a fraction")]
    fn number(self) -> f64 {
        match self {
            Bound::Whole(it) => it as f64,
            Bound::Float(it) => it,
        }
    }
}

/// The names of the options that [`Facets`] keeps.
pub(crate) const NAMES: &[&str] = &[
    "pattern",
    "one_of",
    "min",
    "max",
    "length",
    "min_length",
    "max_length",
    "digits",
    "fraction_digits",
    "example",
];

impl Facets {
    pub(crate) fn is_empty(&self) -> bool {
        self.spans().is_empty()
    }

    fn spans(&self) -> Vec<Span> {
        let texts = [&self.pattern, &self.example].into_iter().flatten().map(LitStr::span);
        let bounds = [self.min, self.max].into_iter().flatten().map(|it| it.0);
        let one_of = self.one_of.iter().map(|it| it.0);
        let counts = self.counts().into_iter().flatten().map(|it| it.0);
        texts.chain(bounds).chain(one_of).chain(counts).collect()
    }

    fn counts(&self) -> [Option<(Span, usize)>; 5] {
        [self.length, self.length_min, self.length_max, self.digits, self.fraction_digits]
    }

    /// Parses and records one option. Reports an option that is given twice, or has a wrong value.
    pub(crate) fn option(&mut self, name: &str, meta: &Meta, errors: &mut Errors) {
        let span = syn::spanned::Spanned::span(meta.path());
        let given = match name {
            "pattern" => self.pattern.is_some(),
            "example" => self.example.is_some(),
            "one_of" => self.one_of.is_some(),
            "min" => self.min.is_some(),
            "max" => self.max.is_some(),
            _ => self.count(name).is_some(),
        };
        if given {
            return errors.push(meta.path(), error::OPTION_TWICE);
        }
        match name {
            "pattern" | "example" => match literal(meta) {
                Some(Lit::Str(text)) if name == "pattern" => self.pattern = Some(text),
                Some(Lit::Str(text)) => self.example = Some(text),
                _ => errors.named(meta, name, error::NO_VALUE),
            },
            "min" | "max" => match bound(meta) {
                Some(it) if name == "min" => self.min = Some((span, it)),
                Some(it) => self.max = Some((span, it)),
                None => errors.named(meta, name, error::NO_NUMBER),
            },
            "one_of" => match choices(meta) {
                Some(all) => self.one_of = Some((span, all)),
                None => errors.push(meta, error::NO_CHOICES),
            },
            _ => match literal(meta) {
                Some(Lit::Int(it)) if it.base10_parse::<u32>().is_ok() => {
                    let count = it.base10_parse::<usize>().unwrap_or_default();
                    *self.count(name) = Some((span, count));
                }
                _ => errors.named(meta, name, error::NO_COUNT),
            },
        }
    }

    fn count(&mut self, name: &str) -> &mut Option<(Span, usize)> {
        match name {
            "length" => &mut self.length,
            "min_length" => &mut self.length_min,
            "max_length" => &mut self.length_max,
            "digits" => &mut self.digits,
            _ => &mut self.fraction_digits,
        }
    }

    fn lengths(&self) -> (Option<usize>, Option<usize>) {
        let exact = self.length.map(|it| it.1);
        let (least, most) = (self.length_min.map(|it| it.1), self.length_max.map(|it| it.1));
        (exact.or(least), exact.or(most))
    }

    /// Reports options that contradict each other, and options with invalid values.
    pub(crate) fn check(&self, is_list: bool, errors: &mut Errors) {
        if let (Some((_, min)), Some((span, max))) = (self.min, self.max)
            && (min.number() > max.number()
                || whole(min).zip(whole(max)).is_some_and(|it| it.0 > it.1))
        {
            errors.at(span, error::NO_NUMBERS_LEFT);
        }
        for (span, _) in [self.length_min, self.length_max].into_iter().flatten() {
            if self.length.is_some() {
                errors.at(span, error::LENGTH_TWICE);
            }
        }
        if let (Some(least), Some((span, most))) = (self.length_min, self.length_max)
            && least.1 > most
        {
            errors.at(span, error::NO_LENGTH_LEFT);
        }
        if let Some((span, 0)) = self.digits {
            errors.at(span, error::NO_DIGITS);
        }
        if let Some((span, behind)) = self.fraction_digits {
            if behind > FRACTION_DIGITS_MAX {
                errors.at(span, error::FRACTION_DIGITS);
            }
            if self.digits.is_some_and(|it| it.1 < behind) {
                errors.at(span, error::MORE_BEHIND);
            }
        }
        // The lengths of a list count its items, not characters.
        let lengths = if is_list { (None, None) } else { self.lengths() };
        self.check_texts(lengths, errors);
    }

    fn check_texts(&self, (least, most): (Option<usize>, Option<usize>), errors: &mut Errors) {
        let parsed = self.pattern.as_ref().map(|it| (it, pattern::parse(&it.value())));
        let hir = match &parsed {
            Some((_, Ok(hir))) => Some(hir),
            Some((source, Err(wrong))) => {
                return errors.say(source, &format!("{}\nhint: {}", wrong.message, wrong.hint));
            }
            None => None,
        };
        let fits = |text: &str| {
            let length = text.chars().count();
            hir.is_none_or(|it| pattern::matches(it, text))
                && least.is_none_or(|it| length >= it)
                && most.is_none_or(|it| length <= it)
        };
        let mut seen: Vec<&str> = Vec::new();
        for it in self.one_of.iter().flat_map(|it| &it.1) {
            if seen.contains(&it.text.as_str()) {
                errors.at(it.span, error::SAME_CHOICE);
            }
            seen.push(&it.text);
            if (!it.whole && !fits(&it.text)) || (it.whole && !self.has(&it.text)) {
                errors.at(it.span, error::NO_CHOICE);
            }
        }
        if let Some(example) = &self.example {
            let text = example.value();
            let one = self.one_of.as_ref().is_none_or(|it| it.1.iter().any(|it| it.text == text));
            let only_text = self.pattern.is_some() || self.one_of.is_some();
            let only_number = [self.min, self.max].iter().any(Option::is_some)
                || self.digits.or(self.fraction_digits).is_some();
            if (only_text && !fits(&text)) || (only_number && !self.has(&text)) || !one {
                errors.push(example, error::EXAMPLE);
            }
        } else if let (Some(hir), None, Some(source)) = (hir, &self.one_of, &self.pattern) {
            let most = most.unwrap_or(usize::MAX);
            if pattern::example(hir, least.unwrap_or_default(), most).is_none() {
                errors.push(source, error::NO_EXAMPLE);
            }
        }
    }

    /// Returns whether a number respects the bounds and the limits on digits.
    fn has(&self, text: &str) -> bool {
        let (min, max) = (self.min.map(|it| it.1), self.max.map(|it| it.1));
        let is_within = match (text.parse::<i128>(), text.parse::<f64>()) {
            (Ok(it), _) if [min, max].into_iter().flatten().all(|it| whole(it).is_some()) => {
                min.and_then(whole).is_none_or(|min| it >= min)
                    && max.and_then(whole).is_none_or(|max| it <= max)
            }
            (_, Ok(it)) => {
                it.is_finite()
                    && min.is_none_or(|min| it >= min.number())
                    && max.is_none_or(|max| it <= max.number())
            }
            (_, Err(_)) => false,
        };
        is_within && self.has_digits(text)
    }

    /// Returns whether a number respects the limits on digits. Digits are counted as in the schema:
    /// leading zeros and zeros at the end of the fraction don't count. A number with an exponent is
    /// refused.
    fn has_digits(&self, text: &str) -> bool {
        let (digits, fraction) = (self.digits.map(|it| it.1), self.fraction_digits.map(|it| it.1));
        if digits.is_none() && fraction.is_none() {
            return true;
        }
        let text = text.trim_start_matches(['+', '-']);
        let (before, behind) = text.split_once('.').unwrap_or((text, ""));
        let (before, behind) = (before.trim_start_matches('0'), behind.trim_end_matches('0'));
        text.bytes().all(|it| it.is_ascii_digit() || it == b'.')
            && digits.is_none_or(|it| before.len() + behind.len() <= it)
            && fraction.is_none_or(|it| behind.len() <= it)
    }

    /// Reports bounds, and numbers in `one_of`, that are outside the range of the number type.
    pub(crate) fn check_width(&self, ty: &str, errors: &mut Errors) {
        let width = match ty {
            "i8" => i128::from(i8::MIN)..=i8::MAX.into(),
            "i16" => i128::from(i16::MIN)..=i16::MAX.into(),
            "i32" => i128::from(i32::MIN)..=i32::MAX.into(),
            "i64" => i128::from(i64::MIN)..=i64::MAX.into(),
            "u8" => 0..=u8::MAX.into(),
            "u16" => 0..=u16::MAX.into(),
            "u32" => 0..=u32::MAX.into(),
            "u64" => 0..=u64::MAX.into(),
            "u128" => 0..=i128::MAX,
            _ => return,
        };
        let range = format!("{} to {}", width.start(), width.end());
        for (span, bound) in [self.min, self.max].into_iter().flatten() {
            if whole(bound).is_some_and(|it| !width.contains(&it)) {
                errors.named_at(span, &range, error::TOO_WIDE);
            }
        }
        for it in self.one_of.iter().flat_map(|it| &it.1).filter(|it| it.whole) {
            if it.text.parse().is_ok_and(|it: i128| !width.contains(&it)) {
                errors.named_at(it.span, &range, error::TOO_WIDE);
            }
        }
    }

    /// Generates the code that builds the facets for the schema.
    pub(crate) fn data(&self) -> TokenStream {
        let text = |it: &Option<LitStr>| {
            it.iter().map(|it| quote!(::core::option::Option::Some(#it.into()))).next()
        };
        let bound = |it: Option<(Span, Bound)>| {
            it.map(|(_, it)| {
                let bound = match it {
                    Bound::Whole(it) => quote!(derive::Bound::Whole(#it)),
                    Bound::Float(it) => quote!(derive::Bound::Float(#it)),
                };
                quote!(::core::option::Option::Some(#bound))
            })
        };
        let count = |it: Option<usize>| it.map(|it| quote!(::core::option::Option::Some(#it)));
        let (least, most) = self.lengths();
        let one_of = self.one_of.as_ref().map(|(_, all)| {
            let texts = all.iter().map(|it| &it.text);
            quote!(::std::vec![#(#texts.into()),*].into())
        });
        let fields = [
            ("pattern", text(&self.pattern)),
            ("example", text(&self.example)),
            ("one_of", one_of),
            ("min", bound(self.min)),
            ("max", bound(self.max)),
            ("length_min", count(least)),
            ("length_max", count(most)),
            ("digits", count(self.digits.map(|it| it.1))),
            ("fraction_digits", count(self.fraction_digits.map(|it| it.1))),
        ];
        let fields = fields.iter().filter_map(|(name, it)| {
            let (name, it) = (proc_macro2::Ident::new(name, Span::call_site()), it.as_ref()?);
            Some(quote!(#name: #it))
        });
        quote!(derive::Facets { #(#fields,)* ..derive::Facets::NONE })
    }

    /// Generates compile-time assertions that a type of this form may have these options.
    pub(crate) fn asserted(&self, form: &TokenStream, is_list: bool) -> TokenStream {
        let mut all = TokenStream::new();
        let mut say = |span: Option<Span>, takes: &str, message: &str| {
            let Some(span) = span else { return };
            let takes = proc_macro2::Ident::new(takes, Span::call_site());
            all.extend(quote_spanned! {span=>
                const _: () = ::core::assert!(derive::#takes(#form), #message);
            });
        };
        let [length, least, most, digits, fraction] = self.counts().map(|it| it.map(|it| it.0));
        let bounds = [self.min, self.max];
        say(self.pattern.as_ref().map(LitStr::span), "takes_pattern", error::FOR_TEXT);
        for (span, bound) in bounds.into_iter().flatten() {
            match bound {
                Bound::Whole(_) => say(Some(span), "takes_bounds", error::FOR_NUMBERS),
                Bound::Float(_) => say(Some(span), "takes_fraction", error::FOR_FLOATS),
            }
        }
        if let Some((span, all)) = &self.one_of {
            match all.iter().all(|it| it.whole) {
                true => say(Some(*span), "takes_whole", error::FOR_WHOLE),
                false => say(Some(*span), "takes_texts", error::FOR_TEXTS),
            }
        }
        for span in [length, least, most].into_iter().filter(|_| !is_list) {
            say(span, "takes_length", error::FOR_LENGTHS);
        }
        say(digits, "takes_bounds", error::FOR_NUMBERS);
        say(fraction, "takes_fraction", error::FOR_FLOATS);
        say(self.example.as_ref().map(LitStr::span), "takes_example", error::FOR_EXAMPLE);
        all
    }

    /// Reports a value of `digits` that is beyond the precision of floating-point numbers.
    pub(crate) fn check_float(&self, errors: &mut Errors) {
        if let Some((span, all)) = self.digits
            && all > FLOAT_DIGITS_MAX
        {
            errors.at(span, error::FLOAT_DIGITS);
        }
    }
}

fn whole(bound: Bound) -> Option<i128> {
    match bound {
        Bound::Whole(it) => Some(it),
        Bound::Float(_) => None,
    }
}

fn literal(meta: &Meta) -> Option<Lit> {
    match meta {
        Meta::NameValue(it) => match &it.value {
            Expr::Lit(ExprLit { lit, .. }) => Some(lit.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn bound(meta: &Meta) -> Option<Bound> {
    match meta {
        Meta::NameValue(it) => number(&it.value),
        _ => None,
    }
}

fn number(it: &Expr) -> Option<Bound> {
    match it {
        Expr::Lit(ExprLit { lit: Lit::Int(it), .. }) => {
            it.base10_digits().parse().ok().map(Bound::Whole)
        }
        Expr::Lit(ExprLit { lit: Lit::Float(it), .. }) => {
            it.base10_digits().parse().ok().filter(|it: &f64| it.is_finite()).map(Bound::Float)
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match number(expr)? {
            Bound::Whole(it) => Some(Bound::Whole(-it)),
            Bound::Float(it) => Some(Bound::Float(-it)),
        },
        _ => None,
    }
}

/// Returns the values of `one_of`. The values must be all texts or all whole numbers. Returns
/// `None` for other values, and for an empty list.
fn choices(meta: &Meta) -> Option<Vec<Choice>> {
    let Meta::List(list) = meta else { return None };
    let all = list.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated).ok()?;
    let choice = |it: &Expr| {
        let span = it.to_token_stream().into_iter().next()?.span();
        match it {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                Some(Choice { text: text.value(), whole: false, span })
            }
            _ => Some(Choice { text: whole(number(it)?)?.to_string(), whole: true, span }),
        }
    };
    let all: Vec<Choice> = all.iter().map(choice).collect::<Option<_>>()?;
    let first = all.first()?.whole;
    all.iter().all(|it| it.whole == first).then_some(all)
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    /// Returns whether these options of a field cause an error.
    fn is_wrong(all: &[Meta]) -> bool {
        let (mut facets, mut errors) = (Facets::default(), Errors::default());
        for it in all {
            let name = it.path().get_ident().map(ToString::to_string).unwrap_or_default();
            facets.option(&name, it, &mut errors);
        }
        facets.check(false, &mut errors);
        errors.into_tokens().is_some()
    }

    #[test]
    fn an_example_of_a_number_is_one_that_the_other_options_let_through() {
        let check = |example: &str, option: Meta, expected: bool| {
            let example: Meta = parse_quote!(example = #example);
            assert_eq!(is_wrong(&[example.clone(), option]), expected, "{}", quote!(#example));
        };
        check("5", parse_quote!(max = 5), false);
        check("6", parse_quote!(max = 5), true);
        check("-1", parse_quote!(min = 0), true);
        check("0.25", parse_quote!(min = 0.5), true);
        check("1e3", parse_quote!(min = 0.5), false);
        check("six", parse_quote!(max = 5), true);
        check("NaN", parse_quote!(max = 5), true);
        check("012", parse_quote!(digits = 2), false);
        check("123", parse_quote!(digits = 2), true);
        check("0.250", parse_quote!(fraction_digits = 2), false);
        check("0.125", parse_quote!(fraction_digits = 2), true);
        check("340282366920938463463374607431768211455", parse_quote!(min = 1), false);
    }

    #[test]
    fn a_choice_has_no_more_digits_than_are_allowed() {
        assert!(!is_wrong(&[parse_quote!(one_of(1, 99)), parse_quote!(digits = 2)]));
        assert!(is_wrong(&[parse_quote!(one_of(1, 100)), parse_quote!(digits = 2)]));
        assert!(!is_wrong(&[parse_quote!(one_of("abc")), parse_quote!(max_length = 3)]));
    }

    #[test]
    fn a_bound_has_an_end() {
        assert!(!is_wrong(&[parse_quote!(max = 1e300)]));
        assert!(is_wrong(&[parse_quote!(max = 1e400)]));
        assert!(is_wrong(&[parse_quote!(min = -1e400)]));
    }
}
