//! The line of an event, as people read it.

use serde_json::Value;
use trunkline::TypeUrl;

use crate::kinds;
use crate::output::printable;

/// The maximum of variants that one line names.
const MOST_NAMED: usize = 10;

/// Writes the line of an event: time, kind and what happened. Returns `None`
/// for a bookmark, which only programs need.
pub(super) fn event_line(event: &Value) -> Option<String> {
    let kind = text(event, "event");
    let description = match kind {
        "bookmark" => return None,
        "changed" => describe_change(event),
        "acked" | "nacked" => describe_acknowledgement(event),
        "connected" => match event["address"].as_str() {
            Some(address) => format!("{} from {address}", describe_client(event)),
            None => describe_client(event),
        },
        "missed" => text(event, "message").to_owned(),
        _ => describe_client(event),
    };
    let line = format!("{} {kind:<12} {description}", text(event, "time"));
    Some(printable(&line) + "\n")
}

/// Describes a change: `revision 7 by api 127.0.0.1: cds/backend created`.
fn describe_change(event: &Value) -> String {
    let changed = event["changed"].as_array().map_or(&[][..], Vec::as_slice);
    let descriptions: Vec<String> = changed
        .iter()
        .take(MOST_NAMED)
        .map(describe_variant)
        .collect();
    let counts = ["created", "changed", "deleted"].map(|key| event["counts"][key].as_u64());
    let total: u64 = counts.into_iter().flatten().sum();
    let omission = match total.saturating_sub(descriptions.len() as u64) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let (revision, author) = (&event["revision"], text(event, "author"));
    format!(
        "revision {revision} by {author}: {}{omission}",
        descriptions.join(", ")
    )
}

/// Describes the change of a variant: `cds/backend created`.
fn describe_variant(change: &Value) -> String {
    let variant = match change["constraints"].as_str() {
        Some(constraints) => format!(" [{constraints}]"),
        None => String::new(),
    };
    let effect = match (change["from"].is_null(), change["to"].is_null()) {
        (true, _) => "created",
        (false, false) => "changed",
        (false, true) => "deleted",
    };
    let (kind, name) = (short_type(change), text(change, "name"));
    format!("{kind}/{name}{variant} {effect}")
}

/// Describes an ACK or a NACK, and the error of a NACK: `node-1 (stream 3) cds
/// at revision 7: backend: no such field`.
fn describe_acknowledgement(event: &Value) -> String {
    let mut line = format!("{} {}", describe_client(event), short_type(event));
    if let Some(revision) = event["revision"].as_u64() {
        line.push_str(&format!(" at revision {revision}"));
    }
    for rejected in event["rejected"].as_array().into_iter().flatten() {
        line.push_str(&format!(": {}", text(rejected, "name")));
    }
    if let Some(error) = event["error"].as_str() {
        line.push_str(&format!(": {error}"));
    }
    line
}

/// Writes the client of an event: `node-1 (stream 3)`.
fn describe_client(event: &Value) -> String {
    let node = match text(event, "node") {
        "" => "a client without a node id",
        node => node,
    };
    format!("{node} (stream {})", event["stream"])
}

/// Returns the short name of the type that a value is about.
fn short_type(value: &Value) -> String {
    kinds::short(&TypeUrl::new(text(value, "type"))).to_owned()
}

/// Returns the text at a key of an event; empty if the event has none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_says_when_who_and_what() {
        let cds = trunkline::kind::CDS;
        let variant = json!({"type": cds, "name": "a", "from": null, "to": "1"});
        let changed = json!({
            "time": "T", "event": "changed", "revision": 7, "author": "me",
            "changed": vec![variant; 12],
            "counts": {"created": 2000, "changed": 0, "deleted": 0},
        });
        let line = event_line(&changed).unwrap();
        assert!(line.starts_with("T changed      revision 7 by me: cds/a created, "));
        assert!(line.ends_with("cds/a created and 1990 more\n"), "{line}");

        let nacked = json!({
            "time": "T", "event": "nacked", "stream": 3, "node": "n", "type": cds,
            "revision": 7, "error": "bad\x1b[2J", "rejected": [{"name": "a"}],
        });
        assert_eq!(
            event_line(&nacked).unwrap(),
            "T nacked       n (stream 3) cds at revision 7: a: bad [2J\n"
        );
        assert_eq!(event_line(&json!({"event": "bookmark"})), None);
    }
}
