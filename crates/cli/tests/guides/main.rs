//! Every guide is played as it is printed: its commands are run, and what it
//! shows is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod compare;
mod markdown;
mod play;
mod ports;
mod stage;

use std::fs;
use std::process::Command;

use play::How::{
    After, Before, Excerpt, Exits, LeftOut, LinesOf, Of, Prints, SavedAs, Settings, Starts, Under,
};
use play::{Rule, play};

const SERVE: Rule = ("trunkline serve", Starts("ready"));
const ENVOY: Rule = (
    "target/venv/bin/envoy",
    Starts("all dependencies initialized. starting workers"),
);

/// The time of a line of a log that a guide shows.
const LOGGED: &str = "2026-11-18T09:30:00.000000Z";

/// Ids and times of the events that the guide to the admin API shows.
const EVENTS: [&[&str]; 3] = [
    &["18e8ff64b73aa20b-7", "2026-11-18T09:30:00.459Z"],
    &["18e8ff64b73aa20b-8", "2026-11-18T09:30:01.567Z"],
    &["18e8ff64b73aa20b-9", "2026-11-18T09:30:01.571Z"],
];

/// Pages that are not for those who run the program.
const NOT_PLAYED: [&str; 8] = [
    "README.md",
    "benchmarks.md",
    "mutants-traffic.md",
    "mutants.md",
    "performance.md",
    "rules.md",
    "security.md",
    "testing.md",
];

#[test]
fn every_page_is_played_or_not_a_guide() {
    let source = include_str!("main.rs");
    for entry in fs::read_dir(stage::root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_played = ["play(", "play(\n        "]
            .iter()
            .any(|call| source.contains(&format!("{call}\"docs/{name}\"")));
        let is_page = name.ends_with(".md") && !NOT_PLAYED.contains(&name.as_str());
        assert!(is_played || !is_page, "docs/{name} is not played");
    }
}

#[test]
fn the_front_page() {
    let move_listener =
        "sed -i 's/port_value: 10000/port_value: 8080/' examples/envoy/resources/listener.yaml";
    let status = |command| ("trunkline status", Before(command));
    play(
        "README.md",
        &[
            ("   files on disk", LeftOut("a picture")),
            status("trunkline serve --config examples/envoy/resources"),
            SERVE,
            status("target/venv/bin/envoy -c examples/envoy/envoy.yaml"),
            ENVOY,
            status("python3 -m http.server 8080 --bind 127.0.0.1"),
            ("python3", Starts("Serving HTTP")),
            status(move_listener),
            ("cargo run --release", Starts("Ctrl-C stops everything")),
            ("cargo xtask test", LeftOut("it runs this test")),
            ("trunkline serve     ", LeftOut("compared by the next test")),
        ],
    );
}

#[test]
fn the_commands_of_the_front_page_are_those_of_the_program() {
    let page = fs::read_to_string(stage::root().join("README.md")).unwrap();
    let blocks = markdown::blocks(&page);
    let list = blocks
        .iter()
        .find(|block| block.text.starts_with("trunkline serve "));
    let mut help = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    let help = help.arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for line in list.unwrap().text.lines() {
        let command = line.split_whitespace().nth(1).unwrap();
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
}

#[test]
fn envoy_in_five_minutes() {
    play(
        "docs/quickstart-envoy.md",
        &[
            SERVE,
            ENVOY,
            ("python3 -m http.server", Starts("Serving HTTP")),
            (
                "curl -i localhost:10000/hello",
                Prints(&["200 OK", "hello"]),
            ),
            (
                "curl -i localhost:10000/",
                Prints(&["200 OK", "Directory listing"]),
            ),
            ("2026-", Of("trunkline serve", &[LOGGED])),
        ],
    );
}

#[test]
fn grpc_in_five_minutes() {
    play(
        "docs/quickstart-grpc.md",
        &[
            ("cargo xtask setup", LeftOut("it has been run")),
            ("target/release/trunkline serve", Starts("ready")),
            (
                "target/venv/bin/python examples/grpc/server.py",
                Starts("listening on 50051"),
            ),
            ("GRPC_XDS_BOOTSTRAP=", Starts("hello from 50051")),
            (
                "target/venv/bin/python examples/grpc/server.py",
                Starts("listening on 50052"),
            ),
            ("hello from 50051", Of("GRPC_XDS_BOOTSTRAP=", &[])),
            (
                "target/release/trunkline status",
                Prints(&["greeter-client"]),
            ),
            ("curl 127.0.0.1:18001/api/v1/loads", Prints(&["greeter"])),
        ],
    );
}

#[test]
fn hosts_on_demand() {
    let own_stream = "cp examples/on-demand/own-stream/";
    play(
        "docs/on-demand.md",
        &[
            SERVE,
            ENVOY,
            ("base_sets:", Excerpt("examples/on-demand/settings.yaml")),
            (
                "metadata:",
                Excerpt("examples/on-demand/resources/routes.yaml"),
            ),
            (own_stream, After("target/venv/bin/envoy")),
            ENVOY,
            (
                "trunkline status",
                Prints(&["edge-1  1       cds", "edge-1  2       vhds"]),
            ),
        ],
    );
}

#[test]
fn dynamic_parameters() {
    play(
        "docs/dynamic-parameters.md",
        &[
            SERVE,
            ("parameters:", Excerpt("examples/variants/settings.yaml")),
            ENVOY,
            ENVOY,
            (
                "routes:",
                Excerpt("examples/variants/resources/routes.yaml"),
            ),
            (
                "- \"@type\":",
                Excerpt("examples/variants/resources/listener.yaml"),
            ),
            (
                "trunkline validate examples/variants/resources examples",
                Exits(1),
            ),
            ("parameters:", Settings),
        ],
    );
}

/// Writes and validates clusters of which one lacks a value of the other.
const UNSERVED: &str = r#"(
t='"@type": type.googleapis.com/envoy'; r="$t.service.discovery.v3.Resource"; c="$t.config.cluster.v3.Cluster"
echo resources:
while read name env; do
printf -- "- $r\n  resource_name: {name: $name, dynamic_parameter_constraints: env=$env}\n"
printf "  resource:\n    $c\n    name: $name\n"
done <<< $'a prod\na test\nb qa\nb prod'
) > clusters.yaml; trunkline validate clusters.yaml"#;

/// Writes and validates a route to a cluster whose name is misspelt.
const DANGLING: &str = r#"(
t='"@type": type.googleapis.com/envoy.config'
printf "resources:\n- $t.cluster.v3.Cluster\n  name: backend\n  connect_timeout: 1s\n"
printf -- "- $t.route.v3.RouteConfiguration\n  name: shop\n  virtual_hosts:\n"
printf '  - name: all\n    domains: ["*"]\n'
printf '    routes: [{match: {prefix: /}, route: {cluster: bakend}}]\n'
) > routes.yaml; ! trunkline validate --dangling error routes.yaml"#;

#[test]
fn files_of_resources() {
    play(
        "docs/files.md",
        &[
            (
                "protoc",
                LeftOut("needs protoc and the files of a contrib extension"),
            ),
            ("- \"@type\":", Under("resources:\n")),
            ("warning: ", Before(UNSERVED)),
            ("error: routes.yaml", Before(DANGLING)),
        ],
    );
}

#[test]
fn traffic() {
    play(
        "docs/traffic.md",
        &[
            ("resources:", SavedAs("routes.yaml")),
            ("- request:", SavedAs("expected.yaml")),
        ],
    );
}

#[test]
fn the_admin_api() {
    play(
        "docs/admin-api.md",
        &[
            ("resources:", SavedAs("clusters.yaml")),
            ("curl --data-binary", Before("trunkline serve")),
            ("trunkline serve", Starts("waiting for the first contents")),
            (
                "trunkline apply",
                Before("cp examples/envoy/resources/backend.yaml endpoints.yaml"),
            ),
            ("trunkline apply", Starts("revision")),
            (
                "{\"revision\": 12",
                LeftOut("of clients that are silent: tests/wait.rs has some"),
            ),
            (
                "curl -N",
                Before("target/venv/bin/envoy -c examples/envoy/envoy.yaml"),
            ),
            ENVOY,
            ("curl -N", Starts("bookmark")),
            (
                "{\"id\"",
                Before(
                    "curl --data-binary @clusters.yaml http://127.0.0.1:18001/api/v1/resources?take_over=true",
                ),
            ),
            ("{\"id\"", LinesOf("curl -N", &EVENTS)),
        ],
    );
}

#[test]
fn operations() {
    play(
        "docs/operations.md",
        &[
            ("trunkline diff", Before("cp -r examples/envoy/resources .")),
            ("trunkline diff", Before("trunkline serve")),
            ("trunkline serve", Starts("waiting for the first contents")),
            ("trunkline serve --tls-cert", After("trunkline serve")),
            // The second server keeps its contents where the first one did.
            ("trunkline serve --tls-cert", Starts("ready")),
        ],
    );
}

#[test]
fn calls_with_tonic() {
    play(
        "docs/tonic.md",
        &[(
            "[dependencies]",
            LeftOut("the manifest of a program of one's own"),
        )],
    );
}

#[test]
fn the_client_library() {
    play(
        "docs/client.md",
        &[
            (
                "[dependencies]",
                LeftOut("the manifest of a program of one's own"),
            ),
            SERVE,
            ("trunkline watch cds --server", Starts("added")),
            (
                "connecting to",
                Of(
                    "trunkline watch cds --server",
                    &["2026-11-18T09:30:00.459Z"],
                ),
            ),
            ("trunkline watch cluster:backend", Starts("cds/backend")),
            (
                "cds/backend version",
                Of("trunkline watch cluster:backend", &[]),
            ),
            (
                "2026-11-18T18:30:00.459Z changed",
                LeftOut("what a change looks like is shown by the tests of the command"),
            ),
            ("trunkline replay", Starts("replaying")),
        ],
    );
}

#[test]
fn sources_and_sinks() {
    play(
        "docs/mcp.md",
        &[
            ("   files                 source", LeftOut("a picture")),
            ("trunkline mcp source", Starts("ready")),
            SERVE,
            ENVOY,
            ("sleep 2", Prints(&[])),
            ("sleep 1", Prints(&[])),
            ("mcp_from:", Settings),
        ],
    );
}

#[test]
fn coming_from_go_control_plane() {
    play("docs/from-go-control-plane.md", &[]);
}
