//! Commands as people know them from other programs: types by any usual name,
//! overviews, directories, environment variables, differences.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{CLUSTER, ROUTES, SECRET, Server, bad, good, run, run_with, said};

fn other_cluster() -> String {
    CLUSTER.replace("backend", "other")
}

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_type_has_many_names_and_stands_before_a_name() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    good(&server.ask_with(&["apply", "-f", "-"], &other_cluster()));
    let table = good(&server.ask(&["get", "cds"]));
    for word in ["cluster", "clusters", "Cluster", "CDS"] {
        assert_eq!(good(&server.ask(&["get", word])), table, "{word}");
    }
    let one = good(&server.ask(&["get", "cds", "backend"]));
    assert!(one.contains("backend") && !one.contains("other"), "{one}");
    for word in [
        "cds/backend",
        "clusters/backend",
        "type.googleapis.com/envoy.config.cluster.v3.Cluster/backend",
    ] {
        assert_eq!(good(&server.ask(&["get", word])), one, "{word}");
    }

    let error = bad(&server.ask(&["get", "clutser"]), 2);
    assert!(error.contains("did you mean \"cluster\"?"), "{error}");
    assert!(error.contains("lds, cds, rds"), "{error}");
    let error = bad(&server.ask(&["get", "cds/bakend"]), 1);
    assert!(
        error.contains("there is no cds \"bakend\"; did you mean \"backend\"?"),
        "{error}"
    );
    let error = bad(&server.ask(&["get", "cds", "bakend", "othr"]), 1);
    assert!(
        error.contains("\"backend\"") && error.contains("\"other\""),
        "{error}"
    );
    bad(&server.ask(&["get", "cds/backend", "other"]), 2);

    bad(&server.ask(&["delete", "clusters"]), 2);
    let gone = good(&server.ask(&["delete", "clusters/backend", "cds/other"]));
    assert!(gone.contains("cds/backend deleted"), "{gone}");
    assert!(gone.contains("cds/other deleted"), "{gone}");
    assert!(server.names("clusters").is_empty());
}

#[test]
fn get_shows_how_many_there_are_and_in_several_forms() {
    let server = Server::start(&[]);
    let none = good(&server.ask(&["get"]));
    assert_eq!(none, "the server has no resources\n");
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    good(&server.ask_with(&["apply", "-f", "-"], ROUTES));
    let team = ["apply", "-f", "-", "--origin", "team-a"];
    good(&server.ask_with(&team, &other_cluster()));

    assert_eq!(
        good(&server.ask(&["get"])),
        "TYPE  RESOURCES  ORIGINS\ncds   2          api 1, team-a 1\nrds   1          api 1\n"
    );
    let overview = good(&server.ask(&["get", "-o", "json"]));
    let overview: Value = serde_json::from_str(&overview).unwrap();
    let types = overview["types"].as_array().unwrap();
    assert_eq!(types[0]["origins"]["team-a"], 1);

    let names = good(&server.ask(&["get", "cds", "-o", "name"]));
    assert_eq!(names, "cds/backend\ncds/other\n");
    let wide = good(&server.ask(&["get", "cds", "-o", "wide"]));
    let row = |name: &str| wide.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("NAME").contains("ORIGIN"), "{wide}");
    assert!(row("backend").contains("api"), "{wide}");
    assert!(row("other").contains("team-a"), "{wide}");
    let both = good(&server.ask(&["get", "cds/other", "rds/routes"]));
    assert!(
        both.contains("cds/other ") && both.contains("rds/routes "),
        "{both}"
    );
    let file = good(&server.ask(&["get", "cds/other", "rds/routes", "-o", "yaml"]));
    good(&run_with(&["validate", "-"], &file));
}

#[test]
fn a_directory_is_applied_as_one_change() {
    let server = Server::start(&[]);
    let json = r#"{"resources": [{"@type":
        "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "third"}]}"#;
    let dir = directory(&[
        ("a.yaml", CLUSTER),
        ("below/b.yaml", &other_cluster()),
        ("below/c.json", json),
        ("ignored.txt", "no resources"),
    ]);
    let path = text(dir.path());
    let routes = directory(&[("routes.yaml", ROUTES)]);
    let routes = text(&routes.path().join("routes.yaml")).to_owned();

    let applied = good(&server.ask(&["apply", "-f", path, "-f", &routes]));
    for name in ["cds/backend", "cds/other", "cds/third", "rds/routes"] {
        assert!(applied.contains(&format!("{name} created")), "{applied}");
    }
    assert!(applied.ends_with("revision 1\n"), "{applied}");
    let again = good(&server.ask(&["apply", "-f", path]));
    assert_eq!(again, "3 unchanged\n");

    let rest = ["apply", "-f", path, "-f", "-", "--replace"];
    let replaced = good(&server.ask_with(&rest, &CLUSTER.replace("backend", "fourth")));
    assert!(replaced.contains("cds/fourth created"), "{replaced}");
    assert!(replaced.contains("rds/routes deleted"), "{replaced}");

    let deleted = good(&server.ask(&["delete", "-f", path]));
    assert!(deleted.contains("cds/third deleted"), "{deleted}");
    assert_eq!(server.names("cds"), ["fourth"]);
    let error = bad(&server.ask(&["delete", "-f", path]), 1);
    assert!(error.contains("3 names do not exist"), "{error}");
    good(&server.ask(&["delete", "-f", path, "--missing-ok"]));
    let empty = directory(&[]);
    let error = bad(&server.ask(&["apply", "-f", text(empty.path())]), 1);
    assert!(error.contains("has no files of resources"), "{error}");
}

#[test]
fn mistakes_of_several_files_have_their_own_places() {
    let server = Server::start(&[]);
    let slip = CLUSTER.replace("connect_timeout", "conect_timeout");
    let dir = directory(&[
        ("a.yaml", CLUSTER),
        ("b.yaml", &slip.replace("backend", "b")),
        ("c.yaml", &slip.replace("backend", "c")),
    ]);
    let apply = ["apply", "-f", text(dir.path())];
    let place = |name: &str| text(&dir.path().join(name)).to_owned();
    let error = bad(&server.ask(&apply), 1);
    for name in ["b.yaml", "c.yaml"] {
        let slip = format!("{}:4:3: resources[0]: unknown field", place(name));
        assert!(error.contains(&slip), "{error}");
    }
    assert!(server.names("cds").is_empty());

    // The same name in two files.
    std::fs::write(place("b.yaml"), CLUSTER).unwrap();
    std::fs::remove_file(place("c.yaml")).unwrap();
    let error = bad(&server.ask(&apply), 1);
    assert!(
        error.contains(&format!("{}:2:3:", place("b.yaml"))),
        "{error}"
    );
    assert!(
        error.contains(&format!("at {}:2:3", place("a.yaml"))),
        "{error}"
    );

    // The server's own mistakes: a name that belongs to another origin.
    std::fs::write(place("b.yaml"), other_cluster()).unwrap();
    let team = ["apply", "-f", "-", "--origin", "team-a"];
    good(&server.ask_with(&team, &other_cluster()));
    let error = bad(&server.ask(&apply), 1);
    let owned = format!("{}:2:3: resources[0]", place("b.yaml"));
    assert!(error.contains(&owned), "{error}");
    assert!(error.contains("team-a"), "{error}");

    // Warnings too: a cluster that does not exist.
    std::fs::write(place("b.yaml"), ROUTES.replace("backend", "nowhere")).unwrap();
    let output = server.ask(&apply);
    good(&output);
    let warning = format!(
        "warning: {}:7:52: resources[0].virtual_hosts",
        place("b.yaml")
    );
    assert!(said(&output).contains(&warning), "{}", said(&output));
}

#[test]
fn standard_input_is_validated_alone_and_with_files() {
    let valid = good(&run_with(&["validate", "-"], CLUSTER));
    assert_eq!(valid, "1 resource in 1 file is valid\n");
    let slip = CLUSTER.replace("connect_timeout", "conect_timeout");
    let error = bad(&run_with(&["validate", "-"], &slip), 1);
    assert!(
        error.contains("standard input:4:3: resources[0]: unknown field"),
        "{error}"
    );

    let dir = directory(&[("a.yaml", CLUSTER)]);
    let both = ["validate", "-", text(dir.path())];
    let valid = good(&run_with(&both, ROUTES));
    assert_eq!(valid, "2 resources in 2 files are valid\n");
    let twice = bad(&run_with(&both, CLUSTER), 1);
    assert!(twice.contains("\"backend\" is there already"), "{twice}");
}

/// Runs the program with one more environment variable.
fn run_in(variable: (&str, &str), args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(args).env(variable.0, variable.1);
    command.output().unwrap()
}

#[test]
fn the_server_may_be_named_by_the_environment() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let admin = server.admin.to_string();
    let table = good(&run_in(("TRUNKLINE_ADMIN", &admin), &["get", "cds"]));
    assert!(table.contains("backend"), "{table}");
    // A flag wins.
    let flag = ["get", "cds", "--admin", &admin];
    good(&run_in(("TRUNKLINE_ADMIN", "127.0.0.1:1"), &flag));

    let no_token = ("TRUNKLINE_TOKEN_FILE", "no/such/file");
    let error = bad(&run_in(no_token, &flag), 2);
    assert!(error.contains("--token-file no/such/file"), "{error}");
    let help = good(&run(&["get", "--help"]));
    for name in ["ADMIN", "TOKEN_FILE", "TLS_CA", "TLS_CERT", "TLS_KEY"] {
        assert!(help.contains(&format!("[env: TRUNKLINE_{name}=")), "{help}");
    }
}

#[test]
fn a_difference_is_shown_by_resource_and_field() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let dir = directory(&[("a.yaml", CLUSTER)]);
    let diff = ["diff", "-f", text(dir.path())];
    assert_eq!(good(&server.ask(&diff)), "");

    let difference = |text: &str, more: &[&str]| {
        let args = [&["diff", "-f", "-"], more].concat();
        let output = server.ask_with(&args, text);
        bad(&output, 1);
        String::from_utf8(output.stdout).unwrap()
    };
    let changed = difference(&CLUSTER.replace("1s", "2s"), &[]);
    assert!(changed.starts_with("cds/backend changed\n"), "{changed}");
    assert!(
        changed.contains("\n- connect_timeout: \"1s\"\n"),
        "{changed}"
    );
    assert!(
        changed.contains("\n+ connect_timeout: \"2s\"\n"),
        "{changed}"
    );
    let created = difference(&other_cluster(), &[]);
    assert!(created.starts_with("cds/other created\n"), "{created}");
    assert!(created.contains("\n+ name: other\n"), "{created}");
    let removed = difference(&other_cluster(), &["--replace"]);
    assert!(removed.contains("cds/backend removed\n"), "{removed}");
    assert!(removed.contains("\n- name: backend\n"), "{removed}");
    // Nothing was changed.
    assert_eq!(server.names("cds"), ["backend"]);

    bad(&server.ask_with(&["diff", "-f", "-"], "resources: 1"), 2);
    bad(
        &run_with(&["diff", "-f", "-", "--admin", "127.0.0.1:1"], CLUSTER),
        3,
    );
}

#[test]
fn a_difference_shows_no_secret() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], SECRET));
    let output = server.ask_with(&["diff", "-f", "-"], &SECRET.replace("swordfish", "tuna"));
    let error = bad(&output, 1);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with("sds/cert changed\n"), "{shown}");
    for secret in ["swordfish", "tuna", "c3dvcmRmaXNo", "dHVuYQ"] {
        assert!(
            !shown.contains(secret) && !error.contains(secret),
            "{shown}"
        );
    }
}
