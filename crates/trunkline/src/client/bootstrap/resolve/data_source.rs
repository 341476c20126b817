//! Data sources: certificates and keys, in files or in the configuration.

use std::path::PathBuf;

use trunkline_proto::envoy::envoy::config::core::v3::DataSource;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;

use super::super::policy::Author;
use super::super::problem::Problem;
use super::super::report::Scope;
use crate::client::Pem;

/// Resolves a data source that holds PEM. An environment variable is read here;
/// a file is not, because connections read it anew whenever it changes.
pub(super) fn read_pem(source: &DataSource, author: Author<'_>, scope: &Scope<'_>) -> Option<Pem> {
    match source.specifier.as_ref() {
        None => scope.missing(
            "the data",
            "set one of filename, inline_string, inline_bytes, environment_variable",
        ),
        Some(Specifier::Filename(name)) => {
            let path = check_file(name, author, &scope.field("filename"))?;
            Some(Pem::File(path))
        }
        Some(Specifier::InlineString(text)) => Some(Pem::Inline(text.clone().into_bytes())),
        Some(Specifier::InlineBytes(bytes)) => Some(Pem::Inline(bytes.clone())),
        Some(Specifier::EnvironmentVariable(name)) => {
            let scope = scope.field("environment_variable");
            read_variable(name, author, &scope).map(|text| Pem::Inline(text.into_bytes()))
        }
    }
}

/// Returns the path of a file. A file that its author may not name is a
/// mistake.
pub(super) fn check_file(name: &str, author: Author<'_>, scope: &Scope<'_>) -> Option<PathBuf> {
    if name.is_empty() {
        return scope.missing("the path", "name a file");
    }
    let path = PathBuf::from(name);
    if author.may_name_file(&path) {
        return Some(path);
    }
    scope.mistake(Problem::NotAllowed {
        kind: "file",
        name: name.to_owned(),
    })
}

/// Reads an environment variable. One that is not set, or that its author may
/// not name, is a mistake.
fn read_variable(name: &str, author: Author<'_>, scope: &Scope<'_>) -> Option<String> {
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
