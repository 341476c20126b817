//! `trunkline explain`: the variant of a resource that a client gets, or the
//! virtual host for a host, and why.

mod variant;

use std::path::Path;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use trunkline_proto::text::Format;

use super::{ask, encoded, print};
use crate::cli::{self, StatusOutput};
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::{self, Table};

pub(super) fn run(args: &cli::Explain) -> Result<()> {
    let answer = answer(args)?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if answer["parameters"].is_null() {
        return Err(Failure::wrong(
            "the answer is not understood; is --admin the admin address of a trunkline server?",
        ));
    }
    let text = match args.output {
        StatusOutput::Json => output::json(&answer),
        StatusOutput::Table if answer["asked"].is_null() => variant::lines(&answer),
        StatusOutput::Table => lines(&answer) + &considered(&answer),
    };
    print(text.as_bytes())
}

/// Endings of names that are files.
const SUFFIXES: [&str; 3] = [".yaml", ".yml", ".json"];

/// Asks about a connected client, unless there is a file of the name.
fn answer(args: &cli::Explain) -> Result<Bytes> {
    let client = Client::new(&args.remote)?;
    let path = format!("/api/v1/explain?{}", question(args)?);
    let Some(node) = &args.node else {
        let params = args.params.as_deref().unwrap_or_default();
        let path = format!("{path}&params={}", encoded(params));
        return ask(client.get(&path));
    };
    if !Path::new(node).is_file() {
        if Path::new(node).is_absolute() || SUFFIXES.iter().any(|end| node.ends_with(end)) {
            return Err(Failure::wrong(format!(
                "--node {node}: there is no such file"
            )));
        }
        let path = format!("{path}&node={}", encoded(node));
        return ask(client.get(&path));
    }
    let kind = match Format::of(node) {
        Format::Json => "application/json",
        Format::Yaml => "application/yaml",
    };
    let text =
        std::fs::read(node).map_err(|error| Failure::wrong(format!("--node {node}: {error}")))?;
    ask(client.ask(Method::POST, &path, kind, text, node))
}

/// The question about a resource or a host; clap ensures that one of them is
/// given.
fn question(args: &cli::Explain) -> Result<String> {
    let given = |text: &Option<String>| encoded(text.as_deref().unwrap_or_default());
    let Some(kind) = &args.kind else {
        let (route, host) = (given(&args.route), given(&args.host));
        return Ok(format!("route={route}&host={host}"));
    };
    let kind = kinds::parse(kind).map_err(Failure::usage)?;
    let (kind, name) = (encoded(kind.as_str()), given(&args.name));
    Ok(format!("type={kind}&name={name}"))
}

/// The explanation, one fact in a line.
fn lines(answer: &Value) -> String {
    let mut lines = vec![
        ("asked for", text(&answer["asked"])),
        ("virtual host", virtual_host(&answer["virtual_host"])),
        ("given", given(answer)),
        ("base set", base(&answer["base"])),
    ];
    if answer["parameters"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
    {
        lines.insert(
            1,
            ("parameters", variant::parameters(&answer["parameters"])),
        );
    }
    let client = &answer["client"];
    let streams = client["streams"].as_array();
    let alone = |stream: &Value| stream["aggregated"] == false;
    if comes_unasked(&answer["base"]) && streams.is_some_and(|all| all.iter().any(alone)) {
        let words = "but on a stream of its own only when the client comes back: the first time \
                     it does not say for which route configuration it is";
        lines.push(("", words.to_owned()));
    }
    for stream in streams.into_iter().flatten() {
        lines.push(("client", on_stream(client, stream)));
    }
    if streams.is_some_and(Vec::is_empty) {
        lines.push(("client", without_hosts(client).to_owned()));
    }
    shown(lines)
}

fn shown(lines: Vec<(&str, String)>) -> String {
    let line = |(key, value): (&str, String)| {
        // A client's text must not move the cursor.
        let value = value.replace(|c: char| c.is_control(), " ");
        format!("{key:<13} {value}\n")
    };
    lines.into_iter().map(line).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

fn virtual_host(found: &Value) -> String {
    let Some(name) = found["name"].as_str() else {
        return "none: no domain of this route configuration matches".to_owned();
    };
    let mut line = match found["domain"].as_str() {
        Some(domain) => format!("{name}, by its domain {domain}"),
        None => format!("{name}, which is only called so: no domain matches"),
    };
    if let Some(constraints) = found["constraints"].as_str() {
        line.push_str(&format!(", in its variant for {constraints}"));
    }
    line
}

fn given(answer: &Value) -> String {
    let (given, because) = (&answer["given"], answer["virtual_host"]["because"].as_str());
    let Some(name) = given["name"].as_str() else {
        let because = because.map(|because| format!(", because {because}"));
        return format!("that it does not exist{}", because.unwrap_or_default());
    };
    let (version, domains) = (text(&given["version"]), texts(&given["domains"]).join(", "));
    let form = match given["form"].as_str() {
        Some("narrowed") => "for this host alone",
        Some("without_wildcards") => "without its wildcards",
        _ => "whole",
    };
    let because = because.map(|because| format!(", because {because}"));
    let because = because.unwrap_or_default();
    format!("{name} version {version}, domains {domains}: {form}{because}")
}

fn comes_unasked(base: &Value) -> bool {
    !texts(&base["by_sets"]).is_empty() || base["by_name"] == true
}

fn base(base: &Value) -> String {
    let (sets, by_sets) = (texts(&base["sets"]), texts(&base["by_sets"]));
    let mut by: Vec<String> = by_sets.iter().map(|set| format!("the set {set}")).collect();
    if base["by_name"] == true {
        by.push("a rule that names it".to_owned());
    }
    match (&by[..], &sets[..], &texts(&base["rules"])[..]) {
        ([], _, []) => "no: no rule is for this node".to_owned(),
        ([], [], _) => "no: the rules for this node give it no sets".to_owned(),
        ([], sets, _) => format!("no: it is in none of {}", sets.join(", ")),
        (by, ..) => format!(
            "yes, it comes without being asked for, by {}",
            by.join(" and ")
        ),
    }
}

/// The state of the host on a stream of a connected client.
fn on_stream(client: &Value, stream: &Value) -> String {
    let stands = match variant::stands(stream, "virtual hosts") {
        Some(stands) => stands,
        None if stream["is_full"] == true => {
            "asks for as many hosts as it may (--max-hosts), and this one is named by no virtual \
             host: it is told that there is none"
                .to_owned()
        }
        None => without_hosts(client).to_owned(),
    };
    format!("stream {}: {stands}", stream["stream"])
}

fn without_hosts(client: &Value) -> &'static str {
    match client["has_route"] == true {
        true => "did not ask for it",
        false => "did not ask for it; it does not hold the route configuration either",
    }
}

/// Everything that matches, the best first.
fn considered(answer: &Value) -> String {
    let all = answer["considered"].as_array();
    let Some(all) = all.filter(|all| !all.is_empty()) else {
        return String::new();
    };
    let mut table = Table::new(&["CONSIDERED", "VIRTUAL HOST", "FOR", ""]);
    let mut chosen = false;
    for one in all {
        let seen = one["seen"] == true;
        let outcome = match (seen, chosen) {
            (true, false) => "is the one",
            (true, true) => "comes after it",
            (false, _) => "is not for this client",
        };
        chosen |= seen;
        let variants = match &texts(&one["constraints"])[..] {
            [] => "everybody".to_owned(),
            variants => variants.join("; "),
        };
        table.row([
            text(&one["domain"]),
            text(&one["name"]),
            variants,
            outcome.to_owned(),
        ]);
    }
    format!("\n{}", table.text())
}
