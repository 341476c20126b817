//! `trunkline delete`: removes resources of a server.

use std::collections::HashSet;

use http::Method;
use serde_json::{Value, json};
use trunkline::checked::Item;
use trunkline_proto::text::Format;

use super::selection::parse_words;
use super::sources::{Input, Sources};
use super::{changes, run_request, wait};
use crate::cli;
use crate::client::{Call, Client, content_type};
use crate::descriptors;
use crate::failure::{Failure, Result};

/// Removes the named resources in one request, all or none, and prints each
/// removal.
pub(super) fn run(args: &cli::Delete) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let names = match args.files.is_empty() {
        true => names_of_words(args)?,
        false => {
            let sources = Sources::read(&args.files, &Input::default())?;
            names_of_items(&sources.named_items()?)
        }
    };

    let missing_ok_flag = match args.missing_ok {
        true => "&missing_ok=true",
        false => "",
    };
    let call = Call {
        method: Method::DELETE,
        path: &format!(
            "/api/v1/resources?{}{missing_ok_flag}",
            args.change.query_parameters()
        ),
        content_type: content_type(Format::Json),
        body: json!({"names": names}).to_string().into(),
        file: "",
    };
    let client = Client::new(&args.remote)?;
    run_request(async {
        let body = client.call(call).await?;
        let change = changes::print_outcome_without_file(&body)?;
        wait::wait_for_clients(&client, &args.wait, change).await
    })
}

/// Lists the resources that the command line names.
///
/// # Errors
/// A type has no names.
fn names_of_words(args: &cli::Delete) -> Result<Vec<Value>> {
    let mut names = Vec::new();
    for selection in parse_words(&args.words)? {
        if selection.names.is_empty() {
            return Err(Failure::usage(
                "which resources? give their names behind the type, or each as TYPE/NAME",
            ));
        }
        let type_url = selection.type_url.as_str();
        for name in &selection.names {
            names.push(json!({"type": type_url, "name": name, "variant": args.variant}));
        }
    }
    Ok(names)
}

/// Lists the resources of files, each only once. A resource with constraints
/// means that variant; one without means every variant of its name. Virtual
/// hosts inside a route configuration are removed with it.
fn names_of_items(items: &[Item]) -> Vec<Value> {
    let mut known_variants = HashSet::new();
    let names = items
        .iter()
        .filter(|item| !item.is_inline_host)
        .filter_map(|item| {
            let constraints = item
                .wrapper_constraints
                .as_ref()
                .and(item.resource.constraints.as_ref());
            let variant = constraints.map(ToString::to_string);
            let (type_url, name) = (&item.type_url, &item.resource.name);
            let is_new = known_variants.insert((type_url.clone(), name.clone(), variant.clone()));
            is_new.then(
                || json!({"type": type_url.as_str(), "name": name.as_str(), "variant": variant}),
            )
        });
    names.collect()
}
