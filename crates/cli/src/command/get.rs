//! `trunkline get`: the resources of a server.

use serde_json::{Value, json};

use super::{ask, encoded, print};
use crate::cli::{self, Output};
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::output::{self, Table};

pub(super) fn run(args: &cli::Get) -> Result<()> {
    let kind = kinds::parse(&args.kind).map_err(Failure::usage)?;
    let mut path = format!("/api/v1/resources/{}?", encoded(kind.as_str()));
    if let Some(name) = &args.name {
        path.push_str(&format!("name={}&", encoded(name)));
    }
    if args.output == Output::Table {
        path.push_str("summary=true");
    }
    let client = Client::new(&args.remote)?;
    let answer = ask(async { client.get(path.trim_end_matches(['?', '&'])).await })?;
    let resources = super::list(&answer, "resources")?;
    let text = match args.output {
        Output::Table => table(&resources),
        Output::Json => output::json(&file(&resources)),
        Output::Yaml => output::yaml(&file(&resources))?,
    };
    print(text.as_bytes())
}

/// In the form in which `apply` takes them.
fn file(resources: &[Value]) -> Value {
    let bodies: Vec<&Value> = resources.iter().map(|shown| &shown["resource"]).collect();
    json!({"resources": bodies})
}

fn table(resources: &[Value]) -> String {
    let variants = resources.iter().any(|r| r.get("constraints").is_some());
    let headings: &[&str] = match variants {
        true => &["NAME", "VERSION", "FOR"],
        false => &["NAME", "VERSION"],
    };
    let mut table = Table::new(headings);
    for resource in resources {
        let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
        let mut row = vec![text("name"), text("version")];
        if variants {
            row.push(text("constraints"));
        }
        table.row(row);
    }
    table.text()
}
