//! Places of resources in a file, also of those that were sent in a part.

use trunkline_proto::Path;
use trunkline_proto::text::{Document, Position};

use super::parts::Origin;
use crate::client::Detail;

/// The places of a file.
pub(super) struct Places {
    pub(super) file: String,
    /// The parsed file, if it is a text.
    document: Option<Document>,
}

/// The index of a resource in a file; of a virtual host, that of its route
/// configuration and its own in there.
pub(super) type Number = (usize, Option<usize>);

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

    /// Writes the place of a resource as a compiler would: with its line and
    /// column, or with its path in a binary file.
    pub(super) fn describe_place(&self, number: Number) -> String {
        let file = &self.file;
        match self.position(number) {
            Some(at) => format!("{file}:{at}"),
            None => format!("{file}: {}", path_of(number)),
        }
    }

    /// Returns the line and the column of a resource; `None` in a binary file,
    /// or if the file has no such resource.
    fn position(&self, (index, host): Number) -> Option<Position> {
        let read = self.document.as_ref()?.resources.get(index)?;
        let inner = host.map(|host| read.item("virtual_hosts", host));
        Some(read.position(&inner.unwrap_or_else(Path::default)))
    }

    /// Gives a mistake that the server found in a part its place in the file:
    /// the line and the column, and the paths in its field and its message.
    /// `origins` are those of the part.
    pub(super) fn locate(&self, detail: Detail, origins: &[Origin]) -> Detail {
        let (field, number) = renumber(&detail.field, origins);
        let (message, _) = renumber(&detail.message, origins);
        let at = number.and_then(|number| self.position(number));
        Detail {
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            field,
            message,
        }
    }
}

/// Writes the path of a resource, as the server does.
fn path_of((index, host): Number) -> String {
    match host {
        Some(host) => format!("{RESOURCES}{index}]{HOSTS}{host}]"),
        None => format!("{RESOURCES}{index}]"),
    }
}

/// The beginning of every path.
const RESOURCES: &str = "resources[";
/// The path from a resource to its virtual hosts.
const HOSTS: &str = ".virtual_hosts[";
/// The end of an index, with the path from a wrapper to its resource.
const WRAPPED: &str = "].resource";

/// Replaces the indexes of a part by those of the file, in every path in a
/// text. Returns the text, and the resource that its first path names.
fn renumber(text: &str, origins: &[Origin]) -> (String, Option<Number>) {
    let mut out = String::new();
    let mut first = None;
    let mut rest = text;
    while let Some(at) = rest.find(RESOURCES) {
        let (before, path) = rest.split_at(at + RESOURCES.len());
        out.push_str(before);
        rest = path;
        // A path that names no resource of the part is copied as it is.
        if let Some((number, after)) = renumber_path(path, origins, &mut out) {
            first = first.or(Some(number));
            rest = after;
        }
    }

    out.push_str(rest);
    (out, first)
}

/// Writes a path, which begins behind [`RESOURCES`], up to the index of its
/// resource, or of the virtual host in it: these are the file's, in place of
/// the part's. Returns the resource, or virtual host, and the rest of the text,
/// which is not written. `None`, with nothing written, if the path names no
/// resource of the part.
fn renumber_path<'a>(
    path: &'a str,
    origins: &[Origin],
    out: &mut String,
) -> Option<(Number, &'a str)> {
    let (index, after) = split_index(path)?;
    let origin = origins.get(index)?;

    out.push_str(&origin.resource.to_string());
    let Some((between, host, after)) = split_host(after) else {
        return Some(((origin.resource, None), after));
    };
    let host = host + origin.first_host;
    out.push_str(&format!("{between}{HOSTS}{host}"));
    Some(((origin.resource, Some(host)), after))
}

/// Splits a path behind the index of a resource into three: the text before
/// [`HOSTS`], which is longer in a wrapper; the index of the virtual host; and
/// the rest. Returns `None` if the path is not that of a virtual host.
fn split_host(path: &str) -> Option<(&'static str, usize, &str)> {
    let between = match path.starts_with(WRAPPED) {
        true => WRAPPED,
        false => "]",
    };
    let inner = path.strip_prefix(between)?.strip_prefix(HOSTS)?;
    let (host, after) = split_index(inner)?;
    Some((between, host, after))
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
    fn numbers_of_a_part_become_those_of_the_file() {
        let origin = |resource, first_host| Origin {
            resource,
            first_host,
        };
        let origins = [origin(7, 100), origin(8, 0)];
        for (part, file, first) in [
            ("resources[0].name", "resources[7].name", Some((7, None))),
            (
                "resources[0].virtual_hosts[3].domains",
                "resources[7].virtual_hosts[103].domains",
                Some((7, Some(103))),
            ),
            (
                "resources[0].resource.virtual_hosts[3]",
                "resources[7].resource.virtual_hosts[103]",
                Some((7, Some(103))),
            ),
            (
                "x, at resources[1]; and resources[0]",
                "x, at resources[8]; and resources[7]",
                Some((8, None)),
            ),
            ("resources[9] resources[x", "resources[9] resources[x", None),
            ("", "", None),
        ] {
            assert_eq!(renumber(part, &origins), (file.to_owned(), first));
        }
    }
}
