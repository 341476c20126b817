//! `trunkline confirm`: lets a server make a change that it holds.

use http::Method;

use super::{encode_url, print, run_request};
use crate::cli;
use crate::client::{Call, Client};
use crate::failure::Result;

/// Confirms a change by its hash.
pub(super) fn run(args: &cli::Confirm) -> Result<()> {
    let path = format!("/api/v1/confirm?hash={}", encode_url(&args.hash));
    let client = Client::new(&args.remote)?;
    run_request(client.call(Call::bare(Method::POST, &path)))?;
    print(b"confirmed: files are changed when they are looked at again, what an ended lease held goes now; apply others again\n")
}
