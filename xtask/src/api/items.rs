//! The lines of an item: its own, and one for each field, variant or item of a
//! trait.

use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{
    Field, Fields, FnArg, Generics, Item, ItemEnum, ItemStruct, ItemTrait, Pat, ReceiverKind,
    Signature, TraitItem, Visibility,
};

use super::attrs::Marks;
use super::lines::{Line, Rank};
use super::names::Scope;

/// Writes the lines of one definition.
pub(super) struct Writer<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) path: Vec<String>,
    pub(super) marks: Marks,
    pub(super) lines: Vec<Line>,
}

impl Writer<'_> {
    pub(super) fn item(&mut self, item: &Item) {
        let text = match item {
            Item::Struct(item) => return self.structure(item),
            Item::Enum(item) => return self.enumeration(item),
            Item::Trait(item) => return self.interface(item),
            Item::Fn(item) => format!("pub {}", self.signature(&item.sig, &self.shown(), None)),
            Item::Const(item) => format!("pub const {}: {}", self.shown(), self.scope.ty(&item.ty)),
            Item::Static(item) => {
                format!("pub static {}: {}", self.shown(), self.scope.ty(&item.ty))
            }
            Item::Type(item) => {
                let head = self.head("type", &item.generics);
                let ty = self.scope.ty(&item.ty);
                head + " = " + &ty + &self.scope.wheres(&item.generics)
            }
            Item::Union(item) => self.head("union", &item.generics),
            Item::Macro(_) => format!("macro {}!", self.shown()),
            _ => return,
        };
        self.own(text);
    }

    fn structure(&mut self, item: &ItemStruct) {
        let head = self.head("struct", &item.generics);
        let private = |field: &Field| !is_public(field);
        let body = match &item.fields {
            Fields::Unnamed(_) => self.tuple(&item.fields),
            fields if fields.iter().any(private) => " { .. }".to_owned(),
            _ => String::new(),
        };
        let wheres = self.scope.wheres(&item.generics);
        self.own(head + &body + &wheres);
        for field in item.fields.iter().filter(|field| is_public(field)) {
            if let Some(name) = &field.ident {
                let path = self.under(name);
                let text = format!("pub {}: {}", path.join("::"), self.scope.ty(&field.ty));
                self.part(path, &Marks::of(&field.attrs), text);
            }
        }
    }

    fn tuple(&mut self, fields: &Fields) -> String {
        let each = fields.iter().map(|field| match is_public(field) {
            true => format!("pub {}", self.scope.ty(&field.ty)),
            false => "_".to_owned(),
        });
        format!("({})", each.collect::<Vec<_>>().join(", "))
    }

    fn enumeration(&mut self, item: &ItemEnum) {
        let head = self.head("enum", &item.generics);
        let wheres = self.scope.wheres(&item.generics);
        self.own(head + &wheres);
        for variant in &item.variants {
            let path = self.under(&variant.ident);
            let mut fields = variant.fields.clone();
            match &mut fields {
                Fields::Named(fields) => drop(fields.named.pop_punct()),
                Fields::Unnamed(fields) => drop(fields.unnamed.pop_punct()),
                Fields::Unit => {}
            }
            let space = if matches!(fields, Fields::Named(_)) {
                " "
            } else {
                ""
            };
            let body = self.scope.show(fields, Scope::visit_fields_mut);
            let text = format!("pub {}{space}{body}", path.join("::"));
            self.part(path, &Marks::of(&variant.attrs), text);
        }
    }

    fn interface(&mut self, item: &ItemTrait) {
        let word = if item.unsafety.is_some() {
            "unsafe trait"
        } else {
            "trait"
        };
        let head = self.head(word, &item.generics);
        let mut bounds = quote!();
        for bound in &item.supertraits {
            let mut bound = bound.clone();
            self.scope.visit_type_param_bound_mut(&mut bound);
            bounds.extend(if bounds.is_empty() {
                quote!(: #bound)
            } else {
                quote!(+ #bound)
            });
        }
        let wheres = self.scope.wheres(&item.generics);
        self.own(head + &super::text::show(bounds) + &wheres);
        for item in &item.items {
            self.trait_item(item);
        }
    }

    /// An item with a default ends in `{ .. }`: implementors may leave it out.
    fn trait_item(&mut self, item: &TraitItem) {
        let (name, attrs, given) = match item {
            TraitItem::Fn(item) => (&item.sig.ident, &item.attrs, item.default.is_some()),
            TraitItem::Type(item) => (&item.ident, &item.attrs, item.default.is_some()),
            TraitItem::Const(item) => (&item.ident, &item.attrs, item.default.is_some()),
            _ => return,
        };
        let path = self.under(name);
        let shown = path.join("::");
        let text = match item {
            TraitItem::Fn(item) => format!("pub {}", self.signature(&item.sig, &shown, None)),
            TraitItem::Const(item) => format!("pub const {shown}: {}", self.scope.ty(&item.ty)),
            TraitItem::Type(item) => {
                let mut item = item.clone();
                self.scope.visit_trait_item_type_mut(&mut item);
                let (generics, colon, bounds) = (&item.generics, &item.colon_token, &item.bounds);
                let rest = super::text::show(quote!(#generics #colon #bounds));
                format!("pub type {shown}{rest}")
            }
            _ => return,
        };
        let given = if given { " { .. }" } else { "" };
        self.part(path, &Marks::of(attrs), text + given);
    }

    /// A function from `const` to its last bound, under another name. The
    /// bounds of the impl block that it stands in are added to its own.
    pub(super) fn signature(
        &mut self,
        sig: &Signature,
        name: &str,
        block: Option<&Generics>,
    ) -> String {
        let mut sig = sig.clone();
        plain_arguments(&mut sig);
        let outer = block.and_then(|generics| generics.where_clause.clone());
        if let Some(outer) = outer {
            let own = sig.generics.make_where_clause();
            own.predicates.extend(outer.predicates);
        }
        self.scope.enter(&sig.generics);
        let wheres = self.scope.wheres(&sig.generics);
        self.scope.visit_signature_mut(&mut sig);
        let (constness, asyncness, safety) = (&sig.constness, &sig.asyncness, &sig.safety);
        let (abi, generics, inputs, output) = (&sig.abi, &sig.generics, &sig.inputs, &sig.output);
        let words = super::text::show(quote!(#constness #asyncness #safety #abi fn));
        let params = super::text::show(generics.to_token_stream());
        let rest = super::text::show(quote!((#inputs) #output));
        format!("{words} {name}{params}{rest}{wheres}")
    }

    /// `pub word path<T>`.
    fn head(&mut self, word: &str, generics: &Generics) -> String {
        self.scope.enter(generics);
        format!(
            "pub {word} {}{}",
            self.shown(),
            self.scope.generics(generics)
        )
    }

    pub(super) fn shown(&self) -> String {
        self.path.join("::")
    }

    pub(super) fn under(&self, name: &impl ToString) -> Vec<String> {
        let mut path = self.path.clone();
        path.push(name.to_string());
        path
    }

    fn own(&mut self, text: String) {
        let line = Line::new(self.path.clone(), Rank::Item, &self.marks, text);
        self.lines.push(line);
    }

    /// Adds a line below the item's; it bears the conditions of both.
    pub(super) fn part(&mut self, path: Vec<String>, marks: &Marks, text: String) {
        let marks = self.marks.inherited().with(marks);
        self.lines.push(Line::new(path, Rank::Item, &marks, text));
    }
}

fn is_public(field: &Field) -> bool {
    matches!(field.vis, Visibility::Public(_))
}

/// Takes away the concerns of the body: `mut`, patterns, and the comma behind
/// the last argument.
fn plain_arguments(sig: &mut Signature) {
    sig.inputs.pop_punct();
    for input in &mut sig.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                if !matches!(receiver.kind, ReceiverKind::Reference(..)) {
                    receiver.mutability = None;
                }
            }
            FnArg::Typed(typed) => match &mut *typed.pat {
                Pat::Ident(pat) => {
                    pat.mutability = None;
                    pat.by_ref = None;
                }
                other => *other = Pat::Verbatim(quote!(_)),
            },
        }
    }
}
