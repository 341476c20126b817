//! The tokens that a variable of a pattern takes from the input, by its kind.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};

pub(super) fn read(kind: &str, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    match kind {
        "ident" => Ok(syn::Ident::parse_any(input)?.into_token_stream()),
        "block" => tokens::<syn::Block>(input),
        "expr" => tokens::<syn::Expr>(input),
        "item" => tokens::<syn::Item>(input),
        "lifetime" => tokens::<syn::Lifetime>(input),
        "literal" => tokens::<syn::Lit>(input),
        "meta" => tokens::<syn::Meta>(input),
        "path" => tokens::<syn::Path>(input),
        "tt" => tokens::<TokenTree>(input),
        "ty" => tokens::<syn::Type>(input),
        "vis" => tokens::<syn::Visibility>(input),
        other => Err(input.error(format!(
            "a variable of kind `{other}`, which is not known here"
        ))),
    }
}

fn tokens<T: Parse + ToTokens>(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    Ok(input.parse::<T>()?.into_token_stream())
}
