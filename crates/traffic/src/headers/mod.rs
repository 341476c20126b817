//! Headers of a request or a response: an ordered list of lines.
//!
//! Names are in lower case, as Envoy keeps them; values are slices of the
//! received buffer where they came from one. Each line is an entry of its own:
//! matchers look at lines one by one.

mod format;
mod mutation;
#[cfg(test)]
mod tests;

use bytes::Bytes;
pub use format::{Format, FormatContext, FormatValues};
pub(crate) use mutation::{Mutations, Side, apply_all};

/// One header line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    name: Bytes,
    value: Bytes,
}

impl Line {
    /// Returns the name, in lower case.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the value, without white space around it.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

/// Header lines, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    lines: Vec<Line>,
}

impl Headers {
    /// Makes a list without headers.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Returns the lines, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether there is no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the value of the first line of this name, which is in lower
    /// case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns the first value of this name if it is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| str::from_utf8(value).ok())
    }

    /// Returns the values of all lines of this name, which is in lower case.
    pub fn all<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.lines
            .iter()
            .filter(move |line| line.name == name.as_bytes())
            .map(|line| &*line.value)
    }

    /// Returns whether there is a line of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Adds a line at the end. The name is put into lower case, and white space
    /// around the value is left out.
    pub fn append(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.lines.push(Line {
            name: lower(name.into()),
            value: trim(value.into()),
        });
    }

    /// Sets a header to one value. The first line of the name keeps its
    /// position, and further lines are removed. Without such a line, one is
    /// appended.
    pub fn set(&mut self, name: &str, value: impl Into<Bytes>) {
        let value = value.into();
        let Some(position) = self
            .lines
            .iter()
            .position(|line| line.name == name.as_bytes())
        else {
            return self.append(name.to_owned(), value);
        };
        self.lines[position].value = trim(value);
        let mut index = 0;
        self.lines.retain(|line| {
            index += 1;
            index <= position + 1 || line.name != name.as_bytes()
        });
    }

    /// Appends a text to the first line of a name, after a separator. Without
    /// such a line, one is appended.
    pub fn join(&mut self, name: &str, separator: &str, value: &str) {
        let line = self
            .lines
            .iter_mut()
            .find(|line| line.name == name.as_bytes());
        match line {
            Some(line) if !line.value.is_empty() => {
                let line_value = [&*line.value, separator.as_bytes(), value.as_bytes()].concat();
                line.value = line_value.into();
            }
            Some(line) => line.value = value.to_owned().into(),
            None => self.append(name.to_owned(), value.to_owned()),
        }
    }

    /// Removes all lines of a name, which is in lower case.
    pub fn remove(&mut self, name: &str) {
        self.lines.retain(|line| line.name != name.as_bytes());
    }

    /// Removes all lines of some names, which begin with `x-envoy-`. Lines of
    /// other names are passed over at once.
    pub(crate) fn remove_of_envoy(&mut self, names: &[&str]) {
        self.lines.retain(|line| {
            !line.name.starts_with(b"x-envoy-")
                || !names.iter().any(|name| name.as_bytes() == line.name)
        });
    }

    /// Keeps the lines that a test accepts.
    pub fn retain(&mut self, test: impl FnMut(&Line) -> bool) {
        self.lines.retain(test);
    }

    /// Merges all lines of a name into one, with commas between the values.
    /// Envoy does so for headers that have one value by definition. Does
    /// nothing if there are not several lines.
    pub fn merge(&mut self, name: &str) {
        let mut values = self.all(name);
        let (Some(first), Some(second)) = (values.next(), values.next()) else {
            return;
        };
        let mut merged_value = [first, b",", second].concat();
        for value in values {
            merged_value.push(b',');
            merged_value.extend_from_slice(value);
        }
        self.set(name, merged_value);
    }
}

impl<N: Into<Bytes>, V: Into<Bytes>> FromIterator<(N, V)> for Headers {
    /// Makes a list of these lines, in their order.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(lines: I) -> Self {
        let mut headers = Self::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        headers
    }
}

/// Returns a name in lower case.
fn lower(name: Bytes) -> Bytes {
    match name.iter().any(u8::is_ascii_uppercase) {
        true => name.to_ascii_lowercase().into(),
        false => name,
    }
}

/// Returns a value without the spaces and tabs at its ends.
fn trim(value: Bytes) -> Bytes {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().take_while(|byte| is_space(byte)).count();
    let trailing = value[start..]
        .iter()
        .rev()
        .take_while(|byte| is_space(byte));
    let end = value.len() - trailing.count();
    match start == 0 && end == value.len() {
        true => value,
        false => value.slice(start..end),
    }
}
