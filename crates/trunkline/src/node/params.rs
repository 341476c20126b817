//! Parameters of clients that do not send any, derived from their nodes (TP2,
//! "Migrating From Node Metadata").

use std::collections::{BTreeMap, BTreeSet};

use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;

use super::described::Described;
use super::error::RuleError;
use super::field::Field;
use super::matcher::NodeMatch;
use super::template::Template;

/// One rule: the nodes that it applies to, and the parameters that it gives
/// them. All rules that match a node apply to it; of two that set one key, the
/// later one wins. A template with a field that the node lacks sets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamRule {
    /// The nodes.
    pub node: NodeMatch,
    /// Keys, and their values.
    pub set: Vec<(String, Template)>,
}

impl ParamRule {
    /// Returns the fields that it reads.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let templates = self.set.iter().flat_map(|(_, template)| template.fields());
        self.node.fields().chain(templates)
    }
}

/// The parameters of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeParams {
    /// For every type without parameters of its own.
    pub all: Params,
    /// For types that the node's `dynamic_parameters` name.
    pub own: Vec<(TypeUrl, Params)>,
}

impl NodeParams {
    /// Returns the parameters for a type.
    #[must_use]
    pub fn of(&self, type_url: &TypeUrl) -> &Params {
        let type_params = self.own.iter().find(|(url, _)| url == type_url);
        type_params.map_or(&self.all, |(_, params)| params)
    }
}

/// The rules of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamRules(Vec<ParamRule>);

impl ParamRules {
    /// Returns the rules in their order.
    ///
    /// # Errors
    /// If they set more keys than a client may have parameters.
    pub fn new(rules: Vec<ParamRule>) -> Result<Self, RuleError> {
        let pairs = rules.iter().flat_map(|rule| &rule.set);
        let keys: BTreeSet<&str> = pairs.map(|(key, _)| key.as_str()).collect();
        if keys.len() > Params::MAX_KEYS {
            return Err(RuleError::Keys {
                max: Params::MAX_KEYS,
            });
        }
        Ok(Self(rules))
    }

    /// Returns the rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[ParamRule] {
        &self.0
    }

    /// Returns the parameters of a node: those that rules set for every type,
    /// and those of the node's `dynamic_parameters` for their type. A rule
    /// overrides the node. Parameters beyond the limits of a client are left
    /// out.
    #[must_use]
    pub fn params(&self, node: &Described) -> NodeParams {
        let by_rules = self.by_rules(node);
        let rule_pairs = || {
            let values = by_rules.iter();
            values.map(|(key, (value, _))| (*key, value.as_str()))
        };

        let params_by_type = node.dynamic_parameters().iter().map(|(url, dynamic)| {
            let pairs = dynamic.iter();
            let pairs = pairs.map(|(key, value)| (key.as_str(), value.as_str()));
            let node_pairs = pairs.filter(|(key, _)| !by_rules.contains_key(key));
            // Parameters of rules come first, so that the limits keep them.
            let params = within_limits(rule_pairs().chain(node_pairs));
            (url.clone(), params)
        });
        NodeParams {
            own: params_by_type.collect(),
            all: within_limits(rule_pairs()),
        }
    }

    /// Returns the value of each key that rules set for a node, with the rule.
    /// The last one of several rules counts. A template with a field that the
    /// node lacks sets nothing.
    #[must_use]
    pub fn by_rules(&self, node: &Described) -> BTreeMap<&str, (String, &ParamRule)> {
        let mut values = BTreeMap::new();
        for rule in self.0.iter().filter(|rule| rule.node.matches(node)) {
            for (key, template) in &rule.set {
                if let Some(value) = template.fill(node) {
                    values.insert(key.as_str(), (value, rule));
                }
            }
        }
        values
    }
}

/// Returns the first pairs that are within the limits of a client. The others
/// are left out rather than all: a hostile client gets fewer parameters than it
/// sends.
fn within_limits<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Params {
    let mut kept_bytes = 0;
    let fits = |(key, value): &(&str, &str)| {
        let bytes_with_pair = kept_bytes + key.len() + value.len();
        let fits = bytes_with_pair <= Params::MAX_BYTES;
        if fits {
            kept_bytes = bytes_with_pair;
        }
        fits
    };
    let first_pairs = pairs.filter(fits).take(Params::MAX_KEYS);
    // `new` fails only beyond the limits.
    Params::new(first_pairs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Wanted;
    use super::*;
    use trunkline_proto::discovery::{ContextParams, Locality, Node};

    fn rule(conditions: &[(&str, &str)], set: &[(&str, &str)]) -> ParamRule {
        let conditions = conditions
            .iter()
            .map(|(field, pattern)| (field.parse().unwrap(), vec![pattern.parse().unwrap()]));
        let set = set
            .iter()
            .map(|(key, template)| ((*key).to_owned(), template.parse().unwrap()));
        ParamRule {
            node: NodeMatch::new(conditions),
            set: set.collect(),
        }
    }

    fn node(cluster: &str, zone: &str) -> Node {
        Node {
            id: "n".into(),
            cluster: cluster.into(),
            locality: Some(Locality {
                zone: zone.into(),
                ..Locality::default()
            }),
            ..Node::default()
        }
    }

    #[test]
    fn rules_set_what_the_node_says_and_the_last_wins() {
        let rules = ParamRules::new(vec![
            rule(&[], &[("zone", "{locality.zone}"), ("tier", "core")]),
            rule(&[("cluster", "edge-*")], &[("tier", "edge")]),
            rule(&[("listener", "*:18001")], &[("plane", "public")]),
        ]);
        let rules = rules.unwrap();
        let text = |node: &Node, listener: &str| {
            let described = Described::new(node, &Wanted::default());
            let described = described.on(listener.parse().ok());
            rules.params(&described).all.to_string()
        };
        assert_eq!(text(&node("edge-1", "a"), ""), "tier=edge,zone=a");
        assert_eq!(
            text(&node("x", ""), "10.0.0.1:18001"),
            "plane=public,tier=core"
        );
        assert_eq!(text(&node("x", "b"), "10.0.0.1:18000"), "tier=core,zone=b");
    }

    #[test]
    fn dynamic_parameters_count_for_their_type_unless_a_rule_says_otherwise() {
        let rules = ParamRules::new(vec![rule(&[], &[("tier", "core")])]).unwrap();
        let mut node = node("x", "");
        let said = [("env", "prod"), ("tier", "mine")];
        let params = said.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let params = ContextParams {
            params: params.into(),
        };
        node.dynamic_parameters.insert("cds".into(), params);
        let params = rules.params(&Described::new(&node, &Wanted::default()));
        assert_eq!(params.of(&"cds".into()).to_string(), "env=prod,tier=core");
        assert_eq!(params.of(&"lds".into()).to_string(), "tier=core");
    }

    #[test]
    fn more_keys_than_a_client_may_have_are_refused() {
        let keys: Vec<String> = (0..=Params::MAX_KEYS).map(|n| n.to_string()).collect();
        let set: Vec<_> = keys.iter().map(|key| (key.as_str(), "v")).collect();
        let error = ParamRules::new(vec![rule(&[], &set)]).unwrap_err();
        assert!(matches!(error, RuleError::Keys { max: 64 }));
        assert!(ParamRules::new(vec![rule(&[], &set[1..])]).is_ok());
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let long = "x".repeat(1000);
        let rules: Vec<_> = (0..9).map(|n| (n.to_string(), long.as_str())).collect();
        let set: Vec<_> = rules.iter().map(|(key, v)| (key.as_str(), *v)).collect();
        let rules = ParamRules::new(vec![rule(&[], &set)]).unwrap();
        let params = rules.params(&Described::default()).all;
        assert_eq!(params.iter().len(), 8);
    }
}
