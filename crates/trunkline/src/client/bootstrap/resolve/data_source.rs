//! Data sources: certificates and keys, in files or in the configuration.

use std::path::PathBuf;

use trunkline_proto::envoy::envoy::config::core::v3::DataSource;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;

use super::super::policy::Author;
use super::super::problem::Problem;
use super::super::report::Scope;
use crate::client::Pem;

/// Reads a data source that holds PEM. A file is not read yet, because it is
/// read anew whenever it changes; an environment variable is.
pub(super) fn pem(source: &DataSource, author: Author<'_>, scope: &Scope<'_>) -> Option<Pem> {
    match source.specifier.as_ref() {
        None => scope.missing(
            "the data",
            "set one of filename, inline_string, inline_bytes, environment_variable",
        ),
        Some(Specifier::Filename(name)) => {
            let path = file(name, author, &scope.field("filename"))?;
            Some(Pem::File(path))
        }
        Some(Specifier::InlineString(text)) => Some(Pem::Inline(text.clone().into_bytes())),
        Some(Specifier::InlineBytes(bytes)) => Some(Pem::Inline(bytes.clone())),
        Some(Specifier::EnvironmentVariable(name)) => {
            let scope = scope.field("environment_variable");
            variable(name, author, &scope).map(|text| Pem::Inline(text.into_bytes()))
        }
    }
}

/// Takes the name of a file, if its author may name it.
pub(super) fn file(name: &str, author: Author<'_>, scope: &Scope<'_>) -> Option<PathBuf> {
    if name.is_empty() {
        return scope.missing("the path", "name a file");
    }
    let path = PathBuf::from(name);
    match author.may_name_file(&path) {
        true => Some(path),
        false => scope.mistake(Problem::NotAllowed {
            kind: "file",
            name: name.to_owned(),
        }),
    }
}

/// Reads an environment variable, if its author may name it.
fn variable(name: &str, author: Author<'_>, scope: &Scope<'_>) -> Option<String> {
    let name_text = name.to_owned();
    if !author.may_name_variable(name) {
        let kind = "environment variable";
        return scope.mistake(Problem::NotAllowed {
            kind,
            name: name_text,
        });
    }
    let value = std::env::var(name).ok();
    value.or_else(|| scope.mistake(Problem::Variable { name: name_text }))
}
