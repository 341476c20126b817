//! Manifests of Kubernetes as resources of collections.
//!
//! A manifest has `apiVersion`, `kind`, `metadata` and `spec`. It becomes a
//! resource of the Mesh Configuration Protocol: its collection stands where
//! other resources have a type URL, its name is that of its namespace and its
//! own, and its body is the whole encoded [`mcp::Resource`].
//!
//! | `apiVersion`, `kind` | collection | message |
//! |---|---|---|
//! | `networking.istio.io/v1alpha3`, `Gateway` | `istio/networking/v1alpha3/gateways` | `istio.networking.v1alpha3.Gateway` |
//! | `envoy.config.cluster.v3`, `Cluster` | `envoy/cluster/v3/clusters` | `envoy.config.cluster.v3.Cluster` |
//! | `apps/v1`, `Deployment` | `k8s/apps/v1/Deployment` | |
//!
//! The spec is read as its message where that is known, and as a
//! `google.protobuf.Struct` where it is not. Scalars are read by the core schema
//! of YAML and not by that of Envoy, for no Envoy reads a manifest.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_reflect::MessageDescriptor;

use super::{
    document::Reader,
    error::Problem,
    resource::{Resource, opaque},
    stranger::kubernetes_kind,
    time::parse_timestamp,
    tree::{Node, Value},
};
use crate::{
    descriptor,
    discovery::{self, Any},
    mcp::{self, Collection, Metadata, Timestamp},
    path::Step,
    validate,
};

const API_VERSION: &str = "apiVersion";
const KIND: &str = "kind";
const METADATA: &str = "metadata";
const SPEC: &str = "spec";
/// The key of a list of manifests.
const ITEMS: &str = "items";
/// The message of a spec whose own message is not known.
const STRUCT: &str = "google.protobuf.Struct";
/// The prefix of type URLs.
const PREFIX: &str = "type.googleapis.com/";

/// Returns whether a document is a manifest.
pub(super) fn is_manifest(root: &Node) -> bool {
    kubernetes_kind(root).is_some()
}

impl Reader<'_> {
    /// Reads a manifest, or a list of manifests.
    pub(super) fn read_manifest(&mut self, root: Node) {
        let is_list = kubernetes_kind(&root).is_some_and(|kind| kind.ends_with("List"));
        let Some(items) = root.get(ITEMS).filter(|_| is_list) else {
            return self.add_resource(root.at, |reader| reader.read_one_manifest(root));
        };
        let items = items.node.clone();
        self.walk.path.push(Step::Name(ITEMS));
        self.read_list(Some(items), Self::read_one_manifest);
        self.walk.path.pop();
    }

    /// Reads one manifest. Returns `None` if a mistake was reported.
    fn read_one_manifest(&mut self, root: Node) -> Option<Resource> {
        let api_version = self.read_text(&root, API_VERSION)?;
        let kind = self.read_text(&root, KIND)?;
        let collection = Collection::of_manifest(&api_version, &kind);
        let metadata = self.read_metadata(&root)?;
        let body = self.read_spec(&root, &collection)?;
        let wrapper = discovery::Resource {
            name: metadata.name.clone(),
            ..discovery::Resource::default()
        };
        let resource = mcp::Resource {
            metadata: Some(metadata),
            body: Some(body),
        };
        let body = resource.encode_to_vec();
        Some(self.build_resource(collection.name, opaque(), body, wrapper, root))
    }

    /// Reads the text at a key, which is required. Returns `None` if it is
    /// missing, empty or not a text, which is reported.
    fn read_text(&mut self, node: &Node, key: &'static str) -> Option<String> {
        self.walk.walk_at(Step::Name(key), |walk| {
            match node.get(key).map(|entry| &entry.node) {
                Some(Node {
                    value: Value::String(text),
                    ..
                }) if !text.is_empty() => Some(text.clone()),
                Some(node) => walk.report_wrong_kind(node, "a text"),
                None => walk.report(node.at, Problem::MissingKey(key)),
            }
        })
    }

    /// Reads the metadata: name and namespace, labels, annotations, version and
    /// time.
    fn read_metadata(&mut self, root: &Node) -> Option<Metadata> {
        let Some(entry) = root.get(METADATA) else {
            return self.walk.report(root.at, Problem::MissingKey(METADATA));
        };
        let node = &entry.node;
        self.walk.path.push(Step::Name(METADATA));
        let metadata = self.read_metadata_fields(node);
        self.walk.path.pop();
        metadata
    }

    /// Reads the fields of the metadata: name and namespace, labels,
    /// annotations, version and time. Returns `None` if a mistake was reported.
    fn read_metadata_fields(&mut self, node: &Node) -> Option<Metadata> {
        if !matches!(node.value, Value::Map(_)) {
            return self.walk.report_wrong_kind(node, "a mapping");
        }

        let name = self.read_text(node, "name")?;
        let namespace = self.read_optional(node, "namespace")?.unwrap_or_default();
        let version = self.read_optional(node, "resourceVersion")?;
        let creation_time = self.read_optional(node, "creationTimestamp")?;
        let creation_time = creation_time.and_then(|text| parse_timestamp(&text));

        Some(Metadata {
            name: format!("{namespace}/{name}"),
            create_time: creation_time.map(|(seconds, nanos)| Timestamp { seconds, nanos }),
            version: version.unwrap_or_default(),
            labels: self.read_texts(node, "labels")?,
            annotations: self.read_texts(node, "annotations")?,
        })
    }

    /// Reads a key that may be missing or null. The outer `None` is a mistake
    /// that was reported.
    fn read_optional(&mut self, node: &Node, key: &'static str) -> Option<Option<String>> {
        match node.get(key).map(|entry| &entry.node.value) {
            None | Some(Value::Null) => Some(None),
            Some(_) => self.read_text(node, key).map(Some),
        }
    }

    /// Reads a mapping of texts, such as labels. A missing one is empty.
    /// Returns `None` if a mistake was reported.
    fn read_texts(&mut self, node: &Node, key: &'static str) -> Option<BTreeMap<String, String>> {
        let entries = match node.get(key).map(|entry| &entry.node) {
            None => return Some(BTreeMap::new()),
            Some(node) => match &node.value {
                Value::Null => return Some(BTreeMap::new()),
                Value::Map(entries) => entries,
                _ => {
                    let expected = "a mapping of texts";
                    let report =
                        |walk: &mut super::read::Walk<'_>| walk.report_wrong_kind(node, expected);
                    return self.walk.walk_at(Step::Name(key), report);
                }
            },
        };

        self.walk.walk_at(Step::Name(key), |walk| {
            let texts = entries.iter().map(|entry| match &entry.node.value {
                Value::String(text) => Some((entry.key.clone(), text.clone())),
                // As in Kubernetes, `true` and `1` are texts only in quotes.
                _ => walk.walk_at(Step::Key(entry.key.clone()), |walk| {
                    walk.report_wrong_kind(&entry.node, "a text, in quotes")
                }),
            });
            texts.collect()
        })
    }

    /// Reads the spec. If the manifest has no spec, reads its other keys, such
    /// as `data`.
    fn read_spec(&mut self, root: &Node, collection: &Collection) -> Option<Any> {
        let message = collection.message.as_deref().and_then(descriptor::message);
        let descriptor = match &message {
            Some(descriptor) => descriptor.clone(),
            None => descriptor::message(STRUCT)?,
        };

        let value = match root.get(SPEC) {
            Some(spec) => {
                let spec = &spec.node;
                self.walk.path.push(Step::Name(SPEC));
                let spec_body = self.read_checked_body(&descriptor, spec, message.is_some());
                self.walk.path.pop();
                spec_body?
            }
            None => {
                let remainder = without_head(root);
                self.read_checked_body(&descriptor, &remainder, message.is_some())?
            }
        };

        Some(Any {
            type_url: format!("{PREFIX}{}", descriptor.full_name()),
            value: value.into(),
        })
    }

    /// Reads a body and encodes it. Checks it by the rules of its message if
    /// `has_rules`. Returns `None` if a mistake was reported in place of a
    /// body.
    fn read_checked_body(
        &mut self,
        descriptor: &MessageDescriptor,
        node: &Node,
        has_rules: bool,
    ) -> Option<Vec<u8>> {
        let message = self.walk.read_message(descriptor, node)?;
        if has_rules {
            for violation in validate::validate(&message) {
                let position = super::locate::find_place(node, &violation.path.to_string());
                let full_path = self.walk.path.join(&violation.path);
                let outer_path = std::mem::replace(&mut self.walk.path, full_path);
                self.walk
                    .report::<()>(position, Problem::Rule(violation.broken));
                self.walk.path = outer_path;
            }
        }
        self.walk.encode(&message, node.at)
    }
}

/// Returns a manifest without the keys that every manifest has, and without the
/// status that a cluster adds.
fn without_head(root: &Node) -> Node {
    let head = [API_VERSION, KIND, METADATA, "status"];
    let value = match &root.value {
        Value::Map(entries) => {
            let remainder = entries.iter();
            let remainder = remainder.filter(|entry| !head.contains(&entry.key.as_str()));
            Value::Map(remainder.cloned().collect())
        }
        value => value.clone(),
    };
    Node { at: root.at, value }
}

#[cfg(test)]
mod tests {
    use prost_reflect::DynamicMessage;

    use super::*;
    use crate::text::{Document, Options, read};

    fn read_manifests(text: &str) -> Document {
        let options = Options {
            manifests: true,
            ..Options::default()
        };
        read("m.yaml", text, &options)
    }

    /// Returns the only resource of a text, with its collection.
    fn only(text: &str) -> (String, mcp::Resource) {
        let read = read_manifests(text);
        assert_eq!(read.errors, []);
        let [one] = &read.resources[..] else {
            panic!("{read:?}");
        };
        let made = mcp::Resource::decode(one.body.clone()).unwrap();
        assert_eq!(one.wrapper.name, made.metadata.as_ref().unwrap().name);
        (one.type_url.clone(), made)
    }

    fn mistake(text: &str) -> String {
        let read = read_manifests(text);
        assert!(read.resources.is_empty());
        read.errors[0].to_string()
    }

    const HEAD: &str = "apiVersion: apps/v1\nkind: Deployment\n";

    #[test]
    fn a_manifest_is_a_resource_with_its_metadata() {
        let (collection, made) = only(&format!(
            "{HEAD}metadata:\n  name: a\n  namespace: ns\n  labels: {{app: a}}\n  \
             annotations: {{note: b}}\n  resourceVersion: '7'\n  \
             creationTimestamp: '1970-01-01T00:00:05Z'\nspec: {{replicas: 2}}\nstatus: {{x: 1}}"
        ));
        assert_eq!(collection, "k8s/apps/v1/Deployment");
        let metadata = made.metadata.unwrap();
        assert_eq!(
            (metadata.name.as_str(), metadata.version.as_str()),
            ("ns/a", "7")
        );
        assert_eq!(metadata.labels["app"], "a");
        assert_eq!(metadata.annotations["note"], "b");
        assert_eq!(metadata.create_time.unwrap().seconds, 5);
        let body = made.body.unwrap();
        assert_eq!(body.type_url, "type.googleapis.com/google.protobuf.Struct");
        let of = descriptor::message(STRUCT).unwrap();
        let spec = DynamicMessage::decode(of, body.value).unwrap();
        assert_eq!(
            crate::text::to_node(&spec, None).to_json().trim(),
            "{\n  \"replicas\": 2\n}"
        );
    }

    #[test]
    fn scalars_of_a_manifest_are_not_those_of_envoy() {
        let (_, made) = only(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: on, c: 1.5, d: 0777}",
        );
        assert_eq!(made.metadata.unwrap().name, "/a");
        let of = descriptor::message(STRUCT).unwrap();
        let rest = DynamicMessage::decode(of, made.body.unwrap().value).unwrap();
        let text = crate::text::to_node(&rest, None).to_json();
        assert!(
            text.contains("\"b\": \"on\"") && text.contains("\"c\": 1.5"),
            "{text}"
        );
        assert!(
            read_manifests("apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata: 0777")
                .warnings
                .is_empty()
        );
    }

    #[test]
    fn a_list_is_its_items() {
        let text = format!("{}metadata: {{name: a}}\n", HEAD).replace('\n', "\n  ");
        let list = format!(
            "apiVersion: v1\nkind: List\nitems:\n- {text}\n- {}",
            text.replace("name: a", "name: b")
        );
        let read = read_manifests(&list);
        assert_eq!(read.errors, []);
        assert_eq!(read.resources.len(), 2);
    }

    #[test]
    fn a_known_message_has_its_fields_and_rules() {
        let of = |spec: &str| {
            format!(
                "apiVersion: envoy.config.cluster.v3\nkind: Cluster\nmetadata: {{name: a}}\nspec:\n  {spec}\n"
            )
        };
        let (collection, made) = only(&of("name: a"));
        assert_eq!(collection, "envoy/cluster/v3/clusters");
        assert_eq!(made.body.unwrap().type_url, descriptor::types::CLUSTER);
        assert_eq!(
            mistake(&of("nam: a")),
            "m.yaml:5:3: spec: unknown field \"nam\" in Cluster, did you mean \"name\"?"
        );
        let rule = mistake(&of("name: a\n  connect_timeout: -1s"));
        assert!(
            rule.starts_with("m.yaml:6:20: spec.connect_timeout: "),
            "{rule}"
        );
    }

    #[test]
    fn a_mistake_has_its_place() {
        for (text, expected) in [
            ("spec: {}", "m.yaml:1:1: the key \"metadata\" is missing"),
            (
                "metadata: {}",
                "m.yaml:3:11: metadata.name: the key \"name\" is missing",
            ),
            (
                "metadata: {name: a, labels: {b: true}}",
                "m.yaml:3:33: metadata.labels[\"b\"]: expected a text, in quotes, found the boolean true",
            ),
        ] {
            assert_eq!(mistake(&format!("{HEAD}{text}")), expected);
        }
    }

    #[test]
    fn without_the_option_a_manifest_is_a_stranger() {
        let text = format!("{HEAD}metadata: {{name: a}}");
        let read = read("m.yaml", &text, &Options::default());
        assert!(
            read.errors[0]
                .to_string()
                .contains("a Kubernetes manifest (Deployment)")
        );
    }
}
