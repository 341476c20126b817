//! The examples of `docs/on-demand.md`, on ports of their own: what the guide
//! says of them is true.

use std::net::SocketAddr;
use std::path::Path;

use interop::Envoy;
use trunkline::kind;
use trunkline::node::{BaseRule, NodeMatch};
use trunkline::status::{Clients as _, ResourceState};

use super::{SOON, says};
use crate::site::{Site, replace};

fn example(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/on-demand");
    let text = std::fs::read_to_string(root.join(file)).expect("the example");
    text.replace("port_value: 10000", "port_value: 0")
        .replace("port_value: 9901", "port_value: 0")
}

/// A server with the files of the example, and its Envoy.
struct Example {
    site: Site,
    serving: interop::Serving,
    envoy: Envoy,
}

impl Example {
    fn start(files: &[&str]) -> Self {
        let site = Site::new(&[]);
        let this = |file: &str| {
            let name = Path::new(file).file_name().expect("a name");
            replace(&site.folder().join(name), &example(file));
        };
        files.iter().for_each(|file| this(file));
        // As in settings.yaml, which the tests of the program read.
        let namespace = "metadata.NAMESPACE".parse().expect("a field");
        let node = NodeMatch::new([(namespace, vec!["*".parse().expect("a pattern")])]);
        let set = "{metadata.NAMESPACE}".parse().expect("a template");
        let rule = BaseRule::new(node, vec![set], Vec::new()).expect("a rule");
        let serving = site.serve_with(0, |options| options.base_sets = vec![rule]);
        let port = format!("port_value: {}", serving.port);
        let bootstrap = example("envoy.yaml").replace("port_value: 18000", &port);
        let envoy = Envoy::start(&bootstrap);
        Self {
            site,
            serving,
            envoy,
        }
    }

    fn at(&self) -> SocketAddr {
        self.envoy.listener("ingress").expect("the listener")
    }

    fn says(&self, host: &str) -> String {
        says(self.at(), host).trim().to_owned()
    }

    fn wait(&self, host: &str, expected: &str) {
        let what = format!("{host} to say {expected}");
        self.envoy
            .wait_for(&what, SOON, |_| (self.says(host) == expected).then_some(()));
    }

    /// The hosts that it holds or subscribed to, by the server's account.
    fn hosts(&self) -> Vec<(String, ResourceState)> {
        let server = &self.serving.server;
        let clients = server.clients().into_iter();
        let all = clients.flat_map(|client| server.resources(client.stream));
        all.filter(|one| one.type_url.as_str() == kind::VHDS)
            .map(|one| (one.name.to_string(), one.state))
            .collect()
    }

    fn wait_for_hosts(&self, expected: &[(&str, ResourceState)]) {
        let owned = |(name, state): &(&str, ResourceState)| ((*name).to_owned(), *state);
        let expected: Vec<_> = expected.iter().map(owned).collect();
        self.envoy.wait_for(&format!("{expected:?}"), SOON, |_| {
            (self.hosts() == expected).then_some(())
        });
    }
}

const FILES: [&str; 3] = [
    "resources/listener.yaml",
    "resources/routes.yaml",
    "resources/tenants.yaml",
];

use ResourceState::{Acked, DoesNotExist};

#[test]
fn the_guide_to_hosts_on_demand() {
    let example = Example::start(&FILES);
    // The base set is there before any request.
    example.wait_for_hosts(&[("routes/shop", Acked)]);
    assert_eq!(example.says("shop.example.com"), "shop");
    assert_eq!(example.says("blog.example.com"), "blog");
    assert_eq!(example.says("nobody.example.com"), "404");
    assert_eq!(example.says("a.tenants.example.com"), "a tenant");
    assert_eq!(example.says("b.tenants.example.com"), "a tenant");
    example.wait_for_hosts(&[
        ("routes/blog", Acked),
        ("routes/nobody.example.com", DoesNotExist),
        ("routes/shop", Acked),
        ("routes/tenants", Acked),
    ]);
    // A port is a part of the host.
    assert_eq!(example.says("shop.example.com:8443"), "shop");
    assert_eq!(example.says("blog.example.com:8443"), "404");
    // Something comes to be under the wildcard.
    let big = example.site.folder().join("big.yaml");
    replace(&big, &self::example("later/big.yaml"));
    let shown = [
        ("routes/a.tenants.example.com", Acked),
        ("routes/blog", Acked),
        ("routes/blog.example.com:8443", DoesNotExist),
        ("routes/nobody.example.com", DoesNotExist),
        ("routes/shop", Acked),
        ("routes/shop.example.com:8443", Acked),
    ];
    example.wait_for_hosts(&shown);
    assert_eq!(example.says("big.tenants.example.com"), "the big tenant");
    assert_eq!(example.says("a.tenants.example.com"), "a tenant");
    assert_eq!(example.says("b.tenants.example.com"), "a tenant");
    std::fs::remove_file(big).expect("a file");
    example.wait("big.tenants.example.com", "a tenant");
}

#[test]
fn s66_the_example_with_a_stream_of_its_own() {
    let example = Example::start(&[FILES[0], "own-stream/routes.yaml", FILES[2]]);
    assert_eq!(example.hosts(), []);
    assert_eq!(example.says("shop.example.com"), "shop");
    assert_eq!(example.says("b.tenants.example.com"), "a tenant");
    assert_eq!(example.says("nobody.example.com"), "404");
}

/// What the guide tells operators to set against junk.
#[test]
fn s72_a_guarded_listener_does_not_ask_for_junk() {
    let example = Example::start(&["guarded/listener.yaml", FILES[1], FILES[2]]);
    for host in [
        "junk",
        "junk.com:1",
        "10.0.0.1",
        "example.com.evil.org",
        "xexample.com",
    ] {
        assert_eq!(example.says(host), "403", "{host}");
    }
    for port in 1..10 {
        let host = |name: &str| format!("{name}.example.com:{port}");
        assert_eq!(example.says(&host("BLOG")), "blog");
        assert_eq!(example.says(&host("nobody")), "404");
    }
    example.wait_for_hosts(&[
        ("routes/blog", Acked),
        ("routes/nobody.example.com", DoesNotExist),
        ("routes/shop", Acked),
    ]);
    // No server runs: hosts that are held are served, requests for others do
    // not wait for long.
    let Example { serving, envoy, .. } = example;
    serving.stop();
    let at = envoy.listener("ingress").expect("the listener");
    assert_eq!(says(at, "blog.example.com").trim(), "blog");
    assert_eq!(says(at, "a.tenants.example.com"), "504");
}
