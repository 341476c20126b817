//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Examples at the end of `--help`.
const EXAMPLES: &str = "\
Examples:
  trunkline-attack --program target/release/trunkline --list
  trunkline-attack --program target/release/trunkline --only never-read --seconds 10
  trunkline-attack --program target/release/trunkline --server-cores 0 --own-cores 1 --markdown
  trunkline-attack --program target/debug/trunkline --quick
  trunkline-attack --program target/release/trunkline --soak 60 --seed 7";

/// Attacks a server, and measures what a well-behaved client beside it notices.
///
/// Each attack has a server of its own, a victim that subscribes to some
/// clusters, and a driver that changes one of them every 100 ms. Exits with 1 if
/// the victim lost a change or had to wait, or if memory did not stay, and come
/// back, within bounds.
#[derive(Clone, Debug, Parser)]
#[command(name = "trunkline-attack", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The program that is attacked, as `PROGRAM serve`
    #[arg(long, value_name = "PROGRAM", required_unless_present = "list")]
    pub(crate) program: Option<PathBuf>,
    /// Only the attacks with this name, or whose name begins with it
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Lists the attacks
    #[arg(long)]
    pub(crate) list: bool,
    /// How long each attack goes on
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) seconds: u64,
    /// The cores of the server, as taskset takes them
    #[arg(long, value_name = "CORES")]
    pub(crate) server_cores: Option<String>,
    /// The cores of attackers and victim
    #[arg(long, value_name = "CORES")]
    pub(crate) own_cores: Option<String>,
    /// The outcomes as JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// The table in Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Every attack once and small: counts are checked, times and memory are not
    #[arg(long)]
    pub(crate) quick: bool,
    /// Attacks at random, several at once at times, against one server
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["quick", "json", "markdown"])]
    pub(crate) soak: Option<u64>,
    /// The seed of what a soak chooses
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}
