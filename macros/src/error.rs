//! The errors of the derives, in one table. A derive reports all errors of a type at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The text of one error: a description of the mistake, and a hint for correcting it. `{}` is
/// replaced by the name of a field or an option, or by a range.
pub(crate) struct Message(&'static str, &'static str);

pub(crate) const NO_DOC: Message = Message(
    "a payload says what it is for: its doc comment is its specification",
    "put a doc comment above the type: `/// Adds two integers.`",
);
pub(crate) const DOC: Message = Message(
    "the doc of a payload is written out, so that the derive can read it",
    "write the text itself: `/// Adds two integers.`",
);
pub(crate) const NO_NAMESPACE: Message = Message(
    "only a payload can be live, reserved or bookkeeping or have a name, and one has a namespace",
    "add `ns = \"…\"`, or leave this out if the type is only a part of payloads",
);
pub(crate) const NAMESPACE: Message = Message(
    "a namespace is an absolute URI",
    "`ns = \"https://example.org/ns/calculator/v1\"`, with your own host and version",
);
pub(crate) const NAMESPACE_TAKEN: Message = Message(
    "this namespace belongs to XML itself",
    "take a URI of your own: `ns = \"https://example.org/ns/calculator/v1\"`",
);
pub(crate) const NAME: Message = Message(
    "this is no XML name: it begins with a letter or `_`, and goes on with letters, digits, \
     `-`, `_` and `.`",
    "give it another with `#[payload(rename = \"…\")]`",
);
pub(crate) const GENERIC: Message = Message(
    "a payload is not generic: its name and its schema are one for all its values",
    "derive on a type for each, or hold an `Element`",
);
pub(crate) const UNION: Message = Message(
    "a payload is not a union: nothing says which of its fields holds the value",
    "an enum says which: its variants are the elements of a choice",
);
pub(crate) const TUPLE: Message = Message(
    "the elements of a payload have names, and the fields of a tuple don't",
    "name the fields: `struct Add { a: i64, b: i64 }`",
);
pub(crate) const TUPLE_VARIANT: Message = Message(
    "the elements of a payload have names, and the fields of a tuple don't",
    "name the fields: `Move { x: i64, y: i64 }`",
);
pub(crate) const NO_VARIANTS: Message = Message(
    "an enum without variants has no values",
    "a payload that says nothing is a unit struct: `struct Ping;`",
);
pub(crate) const TWO_TEXTS: Message = Message(
    "an element has one text, and another field is it already",
    "make one of the two an attribute",
);
pub(crate) const TEXT_AND_ELEMENTS: Message = Message(
    "an element has text or elements, not both",
    "make the text an element, or the elements attributes",
);
pub(crate) const VALUE_AND_NOTE: Message =
    Message("a field is the value or a note, not both", "leave out `note`");
pub(crate) const NO_VALUE_HERE: Message = Message(
    "only a payload has a value, and this is a part of one, or a variant",
    "mark a field of the payload itself: a struct with `ns = \"…\"`",
);
pub(crate) const SAME_NAME: Message = Message(
    "two fields are called `{}`",
    "give one of them another with `#[payload(rename = \"…\")]`",
);
pub(crate) const SAME_VARIANT: Message = Message(
    "two variants are called `{}`",
    "give one of them another with `#[payload(rename = \"…\")]`",
);
pub(crate) const BYTES: Message = Message(
    "a `Vec` would be one element a byte",
    "hold them as `Bytes`, which is base64: `pumphouse::wire::Bytes`",
);
pub(crate) const OPTION_OF_OPTION: Message = Message(
    "an element is there or not: XML has no third state for an option within an option",
    "one `Option` will do",
);
pub(crate) const OPTION_OF_VEC: Message =
    Message("XML cannot tell no list from an empty one", "a `Vec` alone: none is an empty one");
pub(crate) const VEC_OF_OPTION: Message = Message(
    "what isn't there cannot be repeated",
    "a `Vec` alone, or a part with an optional field",
);
pub(crate) const VEC_OF_VEC: Message = Message(
    "XML cannot tell where one list ends and the next begins",
    "put the inner list into a part of its own: a struct with one field",
);
pub(crate) const MACHINE_SIZE: Message = Message(
    "this number is of another size on another machine, and a payload travels",
    "say the size: `u64` or `i64`",
);
pub(crate) const BORROWED: Message = Message(
    "a payload owns what it says: it outlives its message",
    "`String` for text, `Vec` for lists",
);
pub(crate) const UNNAMED: Message = Message(
    "the elements of a payload have names, and what is in here doesn't",
    "a struct for a tuple, a `Vec` for an array",
);
pub(crate) const MAP: Message = Message(
    "a payload is written in one order, and this has none or another",
    "a map is a `BTreeMap<String, …>`, a set is a `Vec`",
);
pub(crate) const MAP_KEY: Message = Message(
    "the key of a map is a text: it stands in the attribute `key`",
    "a `BTreeMap<String, …>`, or a `Vec` of a part with a key and a value",
);
pub(crate) const NO_LIST: Message = Message(
    "a list is a `Vec` of scalars in one text",
    "`#[payload(list)] sizes: Vec<u32>`, or an `Option` of a `Vec`",
);
pub(crate) const UNNAMED_OPTION: Message = Message(
    "this option is for fields with names",
    "name the field: then it is an attribute or an element",
);
pub(crate) const NO_NUMBER: Message =
    Message("a bound is a number, without quotes", "write it as `{} = 1` or `{} = 0.5`");
pub(crate) const NO_COUNT: Message =
    Message("this option takes a whole number", "write it as `{} = 12`");
pub(crate) const NO_CHOICES: Message = Message(
    "this option takes texts or whole numbers, at least one",
    "write it as `one_of(\"a\", \"b\")` or `one_of(1, 2, 3)`",
);
pub(crate) const NO_NUMBERS_LEFT: Message =
    Message("no number is left between `min` and `max`", "`min` is the smaller one");
pub(crate) const TOO_WIDE: Message =
    Message("a number of this type is from {}", "take a wider type or another number");
pub(crate) const LENGTH_TWICE: Message =
    Message("`length` says the length already", "keep `length`, or `min_length` and `max_length`");
pub(crate) const NO_LENGTH_LEFT: Message =
    Message("no length is left between the two", "`min_length` is the smaller one");
pub(crate) const NO_DIGITS: Message =
    Message("a number has a digit", "`digits = 1` is the least there is");
pub(crate) const FRACTION_DIGITS: Message = Message(
    "a number with more than five digits behind the point may be written with an exponent",
    "five at the most, or a whole number of smaller units",
);
pub(crate) const MORE_BEHIND: Message = Message(
    "there are more digits behind the point than there are digits",
    "`digits` counts those before and behind it",
);
pub(crate) const FLOAT_DIGITS: Message = Message(
    "a number with a fraction is exact to fifteen digits only",
    "fifteen at the most, or a whole number of smaller units",
);
pub(crate) const SAME_CHOICE: Message = Message("this is one of them already", "keep one");
pub(crate) const NO_CHOICE: Message =
    Message("the other options do not let this through", "change it, or them");
pub(crate) const EXAMPLE: Message =
    Message("the other options do not let this example through", "change it, or them");
pub(crate) const NO_EXAMPLE: Message = Message(
    "no example of this pattern was found in the lengths that are allowed",
    "give one with `example = \"…\"`",
);
/// The message of a compile-time assertion, which fails if an option doesn't fit the field's type.
/// The `FOR_…` constants and `TWO_KEYS` below are also messages of such assertions.
pub(crate) const FOR_TEXT: &str = "`pattern` is for text: a `String`, or a struct around one";
pub(crate) const FOR_TEXTS: &str =
    "`one_of` with texts is for a `String`, a `char`, or a struct around one";
pub(crate) const FOR_WHOLE: &str =
    "`one_of` with numbers is for whole numbers, or a struct around one";
pub(crate) const FOR_NUMBERS: &str =
    "`min`, `max` and `digits` are for numbers, or a struct around one";
pub(crate) const FOR_FLOATS: &str = "a fraction is for `f32` and `f64`, or a struct around one";
pub(crate) const FOR_LENGTHS: &str =
    "a length is for a `String`, for `Bytes`, for a struct around one, or for a `list`";
pub(crate) const FOR_LIST: &str = "a `list` has white space between its items, so they have none: \
     numbers, truths, words, times, durations, UUIDs";
pub(crate) const TWO_KEYS: &str =
    "the entries of a map have the attribute `key`, so what it holds can't: rename one";
pub(crate) const FOR_EXAMPLE: &str = "`example` is for scalars; a part has an example of its own";
pub(crate) const ATTRIBUTE_TYPE: Message =
    Message("an attribute is one text", "make it an element: leave `attribute` out");
pub(crate) const TEXT_TYPE: Message = Message(
    "the text of an element is one scalar and always there, if only empty",
    "make it an element: leave `text` out",
);
pub(crate) const NEWTYPE: Message = Message(
    "a struct around one unnamed field is a scalar",
    "name the field: then it is an element",
);
pub(crate) const VARIANT_TYPE: Message = Message(
    "a variant is one element that is always there, and holds one scalar or part",
    "name the field: `List { item: Vec<Item> }`",
);
pub(crate) const TWO_PLACES: Message =
    Message("a field is an attribute or the text, not both", "keep one of the two");
pub(crate) const TEXT_NAME: Message =
    Message("the text of an element has no name", "leave `rename` out");
pub(crate) const OPTIONS: Message = Message("options stand in parentheses", "`#[payload(…)]`");
pub(crate) const OPTION_TWICE: Message = Message("this option was given before", "keep one");
pub(crate) const FLAG: Message = Message("this option takes no value", "write `{}` alone");
pub(crate) const NO_VALUE: Message =
    Message("this option takes a text", "write it as `{} = \"…\"`");
pub(crate) const ON_TYPE: Message =
    Message("this option belongs on the type", "move it above the `struct` or the `enum`");
pub(crate) const ON_FIELD: Message =
    Message("this option belongs on a field", "move it above the field it is for");

pub(crate) const NO_NAMED_FIELDS: Message = Message(
    "contexts and emissions are derived for structs with named fields only",
    "name what is taken or emitted: `struct Sent { answer: Reply<Sum>, note: Note<Seen> }`",
);

/// The errors so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error at these tokens.
    pub(crate) fn push(&mut self, at: &dyn ToTokens, Message(text, hint): Message) {
        self.say(at, &format!("{text}\nhint: {hint}"));
    }

    /// Adds an error at these tokens, with this name in its text.
    pub(crate) fn named(&mut self, at: &dyn ToTokens, name: &str, Message(text, hint): Message) {
        let (text, hint) = (text.replace("{}", name), hint.replace("{}", name));
        self.say(at, &format!("{text}\nhint: {hint}"));
    }

    /// Adds an error at this span.
    pub(crate) fn at(&mut self, span: Span, Message(text, hint): Message) {
        self.add(syn::Error::new(span, format!("{text}\nhint: {hint}")));
    }

    /// Adds an error at this span, with this name in its text.
    pub(crate) fn named_at(&mut self, span: Span, name: &str, Message(text, hint): Message) {
        let (text, hint) = (text.replace("{}", name), hint.replace("{}", name));
        self.add(syn::Error::new(span, format!("{text}\nhint: {hint}")));
    }

    /// Adds an error with a text that isn't in the table.
    pub(crate) fn say(&mut self, at: &dyn ToTokens, text: &str) {
        self.add(syn::Error::new_spanned(at, text));
    }

    /// Adds an error of the parser.
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the code with which the compiler reports the errors. Returns `None` if there are no
    /// errors.
    pub(crate) fn into_tokens(self) -> Option<TokenStream> {
        self.0.map(|it| it.to_compile_error())
    }
}
