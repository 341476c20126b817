//! Metadata under `envoy.lb`, in a form that can be compared.

use std::collections::BTreeMap;

use trunkline_proto::envoy::envoy::config::core::v3::Metadata;
use trunkline_proto::envoy::google::protobuf::{Struct, Value, value::Kind};

/// The key of metadata that is for load balancing.
const NAMESPACE: &str = "envoy.lb";

/// Fields and their values, each value as one canonical text.
pub type LbMetadata = BTreeMap<String, String>;

/// Reads the metadata of an endpoint, a route or a weighted cluster.
#[must_use]
pub fn lb_metadata(metadata: Option<&Metadata>) -> LbMetadata {
    let fields = metadata.and_then(|metadata| metadata.filter_metadata.get(NAMESPACE));
    fields.map(struct_fields).unwrap_or_default()
}

/// Reads the fields of a struct.
pub(super) fn struct_fields(message: &Struct) -> LbMetadata {
    let fields = message.fields.iter();
    fields
        .map(|(key, value)| (key.clone(), canonical(value)))
        .collect()
}

/// Returns the value of a key under `envoy.lb`, if it is a text.
pub(super) fn text_of<'m>(metadata: Option<&'m Metadata>, key: &str) -> Option<&'m str> {
    let fields = metadata?.filter_metadata.get(NAMESPACE)?;
    match fields.fields.get(key)?.kind.as_ref()? {
        Kind::StringValue(text) => Some(text),
        _ => None,
    }
}

/// Writes a value as a text that is the same for equal values: the fields of a
/// struct are in the order of their keys.
fn canonical(value: &Value) -> String {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => "null".to_owned(),
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::BoolValue(is_true)) => is_true.to_string(),
        Some(Kind::StringValue(text)) => format!("{text:?}"),
        Some(Kind::ListValue(list)) => {
            let items: Vec<_> = list.values.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Some(Kind::StructValue(fields)) => {
            let fields = struct_fields(fields);
            let fields = fields.iter().map(|(key, value)| format!("{key:?}:{value}"));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
    }
}
