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
    /// The lines of a part and everything below it. A part with several parents
    /// is below each of them.
    pub(super) fn of(root: &Part<Raw>) -> Self {
        let mut lines = Vec::new();
        add(&mut lines, &[], root);
        Self(lines)
    }

    /// The tree.
    pub(super) fn text(&self) -> String {
        let lines = self.0.iter().map(|line| {
            let indent = "  ".repeat(line.path.len() - 1);
            let label = line.path.last().map_or("", String::as_str);
            format!("{indent}{label}{}\n", line.details)
        });
        lines.collect()
    }

    /// What differs from an older tree: `-` is gone, `+` is new, `~` has
    /// changed.
    pub(super) fn changes(&self, old: &Self) -> String {
        let (before, after) = (old.by_path(), self.by_path());
        let mut text = String::new();
        for line in &old.0 {
            if !after.contains_key(line.path.as_slice()) {
                text += &line.change('-');
            }
        }
        for line in &self.0 {
            match before.get(line.path.as_slice()) {
                None => text += &line.change('+'),
                Some(known) if known.details != line.details => text += &line.change('~'),
                Some(_) => {}
            }
        }
        text
    }

    fn by_path(&self) -> BTreeMap<&[String], &Line> {
        let lines = self.0.iter();
        lines.map(|line| (line.path.as_slice(), line)).collect()
    }

    /// The labels of parts that have nothing to use, each once.
    pub(super) fn missing(&self) -> Vec<String> {
        let failed = self.0.iter().filter(|line| line.is_failed);
        let mut labels: Vec<_> = failed
            .filter_map(|line| line.path.last().cloned())
            .collect();
        labels.sort();
        labels.dedup();
        labels
    }
}

impl Line {
    fn change(&self, mark: char) -> String {
        format!("{mark} {}{}\n", self.path.join(" > "), self.details)
    }
}

fn add(lines: &mut Vec<Line>, above: &[String], part: &Part<Raw>) {
    let mut path = above.to_vec();
    path.push(label(part));
    lines.push(Line {
        details: details(part),
        is_failed: part.is_failed(),
        path: path.clone(),
    });
    for child in part.children() {
        add(lines, &path, &child);
    }
}

/// The type and the name of a part.
pub(super) fn label(part: &Part<Raw>) -> String {
    format!("{}/{}", short(part.type_url()), part.name())
}

/// The short name of a type; that of hosts is `dns`.
pub(super) fn short(type_url: &TypeUrl) -> &str {
    match type_url.as_str() {
        "dns" => "dns",
        _ => kinds::short(type_url),
    }
}

/// The version, the number of endpoints, the error.
fn details(part: &Part<Raw>) -> String {
    let mut text = String::new();
    if let Some(value) = part.value() {
        text += &format!(" version {:?}", value.version().as_str());
    }
    if let Some(addresses) = part.addresses() {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        text += &format!(" {}", addresses.join(", "));
    }
    if let Some(count) = endpoints(part) {
        text += &format!(", endpoints: {count}");
    }
    if let Some(error) = part.error() {
        text += &format!(": {}", redact::quoted(&error.message));
    }
    text
}

/// How many endpoints a part has: by EDS, or inside of a cluster.
fn endpoints(part: &Part<Raw>) -> Option<usize> {
    let count = |of: &ClusterLoadAssignment| {
        let localities = of.endpoints.iter();
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
