//! Rules for parameters of clients that do not send any (TP2), and for clients
//! that understand errors (TP3).
//!
//! ```yaml
//! parameters:
//! - set: {env: "{metadata.ENV}", zone: "{locality.zone}"}
//! - node: {listener: "*:18001"}
//!   set: {plane: public}
//! resource_errors:
//! - node: {user_agent: "gRPC*"}
//! ```

use trunkline::node::{NodeMatch, ParamRule, ParamRules};
use trunkline_proto::text::Node;

use super::raw::Raw;
use super::resolve::SettingsError;
use super::rules::Reader;

/// The key of parameters. It has no flag.
pub(super) const KEY: &str = "parameters";

/// The key of clients that understand errors. It has no flag.
pub(super) const ERRORS: &str = "resource_errors";

/// Their text in the example file.
pub(super) const EXAMPLE: &str = r#"
# Dynamic parameters (TP2) of clients that do not send any: they choose among the
# variants of a resource. Of two rules that set one key the later one counts. What
# a client says in its node's `dynamic_parameters` counts for keys that no rule
# sets.
#
# parameters:
# - set: {env: "{metadata.ENV}", zone: "{locality.zone}"}
# - node: {cluster: "edge-*"}
#   set: {tier: edge}
# - node: {listener: "*:18001"}
#   set: {plane: public}

# Clients that understand `resource_errors` (TP3), beside those whose nodes say
# so by the client feature trunkline.resource_errors. They are told why a resource
# is not there; others are told that it does not exist, in the older forms.
#
# resource_errors:
# - node: {metadata: {UNDERSTANDS_ERRORS: "true"}}
"#;

/// Reads the list of rules at the key [`KEY`].
pub(super) fn read(raw: &Raw, node: Node) -> Result<ParamRules, SettingsError> {
    let position = node.at;
    let reader = Reader { raw, key: KEY };
    let rules = reader.read_list(node, read_rule)?;
    ParamRules::new(rules).map_err(|bad| reader.error(position, "", bad.to_string()))
}

/// Parses one rule. `path` leads to it from the key of the rules.
///
/// # Errors
/// The rule sets no parameter, or has an unknown key or a bad value.
fn read_rule(reader: &Reader<'_>, path: &str, node: Node) -> Result<ParamRule, SettingsError> {
    let position = node.at;
    let mut rule = ParamRule::default();
    for entry in reader.read_entries(path, node)? {
        let entry_path = format!("{path}.{}", entry.key);
        match entry.key.as_str() {
            "node" => rule.node = reader.read_nodes(&entry_path, entry.node)?,
            "set" => {
                for param in reader.read_entries(&entry_path, entry.node)? {
                    let param_path = format!("{entry_path}.{}", param.key);
                    let template = reader.read_text(&param_path, param.node)?;
                    rule.set.push((param.key, template));
                }
            }
            key => return Err(reader.unknown_key(entry.at, path, key, &["node", "set"])),
        }
    }

    match rule.set.is_empty() {
        true => Err(reader.error(position, path, "sets nothing: say which keys to `set`")),
        false => Ok(rule),
    }
}

/// Parses the list of rules at the key [`ERRORS`]: the nodes of clients that
/// understand errors. A rule without `node` is for all clients.
pub(super) fn read_error_rules(raw: &Raw, node: Node) -> Result<Vec<NodeMatch>, SettingsError> {
    let reader = Reader { raw, key: ERRORS };
    reader.read_list(node, |reader, path, node| {
        let mut nodes = NodeMatch::default();
        for entry in reader.read_entries(path, node)? {
            match entry.key.as_str() {
                "node" => nodes = reader.read_nodes(&format!("{path}.node"), entry.node)?,
                key => return Err(reader.unknown_key(entry.at, path, key, &["node"])),
            }
        }
        Ok(nodes)
    })
}
