//! `trunkline delete`: removes resources of a server.

use http::Method;

use super::{changes, encode_url, run_request};
use crate::cli;
use crate::client::{Call, Client};
use crate::failure::{Failure, Result};
use crate::kinds;

/// Removes the named resources in one request, all or none, and prints each
/// removal.
pub(super) fn run(args: &cli::Delete) -> Result<()> {
    let kind = kinds::parse(&args.kind).map_err(Failure::usage)?;

    let names = args.names.iter();
    let names = names.map(|name| format!("name={}", encode_url(name)));
    let mut query: Vec<String> = names.collect();
    if let Some(variant) = &args.variant {
        query.push(format!("variant={}", encode_url(variant)));
    }
    if args.missing_ok {
        query.push("missing_ok=true".to_owned());
    }
    query.push(args.change.query());

    let kind = encode_url(kind.as_str());
    let path = format!("/api/v1/resources/{kind}?{}", query.join("&"));
    let client = Client::new(&args.remote)?;
    let body = run_request(client.call(Call::bare(Method::DELETE, &path)))?;
    changes::print_outcome(&body, "")
}
