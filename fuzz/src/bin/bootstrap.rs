//! Bootstraps of Envoy and of gRPC from any text: what is read is valid, and a
//! mistake has words.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline::client::Bootstrap;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    form: Form,
    text: &'a str,
}

#[derive(Arbitrary, Debug)]
enum Form {
    Envoy,
    /// An Envoy with a cluster for its control plane, so that not every input
    /// has to find one.
    EnvoyWithCluster,
    Grpc,
    /// The fields of the only server.
    GrpcServer,
}

const CLUSTER: &str = "
static_resources:
  clusters:
  - name: xds
    load_assignment:
      cluster_name: xds
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}
";

fuzz_target!(|input: Input<'_>| {
    let text = input.text;
    let read = match input.form {
        Form::Envoy => Bootstrap::from_envoy("b.yaml", text),
        Form::EnvoyWithCluster => Bootstrap::from_envoy("b.yaml", &format!("{text}{CLUSTER}")),
        Form::Grpc => Bootstrap::from_grpc("b.json", text),
        Form::GrpcServer => {
            let server = r#""server_uri": "a:1", "channel_creds": [{"type": "insecure"}]"#;
            let text = format!(r#"{{"xds_servers": [{{{server}{text}}}]}}"#);
            Bootstrap::from_grpc("b.json", &text)
        }
    };
    let bootstrap = match read {
        Ok(bootstrap) => bootstrap,
        Err(error) => {
            assert!(!error.mistakes.is_empty());
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for warning in &bootstrap.warnings {
        let _ = warning.to_string();
    }
    for server in bootstrap.servers() {
        assert!(bootstrap.has_server(server));
    }
    let _ = bootstrap.wire_node();
    let _ = bootstrap.listener_name("xds://authority/a/b%c");
    let _ = bootstrap.server_listener_name("[::1]:80");
    let _ = bootstrap.source_of_authority("authority");
});
