//! Texts with placeholders for fields of a node.

use std::fmt;
use std::str::FromStr;

use super::described::Described;
use super::error::RuleError;
use super::field::Field;

/// A text such as `{metadata.NAMESPACE}-{locality.zone}`. A brace itself is
/// written twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

impl Template {
    /// Returns the text for a node; `None` if the node lacks a field of a
    /// placeholder.
    #[must_use]
    pub fn fill(&self, node: &Described) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            text.push_str(match part {
                Part::Text(text) => text,
                Part::Field(field) => node.get(field)?,
            });
        }
        Some(text)
    }

    /// Returns the fields that it reads.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter_map(|part| match part {
            Part::Field(field) => Some(field),
            Part::Text(_) => None,
        })
    }

    /// Returns whether the filled text has this character for every node,
    /// because a part outside of the placeholders has it.
    pub(super) fn always_has(&self, char: char) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| matches!(part, Part::Text(text) if text.contains(char)))
    }
}

impl FromStr for Template {
    type Err = RuleError;

    /// Parses a template: text, and fields in braces. A brace without a
    /// partner, an unknown field and an empty text are errors.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let brace_error = || RuleError::Brace {
            found: text.to_owned(),
        };
        let mut parts = Vec::new();
        // The text since the last placeholder.
        let mut plain = String::new();
        let mut remaining_text = text;
        while let Some(position) = remaining_text.find(['{', '}']) {
            plain.push_str(&remaining_text[..position]);
            let brace = &remaining_text[position..=position];
            remaining_text = &remaining_text[position + 1..];

            // A brace itself is written twice.
            if let Some(tail) = remaining_text.strip_prefix(brace) {
                plain.push_str(brace);
                remaining_text = tail;
                continue;
            }

            let placeholder = remaining_text.split_once('}').filter(|_| brace == "{");
            let (field, tail) = placeholder.ok_or_else(brace_error)?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Field(field.parse()?));
            remaining_text = tail;
        }

        plain.push_str(remaining_text);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        if parts.is_empty() {
            return Err(RuleError::Empty);
        }
        Ok(Self(parts))
    }
}

impl fmt::Display for Template {
    /// Writes the template as it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => {
                    f.write_str(&text.replace('{', "{{").replace('}', "}}"))?;
                }
                Part::Field(field) => write!(f, "{{{field}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_proto::discovery::Node;

    #[test]
    fn placeholders_are_filled_or_there_is_nothing() {
        let node = Node {
            id: "{odd}".into(),
            cluster: "c".into(),
            ..Node::default()
        };
        let node = Described::new(&node, &super::super::Wanted::default());
        for (text, expected) in [
            ("plain", Some("plain")),
            ("{cluster}", Some("c")),
            ("a{cluster}b{cluster}", Some("acbc")),
            ("{{cluster}}", Some("{cluster}")),
            ("{{{cluster}}}", Some("{c}")),
            ("{id}", Some("{odd}")),
            ("{cluster}/{locality.zone}", None),
            ("{metadata.NAMESPACE}", None),
        ] {
            let template: Template = text.parse().unwrap();
            assert_eq!(template.fill(&node).as_deref(), expected, "{text}");
            assert_eq!(template.to_string(), text);
        }
    }

    #[test]
    fn a_slip_is_told() {
        for text in ["{", "}", "{id", "id}", "{id}}", "a{{id}"] {
            let error = text.parse::<Template>().unwrap_err();
            assert!(matches!(error, RuleError::Brace { .. }), "{text}: {error}");
        }
        assert_eq!("".parse::<Template>(), Err(RuleError::Empty));
        for text in ["{}", "{node.id}", "{metadata}"] {
            let error = text.parse::<Template>().unwrap_err();
            assert!(matches!(error, RuleError::Field { .. }), "{text}: {error}");
        }
    }
}
