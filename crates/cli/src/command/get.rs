//! `trunkline get`: the resources of a server.

use serde_json::{Value, json};

use super::{encode_url, print, run_request};
use crate::cli::{self, Output};
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::{self, Table};

/// Prints the resources of a type, or all variants of one name. A table has no
/// contents, so only a summary is requested for it.
pub(super) fn run(args: &cli::Get) -> Result<()> {
    let kind = kinds::parse(&args.kind).map_err(Failure::usage)?;
    let mut path = format!("/api/v1/resources/{}?", encode_url(kind.as_str()));
    if let Some(name) = &args.name {
        path.push_str(&format!("name={}&", encode_url(name)));
    }
    if args.output == Output::Table {
        path.push_str("summary=true");
    }

    let client = Client::new(&args.remote)?;
    let body = run_request(client.get(path.trim_end_matches(['?', '&'])))?;
    let resources = super::parse_list(&body, "resources")?;

    let text = match args.output {
        Output::Table => resource_table(&resources),
        Output::Json => output::to_json(&file_form(&resources)),
        Output::Yaml => output::to_yaml(&file_form(&resources))?,
    };
    print(text.as_bytes())
}

/// Puts the resources into the form of a file, as `apply` takes it.
fn file_form(resources: &[Value]) -> Value {
    let bodies: Vec<&Value> = resources.iter().map(|shown| &shown["resource"]).collect();
    json!({"resources": bodies})
}

/// Writes a table with a line for each variant. It has a column of constraints
/// if any variant has some.
fn resource_table(resources: &[Value]) -> String {
    let has_variants = resources.iter().any(|r| r.get("constraints").is_some());
    let headings: &[&str] = match has_variants {
        true => &["NAME", "VERSION", "FOR"],
        false => &["NAME", "VERSION"],
    };

    let mut table = Table::new(headings);
    for resource in resources {
        let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
        let mut row = vec![text("name"), text("version")];
        if has_variants {
            row.push(text("constraints"));
        }
        table.add_row(row);
    }
    table.to_text()
}
