//! The variant of a resource that a client gets, in lines.

use serde_json::Value;

use super::{shown, text, texts};
use crate::output::Table;

pub(super) fn lines(answer: &Value) -> String {
    let name = format!("{} {}", text(&answer["type"]), text(&answer["name"]));
    let mut lines = vec![
        ("asked for", name),
        ("parameters", parameters(&answer["parameters"])),
        ("given", given(&answer["given"])),
    ];
    let streams = answer["streams"].as_array();
    for stream in streams.into_iter().flatten() {
        let stands = stands(stream, "this type");
        let stands = stands.unwrap_or_else(|| "did not ask for it".to_owned());
        lines.push(("client", format!("stream {}: {stands}", stream["stream"])));
    }
    if streams.is_some_and(Vec::is_empty) {
        lines.push(("client", "did not ask for anything of this type".to_owned()));
    }
    shown(lines) + &others(&answer["others"])
}

/// The client's parameters, with their origins.
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

fn given(given: &Value) -> String {
    let version = text(&given["version"]);
    match given["constraints"].as_str() {
        _ if given.is_null() => "that it does not exist: no variant is for this client".to_owned(),
        Some(constraints) => format!("version {version}, the variant for {constraints}"),
        None => format!("version {version}, which is for everybody"),
    }
}

/// The state of a name on a stream; nothing if it is neither subscribed to nor
/// held.
pub(super) fn stands(stream: &Value, kind: &str) -> Option<String> {
    let holds = stream["holds"]["name"].as_str().map(|name| {
        let held = &stream["holds"];
        let variant = held["constraints"].as_str();
        let variant = variant.map(|of| format!(", the variant for {of}"));
        let version = text(&held["version"]);
        format!("{name} version {version}{}", variant.unwrap_or_default())
    });
    Some(match (stream["status"].as_str(), holds) {
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
    })
}

/// The variants for other clients.
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
