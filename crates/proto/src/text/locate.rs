//! The place of a field in a parsed text, by its path as people read it.

use super::tree::{Entry, Node, Position, Value};

/// One step of a path that was written out.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part<'a> {
    /// A field of a message.
    Field(&'a str),
    /// The key of a map.
    Key(&'a str),
    /// The index of an item.
    Index(usize),
}

/// Finds the value `text` in a tree at a path such as
/// `routes[0].route.cluster`. If it is not there, finds the first occurrence at
/// the same path with other indexes, since parts may have been removed from the
/// resource after it was read. Returns the path and the position, or `None` if
/// there is no such value.
#[must_use]
pub fn find_text(root: &Node, path: &str, text: &str) -> Option<(String, Position)> {
    let parts = split_path(path)?;
    [Indexes::Exact, Indexes::Any]
        .into_iter()
        .find_map(|indexes| {
            let mut search = Search {
                text,
                path: String::new(),
                indexes,
            };
            let position = search.find(root, &parts)?;
            Some((search.path, position))
        })
}

/// Returns the position of a path in a tree: that of a scalar itself, and of
/// another value that of its key. If the tree ends before the path, returns the
/// position of the last part that exists.
pub(super) fn find_place(root: &Node, path: &str) -> Position {
    let (mut node, mut position) = (root, root.at);
    for part in split_path(path).unwrap_or_default() {
        let part_place = match part {
            Part::Field(name) => field(node, name).map(|entry| (entry.at, &entry.node)),
            Part::Key(key) => node.get(key).map(|entry| (entry.at, &entry.node)),
            Part::Index(index) => item(node, index).map(|item| (item.at, item)),
        };
        match part_place {
            Some(part_place) => (position, node) = part_place,
            None => return position,
        }
    }
    match node.value {
        Value::List(_) | Value::Map(_) => position,
        _ => node.at,
    }
}

/// Which items of a list are searched, for an index in the path.
#[derive(Clone, Copy)]
enum Indexes {
    /// The one at the index.
    Exact,
    /// All of them.
    Any,
}

/// A search for a text. When it has succeeded, the path leads to it.
struct Search<'a> {
    text: &'a str,
    path: String,
    indexes: Indexes,
}

impl Search<'_> {
    /// Finds the value below a node, along the remaining parts of the path, and
    /// adds the followed parts to the path of the search. Returns `None` if the
    /// value is not there.
    fn find(&mut self, node: &Node, parts: &[Part<'_>]) -> Option<Position> {
        let Some((part, remainder)) = parts.split_first() else {
            let is_text =
                matches!(&node.value, Value::String(s) | Value::Number(s) if s == self.text);
            return is_text.then_some(node.at);
        };

        let path_len = self.path.len();
        let position = match part {
            Part::Field(name) => field(node, name).and_then(|entry| {
                let dot = if path_len == 0 { "" } else { "." };
                self.path.push_str(&format!("{dot}{name}"));
                self.find(&entry.node, remainder)
            }),
            Part::Key(key) => node.get(key).and_then(|entry| {
                self.path.push_str(&format!("[{key:?}]"));
                self.find(&entry.node, remainder)
            }),
            Part::Index(index) => self.find_in_list(node, *index, remainder),
        };

        if position.is_none() {
            self.path.truncate(path_len);
        }
        position
    }

    /// Finds the value in the items of a list: only in the item at the index,
    /// or in any of them.
    fn find_in_list(
        &mut self,
        node: &Node,
        index: usize,
        remainder: &[Part<'_>],
    ) -> Option<Position> {
        // Envoy accepts a single value in place of a list with one item.
        let list = match &node.value {
            Value::List(list) => list.as_slice(),
            _ => std::slice::from_ref(node),
        };

        let path_len = self.path.len();
        let mut candidates = match self.indexes {
            Indexes::Exact => index..index + 1,
            Indexes::Any => 0..list.len(),
        };

        candidates.find_map(|index| {
            let item = list.get(index)?;
            self.path.truncate(path_len);
            self.path.push_str(&format!("[{index}]"));
            self.find(item, remainder)
        })
    }
}

/// Returns the entry of a field, by its name or its name in JSON.
fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Entry> {
    node.get(name).or_else(|| node.get(&to_json_name(name)))
}

/// Returns an item of a list.
fn item(node: &Node, index: usize) -> Option<&Node> {
    match &node.value {
        Value::List(list) => list.get(index),
        _ => None,
    }
}

/// Returns the name of a field in JSON: `routeConfigName` for
/// `route_config_name`.
fn to_json_name(name: &str) -> String {
    let mut words = name.split('_');
    let first_word = words.next().unwrap_or_default().to_owned();
    words.fold(first_word, |mut json, word| {
        let mut chars = word.chars();
        json.extend(chars.next().map(|letter| letter.to_ascii_uppercase()));
        json + chars.as_str()
    })
}

/// Splits a path into its parts: names, indexes in brackets, and keys of maps
/// in brackets and quotes. Returns `None` if the path is malformed, or a key
/// has an escape.
fn split_path(path: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut remainder = path;

    while !remainder.is_empty() {
        if let Some(quoted) = remainder.strip_prefix("[\"") {
            let (key, tail) = quoted.split_once("\"]")?;
            if key.contains('\\') {
                return None;
            }
            parts.push(Part::Key(key));
            remainder = tail;
        } else if let Some(index) = remainder.strip_prefix('[') {
            let (index, tail) = index.split_once(']')?;
            parts.push(Part::Index(index.parse().ok()?));
            remainder = tail;
        } else {
            let name = remainder.strip_prefix('.').unwrap_or(remainder);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 {
                return None;
            }
            parts.push(Part::Field(&name[..end]));
            remainder = &name[end..];
        }
    }

    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Limits, parse};
    use super::*;

    const TEXT: &str = "\
resources:
- name: r
  routes:
  - {route: {cluster: a}}
  - {route: {clusterName: b}}
  map: {x.y: {v: [c]}, single: d}
";

    fn found(path: &str, text: &str) -> Option<(String, Position)> {
        let documents = parse(Format::Yaml, "", TEXT, &Limits::default()).unwrap();
        find_text(&documents[0], path, text)
    }

    fn at(path: &str, line: usize, column: usize) -> Option<(String, Position)> {
        Some((path.to_owned(), Position { line, column }))
    }

    #[test]
    fn a_text_is_found_at_its_path_or_beside_it() {
        let first = "resources[0].routes[0].route.cluster";
        assert_eq!(found(first, "a"), at(first, 4, 23));
        // Items before it were left out when it was read.
        let second = "resources[0].routes[1].route.cluster_name";
        assert_eq!(
            found("resources[0].routes[0].route.cluster_name", "b"),
            at(second, 5, 27)
        );
        assert_eq!(found(second, "b"), at(second, 5, 27));
        let in_map = "resources[0].map[\"x.y\"].v[0]";
        assert_eq!(found(in_map, "c"), at(in_map, 6, 19));
        assert_eq!(found("resources[0].map.single[0]", "d").unwrap().1.line, 6);
        for (path, text) in [
            (first, "b"),
            ("resources[0].routes", "a"),
            ("x[", "a"),
            ("..", "a"),
        ] {
            assert_eq!(found(path, text), None, "{path}");
        }
    }

    #[test]
    fn a_path_that_ends_early_has_the_place_of_its_last_part() {
        let documents = parse(Format::Yaml, "", TEXT, &Limits::default()).unwrap();
        let line = |path| find_place(&documents[0], path).line;
        assert_eq!(line("resources[0].routes[1].route.nothing"), 5);
        assert_eq!(line("resources[7]"), 1);
        let column = |path| find_place(&documents[0], path).column;
        assert_eq!(column("resources[0].routes[0].route.cluster"), 23);
        assert_eq!(column("resources[0].routes[0].route"), 6);
        assert_eq!(line(""), 1);
    }
}
