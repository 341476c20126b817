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
    /// Makes a table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let row = headings.iter().map(|&heading| heading.to_owned());
        Self {
            rows: vec![row.collect()],
        }
    }

    /// Adds a line; an empty cell is shown as a dash.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let clean = |cell: String| match cell.is_empty() {
            true => "-".to_owned(),
            false => printable(&cell),
        };
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Writes all lines, without spaces at their ends.
    pub(crate) fn text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:<width$}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the widths of the columns: of each, that of its longest cell.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

/// Replaces control characters: a client's text must not move the cursor.
pub(crate) fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// Writes a value as JSON with line breaks.
pub(crate) fn json(value: &Value) -> String {
    // A JSON value can always be serialized.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Writes a value as YAML, with its keys in their order.
pub(crate) fn yaml(value: &Value) -> Result<String> {
    let limits = Limits {
        bytes: usize::MAX,
        ..Limits::default()
    };
    let documents = parse(Format::Json, "answer", &value.to_string(), &limits);
    let documents = documents.map_err(Failure::wrong)?;
    Ok(documents
        .iter()
        .map(|document| document.to_yaml())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_gone() {
        let mut table = Table::new(&["NAME", "V"]);
        table.row(["a\x1b[2J".into(), String::new()]);
        table.row(["longer".into(), "1".into()]);
        assert_eq!(table.text(), "NAME    V\na [2J   -\nlonger  1\n");
    }

    #[test]
    fn yaml_keeps_the_order() {
        let value: Value = serde_json::from_str(r#"{"b": 1, "a": [true]}"#).unwrap();
        let text = yaml(&value).unwrap();
        assert!(
            text.find("b:").unwrap() < text.find("a:").unwrap(),
            "{text}"
        );
    }
}
