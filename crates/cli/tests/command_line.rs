//! The command line itself: commands that need no server.
#![allow(clippy::unwrap_used)]

mod support;

use support::{CLUSTER, bad, good, run, said};

#[test]
fn the_contract_of_serve() {
    let help = good(&run(&["serve", "--help"]));
    // Lines are broken to fit a terminal.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for flag in [
        "--config <PATH>",
        "--settings <FILE>",
        "--listen <ADDR>",
        "--admin <ADDR>",
        "--drain-time <TIME>",
        "--tls-cert <FILE>",
        "--tls-key <FILE>",
        "--tls-client-ca <FILE>",
        "--allow-plaintext-secrets",
        "--debounce <TIME>",
        "--max-streams <N>",
        "[default: 127.0.0.1:18000]",
        "[default: 127.0.0.1:18001]",
        "[default: 5s]",
    ] {
        assert!(help.contains(flag), "{flag}: {help}");
    }
}

#[test]
fn the_version_says_what_it_was_built_from() {
    let version = good(&run(&["--version"]));
    assert!(version.starts_with(&format!("trunkline {}\n", env!("CARGO_PKG_VERSION"))));
    for part in ["commit:", "target:", "profile:", "rustc:"] {
        assert!(version.contains(part), "{version}");
    }
}

#[test]
fn completions_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = good(&run(&["completions", shell]));
        assert!(script.contains("validate"), "{shell}");
        assert!(script.contains("admin-token-file"), "{shell}");
    }
}

#[test]
fn the_example_settings_are_settings() {
    let text = good(&run(&["settings", "--print-defaults"]));
    assert!(text.contains("\nlisten: 127.0.0.1:18000\n"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.yaml");
    // The last line is wrong, so that nothing is served; all before it are
    // right.
    std::fs::write(&file, text + "\nlisten_to: 1\n").unwrap();
    let error = bad(&run(&["serve", "--settings", file.to_str().unwrap()]), 2);
    assert!(error.contains("unknown key \"listen_to\""), "{error}");
}

#[test]
fn settings_are_strict_and_say_where() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.yaml");
    let file = file.to_str().unwrap();
    let serve = |text: &str| {
        std::fs::write(file, text).unwrap();
        bad(&run(&["serve", "--settings", file]), 2)
    };
    let error = serve("# mine\nlisten: 127.0.0.1:0\nmax_stream: 5\n");
    assert!(
        error.contains(&format!(
            "{file}:3:1: unknown key \"max_stream\"; did you mean \"max_streams\"?"
        )),
        "{error}"
    );
    assert!(serve("debounce: soon").contains(":1:11: debounce: \"soon\" is not a time"));
    let error = bad(&run(&["serve", "--settings", "no/such/file"]), 2);
    assert!(error.contains("--settings no/such/file"), "{error}");
    let error = bad(&run(&["serve", "--debounce", "soon"]), 2);
    assert!(
        error.contains("--debounce: \"soon\" is not a time"),
        "{error}"
    );
    bad(&run(&["serve", "--no-such-flag"]), 2);
}

#[test]
fn an_address_that_is_taken_is_named_with_its_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, other) in [("--listen", "--admin"), ("--admin", "--listen")] {
        let error = bad(&run(&["serve", flag, &address, other, "127.0.0.1:0"]), 1);
        assert!(
            error.contains(&format!("cannot listen on {address}")),
            "{error}"
        );
        assert!(
            error.contains(&format!("choose another with {flag}")),
            "{error}"
        );
    }
}

#[test]
fn a_server_that_is_not_there_is_exit_code_3() {
    // A port that was bound and is closed again.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap().to_string();
    drop(gone);
    let error = bad(&run(&["status", "--admin", &address]), 3);
    assert_eq!(
        error,
        format!(
            "error: cannot reach the server at http://{address}: nothing listens there; start it \
             with `trunkline serve`, or name its address with --admin\n"
        )
    );
    let error = bad(&run(&["status", "--admin", "no-such-host.invalid:1"]), 3);
    assert_eq!(
        error,
        "error: cannot reach the server at http://no-such-host.invalid:1: there is no host \
         \"no-such-host.invalid\"; correct --admin\n"
    );
    bad(&run(&["get", "cds", "--admin", &address]), 3);
    bad(&run(&["get", "bananas", "--admin", &address]), 2);
    bad(&run(&["get", "cds", "--admin", "ftp://x"]), 2);
}

#[test]
fn validate_says_all_that_is_wrong_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good_file = write("good.yaml", CLUSTER);
    let output = run(&["validate", &good_file]);
    assert_eq!(good(&output), "1 resource in 1 file is valid\n");

    let bad_file = write(
        "bad.yaml",
        &CLUSTER.replace("connect_timeout", "conect_timeout"),
    );
    let error = bad(&run(&["validate", &bad_file]), 1);
    assert!(
        error.contains(&format!(
            "{bad_file}:4:3: resources[0]: unknown field \"conect_timeout\" in Cluster, \
             did you mean \"connect_timeout\"?"
        )),
        "{error}"
    );
    let missing = bad(&run(&["validate", "no/such/file.yaml", &bad_file]), 1);
    assert!(
        missing.contains("no/such/file.yaml: does not exist"),
        "{missing}"
    );
    assert!(missing.contains("2 mistakes"), "{missing}");
    assert!(
        missing.starts_with("error: no/such/file.yaml: "),
        "{missing}"
    );

    // The whole folder: the same name twice.
    std::fs::remove_file(bad_file).unwrap();
    write("twice.yaml", CLUSTER);
    let twice = bad(&run(&["validate", dir.path().to_str().unwrap()]), 1);
    assert!(twice.contains("\"backend\" is there already"), "{twice}");
}

#[test]
fn validate_finds_what_envoy_could_not_build() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("routes.yaml");
    let text = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  virtual_hosts:
  - {name: one, domains: [a.example]}
  - name: two
    domains:
    - a.example
"#;
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let error = bad(&run(&["validate", file]), 1);
    let expected = format!(
        "{file}:8:7: resources[0].virtual_hosts[1].domains[0]: the domain \"a.example\" is one of \
         virtual_hosts[0] too; a route configuration may have it once: remove one\n"
    );
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn validate_warns_of_dangling_references_or_refuses_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("routes.yaml");
    let text = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  virtual_hosts:
  - name: all
    domains: ["*"]
    routes: [{match: {prefix: /}, route: {cluster: nowhere}}]
"#;
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let output = run(&["validate", file]);
    assert_eq!(good(&output), "1 resource in 1 file is valid\n");
    assert!(said(&output).contains("warning: ") && said(&output).contains("\"nowhere\""));
    let error = bad(&run(&["validate", "--dangling", "error", file]), 1);
    assert!(error.contains("\"nowhere\""), "{error}");
}
