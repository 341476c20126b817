//! A place in a body, as a chain of steps that costs nothing until it is
//! written down.
//!
//! A check walks a message with a place on the stack beside it. Only a finding
//! turns the place into a text such as
//! `endpoints[0].lb_endpoints[2].endpoint.address`. The body of an `Any` has the
//! place of the `Any`, as in YAML.

use std::fmt;

/// A part of a body.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// The whole body.
    Root,
    Field(&'a str),
    /// An item of a list.
    Item(&'a str, usize),
    /// An entry of a map.
    Entry(&'a str, &'a str),
}

impl<'a> Place<'a> {
    /// The whole body.
    pub const ROOT: Self = Self {
        parent: None,
        step: Step::Root,
    };

    /// Returns the place of a field of the message at this place.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> Self {
        self.step(Step::Field(name))
    }

    /// Returns the place of an item of a field that is a list.
    #[must_use]
    pub fn item(&'a self, field: &'a str, index: usize) -> Self {
        self.step(Step::Item(field, index))
    }

    /// Returns the place of an entry of a field that is a map.
    #[must_use]
    pub fn entry(&'a self, field: &'a str, key: &'a str) -> Self {
        self.step(Step::Entry(field, key))
    }

    /// Returns the place that is one step further in.
    fn step(&'a self, step: Step<'a>) -> Self {
        Self {
            parent: Some(self),
            step,
        }
    }
}

/// The most bytes of a key that a path shows.
const MAX_KEY: usize = 64;

impl fmt::Display for Place<'_> {
    /// Writes the path from the root, with a dot before each step but the
    /// first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            if parent.parent.is_some() {
                f.write_str(".")?;
            }
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => f.write_str(name),
            Step::Item(name, index) => write!(f, "{name}[{index}]"),
            Step::Entry(name, key) => write!(f, "{name}[{:?}]", clip(key, MAX_KEY)),
        }
    }
}

/// Returns the beginning of a text, of at most `max` bytes.
pub(super) fn clip(text: &str, max: usize) -> &str {
    match text.len() <= max {
        true => text,
        false => &text[..text.floor_char_boundary(max)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_in_yaml() {
        let root = Place::ROOT;
        let item = root.item("endpoints", 2);
        let entry = item.entry("metadata", "k");
        assert_eq!(root.to_string(), "");
        assert_eq!(root.field("name").to_string(), "name");
        assert_eq!(
            entry.field("x").to_string(),
            "endpoints[2].metadata[\"k\"].x"
        );
    }

    #[test]
    fn a_long_text_is_clipped_between_characters() {
        assert_eq!(clip("aü", 2), "a");
        assert_eq!(clip("aü", 3), "aü");
    }
}
