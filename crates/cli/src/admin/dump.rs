//! The server's resources in the shape of Envoy's own `/config_dump`, for the
//! same tools.
//!
//! Envoy has no dump for runtimes, virtual hosts and single endpoints; those are
//! under `/api/v1/resources` only.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use trunkline::{Resource, Server, TypeUrl, kind};

use super::asking::Asking;
use super::error::Refusal;
use super::{Shared, resources, view};

/// The shape of a type in a dump.
struct Shape {
    type_url: &'static str,
    /// The message of Envoy that lists resources of the type.
    dump: &'static str,
    /// Its field with the list.
    list: &'static str,
    /// Makes the entry of one resource, of its name, version and body.
    entry: fn(name: &str, version: &str, body: Value) -> Value,
}

const SHAPES: &[Shape] = &[
    Shape {
        type_url: kind::CDS,
        dump: "ClustersConfigDump",
        list: "dynamic_active_clusters",
        entry: |_, version, body| json!({"version_info": version, "cluster": body}),
    },
    Shape {
        type_url: kind::EDS,
        dump: "EndpointsConfigDump",
        list: "dynamic_endpoint_configs",
        entry: |_, version, body| json!({"version_info": version, "endpoint_config": body}),
    },
    Shape {
        type_url: kind::LDS,
        dump: "ListenersConfigDump",
        list: "dynamic_listeners",
        entry: |name, version, body| {
            let state = json!({"version_info": version, "listener": body});
            json!({"name": name, "active_state": state})
        },
    },
    Shape {
        type_url: kind::SRDS,
        dump: "ScopedRoutesConfigDump",
        list: "dynamic_scoped_route_configs",
        entry: |name, version, body| {
            let bodies = [body];
            json!({"name": name, "version_info": version, "scoped_route_configs": bodies})
        },
    },
    Shape {
        type_url: kind::RDS,
        dump: "RoutesConfigDump",
        list: "dynamic_route_configs",
        entry: |_, version, body| json!({"version_info": version, "route_config": body}),
    },
    Shape {
        type_url: kind::SDS,
        dump: "SecretsConfigDump",
        list: "dynamic_active_secrets",
        entry: |name, version, body| json!({"name": name, "version_info": version, "secret": body}),
    },
    Shape {
        type_url: kind::ECDS,
        dump: "EcdsConfigDump",
        list: "ecds_filters",
        entry: |_, version, body| json!({"version_info": version, "ecds_filter": body}),
    },
];

/// `GET /config_dump`: shows every resource as Envoy would.
pub(super) async fn dump(State(admin): State<Shared>, asking: Asking) -> Result<Response, Refusal> {
    asking.answer_texts(config_dump(admin.server.clone())).await
}

/// Writes the dump of all types in [`SHAPES`] that have resources, without
/// secrets. A resource is encoded only when the response reaches it.
fn config_dump(server: Server) -> impl Iterator<Item = String> + Send {
    let mut next_separator = "";
    let types = SHAPES.iter().flat_map(move |shape| {
        let type_url = TypeUrl::from(shape.type_url);
        let resources = resources::sorted_resources(&server, &type_url);
        let separator = match resources.is_empty() {
            true => "",
            false => std::mem::replace(&mut next_separator, ","),
        };
        type_dump(shape, type_url, resources, separator)
    });
    let single_text = |text: &str| std::iter::once(text.to_owned());
    single_text("{\"configs\":[")
        .chain(types)
        .chain(single_text("]}"))
}

/// Writes the dump of a type: Envoy's message with an entry for each resource,
/// after the `separator` from the previous type. Writes nothing if there is no
/// resource.
fn type_dump(
    shape: &'static Shape,
    type_url: TypeUrl,
    resources: Vec<Arc<Resource>>,
    separator: &'static str,
) -> impl Iterator<Item = String> + Send {
    let Shape { dump, list, .. } = shape;
    let head = format!(
        "{separator}{{\"@type\":\"type.googleapis.com/envoy.admin.v3.{dump}\",\"{list}\":["
    );

    let has_any = !resources.is_empty();
    let mut entry_separator = "";
    let entries = resources.into_iter().map(move |resource| {
        let body = view::show_body(&type_url, &resource);
        let entry = (shape.entry)(resource.name.as_str(), resource.version.as_str(), body);
        format!("{}{entry}", std::mem::replace(&mut entry_separator, ","))
    });

    let head = has_any.then_some(head).into_iter();
    let tail = has_any.then(|| "]}".to_owned()).into_iter();
    head.chain(entries).chain(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_proto::text::{self, Options, read};

    const SECRET: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: ingress
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
- "@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration
  name: scope
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: filter
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: cert
  tls_certificate: {private_key: {inline_string: swordfish}}
"#;

    #[test]
    fn the_dump_is_one_that_envoy_could_have_made_and_hides_secrets() {
        let server = Server::default();
        let document = read("f.yaml", SECRET, &Options::default());
        assert_eq!(document.errors, []);
        let all = document.resources.iter();
        let changes = all.flat_map(|read| trunkline::wire::accept_text(read).unwrap().changes());
        server.apply(changes.collect()).unwrap();
        let dump: String = config_dump(server).collect();
        let mut dump: Value = serde_json::from_str(&dump).unwrap();
        assert_eq!(dump["configs"].as_array().unwrap().len(), SHAPES.len());
        assert!(!dump.to_string().contains("swordfish"));
        assert!(dump.to_string().contains("[redacted]"));
        // What it shows can be read again: all but the secret.
        let again = read("dump.json", &dump.to_string(), &Options::default());
        assert_eq!(again.errors, []);
        let mut shown: Vec<_> = again.resources.iter().map(|r| &r.body).collect();
        let is_shown = |r: &&text::Resource| r.type_url != kind::SDS;
        let mut written: Vec<_> = document.resources.iter().filter(is_shown).collect();
        written.sort_by_key(|r| &r.body);
        shown.sort();
        assert_eq!(shown, written.iter().map(|r| &r.body).collect::<Vec<_>>());
        assert_eq!(again.warnings.len(), 1);
        // Every key is one that Envoy's own message has.
        dump["@type"] = "type.googleapis.com/envoy.admin.v3.ConfigDump".into();
        let any = json!({
            "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            "typed_config": dump,
        });
        let read = read("dump.json", &any.to_string(), &Options::default());
        assert_eq!(read.errors, []);
    }
}
