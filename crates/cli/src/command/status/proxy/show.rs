//! The comparison of a client with its Envoy, as people read it, and as JSON.

use serde_json::{Value, json};
use trunkline::{TypeUrl, kind};

use super::compare::{State, Verdict};
use super::dump::Key;
use crate::color::{Palette, Style};
use crate::kinds;
use crate::output::{self, Table};

/// What cannot be compared wholly, by type.
const LIMITS: [(&str, &str); 3] = [
    (
        kind::EDS,
        "endpoints are compared by address, weight, priority, locality and health: Envoy shows \
         them as it uses them",
    ),
    (
        kind::SDS,
        "secrets are not compared: Envoy does not show them",
    ),
    (
        kind::VHDS,
        "virtual hosts on demand are compared one by one, and not as a part of their route \
         configuration",
    ),
];

impl State {
    /// Returns the words for the state in a text.
    fn words(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Differs => "differs",
            Self::Missing => "missing in the proxy",
            Self::OnlyInProxy => "only in the proxy",
            Self::Warming => "warming",
            Self::NotCompared => "not compared",
            Self::Elsewhere => "only in the proxy (other source)",
            Self::Static => "only in the proxy (static)",
            Self::Same => "same",
        }
    }

    /// Returns the word for the state in JSON.
    fn key(self) -> &'static str {
        match self {
            Self::OnlyInProxy => "only_in_proxy",
            Self::Missing => "missing",
            Self::NotCompared => "not_compared",
            Self::Elsewhere => "other_source",
            Self::Static => "static",
            state => state.words(),
        }
    }

    /// Returns the colour of the state; `None` if the state is neither good nor
    /// bad.
    fn style(self) -> Option<Style> {
        match self {
            Self::Same => Some(Style::Good),
            Self::Warming => Some(Style::Doubtful),
            state if state.is_trouble() => Some(Style::Bad),
            _ => None,
        }
    }
}

/// Every state, the worst first.
const STATES: [State; 9] = [
    State::Rejected,
    State::Differs,
    State::Missing,
    State::OnlyInProxy,
    State::Warming,
    State::NotCompared,
    State::Elsewhere,
    State::Static,
    State::Same,
];

/// Writes the number of resources in each state, a table of all resources,
/// notes about limits of the comparison, and the differences.
pub(super) fn to_text(node: &str, comparison: &[(Key, Verdict)], palette: Palette) -> String {
    if comparison.is_empty() {
        return format!("{node}: there is nothing to compare\n");
    }
    let mut table = Table::new(&["TYPE", "NAME", "STATE", "REASON"]);
    for ((type_url, name), verdict) in comparison {
        let kind = kinds::short(&TypeUrl::new(type_url)).to_owned();
        let state = verdict.state.words().to_owned();
        table.add_row([kind, name.clone(), state, verdict.reason.clone()]);
    }
    let table = table.paint(|cell| paint_state(cell, palette));

    let mut text = format!("{node}: {}\n\n{table}", count_states(comparison));
    let limits = limits(comparison);
    if !limits.is_empty() {
        text.push('\n');
    }
    for limit in limits {
        text.push_str(&format!("note: {limit}\n"));
    }
    for ((type_url, name), verdict) in comparison {
        if !verdict.diff.is_empty() {
            let kind = TypeUrl::new(type_url);
            let label = output::printable(&format!("{}/{name}", kinds::short(&kind)));
            let diff = &verdict.diff;
            text.push_str(&format!(
                "\n{label}: - in the proxy, + from the server\n{diff}"
            ));
        }
    }
    text
}

/// Returns the number of resources in each state that occurs.
fn count_states(comparison: &[(Key, Verdict)]) -> String {
    let counts = STATES.map(|state| {
        let matching = comparison.iter();
        let matching = matching.filter(|(_, verdict)| verdict.state == state);
        (matching.count(), state.words())
    });
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    counts.join(", ")
}

/// Returns the comparison as JSON.
pub(super) fn to_json(node: &str, comparison: &[(Key, Verdict)]) -> Value {
    let resources = comparison.iter().map(|((type_url, name), verdict)| {
        let mut resource = json!({"type": type_url, "name": name, "state": verdict.state.key()});
        for (key, text) in [("reason", &verdict.reason), ("diff", &verdict.diff)] {
            if !text.is_empty() {
                resource[key] = json!(text);
            }
        }
        resource
    });
    let resources: Vec<Value> = resources.collect();
    json!({"node": node, "resources": resources, "notes": limits(comparison)})
}

/// Returns what cannot be compared of the types that have a verdict.
fn limits(verdicts: &[(Key, Verdict)]) -> Vec<&'static str> {
    let has_type = |type_url: &str| {
        verdicts
            .iter()
            .any(|((compared_type, _), _)| compared_type == type_url)
    };
    let limits = LIMITS.iter().filter(|(type_url, _)| has_type(type_url));
    limits.map(|(_, words)| *words).collect()
}

/// Returns a cell of the table, a state in its colour.
fn paint_state(cell: &str, palette: Palette) -> String {
    let state = STATES.into_iter().find(|state| state.words() == cell);
    match state.and_then(State::style) {
        Some(style) => palette.paint(style, cell),
        None => cell.to_owned(),
    }
}
