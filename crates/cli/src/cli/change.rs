//! Flags of commands that change what a server has, or would.

use std::time::Duration;

use clap::{Args, ValueEnum};
use trunkline::LeaseTtl;

use super::{Remote, Types};
use crate::settings::parse_duration;

/// Flags of `apply`.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// A file of resources, in YAML, JSON or binary (.pb), or a directory of such files; `-` is
    /// standard input; may be repeated
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub(crate) files: Vec<String>,
    /// Make the origin's resources exactly these: all others of it are removed
    #[arg(long)]
    pub(crate) replace: bool,
    /// Apply it even if it removes most of the origin's resources of a type
    #[arg(long)]
    pub(crate) yes: bool,
    /// Stay, and renew a lease of this time, such as 30s; when it ends, all of the origin goes
    #[arg(
        long,
        value_name = "TIME",
        value_parser = LeaseTime::parse,
        requires = "origin",
        conflicts_with_all = ["dry_run", "if_revision", "wait"]
    )]
    pub(crate) lease: Option<LeaseTime>,
    #[command(flatten)]
    pub(crate) change: Change,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// The time of `--lease`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseTime(LeaseTtl);

impl LeaseTime {
    /// Parses a time such as `30s`.
    ///
    /// # Errors
    /// It is no time, or none that a lease can last.
    fn parse(text: &str) -> Result<Self, String> {
        let time = parse_duration(text).map_err(|error| error.to_string())?;
        let ttl = LeaseTtl::new(time).map_err(|error| error.to_string())?;
        Ok(Self(ttl))
    }

    /// Returns the time.
    pub(crate) fn get(self) -> Duration {
        self.0.get()
    }

    /// Writes the time as it is parsed, such as `30000ms`.
    pub(crate) fn text(self) -> String {
        format!("{}ms", self.get().as_millis())
    }
}

/// Flags of commands that change resources.
#[derive(Debug, Args)]
pub(crate) struct Change {
    /// Whose resources they are; a name belongs to one origin
    #[arg(long, value_name = "NAME", default_value = "api")]
    pub(crate) origin: String,
    /// Take names over that belong to other origins
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Only if the contents are at this revision, which a change prints
    #[arg(long, value_name = "NUMBER")]
    pub(crate) if_revision: Option<u64>,
    /// Only say what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Flags of commands that can wait for clients.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Wait until every client that was connected has answered all that was sent for the change;
    /// with =removals, also until it has let go of what it may still use
    #[arg(
        long,
        value_name = "FOR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "answers",
        conflicts_with = "dry_run"
    )]
    pub(crate) wait: Option<WaitFor>,
    /// How long to wait
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_duration,
        default_value = "60s",
        requires = "wait"
    )]
    pub(crate) timeout: Duration,
}

/// What `--wait` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// The answers of clients. Removals that are withheld while a client may
    /// use the resource are reported only.
    Answers,
    /// These removals, too.
    Removals,
}

/// Flags of `delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// A type, then names; or TYPE/NAME each. Types are lds cds rds eds sds srds vhds rtds ecds
    /// leds, words such as clusters, or type URLs
    #[arg(value_name = "TYPE[/NAME]", required_unless_present = "files")]
    pub(crate) words: Vec<String>,
    /// Instead, all resources that a file names, or a directory of files; `-` is standard input;
    /// may be repeated
    #[arg(
        short = 'f',
        long = "file",
        value_name = "PATH",
        conflicts_with_all = ["words", "variant"]
    )]
    pub(crate) files: Vec<String>,
    /// Only the variant for these clients, as `get` shows it, such as env=prod
    #[arg(long, value_name = "CONSTRAINTS")]
    pub(crate) variant: Option<String>,
    /// Names that do not exist are no mistake
    #[arg(long)]
    pub(crate) missing_ok: bool,
    #[command(flatten)]
    pub(crate) change: Change,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `edit`.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// The type and the name of a resource, as TYPE/NAME or one after the other. Types are lds
    /// cds rds eds sds srds vhds rtds ecds leds, words such as clusters, or type URLs
    #[arg(value_name = "TYPE/NAME", required = true)]
    pub(crate) words: Vec<String>,
    /// Only the variant for these clients, as `get` shows it, such as env=prod
    #[arg(long, value_name = "CONSTRAINTS")]
    pub(crate) variant: Option<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A file of resources, in YAML, JSON or binary (.pb), or a directory of such files; `-` is
    /// standard input; may be repeated
    #[arg(
        short = 'f',
        long = "file",
        value_name = "PATH",
        required_unless_present = "revision"
    )]
    pub(crate) files: Vec<String>,
    /// Compare the contents of a revision with the present ones, or those of two: 7 or 7..9
    #[arg(long, value_name = "A[..B]", conflicts_with_all = ["files", "replace"])]
    pub(crate) revision: Option<String>,
    /// Whose resources they would be
    #[arg(long, value_name = "NAME", default_value = "api")]
    pub(crate) origin: String,
    /// Compare with all resources of the origin: others are removed
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `confirm`.
#[derive(Debug, Args)]
pub(crate) struct Confirm {
    /// The hash of the change
    #[arg(value_name = "HASH")]
    pub(crate) hash: String,
    #[command(flatten)]
    pub(crate) remote: Remote,
}
