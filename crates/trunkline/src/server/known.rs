//! What a client says of itself, and what that decides: its base set, its
//! parameters, and in which form it is told of errors.

use std::sync::Arc;

use trunkline_core::session::Session;
use trunkline_proto::discovery::Node;

use super::options::Options;
use super::stream::Stream;
use crate::node::{Described, NodeMatch, NodeRules};

impl Stream {
    /// Takes up a node that was not heard before. Parameters follow a node
    /// that changes while it is connected; the rest is for what is asked for
    /// from now on.
    pub(super) fn hear_node(
        self: &Arc<Self>,
        session: &mut Session,
        described: &mut Option<Box<Described>>,
        node: &Node,
    ) {
        let rules = &self.shared.rules;
        let new = self.describe(node);
        session.set_supports_resource_errors(speaks_errors(rules, &new, node));
        if !rules.base.is_empty() {
            session.set_base_subscriptions(rules.base.base(&new));
        }
        let params = rules.params.params(&new);
        if described.is_some() || params != Default::default() {
            self.shared
                .with(|db| session.set_all_params(db, params.all, params.own));
        }
        let is_wanted = !rules.is_empty() || new.says_parameters();
        *described = is_wanted.then(|| Box::new(new));
    }

    fn describe(&self, node: &Node) -> Described {
        let described = Described::new(node, self.shared.rules.wanted());
        described.on(self.connection.local)
    }
}

fn speaks_errors(rules: &NodeRules, described: &Described, node: &Node) -> bool {
    let mut features = node.client_features.iter();
    let by_rule = |rule: &NodeMatch| rule.matches(described);
    features.any(|feature| feature == Options::RESOURCE_ERRORS) || rules.errors.iter().any(by_rule)
}
