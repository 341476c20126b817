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

impl Places {
    /// Makes the places of a binary file, which has no lines: they are paths.
    pub(super) fn binary(file: &str) -> Self {
        Self(vec![PlacedFile {
            name: file.to_owned(),
            first: 0,
            document: None,
        }])
    }

    /// Makes the places of files whose resources follow each other in this
    /// order, with indices that count through all files.
    pub(super) fn files(files: impl IntoIterator<Item = (String, Document)>) -> Self {
        let mut first_index = 0;
        let files = files.into_iter().map(|(name, document)| {
            let count = document.resources.len();
            let file = PlacedFile {
                name,
                first: first_index,
                document: Some(document),
            };
            first_index += count;
            file
        });
        Self(files.collect())
    }

    /// Returns the names of the files, for messages.
    pub(super) fn names(&self) -> String {
        match &self.0[..] {
            [only] => only.name.clone(),
            several => format!("{} files", several.len()),
        }
    }

    /// Gives a finding of the server its file, line and column, by the path in
    /// its field. A finding without a path gets the file's name only if there
    /// is a single file.
    pub(super) fn locate(&self, detail: Detail) -> Message {
        let related_place = detail.related.as_ref().and_then(|related_place| {
            let (file, index) = self.find(&related_place.field)?;
            Some((
                file.spot(index, &related_place.field)?,
                related_place.message.clone(),
            ))
        });
        let Some((file, index)) = self.find(&detail.field) else {
            let name = match &self.0[..] {
                [file] => file.name.as_str(),
                _ => "",
            };
            return detail.in_file(name);
        };

        let message = file.locate_in_file(index, detail).in_file(&file.name);
        Message {
            related: related_place,
            ..message
        }
    }

    /// Finds the file of a path, and the resource in it.
    fn find(&self, path: &str) -> Option<(&PlacedFile, usize)> {
        let (index, _) = split_index(path)?;
        let begins_before = |file: &&PlacedFile| file.first <= index;
        Some((self.0.iter().rev().find(begins_before)?, index))
    }
}

impl PlacedFile {
    /// Gives a finding its line and column, and its path within this file.
    fn locate_in_file(&self, index: usize, detail: Detail) -> Detail {
        let spot = self.spot(index, &detail.field);
        let (_, path_in_resource) = split_index(&detail.field).unwrap_or_default();
        Detail {
            line: spot.as_ref().map(|spot| spot.line),
            column: spot.as_ref().map(|spot| spot.column),
            field: format!("{RESOURCES}{}]{path_in_resource}", index - self.first),
            ..detail
        }
    }

    /// Returns the line and the column of a path, or of the nearest enclosing
    /// part. Returns `None` in a binary file, or if the file has no such
    /// resource.
    fn spot(&self, index: usize, path: &str) -> Option<Spot> {
        let resource = self.document.as_ref()?.resources.get(index - self.first)?;
        let (_, path_in_resource) = split_index(path)?;
        let path_in_resource = path_in_resource
            .strip_prefix(WRAPPED)
            .unwrap_or(path_in_resource);
        let position = resource.position_of(path_in_resource.trim_start_matches('.'));
        (position.line > 0).then(|| Spot {
            file: self.name.clone(),
            line: position.line,
            column: position.column,
        })
    }
}

/// The beginning of every path.
const RESOURCES: &str = "resources[";
/// The path from a wrapper to its resource.
const WRAPPED: &str = ".resource.";

/// Splits a path into the index of its resource and the rest; `None` if it does
/// not lead to a resource.
fn split_index(path: &str) -> Option<(usize, &str)> {
    let (index, inner_path) = path.strip_prefix(RESOURCES)?.split_once(']')?;
    Some((index.parse().ok()?, inner_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_the_index_of_its_resource() {
        for (path, split) in [
            ("resources[7].name", Some((7, ".name"))),
            ("resources[7]", Some((7, ""))),
            (
                "resources[7].resource.virtual_hosts[3]",
                Some((7, ".resource.virtual_hosts[3]")),
            ),
            ("resources[x", None),
            ("", None),
        ] {
            assert_eq!(split_index(path), split, "{path}");
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
            "a.yaml:3:72: resources[1].name: wrong"
        );
        assert_eq!(describe("resources[2]"), "b.yaml:2:3: resources[0]: wrong");
        assert_eq!(describe(""), "wrong");
    }
}
