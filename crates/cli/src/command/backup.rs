//! `trunkline backup` and `trunkline restore`: a copy of all that a server
//! keeps, and its way back.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use http::Method;
use trunkline_store::restore_backup;

use super::{print, run_request};
use crate::cli;
use crate::client::{Call, Client, Opening};
use crate::failure::{Failure, Result};

/// Writes a backup of a running server to a new file, which only its owner can
/// read. Removes the file if the backup is not complete.
pub(super) fn back_up(args: &cli::Backup) -> Result<()> {
    let path_text = args.file.display();
    let file_failure = |error: std::io::Error| Failure::wrong(format!("{path_text}: {error}"));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.file)
        .map_err(file_failure)?;

    let client = Client::new(&args.remote)?;
    let backup = run_request(async {
        let call = Call::bare(Method::POST, "/api/v1/backup");
        let mut response = match client.open_call(call).await? {
            Opening::Open(response) => response,
            Opening::Refused(_, failure) => return Err(failure),
        };
        let mut written_bytes = 0u64;
        while let Some(block) = response.next_chunk().await {
            file.write_all(&block).map_err(file_failure)?;
            written_bytes += block.len() as u64;
        }

        if response.content_length() != Some(written_bytes) {
            return Err(Failure::wrong(
                "the server was lost before the end of the backup",
            ));
        }
        file.sync_all().map_err(file_failure)?;
        Ok(written_bytes)
    });

    let written_bytes = backup.inspect_err(|_| {
        // An incomplete backup cannot be restored. The first error is shown,
        // whether the file can be removed or not.
        let _ = std::fs::remove_file(&args.file);
    })?;
    print(format!("{written_bytes} bytes written to {path_text}\n").as_bytes())
}

/// Makes a backup the contents of a directory, for a server that is started
/// with it.
pub(super) fn restore(args: &cli::Restore) -> Result<()> {
    let revision = restore_backup(&args.file, &args.data)
        .map_err(|error| Failure::wrong(format!("{error}; nothing was restored")))?;
    let data = args.data.display();
    print(format!("revision {revision} is restored: trunkline serve --data {data}\n").as_bytes())
}
