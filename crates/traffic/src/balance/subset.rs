//! Subsets: endpoints by the metadata that a route asks for.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::cluster::v3::cluster::{
    LbSubsetConfig, lb_subset_config::LbSubsetFallbackPolicy,
};

use super::balancer::Group;
use super::host::Host;
use super::host_set::HostSets;
use super::metadata::{LbMetadata, struct_fields};
use super::policy::Policy;
use crate::findings::Findings;

/// How subsets are made.
#[derive(Debug, Clone)]
pub(super) struct SubsetConfig {
    /// The keys of each kind of subset.
    selectors: Vec<BTreeSet<String>>,
    fallback: Fallback,
}

/// Where a request goes that no subset is for.
#[derive(Debug, Clone)]
enum Fallback {
    Nowhere,
    AnyEndpoint,
    Subset(LbMetadata),
}

impl SubsetConfig {
    /// Compiles the settings of subsets. A field that is not supported is a
    /// finding. Returns `None` if the fallback is not known.
    pub(super) fn compile(
        message: &LbSubsetConfig,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let flags = [
            ("locality_weight_aware", message.locality_weight_aware),
            ("scale_locality_weight", message.scale_locality_weight),
            ("panic_mode_any", message.panic_mode_any),
            ("list_as_any", message.list_as_any),
            (
                "metadata_fallback_policy",
                message.metadata_fallback_policy != 0,
            ),
        ];

        for (field, is_set) in flags {
            findings.unsupported(&place.field(field), is_set);
        }

        let fallback = match LbSubsetFallbackPolicy::try_from(message.fallback_policy) {
            Ok(LbSubsetFallbackPolicy::NoFallback) => Fallback::Nowhere,
            Ok(LbSubsetFallbackPolicy::AnyEndpoint) => Fallback::AnyEndpoint,
            Ok(LbSubsetFallbackPolicy::DefaultSubset) => {
                let subset = message.default_subset.as_ref().map(struct_fields);
                Fallback::Subset(subset.unwrap_or_default())
            }
            Err(_) => {
                findings.add(&place.field("fallback_policy"), Problem::Unsupported);
                return None;
            }
        };

        let mut selectors = Vec::new();
        for (index, selector) in message.subset_selectors.iter().enumerate() {
            let place = place.item("subset_selectors", index);
            findings.unsupported(
                &place.field("fallback_policy"),
                selector.fallback_policy != 0,
            );
            let is_single = selector.single_host_per_subset;
            findings.unsupported(&place.field("single_host_per_subset"), is_single);
            selectors.push(selector.keys.iter().cloned().collect());
        }

        Some(Self {
            selectors,
            fallback,
        })
    }
}

/// The subsets of a cluster.
#[derive(Debug)]
pub(super) struct Subsets {
    groups: HashMap<LbMetadata, Group>,
    fallback: FallbackGroup,
}

/// The endpoints of a request that no subset is for.
#[derive(Debug)]
enum FallbackGroup {
    Nowhere,
    AnyEndpoint,
    Subset(Box<Group>),
}

impl Subsets {
    /// Makes a subset of endpoints for each combination of values that any of
    /// them has under the keys of a selector.
    pub(super) fn new(
        config: &SubsetConfig,
        policy: &Policy,
        hosts: &HostSets,
        seed: u64,
        now: Duration,
    ) -> Self {
        let group = |subset: &LbMetadata| {
            let hosts = hosts.filter(|host| is_in_subset(host, subset));
            Group::new(policy, &hosts, None, seed, now)
        };

        let subsets: BTreeSet<LbMetadata> = config
            .selectors
            .iter()
            .flat_map(|keys| hosts.hosts().filter_map(|host| values(host, keys)))
            .collect();
        let groups = subsets.into_iter().map(|subset| {
            let group = group(&subset);
            (subset, group)
        });

        Self {
            groups: groups.collect(),
            fallback: match &config.fallback {
                Fallback::Nowhere => FallbackGroup::Nowhere,
                Fallback::AnyEndpoint => FallbackGroup::AnyEndpoint,
                Fallback::Subset(subset) => FallbackGroup::Subset(Box::new(group(subset))),
            },
        }
    }

    /// Returns the endpoints for a request that asks for this metadata: those of
    /// its subset, or those of the fallback. `cluster` are all endpoints. Returns
    /// `None` if no subset fits, and the fallback is nowhere.
    pub(super) fn find<'g>(
        &'g mut self,
        metadata: Option<&LbMetadata>,
        cluster: &'g mut Group,
    ) -> Option<&'g mut Group> {
        let group = metadata.and_then(|metadata| self.groups.get_mut(metadata));
        match (group, &mut self.fallback) {
            (Some(group), _) => Some(group),
            (None, FallbackGroup::Nowhere) => None,
            (None, FallbackGroup::AnyEndpoint) => Some(cluster),
            (None, FallbackGroup::Subset(group)) => Some(group),
        }
    }
}

/// Returns whether the metadata of an endpoint has all fields of a subset.
fn is_in_subset(host: &Host, subset: &LbMetadata) -> bool {
    let mut fields = subset.iter();
    fields.all(|(key, value)| host.metadata.get(key) == Some(value))
}

/// Returns the values of an endpoint under these keys, if it has all of them.
fn values(host: &Host, keys: &BTreeSet<String>) -> Option<LbMetadata> {
    let values = keys.iter().map(|key| {
        let value = host.metadata.get(key)?;
        Some((key.clone(), value.clone()))
    });
    values.collect()
}
