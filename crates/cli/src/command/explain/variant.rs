//! The variant of a resource that a client gets, in lines.

use serde_json::Value;

use super::{align, text, texts};
use crate::output::Table;

/// Writes the explanation of a resource: one fact per line, then a table of the
/// variants for other clients.
pub(super) fn write_explanation(answer: &Value) -> String {
    let name = format!("{} {}", text(&answer["type"]), text(&answer["name"]));
    let mut lines = vec![
        ("asked for", name),
        ("parameters", write_parameters(&answer["parameters"])),
        ("given", describe_given(&answer["given"])),
    ];

    // There is no list if the question is not about a connected client.
    let streams = answer["streams"].as_array();
    for stream in streams.into_iter().flatten() {
        let state = describe_state(stream, "this type");
        let state = state.unwrap_or_else(|| "did not ask for it".to_owned());
        lines.push(("client", format!("stream {}: {state}", stream["stream"])));
    }
    if streams.is_some_and(Vec::is_empty) {
        lines.push(("client", "did not ask for anything of this type".to_owned()));
    }

    align(lines) + &other_variants_table(&answer["others"])
}

/// Writes the parameters of a client, each with its origin; `none` if the list
/// is empty.
pub(super) fn write_parameters(parameters: &Value) -> String {
    let write = |parameter: &Value| {
        let field = |key: &str| text(&parameter[key]);
        format!("{}={} (by {})", field("key"), field("value"), field("by"))
    };
    let list = parameters.as_array().into_iter().flatten();
    let texts: Vec<String> = list.map(write).collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.join(", "),
    }
}

/// Describes the variant that the client gets, or says that no variant is for
/// this client.
fn describe_given(variant: &Value) -> String {
    if variant.is_null() {
        return "that it does not exist: no variant is for this client".to_owned();
    }
    let version = text(&variant["version"]);
    match variant["constraints"].as_str() {
        Some(constraints) => format!("version {version}, the variant for {constraints}"),
        None => format!("version {version}, which is for everybody"),
    }
}

/// Describes the state of a name on a stream. Returns `None` if the client
/// neither subscribes to the name nor holds its resource. `kind` is the word
/// for resources of the type, for a client that may not see them.
pub(super) fn describe_state(stream: &Value, kind: &str) -> Option<String> {
    if stream["may_see"] == false {
        return Some(format!("may not see {kind}"));
    }

    let held_resource = describe_held(&stream["holds"]);
    let state = match (stream["status"].as_str(), held_resource) {
        (Some("ACKED"), Some(held)) => format!("asked for it, and holds {held}"),
        (Some("SENT"), Some(held)) => format!("asked for it, and has yet to answer to {held}"),
        (Some("NACKED"), held) => describe_rejection(stream, held),
        (Some("DOES_NOT_EXIST"), _) => "asked for it, and knows that there is none".to_owned(),
        (Some(_), _) => "asked for it, and was not answered yet".to_owned(),
        (None, Some(held)) => format!("did not ask for it by name, and holds {held}"),
        (None, None) => return None,
    };
    Some(state)
}

/// Describes the version that a client rejects on a stream, the error, and the
/// resource that the client may still hold.
fn describe_rejection(stream: &Value, held_resource: Option<String>) -> String {
    let version = text(&stream["rejected_version"]);
    let error = text(&stream["error"]);
    let held_note = match held_resource {
        Some(held_resource) => format!(" (it may still hold {held_resource})"),
        None => String::new(),
    };
    format!("asked for it, and rejects version {version}{held_note}: {error}")
}

/// Describes the resource that a client holds. Returns `None` if the client
/// holds none.
fn describe_held(resource: &Value) -> Option<String> {
    let (name, version) = (resource["name"].as_str()?, text(&resource["version"]));
    let variant = match resource["constraints"].as_str() {
        Some(constraints) => format!(", the variant for {constraints}"),
        None => String::new(),
    };
    Some(format!("{name} version {version}{variant}"))
}

/// Writes a table of the variants for other clients, with the constraints that
/// this client does not meet. Returns an empty text if there are no such
/// variants.
fn other_variants_table(other_variants: &Value) -> String {
    let variants = other_variants.as_array().filter(|list| !list.is_empty());
    let Some(variants) = variants else {
        return String::new();
    };

    let mut table = Table::new(&["OTHERS FOR", "VERSION", "NOT FULFILLED"]);
    for variant in variants {
        let unmet = texts(&variant["unmet"]).join("; ");
        let constraints = text(&variant["constraints"]);
        table.add_row([constraints, text(&variant["version"]), unmet]);
    }
    format!("\n{}", table.to_text())
}
