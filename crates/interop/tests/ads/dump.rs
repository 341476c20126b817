//! What Envoy says it uses.

use std::collections::BTreeMap;

use interop::Envoy;

/// The clusters that are in use, not those that still warm, each with its
/// connect timeout, by which tests tell versions apart.
pub(crate) fn active_clusters(envoy: &Envoy) -> BTreeMap<String, String> {
    let dump = envoy.config_dump();
    let configs = dump["configs"].as_array().cloned().unwrap_or_default();
    let clusters = configs
        .iter()
        .filter_map(|config| config["dynamic_active_clusters"].as_array())
        .flatten();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    clusters
        .map(|entry| &entry["cluster"])
        .map(|cluster| (text(&cluster["name"]), text(&cluster["connect_timeout"])))
        .collect()
}
