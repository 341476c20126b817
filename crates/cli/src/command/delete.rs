//! `trunkline delete`: removes resources of a server.

use http::Method;

use super::{ask, changes, encoded};
use crate::cli;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::kinds;

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
    let asked = client.ask(Method::DELETE, &path, "application/json", Vec::new(), "");
    changes::show(&ask(asked)?, "")
}
