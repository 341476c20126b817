//! Variants for clients that know nothing of dynamic parameters: chosen by
//! their nodes (TP2, S62).

use std::time::Duration;

use interop::{Backend, Envoy, Mode, Serving, assert_no_init_fetch_timeout, bootstrap, http};
use trunkline::Options;
use trunkline::node::{NodeMatch, ParamRule, ParamRules};

use crate::grpc;
use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route, static_cluster, variant};

const SOON: Duration = Duration::from_secs(10);

/// The id of a node says its environment.
pub(crate) fn by_id(options: &mut Options) {
    let rule = ParamRule {
        node: NodeMatch::default(),
        set: vec![("env".to_owned(), "{id}".parse().expect("a template"))],
    };
    options.params = ParamRules::new(vec![rule]).expect("rules");
}

pub(crate) const PROD: &str = r#"{constraint: {key: env, value: prod}}"#;
pub(crate) const NOT_PROD: &str = r#"{not_constraints: {constraint: {key: env, value: prod}}}"#;

/// A listener and a route whose cluster differs, and a cluster that only one
/// environment has.
fn site(prod: &Backend, test: &Backend) -> Site {
    Site::new(&[
        ("http.yaml", &[listener("http", "r")]),
        (
            "prod.yaml",
            &[
                variant("r", PROD, &route("r", "only-prod")),
                variant(
                    "only-prod",
                    PROD,
                    &static_cluster("only-prod", prod.address()),
                ),
            ],
        ),
        (
            "rest.yaml",
            &[
                variant("r", NOT_PROD, &route("r", "c")),
                static_cluster("c", test.address()),
            ],
        ),
    ])
}

fn envoy(serving: &Serving, mode: Mode, id: &str) -> Envoy {
    let envoy = Envoy::start(&bootstrap::ads(serving.port, mode, id));
    assert_no_init_fetch_timeout(&envoy);
    envoy
}

fn answers(envoy: &Envoy, text: &str) {
    let at = envoy.listener("http").expect("the listener");
    envoy.wait_for(&format!("the answer {text}"), SOON, |_| {
        let answer = http::get(at, "/").expect("an answer");
        (answer.body == text).then_some(())
    });
}

fn envoys_get_the_variant_of_their_node(mode: Mode) {
    let [prod, test, later] = ["prod", "test", "later"].map(Backend::start);
    let site = site(&prod, &test);
    let serving = site.serve_with(0, by_id);
    let in_prod = envoy(&serving, mode, "prod");
    let in_test = envoy(&serving, mode, "test");
    answers(&in_prod, "prod");
    answers(&in_test, "test");
    assert!(in_prod.active_clusters().contains_key("only-prod"));
    assert!(!in_test.active_clusters().contains_key("only-prod"));

    // A change of the variant of one costs the other nothing.
    let heard = || in_test.stat("http.http.rds.r.update_attempt");
    let before = heard();
    assert!(before.is_some(), "there is such a counter");
    site.write(
        "prod.yaml",
        &[
            variant("r", PROD, &route("r", "only-prod")),
            variant(
                "only-prod",
                PROD,
                &static_cluster("only-prod", later.address()),
            ),
        ],
    );
    answers(&in_prod, "later");
    answers(&in_test, "test");
    assert_eq!(heard(), before);

    // One variant for all, instead of two, is one update.
    site.write("prod.yaml", &[]);
    site.write(
        "rest.yaml",
        &[route("r", "c"), static_cluster("c", test.address())],
    );
    answers(&in_prod, "test");
    answers(&in_test, "test");
    in_prod.wait_for("the cluster to go", SOON, |envoy| {
        let all = envoy.active_clusters();
        (!all.contains_key("only-prod")).then_some(())
    });
}

#[test]
fn tp2_envoys_get_the_variant_of_their_node_by_state_of_the_world() {
    envoys_get_the_variant_of_their_node(Mode::Sotw);
}

#[test]
fn tp2_envoys_get_the_variant_of_their_node_by_delta() {
    envoys_get_the_variant_of_their_node(Mode::Delta);
}

#[test]
fn tp2_grpc_gets_the_variant_of_its_node() {
    let (_prod, prod) = grpc::backend("prod");
    let (_test, test) = grpc::backend("test");
    let (_next, next) = grpc::backend("next");
    let site = Site::new(&[
        (
            "svc.yaml",
            &[
                grpc::api_listener("svc", "r"),
                route("r", "c"),
                cluster("c"),
            ],
        ),
        (
            "endpoints.yaml",
            &[
                variant("c", PROD, &endpoints("c", prod)),
                variant("c", NOT_PROD, &endpoints("c", test)),
            ],
        ),
    ]);
    let serving = site.serve_with(0, by_id);
    let mut in_prod = grpc::client_as(&serving, "prod", &["next"]);
    let mut in_test = grpc::client_as(&serving, "test", &["test"]);
    in_prod.wait_for_line("answer prod", grpc::SOON);
    assert_eq!(in_test.finish(grpc::SOON), Some(0), "{}", in_test.text());
    site.write(
        "endpoints.yaml",
        &[
            variant("c", PROD, &endpoints("c", next)),
            variant("c", NOT_PROD, &endpoints("c", test)),
        ],
    );
    assert_eq!(in_prod.finish(grpc::SOON), Some(0), "{}", in_prod.text());
}
