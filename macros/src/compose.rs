//! Expands `#[derive(FromContext)]` and `#[derive(IntoEmit)]`. Both derives process the fields in
//! the order of declaration.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, FieldsNamed, parse_quote};

use crate::error::{self, Errors};

/// Implements `FromContext`: each field comes from the message's context.
pub(crate) fn from_context(input: &DeriveInput, errors: &mut Errors) -> Option<TokenStream> {
    let fields = named(input, errors)?;
    let (names, types) = parts(fields);
    let (ident, types) = (&input.ident, &types);
    let (_, ty_generics, _) = input.generics.split_for_impl();
    let state = format_ident!("__S");
    let mut generics = input.generics.clone();
    generics.params.push(parse_quote!(#state));
    let bounds = &mut generics.make_where_clause().predicates;
    for ty in types {
        bounds.push(parse_quote!(#ty: ::pumphouse::listener::FromContext<#state>));
    }
    let (impl_generics, _, bounds) = generics.split_for_impl();
    Some(quote! {
        #[automatically_derived]
        impl #impl_generics ::pumphouse::listener::FromContext<#state> for #ident #ty_generics
        #bounds
        {
            fn needs() -> ::std::vec::Vec<::pumphouse::listener::Need> {
                let mut needs = ::std::vec::Vec::new();
                #(needs.extend(
                    <#types as ::pumphouse::listener::FromContext<#state>>::needs(),
                );)*
                needs
            }

            fn from_context(
                context: &::pumphouse::listener::Context<#state>,
            ) -> ::std::result::Result<Self, ::pumphouse::Fault> {
                ::std::result::Result::Ok(#ident {
                    #(#names: <#types as ::pumphouse::listener::FromContext<#state>>
                        ::from_context(context)?,)*
                })
            }
        }
    })
}

/// Implements `IntoEmit`: the fields are emitted in the order of declaration.
pub(crate) fn into_emit(input: &DeriveInput, errors: &mut Errors) -> Option<TokenStream> {
    let fields = named(input, errors)?;
    let (names, types) = parts(fields);
    let (ident, types) = (&input.ident, &types);
    let (impl_generics, ty_generics, bounds) = input.generics.split_for_impl();
    Some(quote! {
        #[automatically_derived]
        impl #impl_generics ::pumphouse::listener::IntoEmit for #ident #ty_generics #bounds {
            fn into_emit(self) -> ::pumphouse::listener::Emit {
                let mut emissions = ::pumphouse::listener::Emit::new();
                #(emissions.extend(::pumphouse::listener::IntoEmit::into_emit(self.#names));)*
                emissions
            }

            fn emits() -> ::std::vec::Vec<::pumphouse::listener::Need> {
                let mut needs = ::std::vec::Vec::new();
                #(needs.extend(<#types as ::pumphouse::listener::IntoEmit>::emits());)*
                needs
            }
        }
    })
}

/// Returns the fields of a struct with named fields. Reports an error for any other type.
fn named<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<&'a FieldsNamed> {
    if let Data::Struct(data) = &input.data
        && let Fields::Named(fields) = &data.fields
    {
        return Some(fields);
    }
    errors.push(&input.ident, error::NO_NAMED_FIELDS);
    None
}

fn parts(fields: &FieldsNamed) -> (Vec<&syn::Ident>, Vec<&syn::Type>) {
    let names = fields.named.iter().filter_map(|field| field.ident.as_ref());
    (names.collect(), fields.named.iter().map(|field| &field.ty).collect())
}
