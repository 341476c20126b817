//! The manifest in `packaging` is one that the program takes, and that shows
//! the admin API to nobody.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use serde_json::Value as Json;
use support::{CLUSTER, Running, Server, put};
use trunkline_proto::text::{Format, Limits, Node, Value, parse};

/// All objects of the manifest.
fn manifest() -> Vec<Json> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kubernetes.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let documents = parse(Format::Yaml, "kubernetes.yaml", &text, &Limits::default());
    documents.unwrap().into_iter().map(to_json).collect()
}

fn to_json(node: Node) -> Json {
    match node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => value.into(),
        Value::Number(text) | Value::Float(text) => serde_json::from_str(&text).unwrap(),
        Value::String(text) => text.into(),
        Value::List(list) => list.into_iter().map(to_json).collect(),
        Value::Map(entries) => {
            let entries = entries.into_iter();
            let pairs = entries.map(|entry| (entry.key, to_json(entry.node)));
            Json::Object(pairs.collect())
        }
    }
}

fn of_kind<'a>(manifest: &'a [Json], kind: &str) -> &'a Json {
    let mut of_kind = manifest.iter().filter(|object| object["kind"] == kind);
    let found = of_kind.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(of_kind.next().is_none(), "one {kind} only");
    found
}

fn container(manifest: &[Json]) -> &Json {
    &of_kind(manifest, "Deployment")["spec"]["template"]["spec"]["containers"][0]
}

fn args(manifest: &[Json]) -> Vec<&str> {
    let args = container(manifest)["args"].as_array().unwrap();
    args.iter().map(|arg| arg.as_str().unwrap()).collect()
}

/// The port of an address that a flag gives.
fn port(manifest: &[Json], flag: &str) -> u64 {
    let args = args(manifest);
    let value = args.iter().find_map(|arg| arg.strip_prefix(flag)).unwrap();
    value.rsplit_once(':').unwrap().1.parse().unwrap()
}

#[test]
fn no_port_of_the_manifest_leads_to_the_admin_api() {
    let manifest = manifest();
    assert!(
        args(&manifest)
            .iter()
            .any(|arg| arg.starts_with("--admin=127.0.0.1:"))
    );
    let ports = container(&manifest)["ports"].as_array().unwrap();
    let of_name = |name: &Json| {
        let port = ports.iter().find(|port| port["name"] == *name).unwrap();
        port["containerPort"].as_u64().unwrap()
    };
    let admin = port(&manifest, "--admin=");
    assert!(ports.iter().all(|port| port["containerPort"] != admin));

    let (xds, health) = (port(&manifest, "--listen="), port(&manifest, "--health="));
    let service = of_kind(&manifest, "Service")["spec"]["ports"]
        .as_array()
        .unwrap();
    let targets = service.iter().map(|port| of_name(&port["targetPort"]));
    assert_eq!(targets.collect::<Vec<_>>(), [xds]);
    for probe in ["readinessProbe", "livenessProbe"] {
        let probe = &container(&manifest)[probe];
        let how = probe.get("httpGet").or(probe.get("tcpSocket")).unwrap();
        assert_eq!(of_name(&how["port"]), health);
    }

    let deployment = of_kind(&manifest, "Deployment");
    let policy = &of_kind(&manifest, "NetworkPolicy")["spec"];
    assert_eq!(policy["podSelector"], deployment["spec"]["selector"]);
    let ingress = policy["ingress"].as_array().unwrap().iter();
    let allowed = ingress.map(|rule| {
        assert!(rule["from"][0]["namespaceSelector"]["matchLabels"].is_object());
        of_name(&rule["ports"][0]["port"])
    });
    assert_eq!(allowed.collect::<Vec<_>>(), [xds, health]);
}

#[test]
fn the_program_takes_the_arguments_of_the_manifest() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("a.yaml"), CLUSTER);
    let config = format!("--config={}", dir.path().display());
    let manifest = manifest();
    let args = args(&manifest)
        .into_iter()
        .map(|arg| match arg.split_once('=') {
            Some(("--config", _)) => config.clone(),
            Some((flag @ ("--listen" | "--admin" | "--health"), _)) => {
                format!("{flag}=127.0.0.1:0")
            }
            _ => arg.to_owned(),
        });
    // The test gives its own.
    let args = args.filter(|arg| arg != "--log-format=json");
    let args: Vec<String> = args.collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let running = Running::start(&args);
    let line = running.logged("ready");
    let health = line["health"].as_str().unwrap().parse().unwrap();
    assert_eq!(Server::http_at(health, "GET", "/ready", &[], "").0, 200);
}
