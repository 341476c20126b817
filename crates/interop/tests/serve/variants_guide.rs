//! The examples of `docs/dynamic-parameters.md`, on ports of their own: what
//! the guide says of them is true.

use std::path::Path;

use interop::{Envoy, Serving, http};
use trunkline::node::{NodeMatch, ParamRule, ParamRules};

use crate::site::{Site, replace};

fn example(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/variants");
    std::fs::read_to_string(root.join(file)).expect("the example")
}

/// The rule of settings.yaml, which the tests of the program read.
fn rules() -> ParamRules {
    let set = [("env", "{cluster}"), ("version", "{metadata.VERSION}")];
    let set = set.map(|(key, text)| (key.to_owned(), text.parse().expect("a template")));
    let rule = ParamRule {
        node: NodeMatch::default(),
        set: set.into(),
    };
    ParamRules::new(vec![rule]).expect("rules")
}

fn envoy(serving: &Serving, cluster: &str) -> Envoy {
    let node = format!("node:\n  id: {cluster}-1\n  cluster: {cluster}\n");
    let port = format!("port_value: {}", serving.port);
    let bootstrap = example("envoy.yaml");
    let bootstrap = bootstrap.replace("port_value: 18000", &port);
    Envoy::start(&bootstrap.replace("node:\n", &node))
}

fn says(envoy: &Envoy, path: &str) -> String {
    let at = envoy.listener("ingress").expect("the listener");
    http::get(at, path).expect("an answer").body
}

#[test]
fn tp2_the_guide_to_dynamic_parameters() {
    let site = Site::new(&[]);
    for file in ["listener.yaml", "routes.yaml"] {
        let text = example(&format!("resources/{file}"));
        let any_port = text
            .replace("port_value: 10000", "port_value: 0")
            .replace("port_value: 10001", "port_value: 0");
        replace(&site.folder().join(file), &any_port);
    }
    let serving = site.serve_with(0, |options| options.params = rules());
    let (prod, test) = (envoy(&serving, "prod"), envoy(&serving, "test"));
    for (path, in_prod, in_test) in [
        ("/pay", "real money\n", "hello\n"),
        ("/old", "as it was\n", "as it was\n"),
        ("/x", "hello\n", "hello\n"),
    ] {
        assert_eq!(says(&prod, path), in_prod, "{path}");
        assert_eq!(says(&test, path), in_test, "{path}");
    }
}
