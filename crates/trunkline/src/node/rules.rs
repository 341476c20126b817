//! All rules of a server, and the fields of nodes that they read.

use super::base::BaseRules;
use super::described::Wanted;
use super::matcher::NodeMatch;
use super::params::{ParamRule, ParamRules};

/// All rules of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRules {
    /// The base subscriptions of clients.
    pub(crate) base: BaseRules,
    /// The parameters of clients that do not send any.
    pub(crate) params: ParamRules,
    /// Clients that understand `resource_errors` (TP3).
    pub(crate) errors: Vec<NodeMatch>,
    wanted: Wanted,
}

impl NodeRules {
    /// Returns all rules, with the metadata paths that any of them reads.
    pub(crate) fn new(base: BaseRules, params: ParamRules, errors: Vec<NodeMatch>) -> Self {
        let in_params = params.rules().iter().flat_map(ParamRule::fields);
        let in_errors = errors.iter().flat_map(NodeMatch::fields);
        let wanted = Wanted::new(base.fields().chain(in_params).chain(in_errors));
        Self {
            base,
            params,
            errors,
            wanted,
        }
    }

    /// Returns whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.base.is_empty() && self.params.rules().is_empty() && self.errors.is_empty()
    }

    /// Returns the metadata that the rules read.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }
}
