//! The node of a poll, in JSON, as far as rules may read it.

use prost::Message as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use trunkline_proto::discovery::{Locality, Node};
use trunkline_proto::envoy::google::protobuf::{ListValue, Struct, Value, value::Kind};

/// The fields of a node that are read, by their names in both kinds of JSON.
/// Metadata is kept only if a rule reads it.
#[derive(Default, Deserialize)]
pub(super) struct RequestNode {
    pub(super) id: Option<String>,
    pub(super) cluster: Option<String>,
    #[serde(alias = "userAgentName")]
    pub(super) user_agent_name: Option<String>,
    #[serde(alias = "clientFeatures")]
    pub(super) client_features: Option<Vec<String>>,
    locality: Option<Place>,
    metadata: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Place {
    region: Option<String>,
    zone: Option<String>,
    #[serde(alias = "subZone")]
    sub_zone: Option<String>,
}

impl RequestNode {
    /// Takes the part of the node that only rules read: its locality, and its
    /// metadata if `with_metadata` is set. Metadata that is no JSON object
    /// counts as missing.
    pub(super) fn take_part_for_rules(&mut self, with_metadata: bool) -> Node {
        let locality = self.locality.take().unwrap_or_default();
        let json = self.metadata.take().filter(|_| with_metadata);
        let map = json.and_then(|json| serde_json::from_str(json.get()).ok());
        Node {
            locality: Some(Locality {
                region: locality.region.unwrap_or_default(),
                zone: locality.zone.unwrap_or_default(),
                sub_zone: locality.sub_zone.unwrap_or_default(),
            }),
            metadata: map.map(|map| to_struct(map).encode_to_vec().into()),
            ..Node::default()
        }
    }
}

/// Converts a JSON object to a struct of protobuf.
fn to_struct(map: serde_json::Map<String, serde_json::Value>) -> Struct {
    let fields = map.into_iter();
    let fields = fields.map(|(key, json)| (key, to_value(json)));
    Struct {
        fields: fields.collect(),
    }
}

/// Converts a JSON value into one of protobuf. The recursion is as deep as the
/// JSON, which the parser of JSON limits.
fn to_value(json: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(value),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(to_value).collect(),
        }),
        Json::Object(map) => Kind::StructValue(to_struct(map)),
    };
    Value { kind: Some(kind) }
}
