//! Text that holds no resources: as a tree, for callers with keys of their own.

use super::{
    Format, Limits,
    error::{Problem, TextError},
    json,
    schema::Schema,
    tree::{Node, Position},
    yaml::{self, Parsed},
};

/// Parses a text into one tree for each document, whose nodes have their line
/// and column. The caller interprets the keys. `file` is the name of the text
/// in errors. YAML is read by its core schema: `on` and `yes` are text.
///
/// ```
/// use trunkline_proto::text::{Format, Limits, Value, parse};
///
/// let documents = parse(Format::Yaml, "s.yaml", "listen: 8080", &Limits::default())?;
/// assert!(matches!(&documents[0].value, Value::Map(keys) if keys[0].key == "listen"));
/// # Ok::<(), Box<trunkline_proto::text::TextError>>(())
/// ```
///
/// # Errors
/// The text exceeds a limit, or is not valid in the format.
pub fn parse(
    format: Format,
    file: &str,
    text: &str,
    limits: &Limits,
) -> Result<Vec<Node>, Box<TextError>> {
    let parsed = parse_by(Schema::Core, format, file, text, limits)?;
    Ok(parsed.documents)
}

/// Parses every document of a text as [`parse`] does, but reads the scalars of
/// YAML by a given schema.
pub(super) fn parse_by(
    schema: Schema,
    format: Format,
    file: &str,
    text: &str,
    limits: &Limits,
) -> Result<Parsed, Box<TextError>> {
    let (len, max) = (text.len(), limits.bytes);
    let parsed = match format {
        _ if len > max => Err((Position::START, Problem::TooLong { len, max })),
        Format::Yaml => yaml::parse(text, limits, schema),
        Format::Json => json::parse(text, limits).map(|(root, charged_bytes)| Parsed {
            documents: vec![root],
            octals: Vec::new(),
            charged_bytes,
        }),
    };
    parsed.map_err(|(position, problem)| Box::new(TextError::without_path(file, position, problem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_has_a_place() {
        let limits = Limits::default();
        let error = parse(Format::Yaml, "s.yaml", "a: [", &limits).unwrap_err();
        assert_eq!(error.file, "s.yaml");
        assert_eq!(error.at.to_string(), "1:4");
        let limits = Limits { bytes: 2, ..limits };
        let error = parse(Format::Json, "s.json", "{  }", &limits).unwrap_err();
        assert!(matches!(error.problem, Problem::TooLong { .. }));
    }
}
