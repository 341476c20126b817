//! The program `trunkline-client-bench`: measures an xDS client, Trunkline's or
//! another's, for development and for `cargo xtask bench`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use trunkline_bench::watching::{MeasureOptions, WatchOptions, measure, watch};
use trunkline_bench::{Error, Result};

/// Measures xDS clients: CPU, memory and time to receive, check and deliver.
#[derive(Debug, Parser)]
#[command(name = "trunkline-client-bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves, starts a client, and measures it.
    Measure(MeasureOptions),
    /// Is the client that is measured.
    Watch(WatchOptions),
}

#[expect(clippy::print_stderr, reason = "a program says why it fails")]
fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trunkline-client-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command, and prints its report.
#[expect(clippy::print_stdout, reason = "the report is what the tool is for")]
fn run(command: &Command) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let options = match command {
            Command::Watch(options) => return watch(options).await,
            Command::Measure(options) => options,
        };
        let report = measure(options).await?;
        let json = serde_json::to_string_pretty(&report).map_err(std::io::Error::other)?;
        println!("{json}");
        if let Some(path) = &options.report {
            std::fs::write(path, json).map_err(|source| Error::File {
                path: path.clone(),
                source,
            })?;
        }
        Ok(())
    })
}
