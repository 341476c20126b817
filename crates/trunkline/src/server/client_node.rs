//! The node of a client, and what it decides: base subscriptions, parameters,
//! and the form of errors.

use std::sync::Arc;

use trunkline_core::session::Session;
use trunkline_proto::discovery::Node;

use super::options::Options;
use super::stream::Stream;
use crate::node::{Described, NodeMatch, NodeParams, NodeRules};

impl Stream {
    /// Applies the rules to a node that is new or has changed, and keeps its
    /// description if rules may be asked about it later. The parameters of an
    /// open stream follow its node; base subscriptions and the form of errors
    /// count for later subscriptions only.
    pub(super) fn set_node(
        self: &Arc<Self>,
        session: &mut Session,
        described: &mut Option<Box<Described>>,
        node: &Node,
    ) {
        let rules = &self.shared.rules;
        let description = self.describe(node);

        session.set_supports_resource_errors(understands_errors(rules, &description, node));
        if !rules.base.is_empty() {
            session.set_base_subscriptions(rules.base.base(&description));
        }

        let params = rules.params.params(&description);
        // Only a node that was described before may have set some already.
        let may_change_params = described.is_some() || params != NodeParams::default();
        if may_change_params {
            self.shared
                .with(|db| session.set_all_params(db, params.all, params.own));
        }

        let is_kept = !rules.is_empty() || description.has_dynamic_parameters();
        *described = is_kept.then(|| Box::new(description));
    }

    /// Returns the node as rules read it, with the address of the server that
    /// it connected to.
    fn describe(&self, node: &Node) -> Described {
        let described = Described::new(node, self.shared.rules.wanted());
        described.on(self.connection.local)
    }
}

/// Returns whether a client understands `resource_errors` (TP3): its node has
/// the client feature, or a rule matches its node.
fn understands_errors(rules: &NodeRules, described: &Described, node: &Node) -> bool {
    let is_feature = |feature: &String| feature == Options::RESOURCE_ERRORS;
    let matches = |rule: &NodeMatch| rule.matches(described);
    node.client_features.iter().any(is_feature) || rules.errors.iter().any(matches)
}
