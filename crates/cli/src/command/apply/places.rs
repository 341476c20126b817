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

/// The index of a resource in a file, and that of its virtual host.
pub(super) type Number = (usize, Option<usize>);

impl Places {
    pub(super) fn binary(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            document: None,
        }
    }

    pub(super) fn text(file: &str, document: Document) -> Self {
        Self {
            file: file.to_owned(),
            document: Some(document),
        }
    }

    /// The place as a compiler would print it.
    pub(super) fn name(&self, number: Number) -> String {
        let file = &self.file;
        match self.position(number) {
            Some(at) => format!("{file}:{at}"),
            None => format!("{file}: {}", path(number)),
        }
    }

    fn position(&self, (index, host): Number) -> Option<Position> {
        let read = self.document.as_ref()?.resources.get(index)?;
        let inner = host.map(|host| read.item("virtual_hosts", host));
        Some(read.position(&inner.unwrap_or_else(Path::default)))
    }

    /// A mistake in a part, with its place in the file.
    pub(super) fn translate(&self, detail: Detail, origins: &[(usize, usize)]) -> Detail {
        let (field, number) = translate(&detail.field, origins);
        let (message, _) = translate(&detail.message, origins);
        let at = number.and_then(|number| self.position(number));
        Detail {
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            field,
            message,
        }
    }
}

fn path((index, host): Number) -> String {
    match host {
        Some(host) => format!("resources[{index}].virtual_hosts[{host}]"),
        None => format!("resources[{index}]"),
    }
}

/// A text with the indexes of a part replaced by those of the file; and the
/// first of them.
fn translate(text: &str, origins: &[(usize, usize)]) -> (String, Option<Number>) {
    let (mut out, mut first) = (String::new(), None);
    let mut rest = text;
    while let Some(at) = rest.find(RESOURCES) {
        let (before, after) = rest.split_at(at + RESOURCES.len());
        out.push_str(before);
        rest = after;
        let Some((index, after)) = number(after) else {
            continue;
        };
        let Some((origin, hosts)) = origins.get(index).copied() else {
            continue;
        };
        out.push_str(&origin.to_string());
        rest = after;
        // A wrapper may be between the two.
        let wrapper = match rest.starts_with(WRAPPED) {
            true => WRAPPED,
            false => "]",
        };
        let inner = rest
            .strip_prefix(wrapper)
            .and_then(|r| r.strip_prefix(HOSTS));
        let host = inner.and_then(number).map(|(host, after)| {
            out.push_str(wrapper);
            out.push_str(HOSTS);
            out.push_str(&(host + hosts).to_string());
            rest = after;
            host + hosts
        });
        first = first.or(Some((origin, host)));
    }
    out.push_str(rest);
    (out, first)
}

const RESOURCES: &str = "resources[";
const WRAPPED: &str = "].resource";
const HOSTS: &str = ".virtual_hosts[";

/// A number that ends in a bracket.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(']')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_part_become_those_of_the_file() {
        let origins = [(7, 100), (8, 0)];
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
            assert_eq!(translate(part, &origins), (file.to_owned(), first));
        }
    }
}
