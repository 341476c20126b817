//! gRPC's bootstrap: JSON in a file or in a variable (gRFC A27, A30, A47, A65,
//! A71, A97).
//!
//! Fields that are not known are ignored (C1).

mod creds;
mod env;
mod files;
mod providers;
mod servers;

pub(super) use env::read_environment;

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::text::{self, Format, Options, Unknown};

use super::authority::Authority;
use super::error::{ConfigError, Mistake, Place};
use super::listener_name::{ListenerTemplates, needed_start};
use super::problem::Problem;
use super::report::{Report, Scope};
use super::statics::Statics;
use super::tree::Part;
use super::{Bootstrap, node, params};
use crate::client::{ConfigSource, Specifier};

const NODE: &str = "envoy.config.core.v3.Node";

/// The key that a bootstrap of gRPC has, and one of Envoy has not.
pub(super) const SERVERS: &str = "xds_servers";

/// Parses and resolves gRPC's bootstrap. The error lists all mistakes.
pub(super) fn read(format: Format, file: &str, text: &str) -> Result<Bootstrap, ConfigError> {
    let options = Options {
        unknown: Unknown::Warn,
        ..Options::default()
    };
    let document = text::read_message(NODE, format, file, text, Some("node"), &options);
    let document = document.map_err(|errors| ConfigError {
        mistakes: errors.into_iter().map(Mistake::from).collect(),
    })?;

    let report = Report::default();
    report.add_text_errors(document.errors.iter().cloned());
    let root = Part::new(document.root(), report.root());
    let bootstrap = match document.message.transcode_to::<Node>() {
        Ok(node) => resolve(&root, node),
        Err(error) => {
            let problem = Problem::Text(text::Problem::Encoding(error.to_string()));
            root.scope.field("node").mistake(problem)
        }
    };

    // The root borrows the report, which `finish` consumes.
    drop(root);
    let place = |path: &str| {
        let file = file.to_owned();
        let at = document.position(path);
        Some(Place { file, at })
    };
    let (mut bootstrap, warnings) = report.finish(bootstrap, place)?;
    bootstrap.warnings = warnings;
    Ok(bootstrap)
}

/// Resolves a parsed bootstrap. Returns `None` if a part of it has a mistake,
/// after all were resolved, so that every mistake is reported.
fn resolve(root: &Part<'_, '_>, mut node: Node) -> Option<Bootstrap> {
    let servers = servers::read(root, SERVERS);
    if servers == Some(None) && root.list_or_none(SERVERS).is_some() {
        let remedy = "add xds_servers: [{server_uri: ..., channel_creds: [{type: ...}]}]";
        root.scope.missing::<()>(SERVERS, remedy);
    }
    let parameters = params::DynamicParameters {
        all: params::read_all(root, &node),
        by_type: params::read_by_type(&node, &root.scope),
    };
    let authorities = read_authorities(root);
    let client = root.text_of("client_default_listener_resource_name_template");
    let server = root.text_of("server_listener_resource_name_template");
    let certificate_providers = providers::read(root);
    node::add_client_fields(&mut node);

    let templates = ListenerTemplates::default();
    let ads = ConfigSource::from(Specifier::Api(Arc::new(servers??)));
    Some(Bootstrap {
        ads: Some(ads),
        lds: Some(ConfigSource::ads()),
        cds: Some(ConfigSource::ads()),
        authorities: authorities?,
        templates: ListenerTemplates {
            client: client?.map_or(templates.client, str::to_owned),
            server: server?.map(str::to_owned),
        },
        certificate_providers,
        parameters,
        self_is_ads: true,
        ..Bootstrap::without_sources(node, Statics::default())
    })
}

/// Reads the authorities by name (C8). Returns `None` if one has a mistake.
fn read_authorities(root: &Part<'_, '_>) -> Option<BTreeMap<String, Authority>> {
    let authorities = root.entries("authorities").into_iter().map(|(name, part)| {
        let servers = servers::read(&part, SERVERS);
        let template = part.text_of(TEMPLATE);
        let parameters = params::read_authority_params(&part);
        let template = template?;
        check_template(name, template, &part.scope)?;
        let authority = Authority {
            servers: servers?.map(Arc::new),
            listener_template: template.map(str::to_owned),
            parameters,
        };
        Some((name.to_owned(), authority))
    });
    let authorities: Vec<_> = authorities.collect();
    authorities.into_iter().collect()
}

const TEMPLATE: &str = "client_listener_resource_name_template";

/// Reports the listener template of an authority if it leads to another
/// authority (C8).
fn check_template(name: &str, template: Option<&str>, scope: &Scope<'_>) -> Option<()> {
    let start = needed_start(name);
    match template {
        Some(template) if !template.starts_with(&start) => {
            scope.field(TEMPLATE).mistake(Problem::Template { start })
        }
        _ => Some(()),
    }
}
