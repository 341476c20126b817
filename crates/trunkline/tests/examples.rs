//! The example programs do what their comments say.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "all of this is tests"
)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use trunkline::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use trunkline::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ConfigSource, SocketAddress, address,
};
use trunkline::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use trunkline::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use trunkline::{ResourceMessage, Server};

/// A running example, which ends with this.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    /// Starts an example, which was built with the tests.
    fn start(name: &str, args: &[&str], envs: &[(&str, &str)]) -> Self {
        let test = std::env::current_exe().unwrap();
        let target: PathBuf = test.ancestors().nth(2).unwrap().into();
        let mut command = Command::new(target.join("examples").join(name));
        command.args(args).envs(envs.iter().copied());
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("`cargo test` builds examples, and so does `cargo build --examples`");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("another line").unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A cluster whose endpoints have another name.
fn cluster() -> Cluster {
    let ads = ConfigSourceSpecifier::Ads(AggregatedConfigSource {});
    Cluster {
        name: "backend".to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig {
            service_name: "service".to_owned(),
            eds_config: Some(ConfigSource {
                config_source_specifier: Some(ads),
                ..ConfigSource::default()
            }),
        }),
        ..Cluster::default()
    }
}

fn endpoint(port: u32) -> LbEndpoint {
    let socket = SocketAddress {
        address: "10.0.0.1".to_owned(),
        port_specifier: Some(PortSpecifier::PortValue(port)),
        ..SocketAddress::default()
    };
    let endpoint = Endpoint {
        address: Some(Address {
            address: Some(address::Address::SocketAddress(socket)),
        }),
        ..Endpoint::default()
    };
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
        ..LbEndpoint::default()
    }
}

fn set(server: &Server, ports: &[u32]) {
    let locality = LocalityLbEndpoints {
        lb_endpoints: ports.iter().copied().map(endpoint).collect(),
        ..LocalityLbEndpoints::default()
    };
    let assignment = ClusterLoadAssignment {
        cluster_name: "service".to_owned(),
        endpoints: vec![locality],
        ..ClusterLoadAssignment::default()
    };
    let messages = [
        ResourceMessage::of(&cluster()),
        ResourceMessage::of(&assignment),
    ];
    server.set("test", messages).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_follows_a_cluster_by_address_and_by_bootstrap() {
    let server = Server::builder().build();
    set(&server, &[1, 2]);
    let listener = trunkline::listen::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener).await }
    });
    let bootstrap = format!(
        r#"{{"xds_servers": [{{"server_uri": "{address}", "channel_creds": [{{"type": "insecure"}}]}}], "node": {{"id": "n1"}}}}"#
    );
    let variable = ("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap.as_str());
    for by_address in [true, false] {
        set(&server, &[1, 2]);
        let mut example = match by_address {
            true => Running::start("endpoints", &[&address, "backend"], &[]),
            false => Running::start("endpoints", &["backend"], &[variable]),
        };
        assert_eq!(example.line(), "service: 10.0.0.1:1 10.0.0.1:2");
        set(&server, &[2]);
        assert_eq!(example.line(), "service: 10.0.0.1:2");
    }
}
