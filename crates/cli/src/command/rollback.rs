//! `trunkline rollback`: makes the contents those of an earlier revision.

use http::Method;

use super::{changes, run_request, wait};
use crate::cli;
use crate::client::{Call, Client};
use crate::failure::Result;

/// Restores an earlier revision, and prints each change. The server checks the
/// change as any other.
pub(super) fn run(args: &cli::Rollback) -> Result<()> {
    let mut path = format!("/api/v1/rollback?revision={}", args.revision);
    for (is_set, name) in [(args.dry_run, "dry_run"), (args.yes, "yes")] {
        if is_set {
            path.push_str(&format!("&{name}=true"));
        }
    }
    if let Some(revision) = args.if_revision {
        path.push_str(&format!("&if_revision={revision}"));
    }

    let client = Client::new(&args.remote)?;
    run_request(async {
        let body = client.call(Call::bare(Method::POST, &path)).await?;
        let change = changes::print_outcome_without_file(&body)?;
        wait::wait_for_clients(&client, &args.wait, change).await
    })
}
