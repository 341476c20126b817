//! The recorded cases, as they are in their files.

use prost::Message;
use serde_json::Value;
use trunkline_proto::text::{Format, Options, read_message};

/// A file of cases.
pub(crate) struct Recorded {
    file: Value,
}

impl Recorded {
    pub(crate) fn read(text: &str) -> Self {
        let file = serde_json::from_str(text).expect("the file is JSON");
        Self { file }
    }

    pub(crate) fn head(&self) -> &Value {
        &self.file["head"]
    }

    /// All cases, each with its group.
    pub(crate) fn cases(&self) -> impl Iterator<Item = (&Value, &Value)> {
        let groups = list(&self.file["groups"]).iter();
        groups.flat_map(|group| list(&group["cases"]).iter().map(move |case| (group, case)))
    }
}

/// Reads a message that is written as JSON.
pub(crate) fn message<M: Message + Default>(of: &str, json: &Value) -> M {
    let text = json.to_string();
    let read = read_message(of, Format::Json, "case", &text, None, &Options::default());
    let read = read.unwrap_or_else(|errors| panic!("{errors:?}: {text}"));
    M::decode(&*read.message.encode_to_vec()).expect("the same message")
}

/// Reads the connection manager of a group.
pub(crate) fn connection_manager<M: Message + Default>(group: &Value) -> M {
    let mut json = group["hcm"].clone();
    json["stat_prefix"] = "s".into();
    message(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        &json,
    )
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the first header of a name in a list of pairs.
pub(crate) fn header<'v>(headers: &'v Value, name: &str) -> Option<&'v str> {
    let mut pairs = list(headers).iter();
    let pair = pairs.find(|pair| text(&pair[0]).eq_ignore_ascii_case(name))?;
    Some(text(&pair[1]))
}
