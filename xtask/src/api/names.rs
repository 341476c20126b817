//! Paths in signatures, written as users of the crate would write them.
//!
//! `Name`, `name::Name` and `crate::name::Name` become one path, so the listing
//! changes when a type does and not when an import does.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{GenericParam, Generics, Ident, Path, PathArguments, PathSegment};

use super::alias;
use super::reach::Reach;
use super::resolve::{Found, Meaning};
use super::text;
use super::tree::{DefinitionId, ModuleId, Tree};

/// Names definitions for the users of one crate.
pub(super) struct Namer<'a> {
    pub(super) tree: &'a Tree,
    pub(super) reach: &'a Reach,
    /// The reach of each crate, for names in other crates.
    pub(super) others: &'a [Reach],
}

impl Namer<'_> {
    /// The path by which users reach a definition. Where they do not, the path
    /// in its own crate.
    pub(super) fn name(&self, id: DefinitionId) -> Vec<String> {
        let own = self.reach.first(id);
        own.map_or_else(|| self.home_name(id), |way| way.path.clone())
    }

    /// The path of a definition for users of the crate that has it.
    pub(super) fn home_name(&self, id: DefinitionId) -> Vec<String> {
        let home = self.tree.home(id);
        let ways = self.others.iter().filter_map(|reach| reach.first(id));
        let mut at_home = ways.filter(|way| way.path[0] == home);
        let way = at_home.next().map(|way| way.path.clone());
        way.unwrap_or_else(|| self.tree.source_path(id))
    }
}

/// A place in the source from which paths are read.
pub(super) struct Scope<'a> {
    namer: &'a Namer<'a>,
    module: ModuleId,
    /// Names that stand for themselves: parameters, and `Self`.
    own: Vec<String>,
    /// Every definition that a path led to.
    pub(super) mentioned: BTreeSet<DefinitionId>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(namer: &'a Namer<'a>, module: ModuleId) -> Self {
        Self {
            namer,
            module,
            own: vec!["Self".to_owned()],
            mentioned: BTreeSet::new(),
        }
    }

    /// Parameters hide names of the module.
    pub(super) fn enter(&mut self, generics: &Generics) {
        self.own
            .extend(generics.params.iter().filter_map(|param| match param {
                GenericParam::Type(param) => Some(param.ident.to_string()),
                GenericParam::Const(param) => Some(param.ident.to_string()),
                GenericParam::Lifetime(_) => None,
            }));
    }

    /// The meaning of a path where a type or trait stands.
    pub(super) fn meaning(&self, path: &Path) -> Option<Found> {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|one| one.ident.to_string())
            .collect();
        if names.first().is_none_or(|first| self.own.contains(first)) {
            return None;
        }
        let tree = self.namer.tree;
        let found = tree.resolve(self.module, &names);
        let is_type = |found: &&Found| match found.what {
            Meaning::Definition(id) => {
                let definition = tree.definition(id);
                definition.is_type() && definition.as_module().is_none()
            }
            _ => false,
        };
        let best = found.iter().find(is_type).or_else(|| found.first());
        best.cloned()
    }

    /// A piece of a signature on one line.
    pub(super) fn show<T: ToTokens>(
        &mut self,
        mut piece: T,
        visit: impl FnOnce(&mut Self, &mut T),
    ) -> String {
        visit(self, &mut piece);
        text::show(piece.into_token_stream())
    }

    pub(super) fn ty(&mut self, ty: &syn::Type) -> String {
        self.show(ty.clone(), Self::visit_type_mut)
    }

    pub(super) fn path(&mut self, path: &Path) -> String {
        self.show(path.clone(), Self::visit_path_mut)
    }

    /// The parameters, `<'a, T: Bound>`.
    pub(super) fn generics(&mut self, generics: &Generics) -> String {
        self.show(generics.clone(), Self::visit_generics_mut)
    }

    /// ` where T: Bound`, or nothing.
    pub(super) fn wheres(&mut self, generics: &Generics) -> String {
        let Some(mut clause) = generics.where_clause.clone() else {
            return String::new();
        };
        clause.predicates.pop_punct();
        format!(" {}", self.show(clause, Self::visit_where_clause_mut))
    }
}

impl VisitMut for Scope<'_> {
    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        let alias = match ty {
            syn::Type::Path(path) => alias::unreached(self.namer, self, path),
            _ => None,
        };
        visit_mut::visit_type_mut(self, ty);
        if let (Some((id, alias)), syn::Type::Path(path)) = (alias, &*ty) {
            let mut inside = Scope::new(self.namer, self.namer.tree.definition(id).module);
            inside.enter(&alias.generics);
            let mut body = (*alias.ty).clone();
            inside.visit_type_mut(&mut body);
            self.mentioned.remove(&id);
            self.mentioned.append(&mut inside.mentioned);
            *ty = alias::fill(alias, body, path);
        }
    }

    fn visit_path_mut(&mut self, path: &mut Path) {
        let found = self.meaning(path);
        visit_mut::visit_path_mut(self, path);
        let Some(found) = found else { return };
        let names = match found.what {
            Meaning::Outside(names) => names,
            Meaning::Module(id) => self.namer.tree.module(id).path.clone(),
            Meaning::Definition(id) => {
                self.mentioned.insert(id);
                self.namer.name(id)
            }
        };
        replace(path, found.used, &names);
    }

    fn visit_attributes_mut(&mut self, attrs: &mut Vec<syn::Attribute>) {
        attrs.clear();
    }
}

/// Puts names in the place of the first segments; the arguments of the last of
/// them stay.
fn replace(path: &mut Path, used: usize, names: &[String]) {
    let mut old: Vec<PathSegment> = path.segments.iter().cloned().collect();
    let rest = old.split_off(used);
    let arguments = old.pop().map_or(PathArguments::None, |last| last.arguments);
    let segment =
        |name: &String| PathSegment::from(Ident::new(name, proc_macro2::Span::call_site()));
    let mut new: Vec<PathSegment> = names.iter().map(segment).collect();
    if let Some(last) = new.last_mut() {
        last.arguments = arguments;
    }
    path.leading_colon = None;
    path.segments = new.into_iter().chain(rest).collect();
}
