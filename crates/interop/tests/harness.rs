//! The harness itself, without any server of ours: real Envoy starts, serves,
//! tells and stops.

use std::process::Command;
use std::time::Duration;

use interop::{Backend, Envoy, Mode, assert_no_init_fetch_timeout, bootstrap, free_port, http};

#[test]
fn envoy_serves_a_request_from_a_static_configuration() {
    let backend = Backend::start("through Envoy");
    let envoy = Envoy::start(&bootstrap::without_xds(backend.address()));
    let listener = envoy.listener("static").expect("the listener");

    let response = http::get_as(listener, "any.example", "/path").expect("an answer");

    assert_eq!(
        (response.status, response.body.as_str()),
        (200, "through Envoy")
    );
    assert_eq!(response.header("server"), Some("envoy"));
    assert_eq!(backend.answered(), 1);
    envoy.wait_for(
        "the request to be counted",
        Duration::from_secs(6),
        |envoy| {
            envoy
                .stat("cluster.backend.upstream_rq_200")
                .filter(|count| *count == 1)
        },
    );
    assert!(envoy.config_dump().to_string().contains("static"));
    assert_no_init_fetch_timeout(&envoy);
    assert_eq!(envoy.stop(), Some(0));
    assert!(
        http::get(listener, "/").is_err(),
        "nothing listens afterwards"
    );
}

/// Both kinds of bootstrap are understood; without a server Envoy waits.
#[test]
fn envoy_waits_for_its_server() {
    for mode in [Mode::Sotw, Mode::Delta] {
        let envoy = Envoy::spawn(&bootstrap::ads(free_port(), mode, "alone"));
        assert_eq!(envoy.get("/ready").status, 503, "{mode:?}");
        assert_eq!(
            envoy.stat("control_plane.connected_state"),
            Some(0),
            "{mode:?}"
        );
    }
}

#[test]
#[should_panic(expected = "no_such_field")]
fn a_bad_bootstrap_is_told_with_the_log() {
    let _ = Envoy::start("no_such_field: 1");
}

#[test]
fn the_grpc_client_and_its_messages_are_installed() {
    let import = "import grpc, envoy.service.discovery.v3.ads_pb2_grpc";
    let status = Command::new(interop::python())
        .args(["-c", import])
        .status();
    assert!(status.expect("python").success());
}
