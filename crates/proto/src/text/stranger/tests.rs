//! Documents that are something else are told what they are.

use crate::text::{Options, read};

/// Compares the one mistake of a text.
#[track_caller]
fn check(text: &str, expected: &str) {
    let read = read("f.yaml", text, &Options::default());
    let errors: Vec<_> = read.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, [format!("f.yaml:{expected}")], "{text}");
    assert!(read.resources.is_empty());
}

#[test]
fn a_key_is_misspelt() {
    for name in ["resource", "resouces", "Resources", "ressources"] {
        let expected = format!("1:1: unknown key {name:?}, did you mean \"resources\"?");
        check(&format!("{name}:\n- name: a\n"), &expected);
    }
    check(
        "node: {id: n}\nstatic_resource: {}\n",
        "2:1: unknown key \"static_resource\", did you mean \"static_resources\"?",
    );
}

#[test]
fn lists_have_a_place() {
    for (key, message) in [
        ("listeners", "envoy.config.listener.v3.Listener"),
        ("clusters", "envoy.config.cluster.v3.Cluster"),
        (
            "secrets",
            "envoy.extensions.transport_sockets.tls.v3.Secret",
        ),
    ] {
        let expected = format!(
            "1:1: {key:?} cannot be at the top; put `{key}:` below `static_resources:`, or \
             its items below `resources:`, each with \"@type\": type.googleapis.com/{message}"
        );
        check(&format!("{key}:\n- name: a\n"), &expected);
    }
    for (key, message) in [
        ("routes", "envoy.config.route.v3.RouteConfiguration"),
        (
            "endpoints",
            "envoy.config.endpoint.v3.ClusterLoadAssignment",
        ),
        ("virtual_hosts", "envoy.config.route.v3.VirtualHost"),
        ("cluster", "envoy.config.cluster.v3.Cluster"),
    ] {
        let expected = format!(
            "1:1: {key:?} cannot be at the top; put its items below `resources:`, each with \
             \"@type\": type.googleapis.com/{message}"
        );
        check(&format!("{key}:\n- name: a\n"), &expected);
    }
    check(
        "- name: a\n",
        "1:1: a list without a key; put it below `resources:`",
    );
}

#[test]
fn manifests_of_kubernetes_are_known() {
    check(
        "apiVersion: v1\nkind: ConfigMap\ndata: {a.yaml: \"\"}\n",
        "1:1: a Kubernetes manifest (ConfigMap), which is not read here; mount it and name \
         the directory, or put the texts of its `data:` into files",
    );
    check(
        "# Source: chart\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n",
        "2:1: a Kubernetes manifest (HTTPRoute), which is not read here; write the \
         listeners, routes and clusters of Envoy that it stands for",
    );
}

#[test]
fn a_bootstrap_may_have_nothing_to_serve() {
    check(
        "node: {id: n}\nadmin: {}\ndynamic_resources: {}\n",
        "1:1: an Envoy bootstrap without `static_resources:`, so there is nothing to serve; \
         give it to Envoy, and the resources here",
    );
    check(
        "bananas: 1\n",
        "1:1: expected a mapping with `resources:`, with `\"@type\":`, or with a bootstrap's \
         `static_resources:`, found a mapping",
    );
}

#[test]
fn a_type_is_told_by_fields() {
    for (fields, short, message) in [
        (
            "name: a\ntype: EDS\nlb_polcy: MAGLEV",
            "Cluster",
            "envoy.config.cluster.v3.Cluster",
        ),
        (
            "name: a\nvirtual_hosts: []",
            "RouteConfiguration",
            "envoy.config.route.v3.RouteConfiguration",
        ),
        (
            "name: a\ndomains: [b]\nroutes: []",
            "VirtualHost",
            "envoy.config.route.v3.VirtualHost",
        ),
        (
            "clusterName: a\nendpoints: []",
            "ClusterLoadAssignment",
            "envoy.config.endpoint.v3.ClusterLoadAssignment",
        ),
        (
            "name: a\naddress: {}",
            "Listener",
            "envoy.config.listener.v3.Listener",
        ),
        (
            "name: a\nresource: {}",
            "Resource",
            "envoy.service.discovery.v3.Resource",
        ),
    ] {
        let expected = format!(
            "the key \"@type\" is missing; by its fields it is a {short}: add \"@type\": \
             type.googleapis.com/{message}"
        );
        if short != "Resource" {
            check(&format!("{fields}\n"), &format!("1:1: {expected}"));
        }
        let item = format!("resources:\n- {}\n", fields.replace('\n', "\n  "));
        check(&item, &format!("2:3: resources[0]: {expected}"));
    }
    check(
        "resources:\n- name: a\n",
        "2:3: resources[0]: the key \"@type\" is missing; add \"@type\": \
         type.googleapis.com/<message>",
    );
    check(
        "\"@type\": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig\n\
         name: a\n\
         typed_config: {stat_prefix: s, http_filters: [], rds: {}}\n",
        "3:15: typed_config: the key \"@type\" is missing; by its fields it is a \
         HttpConnectionManager: add \"@type\": type.googleapis.com/envoy.extensions.filters.\
         network.http_connection_manager.v3.HttpConnectionManager",
    );
}

#[test]
fn nothing_is_said_to_be_nothing() {
    for (text, what) in [
        ("", "it is empty"),
        ("\n---\n", "it is empty"),
        ("# a\n# b\n", "all of it is comments"),
    ] {
        let read = read("f.yaml", text, &Options::default());
        assert_eq!(read.errors, []);
        let warnings: Vec<_> = read.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [format!("f.yaml:1:1: holds no resources: {what}")]
        );
    }
    let json = read("f.json", " \n", &Options::default());
    assert_eq!(
        json.errors[0].to_string(),
        "f.json:1:1: holds no resources: it is empty"
    );
    assert_eq!(
        read("f.yaml", "allow_removal: true", &Options::default()).warnings,
        []
    );
}
