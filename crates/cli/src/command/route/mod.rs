//! `trunkline route`: which virtual host, route and cluster a request gets, and
//! why not the others.
//!
//! The decisions are those of `trunkline-traffic`; here they are put into words,
//! and compared with a table of expectations.

mod client;
mod decision;
mod expect;
mod request;
mod tables;

use std::fmt::Write as _;

use self::client::Client;
use self::decision::{Decision, decide_route};
use self::request::RequestSpec;
use self::tables::Tables;
use super::print;
use crate::cli;
use crate::descriptors;
use crate::failure::{Failure, Result};

/// Routes a request, or all requests of a table of expectations.
///
/// # Errors
/// The files have a mistake, or a decision is not as expected.
pub(super) fn run(args: &cli::Route) -> Result<()> {
    descriptors::load(&args.types.descriptors)?;
    let tables = Tables::load(&args.config, &Client::read(args)?)?;
    if let Some(file) = &args.expect {
        return expect::run(file, &tables, args);
    }
    let (Some(method), Some(url)) = (&args.method, &args.url) else {
        return Err(Failure::usage("METHOD and URL are missing"));
    };

    let request = RequestSpec::parse(method, url, &args.headers)?;
    let table = tables.choose(args.routes.as_deref())?;
    let decision = decide_route(table, &request, args.random);
    print(describe_decision(&decision).as_bytes())
}

/// Writes a decision, one field per line, and then the routes that did not
/// match.
fn describe_decision(decision: &Decision) -> String {
    let mut text = String::new();
    for (name, value) in decision.fields() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name:<14}{value}");
    }
    for (index, route, reason) in &decision.passed_over {
        let _ = writeln!(text, "not route {index:<4}{route}: {reason}");
    }
    text
}
