//! Contents that are taken out of a server, and brought to another one.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use support::envoy_admin::EnvoyAdmin;
use support::{Server, bad, good, run, run_with, said};

/// Resources of all the forms that a file has for them.
const CONTENTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  type: EDS
  connect_timeout: 1s
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: backend
  ttl: 30s
  resource:
    "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: backend
    endpoints:
    - lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  vhds: {config_source: {ads: {}, resource_api_version: V3}}
  virtual_hosts:
  - {name: www, domains: [www.example.com]}
  - {name: all, domains: ["*.example.com"]}
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: front
  api_listener:
    api_listener:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: front
      rds: {route_config_name: shop, config_source: {ads: {}, resource_api_version: V3}}
      http_filters:
      - name: envoy.filters.http.router
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: shop
  virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend}}]}]
"#;

/// One name in two variants, and a secret.
const VARIANTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: split
  resource_name: {name: split, dynamic_parameter_constraints: "env=prod AND NOT version=v1"}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: split}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: split
  resource_name: {name: split, dynamic_parameter_constraints: "version=v1"}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: split, alt_stat_name: other}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: password
  generic_secret: {secret: {inline_string: swordfish}}
"#;

/// What a server has, by type, name and constraints: all but contents, of which
/// the version tells.
fn contents(server: &Server, without: &[&str]) -> BTreeMap<String, Value> {
    let (status, list) = server.get("/api/v1/resources?summary=true");
    assert_eq!(status, 200, "{list}");
    let list: Value = serde_json::from_str(&list).unwrap();
    let all = list["resources"].as_array().unwrap().iter();
    let all = all.map(|one| {
        let key = format!("{} {} {}", one["type"], one["name"], one["constraints"]);
        (key, one.clone())
    });
    all.filter(|(key, _)| !without.iter().any(|it| key.contains(it)))
        .collect()
}

fn server() -> Server {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CONTENTS));
    let other = ["apply", "-f", "-", "--origin", "other"];
    good(&server.ask_with(&other, VARIANTS));
    server
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    });
    files.collect()
}

#[test]
fn what_is_exported_is_served_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (folder, again, one) = (path("folder"), path("again"), path("one.pb"));
    let server = server();
    let all = contents(&server, &[]);
    assert_eq!(all.len(), 10, "{all:?}");
    let done = good(&server.ask(&["export", &folder]));
    assert_eq!(
        done,
        format!("10 resources of revision 2 written to {folder}\n")
    );
    let names: Vec<String> = files(Path::new(&folder)).into_keys().collect();
    let expected = "clusters.yaml endpoints.yaml listeners.yaml routes.yaml secrets.yaml \
                    virtual-hosts.yaml";
    assert_eq!(names.join(" "), expected);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let secrets = Path::new(&folder).join("secrets.yaml");
    assert_eq!((mode(Path::new(&folder)), mode(&secrets)), (0o700, 0o600));
    let secrets = std::fs::read_to_string(secrets).unwrap();
    assert!(secrets.contains("swordfish"), "{secrets}");

    let of_files = Server::start(&["--config", &folder]);
    assert_eq!(contents(&of_files, &[]), all);
    good(&of_files.ask(&["export", &again]));
    assert_eq!(files(Path::new(&again)), files(Path::new(&folder)));

    good(&server.ask(&["export", &one]));
    let applied = Server::start(&[]);
    good(&applied.ask(&["apply", "-f", &one]));
    assert_eq!(contents(&applied, &[]), all);

    // Some of it, to standard output.
    let some = good(&server.ask(&["export", "-", "--origin", "other", "--type", "cds"]));
    assert_eq!(some.matches("name: split").count(), 6, "{some}");
    assert!(some.contains("env=prod AND NOT version=v1"), "{some}");
    assert!(
        !some.contains("swordfish") && !some.contains("backend"),
        "{some}"
    );
    let none = good(&server.ask(&["export", "-", "--type", "leds"]));
    assert_eq!(none, "resources: []\n");
    good(&run_with(&["validate", "-"], &some));
}

#[test]
fn nothing_is_overwritten_by_an_export() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    std::fs::write(&file, "mine").unwrap();
    let server = server();
    for place in [dir.path(), &file] {
        let error = bad(&server.ask(&["export", place.to_str().unwrap()]), 2);
        assert!(error.contains("is not overwritten"), "{error}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let json = dir.path().join("a.json");
    let error = bad(&server.ask(&["export", json.to_str().unwrap()]), 2);
    assert!(error.contains("YAML"), "{error}");
}

#[test]
fn what_a_directory_has_kept_is_exported_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (data, out) = (path("data"), path("out"));
    let export = ["export", &out, "--data", &data];
    let error = bad(&run(&export), 1);
    assert!(error.contains("nothing is kept here"), "{error}");
    assert!(!Path::new(&data).exists());

    let server = Server::start(&["--data", &data]);
    good(&server.ask_with(&["apply", "-f", "-"], CONTENTS));
    good(&server.ask_with(&["apply", "-f", "-"], VARIANTS));
    let all = contents(&server, &[]);
    let error = bad(&run(&export), 1);
    assert!(error.contains("is in use by another process"), "{error}");
    drop(server);
    good(&run(&export));
    let of_files = Server::start(&["--config", &out]);
    assert_eq!(contents(&of_files, &[]), all);
}

#[test]
fn another_control_plane_is_imported_by_either_protocol() {
    let dir = tempfile::tempdir().unwrap();
    let source = server();
    // A client is not told of a TTL, which is a matter of its server.
    let lasting = CONTENTS.replace("  ttl: 30s\n", "");
    good(&source.ask_with(&["apply", "-f", "-"], &lasting));
    let from = source.listen.to_string();
    // Hosts on demand are told to nobody, and a client without parameters has
    // no variant that needs some. Nobody refers to the secret.
    let without = ["VirtualHost", "\"split\"", "Secret", "\"routes\""];
    let expected = contents(&source, &without);
    assert_eq!(expected.len(), 4, "{expected:?}");
    for protocol in [&[][..], &["--sotw"]] {
        let target = Server::start(&[]);
        let import = ["import", "--server", &from, "--origin", "old", "--replace"];
        let import = [&import[..], protocol].concat();
        let done = good(&target.ask(&import));
        assert!(done.contains("cds/backend created"), "{done}");
        assert_eq!(contents(&target, &[]), expected);
        let again = good(&target.ask(&import));
        assert!(again.contains("4 unchanged"), "{again}");
        let stale = [&import[..], &["--if-revision", "7"]].concat();
        let stale = bad(&target.ask(&stale), 1);
        assert!(stale.contains("not at 7"), "{stale}");
    }

    let folder = dir.path().join("old");
    let out = folder.to_str().unwrap();
    let import = [
        "import",
        "--server",
        &from,
        "--param",
        "version=v1",
        "-o",
        out,
    ];
    let done = good(&run(&import));
    assert!(done.starts_with("5 resources of "), "{done}");
    let clusters = std::fs::read_to_string(folder.join("clusters.yaml")).unwrap();
    assert!(clusters.contains("alt_stat_name: other"), "{clusters}");
    let gone = [
        "import",
        "--server",
        "127.0.0.1:1",
        "--patience",
        "1s",
        "-o",
        "x",
    ];
    assert_eq!(run(&gone).status.code(), Some(3));
}

#[test]
fn an_envoy_is_imported_by_its_dump() {
    let source = Server::start(&[]);
    good(&source.ask_with(&["apply", "-f", "-"], CONTENTS));
    let envoy = EnvoyAdmin::start(source.get("/config_dump").1);
    let address = envoy.address.to_string();
    let target = Server::start(&[]);
    let import = ["import", "--envoy-admin", &address, "--origin", "edge"];
    let done = target.ask(&import);
    assert!(good(&done).contains("lds/front created"), "{}", said(&done));
    let names = target.names("cds");
    assert!(names.contains(&"backend".to_owned()), "{names:?}");
    assert!(target.names("sds").is_empty());
    let wrong = EnvoyAdmin::start("hello".into());
    let address = wrong.address.to_string();
    let import = ["import", "--envoy-admin", &address, "-o", "-"];
    let error = bad(&run(&import), 1);
    assert!(error.contains(&address), "{error}");
}

#[test]
fn a_bootstrap_of_envoy_is_imported() {
    const BOOTSTRAP: &str = "\
node: {id: a, cluster: b}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  clusters: [{name: one, type: STATIC}, {name: two, type: STATIC}]
";
    let target = Server::start(&[]);
    let rehearsed = good(&target.ask_with(&["import", "-", "--dry-run"], BOOTSTRAP));
    assert!(rehearsed.contains("cds/one"), "{rehearsed}");
    assert!(target.names("cds").is_empty());
    good(&target.ask_with(&["import", "-"], BOOTSTRAP));
    assert_eq!(target.names("cds"), ["one", "two"]);
    let shown = good(&run_with(&["import", "-", "-o", "-"], BOOTSTRAP));
    assert!(shown.contains("name: two"), "{shown}");
}
