//! A file of resources: the parts of the tree that are resources, and the
//! results of reading them.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::{
    Format, Options, bootstrap,
    budget::RESOURCE,
    dump,
    error::{Problem, TextError},
    guess, manifest,
    plain::parse_by,
    read::{TYPE, Walk, opaque_body},
    resource::{Resource, opaque},
    schema::Schema,
    stranger,
    tree::{Node, Position, Value},
};
use crate::{descriptor, discovery, path::Step};

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

/// Reads the resources of a file; its name decides between YAML and JSON.
#[must_use]
pub fn read(file: &str, text: &str, options: &Options) -> Document {
    read_as(Format::of(file), file, text, options)
}

/// Reads the resources of a text of a known format. `file` is its name in
/// errors. A text that is not of the format has one error and no resources.
#[must_use]
pub fn read_as(format: Format, file: &str, text: &str, options: &Options) -> Document {
    match parse_by(Schema::Envoy, format, file, text, &options.limits) {
        Ok(parsed) => {
            let mut reader = Reader::new(file, options, parsed.charged_bytes);
            let octals = parsed.octals.into_iter();
            let octal_warnings =
                octals.map(|(position, problem)| TextError::without_path(file, position, problem));
            reader.walk.warnings.extend(octal_warnings);

            let is_empty = parsed
                .documents
                .iter()
                .all(|root| root.value == Value::Null);
            if is_empty {
                reader.walk.warn(Position::START, Problem::of_empty(text));
            }

            let manifests = match reader.parse_manifests(format, text, &parsed.documents) {
                Ok(manifests) => manifests,
                Err(error) => return Document::of_error(*error),
            };

            for (root, manifest) in parsed.documents.into_iter().zip(manifests) {
                match manifest {
                    Some(manifest) => reader.read_manifest(manifest),
                    None => reader.read_document(root),
                }
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
    fn new(file: &'a str, options: &'a Options, charged_bytes: u64) -> Self {
        Self {
            walk: Walk::new(file, options, charged_bytes),
            resources: Vec::new(),
            allow_removal: false,
        }
    }

    /// Parses the documents that are manifests again, by the schema that
    /// Kubernetes uses. Other documents become `None`.
    fn parse_manifests(
        &mut self,
        format: Format,
        text: &str,
        documents: &[Node],
    ) -> Result<Vec<Option<Node>>, Box<TextError>> {
        let options = self.walk.options;
        let is_manifest = |root: &Node| options.manifests && manifest::is_manifest(root);
        if !documents.iter().any(is_manifest) {
            return Ok(vec![None; documents.len()]);
        }

        let (file, limits) = (self.walk.file, &options.limits);
        let parsed = parse_by(Schema::Core, format, file, text, limits)?;
        let roots = parsed.documents.into_iter();
        let roots = roots.map(|root| Some(root).filter(is_manifest));

        // The warnings so far are of the first parse, for which a leading zero
        // means octal; it does not in the schema of manifests.
        self.walk.warnings.clear();
        Ok(roots.collect())
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

    /// Reads one document: a resource, a list of resources, a bootstrap, or a
    /// dump of Envoy. Another kind of document is a mistake, except an empty
    /// one. All but a resource may have the key `allow_removal`, also as their
    /// only key.
    fn read_document(&mut self, mut root: Node) {
        let has_type = root.get(TYPE).is_some();
        if !has_type && self.take_allow_removal(&mut root) && root.is_empty_map() {
            return;
        }
        if dump::is_dump(&root) {
            return self.read_dump(root);
        }
        if has_type {
            return self.add_resource(root.at, |reader| reader.read_resource(root));
        }

        match root.value {
            // The file is empty, or nothing follows a `---`.
            Value::Null => {}
            Value::Map(_) if root.get(RESOURCES).is_some() => self.read_response(root),
            Value::Map(_) if bootstrap::has_resources(&root) => self.read_bootstrap(root),
            _ => {
                let (position, problem) = stranger::explain(&root);
                self.walk.report::<()>(position, problem);
            }
        }
    }

    /// Removes `allow_removal` from a document and records its value. Returns
    /// whether the document has the key.
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
            Value::Bool(is_allowed) => self.allow_removal |= is_allowed,
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

    /// Reads a document in the form of a `DiscoveryResponse`, which has
    /// `resources`. Its other fields are only checked.
    fn read_response(&mut self, root: Node) {
        let response = descriptor::message("envoy.service.discovery.v3.DiscoveryResponse");
        if let Some(descriptor) = response {
            self.walk.read_fields(&descriptor, &root, &[RESOURCES]);
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

    /// Reads the items of a list of resources, each with `read_item`, and adds those
    /// without a mistake. A missing list or null has no items; another value is
    /// a mistake.
    pub(super) fn read_list(
        &mut self,
        list: Option<Node>,
        read_item: impl Fn(&mut Self, Node) -> Option<Resource>,
    ) {
        let Some(Node {
            at: position,
            value,
        }) = list
        else {
            return;
        };

        match value {
            Value::List(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.walk.path.push(Step::Index(index));
                    self.add_resource(item.at, |reader| read_item(reader, item));
                    self.walk.path.pop();
                }
            }
            Value::Null => {}
            value => {
                let expected = "a list of resources".to_owned();
                let found = Node {
                    at: position,
                    value,
                }
                .describe();
                let problem = Problem::WrongKind { expected, found };
                self.walk.report::<()>(position, problem);
            }
        }
    }

    /// Adds the resource that `read_one` returns, unless `read_one` reported a mistake.
    pub(super) fn add_resource(
        &mut self,
        position: Position,
        read_one: impl FnOnce(&mut Self) -> Option<Resource>,
    ) {
        if self.walk.charge(position, RESOURCE).is_none() {
            return;
        }
        let mistakes_before = self.walk.total;
        let resource = read_one(self);
        if self.walk.total == mistakes_before {
            self.resources.extend(resource);
        }
    }

    /// Reads a resource that states its type, or the one inside its wrapper.
    /// Returns `None` if a mistake was reported.
    pub(super) fn read_resource(&mut self, node: Node) -> Option<Resource> {
        let url = self.walk.read_type_url(&node, guess::resource)?;
        if descriptor::full_name(url) != descriptor::full_name(descriptor::types::RESOURCE) {
            return self.read_body(node, discovery::Resource::default());
        }

        let descriptor = descriptor::message(url)?;
        let wrapper = self.read_wrapper(&descriptor, &node)?;
        let Some(entry) = node.get(BODY) else {
            return self.walk.report(node.at, Problem::MissingBody);
        };
        let body = entry.node.clone();
        self.walk.path.push(Step::Name(BODY));
        let resource = self.read_body(body, wrapper);
        self.walk.path.pop();
        resource
    }

    /// Reads a resource, for which `wrapper` was read before. A body of an
    /// unknown type is accepted in base64. Returns `None` if a mistake was
    /// reported.
    fn read_body(&mut self, node: Node, wrapper: discovery::Resource) -> Option<Resource> {
        let type_url = self.walk.read_type_url(&node, guess::resource)?.to_owned();
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

    /// Reads a resource that does not state its type, since its place in the
    /// document implies `descriptor`. Returns `None` if a mistake was reported.
    pub(super) fn read_untyped(
        &mut self,
        descriptor: MessageDescriptor,
        node: Node,
    ) -> Option<Resource> {
        let type_url = format!("{PREFIX}{}", descriptor.full_name());
        let message = self.walk.read_fields(&descriptor, &node, &[])?;
        let body = self.walk.encode(&message, node.at)?;
        let wrapper = discovery::Resource::default();
        Some(self.build_resource(type_url, message, body, wrapper, node))
    }

    /// Makes a resource of its parts, at the path of the walk.
    pub(super) fn build_resource(
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

    /// Reads the fields of a wrapper except its resource, by encoding and
    /// decoding them. Returns `None` if a mistake was reported.
    fn read_wrapper(
        &mut self,
        descriptor: &MessageDescriptor,
        node: &Node,
    ) -> Option<discovery::Resource> {
        let message = self.walk.read_fields(descriptor, node, &[TYPE, BODY])?;
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
pub(super) const RESOURCES: &str = "resources";
/// The key that says that a document may remove as much as it does.
pub(super) const ALLOW_REMOVAL: &str = "allow_removal";
/// The field of a wrapper that holds the resource.
pub(super) const BODY: &str = "resource";
/// The prefix of type URLs.
const PREFIX: &str = "type.googleapis.com/";
