//! Rules for base sets.
//!
//! ```yaml
//! base_sets:
//! - node: {cluster: "edge-*", metadata: {NAMESPACE: shop}}
//!   sets: ["{metadata.NAMESPACE}"]
//!   hosts: [routes/www.example.com]
//! ```

use trunkline::node::{BaseRule, NodeMatch};
use trunkline_proto::text::Node;

use super::raw::Raw;
use super::resolve::SettingsError;
use super::rules::Reader;

/// Its key in the file. It has no flag.
pub(super) const KEY: &str = "base_sets";

/// Its text in the example file.
pub(super) const EXAMPLE: &str = r#"
# ── Nodes

# What a client says of itself decides what it gets. In the rules below, `node`
# asks for id, cluster, locality, user_agent and metadata of a client, and for
# the `listener`: the address IP:PORT of this server at which it came in. A star
# stands for anything and a list for one of several; a rule without `node` is for
# all. In texts, {id}, {cluster}, {locality.region}, {locality.zone},
# {locality.sub_zone}, {user_agent}, {listener} and {metadata.KEY} stand for what
# the client says; if it does not, nothing is given. Every rule that matches
# counts.

# Virtual hosts that a client gets without asking. A virtual host belongs to the
# sets that it names in its own metadata:
# filter_metadata: {trunkline: {base_sets: [shop]}}.
#
# base_sets:
# - node:
#     cluster: "edge-*"
#     locality: {zone: [eu-1a, eu-1b]}
#     metadata: {NAMESPACE: "*"}
#   sets: ["{metadata.NAMESPACE}", common]
#   hosts: [routes/www.example.com]
"#;

/// Reads the list of rules at the key [`KEY`].
pub(super) fn read(raw: &Raw, node: Node) -> Result<Vec<BaseRule>, SettingsError> {
    Reader { raw, key: KEY }.read_list(node, read_rule)
}

/// Parses one rule. `path` leads to it from the key of the rules.
///
/// # Errors
/// The rule has neither sets nor hosts, an unknown key, or a bad value.
fn read_rule(reader: &Reader<'_>, path: &str, node: Node) -> Result<BaseRule, SettingsError> {
    let position = node.at;
    let mut nodes = NodeMatch::default();
    let mut sets = Vec::new();
    let mut hosts = Vec::new();
    for entry in reader.read_entries(path, node)? {
        let entry_path = format!("{path}.{}", entry.key);
        match entry.key.as_str() {
            "node" => nodes = reader.read_nodes(&entry_path, entry.node)?,
            "sets" => sets = reader.read_texts(&entry_path, entry.node)?,
            "hosts" => hosts = reader.read_texts(&entry_path, entry.node)?,
            key => {
                let known_keys = ["node", "sets", "hosts"];
                return Err(reader.unknown_key(entry.at, path, key, &known_keys));
            }
        }
    }

    if sets.is_empty() && hosts.is_empty() {
        return Err(reader.error(position, path, "gives nothing: say which `sets` or `hosts`"));
    }
    BaseRule::new(nodes, sets, hosts)
        .map_err(|error| reader.error(position, path, error.to_string()))
}
