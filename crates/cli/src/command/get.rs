//! `trunkline get`: the resources of a server.

use serde_json::{Value, json};
use trunkline::TypeUrl;

use super::selection::{Selection, parse_words};
use super::{encode_url, get_watch, overview, print, run_request};
use crate::cli::{self, Output};
use crate::client::Client;
use crate::failure::Result;
use crate::kinds;
use crate::output::{self, Table};

/// Prints the resources of a type, or all variants of some names. Without
/// arguments, prints the number of resources of each type.
pub(super) fn run(args: &cli::Get) -> Result<()> {
    let selections = parse_words(&args.words)?;
    if selections.is_empty() {
        return overview::run(args);
    }
    if args.watch {
        return get_watch::run(args, selections);
    }

    let client = Client::new(&args.remote)?;
    let has_contents = matches!(args.output, Output::Yaml | Output::Json);
    let mut resources = Vec::new();
    for selection in &selections {
        let path = resources_path(selection, has_contents);
        let body = run_request(client.get(&path))?;
        resources.extend(super::parse_list(&body, "resources")?);
    }

    let has_types = selections.len() > 1;
    let text = match args.output {
        Output::Table => resource_table(&resources, has_types, false),
        Output::Wide => resource_table(&resources, has_types, true),
        Output::Name => name_lines(&resources),
        Output::Json => output::to_json(&file_form(&resources)),
        Output::Yaml => output::to_yaml(&file_form(&resources))?,
    };
    print(text.as_bytes())
}

/// Returns the path of a request for the selected resources. Without contents,
/// the server sends a summary.
pub(super) fn resources_path(selection: &Selection, has_contents: bool) -> String {
    let names = selection.names.iter();
    let names = names.map(|name| format!("name={}", encode_url(name)));
    let mut query: Vec<String> = names.collect();
    if !has_contents {
        query.push("summary=true".to_owned());
    }
    let kind = encode_url(selection.type_url.as_str());
    format!("/api/v1/resources/{kind}?{}", query.join("&"))
}

/// Puts the resources into the form of a file, as `apply` takes it.
pub(super) fn file_form(resources: &[Value]) -> Value {
    let bodies: Vec<&Value> = resources.iter().map(|shown| &shown["resource"]).collect();
    json!({"resources": bodies})
}

/// Writes a line for each name, with its type.
pub(super) fn name_lines(resources: &[Value]) -> String {
    let mut lines: Vec<String> = resources.iter().map(typed_name).collect();
    // Variants of one name follow each other.
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Writes the name of a resource behind its type: `cds/backend`.
pub(super) fn typed_name(resource: &Value) -> String {
    let type_url = TypeUrl::new(resource["type"].as_str().unwrap_or_default());
    let name = resource["name"].as_str().unwrap_or_default();
    output::printable(&format!("{}/{name}", kinds::short(&type_url)))
}

/// Writes a table with a line for each variant. It has a column of constraints
/// if a variant has some, and all columns if it is wide. If it has several
/// types, each name has its type before it.
pub(super) fn resource_table(resources: &[Value], has_types: bool, is_wide: bool) -> String {
    let has_variants = is_wide
        || resources
            .iter()
            .any(|resource| resource.get("constraints").is_some());
    let mut headings = vec!["NAME", "VERSION"];
    if has_variants {
        headings.push("FOR");
    }
    if is_wide {
        headings.extend(["ORIGIN", "TTL", "ALIASES"]);
    }

    let mut table = Table::new(&headings);
    for resource in resources {
        let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
        let name = match has_types {
            true => typed_name(resource),
            false => text("name"),
        };

        let mut row = vec![name, text("version")];
        if has_variants {
            row.push(text("constraints"));
        }
        if is_wide {
            let ttl = resource["ttl_seconds"].as_f64();
            let ttl = ttl.map(|seconds| format!("{seconds}s"));
            let aliases = resource["aliases"].as_array().into_iter().flatten();
            let aliases: Vec<&str> = aliases.filter_map(Value::as_str).collect();
            row.extend([text("origin"), ttl.unwrap_or_default(), aliases.join(", ")]);
        }
        table.add_row(row);
    }
    table.to_text()
}
