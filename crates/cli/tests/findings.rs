//! Findings as people read them: whole messages, in one order, with the line of
//! the file and a caret.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::process::Command;

use support::{CLUSTER, ROUTES, SECRET, Server, bad, good, run, run_with, said};

/// Writes files into a directory of their own, and returns it with its path.
fn directory(files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let path = text(dir.path());
    (dir, path)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A cluster with a slip in a field.
fn slip() -> String {
    CLUSTER.replace("connect_timeout", "conect_timeout")
}

/// The lines below the headline of [`slip`].
const SLIP_LINES: &str = "  |
4 |   conect_timeout: 1s
  |   ^^^^^^^^^^^^^^
";

/// Checks the findings about [`slip`] in a file, and returns what follows them.
fn after_slip<'a>(error: &'a str, file: &str) -> &'a str {
    let headline = format!("error: {file}:4:3: resources[0]: unknown field \"conect_timeout\"");
    let rest = error
        .strip_prefix(&headline)
        .unwrap_or_else(|| panic!("{error}"));
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.strip_prefix(SLIP_LINES)
        .unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn a_finding_shows_its_line_in_every_command() {
    let (_dir, path) = directory(&[("a.yaml", &slip())]);
    let file = format!("{path}/a.yaml");
    let error = bad(&run(&["validate", &file]), 1);
    assert_eq!(after_slip(&error, &file), "error: 1 mistake\n");
    let error = bad(&run_with(&["validate", "-"], &slip()), 1);
    assert_eq!(after_slip(&error, "standard input"), "error: 1 mistake\n");

    let server = Server::start(&[]);
    let nothing = "error: 1 mistake; nothing was changed\n";
    for command in [
        &["apply", "-f", &file][..],
        &["apply", "-f", &path],
        &["delete", "-f", &path],
    ] {
        let error = bad(&server.ask(command), 1);
        assert_eq!(after_slip(&error, &file), nothing, "{command:?}");
    }
    let error = bad(&server.ask(&["diff", "-f", &file]), 2);
    assert_eq!(after_slip(&error, &file), nothing);
    for command in ["apply", "delete"] {
        let error = bad(&server.ask_with(&[command, "-f", "-"], &slip()), 1);
        assert_eq!(after_slip(&error, "standard input"), nothing);
    }
    assert!(server.names("cds").is_empty());
}

#[test]
fn a_second_place_is_a_note() {
    let (_dir, path) = directory(&[("a.yaml", CLUSTER), ("b.yaml", CLUSTER)]);
    let expected = format!(
        "error: {path}/b.yaml:2:3: resources[0]: cluster \"backend\" is there already, at \
         {path}/a.yaml:2:3; remove one or rename it\n  |\n\
         2 | - \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  |   ^^^^^^^\n\
         note: {path}/a.yaml:2:3: the other one\n  |\n\
         2 | - \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  |   ^^^^^^^\n"
    );
    let error = bad(&run(&["validate", &path]), 1);
    assert_eq!(error, format!("{expected}error: 1 mistake\n"));
    let server = Server::start(&[]);
    let error = bad(&server.ask(&["apply", "-f", &path]), 1);
    assert_eq!(
        error,
        format!("{expected}error: 1 mistake; nothing was changed\n")
    );

    // The server finds it, and tells both places.
    let twice = format!("{CLUSTER}{}", CLUSTER.replace("resources:\n", ""));
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &twice), 1);
    assert_eq!(
        error,
        "error: standard input:5:3: resources[1]: cluster \"backend\" is there already, at 2:3; \
         remove one or rename it\n  |\n\
         5 | - \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  |   ^^^^^^^\n\
         note: standard input:2:3: the other one\n  |\n\
         2 | - \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  |   ^^^^^^^\n\
         error: 1 mistake; nothing was changed\n"
    );
}

#[test]
fn a_line_with_a_secret_is_not_shown() {
    let wrong = SECRET.replace("name:", "nam:");
    let error = bad(&run_with(&["validate", "-"], &wrong), 1);
    assert!(error.starts_with("error: standard input:3:3: "), "{error}");
    assert_eq!(error.lines().count(), 2, "{error}");
    let slip = CLUSTER.replace("connect_timeout: 1s", "pasword: swordfish");
    let error = bad(&run_with(&["validate", "-"], &slip), 1);
    assert!(!error.contains("swordfish"), "{error}");
    let server = Server::start(&[]);
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &slip), 1);
    assert!(!error.contains("swordfish"), "{error}");
}

#[test]
fn findings_are_in_the_order_of_files_and_lines() {
    let cluster = "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n";
    let several = format!("resources:\n{cluster}  nam: a\n{cluster}  name: b\n  tipe: EDS\n");
    let dangling = ROUTES.replace("backend", "nowhere");
    let (_dir, path) = directory(&[
        ("b.yaml", &several),
        (
            "a.yaml",
            &format!("{several}{}", dangling.replace("resources:\n", "")),
        ),
    ]);
    let (a, b) = (format!("{path}/a.yaml"), format!("{path}/b.yaml"));
    let headlines = |paths: &[&str]| {
        let error = bad(&run(&[&["validate"], paths].concat()), 1);
        let lines = error.lines().filter(|line| line.contains(".yaml:"));
        let places = lines.map(|line| {
            let parts: Vec<&str> = line.splitn(5, ':').collect();
            parts[..4].join(":")
        });
        (places.collect::<Vec<_>>(), error)
    };
    let (places, error) = headlines(&[&b, &a]);
    let expected = [
        format!("error: {b}:3:3"),
        format!("error: {b}:6:3"),
        format!("error: {a}:3:3"),
        format!("error: {a}:6:3"),
    ];
    assert_eq!(places, expected, "{error}");
    assert!(error.ends_with("error: 4 mistakes\n"), "{error}");
    for _ in 0..3 {
        assert_eq!(headlines(&[&b, &a]).1, error);
    }
}

#[test]
fn what_is_left_out_is_counted() {
    let slips: String = (0..60).map(|n| format!("  slip_{n}: 1\n")).collect();
    let cluster = "resources:\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n";
    let wrong = format!("{cluster}  name: a\n{slips}");
    let (_dir, path) = directory(&[("a.yaml", &wrong), ("b.yaml", &wrong)]);
    let error = bad(&run(&["validate", &path]), 1);
    assert!(
        error.ends_with("and 20 more\nerror: 120 mistakes\n"),
        "{error}"
    );
    assert_eq!(error.matches("unknown field").count(), 100);

    // Of one file no more are kept.
    let (_dir, path) = directory(&[(
        "a.yaml",
        &format!("{wrong}{}", slips.replace("slip", "slap")),
    )]);
    let error = bad(&run(&["validate", &path]), 1);
    assert!(error.ends_with("error: 100 mistakes or more\n"), "{error}");
}

#[test]
fn numbers_are_singular_and_plural() {
    let valid = good(&run_with(&["validate", "-"], CLUSTER));
    assert_eq!(valid, "1 resource in 1 file is valid\n");
    let (_dir, path) = directory(&[("a.yaml", CLUSTER), ("b.yaml", ROUTES)]);
    let valid = good(&run(&["validate", &path]));
    assert_eq!(valid, "2 resources in 2 files are valid\n");
    let (_dir, path) = directory(&[("a.yaml", CLUSTER), ("b.yaml", "resources: []\n")]);
    let valid = good(&run(&["validate", &path]));
    assert_eq!(valid, "1 resource in 2 files is valid\n");
}

/// Runs `validate` with variables of the environment.
fn validate_in(variables: &[(&str, &str)], args: &[&str]) -> String {
    let (_dir, path) = directory(&[("a.yaml", &slip())]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.arg("validate").args(args).arg(&path);
    for name in ["NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    said(&command.output().unwrap())
}

#[test]
fn colours_are_a_matter_of_the_flag_and_the_environment() {
    let plain = validate_in(&[], &[]);
    assert!(plain.starts_with("error: "), "{plain}");
    assert!(!plain.contains('\x1b'), "{plain}");
    let coloured = validate_in(&[], &["--color", "always"]);
    assert!(
        coloured.starts_with("\x1b[1;31merror\x1b[0m: "),
        "{coloured}"
    );
    assert!(
        coloured.contains("\x1b[1;31m^^^^^^^^^^^^^^\x1b[0m\n"),
        "{coloured}"
    );
    assert!(
        coloured.ends_with("\x1b[1;31merror\x1b[0m: 1 mistake\n"),
        "{coloured}"
    );

    let forced = [("CLICOLOR_FORCE", "1")];
    assert!(validate_in(&forced, &[]).contains('\x1b'));
    assert!(!validate_in(&forced, &["--color", "never"]).contains('\x1b'));
    let both = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    assert!(!validate_in(&both, &[]).contains('\x1b'));
}

/// Routes with a cluster that is not there, and one of nearly that name.
fn dangling() -> String {
    let routes = ROUTES.replace("cluster: backend", "cluster: bakend");
    format!("{CLUSTER}{}", routes.replace("resources:\n", ""))
}

/// The finding about [`dangling`], and its lines.
const DANGLING: &str = "10:52: resources[1].virtual_hosts[0].routes[0].route.cluster: refers to \
    cluster \"bakend\", which is not there; did you mean \"backend\"?
   |
10 |     routes: [{match: {prefix: /}, route: {cluster: bakend}}]
   |                                                    ^^^^^^
";

#[test]
fn a_dangling_reference_is_found_at_its_own_place() {
    let (_dir, path) = directory(&[("a.yaml", &dangling())]);
    let file = format!("{path}/a.yaml");
    let output = run(&["validate", &file]);
    assert_eq!(good(&output), "2 resources in 1 file are valid\n");
    assert_eq!(said(&output), format!("warning: {file}:{DANGLING}"));
    let refuse = ["validate", "--dangling", "error", &file];
    let error = bad(&run(&refuse), 1);
    assert_eq!(error, format!("error: {file}:{DANGLING}error: 1 mistake\n"));
    let input = "standard input";
    let output = run_with(&["validate", "-"], &dangling());
    assert_eq!(said(&output), format!("warning: {input}:{DANGLING}"));
    let error = bad(
        &run_with(&["validate", "--dangling", "error", "-"], &dangling()),
        1,
    );
    assert_eq!(
        error,
        format!("error: {input}:{DANGLING}error: 1 mistake\n")
    );

    // Without a name that is near, with JSON, and in the second document.
    let far = dangling().replace("bakend", "nowhere");
    let output = run_with(&["validate", "-"], &far);
    assert!(
        said(&output).contains("\"nowhere\", which is not there; add it or correct the name\n"),
        "{}",
        said(&output)
    );
    let documents = format!("{CLUSTER}---\n{}", ROUTES.replace("backend", "bakend"));
    let output = run_with(&["validate", "-"], &documents);
    let second = "warning: standard input:12:52: resources[0].virtual_hosts[0].routes[0].route";
    assert!(said(&output).starts_with(second), "{}", said(&output));
}

#[test]
fn a_server_finds_a_reference_at_its_own_place() {
    let (_dir, path) = directory(&[("a.yaml", &dangling())]);
    let file = format!("{path}/a.yaml");
    let server = Server::start(&[]);
    // As a text, as one of several files, and compared.
    for command in [
        &["apply", "-f", &file, "--dry-run"][..],
        &["apply", "-f", &path, "--dry-run"],
        &["diff", "-f", &file],
    ] {
        let output = server.ask(command);
        assert_eq!(
            said(&output),
            format!("warning: {file}:{DANGLING}"),
            "{command:?}"
        );
    }
    let strict = Server::start(&["--dangling", "error"]);
    let error = bad(&strict.ask(&["apply", "-f", &file]), 1);
    let end = "error: 1 mistake; nothing was changed\n";
    assert_eq!(error, format!("error: {file}:{DANGLING}{end}"));

    // In a file that is served.
    let server = Server::start(&["--config", &path]);
    let (_, files) = server.get("/api/v1/files");
    let place = format!("{file}:10:52: resources[1].virtual_hosts[0].routes[0].route.cluster: ");
    assert!(files.contains(&place), "{files}");
}

#[test]
fn a_reference_of_a_variant_is_found_where_it_is_written() {
    let when = |value: &str| format!("{{filter_metadata: {{trunkline: {{when: {value}}}}}}}");
    let text = format!(
        r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r
  virtual_hosts:
  - name: v
    domains: ["*"]
    routes:
    - match: {{prefix: /a}}
      direct_response: {{status: 200}}
      metadata: {}
    - match: {{prefix: /b}}
      route: {{cluster: nowhere}}
      metadata: {}
"#,
        when("env=test"),
        when("NOT env=test")
    );
    let output = run_with(&["validate", "-"], &text);
    let expected = "warning: standard input:12:24: \
                    resources[0].virtual_hosts[0].routes[1].route.cluster: refers to ";
    assert!(said(&output).starts_with(expected), "{}", said(&output));
}

#[test]
fn of_several_others_the_first_is_named_every_time() {
    let (_dir, path) = directory(&[]);
    let variant = |constraints: &str| {
        format!(
            "- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n  \
             resource_name: {{name: c, dynamic_parameter_constraints: {constraints}}}\n  \
             resource: {{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c}}\n"
        )
    };
    let several = ["env=a", "env=b", "env=c", "env=d", "env exists"].map(variant);
    let file = format!("{path}/a.yaml");
    std::fs::write(&file, format!("resources:\n{}", several.concat())).unwrap();
    for _ in 0..4 {
        let error = bad(&run(&["validate", &file]), 1);
        assert!(
            error.contains(&format!("the one at {file}:4:13 [env=a]")),
            "{error}"
        );
    }
}
