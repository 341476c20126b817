//! A tree as indented lines, and the difference of two as lines with paths.

use std::collections::BTreeMap;

use trunkline::TypeUrl;
use trunkline::client::Raw;
use trunkline::client::tree::Part;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline::kind::{CDS, EDS};
use trunkline_proto::redact;

use crate::kinds;

/// A tree, line by line.
pub(super) struct Lines(Vec<Line>);

struct Line {
    /// The labels of the parts that lead to it, itself included.
    path: Vec<String>,
    /// The version, or the error.
    details: String,
    is_failed: bool,
}

impl Lines {
    /// Returns the lines of a part and everything below it. A part with several
    /// parents is below each of them.
    pub(super) fn of(root: &Part<Raw>) -> Self {
        let mut lines = Vec::new();
        add_part(&mut lines, &[], root);
        Self(lines)
    }

    /// Writes the tree, one part per line.
    pub(super) fn text(&self) -> String {
        let lines = self.0.iter().map(|line| {
            let indent = "  ".repeat(line.path.len() - 1);
            let label = line.path.last().map_or("", String::as_str);
            format!("{indent}{label}{}\n", line.details)
        });
        lines.collect()
    }

    /// Writes the lines that differ from an older tree: `-` for a removed part,
    /// `+` for a new one, `~` for a changed one.
    pub(super) fn diff_from(&self, old_tree: &Self) -> String {
        let (old_lines, new_lines) = (old_tree.by_path(), self.by_path());
        let mut text = String::new();
        for line in &old_tree.0 {
            if !new_lines.contains_key(line.path.as_slice()) {
                text += &line.change('-');
            }
        }
        for line in &self.0 {
            match old_lines.get(line.path.as_slice()) {
                None => text += &line.change('+'),
                Some(old_line) if old_line.details != line.details => text += &line.change('~'),
                Some(_) => {}
            }
        }
        text
    }

    /// Returns the lines by their paths.
    fn by_path(&self) -> BTreeMap<&[String], &Line> {
        let lines = self.0.iter();
        lines.map(|line| (line.path.as_slice(), line)).collect()
    }

    /// Returns the labels of failed parts, sorted, each only once.
    pub(super) fn failed_labels(&self) -> Vec<String> {
        let failed_lines = self.0.iter().filter(|line| line.is_failed);
        let mut labels: Vec<_> = failed_lines
            .filter_map(|line| line.path.last().cloned())
            .collect();
        labels.sort();
        labels.dedup();
        labels
    }
}

impl Line {
    /// Writes the line as a change, with its path from the root. `mark` says
    /// which change.
    fn change(&self, mark: char) -> String {
        format!("{mark} {}{}\n", self.path.join(" > "), self.details)
    }
}

/// Adds the lines of a part and of all parts below it. `parent_path` has the
/// labels of the parts above.
fn add_part(lines: &mut Vec<Line>, parent_path: &[String], part: &Part<Raw>) {
    let mut path = parent_path.to_vec();
    path.push(label(part));
    lines.push(Line {
        details: part_details(part),
        is_failed: part.is_failed(),
        path: path.clone(),
    });
    for child in part.children() {
        add_part(lines, &path, &child);
    }
}

/// Returns the type and the name of a part.
pub(super) fn label(part: &Part<Raw>) -> String {
    format!("{}/{}", short(part.type_url()), part.name())
}

/// Returns the short name of a type; that of hosts is `dns`.
pub(super) fn short(type_url: &TypeUrl) -> &str {
    match type_url.as_str() {
        "dns" => "dns",
        _ => kinds::short(type_url),
    }
}

/// Returns the version of a part, its addresses, its number of endpoints and
/// its error, as far as it has them.
fn part_details(part: &Part<Raw>) -> String {
    let mut text = String::new();
    if let Some(value) = part.value() {
        text += &format!(" version {:?}", value.version().as_str());
    }
    if let Some(addresses) = part.addresses() {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        text += &format!(" {}", addresses.join(", "));
    }
    if let Some(count) = endpoint_count(part) {
        text += &format!(", endpoints: {count}");
    }
    if let Some(error) = part.error() {
        text += &format!(": {}", redact::quoted(&error.message));
    }
    text
}

/// Returns the number of endpoints of a part: of an assignment, or of the one
/// inside a cluster. Returns `None` if the part has neither.
fn endpoint_count(part: &Part<Raw>) -> Option<usize> {
    let count = |assignment: &ClusterLoadAssignment| {
        let localities = assignment.endpoints.iter();
        localities.map(|locality| locality.lb_endpoints.len()).sum()
    };
    match part.type_url().as_str() {
        EDS => Some(count(
            part.typed::<ClusterLoadAssignment>().value()?.value(),
        )),
        CDS => part
            .typed::<Cluster>()
            .value()?
            .load_assignment
            .as_ref()
            .map(count),
        _ => None,
    }
}
