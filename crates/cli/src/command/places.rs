//! Places of resources in files, also of those that were sent in a part, or
//! with those of other files.

use trunkline_proto::text::Document;

use crate::client::Detail;
use crate::report::{Message, Spot};

/// The places of a body that was made of files.
pub(super) struct Places(Vec<PlacedFile>);

/// A file, as a part of a body.
struct PlacedFile {
    name: String,
    /// The index of its first resource in the body.
    first: usize,
    /// The parsed file, if its resources are known.
    document: Option<Document>,
}

/// The index of a resource in a body; of a virtual host, that of its route
/// configuration and its own in there.
type Number = (usize, Option<usize>);

impl Places {
    /// Makes the places of a binary file, which has no lines: they are paths.
    pub(super) fn binary(file: &str) -> Self {
        Self(vec![PlacedFile {
            name: file.to_owned(),
            first: 0,
            document: None,
        }])
    }

    /// Makes the places of files whose resources follow each other, in this
    /// order.
    pub(super) fn files(files: impl IntoIterator<Item = (String, Document)>) -> Self {
        let mut first = 0;
        let placed = files.into_iter().map(|(name, document)| {
            let count = document.resources.len();
            let file = PlacedFile {
                name,
                first,
                document: Some(document),
            };
            first += count;
            file
        });
        Self(placed.collect())
    }

    /// Returns the names of the files, for messages.
    pub(super) fn names(&self) -> String {
        match &self.0[..] {
            [only] => only.name.clone(),
            several => format!("{} files", several.len()),
        }
    }

    /// Gives a finding of the server its file, its line and its column, by the
    /// path in its field. Without a path there is no file to name.
    pub(super) fn locate(&self, detail: Detail) -> Message {
        let related = detail.related.as_ref().and_then(|related| {
            let (file, number) = self.find(&related.field)?;
            Some((file.spot(number, &related.field)?, related.message.clone()))
        });
        let Some((file, number)) = self.find(&detail.field) else {
            let only = match &self.0[..] {
                [only] => only.name.as_str(),
                _ => "",
            };
            return detail.in_file(only);
        };
        let message = file.place(number, detail).in_file(&file.name);
        Message { related, ..message }
    }

    /// Finds the file of a path, and the resource in it.
    fn find(&self, path: &str) -> Option<(&PlacedFile, Number)> {
        let number = number_of(path)?;
        let before = |file: &&PlacedFile| file.first <= number.0;
        Some((self.0.iter().rev().find(before)?, number))
    }
}

impl PlacedFile {
    /// Gives a finding its line and its column in the file, and its path there.
    fn place(&self, number: Number, detail: Detail) -> Detail {
        let after = detail.field.find(']').unwrap_or_default();
        let spot = self.spot(number, &detail.field);
        Detail {
            line: spot.as_ref().map(|spot| spot.line),
            column: spot.as_ref().map(|spot| spot.column),
            field: format!(
                "{RESOURCES}{}{}",
                number.0 - self.first,
                &detail.field[after..]
            ),
            ..detail
        }
    }

    /// Returns the line and the column of a path; `None` in a binary file, or if
    /// the file has no such resource.
    fn spot(&self, (index, host): Number, _path: &str) -> Option<Spot> {
        let read = self.document.as_ref()?.resources.get(index - self.first)?;
        let inner = host.map(|host| read.item("virtual_hosts", host));
        let at = read.position(&inner.unwrap_or_default());
        (at.line > 0).then(|| Spot {
            file: self.name.clone(),
            line: at.line,
            column: at.column,
        })
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

    #[test]
    fn a_mistake_is_told_in_its_own_file() {
        let read = |file: &str, count: usize| {
            let cluster =
                "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c}";
            let text = format!("resources:\n{}", format!("{cluster}\n").repeat(count));
            let options = trunkline::wire::text_options();
            let document = trunkline_proto::text::read(file, &text, &options);
            assert_eq!(document.errors, []);
            (file.to_owned(), document)
        };
        let places = Places::files([read("a.yaml", 2), read("none.yaml", 0), read("b.yaml", 1)]);
        let describe = |field: &str| {
            let detail = Detail {
                field: field.to_owned(),
                message: "wrong".to_owned(),
                ..Detail::default()
            };
            places.locate(detail).text
        };
        assert_eq!(
            describe("resources[1].name"),
            "a.yaml:3:3: resources[1].name: wrong"
        );
        assert_eq!(describe("resources[2]"), "b.yaml:2:3: resources[0]: wrong");
        assert_eq!(describe(""), "wrong");
    }
}
