//! The endpoints of one priority of a cluster, and which of them a call goes to.
//!
//! The rules of traffic choose; an endpoint that is not connected counts as one
//! that fails its health check. With hashes one that is being connected to stays
//! in the ring, and its calls wait for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use hyper::client::conn::http2::SendRequest;
use tonic::body::Body;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;
use trunkline_traffic::Findings;
use trunkline_traffic::balance::{Balancer, DropOverloads, Host, HostSets, PickContext, Policy};

use super::first::First;
use super::grpc::PickFirst;
use super::subchannel::{Link, Pool, Subchannel};
use super::tls::Tls;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Endpoints {
    pool: Arc<Pool>,
    subchannels: HashMap<Box<str>, Arc<Subchannel>>,
    is_hashed: bool,
    turn: Mutex<Turn>,
}

#[derive(Debug)]
struct Turn {
    hosts: HostSets,
    balancer: Balancer,
    /// The endpoint that has all calls. Without one the balancer chooses.
    first: Option<First>,
    /// The changes of connections that the balancer has taken into account.
    seen_changes: u64,
    /// Whether any endpoint was being connected to, and why one failed, when
    /// the balancer was told. What connections are by now says nothing of what
    /// it chooses.
    is_connecting: bool,
    failure: Option<Arc<str>>,
}

/// What the priorities of a cluster share.
#[derive(Debug)]
pub(super) struct EndpointSettings<'s> {
    pub(super) policy: &'s Arc<Policy>,
    /// `None`: the policy chooses among all endpoints.
    pub(super) pick_first: Option<PickFirst>,
    pub(super) pool: &'s Arc<Pool>,
    pub(super) tls: Option<&'s Arc<Tls>>,
}

/// Where a call goes.
#[derive(Debug)]
pub(super) enum Chosen {
    /// To this endpoint, by this connection.
    Ready(Arc<Host>, SendRequest<Body>),
    /// Nowhere yet: connections are being made.
    Wait,
    /// Nowhere, because of this.
    Failed(Arc<str>),
}

impl Endpoints {
    /// Makes the endpoints of an assignment. Those that are in `previous`, too,
    /// keep what was counted of them.
    pub(super) fn new(
        assignment: &ClusterLoadAssignment,
        previous: Option<&Self>,
        settings: &EndpointSettings<'_>,
    ) -> Result<Self, Findings> {
        let EndpointSettings { policy, pool, .. } = settings;
        let mut hosts =
            previous.map_or_else(HostSets::default, |old| old.lock_turn().hosts.clone());
        hosts.update(assignment, pool.now())?;
        let subchannels = hosts.hosts().filter_map(|host| {
            let address: SocketAddr = host.address().parse().ok()?;
            Some((
                host.address().into(),
                pool.subchannel(address, settings.tls),
            ))
        });
        let subchannels = subchannels.collect();
        let balancer = Balancer::new(Arc::clone(policy), &hosts, None, pool.random(), pool.now());

        let first = settings.pick_first.map(|pick_first| {
            let old_turn = previous.map(Self::lock_turn);
            let old_first = old_turn.as_ref().and_then(|turn| turn.first.as_ref());
            let mut draw = || pool.random();
            let random = pick_first
                .shuffles
                .then_some(&mut draw as &mut dyn FnMut() -> u64);
            First::new(hosts.hosts().cloned().collect(), old_first, random)
        });

        let endpoints = Self {
            pool: Arc::clone(pool),
            subchannels,
            is_hashed: policy.uses_hash(),
            turn: Mutex::new(Turn {
                hosts,
                balancer,
                first,
                seen_changes: pool.changes(),
                is_connecting: false,
                failure: None,
            }),
        };
        endpoints.refresh_balancer(&mut endpoints.lock_turn());
        Ok(endpoints)
    }

    /// Returns all endpoints.
    pub(super) fn hosts(&self) -> Vec<Arc<Host>> {
        self.lock_turn().hosts.hosts().cloned().collect()
    }

    /// Returns the parts of calls that the assignment says to drop.
    pub(super) fn drops(&self) -> DropOverloads {
        self.lock_turn().hosts.drops().clone()
    }

    /// Chooses the endpoint of a call: the first one that works, if the policy
    /// is to pick the first, or else the choice of the balancer, by `hash` if
    /// its policy goes by hashes.
    pub(super) fn choose(&self, hash: Option<u64>) -> Chosen {
        let mut turn = self.lock_turn();
        if let Some(first) = &mut turn.first {
            return first.choose(|host| self.link(host));
        }

        let changes = self.pool.changes();
        if std::mem::replace(&mut turn.seen_changes, changes) != changes {
            self.refresh_balancer(&mut turn);
        }

        let context = PickContext {
            hash,
            now: self.pool.now(),
            ..PickContext::default()
        };
        // Each time around one endpoint is found to be lost.
        for _ in 0..=self.subchannels.len() {
            let mut random = || self.pool.random();
            let Some(host) = turn.balancer.pick(&context, &mut random) else {
                return turn.wait_or_fail();
            };
            let host = Arc::clone(host);
            match self.link(&host) {
                Link::Ready(sender) => return Chosen::Ready(host, sender),
                Link::Connecting if self.is_hashed => return Chosen::Wait,
                Link::Connecting | Link::Failed(_) => self.refresh_balancer(&mut turn),
            }
        }
        Chosen::Wait
    }

    /// Chooses the endpoint with this address; `None` if there is none.
    pub(super) fn choose_address(&self, address: &str) -> Option<Chosen> {
        let turn = self.lock_turn();
        let host = turn.hosts.hosts().find(|host| host.address() == address)?;
        Some(match self.link(host) {
            Link::Ready(sender) => Chosen::Ready(Arc::clone(host), sender),
            Link::Connecting => Chosen::Wait,
            Link::Failed(why) => Chosen::Failed(why),
        })
    }

    /// Tells the balancer which endpoints are connected. The others count as
    /// failing their health check.
    fn refresh_balancer(&self, turn: &mut Turn) {
        let (mut is_connecting, mut failure) = (false, None);
        for host in turn.hosts.hosts() {
            let is_out = match self.link(host) {
                Link::Ready(_) => false,
                Link::Connecting => {
                    is_connecting = true;
                    !self.is_hashed
                }
                Link::Failed(error) => {
                    failure = Some(error);
                    true
                }
            };
            host.counters().set_fails_check(is_out);
        }
        (turn.is_connecting, turn.failure) = (is_connecting, failure);
        let Turn {
            hosts, balancer, ..
        } = turn;
        balancer.refresh(hosts, &[0], None, self.pool.now());
    }

    /// Returns how the connection to an endpoint stands. One that is closed
    /// counts as being made: its task will notice in a moment.
    fn link(&self, host: &Host) -> Link {
        let Some(subchannel) = self.subchannels.get(host.address()) else {
            return Link::Failed(format!("{} is no IP address", host.address()).into());
        };
        match &*subchannel.link().borrow() {
            Link::Ready(sender) if sender.is_closed() => Link::Connecting,
            link => link.clone(),
        }
    }

    /// Locks the balancer. Ignores poison: a call that panicked ends alone.
    fn lock_turn(&self) -> std::sync::MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Decides what becomes of a call when the balancer has no endpoint for it:
    /// it waits for those that are being connected to, or fails.
    fn wait_or_fail(&self) -> Chosen {
        let nobody = || "it has no healthy endpoint".into();
        match self.is_connecting {
            true => Chosen::Wait,
            false => Chosen::Failed(self.failure.clone().unwrap_or_else(nobody)),
        }
    }
}
