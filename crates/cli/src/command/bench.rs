//! `bench`: measures a server.

use trunkline_bench::Options;

use crate::failure::{Failure, Result};

/// Measures a server and prints the report.
///
/// # Errors
/// The server cannot be measured, or a client received something wrong.
pub(crate) fn run(options: Options) -> Result<()> {
    let options = Options {
        // The measurement starts its servers from this program.
        command: vec!["bench".to_owned()],
        ..options
    };
    match trunkline_bench::run(&options) {
        Ok(Some(report)) if !report.is_correct() => Err(Failure::wrong(
            "clients saw something that they should not have; the report says what",
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::wrong(error)),
    }
}
