//! `trunkline validate --envoy` with a program that behaves as Envoy does: what
//! is judged, and where its words are told. crates/interop has the real one.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{CLUSTER, ROUTES, bad, good, run, said};

/// Rejects a bootstrap that holds `broken`, and one that holds both `red` and
/// `blue`. It counts its runs in a file beside it.
const JUDGE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
  echo "envoy  version: 9e55/1.40.9/Clean/RELEASE/BoringSSL"
  exit 0
fi
echo run >> "$0.runs"
for bootstrap; do :; done
reject() {
  echo "[2026-01-01 00:00:00.000][1][critical] error initializing configuration '$bootstrap': $1" >&2
  exit 1
}
if grep -q red "$bootstrap" && grep -q blue "$bootstrap"; then reject "two colours"; fi
if grep -q broken "$bootstrap"; then reject "it is 'broken-7', and secret"; fi
exit 0
"#;

struct Bench {
    dir: tempfile::TempDir,
    envoy: PathBuf,
}

impl Bench {
    fn new(judge: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let envoy = dir.path().join("judge");
        std::fs::write(&envoy, judge).unwrap();
        std::fs::set_permissions(&envoy, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir, envoy }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        text_of(&path)
    }

    fn validate(&self, path: &str) -> Output {
        run(&["validate", path, "--envoy", &text_of(&self.envoy)])
    }
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn clusters(names: impl IntoIterator<Item = String>) -> String {
    let mut text = "resources:\n".to_owned();
    for name in names {
        text += &format!(
            "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: {name}\n"
        );
    }
    text
}

#[test]
fn what_envoy_says_is_told_at_the_resource() {
    let bench = Bench::new(JUDGE);
    let names = (0..20).map(|i| match i {
        7 | 12 => format!("broken-{i}"),
        _ => format!("cluster-{i}"),
    });
    let path = bench.write("clusters.yaml", &clusters(names));
    let output = bench.validate(&path);
    let expected: String = [(16, 7), (26, 12)]
        .iter()
        .map(|(line, index)| {
            format!(
                "error: {path}:{line}:3: resources[{index}]: Envoy 1.40.9 says: it is 'broken-7', \
                 and secret\n   |\n{line} | - \"@type\": \
                 type.googleapis.com/envoy.config.cluster.v3.Cluster\n   |   ^^^^^^^\n"
            )
        })
        .collect();
    assert_eq!(bad(&output, 1), format!("{expected}error: 2 mistakes\n"));
    // The named one is tried alone, the other one is found by halves.
    let runs = std::fs::read_to_string(bench.envoy.with_extension("runs")).unwrap();
    assert!(runs.lines().count() < 12, "{}", runs.lines().count());
}

#[test]
fn what_envoy_takes_is_valid() {
    let bench = Bench::new(JUDGE);
    let path = bench.write("all.yaml", CLUSTER);
    let said = good(&bench.validate(&path));
    assert_eq!(
        said,
        "1 resource in 1 file is valid, and Envoy 1.40.9 takes it\n"
    );
    // An own mistake is told without Envoy.
    let path = bench.write("all.yaml", &CLUSTER.replace("name:", "nam:"));
    let said = bad(&bench.validate(&path), 1);
    assert!(
        said.contains("unknown field \"nam\"") && !said.contains("Envoy"),
        "{said}"
    );
}

#[test]
fn variants_are_judged_as_clients_get_them() {
    let bench = Bench::new(JUDGE);
    let variant = |name: &str, env: &str, alt: &str| {
        format!(
            r#"- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: {name}
  resource_name: {{name: {name}, dynamic_parameter_constraints: "env={env}"}}
  resource:
    "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: {name}
    alt_stat_name: {alt}
"#
        )
    };
    let good_ones = [
        variant("a", "prod", "red"),
        variant("a", "dev", "blue"),
        variant("b", "dev", "blue"),
        variant("b", "prod", "red"),
    ];
    let path = bench.write("all.yaml", &format!("resources:\n{}", good_ones.concat()));
    good(&bench.validate(&path));

    let bad_ones = [good_ones[0].clone(), variant("b", "prod", "blue")];
    let path = bench.write("all.yaml", &format!("resources:\n{}", bad_ones.concat()));
    let said = bad(&bench.validate(&path), 1);
    assert!(
        said.contains(&format!(
            "{path}:13:5: resources[1].resource: Envoy 1.40.9 says: two colours"
        )),
        "{said}"
    );
}

#[test]
fn resources_that_no_bootstrap_holds_are_named() {
    let bench = Bench::new(JUDGE);
    let text = format!(
        "{ROUTES}- \"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime\n  name: r\n"
    );
    let path = bench.write("all.yaml", &text);
    let output = bench.validate(&path);
    good(&output);
    assert!(
        said(&output).contains("note: Envoy did not judge 1 rtds"),
        "{}",
        said(&output)
    );
}

#[test]
fn many_mistakes_are_cut() {
    let bench = Bench::new(&JUDGE.replace("broken-7", "one"));
    let path = bench.write(
        "all.yaml",
        &clusters((0..30).map(|i| format!("broken-{i}"))),
    );
    let said = bad(&bench.validate(&path), 1);
    assert!(
        said.ends_with("error: 20 mistakes, and Envoy may find more\n"),
        "{said}"
    );
}

#[test]
fn an_envoy_is_found_or_asked_for() {
    let bench = Bench::new(JUDGE);
    let path = bench.write("all.yaml", CLUSTER);
    let with_path = |dirs: &Path, args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .args(args)
            .env("PATH", dirs)
            .current_dir(bench.dir.path())
            .output()
            .unwrap()
    };
    let installed = bench.dir.path().join("bin");
    std::fs::create_dir(&installed).unwrap();
    let none = "error: no Envoy is installed in a directory of PATH; install one, or name one \
                with --envoy PROGRAM\n";
    assert_eq!(
        bad(&with_path(&installed, &["validate", "--envoy", &path]), 1),
        none
    );
    std::os::unix::fs::symlink("/bin/sh", installed.join("sh")).unwrap();
    std::fs::copy(&bench.envoy, installed.join("envoy")).unwrap();
    // The judge needs grep.
    let dirs = format!("{}:/usr/bin:/bin", installed.display());
    for args in [
        ["validate", "--envoy", &path],
        ["validate", &path, "--envoy"],
    ] {
        let said = good(&with_path(Path::new(&dirs), &args));
        assert!(said.contains("Envoy 1.40.9 takes it"), "{said}");
    }

    let said = bad(&run(&["validate", "--envoy", "/no/such/envoy", &path]), 1);
    assert!(
        said.contains("--envoy /no/such/envoy: there is no such file"),
        "{said}"
    );
    let said = bad(&run(&["validate", "--envoy", "/bin/true", &path]), 1);
    assert!(
        said.contains("--envoy /bin/true: does not tell a version"),
        "{said}"
    );
    let said = bad(&run(&["validate", "--envoy"]), 2);
    assert!(said.contains("which files?"), "{said}");
}

#[test]
fn an_envoy_that_takes_nothing_is_told() {
    let judge = JUDGE.replace("if grep -q broken \"$bootstrap\"; then", "if true; then");
    let bench = Bench::new(&judge);
    let path = bench.write("all.yaml", CLUSTER);
    let said = bad(&bench.validate(&path), 1);
    assert!(
        said.contains("Envoy 1.40.9 takes no configuration at all"),
        "{said}"
    );
}
