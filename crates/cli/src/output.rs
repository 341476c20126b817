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
    /// With these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let row = headings.iter().map(|&heading| heading.to_owned());
        Self {
            rows: vec![row.collect()],
        }
    }

    /// One line more.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let clean = |cell: String| match cell.is_empty() {
            true => "-".to_owned(),
            // A client's text must not move the cursor.
            false => cell.replace(|c: char| c.is_control(), " "),
        };
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// All lines.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = (*width).max(cell.chars().count());
            }
        }
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
}

/// JSON with line breaks.
pub(crate) fn json(value: &Value) -> String {
    // A JSON value can always be serialized.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// The same in YAML.
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
