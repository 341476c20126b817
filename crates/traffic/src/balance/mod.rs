//! Load balancing: from a cluster and a request to an endpoint (62-71).
//!
//! ```text
//! Cluster ── Policy      ClusterLoadAssignment ── HostSets (priority, locality)
//!                  \                              /     update ─▶ Changes
//!                   Balancer, one for each worker
//!                      │ pick(hash, metadata, random)
//!                      ▼
//!    subset ─▶ priority by load ─▶ health or panic ─▶ locality ─▶ endpoint
//! ```
//!
//! Endpoints and their counters are shared by all workers. The order in which
//! they are chosen is a worker's own, as in Envoy, so a pick takes no lock.

mod balancer;
mod drop;
mod edf;
mod host;
mod host_set;
mod load;
mod maglev;
mod members;
mod metadata;
mod policy;
mod pool;
mod priority;
mod ring;
mod subset;
#[cfg(test)]
mod tests;
mod typed;
mod zone;

pub use balancer::{Balancer, PickContext};
pub use drop::{DropOverloads, Dropped};
pub use host::{Health, Host, HostCounters, Locality};
pub use host_set::{Changes, HostSets};
pub use load::PriorityLoad;
pub use maglev::Maglev;
pub use metadata::{LbMetadata, lb_metadata};
pub use policy::Policy;
pub(crate) use policy::duration;
pub use ring::{Ring, RingConfig, RingFunction};
pub use zone::LocalCluster;
