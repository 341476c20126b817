//! The lines of derives: one would write the same impls by hand.

use syn::{GenericParam, Generics, Item, Type};

use super::attrs;
use super::impls::Plain;
use super::items::Writer;
use super::lines::{Line, Rank};

/// Adds the derives of a type.
pub(super) fn derives(writer: &mut Writer<'_>, item: &Item, plain: &mut Plain) {
    let (attrs, generics) = match item {
        Item::Struct(item) => (&item.attrs, &item.generics),
        Item::Enum(item) => (&item.attrs, &item.generics),
        _ => return,
    };
    let marks = writer.marks.inherited();
    let ty = writer.shown() + &elided(generics);
    let line = |writer: &Writer<'_>, text| Line::new(writer.path.clone(), Rank::Impl, &marks, text);
    for path in attrs::derives(attrs) {
        let shown = writer.scope.path(&path);
        for name in traits(&shown) {
            if generics.type_params().next().is_none() && marks.is_empty() {
                plain.add(&writer.path, &ty, name);
            } else {
                let text = bounded(name, &writer.shown(), generics);
                writer.lines.push(line(writer, text));
            }
        }
    }
    for source in sources(item) {
        let text = format!("impl From<{}> for {ty}", writer.scope.ty(source));
        writer.lines.push(line(writer, text));
    }
}

/// The traits behind a derive, as impls by hand would name them.
fn traits(derive: &str) -> Vec<&str> {
    match derive {
        "Debug" => vec!["std::fmt::Debug"],
        "Hash" => vec!["std::hash::Hash"],
        "thiserror::Error" => vec!["std::error::Error", "std::fmt::Display"],
        other => vec![other],
    }
}

/// The arguments of a type whose lifetimes do not matter: `<'_>`.
fn elided(generics: &Generics) -> String {
    let arguments = generics.params.iter().map(|param| match param {
        GenericParam::Lifetime(_) => "'_".to_owned(),
        GenericParam::Type(param) => param.ident.to_string(),
        GenericParam::Const(param) => param.ident.to_string(),
    });
    match Vec::from_iter(arguments) {
        none if none.is_empty() => String::new(),
        some => format!("<{}>", some.join(", ")),
    }
}

/// `impl<T: Clone> Clone for Path<T>`: a derive asks the trait of every
/// parameter.
fn bounded(name: &str, path: &str, generics: &Generics) -> String {
    let params = generics.type_params();
    let params = params.map(|param| format!("{}: {name}", param.ident));
    let params = match Vec::from_iter(params) {
        none if none.is_empty() => String::new(),
        some => format!("<{}>", some.join(", ")),
    };
    format!("impl{params} {name} for {path}{}", elided(generics))
}

/// The types that thiserror's `#[from]` converts.
fn sources(item: &Item) -> Vec<&Type> {
    let fields: Vec<&syn::Field> = match item {
        Item::Struct(item) => item.fields.iter().collect(),
        Item::Enum(item) => {
            let variants = item.variants.iter();
            variants.flat_map(|variant| &variant.fields).collect()
        }
        _ => Vec::new(),
    };
    let from = fields
        .into_iter()
        .filter(|field| attrs::has(&field.attrs, "from"));
    from.map(|field| &field.ty).collect()
}
