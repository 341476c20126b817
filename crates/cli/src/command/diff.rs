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
/// lines that differ. Returns 1 if there is one, and 0 otherwise.
///
/// # Errors
/// Something is wrong. Its code is 2 or more.
pub(super) fn run(args: &cli::Diff) -> Result<ExitCode> {
    let changed = match &args.revision {
        Some(range) => revisions::compare(args, range),
        None => compare(args),
    };
    let changed = changed.map_err(Failure::of_comparison)?;
    Ok(match changed {
        false => ExitCode::SUCCESS,
        true => 1.into(),
    })
}

/// Prints the differences. Returns whether there is one.
fn compare(args: &cli::Diff) -> Result<bool> {
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
    let encoded = sources.encode();
    let client = Client::new(&args.remote)?;
    let changed = run_request(rehearse(&client, args, encoded, sources.report()))?;

    let old = run_request(fetch(&client, &changed))?;
    let mut text = String::new();
    let new: HashMap<Key, &Item> = items.iter().map(|item| (key_of(item), item)).collect();
    for change in &changed {
        text.push_str(&describe(change, &old, &new)?);
    }
    print(text.as_bytes())?;
    Ok(!changed.is_empty())
}

/// Has the server rehearse the change, and returns what it would change. Its
/// warnings go to standard error.
///
/// Names of other origins are compared too, and removals are not held: nothing
/// is changed.
async fn rehearse(
    client: &Client,
    args: &cli::Diff,
    encoded: Encoded,
    report: &Report,
) -> Result<Vec<Changed>> {
    let replace = match args.replace {
        true => "&replace=true",
        false => "",
    };
    let origin = encode_url(&args.origin);
    let call = Call {
        method: Method::POST,
        path: &format!(
            "/api/v1/resources?dry_run=true&take_over=true&yes=true&origin={origin}{replace}"
        ),
        content_type: BINARY,
        body: encoded.body.into(),
        file: "",
    };
    let printer = DetailPrinter {
        report,
        locate: &|detail| encoded.places.locate(detail),
    };
    let answer = client.call_with_places(call, &printer).await?;
    let outcome: Outcome = parse_body(&answer)?;
    for warning in outcome.warnings {
        eprint!("{}", printer.show(Severity::Warning, warning));
    }
    Ok(outcome.changed)
}

/// Gets the resources that are changed or removed, as the server shows them.
async fn fetch(client: &Client, changed: &[Changed]) -> Result<HashMap<Key, Value>> {
    let mut names: HashMap<&str, Vec<&str>> = HashMap::new();
    for change in changed.iter().filter(|change| change.from.is_some()) {
        names
            .entry(&change.type_url)
            .or_default()
            .push(&change.name);
    }

    let mut found = HashMap::new();
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
            for mut shown in parse_list(&body, "resources")? {
                let text = |key: &str| shown[key].as_str().map(str::to_owned);
                let name = text("name").unwrap_or_default();
                let key = (type_url.to_owned(), name, text("constraints"));
                found.insert(key, shown["resource"].take());
            }
        }
    }
    Ok(found)
}

/// Writes what becomes of a resource, and the lines that differ.
fn describe(
    change: &Changed,
    old: &HashMap<Key, Value>,
    new: &HashMap<Key, &Item>,
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
    let before = match old.get(&key).filter(|_| change.from.is_some()) {
        Some(resource) => output::to_yaml(resource)?,
        None => String::new(),
    };
    let after = match new.get(&key).filter(|_| change.to.is_some()) {
        Some(item) => output::to_yaml(&show_file_form(&item.type_url, &item.resource))?,
        None => String::new(),
    };
    let lines = match write_diff(&before, &after) {
        lines if lines.is_empty() => "  only what is not shown differs, such as a secret\n".into(),
        lines => lines,
    };
    Ok(format!("{} {effect}\n{lines}", change.label()))
}

/// Returns the type, the name and the constraints of a resource of a file.
fn key_of(item: &Item) -> Key {
    let constraints = item.resource.constraints.as_ref();
    (
        item.type_url.to_string(),
        item.resource.name.to_string(),
        constraints.map(ToString::to_string),
    )
}
