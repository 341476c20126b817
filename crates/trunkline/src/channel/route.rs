//! From a call to a cluster: the rules of traffic, over what of a virtual host
//! counts for gRPC.

use std::time::Duration;

use http::HeaderMap;
use http::request::Parts;
use tonic::Status;
use trunkline_proto::envoy::envoy::config::route::v3::VirtualHost;
use trunkline_traffic::headers::Headers;
use trunkline_traffic::retry::{RetryPolicy, RetryState};
use trunkline_traffic::route::{Context, FilterConfig, Forward, RouteMatch, RouteTable};
use trunkline_traffic::{Request, Runtime};

use super::grpc;
use super::session::{Cookie, Session};
use super::table::Manager;

/// The routes of the virtual host of a channel.
#[derive(Debug)]
pub(super) struct Routes {
    table: RouteTable,
    runtime: Runtime,
}

/// A call as routes see it.
#[derive(Debug)]
pub(super) struct Head {
    path: String,
    authority: String,
    headers: Headers,
    /// Drawn once for each call.
    random: u64,
}

/// The decision on a call.
#[derive(Debug)]
pub(super) struct Decision<'t> {
    /// The name of the cluster that the route chooses.
    cluster: &'t str,
    /// The number that ring hash goes by.
    pub(super) hash: Option<u64>,
    route_match: RouteMatch<'t>,
    forward: Forward<'t>,
}

impl Head {
    /// Reads a call. Binary headers are left out: routes do not see them (A28).
    pub(super) fn new(call: &Parts, authority: &str, channel: &str, random: u64) -> Self {
        let mut headers = visible_headers(&call.headers);
        headers.append(grpc::CHANNEL_ID, channel.to_owned());
        Self {
            path: call.uri.path().to_owned(),
            authority: authority.to_owned(),
            headers,
            random,
        }
    }

    /// Begins the retries of the call. Its headers have no say in them.
    pub(super) fn retries<'p>(&self, policy: &'p RetryPolicy) -> RetryState<'p> {
        let no_headers = Headers::new();
        let request = Request {
            headers: &no_headers,
            ..self.request()
        };
        RetryState::new(policy, &request)
    }

    /// Returns the headers of the call.
    pub(super) fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns the call as the rules of traffic see a request.
    fn request(&self) -> Request<'_> {
        Request {
            method: "POST",
            scheme: "http",
            authority: &self.authority,
            path: &self.path,
            headers: &self.headers,
        }
    }
}

/// Returns the headers of a call that routes see.
fn visible_headers(map: &HeaderMap) -> Headers {
    let lines = map.iter();
    let lines = lines.filter(|(name, _)| !name.as_str().ends_with("-bin"));
    lines
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect()
}

impl Routes {
    /// Compiles a virtual host.
    pub(super) fn compile(host: &VirtualHost) -> Result<Self, Status> {
        let table = RouteTable::compile(&grpc::routes(host));
        let unusable =
            |findings| Status::unavailable(format!("the virtual host {}: {findings}", host.name));
        Ok(Self {
            table: table.map_err(unusable)?,
            runtime: Runtime::default(),
        })
    }

    /// Decides where a call goes. An error is its status: no route matches, or
    /// the route leads to no cluster.
    pub(super) fn route<'t>(&'t self, head: &'t Head) -> Result<Decision<'t>, Status> {
        let request = head.request();
        let context = Context {
            random: head.random,
            runtime: &self.runtime,
            peer: None,
        };
        let nowhere = |why: &str| Status::unavailable(format!("{why} for the path {}", head.path));
        let route_match = self.table.find(&request, &context);
        let route_match = route_match.map_err(|_| nowhere("no route"))?;
        let forward = route_match.forward(&request, &context);
        let forward = forward.ok_or_else(|| nowhere("the route leads to no cluster"))?;
        Ok(Decision {
            cluster: forward.cluster.name.unwrap_or_default(),
            hash: forward.hash,
            route_match,
            forward,
        })
    }
}

impl<'t> Decision<'t> {
    /// Returns the retry policy of the route, or else of the virtual host
    /// (A44); `None` if the route forwards nothing.
    pub(super) fn retry(&self) -> Option<&'t RetryPolicy> {
        self.route_match
            .forwarding()
            .map(|action| action.retry_policy())
    }

    /// Returns the longest that the call may take: by its route, or else
    /// `listener_limit` (A31). Returns `None` if neither has a limit.
    pub(super) fn limit(&self, head: &Head, listener_limit: Option<Duration>) -> Option<Duration> {
        let forwarding = self.route_match.forwarding()?;
        // What a header of the call says is not for the route to read.
        let no_headers = Headers::new();
        let request = Request {
            headers: &no_headers,
            ..head.request()
        };
        forwarding.timeouts(&request, None, listener_limit).stream
    }

    /// Returns the name of the call's cluster: the one that its session keeps,
    /// if the route leads there (A60), or else the one that the route chose.
    pub(super) fn cluster(&self, session: Option<&'t Session>) -> &'t str {
        let session_cluster = session.and_then(|session| session.cluster.as_deref());
        let leads = |name: &&str| {
            let forwarding = self.route_match.forwarding();
            forwarding.is_some_and(|action| action.leads_to(name))
        };
        session_cluster.filter(leads).unwrap_or(self.cluster)
    }

    /// Reads the session of the call; `None` if neither the listener nor the
    /// route has sessions, or the call's path has none.
    pub(super) fn session(&self, manager: &Manager, head: &Head) -> Option<Session> {
        let (name, cookie) = manager.sessions.as_ref()?;
        let cookie = match self.filter(name) {
            Some(FilterConfig::Disabled) => None,
            Some(FilterConfig::Config(any)) => Cookie::read_route(any),
            None => cookie.clone(),
        };
        let lines = head.headers.all("cookie");
        let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
        Session::read(cookie?, &head.path, lines)
    }

    /// Returns the configuration that the route, its virtual host or its
    /// cluster has for a filter (A39).
    pub(super) fn filter(&self, name: &str) -> Option<&'t FilterConfig> {
        self.route_match.filter_config(name, Some(&self.forward))
    }
}
