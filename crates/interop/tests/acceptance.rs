//! The cases of `crates/proto/tests/data/acceptance`, judged by a real gRPC: it
//! NACKs what our checks reject, and ACKs what they accept.
#![allow(clippy::expect_used, reason = "all of this is tests")]

#[path = "../../proto/tests/acceptance_cases/mod.rs"]
mod acceptance_cases;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use acceptance_cases::Case;
use interop::Script;
use trunkline_proto::descriptor::types;
use trunkline_proto::text::{self, Options};

const RULES: [&str; 8] = ["c13", "c14", "c56", "c57", "c58", "c59", "c60", "c61"];

/// More than all cases take on a busy machine.
const SOON: Duration = Duration::from_secs(300);

/// Servers have a name for each port. Nothing listens there, since no listener
/// is for such an address.
const FIRST_PORT: usize = 20_000;

/// A client with one certificate provider, whose files are never read, and with
/// one authority.
const BOOTSTRAP: &str = r#"{
    "xds_servers": [{"server_uri": "127.0.0.1:PORT",
        "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
    "node": {"id": "judge"},
    "authorities": {"a": {}},
    "certificate_providers": {"default": {"plugin_name": "file_watcher",
        "config": {"certificate_file": "/none", "private_key_file": "/none",
            "ca_certificate_file": "/none"}}},
    "server_listener_resource_name_template": "%s"
}"#;

/// A case on its way to gRPC.
struct Asked<'a> {
    case: &'a Case,
    /// The name that it has there.
    name: String,
    /// Its line of the file.
    line: String,
}

/// Gives a case a name of its own, and returns its line; `None` for a type that
/// gRPC does not have, and for a resource without a name.
fn ask(case: &Case, number: usize) -> Option<Asked<'_>> {
    let mut read = text::read("f.yaml", &case.text, &Options::default());
    let resource = read.resources.pop().expect("a resource");
    let side = match &*resource.type_url {
        types::VIRTUAL_HOST => return None,
        types::LISTENER if !case.text.contains("api_listener:") => "server",
        _ => "client",
    };
    let name = match side {
        "server" => format!("127.0.0.1:{}", FIRST_PORT + number),
        _ => format!("case{number}"),
    };
    // The name is in the first line after the type.
    let (type_line, body) = case.text.split_once('\n').expect("a type");
    let (name_line, fields) = body.split_once('\n').expect("a name");
    let (field, old) = name_line.split_once(": ").expect("a name");
    if !["name", "cluster_name"].contains(&field) {
        return None;
    }
    let name = match old.strip_suffix("/x") {
        Some(xdstp) => format!("{xdstp}/{name}"),
        None => name,
    };
    let renamed = format!("{type_line}\n{field}: {name:?}\n{fields}");
    let mut read = text::read("f.yaml", &renamed, &Options::default());
    let body = read.resources.pop().expect("a resource").body;
    let hex = body.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let line = format!("{name} {side} {} {hex}", resource.type_url);
    Some(Asked { case, name, line })
}

#[test]
fn c13_c14_c56_c57_c58_c59_c60_c61_grpc_is_of_the_same_opinion() {
    let rules = RULES.iter().flat_map(|rule| acceptance_cases::read(rule));
    let cases: Vec<Case> = rules.collect();
    let asked = cases.iter().enumerate();
    let asked: Vec<_> = asked
        .filter_map(|(number, case)| ask(case, number))
        .collect();
    assert!(asked.len() > 180, "{}", asked.len());
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let folder = interop::folder("cases");
    let files = ["cases.txt", "verdicts.txt"].map(|name| folder.join(name));
    let [cases_file, verdicts_file] = &files;
    fs::write(cases_file, lines.join("\n")).expect("a file");

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/py/judge.py");
    let mut judge = Script::start(
        Path::new(script),
        &files.each_ref().map(|file| file.to_str().expect("a path")),
        &[("GRPC_XDS_BOOTSTRAP_CONFIG", BOOTSTRAP)],
    );
    assert_eq!(judge.finish(SOON), Some(0), "{}", judge.text());
    let verdicts = fs::read_to_string(verdicts_file).expect("verdicts");

    let mut wrong = Vec::new();
    for Asked { case, name, .. } in &asked {
        let start = format!("{name} ");
        let verdict = verdicts.lines().find_map(|line| line.strip_prefix(&start));
        let verdict = verdict.unwrap_or("silence");
        // Silence is neither.
        let is_expected = match case.is_accepted == case.grpc_agrees {
            true => verdict == "ACK",
            false => verdict.starts_with("NACK"),
        };
        if !is_expected {
            wrong.push(format!("{}: {verdict}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
