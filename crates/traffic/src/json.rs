//! Messages of tests, written as JSON.

use prost::Message;
use serde_json::Value;
use trunkline_proto::text::{Format, Options, read_message};

/// Reads a message of a type, such as `envoy.config.cluster.v3.Cluster`.
pub(crate) fn message<M: Message + Default>(of: &str, json: &Value) -> M {
    let text = json.to_string();
    let read = read_message(of, Format::Json, "test", &text, None, &Options::default());
    let read = read.unwrap_or_else(|errors| panic!("{errors:?}: {text}"));
    M::decode(&*read.message.encode_to_vec()).expect("the same message")
}
