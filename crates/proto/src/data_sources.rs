//! Files that the data sources of a message name, and their contents in place
//! of their names.
//!
//! A `DataSource` is found by its type, wherever it is, through every `Any`. No
//! file is read here: the caller has the contents.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bytes::Bytes;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage as _, Value};

use crate::canonical::{self, ANY_VALUE, CanonicalError, MAX_DEPTH, any_parts};
use crate::descriptor;
use crate::path::{Path, Step, key_text};

const ANY: &str = "google.protobuf.Any";
const DATA_SOURCE: &str = "envoy.config.core.v3.DataSource";
/// The field of a data source that names a file.
const FILENAME: &str = "filename";
/// The field of a data source that holds its contents.
const INLINE_BYTES: &str = "inline_bytes";
/// The field that names the directory which a client watches for a file. It is
/// in a data source, or in a message around some.
const WATCHED_DIRECTORY: &str = "watched_directory";
/// The field of a watched directory that has its path.
const DIRECTORY_PATH: &str = "path";

/// Returns whether the name of a file is a relative path, on the systems of
/// servers and clients alike.
#[must_use]
pub fn is_relative(name: &str) -> bool {
    !name.starts_with('/') && std::path::Path::new(name).is_relative()
}

/// Replaces file names that are relative paths by the contents of the files.
/// `contents_of` gets the path of the field and the name; if it returns `None`,
/// the name stays. A relative `watched_directory` beside replaced names is
/// removed, since no client reads a file there. Returns whether the message
/// changed.
///
/// # Errors
/// A changed message in an `Any` nests too deep.
pub fn fill(
    message: &mut DynamicMessage,
    contents_of: &mut dyn FnMut(&Path, &str) -> Option<Bytes>,
) -> Result<bool, CanonicalError> {
    let mut walk = Walk {
        path: Path::default(),
        contents_of,
    };
    walk.walk_message(message, 0)
}

struct Walk<'a> {
    path: Path,
    contents_of: &'a mut dyn FnMut(&Path, &str) -> Option<Bytes>,
}

/// Whether something changed.
type WalkResult = Result<bool, CanonicalError>;

impl Walk<'_> {
    /// Walks a part that is one step further in, with the path of that part.
    fn walk_at<T>(&mut self, step: Step, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let walked = walk(self);
        self.path.pop();
        walked
    }

    /// Fills the data sources in a message, and returns whether one was filled.
    /// `depth` is the number of enclosing messages, through every `Any`. A
    /// message that nests too deep is left alone: it has no canonical form, so
    /// it is refused elsewhere.
    fn walk_message(&mut self, message: &mut DynamicMessage, depth: usize) -> WalkResult {
        if depth > MAX_DEPTH {
            return Ok(false);
        }
        match message.descriptor().full_name() {
            ANY => return self.walk_any(message, depth),
            DATA_SOURCE => return Ok(self.fill_source(message)),
            _ => {}
        }

        let mut changed = false;
        for (field, value) in message.fields_mut() {
            changed |= self.walk_at(Step::Field(field), |walk| walk.walk_value(value, depth))?;
        }
        if changed {
            clear_relative_directory(message);
        }
        Ok(changed)
    }

    /// Walks the messages in a value. `depth` is the number of messages around
    /// the value.
    fn walk_value(&mut self, value: &mut Value, depth: usize) -> WalkResult {
        match value {
            Value::Message(message) => self.walk_message(message, depth + 1),
            Value::List(list) => self.walk_list(list, depth),
            Value::Map(map) => self.walk_map(map, depth),
            _ => Ok(false),
        }
    }

    /// Walks the messages in a list. Skips a list of scalars.
    fn walk_list(&mut self, list: &mut [Value], depth: usize) -> WalkResult {
        let mut changed = false;
        for (index, item) in list.iter_mut().enumerate() {
            // All items of a list are of one kind, so this list has no messages.
            let Value::Message(item) = item else { break };
            let walk_item = |walk: &mut Self| walk.walk_message(item, depth + 1);
            changed |= self.walk_at(Step::Index(index), walk_item)?;
        }
        Ok(changed)
    }

    /// Walks the messages in a map in the order of its keys, so that findings
    /// are always in the same order. Skips a map of scalars.
    fn walk_map(&mut self, map: &mut HashMap<MapKey, Value>, depth: usize) -> WalkResult {
        let mut changed = false;
        let mut pairs: Vec<_> = map.iter_mut().collect();
        pairs.sort_by_key(|(key, _)| *key);
        for (key, value) in pairs {
            // All entries of a map are of one kind, so this map has no messages.
            let Value::Message(value) = value else { break };
            let walk_entry = |walk: &mut Self| walk.walk_message(value, depth + 1);
            changed |= self.walk_at(Step::Key(key_text(key)), walk_entry)?;
        }
        Ok(changed)
    }

    /// Walks the message in an `Any`, and encodes the message again if it
    /// changed. A body that cannot be decoded, or has an unknown type, stays
    /// unchanged.
    fn walk_any(&mut self, any: &mut DynamicMessage, depth: usize) -> WalkResult {
        let Some((type_url, body)) = any_parts(any) else {
            return Ok(false);
        };
        let descriptor = descriptor::message(&type_url);
        let Some(mut inner) =
            descriptor.and_then(|descriptor| DynamicMessage::decode(descriptor, body).ok())
        else {
            return Ok(false);
        };

        let changed = self.walk_message(&mut inner, depth + 1)?;
        if changed {
            let body = canonical::encode(&inner)?.into();
            any.set_field_by_number(ANY_VALUE, Value::Bytes(body));
        }
        Ok(changed)
    }

    /// Puts the contents of a file into a data source that names the file by a
    /// relative path. Returns `false` if the source has no such name, or there
    /// are no contents.
    fn fill_source(&mut self, source: &mut DynamicMessage) -> bool {
        let Some(field) = source.descriptor().get_field_by_name(FILENAME) else {
            return false;
        };
        let name = source.get_field(&field);
        let name = name.as_str().unwrap_or_default();
        // The rules of Envoy report an empty name.
        if name.is_empty() || !is_relative(name) {
            return false;
        }

        let name = name.to_owned();
        let contents = self.walk_at(Step::Field(field), |walk| {
            (walk.contents_of)(&walk.path, &name)
        });
        let Some(contents) = contents else {
            return false;
        };
        // This sets the other field of the oneof, and so clears the name.
        source.set_field_by_name(INLINE_BYTES, Value::Bytes(contents));
        clear_relative_directory(source);
        true
    }
}

/// Removes the `watched_directory` of a message if its path is relative.
fn clear_relative_directory(message: &mut DynamicMessage) {
    let is_relative_directory = |directory: &DynamicMessage| {
        let path = directory.get_field_by_name(DIRECTORY_PATH);
        path.is_some_and(|path| path.as_str().is_some_and(is_relative))
    };
    let directory = message.get_field_by_name(WATCHED_DIRECTORY);
    let directory = directory
        .as_ref()
        .and_then(|directory| directory.as_message());
    if directory.is_some_and(is_relative_directory) {
        message.clear_field_by_name(WATCHED_DIRECTORY);
    }
}
