//! The extensions that are supported: HTTP filters, and the names of cluster
//! types, load balancing policies and plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::findings::Findings;
use super::grpc::filter_bodies;
use super::place::Place;

/// Aggregate clusters (A37).
pub(super) const AGGREGATE: &str = "envoy.extensions.clusters.aggregate.v3.ClusterConfig";

/// gRPC's types of clusters (A27, A37).
pub(super) const CLUSTER_TYPES: &[&str] = &["EDS", "LOGICAL_DNS", AGGREGATE];

macro_rules! lb_policies {
    ($($name:ident = $message:literal;)*) => {
        $(pub(super) const $name: &str =
            concat!("envoy.extensions.load_balancing_policies.", $message);)*
    };
}

lb_policies! {
    ROUND_ROBIN = "round_robin.v3.RoundRobin";
    RING_HASH = "ring_hash.v3.RingHash";
    LEAST_REQUEST = "least_request.v3.LeastRequest";
    PICK_FIRST = "pick_first.v3.PickFirst";
    CLIENT_SIDE_WRR = "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin";
    WRR_LOCALITY = "wrr_locality.v3.WrrLocality";
    RANDOM = "random.v3.Random";
    MAGLEV = "maglev.v3.Maglev";
}

/// gRPC's load balancing policies (A52).
pub(super) const LB_POLICIES: &[&str] = &[
    ROUND_ROBIN,
    RING_HASH,
    LEAST_REQUEST,
    PICK_FIRST,
    CLIENT_SIDE_WRR,
    WRR_LOCALITY,
];

/// gRPC's cluster specifier plugins.
pub(super) const PLUGINS: &[&str] = &["grpc.lookup.v1.RouteLookupClusterSpecifier"];

/// The places in which the message of a filter may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// In the list of filters.
    Config,
    /// In a `typed_per_filter_config`.
    Override,
    /// In both.
    Both,
}

/// The side of a connection that a filter runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A client, whose listener is an API listener.
    Client,
    /// A server, whose listener has an address.
    Server,
}

/// Checks the body of a filter's message, which is at a place.
type BodyCheck = Arc<dyn Fn(&[u8], &Place<'_>, &mut Findings<'_>) + Send + Sync>;

/// An HTTP filter that is supported.
#[derive(Clone)]
pub struct HttpFilter {
    usage: Usage,
    only_on: Option<Side>,
    is_terminal: bool,
    takes_struct: bool,
    check: Option<BodyCheck>,
}

impl HttpFilter {
    /// Makes a filter for both sides that is not terminal, and may be
    /// configured by a `TypedStruct`.
    #[must_use]
    pub fn new(usage: Usage) -> Self {
        Self {
            usage,
            only_on: None,
            is_terminal: false,
            takes_struct: true,
            check: None,
        }
    }

    /// Returns the filter for one side only.
    #[must_use]
    pub fn only_on(mut self, side: Side) -> Self {
        self.only_on = Some(side);
        self
    }

    /// Returns the filter as a terminal one, which has to be the last.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.is_terminal = true;
        self
    }

    /// Returns the filter with a check of its message. A message inside a
    /// `TypedStruct` is not checked.
    #[must_use]
    pub fn with_check(
        mut self,
        check: impl Fn(&[u8], &Place<'_>, &mut Findings<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Makes a filter of gRPC itself, which is a message.
    fn built_in(usage: Usage, check: fn(&[u8], &Place<'_>, &mut Findings<'_>)) -> Self {
        Self {
            takes_struct: false,
            ..Self::new(usage).with_check(check)
        }
    }

    /// Returns whether the message may stand in the list of filters.
    pub(super) fn is_config(&self) -> bool {
        self.usage != Usage::Override
    }

    /// Returns whether the message may stand in a `typed_per_filter_config`.
    pub(super) fn is_override(&self) -> bool {
        self.usage != Usage::Config
    }

    /// Returns whether the filter can be used on a side.
    pub(super) fn runs_on(&self, side: Side) -> bool {
        self.only_on.is_none_or(|only_side| only_side == side)
    }

    /// Returns whether the filter has to be the last.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns whether a `TypedStruct` may configure the filter.
    pub(super) fn takes_struct(&self) -> bool {
        self.takes_struct
    }

    /// Checks the message of the filter, by the filter's own check if it has
    /// one.
    pub(super) fn check(&self, body: &[u8], place: &Place<'_>, findings: &mut Findings<'_>) {
        if let Some(check) = &self.check {
            check(body, place, findings);
        }
    }
}

impl fmt::Debug for HttpFilter {
    /// Writes the filter without its check, which is a function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFilter")
            .field("usage", &self.usage)
            .field("only_on", &self.only_on)
            .field("is_terminal", &self.is_terminal)
            .finish_non_exhaustive()
    }
}

/// The HTTP filters that are supported, by the full names of their messages.
#[derive(Debug, Clone, Default)]
pub struct HttpFilters {
    by_message: BTreeMap<String, HttpFilter>,
}

impl HttpFilters {
    /// Returns gRPC's own filters: router (A39), fault (A33), RBAC (A41),
    /// stateful sessions (A55), and authentication of GCP (A83).
    #[must_use]
    pub fn grpc() -> Self {
        use Side::{Client, Server};
        use Usage::{Both, Config, Override};
        let built_in = HttpFilter::built_in;
        let mut filters = Self::default();
        let mut add = |message: &str, filter| {
            filters.insert(format!("envoy.extensions.filters.http.{message}"), filter);
        };

        let router = built_in(Config, filter_bodies::check_router);
        add("router.v3.Router", router.terminal());
        let fault = built_in(Both, filter_bodies::check_fault);
        add("fault.v3.HTTPFault", fault.only_on(Client));
        let rbac = built_in(Config, filter_bodies::check_rbac);
        add("rbac.v3.RBAC", rbac.only_on(Server));
        let rbac_per_route = built_in(Override, filter_bodies::check_rbac_per_route);
        add("rbac.v3.RBACPerRoute", rbac_per_route);

        let session = built_in(Config, filter_bodies::check_session);
        let session = session.only_on(Client);
        add("stateful_session.v3.StatefulSession", session);
        let session_per_route = built_in(Override, filter_bodies::check_session_per_route);
        add(
            "stateful_session.v3.StatefulSessionPerRoute",
            session_per_route,
        );

        let authn = built_in(Config, filter_bodies::check_gcp_authn);
        add("gcp_authn.v3.GcpAuthnFilterConfig", authn.only_on(Client));
        filters
    }

    /// Adds a filter, or replaces it.
    pub fn insert(&mut self, message: impl Into<String>, filter: HttpFilter) {
        self.by_message.insert(message.into(), filter);
    }

    /// Finds a filter by the full name of its message.
    #[must_use]
    pub fn get(&self, message: &str) -> Option<&HttpFilter> {
        self.by_message.get(message)
    }
}
