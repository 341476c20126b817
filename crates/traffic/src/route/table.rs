//! The compiled route configuration.

use std::borrow::Cow;
use std::sync::Arc;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::route::v3::{self as message, RouteConfiguration};

use super::action::{Action, Forwarding};
use super::criteria::{Mismatch, Trial, compile_each};
use super::domains::Domains;
use super::filters::{FilterConfig, FilterConfigs};
use super::forward::{Context, Forward};
use super::mirror::MirrorPolicy;
use super::mutations::{BothMutations, fields};
use super::redirect::{Redirect, split_port};
use super::virtual_host::{Inherited, Route, VirtualHost};
use crate::findings::Findings;
use crate::persistent::PersistentMap;
use crate::request::{Request, split_query};

/// The most bytes of a direct response, unless the configuration says another
/// number.
const MAX_BODY: usize = 4096;

/// A route configuration, ready for requests. A copy is cheap and shares
/// everything; threads share a table without locks.
#[derive(Debug, Clone)]
pub struct RouteTable {
    settings: Arc<Settings>,
    domains: Domains,
    /// The virtual hosts that were listed, and those that came on demand, which
    /// are found by name.
    listed: Arc<[Arc<VirtualHost>]>,
    on_demand: PersistentMap<Arc<VirtualHost>>,
}

/// The fields of a route configuration beside its virtual hosts.
#[derive(Debug)]
struct Settings {
    name: Box<str>,
    ignores_port: bool,
    ignores_path_parameters: bool,
    /// The header that stands for the host; empty if it is the host.
    vhost_header: Box<str>,
    max_body: usize,
    mirrors: Box<[MirrorPolicy]>,
    filters: FilterConfigs,
    mutations: BothMutations,
    specific_mutations_win: bool,
    self_redirect: Redirect,
}

/// The route that a request takes.
#[derive(Debug, Clone, Copy)]
pub struct RouteMatch<'t> {
    settings: &'t Settings,
    /// The virtual host.
    pub virtual_host: &'t VirtualHost,
    /// The route.
    pub route: &'t Route,
    /// Its place in the list of routes.
    pub index: usize,
}

/// Why a request takes no route.
#[derive(Debug, Clone, Copy)]
pub enum NoRoute<'t> {
    /// No virtual host has the host. It may come on demand.
    Host,
    /// The virtual host has no route that matches.
    Route(&'t VirtualHost),
    /// The virtual host wants TLS: the request is redirected (35).
    NeedsTls(&'t VirtualHost),
}

impl RouteTable {
    /// Compiles a route configuration.
    ///
    /// # Errors
    /// A part of the configuration cannot be compiled. Each is a finding.
    pub fn compile(message: &RouteConfiguration) -> Result<Self, Findings> {
        let place = Place::ROOT;
        let mut findings = Findings::default();
        let settings = Arc::new(Settings::compile(message, &place, &mut findings));
        let mut table = Self {
            settings: Arc::clone(&settings),
            domains: Domains::default(),
            listed: Arc::default(),
            on_demand: PersistentMap::default(),
        };

        let mut hosts = Vec::with_capacity(message.virtual_hosts.len());
        for (index, host_message) in message.virtual_hosts.iter().enumerate() {
            let place = place.item("virtual_hosts", index);
            let inherited = settings.inherited();
            let host = Arc::new(VirtualHost::compile(
                host_message,
                &inherited,
                &place,
                &mut findings,
            ));
            table.add_domains(&host, &place, &mut findings);
            hosts.push(host);
        }
        table.listed = hosts.into();
        findings.finish(table)
    }

    /// Returns the name of the route configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the virtual hosts of the configuration itself, in order.
    #[must_use]
    pub fn virtual_hosts(&self) -> &[Arc<VirtualHost>] {
        &self.listed
    }

    /// Returns the number of virtual hosts that came on demand.
    #[must_use]
    pub fn on_demand(&self) -> usize {
        self.on_demand.len()
    }

    /// Returns a table with a virtual host that came on demand, which replaces
    /// the one of this resource name (53). The cost does not depend on the
    /// number of virtual hosts.
    ///
    /// # Errors
    /// The virtual host cannot be compiled, or has a domain of another one.
    pub fn with_virtual_host(
        &self,
        name: &str,
        message: &message::VirtualHost,
    ) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let inherited = self.settings.inherited();
        let host = VirtualHost::compile(message, &inherited, &Place::ROOT, &mut findings);
        let host = Arc::new(host);

        let mut table = self.without_virtual_host(name);
        table.add_domains(&host, &Place::ROOT, &mut findings);
        table.on_demand.insert(name, host);
        findings.finish(table)
    }

    /// Returns a table without the virtual host that came on demand by this
    /// resource name; the same table if there is none.
    #[must_use]
    pub fn without_virtual_host(&self, name: &str) -> Self {
        let mut table = self.clone();
        if let Some(host) = table.on_demand.remove(name) {
            host.domains()
                .for_each(|domain| table.domains.remove(domain));
        }
        table
    }

    /// Adds the domains of a virtual host. A domain that another virtual host
    /// has, or this one twice, is a finding.
    fn add_domains(&mut self, host: &Arc<VirtualHost>, place: &Place<'_>, findings: &mut Findings) {
        for (index, domain) in host.domains.iter().enumerate() {
            let holder_name = self
                .domains
                .holder(domain)
                .map(|holder| holder.name.clone());
            if !self.domains.add(domain, host) {
                let problem = Problem::Duplicate {
                    what: format!("the domain {domain:?}"),
                    first: format!("the virtual host {:?}", holder_name.unwrap_or_default()),
                };
                findings.add(&place.item("domains", index), problem);
            }
        }
    }

    /// Finds the virtual host of a request, by its authority or by the header
    /// that the configuration names. Returns `None` if no domain matches, or the
    /// request does not have that header.
    #[must_use]
    pub fn find_virtual_host(&self, request: &Request<'_>) -> Option<&VirtualHost> {
        let host = match &*self.settings.vhost_header {
            "" => request.authority,
            header => request.headers.text(header)?,
        };
        let name = match self.settings.ignores_port {
            true => split_port(host).map_or(host, |(host, _)| host),
            false => host,
        };
        self.domains.find_host(name).map(|host| &**host)
    }

    /// Finds the route of a request: the first one of its virtual host that
    /// matches.
    ///
    /// # Errors
    /// No virtual host or no route matches, or the virtual host requires TLS.
    pub fn find(
        &self,
        request: &Request<'_>,
        context: &Context<'_>,
    ) -> Result<RouteMatch<'_>, NoRoute<'_>> {
        let virtual_host = self.find_virtual_host(request).ok_or(NoRoute::Host)?;
        if virtual_host.redirects_to_tls(request) {
            return Err(NoRoute::NeedsTls(virtual_host));
        }

        let (path, query) = self.matched_path(request);
        let trial = make_trial(request, &path, query, context);
        let first_match = virtual_host.find(&trial);
        let (index, route) = first_match.ok_or(NoRoute::Route(virtual_host))?;
        Ok(RouteMatch {
            settings: &self.settings,
            virtual_host,
            route,
            index,
        })
    }

    /// Tests every route of a virtual host. Returns for each one the criterion
    /// that the request does not meet.
    #[must_use]
    pub fn explain<'t>(
        &self,
        virtual_host: &'t VirtualHost,
        request: &Request<'_>,
        context: &Context<'_>,
    ) -> Vec<Result<(), Mismatch<'t>>> {
        let (path, query) = self.matched_path(request);
        let trial = make_trial(request, &path, query, context);
        let routes = virtual_host.routes().iter();
        routes.map(|route| route.criteria.test(&trial)).collect()
    }

    /// Returns the `location` for a request that needs TLS (35). Unlike a
    /// redirect of a route to https, it keeps any port.
    #[must_use]
    pub fn tls_location(&self, request: &Request<'_>) -> String {
        format!("https://{}{}", request.authority, request.path)
    }

    /// Returns the path that routes are matched with, without parameters if the
    /// configuration says so, and the query.
    fn matched_path<'r>(&self, request: &Request<'r>) -> (Cow<'r, str>, Option<&'r str>) {
        let (path, query) = split_query(request.path);
        let path = match self.settings.ignores_path_parameters && path.contains(';') {
            true => Cow::Owned(without_parameters(path)),
            false => Cow::Borrowed(path),
        };
        (path, query)
    }
}

/// Collects the parts of a request that the criteria of routes test.
fn make_trial<'r>(
    request: &Request<'r>,
    path: &'r str,
    query: Option<&'r str>,
    context: &Context<'r>,
) -> Trial<'r> {
    Trial {
        request: *request,
        path,
        query,
        random: context.random,
        runtime: context.runtime,
    }
}

/// Removes `;a=b` from every segment.
fn without_parameters(path: &str) -> String {
    let segments = path.split('/');
    let plain_segments =
        segments.map(|segment| segment.split_once(';').map_or(segment, |(name, _)| name));
    plain_segments.collect::<Vec<_>>().join("/")
}

impl Settings {
    /// Compiles the fields of a route configuration except its virtual hosts.
    fn compile(message: &RouteConfiguration, place: &Place<'_>, findings: &mut Findings) -> Self {
        let has_internal_headers = !message.internal_only_headers.is_empty();
        findings.unsupported(&place.field("internal_only_headers"), has_internal_headers);
        let own_policies = &message.request_mirror_policies;
        let mirrors = compile_each(
            "request_mirror_policies",
            own_policies,
            place,
            |message, place| MirrorPolicy::compile(message, place, findings),
        );

        let max_body = message.max_direct_response_body_size_bytes;
        Self {
            name: message.name.as_str().into(),
            ignores_port: message.ignore_port_in_host_matching,
            ignores_path_parameters: message.ignore_path_parameters_in_path_matching,
            vhost_header: message.vhost_header.to_ascii_lowercase().into(),
            max_body: max_body.map_or(MAX_BODY, |max| max.value as usize),
            mirrors,
            filters: FilterConfigs::compile(&message.typed_per_filter_config, place, findings),
            mutations: BothMutations::compile(&fields!(message), place, findings),
            specific_mutations_win: message.most_specific_header_mutations_wins,
            self_redirect: Redirect::to_itself(),
        }
    }

    /// Returns the values that the virtual hosts inherit.
    fn inherited(&self) -> Inherited<'_> {
        Inherited {
            max_body: self.max_body,
            mirrors: &self.mirrors,
            retry: None,
            hedges: false,
        }
    }
}

impl<'t> RouteMatch<'t> {
    /// Returns the mutations of the whole configuration, and whether more
    /// specific ones win over them.
    pub(super) fn table_mutations(&self) -> (&'t BothMutations, bool) {
        (
            &self.settings.mutations,
            self.settings.specific_mutations_win,
        )
    }

    /// Returns the route's rules of forwarding; `None` if the route does not
    /// forward.
    #[must_use]
    pub fn forwarding(&self) -> Option<&'t Forwarding> {
        match &self.route.action {
            Action::Forward(forwarding) => Some(forwarding),
            _ => None,
        }
    }

    /// Decides how the request is forwarded; `None` if the route does not forward.
    #[must_use]
    pub fn forward(&self, request: &Request<'t>, context: &Context<'_>) -> Option<Forward<'t>> {
        let forwarding = self.forwarding()?;
        Some(forwarding.forward(&self.route.criteria.path, request, context))
    }

    /// Returns the `location` for a request: that of a redirect, or for a
    /// direct response with the status 201 or 3xx, the URL of the request.
    /// Returns `None` for other routes.
    #[must_use]
    pub fn location(&self, request: &Request<'_>) -> Option<String> {
        match &self.route.action {
            Action::Redirect(redirect) => {
                Some(redirect.location(request, Some(&self.route.criteria.path)))
            }
            Action::DirectResponse(direct) if matches!(direct.status, 201 | 300..=399) => {
                Some(self.settings.self_redirect.location(request, None))
            }
            _ => None,
        }
    }

    /// Returns the configuration of a filter for this request, from the most
    /// specific place that has one: the weighted cluster, the route, the
    /// virtual host or the route configuration.
    #[must_use]
    pub fn filter_config(
        &self,
        filter: &str,
        forward: Option<&Forward<'t>>,
    ) -> Option<&'t FilterConfig> {
        forward
            .and_then(|forward| forward.cluster.entry)
            .and_then(|entry| entry.filters.get(filter))
            .or_else(|| self.route.filters.get(filter))
            .or_else(|| self.virtual_host.filters.get(filter))
            .or_else(|| self.settings.filters.get(filter))
    }
}
