//! The page as it was written last: a figure that is not measured anew keeps its
//! section, which says of which day and tree it is.

use std::fs;

use super::PAGE;
use crate::workspace::Workspace;

/// Where the engine's own figures begin.
const ENGINE: &str = "## The engine by itself\n\n";

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Written(String);

impl Written {
    pub(super) fn read(workspace: &Workspace) -> Self {
        let page = fs::read_to_string(workspace.root().join(PAGE));
        Self(page.unwrap_or_default())
    }

    /// The section of a figure, its heading included.
    pub(super) fn figure(&self, number: usize) -> Option<&str> {
        let start = self.0.find(&format!("\n### {number}. "))? + 1;
        let rest = &self.0[start..];
        let end = rest.find("\n### ").into_iter().chain(rest.find("\n## "));
        Some(end.min().map_or(rest, |end| &rest[..=end]))
    }

    /// All that is about the engine by itself.
    pub(super) fn engine(&self) -> Option<&str> {
        let (_, engine) = self.0.split_once(ENGINE)?;
        Some(engine)
    }
}

/// How many bars the sections of figures have that are kept or not, and those
/// that are not: the figure, and the bar with what was measured.
pub(super) fn bars(figures: &str) -> (usize, Vec<(&str, String)>) {
    let (mut known, mut missed, mut number) = (0, Vec::new(), "");
    for line in figures.lines() {
        if let Some((found, _)) = line.strip_prefix("### ").and_then(|l| l.split_once(". ")) {
            number = found;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", _, _, "kept", ""] => known += 1,
            ["", bar, measured, "**not kept**", ""] => {
                known += 1;
                missed.push((number, format!("{bar}; measured: {measured}")));
            }
            _ => {}
        }
    }
    (known, missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Benchmarks\n\n## Servers\n\n### 1. One\n\n| a | 1 × | kept |\n\n\
        ### 12. Twelve\n\n| b | 2 × | **not kept** |\n\n## The engine by itself\n\n### Counts\n";

    #[test]
    fn sections_are_found_by_their_number() {
        let written = Written(TEXT.to_owned());
        let one = written.figure(1).unwrap();
        assert_eq!(one, "### 1. One\n\n| a | 1 × | kept |\n\n");
        assert!(written.figure(12).unwrap().ends_with("**not kept** |\n\n"));
        assert_eq!(written.figure(2), None);
        assert_eq!(written.engine(), Some("### Counts\n"));
    }

    #[test]
    fn bars_are_counted_wherever_they_come_from() {
        let (known, missed) = bars(TEXT);
        assert_eq!(known, 2);
        assert_eq!(missed, [("12", "b; measured: 2 ×".to_owned())]);
    }
}
