//! `trunkline delete`: removes resources of a server.

use http::Method;

use super::{changes, encoded, run_request};
use crate::cli;
use crate::client::{Call, Client};
use crate::failure::{Failure, Result};
use crate::kinds;

/// Removes the named resources in one request, and shows each removal.
pub(super) fn run(args: &cli::Delete) -> Result<()> {
    let kind = kinds::parse(&args.kind).map_err(Failure::usage)?;
    let names = args
        .names
        .iter()
        .map(|name| format!("name={}", encoded(name)));
    let mut query: Vec<String> = names.collect();
    if let Some(variant) = &args.variant {
        query.push(format!("variant={}", encoded(variant)));
    }
    if args.dry_run {
        query.push("dry_run=true".to_owned());
    }
    let kind = encoded(kind.as_str());
    let path = format!("/api/v1/resources/{kind}?{}", query.join("&"));
    let client = Client::new(&args.remote)?;
    let body = run_request(client.call(Call::bare(Method::DELETE, &path)))?;
    changes::show(&body, "")
}
