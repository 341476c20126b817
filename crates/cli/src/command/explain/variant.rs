//! The variant of a resource that a client gets, in lines.

use serde_json::Value;

use super::{aligned, text, texts};
use crate::output::Table;

/// Writes the explanation of a resource: one fact in a line, then a table of
/// the variants for other clients.
pub(super) fn lines(answer: &Value) -> String {
    let name = format!("{} {}", text(&answer["type"]), text(&answer["name"]));
    let mut lines = vec![
        ("asked for", name),
        ("parameters", parameters(&answer["parameters"])),
        ("given", chosen(&answer["given"])),
    ];
    let streams = answer["streams"].as_array();
    for stream in streams.into_iter().flatten() {
        let state = state(stream, "this type");
        let state = state.unwrap_or_else(|| "did not ask for it".to_owned());
        lines.push(("client", format!("stream {}: {state}", stream["stream"])));
    }
    if streams.is_some_and(Vec::is_empty) {
        lines.push(("client", "did not ask for anything of this type".to_owned()));
    }
    aligned(lines) + &others(&answer["others"])
}

/// Writes the client's parameters, each with its origin.
pub(super) fn parameters(all: &Value) -> String {
    let one = |one: &Value| {
        let (key, value, by) = (text(&one["key"]), text(&one["value"]), text(&one["by"]));
        format!("{key}={value} (by {by})")
    };
    let all: Vec<String> = all.as_array().into_iter().flatten().map(one).collect();
    match all.is_empty() {
        true => "none".to_owned(),
        false => all.join(", "),
    }
}

/// Tells which variant the client gets, or that there is none for it.
fn chosen(variant: &Value) -> String {
    let version = text(&variant["version"]);
    match variant["constraints"].as_str() {
        _ if variant.is_null() => {
            "that it does not exist: no variant is for this client".to_owned()
        }
        Some(constraints) => format!("version {version}, the variant for {constraints}"),
        None => format!("version {version}, which is for everybody"),
    }
}

/// Tells the state of a name on a stream; `None` if the client neither
/// subscribes to it nor holds it. `kind` says in words what the client may not
/// see, where it may not.
pub(super) fn state(stream: &Value, kind: &str) -> Option<String> {
    Some(
        match (stream["status"].as_str(), cached(&stream["holds"])) {
            _ if stream["may_see"] == false => format!("may not see {kind}"),
            (Some("ACKED"), Some(held)) => format!("asked for it, and holds {held}"),
            (Some("SENT"), Some(held)) => format!("asked for it, and has yet to answer to {held}"),
            (Some("NACKED"), held) => {
                let version = text(&stream["rejected_version"]);
                let kept = held.map(|held| format!(" (it may still hold {held})"));
                let error = text(&stream["error"]);
                format!(
                    "asked for it, and rejects version {version}{}: {error}",
                    kept.unwrap_or_default()
                )
            }
            (Some("DOES_NOT_EXIST"), _) => "asked for it, and knows that there is none".to_owned(),
            (Some(_), _) => "asked for it, and was not answered yet".to_owned(),
            (None, Some(held)) => format!("did not ask for it by name, and holds {held}"),
            (None, None) => return None,
        },
    )
}

/// Describes the resource that a client holds, if it holds one.
fn cached(held: &Value) -> Option<String> {
    let (name, version) = (held["name"].as_str()?, text(&held["version"]));
    let variant = match held["constraints"].as_str() {
        Some(constraints) => format!(", the variant for {constraints}"),
        None => String::new(),
    };
    Some(format!("{name} version {version}{variant}"))
}

/// Writes a table of the variants for other clients, with the constraints that
/// this one does not meet; nothing, if there are none.
fn others(others: &Value) -> String {
    let all = others.as_array();
    let Some(all) = all.filter(|all| !all.is_empty()) else {
        return String::new();
    };
    let mut table = Table::new(&["OTHERS FOR", "VERSION", "NOT FULFILLED"]);
    for one in all {
        let unmet = texts(&one["unmet"]).join("; ");
        table.row([text(&one["constraints"]), text(&one["version"]), unmet]);
    }
    format!("\n{}", table.text())
}
