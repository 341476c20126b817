//! What the examples speak of: files, a server with contents, a client, an
//! editor, and an Envoy and its admin page that only look like it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use prost::Message as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::service::discovery::v3::DiscoveryResponse;
use trunkline_proto::envoy::google::protobuf::Any;

use crate::client::Client;
use crate::examples::Example;
use crate::started::Started;
use crate::support::envoy_admin::EnvoyAdmin;
use crate::support::{Running, Server, good, run};

/// All contents of the server, and of the files that examples apply.
const CONTENTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  type: EDS
  connect_timeout: 1s
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
  endpoints:
  - lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  vhds: {config_source: {ads: {}, resource_api_version: V3}}
  virtual_hosts: [{name: www, domains: [www.example.com, "www.example.com:8443"]}]
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: front
  api_listener:
    api_listener:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: front
      rds: {route_config_name: routes, config_source: {ads: {}, resource_api_version: V3}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: first}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: second}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: shop
  resource_name: {name: shop, dynamic_parameter_constraints: "env=prod AND NOT version=v1"}
  resource:
    "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: shop
    virtual_hosts: [{name: all, domains: ["*"]}]
"#;

/// Routes, and what is expected of requests.
const ROUTES: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: web
  virtual_hosts:
  - name: www
    domains: [www.example.com]
    routes:
    - {name: cart, match: {prefix: /cart}, route: {cluster: cart}}
    - {name: rest, match: {prefix: /}, route: {cluster: web}}
"#;
const EXPECTED: &str = "- {request: GET http://www.example.com/cart/1, cluster: cart}\n";

/// A bootstrap of Envoy whose control plane is the server.
const ENVOY_ADS: &str = "\
node: {id: sidecar-8, cluster: shop}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: xds}}]
static_resources:
  clusters:
  - name: xds
    http2_protocol_options: {}
    load_assignment:
      cluster_name: xds
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}
";

/// An editor that changes a resource.
const EDITOR: &str = "#!/bin/sh\nsed -i 's/connect_timeout: 1s/connect_timeout: 2s/; \
    s/name: all/name: every/' \"$1\"\n";

/// An Envoy that takes everything, and runs until it is stopped.
const ENVOY: &str = r#"#!/bin/sh
case "$*" in
  *--version*) echo "envoy  version: 9e55/1.40.9/Clean/RELEASE/BoringSSL" ;;
  *validate*) ;;
  *) exec sleep 1000 ;;
esac
"#;

/// Puts the resources of a measurement into the server.
const PUT: &str = "#!/bin/sh\n\
    if [ \"$BENCH_ACTION\" = put ]; then trunkline apply -f - --yes; \
    else trunkline delete -f -; fi > /dev/null\n";

/// What examples speak of.
pub(crate) struct Site {
    /// The current directory of examples.
    pub(crate) dir: tempfile::TempDir,
    /// The server that commands talk to.
    pub(crate) server: Server,
    /// A server with TLS, which asks for a certificate.
    secure: Server,
    /// A source of collections, and its addresses.
    _source: Running,
    source_listen: String,
    source_admin: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        for folder in ["bin", "etc/trunkline", "etc/bash_completion.d", ".zfunc"] {
            std::fs::create_dir_all(path.join(folder)).unwrap();
        }
        std::fs::create_dir_all(path.join(".config/fish/completions")).unwrap();
        let program = env!("CARGO_BIN_EXE_trunkline");
        std::os::unix::fs::symlink(program, path.join("bin/trunkline")).unwrap();
        for (name, text) in [
            ("bin/nano", EDITOR),
            ("bin/vi", EDITOR),
            ("bin/envoy", ENVOY),
            ("put.sh", PUT),
        ] {
            std::fs::write(path.join(name), text).unwrap();
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path.join(name), executable).unwrap();
        }
        write_files(path);
        write_certificates(path);
        let file = |name: &str| path.join(name).to_str().unwrap().to_owned();
        let (cert, key, ca) = (file("c.pem"), file("k.pem"), file("ca.pem"));
        let secure = Server::start(&[
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
            "--tls-client-ca",
            &ca,
            "--admin-tls-client-ca",
            &ca,
        ]);
        // Its contents are kept, so that they can be backed up.
        let server = Server::start(&["--data", &file("data")]);
        let clusters = file("clusters.yaml");
        let source = ["mcp", "source", "--config", &clusters];
        let on_free_ports = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let source = Running::start(&[&source[..], &on_free_ports].concat());
        let ready = source.logged("ready");
        let address = |key: &str| ready[key].as_str().unwrap().to_owned();
        let site = Self {
            server,
            dir,
            secure,
            source_listen: address("listen"),
            source_admin: address("admin"),
            _source: source,
        };
        site.prepare_control_plane();
        site
    }

    /// Writes a bootstrap of the server, a recording of what it sends, and its
    /// contents into the server with TLS.
    fn prepare_control_plane(&self) {
        self.prepare();
        let port = self.server.listen.port().to_string();
        let path = |name: &str| self.dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("envoy-ads.yaml"), ENVOY_ADS.replace("PORT", &port)).unwrap();
        let (server, file) = (self.server.listen.to_string(), path("recording.jsonl"));
        let args = [
            "watch", "cds", "--once", "--server", &server, "--record", &file,
        ];
        good(&run(&args));
        let secure = format!("https://{}", self.secure.admin);
        let (clusters, ca) = (path("clusters.yaml"), path("ca.pem"));
        let (cert, key) = (path("c.pem"), path("k.pem"));
        good(&run(&[
            "apply",
            "-f",
            &clusters,
            "--admin",
            &secure,
            "--tls-ca",
            &ca,
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
        ]));
    }

    /// Runs an example. One that is endless has to print something, and is
    /// stopped then.
    pub(crate) async fn run(&self, example: &Example) -> Result<(), String> {
        self.prepare();
        if example.command == "restore" {
            self.back_up(example);
        }
        let watches = example.text.contains("trunkline watch");
        let client = match watches || example.text.contains("sidecar-7") {
            true => Some(Client::connect(self.server.listen, "sidecar-7").await),
            false => None,
        };
        let envoy = EnvoyAdmin::start(self.proxy_dump());
        let line = self.command_line(example);
        let line = line.replace("127.0.0.1:9901", &envoy.address.to_string());
        // What is imported comes into a server that does not have it yet.
        let importing = (example.command == "import").then(|| Server::start(&[]));
        let server = importing.as_ref().unwrap_or(&self.server);
        let mut running = Started::start(self, &line, server.admin);
        let result = match example.is_endless() {
            true => running.stop_when_seen(example.expected(), |round| self.change(round)),
            false => running.wait(example),
        };
        drop(client);
        result
    }

    /// Writes the backup that an example restores. The example may be run
    /// after one that made it.
    fn back_up(&self, example: &Example) {
        let mut words = example.text.split_whitespace();
        let backup = words.find(|word| word.ends_with(".redb")).unwrap();
        let file = self.dir.path().join(backup);
        if !file.exists() {
            let admin = self.server.admin.to_string();
            good(&run(&["backup", file.to_str().unwrap(), "--admin", &admin]));
        }
    }

    /// What an Envoy has that was sent everything.
    fn proxy_dump(&self) -> String {
        let (_, dump) = self.server.get("/config_dump");
        let bootstrap = r#"{"configs":[{"@type":"type.googleapis.com/envoy.admin.v3.BootstrapConfigDump","bootstrap":{"node":{"id":"sidecar-7"}}},"#;
        dump.replacen(r#"{"configs":["#, bootstrap, 1)
    }

    /// Makes the contents of the server what they were in the beginning.
    fn prepare(&self) {
        let query = "take_over=true&yes=true";
        let path = format!("/api/v1/resources?{query}");
        let (status, body) = self.server.http("POST", &path, &[], CONTENTS);
        assert_eq!(status, 200, "{body}");
        // Examples begin at a revision.
        for round in 0..14 {
            self.change(round);
        }
        let _ = self.server.http("POST", &path, &[], CONTENTS);
    }

    /// Changes a cluster, so that there is something to see.
    fn change(&self, round: usize) {
        let text = CONTENTS.replace("1s", &format!("{}s", 2 + round % 2));
        self.server
            .http("POST", "/api/v1/resources?take_over=true", &[], &text);
    }

    /// Puts what is there in the place of what an example speaks of.
    fn command_line(&self, example: &Example) -> String {
        let Self { server, secure, .. } = self;
        let pid = server.running.pid().as_raw_nonzero().to_string();
        let mut line = example.text.clone();
        for (name, place) in [
            ("/etc/", "etc/"),
            ("/var/lib/", "var-lib-"),
            ("/usr/local/bin/", "bin/"),
            ("0.0.0.0:18000", "127.0.0.1:0"),
            ("10.0.0.7:18000", &*server.listen.to_string()),
            ("127.0.0.1:18000", &*server.listen.to_string()),
            ("127.0.0.1:18001", &*server.admin.to_string()),
            ("127.0.0.1:18010", &self.source_listen),
            ("127.0.0.1:18011", &self.source_admin),
            ("127.0.0.1:18012", "127.0.0.1:0"),
            ("xds.test:443", &*secure.listen.to_string()),
            ("$(pgrep my-server)", &*pid),
            ("$(pgrep trunkline)", &*pid),
        ] {
            line = line.replace(name, place);
        }
        if line.contains("trunkline serve") {
            let listen = match line.contains("--listen") {
                true => "",
                false => " --listen 127.0.0.1:0",
            };
            line.push_str(&format!("{listen} --admin 127.0.0.1:0"));
        }
        if line.contains("trunkline mcp source") {
            line.push_str(" --listen 127.0.0.1:0 --admin 127.0.0.1:0");
        }
        if line.contains("trunkline replay") && !line.contains("--listen") {
            line.push_str(" --listen 127.0.0.1:0");
        }
        if line.contains("trunkline bench") {
            line = smaller(&line);
        }
        line
    }
}

/// Makes the numbers of a measurement so small that it ends soon.
fn smaller(line: &str) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    for index in 1..words.len() {
        let most = match words[index - 1].as_str() {
            "--clients" => "5",
            "--categories" => "8",
            "--resources" => "20",
            "--connections" => "2",
            _ => continue,
        };
        words[index] = most.to_owned();
    }
    let mut line = words.join(" ");
    for (flag, value) in [
        ("--clients", "5"),
        ("--resources", "20"),
        ("--changes", "5"),
    ] {
        if !line.contains(flag) {
            line.push_str(&format!(" {flag} {value}"));
        }
    }
    line
}

/// Writes the files that examples name.
fn write_files(dir: &Path) {
    let write = |name: &str, text: &[u8]| std::fs::write(dir.join(name), text).unwrap();
    write("clusters.yaml", CONTENTS.as_bytes());
    write("routes.yaml", ROUTES.as_bytes());
    write("expected.yaml", EXPECTED.as_bytes());
    let cluster = |name: &str| {
        format!(
            "resources:\n- {{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, \
             name: {name}}}\n"
        )
    };
    for name in ["more", "team-a", "endpoints", "etc/trunkline/a"] {
        write(
            &format!("{name}.yaml"),
            cluster(&name.replace('/', "-")).as_bytes(),
        );
    }
    let hosts = DiscoveryResponse {
        resources: vec![Any {
            type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".into(),
            value: Cluster {
                name: "binary".into(),
                ..Cluster::default()
            }
            .encode_to_vec(),
        }],
        ..DiscoveryResponse::default()
    };
    write("a-million-hosts.pb", &hosts.encode_to_vec());
    write("envoy.yaml", b"node: {id: sidecar-8, cluster: shop}\n");
    let bootstrap = "static_resources: {clusters: [{name: edge}]}\n";
    write("bootstrap.yaml", bootstrap.as_bytes());
    let settings = run(&["settings", "--print-defaults"]);
    write("trunkline.yaml", &settings.stdout);
}

/// Writes an authority, and one certificate of it for servers and clients.
fn write_certificates(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = params.signed_by(&key, &authority).unwrap();
    std::fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    std::fs::write(dir.join("c.pem"), cert.pem()).unwrap();
    std::fs::write(dir.join("k.pem"), key.serialize_pem()).unwrap();
}
