//! A cluster as calls see it: where they go, and what is counted of them.

use std::sync::Arc;

use hashbrown::HashMap;
use http::uri::Scheme;
use hyper::client::conn::http2::SendRequest;
use tonic::Status;
use tonic::body::Body;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::Locality as LocalityMessage;
use trunkline_traffic::balance::{DropOverloads, Dropped, Host, Locality, Policy};
use trunkline_traffic::cluster::{Breakers, Limits};
use trunkline_traffic::route::Priority;

use super::endpoints::{Chosen, EndpointSettings, Endpoints};
use super::grpc;
use super::outlier::Ejector;
use super::subchannel::Pool;
use super::table::Maker;
use super::tls::Tls;
use crate::client::Client;
use crate::client::load::{Call, ClusterReporter, LocalityReporter};
use crate::client::tree::ClusterSnapshot;

/// The clusters that calls of one name go to: itself, or the leaves of an
/// aggregate cluster in the order of priority (A37).
#[derive(Debug)]
pub(super) struct Clusters(pub(super) Vec<Arc<Leaf>>);

/// One cluster with endpoints.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) snapshot: ClusterSnapshot,
    priorities: Vec<Endpoints>,
    drops: DropOverloads,
    limits: Limits,
    breakers: Arc<Breakers>,
    ejector: Option<Arc<Ejector>>,
    load: Option<Load>,
    /// `None`: it is called in plaintext.
    tls: Option<Arc<Tls>>,
}

/// Where the load of a cluster is counted.
#[derive(Debug)]
struct Load {
    cluster: ClusterReporter,
    localities: Vec<HashMap<Locality, LocalityReporter>>,
}

/// Where a call goes.
#[derive(Debug)]
pub(super) enum Pick {
    /// By this connection.
    Ready(SendRequest<Body>, Guard),
    /// Nowhere yet: connections are being made.
    Wait,
    /// Nowhere, because of this; it may be tried again.
    Failed(Arc<str>),
    /// Nowhere, because the configuration or a limit says so.
    Dropped(Status),
}

impl Clusters {
    /// Chooses the endpoint of a call, and lets the call in. A priority whose
    /// endpoints all fail gives way to the next; one that is being connected to
    /// does not (A56).
    ///
    /// An endpoint with `session_address`, the one that the session of the call
    /// keeps, is chosen whatever the policy, unless it fails (A55).
    pub(super) fn pick(
        &self,
        hash: Option<u64>,
        session_address: Option<&str>,
        pool: &Pool,
    ) -> Pick {
        let session_choice = session_address.and_then(|address| self.find(address));
        if let Some((leaf, priority, chosen)) = session_choice {
            match chosen {
                Chosen::Wait => return Pick::Wait,
                Chosen::Failed(_) => {}
                Chosen::Ready(host, sender) => return leaf.pick(host, priority, sender, pool),
            }
        }

        let mut failure: Arc<str> = "it has no healthy endpoint".into();
        for leaf in &self.0 {
            for (priority, endpoints) in leaf.priorities.iter().enumerate() {
                match endpoints.choose(hash) {
                    Chosen::Wait => return Pick::Wait,
                    Chosen::Failed(why) => failure = why,
                    Chosen::Ready(host, sender) => {
                        return leaf.pick(host, priority, sender, pool);
                    }
                }
            }
        }
        Pick::Failed(failure)
    }

    /// Finds the endpoint with this address, with its cluster and the index of
    /// its priority; `None` if no cluster has it.
    fn find(&self, address: &str) -> Option<(&Arc<Leaf>, usize, Chosen)> {
        self.0.iter().find_map(|leaf| {
            let mut priorities = leaf.priorities.iter().enumerate();
            priorities.find_map(|(index, endpoints)| {
                Some((leaf, index, endpoints.choose_address(address)?))
            })
        })
    }
}

impl Leaf {
    /// Makes a cluster. What was counted of the previous one, and limits and
    /// ejection with the same settings, go on. An error is the status of its
    /// calls.
    pub(super) fn new(
        snapshot: &ClusterSnapshot,
        previous: Option<&Self>,
        maker: &Maker,
    ) -> Result<Self, Status> {
        if let Some(error) = snapshot.error().filter(|_| snapshot.is_failed()) {
            return Err(maker.client.call_status(error));
        }
        let unusable = |reason: &dyn std::fmt::Display| {
            Status::unavailable(format!("the cluster {}: {reason}", snapshot.name()))
        };
        let Some(cluster) = snapshot.value() else {
            return Err(unusable(&"there is none"));
        };

        let old_tls = previous.and_then(|leaf| leaf.tls.as_ref());
        let tls = Tls::read(snapshot, &cluster, old_tls, &maker.client, &maker.authority);
        let tls = tls.map_err(|reason| unusable(&reason))?;
        let leaf = Self::compile(snapshot, &cluster, previous, maker, tls);
        leaf.map_err(|findings| unusable(&findings))
    }

    /// Compiles the policy, the endpoints, the limits and the ejection of a
    /// cluster, whose TLS has been read.
    fn compile(
        snapshot: &ClusterSnapshot,
        cluster: &Cluster,
        previous: Option<&Self>,
        maker: &Maker,
        tls: Option<Arc<Tls>>,
    ) -> Result<Self, trunkline_traffic::Findings> {
        let pick_first = grpc::pick_first(cluster);
        let settings = EndpointSettings {
            policy: &Arc::new(compile_policy(cluster, pick_first.is_some())?),
            pick_first,
            pool: &maker.pool,
            tls: tls.as_ref(),
        };
        let priorities = make_priorities(snapshot, previous, &settings)?;
        let limits = Limits::compile(cluster, Priority::Default)?;
        let ejector = make_ejector(cluster, previous, &maker.pool)?;
        if let Some(ejector) = &ejector {
            ejector.set_hosts(priorities.iter().flat_map(Endpoints::hosts));
        }

        let same_limits = previous.filter(|previous| previous.limits == limits);
        Ok(Self {
            drops: priorities.first().map(Endpoints::drops).unwrap_or_default(),
            load: Load::new(snapshot, &priorities, &maker.client),
            priorities,
            breakers: same_limits.map_or_else(
                || Arc::new(Breakers::new(limits)),
                |previous| Arc::clone(&previous.breakers),
            ),
            limits,
            ejector,
            tls,
            snapshot: snapshot.clone(),
        })
    }

    /// Lets a call in to an endpoint, by a connection, unless it is to be
    /// dropped.
    fn pick(
        self: &Arc<Self>,
        host: Arc<Host>,
        priority: usize,
        sender: SendRequest<Body>,
        pool: &Pool,
    ) -> Pick {
        match self.admit(host, priority, pool) {
            Ok(guard) => Pick::Ready(sender, guard),
            Err(status) => Pick::Dropped(status),
        }
    }

    /// Counts a call to an endpoint as begun, until the guard ends. The error
    /// says that it is dropped, by a category of the assignment or because
    /// there are too many (A32, A33).
    fn admit(
        self: &Arc<Self>,
        host: Arc<Host>,
        priority: usize,
        pool: &Pool,
    ) -> Result<Guard, Status> {
        let name = self.snapshot.name();
        if let Some(dropped) = self.drops.decide(&mut || pool.random()) {
            let (Dropped::Overload(category) | Dropped::Unconditional(category)) = dropped;
            self.count_drop(category);
            let message = format!("the cluster {name} drops calls of the category {category}");
            return Err(Status::unavailable(message));
        }

        if !self.breakers.try_request() {
            self.count_drop("");
            let message = format!("the cluster {name} has as many calls as it may have");
            return Err(Status::unavailable(message));
        }

        host.counters().start();
        let load = self.load.as_ref();
        let reporter = load.and_then(|load| load.localities.get(priority)?.get(host.locality()));
        Ok(Guard(Some(CountedCall {
            load: reporter.map(LocalityReporter::begin),
            leaf: Arc::clone(self),
            host,
        })))
    }

    /// Counts a call that was dropped, for load reports. The category is empty
    /// where it is none of the assignment's.
    fn count_drop(&self, category: &str) {
        if let Some(load) = &self.load {
            load.cluster.drop_call(category);
        }
    }
}

/// Compiles the policy by which the endpoints of a cluster are chosen. If the
/// first endpoint has all calls, any policy will do.
fn compile_policy(
    cluster: &Cluster,
    picks_first: bool,
) -> Result<Policy, trunkline_traffic::Findings> {
    match picks_first {
        true => Policy::compile(&Cluster::default()),
        false => Policy::compile(&grpc::balancing(cluster)),
    }
}

/// Makes the endpoints of each priority of a cluster. Endpoints that were in
/// `previous` keep what was counted of them. Returns none while the cluster has
/// no assignment.
fn make_priorities(
    snapshot: &ClusterSnapshot,
    previous: Option<&Leaf>,
    settings: &EndpointSettings<'_>,
) -> Result<Vec<Endpoints>, trunkline_traffic::Findings> {
    let assignment = super::hosts::assignment(snapshot);
    let assignments = assignment.map(|assignment| grpc::priorities(&assignment));
    let assignments = assignments.unwrap_or_default();

    let previous_endpoints = |index: usize| previous.and_then(|leaf| leaf.priorities.get(index));
    let priorities = assignments.iter().enumerate();
    let priorities = priorities
        .map(|(index, assignment)| Endpoints::new(assignment, previous_endpoints(index), settings));
    priorities.collect()
}

/// Returns the ejector of a cluster; `None` if the cluster has no outlier
/// detection. The ejector of `previous` goes on if its settings are the same.
fn make_ejector(
    cluster: &Cluster,
    previous: Option<&Leaf>,
    pool: &Arc<Pool>,
) -> Result<Option<Arc<Ejector>>, trunkline_traffic::Findings> {
    let Some(detection) = &cluster.outlier_detection else {
        return Ok(None);
    };
    let settings = grpc::outlier_detection(detection);
    let previous = previous.and_then(|leaf| leaf.ejector.as_ref());
    if let Some(ejector) = previous.filter(|ejector| ejector.settings == settings) {
        return Ok(Some(Arc::clone(ejector)));
    }
    Ejector::start(&settings, pool).map(|ejector| Some(Arc::new(ejector)))
}

impl Load {
    /// Makes the reporters of a cluster; `None` if its load is not to be
    /// reported.
    fn new(snapshot: &ClusterSnapshot, priorities: &[Endpoints], client: &Client) -> Option<Self> {
        let cluster = snapshot.value()?;
        cluster.lrs_server.as_ref()?;
        let server_reporter = client.load_reporter(&cluster).ok()?;
        let eds = cluster.eds_cluster_config.as_ref();
        let service = eds.map_or("", |eds| eds.service_name.as_str());
        let reporter = server_reporter.cluster(&cluster.name, service);

        let make_locality_reporters = |(priority, endpoints): (usize, &Endpoints)| {
            let priority = u32::try_from(priority).unwrap_or(u32::MAX);
            let mut localities = HashMap::new();
            for host in endpoints.hosts() {
                let locality = host.locality();
                if !localities.contains_key(locality) {
                    let locality_reporter =
                        reporter.locality(&locality_message(locality), priority);
                    localities.insert(locality.clone(), locality_reporter);
                }
            }
            localities
        };
        Some(Self {
            localities: priorities
                .iter()
                .enumerate()
                .map(make_locality_reporters)
                .collect(),
            cluster: reporter,
        })
    }
}

/// Returns a locality as a message.
fn locality_message(locality: &Locality) -> LocalityMessage {
    LocalityMessage {
        region: locality.region.clone(),
        zone: locality.zone.clone(),
        sub_zone: locality.sub_zone.clone(),
    }
}

/// A call under way at an endpoint. Where a guard is dropped, the call has
/// failed.
#[derive(Debug)]
pub(super) struct Guard(Option<CountedCall>);

/// Where a call is counted until it ends.
#[derive(Debug)]
struct CountedCall {
    leaf: Arc<Leaf>,
    host: Arc<Host>,
    load: Option<Call>,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With the status OK.
    Succeeded,
    /// In any other way.
    Failed,
    /// It was not sent, which says nothing of the endpoint.
    Unsent,
}

impl Guard {
    /// Returns the address of the endpoint; `None` once the call has ended.
    pub(super) fn address(&self) -> Option<&str> {
        self.0.as_ref().map(|call| call.host.address())
    }

    /// Returns the scheme of a request to the endpoint, by whether it speaks
    /// TLS.
    pub(super) fn scheme(&self) -> Scheme {
        let leaf = self.0.as_ref().map(|call| &call.leaf);
        match leaf.is_some_and(|leaf| leaf.tls.is_some()) {
            true => Scheme::HTTPS,
            false => Scheme::HTTP,
        }
    }

    /// Ends the call and counts how. Does nothing if it has ended already.
    pub(super) fn end(&mut self, outcome: Outcome) {
        let Some(CountedCall { leaf, host, load }) = self.0.take() else {
            return;
        };
        host.counters().end();
        leaf.breakers.end_request();
        if let Some(load) = load {
            match outcome {
                Outcome::Succeeded => load.succeed(),
                Outcome::Failed | Outcome::Unsent => load.fail(),
            }
        }
        if let Some(ejector) = leaf.ejector.as_ref().filter(|_| outcome != Outcome::Unsent) {
            ejector.count(host.address(), outcome == Outcome::Succeeded);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end(Outcome::Failed);
    }
}
