//! The command line: names, flags and defaults are a contract.
//!
//! The commands and their examples are here; the flags of those that talk to a
//! server are in `remote`, `show`, `watch`, `change` and `transfer`.

mod change;
mod history;
mod mcp;
mod remote;
mod route;
mod show;
mod transfer;
mod watch;

pub(crate) use self::change::{
    Apply, Change, Confirm, Delete, Diff, Edit, LeaseTime, Wait, WaitFor,
};
pub(crate) use self::history::{Backup, History, Restore, Rollback};
pub(crate) use self::mcp::{LISTEN as MCP_LISTEN, Mcp, McpOutput, McpSource, McpStatus, McpWatch};
pub(crate) use self::remote::Remote;
pub(crate) use self::route::Route;
pub(crate) use self::show::{Explain, Get, Output, Status, StatusOutput};
pub(crate) use self::transfer::{Export, Import, Peer};
pub(crate) use self::watch::{Plane, Replay, Watch, WatchOutput};

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::color::When;
use crate::failure;
use crate::settings::{Flags, LogFormat, LogLevel};
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
    /// When output has colours: auto is on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub(crate) color: When,
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
        trunkline validate --dangling error /etc/trunkline\n  \
        sed s/8080/9090/ clusters.yaml | trunkline validate -\n  \
        trunkline validate /etc/trunkline --envoy\n  \
        trunkline validate --envoy /usr/local/bin/envoy clusters.yaml\n\n\
        Exits with 1 if there is an error. Each is printed as error: file:line:column: field: what, with\n\
        the line of the file below it.\n\n\
        With --envoy, resources without a mistake are put into a bootstrap as each client would\n\
        get them, and `envoy --mode validate` judges it. Nothing is fetched. What Envoy says is\n\
        told at the resource that it rejects.")]
    Validate(Validate),
    /// Routes a request as Envoy would, by files of resources, and says why
    #[command(after_help = "Examples:\n  \
        trunkline route --config routes.yaml GET https://www.example.com/cart\n  \
        trunkline route --config routes.yaml GET http://www.example.com/ -H 'x-canary: 1'\n  \
        trunkline route --config routes.yaml --routes web --random 99 POST http://www.example.com/\n  \
        trunkline route --config routes.yaml --expect expected.yaml\n  \
        trunkline route --config routes.yaml --node envoy.yaml GET http://www.example.com/\n\n\
        Prints the virtual host, the route, the cluster and what is rewritten, and of each route\n\
        before it why it does not match. Routes are those of route configurations, of listeners,\n\
        and virtual hosts on demand. What of them cannot be decided here is told, and exits with 1.\n\
        Of variants, --node or --params leave those that one client gets.\n\n\
        With --expect, a file lists requests and what is expected of each; exits with 1 if one\n\
        differs. See docs/traffic.md.")]
    Route(Route),
    /// Shows the resources that a server serves
    #[command(after_help = "Examples:\n  \
        trunkline get                                    how many resources of each type\n  \
        trunkline get clusters\n  \
        trunkline get cds backend -o yaml\n  \
        trunkline get cds/backend eds/backend -o wide\n  \
        trunkline get type.googleapis.com/envoy.config.cluster.v3.Cluster -o json\n  \
        trunkline get cds --watch\n\n\
        Secrets are shown as [redacted]. What -o yaml prints can be given to `apply`.\n\n\
        With --watch, each change that follows is told: in a line, with -o name as TYPE/NAME, with\n\
        -o yaml as a document, and with -o json as a line of JSON, which present resources are too.\n\
        It runs until it is stopped, also if the server is away for a while.")]
    Get(Get),
    /// Adds or changes the resources of files: all of them, or none
    #[command(after_help = "Examples:\n  \
        trunkline apply -f clusters.yaml\n  \
        trunkline apply -f /etc/trunkline -f more.yaml\n  \
        trunkline get cds backend -o yaml | sed s/8080/9090/ | trunkline apply -f -\n  \
        trunkline apply -f clusters.yaml --dry-run\n  \
        trunkline apply -f clusters.yaml --wait --timeout 30s\n  \
        trunkline apply -f team-a.yaml --origin team-a --replace\n  \
        trunkline apply -f endpoints.yaml --origin pod-7 --replace --lease 30s\n  \
        trunkline apply -f a-million-hosts.pb\n\n\
        A name belongs to the origin that wrote it: `api`, unless --origin says another, or\n\
        `files` for those of --config. Another origin has to --take-over.\n\n\
        With --lease the program stays, and renews the lease of its origin. When it ends, or is\n\
        not heard of for that time, the server removes all resources of the origin; if they are\n\
        many, that is held. A server that has lost them gets the file again, as it is then.\n\n\
        With --wait the program ends when every client that was connected, and that the change\n\
        concerns, has answered all that was sent for it: with 0 if all have it, with 1 if one\n\
        rejects something of it, with 3 if one has not answered in time. A removal is withheld as\n\
        long as a client may use the resource; that is said, and --wait=removals waits for it.\n\
        If nothing has changed, or in parts, all clients are awaited.\n\n\
        All files of a directory, and of those below it, are one change.\n\n\
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
        trunkline delete clusters/backend eds/backend\n  \
        trunkline delete -f clusters.yaml\n  \
        trunkline delete cds backend --wait=removals --timeout 15m\n  \
        trunkline delete rds first second\n  \
        trunkline delete rds shop --variant 'env=prod AND NOT version=v1'\n\n\
        Without --variant every variant of a name goes. With -f, a resource that has constraints\n\
        names that variant.")]
    Delete(Delete),
    /// Opens a resource of a server in your editor, and applies what you save
    #[command(after_help = "Examples:\n  \
        trunkline edit cds/backend\n  \
        EDITOR=nano trunkline edit cluster backend\n  \
        trunkline edit rds/shop --variant 'env=prod AND NOT version=v1'\n\n\
        The editor is that of VISUAL or EDITOR, or else vi. What is saved is applied for the\n\
        origin that the resource has, and only if nobody else has changed it meanwhile. If it has\n\
        mistakes, the editor opens again with them on top. If it cannot be applied, the text is\n\
        kept in a file. All variants of the name are edited together, unless --variant picks one.\n\
        A resource that comes from a file is edited there.")]
    Edit(Edit),
    /// Shows how files, or a revision, differ from what a server has, and changes nothing
    #[command(after_help = "Examples:\n  \
        trunkline diff -f clusters.yaml\n  \
        trunkline diff -f /etc/trunkline --origin team-a --replace\n  \
        trunkline diff --revision 7                      what has changed since revision 7\n  \
        trunkline diff --revision 7..9\n\n\
        Exits with 0 if there is no difference, with 1 if there is one, and with 2 or more if\n\
        something is wrong. Secrets are shown as [redacted], also where they differ. Names that\n\
        belong to another origin are compared too; `apply` would need --take-over for them.")]
    Diff(Diff),
    /// Shows the revisions of what was applied to a server: who changed what, and when
    #[command(after_help = "Examples:\n  \
        trunkline history\n  \
        trunkline history cds backend\n  \
        trunkline history cds/backend --limit 5\n  \
        trunkline history --before 40\n\n\
        Newest first. Contents of files have no history here: they are in yours.")]
    History(History),
    /// Makes what was applied to a server what it was at a revision, as a change like any other
    #[command(after_help = "Examples:\n  \
        trunkline rollback 7 --dry-run\n  \
        trunkline rollback 7\n  \
        trunkline rollback 7 --wait --timeout 30s\n\n\
        It is checked with all other contents, makes a new revision, and can be rolled back\n\
        itself. What comes from files is not touched.")]
    Rollback(Rollback),
    /// Writes a copy of all that a running server keeps to a file
    #[command(after_help = "Example:\n  \
        trunkline backup trunkline-2026-11-18.redb\n\n\
        The copy is that of one revision; changes go on meanwhile. It has secrets in it, so it\n\
        is written for its owner only, and is had from the same machine or over TLS.")]
    Backup(Backup),
    /// Makes a backup the contents of a directory, from which a server is then started
    #[command(after_help = "Example:\n  \
        trunkline restore trunkline-2026-11-18.redb --data /var/lib/trunkline\n\n\
        The backup is checked before. A directory that has contents is refused: move its file\n\
        away first.")]
    Restore(Restore),
    /// Writes the resources of a server as files that `apply` and `serve --config` read
    #[command(after_help = "Examples:\n  \
        trunkline export contents\n  \
        trunkline export clusters.pb --type cds\n  \
        trunkline export - --origin team-a --type cds --type eds\n  \
        trunkline export kept --data /var/lib/trunkline\n\n\
        A directory gets a file for each type, and others for more than 10000 resources. They have\n\
        secrets in them, so they are written for their owner only, and are had from the same\n\
        machine or over TLS. The same contents are the same files. Resources that a text would\n\
        not have all of are in other.pb.")]
    Export(Export),
    /// Brings resources from files, an Envoy or another control plane to a server
    #[command(after_help = "Examples:\n  \
        trunkline import contents\n  \
        trunkline import bootstrap.yaml --origin edge --dry-run\n  \
        trunkline import --envoy-admin 127.0.0.1:9901 --origin edge\n  \
        trunkline import --server 10.0.0.7:18000 --node sidecar-7 --replace --origin team-a\n  \
        trunkline import --server 10.0.0.7:18000 -o fetched\n\n\
        What is brought is applied as `apply` does it: checked, all or nothing, for an origin.\n\
        Of a bootstrap that is what static_resources has, of an Envoy what it uses; it does not\n\
        show secrets. A control plane is asked for all listeners, clusters and scoped routes that it has for\n\
        the node, and for what these refer to; it tells nobody which virtual hosts there are on\n\
        demand. With -o, files are written in place of a change.")]
    Import(Box<Import>),
    /// Confirms a change of files that is held, because it removes much
    #[command(after_help = "Example:\n  \
        trunkline confirm 8c1f0e9d2b7a6c55\n\n\
        The log and `trunkline status` of the server show which changes are held, with their\n\
        hashes. The hash of a change is the same on every replica.")]
    Confirm(Confirm),
    /// Shows each client of a server: whether it has what it should have
    #[command(after_help = "Examples:\n  \
        trunkline status\n  \
        trunkline status -o json\n  \
        trunkline status --node sidecar-7 --type cds\n  \
        trunkline status --check && echo all in sync\n  \
        trunkline status --watch\n  \
        trunkline status sidecar-7 --envoy-admin 127.0.0.1:9901\n\n\
        SYNCED: the client has accepted all. STALE: it has yet to answer. NACKED: it rejects\n\
        something, and the reason is shown. RESOURCES: how many it has as they should be, and how\n\
        many it should have. LAST SENT: how long ago it was sent something. WAITING: how long it\n\
        has not answered. SUBS: the names that it subscribes to; * is all. Trouble comes first.\n\
        Files that are bad, and changes that are held, are listed at the end.\n\n\
        With --envoy-admin, each resource that the server has sent to NODE is compared with what\n\
        its Envoy has by its own /config_dump: same, differs, missing in the proxy, only in the\n\
        proxy, rejected or warming, and then the lines that differ. Exits with 0 if all are the\n\
        same, with 1 if not, and with 2 or more if something is wrong. Resources of the Envoy's\n\
        bootstrap, and of types that it does not ask this server for, are no difference.")]
    Status(Status),
    /// Shows what happens: in a Trunkline server, or in what any control plane sends
    #[command(
        after_help = "Examples of events, of the Trunkline server at --admin:\n  \
        trunkline watch\n  \
        trunkline watch --event nacked\n  \
        trunkline watch --node sidecar-7 --type cds --type eds\n  \
        trunkline watch --from 12 --json\n\n\
        Examples of resources, as any control plane sends them to a client:\n  \
        trunkline watch cds --server 127.0.0.1:18000\n  \
        trunkline watch cds backend --server 127.0.0.1:18000 --sotw --node sidecar-7\n  \
        trunkline watch cds/backend eds/backend --server 127.0.0.1:18000 --once -o yaml\n  \
        trunkline watch rds shop --server 127.0.0.1:18000 --param env=prod -o json\n  \
        trunkline watch clusters --bootstrap envoy-ads.yaml\n  \
        trunkline watch cds --server https://xds.test:443 --tls-ca ca.pem --tls-cert c.pem --tls-key k.pem\n  \
        trunkline watch cds --server 127.0.0.1:18000 --once --record bug.jsonl\n  \
        trunkline watch listener:front --tree --server 127.0.0.1:18000\n  \
        trunkline watch cluster:backend --tree --server 127.0.0.1:18000 --once -o dot\n\n\
        Without --server and --bootstrap: changes, ACKs, NACKs and clients that come and go. If\n\
        the connection is lost, it goes on after the last event that it got. Events that are\n\
        forgotten by then, or of a server that has started again, are said to be missed. What\n\
        --json prints is described in docs/admin-api.md.\n\n\
        With one of them, the program is an xDS client: it subscribes to the names, or to all of\n\
        the type, and tells what is added, changed and removed, what it rejects (NACK) and why,\n\
        and what does not exist. Connections are told on standard error. Secrets are shown as\n\
        [redacted]. What -o yaml prints with --once can be given to `validate` and `apply`.\n\
        With --once: 0 all was found, 1 it was not, 3 no server was reached, or none answered.\n\
        docs/client.md has the forms, and what a recording holds.\n\
        With --tree: one listener or cluster, with everything that it refers to, each from the\n\
        config source that its parent names; what is printed is always complete.\n\n\
        Both run until they are stopped, and end when nobody reads what they print."
    )]
    Watch(Box<Watch>),
    /// Serves what `watch --record` has recorded again, to any client
    #[command(after_help = "Examples:\n  \
        trunkline replay recording.jsonl\n  \
        trunkline replay recording.jsonl --listen 0.0.0.0:18000 --speed 10\n  \
        trunkline replay recording.jsonl --stream 1\n\n\
        A client that asks for a type gets the recorded responses of that type in their order, with\n\
        their bytes, whatever names it asks for; each after it has answered the one before. Only\n\
        nonces are new. A stream of delta gets responses of delta, one of state of the world those\n\
        of state of the world. Every stream begins at the beginning, and stays open at the end.\n\
        What clients ask and answer is told on standard error, with the reason of each NACK.\n\n\
        Whoever reaches the address gets what was recorded, with its secrets.")]
    Replay(Replay),
    /// The Mesh Configuration Protocol: serves files as collections to control planes, and shows them
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        trunkline mcp source --config /etc/trunkline\n  \
        trunkline mcp source --config /etc/trunkline --dial plane.example:18012\n  \
        trunkline serve --mcp-from 127.0.0.1:18010\n  \
        trunkline serve --mcp-listen 127.0.0.1:18012 --collections lds,cds,rds,eds\n  \
        trunkline mcp watch clusters --server 127.0.0.1:18010\n  \
        trunkline mcp watch istio/networking/v1/gateways --server 127.0.0.1:18010 --incremental\n  \
        trunkline mcp status --admin 127.0.0.1:18011\n\n\
        A source reads manifests of Kubernetes and resources of Envoy, and checks them. Control\n\
        planes ask it for collections, or it dials them. See docs/mcp.md."
    )]
    Mcp(Mcp),
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
    /// Files, or directories of files; `-` is standard input
    #[arg(required_unless_present = "envoy", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What a reference to a resource that is not there means
    #[arg(long, value_name = "HOW", default_value = "warn")]
    pub(crate) dangling: crate::settings::OnDangling,
    /// Let a real Envoy judge the resources too: this program, or the `envoy` that is installed
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1)]
    pub(crate) envoy: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) types: Types,
}

/// Flags of commands that read resources.
#[derive(Debug, Args)]
pub(crate) struct Types {
    /// A FileDescriptorSet, as `protoc --include_imports --descriptor_set_out` writes it, of types
    /// that are not built in; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) descriptors: Vec<PathBuf>,
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
    #[arg(
        long,
        required_unless_present = "print_bounds",
        conflicts_with = "print_bounds"
    )]
    pub(crate) print_defaults: bool,
    /// Writes everything that a server bounds with these defaults, as a table in Markdown
    #[arg(long)]
    pub(crate) print_bounds: bool,
}
