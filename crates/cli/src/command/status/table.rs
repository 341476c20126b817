//! The tables of `trunkline status`.

use serde_json::Value;
use trunkline::TypeUrl;

use super::type_states;
use crate::color::{Palette, Style};
use crate::kinds;
use crate::output::Table;

/// Writes a table with a line for each type of each client. Returns an empty
/// text if there is no client.
pub(super) fn client_table(clients: &[Value]) -> String {
    if clients.is_empty() {
        return String::new();
    }

    let mut table = Table::new(&[
        "NODE",
        "STREAM",
        "TYPE",
        "STATUS",
        "RESOURCES",
        "LAST SENT",
        "WAITING",
        "SUBS",
        "REASON",
    ]);
    for client in clients {
        for state in type_states(client) {
            table.add_row(type_row(client, state));
        }
    }
    table.paint(|cell| paint_status(cell, Palette::of_stdout()))
}

/// Returns a cell of the table, a status in its colour.
fn paint_status(cell: &str, palette: Palette) -> String {
    let style = match cell {
        "NACKED" => Style::Bad,
        "STALE" => Style::Doubtful,
        "SYNCED" => Style::Good,
        _ => return cell.to_owned(),
    };
    palette.paint(style, cell)
}

/// Makes the row of a type on the stream of a client.
fn type_row(client: &Value, state: &Value) -> Vec<String> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let type_url = TypeUrl::new(text(state, "type"));
    vec![
        text(client, "node"),
        client["stream"].to_string(),
        kinds::short(&type_url).to_owned(),
        text(state, "status"),
        count_resources(state),
        format_age(&state["last_sent_ms"]).map_or_else(String::new, |age| format!("{age} ago")),
        format_age(&state["unanswered_ms"]).unwrap_or_default(),
        count_subscriptions(state),
        trouble_reason(state),
    ]
}

/// Writes how many resources the client has as they should be, and how many it
/// should have: `99/100`.
fn count_resources(state: &Value) -> String {
    match (state["current"].as_u64(), state["desired"].as_u64()) {
        (Some(current), Some(desired)) => format!("{current}/{desired}"),
        _ => String::new(),
    }
}

/// Formats a number of milliseconds, such as `12s` or `3m`. Returns `None` if
/// the value is not a number.
fn format_age(millis: &Value) -> Option<String> {
    let seconds = millis.as_u64()? / 1000;
    Some(match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    })
}

/// Formats the number of subscriptions: `3`; with the wildcard, which is one of
/// them, `*` or `*+2`.
fn count_subscriptions(state: &Value) -> String {
    let count = state["subscriptions"].as_u64().unwrap_or_default();
    match (state["wildcard"] == true, count) {
        (false, count) => count.to_string(),
        (true, 0 | 1) => "*".to_owned(),
        (true, count) => format!("*+{}", count - 1),
    }
}

/// Returns the reason that a client is not in sync: a response that is too
/// large for gRPC clients, or the error of the NACK after the names that it
/// rejects. Returns an empty text without such a reason.
fn trouble_reason(state: &Value) -> String {
    if let Some(bytes) = state["oversized_bytes"].as_u64() {
        return format!("a response of {bytes} bytes; gRPC clients take 4194304 by default");
    }
    if state["status"] != "NACKED" {
        return String::new();
    }

    let rejected = state["rejected"].as_array().into_iter().flatten();
    let names: Vec<&str> = rejected
        .filter_map(|resource| resource["name"].as_str())
        .collect();
    let error = state["error"].as_str().unwrap_or_default();
    match names.is_empty() {
        true => error.to_owned(),
        false => format!("{}: {error}", names.join(", ")),
    }
}

/// Writes each bad file with its errors. Returns an empty text if no file is
/// bad.
pub(super) fn bad_file_text(files: &[Value]) -> String {
    let bad_files = files.iter().filter(|file| file["status"] == "BAD");
    let bad_files: Vec<&Value> = bad_files.collect();
    let count = match bad_files.len() {
        0 => return String::new(),
        1 => "1 file is".to_owned(),
        count => format!("{count} files are"),
    };

    let text = format!("\n{count} bad; the last good contents stay:\n");
    text + &list_files(bad_files)
}

/// Writes each file whose change is held, with the reason. Returns an empty
/// text if no change is held.
pub(super) fn held_file_text(files: &[Value]) -> String {
    let held_files = files.iter().filter(|file| file["status"] == "HELD");
    let held_files: Vec<&Value> = held_files.collect();
    match held_files.is_empty() {
        true => String::new(),
        false => {
            let text = "\nheld until it is confirmed; the contents before it stay:\n".to_owned();
            text + &list_files(held_files)
        }
    }
}

/// Returns the collections that are rejected, by this server or by one of its
/// sinks, with the errors.
pub(super) fn collection_rejections(mcp: &Value) -> impl Iterator<Item = (String, Vec<String>)> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let own_rejections = list(mcp, "collections").into_iter();
    let own_rejections = own_rejections.filter(|collection| collection["status"] == "NACKED");
    let own_rejections = own_rejections.map(move |collection| {
        let errors = list(&collection, "errors");
        let errors = errors
            .iter()
            .filter_map(|error| Some(error.as_str()?.to_owned()));
        (text(&collection, "collection"), errors.collect())
    });
    let sink_rejections = list(mcp, "sinks").into_iter().flat_map(move |sink| {
        let node = text(&sink, "node");
        let rejected = list(&sink, "rejected").into_iter();
        rejected.map(move |rejection| {
            let name = format!("{} at {node}", text(&rejection, "collection"));
            (name, vec![text(&rejection, "error")])
        })
    });
    own_rejections.chain(sink_rejections)
}

/// Writes each rejected collection with its errors. Returns an empty text if
/// none is rejected.
pub(super) fn rejected_collections_text(mcp: &Value) -> String {
    let rejections: Vec<_> = collection_rejections(mcp).collect();
    let head = match rejections.len() {
        0 => return String::new(),
        1 => "1 collection is rejected; its".to_owned(),
        count => format!("{count} collections are rejected; their"),
    };
    let mut text = format!("\n{head} last good state stays:\n");
    for (name, errors) in rejections {
        text.push_str(&format!("{name}\n"));
        errors
            .iter()
            .for_each(|error| text.push_str(&format!("  {error}\n")));
    }
    text
}

/// Writes files with their errors.
fn list_files(files: Vec<&Value>) -> String {
    let mut text = String::new();
    for file in files {
        let since = file["since"].as_str().unwrap_or_default();
        let path = file["path"].as_str().unwrap_or_default();
        text.push_str(&format!("{path} (since {since})\n"));
        for error in file["errors"].as_array().into_iter().flatten() {
            text.push_str(&format!("  {}\n", error.as_str().unwrap_or_default()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_has_its_colour() {
        let painted = |cell| paint_status(cell, Palette::ALL);
        assert_eq!(painted("NACKED"), "\x1b[1;31mNACKED\x1b[0m");
        assert_eq!(painted("STALE"), "\x1b[1;33mSTALE\x1b[0m");
        assert_eq!(painted("SYNCED"), "\x1b[32mSYNCED\x1b[0m");
        assert_eq!(painted("NODE"), "NODE");
        assert_eq!(paint_status("NACKED", Palette::NONE), "NACKED");
    }

    #[test]
    fn ages_are_short() {
        let ages = [900, 59_999, 60_000, 7_200_000, 200_000_000].map(|ms| format_age(&json!(ms)));
        let ages: Vec<String> = ages.into_iter().flatten().collect();
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "2d"]);
        assert_eq!(format_age(&Value::Null), None);
    }

    #[test]
    fn a_row_says_what_the_client_has_and_should_have() {
        let state = json!({"type": kinds::type_url("cds").as_str(), "status": "STALE",
            "current": 99, "desired": 100, "last_sent_ms": 12_000, "unanswered_ms": 12_000,
            "subscriptions": 1, "wildcard": true});
        let client = json!({"node": "n", "stream": 1, "types": [state]});
        let table = client_table(&[client]);
        assert_eq!(
            table.lines().collect::<Vec<_>>(),
            [
                "NODE  STREAM  TYPE  STATUS  RESOURCES  LAST SENT  WAITING  SUBS  REASON",
                "n     1       cds   STALE   99/100     12s ago    12s      *     -",
            ]
        );
    }
}
