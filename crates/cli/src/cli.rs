//! The command line: names, flags and defaults are a contract.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use trunkline::LeaseTtl;

use crate::failure;
use crate::settings::{Flags, LogFormat, LogLevel, parse_duration};
use crate::version;

/// Serves, checks and shows xDS configuration.
///
/// A control plane for Envoy and gRPC: resources come from files or over an
/// API, every change is checked, and reaches all clients that it concerns.
#[derive(Debug, Parser)]
#[command(
    name = "trunkline",
    version = version::VERSION,
    long_version = version::LONG,
    after_help = failure::CODES,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Global {
    /// How lines of the log look [default: text]
    #[arg(long, global = true, value_name = "FORMAT", help_heading = "Log")]
    pub(crate) log_format: Option<LogFormat>,
    /// How much is logged [default: info]
    #[arg(long, global = true, value_name = "LEVEL", help_heading = "Log")]
    pub(crate) log_level: Option<LogLevel>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves resources to xDS clients until it is told to stop
    #[command(after_help = "Examples:\n  \
        trunkline serve --config /etc/trunkline          serve what is in a directory, and watch it\n  \
        trunkline serve                                  serve what `trunkline apply` brings\n  \
        trunkline serve --settings trunkline.yaml        with settings from a file\n  \
        trunkline serve --listen 0.0.0.0:18000 --tls-cert c.pem --tls-key k.pem --tls-client-ca ca.pem\n\n\
        SIGTERM and SIGINT drain and stop the server; a second one stops it at once.")]
    Serve(Serve),
    /// Checks files of resources as `serve` would, and exits
    #[command(after_help = "Examples:\n  \
        trunkline validate clusters.yaml\n  \
        trunkline validate --dangling error /etc/trunkline\n\n\
        Exits with 1 if there is an error, and prints each as file:line:column: field: what.")]
    Validate(Validate),
    /// Shows the resources that a server serves
    #[command(after_help = "Examples:\n  \
        trunkline get cds\n  \
        trunkline get cds backend -o yaml\n  \
        trunkline get type.googleapis.com/envoy.config.cluster.v3.Cluster -o json\n\n\
        Secrets are shown as [redacted]. What -o yaml prints can be given to `apply`.")]
    Get(Get),
    /// Adds or changes the resources of a file: all of them, or none
    #[command(after_help = "Examples:\n  \
        trunkline apply -f clusters.yaml\n  \
        trunkline get cds backend -o yaml | sed s/8080/9090/ | trunkline apply -f -\n  \
        trunkline apply -f clusters.yaml --dry-run\n  \
        trunkline apply -f team-a.yaml --origin team-a --replace\n  \
        trunkline apply -f endpoints.yaml --origin pod-7 --replace --lease 30s\n  \
        trunkline apply -f a-million-hosts.pb\n\n\
        A name belongs to the origin that wrote it: `api`, unless --origin says another, or\n\
        `files` for those of --config. Another origin has to --take-over.\n\n\
        With --lease the program stays, and renews the lease of its origin. When it ends, or is\n\
        not heard of for that time, the server removes all resources of the origin; if they are\n\
        many, that is held. A server that has lost them gets the file again, as it is then.\n\n\
        A file of more than 10000 resources is sent in parts, and applied when the last of them\n\
        has arrived.\n\n\
        The virtual hosts of a route configuration that has `vhds` become resources of their\n\
        own (vhds). Applied again, those that it no longer lists are gone.\n\n\
        A resource without constraints around it replaces every variant of its name.\n\
        One with constraints is that variant. See docs/files.md.")]
    Apply(Apply),
    /// Removes resources: all that are named, or none
    #[command(after_help = "Examples:\n  \
        trunkline delete cds backend\n  \
        trunkline delete rds first second\n  \
        trunkline delete rds shop --variant 'env=prod AND NOT version=v1'\n\n\
        Without --variant every variant of a name goes.")]
    Delete(Delete),
    /// Confirms a change of files that is held, because it removes much
    #[command(after_help = "Example:\n  \
        trunkline confirm 8c1f0e9d2b7a6c55\n\n\
        The log and `trunkline status` of the server show which changes are held, with their\n\
        hashes. The hash of a change is the same on every replica.")]
    Confirm(Confirm),
    /// Shows each client of a server: whether it has what it should have
    #[command(after_help = "Examples:\n  \
        trunkline status\n  \
        trunkline status -o json\n\n\
        SYNCED: the client has accepted all. STALE: it has yet to answer. NACKED: it rejects\n\
        something, and the reason is shown. Files that are bad are listed at the end.")]
    Status(Status),
    /// Shows changes, ACKs, NACKs and clients that come and go, as it happens
    #[command(after_help = "Examples:\n  \
        trunkline watch\n  \
        trunkline watch --event nacked\n  \
        trunkline watch --node sidecar-7 --type cds --type eds\n  \
        trunkline watch --from 12 --json\n\n\
        Runs until it is stopped. If the connection is lost, it goes on after the last event that\n\
        it got. Events that are forgotten by then, or of a server that has started again, are\n\
        said to be missed. What --json prints is described in docs/admin-api.md.")]
    Watch(Watch),
    /// Tells which variant of a resource a client gets, or which virtual host on demand, and why
    #[command(after_help = "Examples:\n  \
        trunkline explain rds routes --node sidecar-7\n  \
        trunkline explain cds backend --params env=prod,version=v1\n  \
        trunkline explain --node sidecar-7 --route routes --host www.example.com\n  \
        trunkline explain --node envoy.yaml --route routes --host www.example.com:8443 -o json\n\n\
        Of a resource, tells the parameters of the client and who says so, the variant that they\n\
        choose, and what keeps it from the others. Of a host, tells the virtual host and by which domain, what else was considered, in which form it is\n\
        given and why, whether it is in a base set of the node, and for a client that is connected\n\
        whether it asked for it, holds it, or rejects it and with which words.")]
    Explain(Explain),
    /// Measures an xDS server, this one or another, as many clients would
    #[command(
        after_help = trunkline_bench::SHORT_EXAMPLES,
        after_long_help = trunkline_bench::EXAMPLES
    )]
    Bench(Box<trunkline_bench::Options>),
    /// Runs a control plane with a backend, a client and, if there is one, Envoy
    #[command(after_help = "Examples:\n  \
        trunkline demo\n  \
        trunkline demo --envoy /usr/local/bin/envoy")]
    Demo(Demo),
    /// Writes an example of a settings file
    #[command(after_help = "Example:\n  \
        trunkline settings --print-defaults > trunkline.yaml\n  \
        trunkline serve --settings trunkline.yaml")]
    Settings(Settings),
    /// Writes completions for a shell
    #[command(after_help = "Examples:\n  \
        trunkline completions bash > /etc/bash_completion.d/trunkline\n  \
        trunkline completions zsh > ~/.zfunc/_trunkline\n  \
        trunkline completions fish > ~/.config/fish/completions/trunkline.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The server's own settings, in YAML; flags win over them
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// Flags of `validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Files, or directories of files
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What a reference to a resource that is not there means
    #[arg(long, value_name = "HOW", default_value = "warn")]
    pub(crate) dangling: crate::settings::OnDangling,
}

/// How to reach a server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Remote {
    /// The server's admin address: host:port, or a URL with http:// or https://
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:18001")]
    pub(crate) admin: String,
    /// The authorities of the server's certificate, in PEM, instead of those of the system
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// A certificate to show to the server, in PEM
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Security",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Security",
        requires = "tls_cert"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// A file with the token that the server wants to see
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) token_file: Option<PathBuf>,
}

/// How resources are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One line for each.
    Table,
    /// As a file of resources.
    Yaml,
    /// The same in JSON.
    Json,
}

/// How a status is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    /// One line for each client and type.
    Table,
    /// All that is known.
    Json,
}

/// Flags of `get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// lds cds rds eds sds srds vhds rtds ecds leds, or a type URL
    #[arg(value_name = "TYPE")]
    pub(crate) kind: String,
    /// One resource; without it, all of the type
    pub(crate) name: Option<String>,
    /// How it is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `apply`.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// A file of resources, in YAML, JSON or binary (.pb); `-` is standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) file: String,
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
        conflicts_with_all = ["dry_run", "if_revision"]
    )]
    pub(crate) lease: Option<LeaseTime>,
    #[command(flatten)]
    pub(crate) change: Change,
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

/// Flags of `delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// lds cds rds eds sds srds vhds rtds ecds leds, or a type URL
    #[arg(value_name = "TYPE")]
    pub(crate) kind: String,
    /// Which resources
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Only the variant for these clients, as `get` shows it, such as env=prod
    #[arg(long, value_name = "CONSTRAINTS")]
    pub(crate) variant: Option<String>,
    /// Names that do not exist are no mistake
    #[arg(long)]
    pub(crate) missing_ok: bool,
    #[command(flatten)]
    pub(crate) change: Change,
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

/// Flags of `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// How it is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: StatusOutput,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Begin after the change that made this revision, such as 12, and not now
    #[arg(long, value_name = "REVISION")]
    pub(crate) from: Option<u64>,
    /// Begin after the event with this id, which --json shows
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    pub(crate) after: Option<String>,
    /// Only what is about this type, such as cds; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Only changed, acked, nacked, connected or disconnected; may be repeated
    #[arg(long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Only clients with this node id, such as sidecar-7, beside changes; may be repeated
    #[arg(long = "node", value_name = "ID")]
    pub(crate) nodes: Vec<String>,
    /// Print events as the server sends them, one line of JSON each
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The type of a resource: lds, cds, rds, eds and so on, or a type URL
    #[arg(value_name = "TYPE", requires = "name", conflicts_with_all = ["route", "host"])]
    pub(crate) kind: Option<String>,
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A file with a node or an Envoy bootstrap, or else the node id of a client that is connected
    #[arg(long, value_name = "FILE|ID", required_unless_present = "params")]
    pub(crate) node: Option<String>,
    /// Instead of a node, dynamic parameters: env=prod,version=v1
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "node")]
    pub(crate) params: Option<String>,
    /// The route configuration
    #[arg(
        long,
        value_name = "ROUTE",
        requires = "host",
        required_unless_present = "kind"
    )]
    pub(crate) route: Option<String>,
    /// The host as requests name it, with its port if they do
    #[arg(
        long,
        value_name = "HOST",
        requires = "route",
        required_unless_present = "kind"
    )]
    pub(crate) host: Option<String>,
    /// How it is shown
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: StatusOutput,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// An Envoy to start in front of the backend, instead of the one that is found
    #[arg(long, value_name = "PATH")]
    pub(crate) envoy: Option<PathBuf>,
    /// Stops by itself after this time
    #[arg(long, value_name = "TIME", value_parser = crate::settings::parse_duration)]
    pub(crate) duration: Option<Duration>,
}

/// Flags of `settings`.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Writes every key with its meaning and its default
    #[arg(long, required = true)]
    pub(crate) print_defaults: bool,
}
