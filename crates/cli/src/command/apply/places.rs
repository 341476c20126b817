//! Places of resources in a file, also of those that were sent in a part.

use trunkline_proto::Path;
use trunkline_proto::text::{Document, Position};

use crate::client::Detail;

/// The places of a file.
pub(super) struct Places {
    pub(super) file: String,
    /// The parsed file, if it is a text.
    document: Option<Document>,
}

/// The index of a resource in a file; of a virtual host, that of its route
/// configuration and its own in there.
type Number = (usize, Option<usize>);

impl Places {
    /// Makes the places of a binary file, which has no lines: they are paths.
    pub(super) fn binary(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            document: None,
        }
    }

    /// Makes the places of a text, which are lines and columns.
    pub(super) fn text(file: &str, document: Document) -> Self {
        Self {
            file: file.to_owned(),
            document: Some(document),
        }
    }

    /// Returns the line and the column of a resource; `None` in a binary file,
    /// or if the file has no such resource.
    fn position(&self, (index, host): Number) -> Option<Position> {
        let read = self.document.as_ref()?.resources.get(index)?;
        let inner = host.map(|host| read.item("virtual_hosts", host));
        Some(read.position(&inner.unwrap_or_else(Path::default)))
    }

    /// Gives a mistake that the server found its line and its column, by the
    /// path in its field.
    pub(super) fn locate(&self, detail: Detail) -> Detail {
        let at = number_of(&detail.field).and_then(|number| self.position(number));
        Detail {
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            ..detail
        }
    }
}

/// The beginning of every path.
const RESOURCES: &str = "resources[";
/// The path from a resource to its virtual hosts.
const HOSTS: &str = ".virtual_hosts[";
/// The end of an index, with the path from a wrapper to its resource.
const WRAPPED: &str = "].resource";

/// Returns the resource, or the virtual host, that a path leads to; `None` if it
/// leads to neither.
fn number_of(path: &str) -> Option<Number> {
    let (index, after) = split_index(path.strip_prefix(RESOURCES)?)?;
    Some((index, host_of(after)))
}

/// Returns the index of the virtual host in a path behind the index of a
/// resource, which may be in a wrapper; `None` if it is not that of a virtual
/// host.
fn host_of(path: &str) -> Option<usize> {
    let inner = path.strip_prefix(WRAPPED).or(path.strip_prefix(']'))?;
    let (host, _) = split_index(inner.strip_prefix(HOSTS)?)?;
    Some(host)
}

/// Splits a text into the index at its beginning and the rest, from the
/// closing bracket on; `None` if it does not begin with an index.
fn split_index(text: &str) -> Option<(usize, &str)> {
    let end = text.find(']')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_resource_or_to_a_virtual_host_in_it() {
        for (path, number) in [
            ("resources[7].name", Some((7, None))),
            (
                "resources[7].virtual_hosts[103].domains",
                Some((7, Some(103))),
            ),
            ("resources[7].resource.virtual_hosts[3]", Some((7, Some(3)))),
            ("resources[7].resource.name", Some((7, None))),
            ("resources[x", None),
            ("", None),
        ] {
            assert_eq!(number_of(path), number, "{path}");
        }
    }
}
