//! Generates the code for a type: its schema, its writer and its reader. The module `check` has
//! already checked the type.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;

use crate::error;
use crate::parse::{Bare, Body, Field, Hold, Input, Place, Variant};

/// Generates the code of the derive. The code is in a block of its own, so that its names stay
/// private.
pub(crate) fn input(input: &Input) -> TokenStream {
    let parts = match &input.body {
        Body::Fields(fields) => structure(input, fields),
        Body::Newtype(ty) => newtype(input, ty),
        Body::Choice(variants) => choice(input, variants),
        Body::Words(variants) => words(input, variants),
    };
    let payload = payload(input);
    quote! {
        const _: () = {
            use ::pumphouse::wire::derive;
            #parts
            #payload
        };
    }
}

/// Generates the implementation of `Payload`. Generates nothing for a type without a namespace.
fn payload(Input { ident, name, options, .. }: &Input) -> TokenStream {
    let Some(namespace) = &options.namespace else { return TokenStream::new() };
    let (is_live, is_reserved) = (options.live.is_some(), options.reserved.is_some());
    let is_bookkeeping = options.bookkeeping.is_some();
    let live = options.live.as_ref().map(|_| {
        quote! {
            #[automatically_derived]
            #[diagnostic::do_not_recommend]
            impl derive::Live for #ident {}
        }
    });
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Payload for #ident {
            const NAME: derive::Name = derive::Name::of(#namespace, #name);

            fn schema() -> &'static derive::Schema {
                static SCHEMA: ::std::sync::LazyLock<derive::Schema> =
                    ::std::sync::LazyLock::new(|| {
                        let name = <#ident as derive::Payload>::NAME;
                        let shape = describe();
                        derive::schema(name, #is_live, #is_reserved, #is_bookkeeping, shape)
                    });
                &SCHEMA
            }

            fn write(&self, to: &mut derive::Writer) {
                derive::write_root(self, to);
            }

            fn read(
                element: derive::View<'_>,
            ) -> ::core::result::Result<Self, derive::Error> {
                derive::read_root(element)
            }
        }
        #live
    }
}

/// Generates the function `shape`, which returns the type's shape. The shape of a payload is a
/// field of the payload's schema. The shape of a part is a static.
fn shape(Input { ident, options, .. }: &Input) -> TokenStream {
    let kept = match &options.namespace {
        Some(_) => quote!(&<#ident as derive::Payload>::schema().shape),
        None => quote! {
            static SHAPE: ::std::sync::LazyLock<derive::Shape> =
                ::std::sync::LazyLock::new(describe);
            &SHAPE
        },
    };
    quote! {
        fn shape() -> &'static derive::Shape {
            #kept
        }
    }
}

fn structure(input: &Input, fields: &[Field]) -> TokenStream {
    let Input { ident, name, doc, .. } = input;
    let (shape, apart, described) = (shape(input), apart(ident, fields), described(fields));
    let write = written(fields, |it| {
        let name = &it.ident;
        quote!(&self.#name)
    });
    let read = read(&quote!(#ident), fields, &quote!(shape()));
    let has_key = fields.iter().any(|it| it.place == Place::Attribute && it.name == "key");
    quote! {
        fn describe() -> derive::Shape {
            let (attributes, content) = #described;
            derive::Shape::new(#name, #doc, attributes, content)
        }
        #shape
        #apart

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Part for #ident {
            const HAS_KEY: bool = #has_key;

            fn kind() -> derive::Kind {
                derive::Kind::Shape(derive::Link::of(shape))
            }

            fn write(&self, namespace: &str, to: &mut derive::Writer) {
                #write
            }

            fn read(at: derive::At<'_>) -> ::core::result::Result<Self, derive::Error> {
                #read
            }
        }

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Item for #ident {
            const NAMES: derive::Names = derive::Names::Field;

            fn kind() -> derive::Kind {
                <#ident as derive::Part>::kind()
            }

            fn write(&self, namespace: &str, local: &str, to: &mut derive::Writer) {
                derive::Part::write_as(self, namespace, local, to);
            }

            fn read(at: derive::At<'_>) -> ::core::result::Result<Self, derive::Error> {
                <#ident as derive::Part>::read(at)
            }
        }
    }
}

fn newtype(input: &Input, Bare { ty, facets }: &Bare) -> TokenStream {
    let Input { ident, doc, .. } = input;
    let text = quote_spanned!(ty.span()=> <#ty as derive::Text>);
    let parts = scalar(input, doc);
    let (mut made, mut asserted) = (quote!(#text::scalar()), TokenStream::new());
    if !facets.is_empty() {
        let data = facets.data();
        made = quote! {{
            static SCALAR: ::std::sync::LazyLock<derive::Scalar> =
                ::std::sync::LazyLock::new(|| derive::narrow_scalar(#text::scalar(), #data));
            ::core::clone::Clone::clone(&*SCALAR)
        }};
        let all = facets.asserted(&quote!(#text::FORM), false);
        asserted = all;
    }
    quote! {
        #asserted

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Text for #ident {
            const DOC: &'static str = #doc;
            const FORM: derive::Form = #text::FORM;

            fn scalar() -> derive::Scalar {
                #made
            }

            fn parse(text: ::std::borrow::Cow<'_, str>) -> ::core::option::Option<Self> {
                #text::parse(text).map(#ident)
            }

            fn with_text<R>(&self, then: impl ::core::ops::FnOnce(&str) -> R) -> R {
                #text::with_text(&self.0, then)
            }
        }
        #parts
    }
}

fn words(input: &Input, variants: &[Variant]) -> TokenStream {
    let Input { ident, name, doc, .. } = input;
    let (count, places) = (variants.len(), 0..variants.len());
    let idents: Vec<_> = variants.iter().map(|it| &it.ident).collect();
    let names: Vec<_> = variants.iter().map(|it| &it.name).collect();
    let docs = variants.iter().map(|it| &it.doc);
    let scalar = scalar(input, "");
    quote! {
        static LIST: [derive::Word; #count] = [#(derive::Word::of(#names, #docs)),*];
        static WORDS: derive::Words = derive::Words::of(#name, #doc, &LIST);

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Text for #ident {
            const FORM: derive::Form = derive::Form::Token;

            fn scalar() -> derive::Scalar {
                derive::words(&WORDS)
            }

            fn parse(text: ::std::borrow::Cow<'_, str>) -> ::core::option::Option<Self> {
                match WORDS.find(&text) {
                    #(::core::option::Option::Some(#places) => {
                        ::core::option::Option::Some(#ident::#idents)
                    })*
                    _ => ::core::option::Option::None,
                }
            }

            fn with_text<R>(&self, then: impl ::core::ops::FnOnce(&str) -> R) -> R {
                then(match self {
                    #(#ident::#idents => #names,)*
                })
            }
        }
        #scalar
    }
}

/// Generates the implementations of `Part` and `Item` for a type that implements `Text`. For a
/// payload, also generates the function `describe`, which returns the shape of the root element.
///
/// `said` is the type's doc comment. It is empty if the type's scalar already has the comment.
fn scalar(Input { ident, name, doc, options, .. }: &Input, said: &str) -> TokenStream {
    let describe = options.namespace.as_ref().map(|_| {
        quote! {
            fn describe() -> derive::Shape {
                let content = <#ident as derive::Text>::describe("", "");
                derive::Shape::new(#name, #doc, ::std::vec::Vec::new(), content)
            }
        }
    });
    quote! {
        #describe

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Part for #ident {
            const DOC: &'static str = #said;
            const FORM: derive::Form = <#ident as derive::Text>::FORM;

            fn kind() -> derive::Kind {
                derive::text_kind::<#ident>()
            }

            fn write(&self, _: &str, to: &mut derive::Writer) {
                derive::Text::write(self, to);
            }

            fn read(at: derive::At<'_>) -> ::core::result::Result<Self, derive::Error> {
                derive::read_text(at)
            }
        }

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Item for #ident {
            const DOC: &'static str = #said;
            const FORM: derive::Form = <#ident as derive::Text>::FORM;
            const NAMES: derive::Names = derive::Names::Field;

            fn kind() -> derive::Kind {
                derive::text_kind::<#ident>()
            }

            fn write(&self, namespace: &str, local: &str, to: &mut derive::Writer) {
                derive::Part::write_as(self, namespace, local, to);
            }

            fn read(at: derive::At<'_>) -> ::core::result::Result<Self, derive::Error> {
                derive::read_text(at)
            }
        }
    }
}

fn choice(input: &Input, variants: &[Variant]) -> TokenStream {
    let Input { ident, name, doc, .. } = input;
    let (shape, names) = (shape(input), variants.iter().map(|it| &it.name));
    let described = variants.iter().map(described_variant);
    let written = variants.iter().map(|it| written_variant(ident, it));
    let read = variants.iter().enumerate().map(|(place, it)| read_variant(ident, place, it));
    let apart = variants.iter().map(|it| match &it.body {
        Hold::Fields(fields) => apart(&it.ident, fields),
        Hold::One(it) if !it.facets.is_empty() => {
            let (ty, span) = (&it.ty, it.ty.span());
            let part = quote_spanned!(span=> <#ty as derive::Part>);
            it.facets.asserted(&quote!(#part::FORM), false)
        }
        Hold::Nothing | Hold::One(_) => TokenStream::new(),
    });
    quote! {
        fn describe() -> derive::Shape {
            let variants = ::std::vec![#(#described),*];
            let content = derive::Content::Choice(variants);
            derive::Shape::new(#name, #doc, ::std::vec::Vec::new(), content)
        }
        #shape
        #(#apart)*

        fn variant(
            found: &derive::Found<'_>,
        ) -> ::core::result::Result<#ident, derive::Error> {
            match found.index {
                #(#read)*
                _ => ::core::result::Result::Err(found.at.incomplete()),
            }
        }

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Part for #ident {
            fn kind() -> derive::Kind {
                derive::Kind::Shape(derive::Link::of(shape))
            }

            fn write(&self, namespace: &str, to: &mut derive::Writer) {
                match self { #(#written)* }
            }

            fn read(at: derive::At<'_>) -> ::core::result::Result<Self, derive::Error> {
                derive::read_choice(shape(), at, variant)
            }
        }

        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl derive::Item for #ident {
            const NAMES: derive::Names = derive::Names::Own(&[#(#names),*]);

            fn kind() -> derive::Kind {
                derive::Kind::Choice(derive::Link::of(shape))
            }

            fn write(&self, namespace: &str, _: &str, to: &mut derive::Writer) {
                derive::Part::write(self, namespace, to);
            }

            fn read(at: derive::At<'_>) -> ::core::result::Result<Self, derive::Error> {
                variant(&derive::choose(shape(), at)?)
            }
        }
    }
}

fn described_variant(Variant { name, doc, body, .. }: &Variant) -> TokenStream {
    match body {
        Hold::One(it) => {
            let (ty, span) = (&it.ty, it.ty.span());
            let part = quote_spanned!(span=> <#ty as derive::Part>);
            let described = quote!(#part::describe(#name, #doc));
            if it.facets.is_empty() {
                return described;
            }
            let data = it.facets.data();
            quote!(derive::narrow(#described, #data))
        }
        Hold::Nothing => quote! {
            derive::fields(#name, #doc, ::std::vec::Vec::new(), derive::Content::Empty)
        },
        Hold::Fields(fields) => {
            let described = described(fields);
            quote!({
                let (attributes, content) = #described;
                derive::fields(#name, #doc, attributes, content)
            })
        }
    }
}

fn written_variant(owner: &Ident, Variant { ident, name, body, .. }: &Variant) -> TokenStream {
    match body {
        Hold::Nothing => quote! {
            #owner::#ident => {
                to.start(namespace, #name);
                to.end();
            }
        },
        Hold::One(it) => {
            let (ty, span) = (&it.ty, it.ty.span());
            let part = quote_spanned!(span=> <#ty as derive::Part>);
            quote!(#owner::#ident(it) => #part::write_as(it, namespace, #name, to),)
        }
        Hold::Fields(fields) => {
            let (names, slots) = (fields.iter().map(|it| &it.ident), slots(fields));
            let places: Vec<_> = fields.iter().map(|it| &it.ident).zip(&slots).collect();
            let written = written(fields, |it| {
                let slot = places.iter().find(|(ident, _)| **ident == it.ident);
                let slot = slot.map(|(_, slot)| slot);
                quote!(#slot)
            });
            quote! {
                #owner::#ident { #(#names: #slots),* } => {
                    to.start(namespace, #name);
                    #written
                    to.end();
                }
            }
        }
    }
}

fn read_variant(owner: &Ident, place: usize, Variant { ident, body, .. }: &Variant) -> TokenStream {
    match body {
        Hold::Nothing => quote! {
            #place => derive::read_nothing(found).map(|()| #owner::#ident),
        },
        Hold::One(it) => {
            let (ty, span) = (&it.ty, it.ty.span());
            let part = quote_spanned!(span=> <#ty as derive::Part>);
            quote!(#place => #part::read(found.at).map(#owner::#ident),)
        }
        Hold::Fields(fields) => {
            let path = quote!(#owner::#ident);
            let read = read(&path, fields, &quote!(derive::inner(found)));
            quote! {
                #place => {
                    let at = found.at;
                    #read
                }
            }
        }
    }
}

/// Generates the part of a shape that describes these fields: the attributes and the content.
fn described(fields: &[Field]) -> TokenStream {
    let describe = |place| {
        let all = fields.iter().filter(move |it| it.place == place);
        all.map(move |it| {
            let (part, Field { name, doc, .. }) = (part(it), it);
            let mut described = quote!(#part::describe(#name, #doc));
            if it.options.no_example.is_some() && place != Place::Text {
                described = quote!(derive::without_example(#described));
            }
            if !it.options.facets.is_empty() {
                let data = it.options.facets.data();
                described = match place {
                    Place::Text => quote!(derive::narrow_text(#described, #data)),
                    _ => quote!(derive::narrow(#described, #data)),
                };
            }
            match (&it.options.value, &it.options.note, place) {
                (Some(_), _, Place::Text) => quote!(derive::value_text(#described)),
                (Some(_), ..) => quote!(derive::value(#described)),
                (None, Some(_), Place::Text) => quote!(derive::note_text(#described)),
                (None, Some(_), _) => quote!(derive::note(#described)),
                (None, None, _) => described,
            }
        })
    };
    let attributes = describe(Place::Attribute);
    let elements: Vec<_> = describe(Place::Element).collect();
    let content = match describe(Place::Text).next() {
        Some(text) => text,
        None if elements.is_empty() => quote!(derive::Content::Empty),
        None => quote!(derive::Content::Sequence(::std::vec![#(#elements),*])),
    };
    quote!((::std::vec![#(#attributes),*], #content))
}

/// Generates `<Type as Trait>` for a field's type. The trait depends on the field's place. Each
/// call generates the same tokens with the same span, so that the compiler reports a wrong type
/// once.
fn part(Field { ty, place, options, .. }: &Field) -> TokenStream {
    match place {
        Place::Attribute if options.list.is_some() => {
            quote_spanned!(ty.span()=> <#ty as derive::ListAttribute>)
        }
        Place::Text if options.list.is_some() => {
            quote_spanned!(ty.span()=> <#ty as derive::ListText>)
        }
        Place::Element if options.list.is_some() => {
            quote_spanned!(ty.span()=> <#ty as derive::ListItems>)
        }
        Place::Attribute => quote_spanned!(ty.span()=> <#ty as derive::Attribute>),
        Place::Text => quote_spanned!(ty.span()=> <#ty as derive::Text>),
        Place::Element => quote_spanned!(ty.span()=> <#ty as derive::Items>),
    }
}

/// Generates assertions that a reader can tell the elements of the fields apart. A field with a
/// choice has the element names of the choice's variants. These names must differ from the names of
/// the other fields. Also generates assertions that the options of each field fit the field's type.
fn apart(ident: &Ident, fields: &[Field]) -> TokenStream {
    let narrowed = narrowed(fields);
    let elements: Vec<_> = fields.iter().filter(|it| it.place == Place::Element).collect();
    if elements.len() < 2 {
        return narrowed;
    }
    let stands = elements.iter().map(|it| {
        let (part, name) = (part(it), &it.name);
        quote!(derive::Stand::of(#name, #part::NAMES, #part::OCCURS))
    });
    let one_name = format!(
        "two fields of `{ident}` stand under one name: a field is called as a variant of a choice \
         beside it, or two choices have a variant in common; give one of them another name with \
         `#[payload(rename = \"…\")]`",
    );
    let unclear = format!(
        "`{ident}` has an `Element` behind one that is optional or repeated: a reader cannot tell \
         which is which; put the `Element` before it, or into a part of its own",
    );
    quote_spanned! {ident.span()=>
        #narrowed
        const _: () = {
            const STANDS: &[derive::Stand] = &[#(#stands),*];
            ::core::assert!(derive::are_apart(STANDS), #one_name);
            ::core::assert!(derive::are_clear(STANDS), #unclear);
        };
    }
}

fn narrowed(fields: &[Field]) -> TokenStream {
    let all = fields.iter().map(|it| {
        let part = part(it);
        let form = quote!(#part::FORM);
        let asserted = it.options.facets.asserted(&form, it.options.list.is_some());
        let list = it.options.list.as_ref().map(|option| {
            let message = error::FOR_LIST;
            quote_spanned! {option.span()=>
                const _: () = ::core::assert!(derive::takes_list(#form), #message);
            }
        });
        let is_map = it.ty.to_token_stream().to_string().contains("BTreeMap");
        let map = (is_map && it.place == Place::Element).then(|| {
            let message = error::TWO_KEYS;
            quote_spanned! {it.ty.span()=>
                const _: () = ::core::assert!(!#part::HAS_TWO_KEYS, #message);
            }
        });
        quote!(#list #map #asserted)
    });
    all.collect()
}

/// Generates code that writes the attributes, and then the content. `reach` generates a reference
/// to a field's value.
fn written(fields: &[Field], reach: impl Fn(&Field) -> TokenStream) -> TokenStream {
    let all = in_order(fields).into_iter().map(|it| {
        let (part, value, name) = (part(it), reach(it), &it.name);
        match it.place {
            Place::Attribute => quote!(#part::write(#value, #name, to);),
            Place::Text => quote!(#part::write(#value, to);),
            Place::Element => quote!(#part::write(#value, namespace, #name, to);),
        }
    });
    let unused = fields.iter().all(|it| it.place != Place::Element);
    let unused = unused.then(|| quote!(let _ = (namespace, &to);));
    quote!(#unused #(#all)*)
}

/// Generates code that reads an element. The code fills one variable for each field, called a slot,
/// and then makes the value from the slots.
fn read(path: &TokenStream, fields: &[Field], shape: &TokenStream) -> TokenStream {
    if fields.is_empty() {
        return quote! {
            derive::walk(#shape, at, &mut |_| ::core::result::Result::Ok(()))?;
            ::core::result::Result::Ok(#path {})
        };
    }
    let fields = in_order(fields);
    let slots = slots(fields.iter().copied());
    let (mut empty, mut fill, mut finish) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (field, slot)) in fields.iter().zip(&slots).enumerate() {
        let (part, ident) = (part(field), &field.ident);
        let there = field.ty.span();
        let into = quote_spanned!(there=> &mut #slot);
        empty.push(quote_spanned!(there=> let mut #slot = #part::slot();));
        fill.push(quote!(#index => #part::fill(#into, &found),));
        finish.push(quote!(#ident: #part::finish(#slot, at)?,));
    }
    quote! {
        #(#empty)*
        derive::walk(#shape, at, &mut |found| match found.index {
            #(#fill)*
            _ => ::core::result::Result::Ok(()),
        })?;
        ::core::result::Result::Ok(#path { #(#finish)* })
    }
}

/// Sorts attributes before content. `derive::walk` finds the fields in the same order.
fn in_order(fields: &[Field]) -> Vec<&Field> {
    let mut all: Vec<_> = fields.iter().collect();
    all.sort_by_key(|it| it.place != Place::Attribute);
    all
}

/// Returns the identifiers of the slots, one for each field. Each has the span of the field's type.
fn slots<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Vec<Ident> {
    let slot = |(at, field): (usize, &Field)| Ident::new(&format!("__slot_{at}"), field.ty.span());
    fields.into_iter().enumerate().map(slot).collect()
}
