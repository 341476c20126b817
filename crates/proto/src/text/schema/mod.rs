//! Scalars of YAML: which value a text without quotes is.
//!
//! YAML leaves that to a schema, and readers differ. Resources are read by
//! [`envoy`], so that a file means here what it means in an Envoy; files of
//! this program itself by [`core`], the schema of YAML 1.2.

mod core;
mod envoy;
#[cfg(test)]
mod tests;

use saphyr_parser::{ScalarStyle, Tag};

use super::{error::Problem, tree::Value};
pub(super) use envoy::octal_warning;

/// The schema by which the scalars of a text are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// The core schema of YAML 1.2.
    Core,
    /// The reading of Envoy 1.40.
    Envoy,
}

impl Schema {
    /// Reads a scalar by the schema. The core schema refuses a tag of another
    /// schema; Envoy ignores it.
    pub(super) fn read_scalar(
        self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
    ) -> Result<Value, Problem> {
        match self {
            Self::Core => core::read_scalar(text, style, tag),
            Self::Envoy => Ok(envoy::read_scalar(text, style, tag)),
        }
    }
}

/// Returns whether a tag is a single `!`, which says that a scalar is text.
fn is_bare(tag: &Tag) -> bool {
    tag.handle.is_empty() && tag.suffix == "!"
}

/// Returns whether a text without quotes is null, which every schema agrees on.
fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}
