//! The cluster of a route: one by name, by a header, or by weight (47; facts
//! 1.4).

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{
    RouteAction, WeightedCluster,
    route_action::ClusterSpecifier,
    weighted_cluster::{ClusterWeight, RandomValueSpecifier, cluster_weight::HostRewriteSpecifier},
};

use super::filters::FilterConfigs;
use super::mutations::{BothMutations, fields};
use crate::balance::{LbMetadata, lb_metadata};
use crate::findings::Findings;
use crate::request::Request;

/// How a route finds its cluster.
#[derive(Debug, Clone)]
pub(super) enum Clusters {
    Named(Box<str>),
    Header(Box<str>),
    Weighted {
        entries: Box<[WeightedEntry]>,
        total: u64,
        random: RandomSource,
    },
}

/// One of several weighted clusters.
#[derive(Debug, Clone)]
pub struct WeightedEntry {
    name: ClusterName,
    weight: u64,
    host_rewrite: Option<Box<str>>,
    pub(super) filters: FilterConfigs,
    pub(super) metadata: LbMetadata,
    pub(super) mutations: BothMutations,
}

#[derive(Debug, Clone)]
enum ClusterName {
    Literal(Box<str>),
    Header(Box<str>),
}

/// Where the number that is compared with weights comes from.
#[derive(Debug, Clone)]
pub(super) enum RandomSource {
    Stream,
    Header(Box<str>),
    HashPolicy,
}

/// The cluster that a request goes to.
#[derive(Debug, Clone, Copy)]
pub struct ChosenCluster<'t> {
    /// Its name; `None` if the request does not name one.
    pub name: Option<&'t str>,
    /// The entry, where it is one of several.
    pub entry: Option<&'t WeightedEntry>,
}

impl WeightedEntry {
    /// Returns the host that requests to this cluster are given.
    #[must_use]
    pub fn host_rewrite(&self) -> Option<&str> {
        self.host_rewrite.as_deref()
    }

    /// Compiles a weighted cluster. Returns `None` if it does not have exactly
    /// one source of its name.
    fn compile(
        message: &ClusterWeight,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let name = match (message.name.as_str(), message.cluster_header.as_str()) {
            ("", "") => {
                findings.add(&place.field("name"), Problem::Missing);
                return None;
            }
            (name, "") => ClusterName::Literal(name.into()),
            ("", header) => ClusterName::Header(header.to_ascii_lowercase().into()),
            _ => {
                let problem = "is set beside cluster_header; remove one of them";
                findings.add(&place.field("name"), Problem::Other(problem.to_owned()));
                return None;
            }
        };

        let host_rewrite = message.host_rewrite_specifier.as_ref();
        Some(Self {
            name,
            weight: message.weight.map_or(0, |weight| u64::from(weight.value)),
            host_rewrite: host_rewrite
                .map(|HostRewriteSpecifier::HostRewriteLiteral(host)| host.as_str().into()),
            filters: FilterConfigs::compile(&message.typed_per_filter_config, place, findings),
            metadata: lb_metadata(message.metadata_match.as_ref()),
            mutations: BothMutations::compile(&fields!(message), place, findings),
        })
    }
}

impl Clusters {
    /// Returns whether a request may go to a cluster by its name or its weight. A
    /// cluster that a header may name, or of weight zero, does not count.
    pub(super) fn lead_to(&self, cluster: &str) -> bool {
        match self {
            Self::Named(name) => **name == *cluster,
            Self::Header(_) => false,
            Self::Weighted { entries, .. } => entries.iter().any(|entry| match &entry.name {
                ClusterName::Literal(name) => entry.weight > 0 && **name == *cluster,
                ClusterName::Header(_) => false,
            }),
        }
    }

    /// Compiles the cluster specifier of an action. Returns `None` if it is
    /// missing or not supported.
    pub(super) fn compile(
        message: &RouteAction,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        match &message.cluster_specifier {
            Some(ClusterSpecifier::Cluster(name)) => Some(Self::Named(name.as_str().into())),
            Some(ClusterSpecifier::ClusterHeader(name)) => {
                Some(Self::Header(name.to_ascii_lowercase().into()))
            }
            Some(ClusterSpecifier::WeightedClusters(weighted)) => {
                compile_weighted(weighted, &place.field("weighted_clusters"), findings)
            }

            Some(ClusterSpecifier::ClusterSpecifierPlugin(_)) => {
                findings.add(
                    &place.field("cluster_specifier_plugin"),
                    Problem::Unsupported,
                );
                None
            }
            Some(ClusterSpecifier::InlineClusterSpecifierPlugin(_)) => {
                let place = place.field("inline_cluster_specifier_plugin");
                findings.add(&place, Problem::Unsupported);
                None
            }
            None => {
                findings.add(place, Problem::Missing);
                None
            }
        }
    }

    /// Adds the metadata of the route to each weighted cluster, except keys
    /// that the cluster has itself.
    pub(super) fn inherit_metadata(&mut self, route: &LbMetadata) {
        if let Self::Weighted { entries, .. } = self {
            for entry in entries {
                let mut merged = route.clone();
                merged.append(&mut entry.metadata);
                entry.metadata = merged;
            }
        }
    }

    /// Chooses the cluster of a request. `random` is the number that has
    /// decided about runtime fractions, so both decisions are correlated, as in
    /// Envoy.
    pub(super) fn choose<'t>(
        &'t self,
        request: &Request<'t>,
        random: u64,
        hash: impl FnOnce() -> Option<u64>,
    ) -> ChosenCluster<'t> {
        match self {
            Self::Named(name) => ChosenCluster {
                name: Some(name),
                entry: None,
            },
            Self::Header(header) => ChosenCluster {
                name: read_name(request, header),
                entry: None,
            },

            Self::Weighted {
                entries,
                total,
                random: source,
            } => {
                let number = match source {
                    RandomSource::Stream => None,
                    RandomSource::Header(header) => header_number(request, header),
                    RandomSource::HashPolicy => hash(),
                };
                let entry = find_entry(entries, number.unwrap_or(random) % total);
                let name = entry.and_then(|entry| match &entry.name {
                    ClusterName::Literal(name) => Some(&**name),
                    ClusterName::Header(header) => read_name(request, header),
                });
                ChosenCluster { name, entry }
            }
        }
    }
}

/// Finds the entry of a number. Each entry has an interval of numbers that is
/// as long as its weight. `None` if the number is beyond the sum of all
/// weights.
fn find_entry(entries: &[WeightedEntry], number: u64) -> Option<&WeightedEntry> {
    let mut end = 0;
    entries.iter().find(|entry| {
        end += entry.weight;
        number < end
    })
}

/// Returns the name of a cluster in a header; `None` if it is missing, empty or
/// not UTF-8.
fn read_name<'r>(request: &Request<'r>, header: &str) -> Option<&'r str> {
    let name = request.header(header)?;
    str::from_utf8(name).ok().filter(|name| !name.is_empty())
}

/// Returns the number in a header. Returns `None` if the header has several
/// lines, or its value is not a number.
fn header_number(request: &Request<'_>, header: &str) -> Option<u64> {
    let mut lines = request.headers.all(header);
    let line = lines.next()?;
    if lines.next().is_some() || !line.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(line).ok()?.parse().ok()
}

/// Compiles weighted clusters. Their total weight must be neither zero nor more
/// than 32 bits.
fn compile_weighted(
    message: &WeightedCluster,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Option<Clusters> {
    let has_prefix = !message.runtime_key_prefix.is_empty();
    findings.unsupported(&place.field("runtime_key_prefix"), has_prefix);
    let clusters = &message.clusters;
    let entries = super::criteria::compile_each("clusters", clusters, place, |message, place| {
        WeightedEntry::compile(message, place, findings)
    });

    let total: u64 = entries.iter().map(|entry| entry.weight).sum();
    if total == 0 {
        findings.add(place, Problem::ZeroWeights);
    } else if total > u64::from(u32::MAX) {
        findings.add(place, Problem::LargeWeights(total));
    }

    let random = match &message.random_value_specifier {
        Some(RandomValueSpecifier::HeaderName(name)) => {
            RandomSource::Header(name.to_ascii_lowercase().into())
        }
        Some(RandomValueSpecifier::UseHashPolicy(uses)) if uses.value => RandomSource::HashPolicy,
        _ => RandomSource::Stream,
    };
    Some(Clusters::Weighted {
        entries,
        total: total.max(1),
        random,
    })
}
