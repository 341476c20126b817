//! What people bring as documents: bootstraps, dumps, empty files, and types
//! that are not built in.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};

use prost::Message as _;
use support::{CLUSTER, Server, bad, good, run, said};
use trunkline_proto::prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Writes a file into a directory.
fn write(dir: &tempfile::TempDir, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const BOOTSTRAP: &str = "\
node: {id: node, cluster: c}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 10000}}
  clusters:
  - name: backend
    connect_timeout: 1s
";

#[test]
fn a_bootstrap_is_applied_and_validated() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, "envoy.yaml", BOOTSTRAP);
    let named = "the listener has no name, and is served as \"0.0.0.0_10000\"; \
                 add `name: 0.0.0.0_10000` to it, or another";

    let output = run(&["validate", text(&file)]);
    assert!(good(&output).starts_with("2 resources in 1 file"));
    assert!(said(&output).contains(named), "{}", said(&output));

    let server = Server::start(&[]);
    let output = server.ask(&["apply", "-f", text(&file)]);
    good(&output);
    assert!(said(&output).contains(named), "{}", said(&output));
    assert_eq!(server.names("lds"), ["0.0.0.0_10000"]);
    assert_eq!(server.names("cds"), ["backend"]);
}

#[test]
fn the_servers_own_dump_can_be_applied() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, "a.yaml", CLUSTER);
    let first = Server::start(&["--config", text(&file)]);
    let (status, dump) = first.get("/config_dump");
    assert_eq!(status, 200);

    let dump = write(&dir, "dump.json", dump);
    let second = Server::start(&[]);
    good(&second.ask(&["apply", "-f", text(&dump)]));
    assert_eq!(second.names("cds"), ["backend"]);
    assert!(good(&run(&["validate", text(&dump)])).starts_with("1 resource"));
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let no_files = "has no files of resources; their names end in .yaml, .yml, .json or .pb";
    let empty_dir = dir.path().join("empty");
    std::fs::create_dir(&empty_dir).unwrap();
    let expected = format!("error: {}: {no_files}\n", empty_dir.display());
    assert_eq!(bad(&run(&["validate", text(&empty_dir)]), 1), expected);

    let server = Server::start(&[]);
    let output = server.ask(&["apply", "-f", text(&empty_dir)]);
    assert_eq!(bad(&output, 1), expected);

    for (contents, what) in [
        ("", "it is empty"),
        ("# nothing\n", "all of it is comments"),
    ] {
        let file = write(&dir, "a.yaml", contents);
        let what = format!("holds no resources: {what}");
        let output = run(&["validate", text(&file)]);
        good(&output);
        assert!(said(&output).contains(&what), "{}", said(&output));
        let output = server.ask(&["apply", "-f", text(&file)]);
        assert!(said(&output).contains(&what), "{}", said(&output));
    }
}

/// A set with the type `contrib.Filter`, which has one field.
fn descriptors(of: Type, name: &str) -> Vec<u8> {
    let field = FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(1),
        label: Some(Label::Optional.into()),
        r#type: Some(of.into()),
        ..Default::default()
    };
    let file = FileDescriptorProto {
        name: Some("contrib/filter.proto".into()),
        package: Some("contrib".into()),
        message_type: vec![DescriptorProto {
            name: Some("Filter".into()),
            field: vec![field],
            ..Default::default()
        }],
        syntax: Some("proto3".into()),
        ..Default::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

const EXTENSION: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: f
  typed_config: {"@type": type.googleapis.com/contrib.Filter, depth: 7}
"#;

#[test]
fn types_come_from_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, "f.yaml", EXTENSION);
    let set = write(&dir, "contrib.bin", descriptors(Type::Uint32, "depth"));
    let unknown = "unknown type \"contrib.Filter\"; give its descriptors by --descriptors FILE, \
                   or its bytes in base64 as `value:`";
    let output = run(&["validate", text(&file)]);
    assert!(bad(&output, 1).contains(unknown), "{}", said(&output));
    good(&run(&[
        "validate",
        "--descriptors",
        text(&set),
        text(&file),
    ]));

    // The server decodes a body, by the types that it knows.
    let server = Server::start(&[]);
    let output = server.ask(&["apply", "-f", text(&file), "--descriptors", text(&set)]);
    assert!(bad(&output, 1).contains(unknown), "{}", said(&output));

    // Read by the client, it passes a server that does not know the type.
    let with_types = ["-f", text(dir.path()), "--descriptors", text(&set)];
    good(&server.ask(&[&["apply"], &with_types[..]].concat()));
    assert_eq!(server.names("ecds"), ["f"]);
    good(&server.ask(&[&["diff"], &with_types[..]].concat()));
    good(&server.ask(&[&["delete"], &with_types[..]].concat()));

    let settings = format!("descriptors: {}\n", set.display());
    let settings = write(&dir, "settings.yml.txt", settings);
    let server = Server::start(&["--settings", text(&settings)]);
    good(&server.ask(&["apply", "-f", text(&file)]));
    let shown = good(&server.ask(&["get", "ecds", "f", "-o", "yaml"]));
    assert!(shown.contains("depth: 7"), "{shown}");
}

#[test]
fn bad_descriptors_are_told_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, "a.yaml", CLUSTER);
    let garbage = write(&dir, "garbage.bin", "garbage");
    let missing = dir.path().join("missing.bin");
    for (path, said) in [
        (&garbage, "garbage.bin: is not a FileDescriptorSet: "),
        (&missing, "missing.bin: No such file"),
    ] {
        for args in [&["validate", text(&file)][..], &["serve", "--allow-empty"]] {
            let error = bad(&run(&[args, &["--descriptors", text(path)]].concat()), 2);
            assert!(error.starts_with("error: --descriptors "), "{error}");
            assert!(error.contains(said), "{error}");
        }
    }
    let first = write(&dir, "first.bin", descriptors(Type::Uint32, "depth"));
    let other = write(&dir, "other.bin", descriptors(Type::String, "height"));
    let flags = ["--descriptors", text(&first), "--descriptors", text(&other)];
    let error = bad(&run(&[&["validate", text(&file)], &flags[..]].concat()), 2);
    assert_eq!(
        error,
        format!(
            "error: --descriptors {}: contradicts what is known of contrib.Filter: it has \
             `uint32 depth = 1`, and not `string height = 1`; compile it with the same API of \
             Envoy, or give the type another package\n",
            other.display()
        )
    );
}
