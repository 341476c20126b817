//! `trunkline mcp source`: files as collections for control planes.
//!
//! ```text
//!   files ─▶ Server: checked, watched ─▶ McpSource ─┬─ listens for sinks
//!              │                                    └─ dials sinks
//!              └─ the admin API: files, contents, sinks, metrics
//! ```
//!
//! The server is that of `serve`, without an address of xDS: what a control
//! plane would reject is found here first.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trunkline::checked;
use trunkline::listen::Lanes;
use trunkline::mcp::{Canaries, McpSource, ServerCollections, SourceOptions};
use trunkline::tls::Tls;
use trunkline::{Builder, Server};

use crate::admin::Admin;
use crate::cli::{self, Global};
use crate::contents::Reading;
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::log;
use crate::mcp::{self, Role};
use crate::plaintext::PlaintextLog;
use crate::running::{self, Apis};
use crate::runtimes::{LAST_WORK, Runtimes};
use crate::settings::{Address, LogFormat, LogLevel, Raw, Settings, parse_pair, resolve};
use crate::signals::Ends;

/// How long the first load takes at most, unless something is wrong.
const FIRST_LOAD: Duration = Duration::from_millis(500);

/// Serves until a signal ends the program.
pub(super) fn run(args: &cli::McpSource, global: Global) -> Result<()> {
    let settings = read_settings(args)?;
    let format = global.log_format.unwrap_or(LogFormat::Text);
    log::start(format, global.log_level.unwrap_or(LogLevel::Info))?;
    descriptors::load(&settings.descriptors)?;
    let runtimes = Runtimes::start()?;
    let result = runtimes
        .front
        .block_on(serve(args, &settings, runtimes.lanes()));
    runtimes.shut_down(LAST_WORK);
    result
}

/// Reads the settings of the server behind the source from the flags, which are
/// flags of `serve` too.
fn read_settings(args: &cli::McpSource) -> Result<Settings> {
    let text = |path: &PathBuf| path.display().to_string();
    let all = |paths: &[PathBuf]| paths.iter().map(text).collect::<Vec<_>>();
    let one = |path: &Option<PathBuf>| path.iter().map(text).collect::<Vec<_>>();
    let mut raw = Raw::default();
    raw.set("config", all(&args.config));
    raw.set("admin", vec![args.admin.clone()]);
    raw.set("descriptors", all(&args.descriptors));
    raw.set("allow_empty", vec![args.allow_empty.to_string()]);
    raw.set("tls_cert", one(&args.tls_cert));
    raw.set("tls_key", one(&args.tls_key));
    raw.set("tls_client_ca", one(&args.tls_client_ca));
    resolve(None, &raw).map_err(Failure::usage)
}

/// Serves the contents of a server as collections, until a signal ends the
/// program. Sinks are let in, or dialled, after the first load.
async fn serve(args: &cli::McpSource, settings: &Settings, lanes: Lanes) -> Result<()> {
    let mut ends = Ends::new()?;
    let plaintext_log = Arc::new(PlaintextLog::default());
    let tls = running::load_tls(settings, settings.tls_client_ca.as_ref(), &plaintext_log)?;
    let admin_tls = running::load_tls(settings, None, &plaintext_log)?;
    running::watch_tls([("MCP", &tls), ("admin", &admin_tls)]);
    checked::warm_up();

    let (admin, admin_listener) = running::bind(&settings.admin, "--admin").await?;
    let (listen, listener) = bind(args).await?.unzip();
    let SourceParts {
        source,
        collections,
        server,
        api,
    } = build(args, settings, &lanes)?;
    let api = Arc::new(api);
    let apis = Apis::start(&api, admin_listener, admin_tls, None, Some(lanes.clone()));
    server.start();

    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let (load_sender, first_load) = oneshot::channel();
    tasks.spawn(collections.run(server.clone(), source.clone(), || {
        // Fails if the program is about to end.
        let _ = load_sender.send(());
    }));

    let streams = Streams {
        source: &source,
        server: &server,
        stop: &stop,
        lanes,
    };
    let work = async {
        wait_for_first_load(first_load, &server).await;
        log_ready(&source, listen, admin);
        streams.spawn(&mut tasks, args, listener, tls);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = work => {}
        () = ends.next() => {}
    }

    server.stop();
    stop.cancel();
    tasks.shutdown().await;
    apis.finish().await;
    tracing::info!("stopped");
    Ok(())
}

/// A source, and the server whose contents it sends.
struct SourceParts {
    source: McpSource,
    /// The contents of the server as collections, for the source.
    collections: ServerCollections,
    server: Server,
    api: Admin,
}

/// Builds the source of the flags, and the server behind it. Nothing runs yet.
///
/// # Errors
/// The canaries of the flags are wrong, or a file of the settings cannot be
/// used.
fn build(args: &cli::McpSource, settings: &Settings, lanes: &Lanes) -> Result<SourceParts> {
    let source = McpSource::new(SourceOptions {
        canaries: parse_canaries(args)?,
        ..SourceOptions::default()
    });
    let collections = ServerCollections::default();

    let hook = collections.clone();
    let customize = |builder: Builder| {
        let builder = builder.hooks(hook);
        builder.options(|options| options.lanes = Some(lanes.clone()))
    };
    let role = Role::Source(source.clone());
    let (server, api) = running::build(settings, Reading::Collections, Some(role), customize)?;
    Ok(SourceParts {
        source,
        collections,
        server,
        api,
    })
}

/// Logs that the source has its first contents. `listen` is the address for
/// sinks, `admin` that of the admin API.
fn log_ready(source: &McpSource, listen: Option<SocketAddr>, admin: SocketAddr) {
    let listen = listen.map(tracing::field::display);
    let resources: usize = source.collections().values().sum();
    tracing::info!(listen, %admin, resources, "ready");
}

/// Parses the canaries of the flags. Returns `None` without `--canary`.
fn parse_canaries(args: &cli::McpSource) -> Result<Option<Canaries>> {
    let Some(text) = &args.canary else {
        return Ok(None);
    };
    let pair = parse_pair(text).map_err(|bad| Failure::usage(format!("--canary: {bad}")));
    let (key, value) = pair?;
    Ok(Some(Canaries {
        key,
        value,
        soak: args.soak,
    }))
}

/// Binds the address for sinks. Without one, and without sinks to dial, it is
/// the default one. Returns `None` if sinks are only dialled.
async fn bind(args: &cli::McpSource) -> Result<Option<(SocketAddr, TcpListener)>> {
    let text = match (&args.listen, args.dial.is_empty()) {
        (Some(text), _) => text,
        (None, true) => cli::MCP_LISTEN,
        (None, false) => return Ok(None),
    };
    let address: Address = text
        .parse()
        .map_err(|bad| Failure::usage(format!("--listen: {bad}")))?;
    Ok(Some(running::bind(&address, "--listen").await?))
}

/// Waits until the source has the first contents; says so if that takes long.
async fn wait_for_first_load(first_load: oneshot::Receiver<()>, server: &Server) {
    if tokio::time::timeout(FIRST_LOAD, server.ready())
        .await
        .is_err()
    {
        tracing::info!("waiting until every file has been good; until then no sink is served");
    }
    // The sender lives as long as the task, which ends with the program.
    let _ = first_load.await;
}

/// What the streams to sinks need.
struct Streams<'a> {
    source: &'a McpSource,
    server: &'a Server,
    stop: &'a CancellationToken,
    lanes: Lanes,
}

impl Streams<'_> {
    /// Begins to listen, if there is a listener, and to dial the sinks of the
    /// flags. Each is a task that ends with the program.
    fn spawn(
        &self,
        tasks: &mut JoinSet<()>,
        args: &cli::McpSource,
        listener: Option<TcpListener>,
        tls: Option<Tls>,
    ) {
        if let Some(listener) = listener {
            let mut listening = mcp::listening(tls, Some(self.lanes.clone()));
            listening.connections = args.max_connections;
            listening.stopped = self.stop.clone();
            let (source, server) = (self.source.clone(), self.server.clone());
            tasks.spawn(async move { source.listen_beside(&server, listener, listening).await });
        }
        let certificate = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
        for peer in &args.dial {
            let sink = peer.control_plane(args.tls_ca.as_ref(), certificate);
            tasks.spawn(self.source.clone().dial(sink));
        }
    }
}
