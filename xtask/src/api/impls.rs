//! The lines of impl blocks.
//!
//! Plain traits of a type share a line, `impl Clone + Debug for Name`, whether
//! they are derived or written out.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Generics, ImplItem, ItemImpl, Path, PathArguments, Type, Visibility};

use super::attrs::{self, Marks};
use super::items::Writer;
use super::lines::{Line, Rank};
use super::names::{Namer, Scope};
use super::resolve::Meaning;
use super::tree::{DefinitionId, ModuleId};

/// The traits that need no line of their own, by the type's path and by the type
/// with its arguments.
#[derive(Default)]
pub(super) struct Plain(BTreeMap<(Vec<String>, String), BTreeSet<String>>);

impl Plain {
    pub(super) fn lines(self) -> impl Iterator<Item = Line> {
        self.0.into_iter().map(|((path, ty), traits)| {
            let traits = Vec::from_iter(traits).join(" + ");
            let text = format!("impl {traits} for {ty}");
            Line::new(path, Rank::Impl, &Marks::default(), text)
        })
    }

    pub(super) fn add(&mut self, path: &[String], ty: &str, name: &str) {
        let key = (path.to_vec(), ty.to_owned());
        self.0.entry(key).or_default().insert(name.to_owned());
    }
}

/// An impl block of a type that users reach: its public items, or the trait.
/// `None` when there is nothing for users in it.
pub(super) fn block<'a>(
    namer: &'a Namer<'a>,
    module: ModuleId,
    item: &ItemImpl,
    plain: &mut Plain,
) -> Option<Writer<'a>> {
    let mut scope = Scope::new(namer, module);
    scope.enter(&item.generics);
    let target = target(&scope, &item.self_ty);
    let self_ty = scope.ty(&item.self_ty);
    let mut writer = Writer {
        scope,
        path: Vec::new(),
        marks: Marks::of(&item.attrs),
        lines: Vec::new(),
    };
    let Some((trait_, _)) = &item.trait_ else {
        let way = namer.reach.first(target?)?;
        writer.path.clone_from(&way.path);
        writer.marks = way.marks.inherited().with(&writer.marks);
        inherent(&mut writer, item, &self_ty);
        return Some(writer);
    };
    let trait_name = writer.scope.path(trait_);
    // An impl is of no use to users who cannot name its trait or its types.
    let known = |id: &DefinitionId| namer.reach.first(*id);
    let of_ours = |id: &&DefinitionId| namer.tree.home(**id) == namer.reach.crate_name;
    let mentioned = &writer.scope.mentioned;
    if mentioned
        .iter()
        .filter(of_ours)
        .any(|id| known(id).is_none())
    {
        return None;
    }
    let subject = target.filter(|id| mentioned.contains(id) && of_ours(&id));
    let subject = subject.or_else(|| mentioned.iter().copied().find(|id| of_ours(&id)))?;
    let way = known(&subject)?;
    writer.path.clone_from(&way.path);
    writer.marks = way.marks.inherited().with(&writer.marks);
    let types = associated(&mut writer.scope, item);
    let is_plain = item.generics.params.is_empty()
        && item.unsafety.is_none()
        && types.is_empty()
        && writer.marks.is_empty()
        && has_no_arguments(trait_);
    if is_plain {
        plain.add(&way.path, &self_ty, &trait_name);
        return Some(writer);
    }
    let (generics, wheres) = bounds(&mut writer.scope, &item.generics);
    let word = if item.unsafety.is_some() {
        "unsafe impl"
    } else {
        "impl"
    };
    let text = format!("{word}{generics} {trait_name} for {self_ty}{wheres}{types}");
    let line = Line::new(writer.path.clone(), Rank::Impl, &writer.marks, text);
    writer.lines.push(line);
    Some(writer)
}

/// The definition that a type is, without its arguments and references.
fn target(scope: &Scope<'_>, ty: &Type) -> Option<DefinitionId> {
    match ty {
        Type::Path(ty) if ty.qself.is_none() => match scope.meaning(&ty.path)?.what {
            Meaning::Definition(id) => Some(id),
            _ => None,
        },
        Type::Reference(ty) => target(scope, &ty.elem),
        _ => None,
    }
}

fn has_no_arguments(path: &Path) -> bool {
    let last = path.segments.last();
    last.is_some_and(|last| matches!(last.arguments, PathArguments::None))
}

fn bounds(scope: &mut Scope<'_>, generics: &Generics) -> (String, String) {
    (scope.generics(generics), scope.wheres(generics))
}

/// ` { type Item = T; }`, or nothing.
fn associated(scope: &mut Scope<'_>, item: &ItemImpl) -> String {
    let types = item.items.iter().filter_map(|item| match item {
        ImplItem::Type(item) => Some(item),
        _ => None,
    });
    let each = types.map(|item| {
        let generics = super::text::show(item.generics.to_token_stream());
        format!("type {}{generics} = {}; ", item.ident, scope.ty(&item.ty))
    });
    match each.collect::<String>() {
        none if none.is_empty() => none,
        types => format!(" {{ {types}}}"),
    }
}

fn inherent(writer: &mut Writer<'_>, block: &ItemImpl, self_ty: &str) {
    // The type has the parameters already; only their bounds are news.
    let generics = writer.scope.generics(&block.generics);
    let head = match generics.contains(':') {
        true => format!("impl{generics} "),
        false => String::new(),
    };
    for item in &block.items {
        let (name, vis, attrs) = match item {
            ImplItem::Fn(item) => (&item.sig.ident, &item.vis, &item.attrs),
            ImplItem::Const(item) => (&item.ident, &item.vis, &item.attrs),
            _ => continue,
        };
        if !matches!(vis, Visibility::Public(_)) || attrs::only_for_tests(attrs) {
            continue;
        }
        let shown = format!("{self_ty}::{name}");
        let text = match item {
            ImplItem::Fn(item) => writer.signature(&item.sig, &shown, Some(&block.generics)),
            ImplItem::Const(item) => format!("const {shown}: {}", writer.scope.ty(&item.ty)),
            _ => continue,
        };
        let path = writer.under(name);
        writer.part(path, &Marks::of(attrs), format!("{head}pub {text}"));
    }
}
