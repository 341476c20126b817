//! Aliases of types that users cannot name, written out in signatures.
//!
//! A private `type BoxError = Box<dyn Error>` is no secret: users write
//! `Box<dyn Error>`.

use syn::visit_mut::{self, VisitMut};
use syn::{GenericArgument, GenericParam, Item, ItemType, PathArguments, Type, TypePath};

use super::names::{Namer, Scope};
use super::resolve::Meaning;
use super::tree::{DefinitionId, What};

/// The alias that a type is by name, if users do not reach it, with its id.
pub(super) fn unreached<'a>(
    namer: &'a Namer<'a>,
    scope: &Scope<'_>,
    ty: &TypePath,
) -> Option<(DefinitionId, &'a ItemType)> {
    let found = scope.meaning(&ty.path)?;
    let Meaning::Definition(id) = found.what else {
        return None;
    };
    let definition = namer.tree.definition(id);
    match &definition.what {
        What::Item(item) if namer.reach.first(id).is_none() => match &**item {
            Item::Type(alias) => Some((id, alias)),
            _ => None,
        },
        _ => None,
    }
}

/// The type behind an alias with these arguments. `body` is that type with
/// parameters, and with paths as the listing has them.
pub(super) fn fill(alias: &ItemType, mut body: Type, ty: &TypePath) -> Type {
    let arguments = ty.path.segments.last().map(|last| &last.arguments);
    let given = match arguments {
        Some(PathArguments::AngleBracketed(list)) => list.args.iter().collect(),
        _ => Vec::new(),
    };
    let params = alias.generics.params.iter().zip(given);
    let types = params.filter_map(|(param, argument)| match (param, argument) {
        (GenericParam::Type(param), GenericArgument::Type(ty)) => {
            Some((param.ident.to_string(), ty.clone()))
        }
        _ => None,
    });
    Fill(types.collect()).visit_type_mut(&mut body);
    body
}

struct Fill(Vec<(String, Type)>);

impl VisitMut for Fill {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(path) = ty
            && let Some((_, given)) = self.0.iter().find(|(name, _)| path.path.is_ident(name))
        {
            *ty = given.clone();
            return;
        }
        visit_mut::visit_type_mut(self, ty);
    }
}
