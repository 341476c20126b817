//! `trunkline get` without a type: how many resources of each there are.

use serde_json::{Value, json};
use trunkline::TypeUrl;

use super::{print, run_request};
use crate::cli::{self, Output};
use crate::client::Client;
use crate::failure::Result;
use crate::kinds;
use crate::output::{self, Table};

/// Prints the types that have resources, with their numbers and origins. Types
/// with a short name come first, in the usual order.
pub(super) fn run(args: &cli::Get) -> Result<()> {
    let client = Client::new(&args.remote)?;
    let body = run_request(client.get("/api/v1/types"))?;
    let mut types = super::parse_list(&body, "types")?;
    types.sort_by_cached_key(|count| {
        let type_url = type_url(count);
        let short = kinds::short(&type_url);
        let position = kinds::SHORT.iter().position(|name| *name == short);
        (position.unwrap_or(kinds::SHORT.len()), short.to_owned())
    });

    let text = match args.output {
        Output::Table => type_table(&types, false),
        Output::Wide => type_table(&types, true),
        Output::Name => {
            let lines = types.iter().map(|one| format!("{}\n", short_name(one)));
            lines.collect()
        }
        Output::Json => output::to_json(&json!({"types": types})),
        Output::Yaml => output::to_yaml(&json!({"types": types}))?,
    };
    print(text.as_bytes())
}

/// Returns the type of an entry of the list; empty if the entry has none.
fn type_url(entry: &Value) -> TypeUrl {
    TypeUrl::new(entry["type"].as_str().unwrap_or_default())
}

/// Returns the short name of the type of an entry, such as `cds`.
fn short_name(entry: &Value) -> String {
    kinds::short(&type_url(entry)).to_owned()
}

/// Writes a table with a line for each type; a wide table has type URLs too.
/// Writes a sentence if there are no types.
fn type_table(types: &[Value], is_wide: bool) -> String {
    if types.is_empty() {
        return "the server has no resources\n".to_owned();
    }
    let mut headings = vec!["TYPE", "RESOURCES", "ORIGINS"];
    if is_wide {
        headings.push("URL");
    }

    let mut table = Table::new(&headings);
    for count in types {
        let resources = count["resources"].to_string();
        let mut row = vec![
            short_name(count),
            resources,
            write_origins(&count["origins"]),
        ];
        if is_wide {
            row.push(type_url(count).to_string());
        }
        table.add_row(row);
    }
    table.to_text()
}

/// The maximum of origins that are listed for a type: each pod may be one.
const MOST_ORIGINS: usize = 5;

/// Writes origins with their numbers of resources: `api 2, files 31`. Of many
/// origins, writes the [`MOST_ORIGINS`] largest.
fn write_origins(origins: &Value) -> String {
    let origins = origins.as_object().into_iter().flatten();
    let counts = origins.map(|(name, count)| (count.as_u64().unwrap_or_default(), name));
    let mut counts: Vec<(u64, &String)> = counts.collect();
    counts.sort_by_key(|(count, name)| (std::cmp::Reverse(*count), *name));

    let largest_origins = counts.iter().take(MOST_ORIGINS);
    let largest_origins: Vec<String> = largest_origins
        .map(|(count, name)| format!("{name} {count}"))
        .collect();
    match counts.len().saturating_sub(MOST_ORIGINS) {
        0 => largest_origins.join(", "),
        hidden => format!("{} and {hidden} more", largest_origins.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_origins_the_largest_are_listed() {
        assert_eq!(
            write_origins(&json!({"api": 2, "files": 31})),
            "files 31, api 2"
        );
        let many: serde_json::Map<String, Value> =
            (1..=7).map(|n| (format!("pod-{n}"), json!(n))).collect();
        let text = write_origins(&Value::Object(many));
        assert_eq!(
            text,
            "pod-7 7, pod-6 6, pod-5 5, pod-4 4, pod-3 3 and 2 more"
        );
    }
}
