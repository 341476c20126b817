//! The program `trunkline-bench`: the tool by itself, for development and for
//! `cargo xtask bench`.

use std::process::ExitCode;

use clap::Parser;
use trunkline_bench::{EXAMPLES, Options, SHORT_EXAMPLES, run};

/// The allocator of the program `trunkline`, where it is not that of glibc.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures xDS servers, as many real clients would.
#[derive(Debug, Parser)]
#[command(name = "trunkline-bench", version, max_term_width = 100)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

#[expect(clippy::print_stderr, reason = "a program says why it fails")]
fn main() -> ExitCode {
    match run(&Cli::parse().options) {
        Ok(Some(report)) if !report.is_correct() => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trunkline-bench: {error}");
            ExitCode::from(2)
        }
    }
}
