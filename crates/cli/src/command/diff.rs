//! `trunkline diff`: files, or a revision, compared with what a server has.

use std::collections::HashMap;
use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use trunkline::checked::Item;

use super::changes::{Changed, Outcome};
use super::sources::{Encoded, Input, Sources};
use super::{encode_url, parse_body, parse_list, print, revisions, run_request};
use crate::admin::show_file_form;
use crate::cli;
use crate::client::{BINARY, Call, Client, DetailPrinter};
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::line_diff::write_diff;
use crate::output;
use crate::report::{Report, Severity};

/// The maximum of resources of all files, as many as one request may have.
const MOST_RESOURCES: usize = 10_000;
/// The maximum of bytes of names in one request to the server.
const MOST_NAME_BYTES: usize = 8 << 10;

/// A resource, by its type, its name and its constraints.
type Key = (String, String, Option<String>);

/// Prints each resource that `apply` would create, change or remove, with the
/// lines that differ. Returns 1 if there is such a resource, and 0 otherwise.
///
/// # Errors
/// The comparison failed. The exit code is 2 or more.
pub(super) fn run(args: &cli::Diff) -> Result<ExitCode> {
    let comparison = match &args.revision {
        Some(range) => revisions::print_differences(args, range),
        None => print_differences(args),
    };
    let has_changes = comparison.map_err(Failure::into_comparison_failure)?;
    Ok(match has_changes {
        false => ExitCode::SUCCESS,
        true => 1.into(),
    })
}

/// Prints the differences between the files and the server. Returns whether
/// there are any.
fn print_differences(args: &cli::Diff) -> Result<bool> {
    descriptors::load(&args.types.descriptors)?;
    let sources = Sources::read(&args.files, &Input::default())?;
    let items = sources.checked_items()?;
    if items.len() > MOST_RESOURCES {
        return Err(Failure::wrong(format!(
            "{} resources are more than can be compared at once, which are {MOST_RESOURCES}; \
             compare fewer files, or see `trunkline apply --dry-run` for the number of changes",
            items.len()
        )));
    }

    let encoding = sources.encode();
    let client = Client::new(&args.remote)?;
    let changes = run_request(rehearse(&client, args, encoding, sources.report()))?;

    let old_resources = run_request(fetch_resources(&client, &changes))?;
    let mut text = String::new();
    let new_items: HashMap<Key, &Item> = items.iter().map(|item| (item_key(item), item)).collect();
    for change in &changes {
        text.push_str(&describe_change(change, &old_resources, &new_items)?);
    }
    print(text.as_bytes())?;
    Ok(!changes.is_empty())
}

/// Has the server rehearse the change, and returns the changes. Warnings go to
/// standard error.
///
/// The rehearsal takes names over from other origins, and turns off the guard
/// against removals: both show the full effect, and nothing is changed.
async fn rehearse(
    client: &Client,
    args: &cli::Diff,
    encoding: Encoded,
    report: &Report,
) -> Result<Vec<Changed>> {
    let replace_flag = match args.replace {
        true => "&replace=true",
        false => "",
    };
    let origin = encode_url(&args.origin);
    let call = Call {
        method: Method::POST,
        path: &format!(
            "/api/v1/resources?dry_run=true&take_over=true&yes=true&origin={origin}{replace_flag}"
        ),
        content_type: BINARY,
        body: encoding.body.into(),
        file: "",
    };

    let printer = DetailPrinter {
        report,
        locate: &|detail| encoding.places.locate(detail),
    };
    let response = client.call_with_places(call, &printer).await?;
    let outcome: Outcome = parse_body(&response)?;
    for warning in outcome.warnings {
        eprint!("{}", printer.show(Severity::Warning, warning));
    }
    Ok(outcome.changed)
}

/// Fetches the old state of the resources that are changed or removed, as the
/// server shows them.
async fn fetch_resources(client: &Client, changes: &[Changed]) -> Result<HashMap<Key, Value>> {
    let mut names: HashMap<&str, Vec<&str>> = HashMap::new();
    for change in changes.iter().filter(|change| change.from.is_some()) {
        names
            .entry(&change.type_url)
            .or_default()
            .push(&change.name);
    }

    let mut resources = HashMap::new();
    for (type_url, mut names) in names {
        names.sort_unstable();
        names.dedup();
        let mut names = names.into_iter().peekable();
        while names.peek().is_some() {
            let mut path = format!("/api/v1/resources/{}?", encode_url(type_url));
            while let Some(name) = names.next_if(|_| path.len() < MOST_NAME_BYTES) {
                path.push_str(&format!("&name={}", encode_url(name)));
            }
            let body = client.get(&path).await?;
            for mut resource in parse_list(&body, "resources")? {
                let text = |key: &str| resource[key].as_str().map(str::to_owned);
                let name = text("name").unwrap_or_default();
                let key = (type_url.to_owned(), name, text("constraints"));
                resources.insert(key, resource["resource"].take());
            }
        }
    }
    Ok(resources)
}

/// Describes what happens to a resource, with the lines that differ. Returns an
/// empty text if the change has no version at all.
fn describe_change(
    change: &Changed,
    old_resources: &HashMap<Key, Value>,
    new_items: &HashMap<Key, &Item>,
) -> Result<String> {
    let effect = match (&change.from, &change.to) {
        (None, Some(_)) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
        (None, None) => return Ok(String::new()),
    };
    let key = (
        change.type_url.clone(),
        change.name.clone(),
        change.constraints.clone(),
    );

    let old_text = match old_resources.get(&key).filter(|_| change.from.is_some()) {
        Some(resource) => output::to_yaml(resource)?,
        None => String::new(),
    };
    let new_text = match new_items.get(&key).filter(|_| change.to.is_some()) {
        Some(item) => output::to_yaml(&show_file_form(&item.type_url, &item.resource))?,
        None => String::new(),
    };

    let lines = match write_diff(&old_text, &new_text) {
        lines if lines.is_empty() => "  only what is not shown differs, such as a secret\n".into(),
        lines => lines,
    };
    Ok(format!("{} {effect}\n{lines}", change.label()))
}

/// Returns the type, the name and the constraints of a resource of a file.
fn item_key(item: &Item) -> Key {
    let constraints = item.resource.constraints.as_ref();
    (
        item.type_url.to_string(),
        item.resource.name.to_string(),
        constraints.map(ToString::to_string),
    )
}
