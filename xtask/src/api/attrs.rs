//! The attributes that belong to the public API, and those that keep an item
//! out of it.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token};

use super::text;

/// The words before an item in the listing: its conditions, `#[doc(hidden)]`,
/// `#[non_exhaustive]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Marks(Vec<String>);

impl Marks {
    pub(super) fn of(attrs: &[Attribute]) -> Self {
        let marks = attrs.iter().filter_map(|attr| {
            let shown = text::show(attr.meta.to_token_stream());
            let counts = attr.path().is_ident("cfg")
                || attr.path().is_ident("non_exhaustive")
                || shown == "doc(hidden)";
            counts.then(|| format!("#[{shown}] "))
        });
        Self(marks.collect())
    }

    /// These and then the others, each once.
    pub(super) fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        let new = others.0.iter().filter(|mark| !self.0.contains(mark));
        all.0.extend(new.cloned());
        all
    }

    /// The marks that the parts of the item have, too. A feature is not
    /// one: the line of the item says it for its methods and fields.
    pub(super) fn inherited(&self) -> Self {
        let own = ["non_exhaustive", "cfg(feature"];
        let marks = self
            .0
            .iter()
            .filter(|mark| !own.iter().any(|own| mark.contains(own)));
        Self(marks.cloned().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn shown(&self) -> String {
        self.0.concat()
    }
}

/// Whether an item is there for tests only.
pub(super) fn only_for_tests(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let shown = text::show(attr.meta.to_token_stream());
        attr.path().is_ident("test") || shown == "cfg(test)" || shown.starts_with("cfg(all(test,")
    })
}

pub(super) fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident(name))
}

/// The derives of a type, as written.
pub(super) fn derives(attrs: &[Attribute]) -> Vec<Path> {
    let lists = attrs.iter().filter(|attr| attr.path().is_ident("derive"));
    let parsed = lists.filter_map(|attr| {
        attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
            .ok()
    });
    parsed.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_kept_and_advice_is_not() {
        let item: syn::ItemFn = syn::parse_quote! {
            #[must_use]
            #[cfg(feature = "tls")]
            #[doc(hidden)]
            fn f() {}
        };
        assert_eq!(
            Marks::of(&item.attrs).shown(),
            "#[cfg(feature = \"tls\")] #[doc(hidden)] "
        );
    }

    #[test]
    fn tests_are_known_by_their_condition() {
        let only: syn::ItemMod = syn::parse_quote!(
            #[cfg(all(test, unix))]
            mod m {}
        );
        let never: syn::ItemMod = syn::parse_quote!(
            #[cfg(not(test))]
            mod m {}
        );
        assert!(only_for_tests(&only.attrs));
        assert!(!only_for_tests(&never.attrs));
    }
}
