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

/// Reads the rules of parameters.
pub(super) fn read(raw: &Raw, node: Node) -> Result<ParamRules, SettingsError> {
    let at = node.at;
    let reader = Reader { raw, key: KEY };
    let rules = reader.list(node, rule)?;
    ParamRules::new(rules).map_err(|bad| reader.error(at, "", bad.to_string()))
}

/// Reads a rule, which must set a parameter.
fn rule(reader: &Reader<'_>, path: &str, node: Node) -> Result<ParamRule, SettingsError> {
    let at = node.at;
    let mut rule = ParamRule::default();
    for entry in reader.entries(path, node)? {
        let (at, inner) = (entry.at, format!("{path}.{}", entry.key));
        match entry.key.as_str() {
            "node" => rule.node = reader.nodes(&inner, entry.node)?,
            "set" => {
                for entry in reader.entries(&inner, entry.node)? {
                    let template = reader.text(&format!("{inner}.{}", entry.key), entry.node)?;
                    rule.set.push((entry.key, template));
                }
            }
            key => return Err(reader.unknown(at, path, key, &["node", "set"])),
        }
    }
    match rule.set.is_empty() {
        true => Err(reader.error(at, path, "sets nothing: say which keys to `set`")),
        false => Ok(rule),
    }
}

/// Reads the nodes of clients that understand errors.
pub(super) fn errors(raw: &Raw, node: Node) -> Result<Vec<NodeMatch>, SettingsError> {
    let reader = Reader { raw, key: ERRORS };
    reader.list(node, |reader, path, node| {
        let mut nodes = NodeMatch::default();
        for entry in reader.entries(path, node)? {
            match entry.key.as_str() {
                "node" => nodes = reader.nodes(&format!("{path}.node"), entry.node)?,
                key => return Err(reader.unknown(entry.at, path, key, &["node"])),
            }
        }
        Ok(nodes)
    })
}
