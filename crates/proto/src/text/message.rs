//! A text that is one message as a whole, such as a bootstrap, with the places
//! of its parts.

use std::fmt;

use prost_reflect::DynamicMessage;

use super::{
    Format, Options, TextError,
    error::Problem,
    locate::find_place,
    plain::parse_by,
    read::Walk,
    schema::Schema,
    tree::{Node, Position, Value},
};
use crate::{
    descriptor,
    path::Step,
    validate::{self, Violation},
};

/// A message that was read from a text, and the mistakes that were found: a
/// field with one is not in the message, its neighbours are.
pub struct Written {
    /// The message.
    pub message: DynamicMessage,
    /// Mistakes, each with its place.
    pub errors: Vec<TextError>,
    /// Numbers that Envoy takes for octal; unknown fields, if the options say
    /// that they are left out.
    pub warnings: Vec<TextError>,
    file: String,
    root: Node,
}

/// By hand: the derived form would print descriptors, which refer to each
/// other without end, and the text, which may have secrets.
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("errors", &self.errors)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Reads a text as a message of the type `message_type`. With a `key`, reads
/// only the entry of the text that has this key. Only the first of several
/// documents is read.
///
/// ```
/// use trunkline_proto::text::{Format, Options, read_message};
///
/// let text = "node:\n  id: n1\n  clustr: c";
/// let message_type = "envoy.config.bootstrap.v3.Bootstrap";
/// let written = read_message(message_type, Format::Yaml, "b.yaml", text, None, &Options::default())?;
/// assert_eq!(written.position("node.id").to_string(), "2:7");
/// assert_eq!(
///     written.errors[0].to_string(),
///     "b.yaml:3:3: node: unknown field \"clustr\" in Node, did you mean \"cluster\"?"
/// );
/// # Ok::<(), Vec<trunkline_proto::text::TextError>>(())
/// ```
///
/// # Errors
/// The text is not of the format or not a mapping, or the type is unknown.
pub fn read_message(
    message_type: &str,
    format: Format,
    file: &str,
    text: &str,
    key: Option<&'static str>,
    options: &Options,
) -> Result<Written, Vec<TextError>> {
    let parsed = parse_by(Schema::Envoy, format, file, text, &options.limits);
    let parsed = parsed.map_err(|error| vec![*error])?;
    let mut walk = Walk::new(file, options, parsed.charged_bytes);
    for (position, problem) in parsed.octals {
        walk.warn(position, problem);
    }

    let root = parsed.documents.into_iter().next().unwrap_or(Node {
        at: Position::START,
        value: Value::Null,
    });
    let Some(descriptor) = descriptor::message(message_type) else {
        let name = message_type.to_owned();
        walk.report::<()>(root.at, Problem::UnknownType { name, near: None });
        return Err(walk.errors);
    };

    let message = match key {
        None => walk.read_fields(&descriptor, &root, &[]),
        Some(key) => walk.walk_at(Step::Name(key), |walk| match root.get(key) {
            Some(entry) => walk.read_fields(&descriptor, &entry.node, &[]),
            None => Some(DynamicMessage::new(descriptor)),
        }),
    };
    let Some(message) = message else {
        return Err(walk.errors);
    };

    Ok(Written {
        message,
        errors: walk.errors,
        warnings: walk.warnings,
        file: file.to_owned(),
        root,
    })
}

impl Written {
    /// Returns the text as a tree, for parts of it that are no message.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Finds the place of a field by its path in the text, such as
    /// `static_resources.clusters[0].name`. If it is not written there, it is
    /// the place of the nearest part around it.
    #[must_use]
    pub fn position(&self, path: &str) -> Position {
        find_place(&self.root, path)
    }

    /// Returns the violations of rules in the message, each with its position.
    #[must_use]
    pub fn validate(&self) -> Vec<TextError> {
        let to_error = |violation: Violation| {
            let path = violation.path.to_string();
            TextError {
                file: self.file.clone(),
                at: self.position(&path),
                path,
                problem: Problem::Rule(violation.broken),
            }
        };

        let violations = validate::validate(&self.message).into_iter();
        violations.map(to_error).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTSTRAP: &str = "envoy.config.bootstrap.v3.Bootstrap";

    fn read(text: &str, key: Option<&'static str>) -> Result<Written, Vec<TextError>> {
        let message_type = key.map_or(BOOTSTRAP, |_| "envoy.config.core.v3.Node");
        read_message(
            message_type,
            Format::Yaml,
            "b.yaml",
            text,
            key,
            &Options::default(),
        )
    }

    #[test]
    fn a_part_of_a_text_is_a_message() {
        let read = read("xds_servers: []\nnode: {id: a, x: 1}", Some("node")).unwrap();
        assert_eq!(
            read.errors[0].to_string(),
            "b.yaml:2:15: node: unknown field \"x\" in Node"
        );
        let id = read.message.get_field_by_name("id").unwrap();
        assert_eq!(id.as_str(), Some("a"));
    }

    #[test]
    fn a_part_that_is_missing_is_empty() {
        let read = read("xds_servers: []", Some("node")).unwrap();
        assert_eq!(read.errors, []);
    }

    #[test]
    fn a_broken_rule_has_its_place() {
        let text = "static_resources:\n  clusters:\n  - name: c\n    connect_timeout: -1s";
        let read = read(text, None).unwrap();
        let broken = read.validate();
        assert_eq!(broken[0].at.to_string(), "4:22");
        assert_eq!(
            broken[0].path,
            "static_resources.clusters[0].connect_timeout"
        );
    }

    #[test]
    fn a_text_that_is_no_mapping_is_no_message() {
        for text in ["", "- a", "a: [", "7"] {
            assert!(read(text, None).is_err(), "{text}");
        }
    }
}
