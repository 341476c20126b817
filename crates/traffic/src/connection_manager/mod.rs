//! What the HTTP connection manager does with a request before it is routed:
//! host, path, and what is believed of its headers.

mod host;
mod hygiene;
mod identity;
mod path;
#[cfg(test)]
mod tests;
mod trust;

use std::net::IpAddr;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager as Message, http_connection_manager::RouteSpecifier,
};

pub use host::HostPolicy;
pub use path::{NormalisedPath, PathPolicy};
pub use trust::Sender;

use crate::findings::Findings;
use crate::headers::Headers;
use crate::route::{RouteTable, ScopedRoutes};

/// The rules of a connection manager.
#[derive(Debug)]
pub struct ConnectionManager {
    host: HostPolicy,
    path: PathPolicy,
    trust: trust::Trust,
    identity: identity::Identity,
    routes: Routes,
    /// Upgrades by their type in lower case, and whether they are allowed.
    upgrades: Box<[(Box<str>, bool)]>,
}

/// Where a connection manager gets its routes.
#[derive(Debug)]
pub enum Routes {
    /// It has them itself.
    Table(RouteTable),
    /// A header says which.
    Scoped(ScopedRoutes),
    /// A route configuration of this name comes by RDS.
    Named(String),
}

/// The connection that a request came on.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// The address of the other end.
    pub peer: IpAddr,
    /// The address of this proxy that other nodes know.
    pub node_address: IpAddr,
    /// The port of the listener.
    pub listener_port: u16,
    /// Whether TLS is used.
    pub is_tls: bool,
}

impl Connection {
    /// Returns the scheme of a request, by the connection alone.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        match self.is_tls {
            true => "https",
            false => "http",
        }
    }
}

impl ConnectionManager {
    /// Compiles the rules of a connection manager.
    ///
    /// # Errors
    /// A field cannot be compiled. Each is a finding.
    pub fn compile(message: &Message) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let place = Place::ROOT;
        let trust = trust::Trust::compile(message, &place, &mut findings);
        let identity = identity::Identity::compile(message, &place, &mut findings);
        let routes = match &message.route_specifier {
            Some(RouteSpecifier::RouteConfig(routes)) => RouteTable::compile(routes)
                .map(Routes::Table)
                .map_err(|route_findings| {
                    findings.extend(&place.field("route_config"), route_findings)
                })
                .ok(),
            Some(RouteSpecifier::ScopedRoutes(scoped)) => ScopedRoutes::compile(scoped)
                .map(Routes::Scoped)
                .map_err(|route_findings| {
                    findings.extend(&place.field("scoped_routes"), route_findings)
                })
                .ok(),
            Some(RouteSpecifier::Rds(rds)) => Some(Routes::Named(rds.route_config_name.clone())),
            None => {
                findings.add(&place.field("route_config"), Problem::Missing);
                None
            }
        };

        let upgrades = message.upgrade_configs.iter().map(|upgrade| {
            let is_enabled = upgrade.enabled.is_none_or(|enabled| enabled.value);
            (upgrade.upgrade_type.to_ascii_lowercase().into(), is_enabled)
        });

        let manager = routes.map(|routes| Self {
            host: HostPolicy::compile(message),
            path: PathPolicy::compile(message),
            trust,
            identity,
            routes,
            upgrades: upgrades.collect(),
        });

        match manager {
            Some(manager) => findings.finish(manager),
            None => Err(findings),
        }
    }

    /// Returns how hosts are changed.
    #[must_use]
    pub fn host(&self) -> &HostPolicy {
        &self.host
    }

    /// Returns how paths are normalised.
    #[must_use]
    pub fn path(&self) -> &PathPolicy {
        &self.path
    }

    /// Returns where routes come from.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Judges the sender of a request, and changes the headers accordingly.
    /// Removes the headers of the connection, and those that only clients
    /// inside the mesh may send. Afterwards `x-forwarded-proto` is the scheme
    /// of the request. `fresh_id` is for a request without an id.
    pub fn prepare_request(
        &self,
        headers: &mut Headers,
        connection: &Connection,
        fresh_id: &str,
    ) -> Sender {
        hygiene::clean_request(headers, is_upgrade(headers));
        let sender = self.trust.apply(headers, connection);
        self.identity.mark_request(headers, sender, fresh_id);
        sender
    }

    /// Takes off the headers of a response that are of its connection only. It
    /// comes before mutations.
    pub fn clean_response(&self, headers: &mut Headers) {
        hygiene::clean_response(headers);
    }

    /// Adds what this proxy says of itself to a response. It comes after
    /// mutations.
    pub fn finish_response(&self, headers: &mut Headers, request: &Headers, date: &str) {
        self.identity.mark_response(headers, request, date);
    }

    /// Returns whether an upgrade is allowed where the route does not say.
    #[must_use]
    pub fn allows_upgrade(&self, upgrade: &str) -> bool {
        let mut upgrades = self.upgrades.iter();
        let entry = upgrades.find(|(name, _)| name.eq_ignore_ascii_case(upgrade));
        entry.is_some_and(|(_, is_allowed)| *is_allowed)
    }
}

/// Returns whether a request wants another protocol on its connection. An
/// upgrade to HTTP/2 does not count.
fn is_upgrade(headers: &Headers) -> bool {
    let connection = headers.text("connection").unwrap_or_default();
    let mut options = connection.split(',').map(str::trim);
    let upgrade = headers.text("upgrade").unwrap_or_default();
    options.any(|word| word.eq_ignore_ascii_case("upgrade"))
        && !upgrade.is_empty()
        && !upgrade.eq_ignore_ascii_case("h2c")
}
