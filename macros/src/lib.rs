//! `#[derive(Payload)]`: a type's own words become its schema, its XML and back.
//! `#[derive(FromContext)]` and `#[derive(IntoEmit)]`: what a handler takes and emits, as structs.

mod check;
mod compose;
mod error;
mod expand;
mod facets;
mod parse;
#[allow(unreachable_pub, reason = "a copy of the library's, where it is public")]
mod pattern;

use proc_macro::TokenStream;

/// Makes a type a payload, or a part of one.
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
/// is written `<add xmlns="https://xml-pipeline.org/ns/calculator/v1"><a>1</a><b>2</b></add>`.
///
/// The doc comment is the specification; a type has to have one, a field may.
/// Types and variants become kebab-case, fields stay as written.
/// Fields stand in the order in which they are declared, and are read in no other.
///
/// On a type:
///
/// * `ns = "…"`: the namespace. With it the type is a payload; without, a part of payloads.
/// * `rename = "…"`: another name for the root element.
/// * `live`: may be sent past the log, to those who follow now.
/// * `reserved`: takes the grant `emit:core` to send.
/// * `bookkeeping`: no prompt shows it, and `clear-context` doesn't count it: it keeps an account
///   of the work, as a charge does.
///
/// On a field:
///
/// * `attribute`: an attribute, not an element.
/// * `text`: the text between the tags.
/// * `rename = "…"`: another name. Variants may be renamed too.
///
/// * `list`: a `Vec` of scalars in one text, with spaces between them, not one element each.
/// * `pattern = "…"`: what the whole text matches, as XSD writes it.
/// * `one_of("a", "b")`, `one_of(1, 2)`: the texts or whole numbers it may be.
/// * `min = …`, `max = …`: the least and the greatest number.
/// * `length = …`, `min_length = …`, `max_length = …`: characters of a text, bytes of `Bytes`,
///   items of a `list`.
/// * `digits = …`, `fraction_digits = …`: the most digits, and the most behind the point.
/// * `example = "…"`: a text that is right, where none can be thought of.
/// * `no_example`: an example of the whole leaves it out, if it may be missing: for what stands
///   in another field's stead.
/// * `value`: the payload's value, which stands for the payload wherever its result is asked for:
///   in `${id}`, in `action-result`, in feeds and in prompts. One field at the most. Without it,
///   the value of a payload with a single scalar is that scalar, else the whole as JSON.
///
/// What narrows a field narrows each item of a `Vec`. A struct around one unnamed scalar, and a
/// variant around one, may be narrowed too: `struct Percent(#[payload(max = 100)] u8);`. A value
/// that breaks its own facets is not written.
///
/// A field is a `String`, `bool`, `char`, number, `Bytes` (base64), `Timestamp`, `SignedDuration`,
/// `Uuid`, another type that derives `Payload`, an `Element` (any one element), a
/// `BTreeMap<String, …>` of one of these, or an `Option`, `Vec` or `Box` of one of these.
/// An enum without data is one of a few words.
/// An enum with data is a choice: as a field one of its variants' elements stands there directly;
/// as a payload the root holds one of them.
/// A struct around one unnamed scalar is that scalar.
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

/// Makes a struct an argument of handlers: each of its fields is taken from the message's context.
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
/// The struct needs what its fields need, and `build()` checks that. It names its fields; each of
/// them implements `FromContext`. A field of type `State<T>` makes it an argument of listeners
/// with a state of type `T` only.
#[proc_macro_derive(FromContext)]
pub fn derive_from_context(input: TokenStream) -> TokenStream {
    composed(input, compose::from_context)
}

/// Makes a struct something that handlers return: it emits each of its fields, in their order.
///
/// ```text
/// #[derive(IntoEmit)]
/// struct Sent {
///     answers: Vec<Reply<Sum>>,
///     warning: Option<Note<Overflow>>,
/// }
/// ```
///
/// It emits what its fields emit, and `build()` checks that. It names its fields; each of them
/// implements `IntoEmit`.
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
