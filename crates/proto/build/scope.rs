//! Relative type names made absolute.
//!
//! Envoy's files name types relative to a package: `config.core.v3.Node` in
//! `envoy.extensions.…` means `envoy.config.core.v3.Node`, because nothing that
//! the file imports lives in `envoy.extensions.config`. `protox` looks at
//! everything it has compiled instead of at the imports, finds that package,
//! and fails. So the names are made absolute first, by the rule of protobuf:
//! innermost scope first, among the file's own types and those of the files
//! that it imports.

use std::collections::{BTreeMap, HashSet};

use protox::prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

use super::compile::Files;

type Symbols = HashSet<String>;

/// All files, with absolute names where the name is of one of these files.
pub(crate) fn absolute(files: Files) -> Files {
    let defined: BTreeMap<_, _> = files.iter().map(|(n, f)| (n.clone(), symbols(f))).collect();
    let imports = |file: &FileDescriptorProto| {
        let mut seen = vec![file.name().to_owned()];
        for import in &file.dependency {
            visible(&files, import, &mut seen);
        }
        seen
    };
    let all: Vec<_> = files.values().map(imports).collect();
    let rewrite = |(mut file, imports): (FileDescriptorProto, Vec<String>)| {
        let seen = imports.iter().filter_map(|i| defined.get(i)).collect();
        Scope { seen }.file(&mut file);
        (file.name().to_owned(), file)
    };
    files.clone().into_values().zip(all).map(rewrite).collect()
}

/// An import, and what it imports publicly.
fn visible(files: &Files, import: &str, seen: &mut Vec<String>) {
    if seen.iter().any(|s| s == import) {
        return;
    }
    seen.push(import.to_owned());
    let Some(file) = files.get(import) else {
        return;
    };
    for index in &file.public_dependency {
        if let Some(next) = file.dependency.get(*index as usize) {
            visible(files, next, seen);
        }
    }
}

fn symbols(file: &FileDescriptorProto) -> Symbols {
    let mut symbols = Symbols::new();
    for message in &file.message_type {
        message_symbols(file.package(), message, &mut symbols);
    }
    let enums = file
        .enum_type
        .iter()
        .map(|e| join(file.package(), e.name()));
    symbols.extend(enums);
    symbols
}

fn message_symbols(scope: &str, message: &DescriptorProto, symbols: &mut Symbols) {
    let name = join(scope, message.name());
    for nested in &message.nested_type {
        message_symbols(&name, nested, symbols);
    }
    symbols.extend(message.enum_type.iter().map(|e| join(&name, e.name())));
    symbols.insert(name);
}

fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() {
        name.to_owned()
    } else {
        format!("{scope}.{name}")
    }
}

/// The types that one file may name.
struct Scope<'a> {
    seen: Vec<&'a Symbols>,
}

impl Scope<'_> {
    fn file(&self, file: &mut FileDescriptorProto) {
        let package = file.package().to_owned();
        for message in &mut file.message_type {
            self.message(&package, message);
        }
        for field in &mut file.extension {
            self.field(&package, field);
        }
        for method in file.service.iter_mut().flat_map(|s| &mut s.method) {
            self.name(&package, &mut method.input_type);
            self.name(&package, &mut method.output_type);
        }
    }

    fn message(&self, scope: &str, message: &mut DescriptorProto) {
        let scope = join(scope, message.name());
        for nested in &mut message.nested_type {
            self.message(&scope, nested);
        }
        for field in message.field.iter_mut().chain(&mut message.extension) {
            self.field(&scope, field);
        }
    }

    fn field(&self, scope: &str, field: &mut FieldDescriptorProto) {
        self.name(scope, &mut field.type_name);
        self.name(scope, &mut field.extendee);
    }

    /// A name of another file, such as `google.protobuf.Any`, is left as it is.
    fn name(&self, scope: &str, name: &mut Option<String>) {
        let Some(relative) = name.as_deref().filter(|n| !n.starts_with('.')) else {
            return;
        };
        let mut scope = Some(scope);
        while let Some(inner) = scope {
            let full = join(inner, relative);
            if self.seen.iter().any(|symbols| symbols.contains(&full)) {
                *name = Some(format!(".{full}"));
                return;
            }
            scope = match inner.rsplit_once('.') {
                Some((outer, _)) => Some(outer),
                None if inner.is_empty() => None,
                None => Some(""),
            };
        }
    }
}
