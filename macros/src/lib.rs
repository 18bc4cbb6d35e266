//! The derives of Pumphouse:
//!
//! * `#[derive(Payload)]` makes the schema, the writer and the reader of a payload from the
//!   payload's type.
//! * `#[derive(FromContext)]` lets a struct be an argument of a handler.
//! * `#[derive(IntoEmit)]` lets a struct be the return value of a handler.

mod check;
mod compose;
mod error;
mod expand;
mod facets;
mod parse;
#[allow(unreachable_pub, reason = "a copy of the library's, where it is public")]
mod pattern;

use proc_macro::TokenStream;

/// Makes a type a payload, or a part that payloads may contain.
///
/// ```text
/// /// Adds two integers.
/// #[derive(Payload)]
/// #[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
/// struct Add {
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// }
/// ```
///
/// A value is written as
/// `<add xmlns="https://xml-pipeline.org/ns/calculator/v1"><a>1</a><b>2</b></add>`.
///
/// Doc comments become the descriptions in the schema. A type must have a doc comment, and a field
/// may have one. The names of types and variants become kebab-case; the names of fields stay as
/// written. Elements are written in the order in which the fields are declared. A reader accepts
/// elements only in this order.
///
/// On a type:
///
/// * `ns = "…"`: the namespace. With a namespace, the type is a payload. Without a namespace, the
///   type is a part of payloads.
/// * `rename = "…"`: another name for the root element.
/// * `live`: the payload may be sent live: then current followers see the payload, and the log
///   doesn't have it.
/// * `reserved`: sending the payload needs the grant `emit:core`, or a grant for this payload.
/// * `bookkeeping`: the payload records something about the work, as a charge does. `clear-context`
///   doesn't count it, and it is no message of a prompt. A prompt may show its content in another
///   form, as with attachments and summaries.
///
/// On a field:
///
/// * `attribute`: the field is an attribute, not an element.
/// * `text`: the field is the text between the tags.
/// * `rename = "…"`: another name for the field. Variants may be renamed, too.
/// * `list`: a `Vec` of scalars is written as one text with spaces between the scalars, instead of
///   one element for each scalar.
/// * `pattern = "…"`: a regular expression of XSD that the whole text must match.
/// * `one_of("a", "b")`, `one_of(1, 2)`: the texts or whole numbers that the field may hold.
/// * `min = …`, `max = …`: the least and the greatest number that the field may hold.
/// * `length = …`, `min_length = …`, `max_length = …`: the number of characters of a text, of bytes
///   of `Bytes`, or of items of a `list`.
/// * `digits = …`: the most digits of a number.
/// * `fraction_digits = …`: the most digits of a number after the decimal point.
/// * `example = "…"`: a valid text for examples, needed if the derive finds none by itself.
/// * `no_example`: examples of the payload leave the field out, if the field is optional. The
///   option is meant for a field that is given instead of another field, or seldom.
/// * `value`: the field is the payload's value. Agents see the value instead of the payload: in
///   `action-result`, in feeds, in prompts, and where an action refers to a result by `${id}`. If
///   several fields have this option, the value is the first of them that the payload has. Without
///   the option, the value of a payload with a single scalar is that scalar. The value of any other
///   payload is the whole payload as JSON.
/// * `note`: a prompt shows the field beside the value, as in `[next: 201]`, if the payload has it.
///   A field that is false or 0, or an empty list, isn't shown.
///
/// Options that restrict values, such as `min`, restrict each item of a `Vec`. They may also stand
/// on the unnamed scalar of a struct or a variant: `struct Percent(#[payload(max = 100)] u8);`.
/// Encoding fails for a value that these options forbid.
///
/// A field is a `String`, `bool`, `char`, number, `Bytes` (base64), `Timestamp`, `SignedDuration`,
/// `Uuid`, another type that derives `Payload`, an `Element` (any one element), a
/// `BTreeMap<String, …>` of one of these, or an `Option`, `Vec` or `Box` of one of these.
///
/// * An enum without data is written as one of a few words.
/// * An enum with data is a choice. A choice that is a field is written as the element of its
///   variant. A choice that is a payload has a root element that contains the element of its
///   variant.
/// * A struct around one unnamed scalar is written as that scalar.
#[proc_macro_derive(Payload, attributes(payload))]
pub fn derive_payload(input: TokenStream) -> TokenStream {
    let mut errors = error::Errors::default();
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    let input = parse::input(&input, &mut errors);
    if let Some(input) = &input {
        check::input(input, &mut errors);
    }
    match (input, errors.into_tokens()) {
        (Some(input), None) => expand::input(&input).into(),
        (_, errors) => errors.unwrap_or_default().into(),
    }
}

/// Lets a struct be an argument of handlers. Each field is taken from the message's context.
///
/// ```text
/// #[derive(FromContext)]
/// struct Tally {
///     message: Message,
///     sums: Fold<Sums>,
/// }
///
/// async fn add(tally: Tally, Add { a, b }: Add) -> Sum { … }
/// ```
///
/// The struct needs what its fields need, such as grants. `build()` checks these needs. The struct
/// must have named fields, each of which implements `FromContext`. With a field of type `State<T>`,
/// the struct is only for listeners with a state of type `T`.
#[proc_macro_derive(FromContext)]
pub fn derive_from_context(input: TokenStream) -> TokenStream {
    composed(input, compose::from_context)
}

/// Lets handlers return a struct. The pump emits the struct's fields in the order of declaration.
///
/// ```text
/// #[derive(IntoEmit)]
/// struct Sent {
///     answers: Vec<Reply<Sum>>,
///     warning: Option<Note<Overflow>>,
/// }
/// ```
///
/// The struct emits the payloads that its fields emit. `build()` checks whether the listener may
/// emit these payloads. The struct must have named fields, each of which implements `IntoEmit`.
#[proc_macro_derive(IntoEmit)]
pub fn derive_into_emit(input: TokenStream) -> TokenStream {
    composed(input, compose::into_emit)
}

type Derive = fn(&syn::DeriveInput, &mut error::Errors) -> Option<proc_macro2::TokenStream>;

fn composed(input: TokenStream, derive: Derive) -> TokenStream {
    let mut errors = error::Errors::default();
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    match (derive(&input, &mut errors), errors.into_tokens()) {
        (Some(code), None) => code.into(),
        (_, errors) => errors.unwrap_or_default().into(),
    }
}
