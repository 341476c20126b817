//! A resource of a file, with the places of its parts.

use std::fmt;

use bytes::Bytes;
use prost_reflect::{DynamicMessage, ReflectMessage as _};

use super::locate::find_place;
use super::tree::{Node, Position, Value};
use crate::{
    discovery,
    path::{Path, Step},
};

/// A resource of a file.
#[derive(Clone)]
pub struct Resource {
    /// Its type.
    pub type_url: String,
    /// Its contents; an empty message if its type is unknown.
    pub message: DynamicMessage,
    /// Its canonical bytes; as they came, if its type is unknown (S70).
    pub body: Bytes,
    /// Its wrapper, without the body; default if the resource is not wrapped.
    pub wrapper: discovery::Resource,
    /// Its place in the document, such as `resources[2]`.
    pub path: Path,
    pub(super) file: String,
    /// The tree that it was read from; null if that was not text.
    pub(super) node: Node,
}

/// By hand: the derived form would print descriptors, which refer to each
/// other without end, and the body, which may be a secret.
impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("type_url", &self.type_url)
            .field("path", &self.path)
            .field("bytes", &self.body.len())
            .field("wrapper", &self.wrapper)
            .finish_non_exhaustive()
    }
}

impl Resource {
    /// Returns the position of a part of this resource in the text, by its path
    /// within the resource. If the part is not in the text, returns the
    /// position of the nearest enclosing part.
    #[must_use]
    pub fn position(&self, path: &Path) -> Position {
        let mut node = &self.node;
        let mut position = node.at;
        for step in path.steps() {
            match find_part(node, step) {
                Some(part) => (position, node) = part,
                None => break,
            }
        }
        position
    }

    /// Finds the place of a part of this resource in the text, by its path as
    /// people read it, from within the resource. If the part is not written
    /// there, it is the place of the nearest part around it.
    #[must_use]
    pub fn position_of(&self, path: &str) -> Position {
        find_place(&self.node, path)
    }

    /// Returns the path of an item in the field `list`, within the resource.
    /// The item need not exist. Returns an empty path if the resource has no
    /// such field.
    #[must_use]
    pub fn item(&self, list: &str, index: usize) -> Path {
        let mut path = Path::default();
        if let Some(field) = self.message.descriptor().get_field_by_name(list) {
            path.push(Step::Field(field));
            path.push(Step::Index(index));
        }
        path
    }

    /// Returns the file of the resource.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// Finds the part of a tree that is one step further, with the position where
/// it starts, key included. Returns `None` if the tree has no such part.
fn find_part<'n>(node: &'n Node, step: &Step) -> Option<(Position, &'n Node)> {
    let entry = match step {
        Step::Index(index) => {
            let Value::List(list) = &node.value else {
                return None;
            };
            return list.get(*index).map(|item| (item.at, item));
        }
        Step::Field(field) => {
            let by_name = node.get(field.name());
            by_name.or_else(|| node.get(field.json_name()))
        }
        Step::Name(name) => node.get(name),
        Step::Key(key) => node.get(key),
    };
    entry.map(|entry| (entry.at, &entry.node))
}

/// Stands for the contents of an unknown type.
pub(super) fn opaque() -> DynamicMessage {
    ().transcode_to_dynamic()
}
