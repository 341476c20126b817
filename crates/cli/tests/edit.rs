//! `trunkline edit`: a resource in an editor, and what becomes of it.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{CLUSTER, SECRET, Server, bad, good};

/// Edits with a script for an editor, whose file is `$1`. Each time that it is
/// opened, it is given the text that it finds in `seen`.
struct Editor {
    dir: tempfile::TempDir,
}

impl Editor {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("editor");
        let seen = dir.path().join("seen");
        let script = format!("#!/bin/sh\ncat \"$1\" >> {}\n{script}\n", seen.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    fn edit(&self, server: &Server, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .arg("edit")
            .args(args)
            .args(["--admin", &server.admin.to_string()])
            .env_remove("VISUAL")
            .env("EDITOR", self.dir.path().join("editor"))
            .env("TMPDIR", self.dir.path())
            .output()
            .unwrap()
    }

    fn seen(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("seen")).unwrap()
    }

    /// Returns the file that a message says the text is kept in.
    fn kept(&self, said: &str) -> PathBuf {
        let (_, path) = said.trim().rsplit_once("the text is kept in ").unwrap();
        let path = PathBuf::from(path);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        path
    }

    /// Checks that no text is left behind.
    fn assert_no_text(&self) {
        let files = std::fs::read_dir(self.dir.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = names
            .filter(|name| name.starts_with("trunkline-edit-"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

fn apply(server: &Server, text: &str) {
    good(&server.ask_with(&["apply", "-f", "-"], text));
}

fn timeout_of(server: &Server) -> String {
    let yaml = good(&server.ask(&["get", "cds/backend", "-o", "yaml"]));
    let line = yaml.lines().find(|line| line.contains("connect_timeout"));
    line.unwrap().trim().to_owned()
}

#[test]
fn what_is_saved_is_applied_for_its_origin() {
    let server = Server::start(&[]);
    let team = ["apply", "-f", "-", "--origin", "team-a"];
    good(&server.ask_with(&team, CLUSTER));
    let editor = Editor::new("sed -i 's/\"1s\"/\"7s\"/' \"$1\"");
    let said = good(&editor.edit(&server, &["cds/backend"]));
    assert!(said.contains("cds/backend changed"), "{said}");
    assert_eq!(timeout_of(&server), "connect_timeout: \"7s\"");
    let wide = good(&server.ask(&["get", "cds/backend", "-o", "wide"]));
    assert!(wide.contains("team-a"), "{wide}");
    let seen = editor.seen();
    let head = "# cds/backend of origin \"team-a\", at revision 1.\n";
    assert!(seen.starts_with(head), "{seen}");
    editor.assert_no_text();

    let editor = Editor::new(":");
    let said = good(&editor.edit(&server, &["clusters", "backend"]));
    assert_eq!(said, "unchanged: nothing was applied\n");
    editor.assert_no_text();
}

#[test]
fn a_mistake_opens_the_editor_again() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let script = r#"if grep -q mistake "$1"; then sed -i 's/nam:/name:/; s/"1s"/"7s"/' "$1"
else sed -i 's/name:/nam:/' "$1"; fi"#;
    let editor = Editor::new(script);
    good(&editor.edit(&server, &["cds/backend"]));
    assert_eq!(timeout_of(&server), "connect_timeout: \"7s\"");
    let seen = editor.seen();
    let second = &seen[seen.rfind("# cds/backend of").unwrap()..];
    assert!(
        second.contains("\n# 1 mistake; nothing was changed:\n# line "),
        "{second}"
    );
    let told = second
        .lines()
        .find(|line| line.starts_with("# line "))
        .unwrap();
    assert!(told.contains("unknown field \"nam\""), "{told}");
    let line: usize = told["# line ".len()..]
        .split(':')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        second
            .lines()
            .nth(line - 1)
            .unwrap()
            .contains("nam: backend"),
        "{second}"
    );

    // Saved again with its mistake, the text is kept.
    let editor = Editor::new("sed -i 's/7s/-1s/' \"$1\"");
    let said = bad(&editor.edit(&server, &["cds/backend"]), 1);
    assert!(
        said.contains("the mistakes are still there; nothing was changed"),
        "{said}"
    );
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(text.contains("-1s"), "{text}");
    assert_eq!(timeout_of(&server), "connect_timeout: \"7s\"");
}

#[test]
fn another_name_or_a_missing_variant_is_a_mistake() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let editor = Editor::new("sed -i 's/name: .*/name: other/' \"$1\"");
    let said = bad(&editor.edit(&server, &["cds/backend"]), 1);
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(
        text.contains("# cds/other is another resource than cds/backend"),
        "{text}"
    );
    assert_eq!(server.names("cds"), ["backend"]);

    let variant = |env: &str| {
        format!(
            r#"- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: v
  resource_name: {{name: v, dynamic_parameter_constraints: "env={env}"}}
  resource:
    "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: v
    alt_stat_name: of-{env}
"#
        )
    };
    apply(
        &server,
        &format!("resources:\n{}{}", variant("dev"), variant("prod")),
    );
    let editor = Editor::new("sed -i 's/of-/for-/' \"$1\"");
    good(&editor.edit(&server, &["cds/v"]));
    assert!(editor.seen().contains("of-dev") && editor.seen().contains("of-prod"));
    let editor = Editor::new("sed -i 's/for-/of-/' \"$1\"");
    let said = good(&editor.edit(&server, &["cds/v", "--variant", "env=prod"]));
    assert!(said.contains("cds/v [env=prod] changed"), "{said}");
    assert!(!editor.seen().contains("for-dev"));

    let one = format!("resources:\n{}", variant("dev"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), one).unwrap();
    let editor = Editor::new(&format!("cat {} > \"$1\"", file.path().display()));
    let said = bad(&editor.edit(&server, &["cds/v"]), 1);
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(
        text.contains("# the variant [env=prod] is missing"),
        "{text}"
    );
    let said = bad(
        &editor.edit(&server, &["cds/v", "--variant", "env=test"]),
        1,
    );
    assert!(
        said.contains("there is no cds/v [env=test]; its variants are: env=dev; env=prod"),
        "{said}"
    );
}

#[test]
fn an_editor_that_fails_and_an_empty_file_change_nothing() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let editor = Editor::new("exit 3");
    let said = bad(&editor.edit(&server, &["cds/backend"]), 1);
    assert!(
        said.contains("failed (exit status: 3), so nothing was changed"),
        "{said}"
    );
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(text.contains("name: backend"), "{text}");

    let editor = Editor::new(": > \"$1\"");
    let said = bad(&editor.edit(&server, &["cds/backend"]), 1);
    assert!(
        said.contains("the file was empty; nothing was changed"),
        "{said}"
    );
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(text.contains("name: backend"), "{text}");
    assert_eq!(timeout_of(&server), "connect_timeout: \"1s\"");
}

#[test]
fn somebody_else_is_not_overwritten() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let change = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let script = format!(
            "{} apply -f {} --admin {} > /dev/null\nsed -i 's/\"1s\"/\"7s\"/' \"$1\"",
            env!("CARGO_BIN_EXE_trunkline"),
            file.path().display(),
            server.admin
        );
        (Editor::new(&script), file)
    };
    // Another resource is no conflict.
    let (editor, _file) = change(&CLUSTER.replace("backend", "other"));
    good(&editor.edit(&server, &["cds/backend"]));
    assert_eq!(timeout_of(&server), "connect_timeout: \"7s\"");

    apply(&server, CLUSTER);
    let (editor, _file) = change(&CLUSTER.replace("1s", "3s"));
    let said = bad(&editor.edit(&server, &["cds/backend"]), 1);
    assert!(
        said.contains(
            "cds/backend was changed in revision 5 by api 127.0.0.1; nothing was applied"
        ),
        "{said}"
    );
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(text.contains("connect_timeout: \"7s\""), "{text}");
    assert_eq!(timeout_of(&server), "connect_timeout: \"3s\"");
}

#[test]
fn what_cannot_be_edited_here_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clusters.yaml");
    std::fs::write(&path, CLUSTER).unwrap();
    let server = Server::start(&["--config", path.to_str().unwrap()]);
    let editor = Editor::new(":");
    let said = bad(&editor.edit(&server, &["cds/backend"]), 1);
    let place = format!("{}:2:3", path.display());
    assert_eq!(
        said,
        format!("error: cds/backend comes from a file; edit it there: {place}\n")
    );
    let said = bad(&editor.edit(&server, &["cds/bakend"]), 1);
    assert!(
        said.contains("there is no cds \"bakend\"; did you mean \"backend\"?"),
        "{said}"
    );
    for words in [&["cds"][..], &["cds", "a", "b"], &["cds/a", "eds/b"]] {
        let said = bad(&editor.edit(&server, words), 2);
        assert!(said.contains("which resource? give one"), "{said}");
    }
    assert!(!Path::new(&editor.dir.path().join("seen")).exists());
}

#[test]
fn a_secret_that_is_not_shown_is_not_applied() {
    let server = Server::start(&[]);
    apply(&server, SECRET);
    let editor = Editor::new("sed -i 's/name: cert/name: cert # edited/' \"$1\"");
    let said = bad(&editor.edit(&server, &["sds/cert"]), 1);
    assert!(!editor.seen().contains("swordfish"));
    let text = std::fs::read_to_string(editor.kept(&said)).unwrap();
    assert!(
        text.contains("which stands for a secret that was not shown"),
        "{text}"
    );
}
