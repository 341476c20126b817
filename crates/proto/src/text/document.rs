//! A file of resources: the parts of the tree that are resources, and the
//! results of reading them.

use std::fmt;

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage};

use super::{
    Format, Options, bootstrap,
    error::{Problem, TextError},
    locate::find_place,
    plain::parse_by,
    read::{TYPE, Walk, opaque_body},
    schema::Schema,
    tree::{Node, Position, Value},
};
use crate::{
    canonical, descriptor, discovery,
    path::{Path, Step},
};

/// The result of reading a file: good resources and mistakes, together.
#[derive(Debug, Default)]
pub struct Document {
    /// Resources without a mistake, in the order of the file.
    pub resources: Vec<Resource>,
    /// Mistakes. A resource with one is not in `resources`.
    pub errors: Vec<TextError>,
    /// Numbers that Envoy takes for octal; unknown fields, if the options say
    /// that they are left out.
    pub warnings: Vec<TextError>,
    /// Whether the document says `allow_removal: true`: that it may remove as
    /// much as it does.
    pub allow_removal: bool,
}

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
    /// Finds the place of a part of this resource in the text, by its path from
    /// within the resource. If the part is not written there, it is the place
    /// of the nearest part around it.
    #[must_use]
    pub fn position(&self, path: &Path) -> Position {
        let mut node = &self.node;
        let mut at = node.at;
        for step in path.steps() {
            match find_part(node, step) {
                Some(part) => (at, node) = part,
                None => break,
            }
        }
        at
    }

    /// Finds the place of a part of this resource in the text, by its path as
    /// people read it, from within the resource. If the part is not written
    /// there, it is the place of the nearest part around it.
    #[must_use]
    pub fn position_of(&self, path: &str) -> Position {
        find_place(&self.node, path)
    }

    /// Returns the path of an item in the field `list`, from within the
    /// resource; an empty path if the resource has no such field. The item need
    /// not exist.
    #[must_use]
    pub fn item(&self, list: &str, index: usize) -> Path {
        let mut path = Path::default();
        if let Some(field) = self.message.descriptor().get_field_by_name(list) {
            path.push(Step::Field(field));
            path.push(Step::Index(index));
        }
        path
    }

    /// The file of the resource.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// Finds the part of a tree that is one step further in, and the place at which
/// it starts, key included. `None` if the tree has no such part.
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

/// Reads the resources of a file; its name decides between YAML and JSON.
#[must_use]
pub fn read(file: &str, text: &str, options: &Options) -> Document {
    read_as(Format::of(file), file, text, options)
}

/// Reads the resources of a text whose format is known; `file` is its name in
/// errors. A text that is not of the format has one error and no resources.
#[must_use]
pub fn read_as(format: Format, file: &str, text: &str, options: &Options) -> Document {
    match parse_by(Schema::Envoy, format, file, text, &options.limits) {
        Ok(parsed) => {
            let mut reader = Reader::new(file, options);
            let octals = parsed.octals.into_iter();
            let octals = octals.map(|(at, problem)| TextError::without_path(file, at, problem));
            reader.walk.warnings.extend(octals);
            for root in parsed.documents {
                reader.read_document(root);
            }
            reader.finish()
        }
        Err(error) => Document::of_error(*error),
    }
}

impl Document {
    /// Makes the result for a file of which nothing could be read.
    pub(super) fn of_error(error: TextError) -> Self {
        Self {
            errors: vec![error],
            ..Self::default()
        }
    }
}

/// Collects the resources of a document.
pub(super) struct Reader<'a> {
    pub(super) walk: Walk<'a>,
    resources: Vec<Resource>,
    allow_removal: bool,
}

impl<'a> Reader<'a> {
    /// Makes a reader that has read nothing yet.
    fn new(file: &'a str, options: &'a Options) -> Self {
        Self {
            walk: Walk::new(file, options),
            resources: Vec::new(),
            allow_removal: false,
        }
    }

    /// Returns the results of all documents of the file.
    fn finish(self) -> Document {
        Document {
            resources: self.resources,
            errors: self.walk.errors,
            warnings: self.walk.warnings,
            allow_removal: self.allow_removal,
        }
    }

    /// Reads one document: a resource, a list of resources, or a bootstrap.
    /// Anything else is a mistake, but an empty document is none. Each but a
    /// resource may say `allow_removal`, and a document may say nothing else.
    fn read_document(&mut self, mut root: Node) {
        let has_type = root.get(TYPE).is_some();
        if !has_type && self.take_allow_removal(&mut root) && root.is_empty_map() {
            return;
        }
        if has_type {
            return self.add_resource(|reader| reader.read_resource(root));
        }

        match root.value {
            // An empty file, or a `---` with nothing after it.
            Value::Null => {}
            Value::Map(_) if root.get(RESOURCES).is_some() => self.read_response(root),
            Value::Map(_) if bootstrap::has_resources(&root) => self.read_bootstrap(root),
            _ => {
                let problem = Problem::NotADocument(root.describe());
                self.walk.report::<()>(root.at, problem);
            }
        }
    }

    /// Takes `allow_removal` out of a document. Returns whether it was there.
    fn take_allow_removal(&mut self, root: &mut Node) -> bool {
        let Value::Map(entries) = &mut root.value else {
            return false;
        };
        let Some(index) = entries.iter().position(|entry| entry.key == ALLOW_REMOVAL) else {
            return false;
        };

        let node = entries.remove(index).node;
        self.walk.path.push(Step::Name(ALLOW_REMOVAL));
        match node.value {
            Value::Bool(allowed) => self.allow_removal |= allowed,
            _ => {
                let problem = Problem::WrongKind {
                    expected: "true or false".to_owned(),
                    found: node.describe(),
                };
                self.walk.report::<()>(node.at, problem);
            }
        }
        self.walk.path.pop();
        true
    }

    /// Reads a document in the form of a `DiscoveryResponse`: its `resources`.
    /// Its other fields are read so that a mistake in them is seen, and not
    /// used.
    fn read_response(&mut self, root: Node) {
        let response = descriptor::message("envoy.service.discovery.v3.DiscoveryResponse");
        if let Some(of) = response {
            self.walk.read_fields(&of, &root, &[RESOURCES]);
        }

        let Value::Map(entries) = root.value else {
            return;
        };
        let list = entries.into_iter().find(|entry| entry.key == RESOURCES);
        let list = list.map(|entry| entry.node);
        self.walk.path.push(Step::Name(RESOURCES));
        self.read_list(list, Self::read_resource);
        self.walk.path.pop();
    }

    /// Reads the items of a list of resources, each with `read`, and adds those
    /// without a mistake. A list that is missing or null has no items; a value
    /// that is no list is a mistake.
    pub(super) fn read_list(
        &mut self,
        list: Option<Node>,
        read: impl Fn(&mut Self, Node) -> Option<Resource>,
    ) {
        let Some(Node { at, value }) = list else {
            return;
        };
        match value {
            Value::List(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.walk.path.push(Step::Index(index));
                    self.add_resource(|reader| read(reader, item));
                    self.walk.path.pop();
                }
            }
            Value::Null => {}
            value => {
                let expected = "a list of resources".to_owned();
                let found = Node { at, value }.describe();
                let problem = Problem::WrongKind { expected, found };
                self.walk.report::<()>(at, problem);
            }
        }
    }

    /// Adds the resource that `read` returns, unless it reported a mistake.
    fn add_resource(&mut self, read: impl FnOnce(&mut Self) -> Option<Resource>) {
        let mistakes_before = self.walk.total;
        let resource = read(self);
        if self.walk.total == mistakes_before {
            self.resources.extend(resource);
        }
    }

    /// Reads a resource that states its type, out of its wrapper if it has one.
    /// `None` if a mistake was reported.
    fn read_resource(&mut self, node: Node) -> Option<Resource> {
        let url = self.walk.read_type_url(&node)?;
        if descriptor::full_name(url) != descriptor::full_name(descriptor::types::RESOURCE) {
            return self.read_body(node, discovery::Resource::default());
        }

        let of = descriptor::message(url)?;
        let wrapper = self.read_wrapper(&of, &node)?;
        let Some(entry) = node.get(BODY) else {
            return self.walk.report(node.at, Problem::MissingBody);
        };
        let body = entry.node.clone();
        self.walk.path.push(Step::Name(BODY));
        let resource = self.read_body(body, wrapper);
        self.walk.path.pop();
        resource
    }

    /// Reads a resource that is not wrapped, or no longer: `wrapper` was read
    /// before. A body of an unknown type passes if it is written as base64.
    fn read_body(&mut self, node: Node, wrapper: discovery::Resource) -> Option<Resource> {
        let type_url = self.walk.read_type_url(&node)?.to_owned();
        let (message, body) = match opaque_body(&type_url, &node) {
            Some(body) => (opaque(), body),
            None => {
                let message = self.walk.read_typed(&type_url, &node)?;
                let body = self.walk.encode(&message, node.at)?;
                (message, body)
            }
        };
        Some(self.build_resource(type_url, message, body, wrapper, node))
    }

    /// Reads a resource that does not state its type, because its place in the
    /// document tells it: `of`.
    pub(super) fn read_untyped(&mut self, of: MessageDescriptor, node: Node) -> Option<Resource> {
        let type_url = format!("{PREFIX}{}", of.full_name());
        let message = self.walk.read_fields(&of, &node, &[])?;
        let body = self.walk.encode(&message, node.at)?;
        let wrapper = discovery::Resource::default();
        Some(self.build_resource(type_url, message, body, wrapper, node))
    }

    /// Puts the parts of a resource together. Its path is that of the walk.
    fn build_resource(
        &self,
        type_url: String,
        message: DynamicMessage,
        body: Vec<u8>,
        wrapper: discovery::Resource,
        node: Node,
    ) -> Resource {
        Resource {
            type_url,
            message,
            body: body.into(),
            wrapper,
            path: self.walk.path.clone(),
            file: self.walk.file.to_owned(),
            node,
        }
    }

    /// Reads the fields of a wrapper other than its resource, by way of its
    /// encoded message. `None` if it cannot be read, which was reported.
    fn read_wrapper(&mut self, of: &MessageDescriptor, node: &Node) -> Option<discovery::Resource> {
        let message = self.walk.read_fields(of, node, &[TYPE, BODY])?;
        let bytes = self.walk.encode(&message, node.at)?;
        match discovery::Resource::decode(Bytes::from(bytes)) {
            Ok(wrapper) => Some(wrapper),
            Err(error) => {
                let problem = Problem::Encoding(error.to_string());
                self.walk.report(node.at, problem)
            }
        }
    }
}

/// The key of the list of resources in a document.
const RESOURCES: &str = "resources";
/// The key that says that a document may remove as much as it does.
const ALLOW_REMOVAL: &str = "allow_removal";
/// The field of a wrapper that holds the resource.
pub(super) const BODY: &str = "resource";
/// The prefix of type URLs.
const PREFIX: &str = "type.googleapis.com/";

/// Stands for the contents of an unknown type.
pub(super) fn opaque() -> DynamicMessage {
    ().transcode_to_dynamic()
}

impl Walk<'_> {
    /// Encodes a message canonically. One that nests too deep is reported as a
    /// mistake at `at`, and gives `None`.
    pub(super) fn encode(&mut self, message: &DynamicMessage, at: Position) -> Option<Vec<u8>> {
        match canonical::encode(message) {
            Ok(bytes) => Some(bytes),
            Err(error) => self.report(at, Problem::Encoding(error.to_string())),
        }
    }
}
