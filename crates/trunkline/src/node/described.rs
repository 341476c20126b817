//! A node as far as rules need it, read once from the wire.

use std::net::SocketAddr;

use trunkline_core::resource::TypeUrl;
use trunkline_proto::discovery::{self, Locality, Node};

use super::field::{Field, MetadataPath};

/// The maximum of bytes of metadata that is searched. No proxy has as many; in
/// more nothing is found.
const METADATA_BYTES: usize = 1 << 20;

/// The maximum of bytes of a value. A longer one names nothing, and counts as
/// missing.
const VALUE_BYTES: usize = 1 << 10;

/// The maximum of types for which a node may send dynamic parameters.
const DYNAMIC_TYPES: usize = 64;

/// The maximum of dynamic parameters for one type.
const DYNAMIC_KEYS: usize = 64;

/// The places in metadata that a set of rules reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted(Vec<MetadataPath>);

impl Wanted {
    /// Returns the metadata paths among these fields, sorted and unique.
    pub fn new<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Self {
        let metadata_paths = fields.into_iter().filter_map(|field| match field {
            Field::Metadata(path) => Some(path.clone()),
            _ => None,
        });
        let mut paths: Vec<MetadataPath> = metadata_paths.collect();
        paths.sort();
        paths.dedup();
        Self(paths)
    }
}

/// The fields of a node that some rules read. It keeps nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    id: String,
    cluster: String,
    locality: Locality,
    user_agent: String,
    listener: String,
    /// In the order of their paths.
    metadata: Vec<(MetadataPath, String)>,
    dynamic: Vec<(TypeUrl, Vec<(String, String)>)>,
}

impl Described {
    /// Reads a node: the fields that rules can read, and the wanted metadata. A
    /// value that is too long counts as missing.
    #[must_use]
    pub fn new(node: &Node, wanted: &Wanted) -> Self {
        let if_short = |text: &String| {
            if text.len() <= VALUE_BYTES {
                text.clone()
            } else {
                String::new()
            }
        };
        let locality = node.locality.clone().unwrap_or_default();
        Self {
            id: if_short(&node.id),
            cluster: if_short(&node.cluster),
            locality: Locality {
                region: if_short(&locality.region),
                zone: if_short(&locality.zone),
                sub_zone: if_short(&locality.sub_zone),
            },
            user_agent: if_short(&node.user_agent_name),
            listener: String::new(),
            metadata: wanted_metadata(node, wanted),
            dynamic: dynamic_parameters(node),
        }
    }

    /// Sets the address of the server that the node is connected to, which
    /// rules read as [`Field::Listener`].
    #[must_use]
    pub fn on(mut self, listener: Option<SocketAddr>) -> Self {
        self.listener = listener.map_or_else(String::new, |address| address.to_string());
        self
    }

    /// Returns whether the node sends dynamic parameters.
    pub(crate) fn has_dynamic_parameters(&self) -> bool {
        !self.dynamic.is_empty()
    }

    /// Returns, for each type, the parameters in the node's
    /// `dynamic_parameters`.
    pub(super) fn dynamic_parameters(&self) -> &[(TypeUrl, Vec<(String, String)>)] {
        &self.dynamic
    }

    /// Returns the value of a field. Returns `None` if the node lacks the
    /// field, if its value is too long, or if it is metadata that no rule
    /// reads.
    #[must_use]
    pub fn get(&self, field: &Field) -> Option<&str> {
        let value = match field {
            Field::Id => &self.id,
            Field::Cluster => &self.cluster,
            Field::Region => &self.locality.region,
            Field::Zone => &self.locality.zone,
            Field::SubZone => &self.locality.sub_zone,
            Field::UserAgent => &self.user_agent,
            Field::Listener => &self.listener,
            Field::Metadata(path) => {
                let index = self
                    .metadata
                    .binary_search_by(|(other_path, _)| other_path.cmp(path));
                &self.metadata[index.ok()?].1
            }
        };
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Returns the values at the wanted paths of a node's metadata, sorted by path.
/// Metadata above [`METADATA_BYTES`] is not searched, and a value above
/// [`VALUE_BYTES`] is left out.
fn wanted_metadata(node: &Node, Wanted(paths): &Wanted) -> Vec<(MetadataPath, String)> {
    let Some(raw) = &node.metadata else {
        return Vec::new();
    };
    if paths.is_empty() || raw.len() > METADATA_BYTES {
        return Vec::new();
    }
    let values = discovery::values_at(raw, paths);
    let pairs = paths.iter().zip(values).filter_map(|(path, value)| {
        let value = value.filter(|value| value.len() <= VALUE_BYTES)?;
        Some((path.clone(), value))
    });
    pairs.collect()
}

/// Returns the dynamic parameters of a node (TP2) by type. Parameters that are
/// too long are left out, and so are types and parameters beyond their limits.
fn dynamic_parameters(node: &Node) -> Vec<(TypeUrl, Vec<(String, String)>)> {
    let is_short = |(key, value): &(&String, &String)| key.len() + value.len() <= VALUE_BYTES;
    let types = node.dynamic_parameters.iter().take(DYNAMIC_TYPES);
    let by_type = types.map(|(url, dynamic)| {
        let short_pairs = dynamic.params.iter().filter(is_short);
        let first_pairs = short_pairs.take(DYNAMIC_KEYS);
        let pairs = first_pairs.map(|(key, value)| (key.clone(), value.clone()));
        (TypeUrl::new(url), pairs.collect())
    });
    by_type.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_proto::text;

    /// Returns a node as it would be written in a bootstrap.
    fn node(yaml: &str) -> Node {
        let text = format!("\"@type\": type.googleapis.com/envoy.config.core.v3.Node\n{yaml}");
        let read = text::read("n.yaml", &text, &text::Options::default());
        assert_eq!(read.errors, []);
        let body = read.resources[0].body.clone();
        Node::parse(&body, &discovery::Limits::DEFAULT).unwrap()
    }

    fn fields(texts: &[&str]) -> Vec<Field> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_wanted_is_kept_and_nothing_else() {
        let node = node(
            "id: e\nlocality: {zone: z}\nmetadata: {NS: shop, replicas: 3, a: {b: deep}, x: z}",
        );
        let all = fields(&[
            "metadata.replicas",
            "metadata.a.b",
            "metadata.NS",
            "metadata.a.b",
        ]);
        let described = Described::new(&node, &Wanted::new(&all));
        let get = |text: &str| described.get(&text.parse().unwrap()).map(str::to_owned);
        assert_eq!(get("id").as_deref(), Some("e"));
        assert_eq!(get("cluster"), None);
        assert_eq!(get("locality.zone").as_deref(), Some("z"));
        assert_eq!(get("locality.region"), None);
        assert_eq!(get("metadata.NS").as_deref(), Some("shop"));
        assert_eq!(get("metadata.replicas").as_deref(), Some("3"));
        assert_eq!(get("metadata.a.b").as_deref(), Some("deep"));
        assert_eq!(get("metadata.x"), None, "nobody asked for it");
        assert_eq!(described.metadata.len(), 3);
    }

    #[test]
    fn what_is_too_long_is_not_there() {
        let long = "x".repeat(VALUE_BYTES + 1);
        let all = fields(&["metadata.a", "metadata.b"]);
        let wanted = Wanted::new(&all);
        let cut = node(&format!("id: {long}\nmetadata: {{a: {long}, b: z}}"));
        let cut = Described::new(&cut, &wanted);
        assert_eq!(cut.get(&Field::Id), None);
        assert_eq!(cut.get(&all[0]), None);
        assert_eq!(cut.get(&all[1]), Some("z"));
        let huge = "x".repeat(METADATA_BYTES);
        let huge = node(&format!("metadata: {{b: z, c: {huge}}}"));
        assert_eq!(Described::new(&huge, &wanted).get(&all[1]), None);
    }
}
