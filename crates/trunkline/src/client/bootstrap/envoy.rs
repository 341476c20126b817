//! Envoy's bootstrap, in YAML or JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_core::name::Glob;
use trunkline_proto::envoy::envoy::config::bootstrap::v3 as message;
use trunkline_proto::envoy::envoy::config::bootstrap::v3::bootstrap::DynamicResources;
use trunkline_proto::envoy::envoy::config::bootstrap::v3::runtime_layer::LayerSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::{ConfigSource as SourceMessage, Node};
use trunkline_proto::text::{self, Format, Options, Written};

use super::authority::{Authority, AuthoritySource};
use super::error::{ConfigError, Mistake, Place};
use super::problem::Problem;
use super::report::{Report, Scope};
use super::resolve::{Referrer, Resolver};
use super::statics::{StaticResource, Statics};
use super::tree::{self, Part};
use super::{Bootstrap, RuntimeLayer, node, params};
use crate::client::{ConfigSource, Specifier};

const BOOTSTRAP: &str = "envoy.config.bootstrap.v3.Bootstrap";

/// The field that sets up the aggregated stream.
const ADS: &str = "dynamic_resources.ads_config";

/// The key of the settings of this library in the metadata of a node.
const SETTINGS: &str = "trunkline";

/// Parses and resolves Envoy's bootstrap. The error lists all mistakes, except
/// those that follow from others.
pub(super) fn read(format: Format, file: &str, text: &str) -> Result<Bootstrap, ConfigError> {
    let options = Options::default();
    let document = text::read_message(BOOTSTRAP, format, file, text, None, &options);
    let document = document.map_err(|errors| ConfigError {
        mistakes: errors.into_iter().map(Mistake::from).collect(),
    })?;

    let report = Report::default();
    report.add_text_errors(document.errors.iter().cloned());
    report.add_text_errors(document.validate());
    report.add_text_warnings(document.warnings.iter().cloned());
    let message = document.message.transcode_to::<message::Bootstrap>();
    let bootstrap = match message {
        Ok(message) => {
            let root = report.root();
            let resources = match message.static_resources {
                Some(_) => read_static_resources(format, file, text, &root),
                None => Vec::new(),
            };
            resolve(message, resources, &root)
        }
        Err(error) => {
            let problem = Problem::Text(text::Problem::Encoding(error.to_string()));
            report.root().mistake(problem)
        }
    };

    let place = |path: &str| Some(place_of(&document, file, path));
    let (mut bootstrap, warnings) = report.finish(bootstrap, place)?;
    bootstrap.warnings = warnings;
    Ok(bootstrap)
}

/// Returns the place of a field in the text, or of the nearest part around it if
/// the field is not written there.
fn place_of(document: &Written, file: &str, path: &str) -> Place {
    Place {
        file: file.to_owned(),
        at: document.position(path),
    }
}

/// Parses the static resources of a bootstrap in the way that files of resources
/// are parsed, so that a listener without a name gets the same one here as
/// there. A resource with a mistake is left out, and its mistake with it: [`read`]
/// has reported it with those of the message. Only two resources with one name
/// are reported here, to `scope`.
fn read_static_resources(
    format: Format,
    file: &str,
    text: &str,
    scope: &Scope<'_>,
) -> Vec<StaticResource> {
    let document = text::read_as(format, file, text, &Options::default());
    StaticResource::convert_all(document.resources, scope)
}

/// Resolves a parsed bootstrap: its sources, authorities, locators and runtime
/// layers. Returns `None` if one of them has a mistake, after all were
/// resolved, so that every mistake is reported.
fn resolve(
    raw: message::Bootstrap,
    static_resources: Vec<StaticResource>,
    scope: &Scope<'_>,
) -> Option<Bootstrap> {
    let statics = raw.static_resources.unwrap_or_default();
    let statics = Statics {
        clusters: statics.clusters,
        secrets: statics.secrets,
    };
    let dynamic = raw.dynamic_resources.unwrap_or_default();
    let resolver = Resolver {
        statics: &statics,
        referrer: Referrer::Bootstrap,
        missing_ads: dynamic.ads_config.is_none().then_some(ADS),
    };

    let sources = resolve_sources(resolver, &dynamic, scope);
    let default_source = resolve_optional_source(
        resolver,
        raw.default_config_source.as_ref(),
        &scope.field("default_config_source"),
    );
    let lds_locator = read_locator(&dynamic.lds_resources_locator, LISTENERS, scope);
    let cds_locator = read_locator(&dynamic.cds_resources_locator, CLUSTERS, scope);
    let config_sources = read_authority_sources(resolver, &raw.config_sources, scope);
    let layers = raw.layered_runtime.unwrap_or_default().layers;
    let runtime = read_runtime_layers(resolver, &layers, scope);

    let mut node = raw.node.unwrap_or_default();
    let has_context_params = !raw.node_context_params.is_empty();
    warn_of_node(&node, has_context_params, &dynamic, scope);
    let (parameters, authorities) = read_settings(&node, scope);
    node::add_client_fields(&mut node);

    let sources = sources?;
    Some(Bootstrap {
        ads: sources.ads,
        lds: sources.lds,
        cds: sources.cds,
        lds_locator: lds_locator?,
        cds_locator: cds_locator?,
        static_resources,
        authorities,
        config_sources: config_sources?,
        default_config_source: default_source?,
        runtime: runtime?,
        parameters,
        ..Bootstrap::without_sources(node, statics)
    })
}

/// The sources of dynamic resources; `None` where the bootstrap sets none.
struct Sources {
    ads: Option<ConfigSource>,
    lds: Option<ConfigSource>,
    cds: Option<ConfigSource>,
}

/// Resolves the sources of dynamic resources. Returns `None` if one of them has a
/// mistake, after all were resolved.
fn resolve_sources(
    resolver: Resolver<'_>,
    dynamic: &DynamicResources,
    scope: &Scope<'_>,
) -> Option<Sources> {
    let ads = match &dynamic.ads_config {
        None => Some(None),
        Some(api) => {
            let api = resolver.resolve_api(api, true, &scope.field(ADS));
            api.map(|api| Some(ConfigSource::from(Specifier::Api(Arc::new(api)))))
        }
    };
    let resolve = |source: Option<&SourceMessage>, field: &str| {
        resolve_optional_source(resolver, source, &scope.field(field))
    };
    let lds = resolve(dynamic.lds_config.as_ref(), "dynamic_resources.lds_config");
    let cds = resolve(dynamic.cds_config.as_ref(), "dynamic_resources.cds_config");
    Some(Sources {
        ads: ads?,
        lds: lds?,
        cds: cds?,
    })
}

/// Resolves a source that may not be set. Returns `Some(None)` if it is not, and
/// `None` after a mistake.
fn resolve_optional_source(
    resolver: Resolver<'_>,
    source: Option<&SourceMessage>,
    scope: &Scope<'_>,
) -> Option<Option<ConfigSource>> {
    match source {
        None => Some(None),
        Some(source) => resolver.resolve_source(source, scope).map(Some),
    }
}

/// Warns of context parameters, which are not sent, and of a node without an id
/// that has to ask a control plane.
fn warn_of_node(
    node: &Node,
    has_context_params: bool,
    dynamic: &DynamicResources,
    scope: &Scope<'_>,
) {
    if has_context_params {
        let scope = scope.field("node_context_params");
        let remedy = "write the parameters in the names, or as dynamic parameters";
        scope.warn_ignored("node_context_params", remedy);
    }
    let uses_dynamic = dynamic.ads_config.is_some()
        || dynamic.lds_config.is_some()
        || dynamic.cds_config.is_some();
    if node.id.is_empty() && uses_dynamic {
        scope.field("node").warn_ignored(
            "a node without an id",
            "most control planes need one; add node: {id: ...}",
        );
    }
}

/// A field with a locator, and the type of its resources.
type LocatorField = (&'static str, &'static str);

const LISTENERS: LocatorField = (
    "dynamic_resources.lds_resources_locator",
    "envoy.config.listener.v3.Listener",
);
const CLUSTERS: LocatorField = (
    "dynamic_resources.cds_resources_locator",
    "envoy.config.cluster.v3.Cluster",
);

/// Parses the locator of a collection. Returns `Some(None)` for an empty text,
/// and `None` after a mistake.
fn read_locator(
    text: &str,
    (field, kind): LocatorField,
    scope: &Scope<'_>,
) -> Option<Option<Glob>> {
    if text.is_empty() {
        return Some(None);
    }
    match Glob::parse(text) {
        Ok(glob) => Some(Some(glob)),
        Err(_) => {
            let text = text.to_owned();
            scope.field(field).mistake(Problem::Locator { text, kind })
        }
    }
}

/// Resolves the RTDS layers of the runtime, which control planes serve. Layers
/// of other kinds are skipped: nothing here reads them.
fn read_runtime_layers(
    resolver: Resolver<'_>,
    layers: &[message::RuntimeLayer],
    scope: &Scope<'_>,
) -> Option<Vec<RuntimeLayer>> {
    let rtds_layers = layers.iter().enumerate().filter_map(|(index, layer)| {
        let Some(LayerSpecifier::RtdsLayer(rtds)) = &layer.layer_specifier else {
            return None;
        };
        let scope = scope.index("layered_runtime.layers", index);
        let Some(source) = &rtds.rtds_config else {
            let scope = scope.field("rtds_layer");
            return Some(scope.missing("rtds_config", "set a config source, such as {ads: {}}"));
        };
        let name = match rtds.name.as_str() {
            "" => &layer.name,
            name => name,
        };
        let source = resolver.resolve_source(source, &scope.field("rtds_layer.rtds_config"));
        Some(source.map(|source| RuntimeLayer {
            name: name.to_owned(),
            source,
        }))
    });
    rtds_layers.collect()
}

/// Resolves the config sources of authorities, in their order (E13). Returns
/// `None` if one of them has a mistake.
fn read_authority_sources(
    resolver: Resolver<'_>,
    sources: &[SourceMessage],
    scope: &Scope<'_>,
) -> Option<Vec<AuthoritySource>> {
    let authority_sources = sources.iter().enumerate().map(|(index, source)| {
        let scope = scope.index("config_sources", index);
        if source.authorities.is_empty() {
            let remedy = "add authorities: [{name: ...}], or make it the default_config_source";
            scope.missing::<()>("authorities", remedy);
        }
        let names = source.authorities.iter().map(|authority| &authority.name);
        Some(AuthoritySource {
            authorities: names.cloned().collect(),
            source: resolver.resolve_source(source, &scope)?,
        })
    });
    // All are resolved before the first mistake ends the reading.
    let authority_sources: Vec<_> = authority_sources.collect();
    authority_sources.into_iter().collect()
}

/// Returns the dynamic parameters of a node, and the authorities with
/// parameters of their own that its metadata lists.
fn read_settings(
    node: &Node,
    scope: &Scope<'_>,
) -> (params::DynamicParameters, BTreeMap<String, Authority>) {
    let mut parameters = params::DynamicParameters {
        by_type: params::read_by_type(node, scope),
        ..params::DynamicParameters::default()
    };

    let metadata = node.metadata.as_ref().map(tree::from_struct);
    let Some(metadata) = metadata.as_ref() else {
        return (parameters, BTreeMap::new());
    };
    let metadata = Part::new(metadata, scope.field("node.metadata"));
    let Some(settings) = metadata.get(SETTINGS) else {
        return (parameters, BTreeMap::new());
    };

    parameters.all = params::read_all(&settings, node);
    let authorities = settings.entries("authorities").into_iter();
    let authorities = authorities.map(|(name, authority)| {
        let authority = Authority {
            parameters: params::read_authority_params(&authority),
            ..Authority::default()
        };
        (name.to_owned(), authority)
    });
    (parameters, authorities.collect())
}
