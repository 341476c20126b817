//! The table of scalars, which the reader of files is tested with, against a
//! real Envoy: every spelling is taken or refused as the table says, and gives
//! the value that the table says.
//!
//! A spelling stands in the metadata of an endpoint, where an `Any` of every
//! type is taken, and Envoy shows it in its configuration dump. Every endpoint
//! has a file of its own, so that one that Envoy refuses leaves the others be.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use interop::{Envoy, folder};
use serde_json::{Value, json};

const TABLE: &str = include_str!("../../proto/tests/data/envoy-1.40-scalars.txt");

/// The files of one Envoy: each costs an inotify instance, of which a user has
/// few.
const FILES: usize = 40;

/// A row of the table.
struct Row {
    format: &'static str,
    message: &'static str,
    field: &'static str,
    spelling: &'static str,
    expected: &'static str,
}

impl Row {
    fn is_refused(&self) -> bool {
        self.expected == "refused"
    }

    /// The row's line of the file, as `key` of the typed metadata.
    fn entry(&self, key: &str) -> String {
        let Self {
            message,
            field,
            spelling,
            ..
        } = self;
        let url = format!("type.googleapis.com/{message}");
        match self.format {
            "json" => format!(r#""{key}": {{"@type": "{url}", "{field}": {spelling}}}"#),
            _ => format!(
                "          {key}:\n            \"@type\": {url}\n            {field}: {spelling}\n"
            ),
        }
    }

    fn describe(&self) -> String {
        format!(
            "{} {} {}: {}",
            self.format, self.message, self.field, self.spelling
        )
    }
}

fn read_table() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut section = Vec::new();
    let lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        if let Some(head) = line.strip_prefix("== ") {
            section = head.split(' ').collect();
            continue;
        }
        let Some((spelling, expected)) = line.rsplit_once(" => ") else {
            panic!("a spelling and a value: {line}");
        };
        rows.push(Row {
            format: section[0],
            message: section[1],
            field: section[2],
            spelling: if spelling == "(nothing)" {
                ""
            } else {
                spelling
            },
            expected,
        });
    }
    rows
}

/// The text of a file: endpoints of a cluster whose metadata has these rows,
/// all of one format, each under its number.
fn write_endpoints(cluster: &str, rows: &[&Row]) -> String {
    let url = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
    let entries = rows
        .iter()
        .enumerate()
        .map(|(i, row)| row.entry(&format!("row{i}")));
    let entries: Vec<_> = entries.collect();
    match rows[0].format {
        "json" => format!(
            r#"{{"resources": [{{"@type": "{url}", "cluster_name": "{cluster}", "endpoints":
            [{{"lb_endpoints": [{{"endpoint": {{"address": {{"socket_address":
            {{"address": "127.0.0.1", "port_value": 1}}}}}},
            "metadata": {{"typed_filter_metadata": {{{}}}}}}}]}}]}}]}}"#,
            entries.join(",")
        ),
        _ => format!(
            "resources:\n- \"@type\": {url}\n  cluster_name: {cluster}\n  endpoints:\n  \
             - lb_endpoints:\n    - endpoint: {{address: {{socket_address: \
             {{address: 127.0.0.1, port_value: 1}}}}}}\n      metadata:\n        \
             typed_filter_metadata:\n{}",
            entries.concat()
        ),
    }
}

/// Starts an Envoy with a cluster for each group of rows, whose endpoints it
/// reads from a file, named `group0` and so on. Unknown fields are refused, as
/// in a bootstrap.
fn start(folder: &Path, groups: &[Vec<&Row>]) -> Envoy {
    let mut clusters = Vec::new();
    for (index, rows) in groups.iter().enumerate() {
        let name = format!("group{index}");
        let path = folder.join(format!("{name}.{}", rows[0].format));
        fs::write(&path, write_endpoints(&name, rows))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        clusters.push(json!({
            "name": name,
            "type": "EDS",
            "eds_cluster_config": {"eds_config": {
                "resource_api_version": "V3",
                "path_config_source": {"path": path},
            }},
        }));
    }
    let bootstrap = json!({
        "node": {"id": "scalars", "cluster": "scalars"},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
        "static_resources": {"clusters": clusters},
    });
    let arguments = ["--reject-unknown-dynamic-fields", "-l", "warning"];
    Envoy::start_with(&bootstrap.to_string(), &arguments)
}

/// The typed metadata that Envoy holds, by cluster.
fn held(envoy: &Envoy) -> BTreeMap<String, Value> {
    let dump = envoy.config_dump();
    let configs = dump["configs"].as_array().into_iter().flatten();
    let endpoints = configs
        .flat_map(|config| {
            ["static_endpoint_configs", "dynamic_endpoint_configs"].map(|key| &config[key])
        })
        .filter_map(Value::as_array)
        .flatten()
        .map(|entry| &entry["endpoint_config"]);
    endpoints
        .filter_map(|config| {
            let metadata = &config["endpoints"][0]["lb_endpoints"][0]["metadata"];
            let name = config["cluster_name"].as_str()?.to_owned();
            Some((name, metadata.get("typed_filter_metadata")?.clone()))
        })
        .collect()
}

/// Whether two values are the same; of numbers, whether they are equal.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(key, a)| b.get(key).is_some_and(|b| is_same(a, b));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

#[test]
fn what_the_table_takes_has_that_value_for_envoy() {
    let table = read_table();
    let groups: Vec<Vec<&Row>> = ["yaml", "json"]
        .map(|format| {
            let rows = table.iter().filter(|row| row.format == format);
            rows.filter(|row| !row.is_refused()).collect()
        })
        .into();
    let envoy = start(&folder("taken"), &groups);
    let held = held(&envoy);

    let mut wrong = Vec::new();
    for (index, rows) in groups.iter().enumerate() {
        let metadata = held.get(&format!("group{index}"));
        let log = envoy.log().display();
        let metadata = metadata.unwrap_or_else(|| panic!("all are taken; see {log}"));
        for (number, row) in rows.iter().enumerate() {
            let found = metadata[format!("row{number}")].get(row.field);
            let is_right = match row.expected {
                "unset" => found.is_none(),
                value => {
                    let value = serde_json::from_str(value).expect("a value of JSON");
                    found.is_some_and(|found| is_same(found, &value))
                }
            };
            if !is_right {
                wrong.push(format!("{} => {found:?}", row.describe()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn what_the_table_refuses_envoy_refuses() {
    let table = read_table();
    let refused: Vec<Vec<&Row>> = table
        .iter()
        .filter(|row| row.is_refused())
        .map(|row| vec![row])
        .collect();
    let folder = folder("refused");
    let mut wrong = Vec::new();
    for groups in refused.chunks(FILES) {
        let envoy = start(&folder, groups);
        let stats = envoy.stats();
        for (index, rows) in groups.iter().enumerate() {
            let count = |name| stats.get(&format!("cluster.group{index}.{name}"));
            if (count("update_attempt"), count("update_success")) != (Some(&1), Some(&0)) {
                wrong.push(rows[0].describe());
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
