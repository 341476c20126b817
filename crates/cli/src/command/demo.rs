//! `trunkline demo`: see [`crate::demo`].

use crate::cli::{self, Global};
use crate::demo;
use crate::failure::Result;
use crate::log;
use crate::settings::{LogFormat, LogLevel};

/// Starts the log, then runs the demo.
pub(super) fn run(args: &cli::Demo, global: Global) -> Result<()> {
    // Mistakes in files should be seen between the lines of the client.
    let level = global.log_level.unwrap_or(LogLevel::Warn);
    log::start(global.log_format.unwrap_or(LogFormat::Text), level)?;
    super::start_runtime()?.block_on(demo::run(args))
}
