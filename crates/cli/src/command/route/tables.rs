//! The route tables of files: route configurations, those inside listeners, and
//! virtual hosts that come on demand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use prost::Message;
use trunkline_proto::envoy::envoy::config::listener::v3::{Listener, filter::ConfigType};
use trunkline_proto::envoy::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::RouteSpecifier,
};
use trunkline_store::Files;
use trunkline_traffic::Findings;
use trunkline_traffic::route::RouteTable;

use super::client::Client;
use crate::failure::{Failure, Result};
use crate::report::{Report, Severity, count_mistakes};
use crate::settings::OnDangling;

const LISTENER: &str = "envoy.config.listener.v3.Listener";
const ROUTES: &str = "envoy.config.route.v3.RouteConfiguration";
const VIRTUAL_HOST: &str = "envoy.config.route.v3.VirtualHost";
const MANAGER: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Route tables by the names of their configurations.
pub(super) struct Tables(BTreeMap<String, RouteTable>);

impl Tables {
    /// Reads and checks files as `validate` does, and compiles the routes that
    /// the client receives.
    ///
    /// # Errors
    /// A file has a mistake, or a route configuration cannot be compiled.
    pub(super) fn load(paths: &[PathBuf], client: &Client) -> Result<Self> {
        let mut files = Files::new(paths, crate::contents::options(OnDangling::Warn));
        let contents = files.load();
        if !contents.errors.is_empty() {
            let findings = contents.errors.iter().map(|error| (Severity::Error, error));
            let failure = Failure::wrong(count_mistakes(&contents.errors));
            return Err(failure.with_findings(Report::new().list(findings)));
        }

        let mut tables = Self(BTreeMap::new());
        let received_resources = || {
            let resources = contents.resources.iter();
            resources.filter(|(type_url, resource)| client.receives(type_url, resource))
        };
        for (type_url, resource) in received_resources() {
            let name = resource.name.to_string();
            let body = resource.body.as_deref().unwrap_or_default();
            if type_url.as_str().ends_with(ROUTES) {
                let is_variant = client.is_any() && resource.constraints.is_some();
                tables.add(&decode(&name, body)?, is_variant)?;
            } else if type_url.as_str().ends_with(LISTENER) {
                for routes in inline_routes(&decode(&name, body)?) {
                    tables.add(&routes, false)?;
                }
            }
        }

        // A virtual host needs the table that it belongs to.
        for (type_url, resource) in received_resources() {
            if type_url.as_str().ends_with(VIRTUAL_HOST) {
                let name = resource.name.to_string();
                let body = resource.body.as_deref().unwrap_or_default();
                tables.add_host(&name, &decode(&name, body)?)?;
            }
        }
        Ok(tables)
    }

    /// Compiles a route configuration and adds its table. Variants of one name
    /// get a number in their names.
    fn add(&mut self, message: &RouteConfiguration, is_variant: bool) -> Result<()> {
        let table = RouteTable::compile(message)
            .map_err(|findings| compile_failure(&message.name, &findings))?;
        let numbered_name = |number| format!("{} (variant {number})", message.name);
        let name = match is_variant {
            true => (1..)
                .map(numbered_name)
                .find(|name| !self.0.contains_key(name)),
            false => None,
        };
        self.0
            .insert(name.unwrap_or_else(|| message.name.clone()), table);
        Ok(())
    }

    /// Adds a virtual host of VHDS to its route configuration, whose name is
    /// the part before the last slash. Does nothing if there is no such route
    /// configuration.
    fn add_host(&mut self, name: &str, message: &VirtualHost) -> Result<()> {
        let routes = name.rsplit_once('/').map_or("", |(routes, _)| routes);
        if let Some(table) = self.0.get_mut(routes) {
            let result = table.with_virtual_host(name, message);
            *table = result.map_err(|findings| compile_failure(name, &findings))?;
        }
        Ok(())
    }

    /// Returns the table with a name, or the only table if no name is given.
    ///
    /// # Errors
    /// There is no such table, or no name is given and there are several tables
    /// or none.
    pub(super) fn choose(&self, name: Option<&str>) -> Result<&RouteTable> {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let listing = names.join(", ");
        match (name, names.as_slice()) {
            (Some(name), _) => self.0.get(name).ok_or_else(|| {
                Failure::wrong(format!(
                    "no route configuration is {name:?}; there are: {listing}"
                ))
            }),
            (None, [name]) => Ok(&self.0[*name]),
            (None, []) => Err(Failure::wrong("the files have no route configuration")),
            (None, _) => Err(Failure::usage(format!(
                "there are several route configurations; choose one by --routes: {listing}"
            ))),
        }
    }
}

/// Decodes the body of a resource. The failure has the name of the resource.
fn decode<M: Message + Default>(name: &str, body: &[u8]) -> Result<M> {
    M::decode(body).map_err(|error| Failure::wrong(format!("{name}: {error}")))
}

/// Makes the failure of a configuration that cannot be compiled, with all
/// findings.
fn compile_failure(name: &str, findings: &Findings) -> Failure {
    let lines = findings
        .list()
        .iter()
        .map(|finding| format!("{name}: {finding}\n"));
    let count = findings.list().len();
    let message = format!("{count} of what {name:?} has cannot be decided here");
    Failure::wrong(message).with_findings(lines.collect::<String>())
}

/// Returns the route configurations inside the connection managers of a
/// listener.
fn inline_routes(listener: &Listener) -> Vec<RouteConfiguration> {
    let chains = listener
        .filter_chains
        .iter()
        .chain(&listener.default_filter_chain);
    let filters = chains.flat_map(|chain| &chain.filters);
    let managers = filters.filter_map(|filter| match &filter.config_type {
        Some(ConfigType::TypedConfig(any)) if any.type_url.ends_with(MANAGER) => {
            HttpConnectionManager::decode(&*any.value).ok()
        }
        _ => None,
    });
    managers
        .filter_map(|manager| match manager.route_specifier {
            Some(RouteSpecifier::RouteConfig(routes)) => Some(routes),
            _ => None,
        })
        .collect()
}
