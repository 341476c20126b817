//! Base subscriptions: the virtual hosts that a client is subscribed to without
//! asking, by its node.

use std::collections::BTreeSet;

use trunkline_core::name::Name;
use trunkline_core::session::BaseSubscriptions;

use super::described::Described;
use super::error::RuleError;
use super::field::Field;
use super::matcher::NodeMatch;
use super::template::Template;

/// One rule: the nodes that it applies to, and the base subscriptions of these.
/// All rules that match a node apply to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseRule {
    /// The nodes.
    pub node: NodeMatch,
    /// Names of base sets; virtual hosts name their sets in their own metadata.
    pub sets: Vec<Template>,
    hosts: Vec<Template>,
}

impl BaseRule {
    /// Returns a rule that gives sets, and hosts as `<route
    /// configuration>/<host>`.
    ///
    /// # Errors
    /// If a host has no slash of its own, and so might be under no route
    /// configuration.
    pub fn new(
        node: NodeMatch,
        sets: Vec<Template>,
        hosts: Vec<Template>,
    ) -> Result<Self, RuleError> {
        match hosts.iter().find(|host| !host.always_has('/')) {
            None => Ok(Self { node, sets, hosts }),
            Some(host) => Err(RuleError::Host {
                found: host.to_string(),
            }),
        }
    }

    /// Returns the hosts that it names.
    #[must_use]
    pub fn hosts(&self) -> &[Template] {
        &self.hosts
    }
}

/// The rules of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseRules(Vec<BaseRule>);

impl BaseRules {
    /// Makes the rules of a server. All that match a node apply to it.
    #[must_use]
    pub fn new(rules: Vec<BaseRule>) -> Self {
        Self(rules)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields that the rules read, in their conditions and their
    /// templates. A field that is read several times is listed as often.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().flat_map(|rule| {
            let templates = rule.sets.iter().chain(&rule.hosts);
            let in_templates = templates.flat_map(Template::fields);
            rule.node.fields().chain(in_templates)
        })
    }

    /// Returns the rules that apply to a node.
    pub fn applying<'a>(&'a self, node: &'a Described) -> impl Iterator<Item = &'a BaseRule> {
        self.0.iter().filter(|rule| rule.node.matches(node))
    }

    /// Returns the base subscriptions of a node by all rules that apply,
    /// without duplicates. A template with a field that the node lacks gives
    /// nothing.
    #[must_use]
    pub fn base(&self, node: &Described) -> BaseSubscriptions {
        let (mut sets, mut hosts) = (BTreeSet::new(), BTreeSet::new());
        for rule in self.applying(node) {
            let filled_sets = rule.sets.iter().filter_map(|set| set.fill(node));
            sets.extend(filled_sets.map(Box::from));
            let filled_hosts = rule.hosts.iter().filter_map(|host| host.fill(node));
            hosts.extend(filled_hosts.map(|host| Name::new(&host)));
        }
        BaseSubscriptions {
            sets: sets.into_iter().collect(),
            hosts: hosts.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Wanted;
    use super::*;
    use trunkline_proto::discovery::Node;

    fn rule(cluster: Option<&str>, sets: &[&str], hosts: &[&str]) -> Result<BaseRule, RuleError> {
        let cluster = cluster.map(|text| ("cluster".parse().unwrap(), vec![text.parse().unwrap()]));
        let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        BaseRule::new(NodeMatch::new(cluster), all(sets), all(hosts))
    }

    #[test]
    fn every_rule_that_matches_counts() {
        let rules = BaseRules::new(vec![
            rule(None, &["all", "{cluster}"], &[]).unwrap(),
            rule(Some("edge-*"), &["edge", "all"], &["r/{id}.example.com"]).unwrap(),
            rule(Some("core"), &["core"], &["r/c"]).unwrap(),
            rule(None, &["{locality.zone}", "{metadata.NS}"], &[]).unwrap(),
        ]);
        let node = |cluster: &str| {
            let node = Node {
                id: "n".into(),
                cluster: cluster.into(),
                ..Node::default()
            };
            Described::new(&node, &Wanted::new(rules.fields()))
        };
        let base = rules.base(&node("edge-1"));
        let names = |texts: &[&str]| texts.iter().map(|text| Box::from(*text)).collect();
        let sets: Vec<Box<str>> = names(&["all", "edge", "edge-1"]);
        assert_eq!(base.sets, sets);
        assert_eq!(base.hosts, [Name::new("r/n.example.com")]);
        assert_eq!(rules.applying(&node("edge-1")).count(), 3);
        assert_eq!(rules.base(&node("")).sets, names(&["all"]));
    }

    #[test]
    fn a_host_is_under_a_route_configuration() {
        let error = rule(None, &[], &["r/a.com", "{id}.com"]).unwrap_err();
        assert!(matches!(error, RuleError::Host { found } if found == "{id}.com"));
    }
}
