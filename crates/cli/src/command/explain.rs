//! `trunkline explain`: the variant of a resource that a client gets, or the
//! virtual host for a host, and why.

mod variant;

use std::path::Path;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use trunkline_proto::text::Format;

use super::{encode_url, print, run_request};
use crate::cli::{self, StatusOutput};
use crate::client::{Call, Client, content_type};
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::{self, Table};

/// Prints the explanation of a resource, or of a host on demand.
pub(super) fn run(args: &cli::Explain) -> Result<()> {
    let body = request_explanation(args)?;
    // A body that is not JSON becomes null, which has no parameters.
    let explanation: Value = serde_json::from_slice(&body).unwrap_or_default();
    if explanation["parameters"].is_null() {
        return Err(Failure::wrong(
            "the answer is not understood; is --admin the admin address of a trunkline server?",
        ));
    }

    // Only the explanation of a host has the field `asked`.
    let is_of_resource = explanation["asked"].is_null();
    let text = match args.output {
        StatusOutput::Json => output::to_json(&explanation),
        StatusOutput::Table if is_of_resource => variant::write_explanation(&explanation),
        StatusOutput::Table => write_explanation(&explanation) + &candidate_table(&explanation),
    };
    print(text.as_bytes())
}

/// Endings by which `--node` names a file, although there may be none.
const FILE_ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Requests the explanation, and returns the body of the response. Without
/// `--node`, the question is about a client with the given parameters; with a
/// file, about its node; else about a connected client.
fn request_explanation(args: &cli::Explain) -> Result<Bytes> {
    let client = Client::new(&args.remote)?;
    let path = format!("/api/v1/explain?{}", question_query(args)?);

    let Some(node) = &args.node else {
        let params = args.params.as_deref().unwrap_or_default();
        let path = format!("{path}&params={}", encode_url(params));
        return run_request(client.get(&path));
    };
    if !names_file(node)? {
        let path = format!("{path}&node={}", encode_url(node));
        return run_request(client.get(&path));
    }

    let body =
        std::fs::read(node).map_err(|error| Failure::wrong(format!("--node {node}: {error}")))?;
    run_request(client.call(Call {
        method: Method::POST,
        path: &path,
        content_type: content_type(Format::of(node)),
        body,
        file: node,
    }))
}

/// Returns whether `--node` names a file rather than a connected client.
///
/// # Errors
/// The file does not exist, but the text is an absolute path or has the ending
/// of a file, so it can hardly be the id of a client.
fn names_file(node: &str) -> Result<bool> {
    let path = Path::new(node);
    if path.is_file() {
        return Ok(true);
    }
    let looks_like_file =
        path.is_absolute() || FILE_ENDINGS.iter().any(|ending| node.ends_with(ending));
    match looks_like_file {
        true => Err(Failure::wrong(format!(
            "--node {node}: there is no such file"
        ))),
        false => Ok(false),
    }
}

/// Writes the query about a resource if the command line has a type, else about
/// a host. The parser of the command line requires one of the two.
fn question_query(args: &cli::Explain) -> Result<String> {
    let encoded_value = |text: &Option<String>| encode_url(text.as_deref().unwrap_or_default());
    let Some(kind) = &args.kind else {
        let (route, host) = (encoded_value(&args.route), encoded_value(&args.host));
        return Ok(format!("route={route}&host={host}"));
    };
    let kind = kinds::parse(kind).map_err(Failure::usage)?;
    let (kind, name) = (encode_url(kind.as_str()), encoded_value(&args.name));
    Ok(format!("type={kind}&name={name}"))
}

/// Writes the explanation of a host, one fact per line. The line of parameters
/// is left out if the client has none.
fn write_explanation(answer: &Value) -> String {
    let mut lines = vec![
        ("asked for", text(&answer["asked"])),
        ("virtual host", describe_match(&answer["virtual_host"])),
        ("given", describe_answer(answer)),
        ("base set", describe_base(&answer["base"])),
    ];
    let parameters = &answer["parameters"];
    let has_parameters = parameters.as_array().is_some_and(|list| !list.is_empty());
    if has_parameters {
        lines.insert(1, ("parameters", variant::write_parameters(parameters)));
    }
    lines.extend(client_lines(answer));
    align(lines)
}

/// Returns the lines about a connected client. Returns none if the question is
/// not about one.
fn client_lines(answer: &Value) -> Vec<(&'static str, String)> {
    let client = &answer["client"];
    let Some(streams) = client["streams"].as_array() else {
        return Vec::new();
    };

    let mut lines = Vec::new();
    let is_separate = |stream: &Value| stream["aggregated"] == false;
    if is_in_base(&answer["base"]) && streams.iter().any(is_separate) {
        let hint = "but on a stream of its own only when the client comes back: the first time \
                     it does not say for which route configuration it is";
        lines.push(("", hint.to_owned()));
    }

    if streams.is_empty() {
        lines.push(("client", describe_unsubscribed(client).to_owned()));
    }
    for stream in streams {
        lines.push(("client", describe_stream(client, stream)));
    }
    lines
}

/// Writes lines of a heading and a value, with all values in one column.
fn align(lines: Vec<(&str, String)>) -> String {
    let line = |(key, value): (&str, String)| {
        let value = output::printable(&value);
        format!("{key:<13} {value}\n")
    };
    lines.into_iter().map(line).collect()
}

/// Returns the text of a value; an empty one, if the value is not a text.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the texts in a list; none, if the value is not a list.
fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// Describes the matching virtual host: its name, the domain that matches, and
/// its variant; or says that none matches.
fn describe_match(virtual_host: &Value) -> String {
    let Some(name) = virtual_host["name"].as_str() else {
        return "none: no domain of this route configuration matches".to_owned();
    };
    let mut line = match virtual_host["domain"].as_str() {
        Some(domain) => format!("{name}, by its domain {domain}"),
        None => format!("{name}, which is only called so: no domain matches"),
    };
    if let Some(constraints) = virtual_host["constraints"].as_str() {
        line.push_str(&format!(", in its variant for {constraints}"));
    }
    line
}

/// Describes the answer that the client gets, and its reason: the virtual host
/// in its form, or that the host does not exist.
fn describe_answer(answer: &Value) -> String {
    let reason = match answer["virtual_host"]["because"].as_str() {
        Some(reason) => format!(", because {reason}"),
        None => String::new(),
    };
    let host = &answer["given"];
    let Some(name) = host["name"].as_str() else {
        return format!("that it does not exist{reason}");
    };

    let (version, domains) = (text(&host["version"]), texts(&host["domains"]).join(", "));
    let form = match host["form"].as_str() {
        Some("narrowed") => "for this host alone",
        Some("without_wildcards") => "without its wildcards",
        _ => "whole",
    };
    format!("{name} version {version}, domains {domains}: {form}{reason}")
}

/// Returns whether a client gets the host without a subscription: it is in a
/// base set of the node, or a rule for the node names it.
fn is_in_base(base: &Value) -> bool {
    !texts(&base["by_sets"]).is_empty() || base["by_name"] == true
}

/// Describes whether the host is in a base set of the node, and by which sets
/// or rule; or the reason that it is not.
fn describe_base(base: &Value) -> String {
    let by_sets = texts(&base["by_sets"]).into_iter();
    let mut sources: Vec<String> = by_sets.map(|set| format!("the set {set}")).collect();
    if base["by_name"] == true {
        sources.push("a rule that names it".to_owned());
    }
    if !sources.is_empty() {
        let reason = sources.join(" and ");
        return format!("yes, it comes without being asked for, by {reason}");
    }

    if texts(&base["rules"]).is_empty() {
        return "no: no rule is for this node".to_owned();
    }
    match &texts(&base["sets"])[..] {
        [] => "no: the rules for this node give it no sets".to_owned(),
        sets => format!("no: it is in none of {}", sets.join(", ")),
    }
}

/// Describes the state of the host on a stream of a connected client.
fn describe_stream(client: &Value, stream: &Value) -> String {
    let state = match variant::describe_state(stream, "virtual hosts") {
        Some(state) => state,
        None if stream["is_full"] == true => {
            "asks for as many hosts as it may (--max-hosts), and this one is named by no virtual \
             host: it is told that there is none"
                .to_owned()
        }
        None => describe_unsubscribed(client).to_owned(),
    };
    format!("stream {}: {state}", stream["stream"])
}

/// Describes a client without a subscription to the host. The text also says if
/// the client does not hold the route configuration: without that, it asks for
/// no virtual hosts (VHDS).
fn describe_unsubscribed(client: &Value) -> &'static str {
    match client["has_route"] == true {
        true => "did not ask for it",
        false => "did not ask for it; it does not hold the route configuration either",
    }
}

/// Writes a table of all domains that match, the best first. The client gets
/// the first one that it may see. Returns an empty text if no domain matches.
fn candidate_table(answer: &Value) -> String {
    let candidates = answer["considered"].as_array();
    let Some(candidates) = candidates.filter(|list| !list.is_empty()) else {
        return String::new();
    };

    let mut table = Table::new(&["CONSIDERED", "VIRTUAL HOST", "FOR", ""]);
    let mut has_chosen = false;
    for candidate in candidates {
        let is_seen = candidate["seen"] == true;
        let outcome = if !is_seen {
            "is not for this client"
        } else if has_chosen {
            "comes after it"
        } else {
            "is the one"
        };
        has_chosen |= is_seen;

        let variants = match &texts(&candidate["constraints"])[..] {
            [] => "everybody".to_owned(),
            variants => variants.join("; "),
        };

        table.add_row([
            text(&candidate["domain"]),
            text(&candidate["name"]),
            variants,
            outcome.to_owned(),
        ]);
    }
    format!("\n{}", table.to_text())
}
