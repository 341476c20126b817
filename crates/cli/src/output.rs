//! Tables as people read them, and YAML.

use serde_json::Value;
use trunkline_proto::text::{Format, Limits, parse};

use crate::failure::{Failure, Result};

/// A table with columns as wide as they need to be.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table with these headings, which are its first line.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let cells = headings.iter().map(|&heading| heading.to_owned());
        Self {
            rows: vec![cells.collect()],
        }
    }

    /// Adds a line. An empty cell is shown as a dash, and a control character
    /// as a space.
    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = |cell: String| match cell.is_empty() {
            true => "-".to_owned(),
            false => printable(&cell),
        };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Writes all lines, the headings first, without spaces at their ends.
    pub(crate) fn to_text(&self) -> String {
        self.paint(|cell| cell.to_owned())
    }

    /// Writes all lines, with `paint` applied to each cell. The width of a cell
    /// is that of its text before `paint`.
    pub(crate) fn paint(&self, paint: impl Fn(&str) -> String) -> String {
        let widths = self.column_widths();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let padding = " ".repeat(width + 2 - cell.chars().count());
                line.push_str(&paint(cell));
                line.push_str(&padding);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the width of each column: the number of characters of its
    /// longest cell.
    fn column_widths(&self) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths = vec![0; count];
        for row in &self.rows {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

/// Replaces control characters by spaces: a client's text must not move the
/// cursor of a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// Writes a number of things, such as `1 file` or `2 files`.
pub(crate) fn count_of(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Writes a value as JSON, with line breaks and indentation.
pub(crate) fn to_json(value: &Value) -> String {
    // A JSON value can always be serialized.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Writes a value as YAML, with its keys in their order. The value may have any
/// length.
///
/// # Errors
/// The value is nested deeper than a file may be.
pub(crate) fn to_yaml(value: &Value) -> Result<String> {
    let limits = Limits {
        bytes: usize::MAX,
        memory: u64::MAX,
        ..Limits::default()
    };
    // The parser of files reads JSON too, and keeps the order of keys.
    let documents = parse(Format::Json, "answer", &value.to_string(), &limits);
    let documents = documents.map_err(Failure::wrong)?;
    let texts = documents.iter().map(|document| document.to_yaml());
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_gone() {
        let mut table = Table::new(&["NAME", "V"]);
        table.add_row(["a\x1b[2J".into(), String::new()]);
        table.add_row(["longer".into(), "1".into()]);
        assert_eq!(table.to_text(), "NAME    V\na [2J   -\nlonger  1\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut table = Table::new(&["A", "B"]);
        table.add_row(["x".into(), "1".into()]);
        let painted = table.paint(|cell| match cell {
            "x" => "<x>".to_owned(),
            other => other.to_owned(),
        });
        assert_eq!(painted, "A  B\n<x>  1\n");
    }

    #[test]
    fn yaml_keeps_the_order() {
        let value: Value = serde_json::from_str(r#"{"b": 1, "a": [true]}"#).unwrap();
        let text = to_yaml(&value).unwrap();
        assert!(
            text.find("b:").unwrap() < text.find("a:").unwrap(),
            "{text}"
        );
    }
}
