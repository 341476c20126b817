//! The alerts and the dashboard in `packaging` ask for metrics and labels that
//! a server has.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use support::Server;

/// Labels that Prometheus adds to all metrics.
const ADDED: [&str; 2] = ["instance", "job"];

/// The labels of each metric that a server exports.
type Exported = BTreeMap<String, BTreeSet<String>>;

fn exported() -> Exported {
    let (status, text) = Server::start(&[]).get("/metrics");
    assert_eq!(status, 200);
    let mut exported = Exported::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        exported
            .entry(name.to_owned())
            .or_default()
            .extend(label_names(labels));
    }
    exported
}

/// The names in `a="b",c="d"}`, or in a matcher.
fn label_names(labels: &str) -> impl Iterator<Item = String> {
    let parts = labels.split(['=', ',']).step_by(2);
    let names = parts.map(|part| part.trim_matches(|c: char| !c.is_alphanumeric() && c != '_'));
    names.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Checks that an expression asks for what is exported.
fn check(expression: &str, exported: &Exported) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut labels = BTreeSet::new();
    let mut metrics = 0;
    for (start, _) in expression.match_indices("trunkline_") {
        let rest = &expression[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let found = exported.get(&rest[..end]);
        let found = found.unwrap_or_else(|| panic!("no metric {}: {expression}", &rest[..end]));
        let matchers = rest[end..]
            .strip_prefix('{')
            .and_then(|m| m.split_once('}'));
        for label in label_names(matchers.map_or("", |(matchers, _)| matchers)) {
            assert!(is_label(&label, found), "no label {label}: {expression}");
        }
        labels.extend(found.iter().cloned());
        metrics += 1;
    }
    assert!(metrics > 0, "no metric: {expression}");
    for group in expression.split("by (").skip(1) {
        let (group, _) = group.split_once(')').unwrap();
        for label in group.split(", ") {
            assert!(is_label(label, &labels), "no label {label}: {expression}");
        }
    }
}

fn is_label(label: &str, labels: &BTreeSet<String>) -> bool {
    ADDED.contains(&label) || labels.contains(label)
}

fn packaged(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

#[test]
fn alerts_ask_for_metrics_that_exist_and_say_what_to_do() {
    let (text, exported) = (packaged("alerts.yaml"), exported());
    let alerts: Vec<&str> = text.split("  - alert: ").skip(1).collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let value = |key: &str| {
            let line = alert.lines().map(str::trim);
            let mut found = line.filter_map(|line| line.strip_prefix(key));
            let quoted = found
                .next()
                .unwrap_or_else(|| panic!("no {key} in {alert}"));
            serde_json::from_str::<String>(quoted).unwrap()
        };
        check(&value("expr: "), &exported);
        assert!(!value("summary: ").is_empty());
        assert!(!value("description: ").is_empty());
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let exported = exported();
    let dashboard: Value = serde_json::from_str(&packaged("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let asked: Vec<&str> = targets.map(|one| one["expr"].as_str().unwrap()).collect();
    assert!(!asked.is_empty());
    asked.into_iter().for_each(|one| check(one, &exported));
}

#[test]
#[should_panic(expected = "no label kind")]
fn a_label_that_does_not_exist_is_found() {
    let labels = BTreeSet::from(["type".to_owned()]);
    let exported = Exported::from([("trunkline_acks_total".to_owned(), labels)]);
    check(
        "sum by (type) (trunkline_acks_total{kind=\"cds\"})",
        &exported,
    );
}
