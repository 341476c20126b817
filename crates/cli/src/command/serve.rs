//! `trunkline serve`: a server with its contents, its admin API and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;
use trunkline::Server;
use trunkline::listen::Listening;
use trunkline::tls::{Tls, TlsFiles};

use crate::admin::{self, Admin, Guard};
use crate::audit::Audit;
use crate::cli::{self, Global};
use crate::contents::FromFiles;
use crate::failure::{Failure, Result};
use crate::journal::Journal;
use crate::log;
use crate::metrics::{Count, Metrics};
use crate::settings::{Address, Choice as _, Raw, Settings, resolve};

pub(super) fn run(args: cli::Serve, global: Global) -> Result<()> {
    let settings = settings(args, global)?;
    log::start(settings.log_format, settings.log_level);
    super::runtime()?.block_on(serve(&settings))
}

/// Flags, the file that they name, defaults.
fn settings(args: cli::Serve, global: Global) -> Result<Settings> {
    let mut flags = args.flags.0;
    if let Some(format) = global.log_format {
        flags.set("log_format", vec![format.name().to_owned()]);
    }
    if let Some(level) = global.log_level {
        flags.set("log_level", vec![level.name().to_owned()]);
    }
    let file = args.settings.as_deref().map(read).transpose()?;
    resolve(file.as_ref(), &flags).map_err(Failure::usage)
}

fn read(path: &Path) -> Result<Raw> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("--settings {shown}: {error}")))?;
    Raw::read(&shown, &text).map_err(Failure::usage)
}

/// Serves until a signal ends it.
async fn serve(settings: &Settings) -> Result<()> {
    let start = Instant::now();
    let mut ends = Ends::new()?;
    let tls = tls(settings)?;
    let (xds, listener) = bind(&settings.listen, "--listen").await?;
    let (web, admin_listener) = bind(&settings.admin, "--admin").await?;
    let parts = Parts::new(settings)?;
    let server = parts.server.clone();
    let router = admin::router(parts.admin(settings)?);
    let api = Listening {
        tls: tls.clone(),
        ..Listening::default()
    };
    let api_stopped = api.stopped.clone();
    let api = tokio::spawn(api.serve(admin_listener, router, || {}));
    if let Some(tls) = tls.clone() {
        tokio::spawn(async move { tls.watch(reloaded).await });
    }
    let mut serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve_with(listener, tls).await }
    });
    let ready = say_when_ready(&server, xds, web, start);
    tokio::select! {
        () = async { ready.await; std::future::pending().await } => {}
        () = ends.next() => {}
    }
    end(&server, settings, &mut ends, &mut serving).await;
    api_stopped.cancel();
    // It does not end otherwise than it should: what panics is logged.
    let _ = api.await;
    tracing::info!("stopped");
    Ok(())
}

/// Drains until nobody is connected, for as long as is allowed, unless there is
/// a second signal.
async fn end(
    server: &Server,
    settings: &Settings,
    ends: &mut Ends,
    serving: &mut tokio::task::JoinHandle<()>,
) {
    let seconds = settings.times.drain.as_secs_f64();
    tracing::info!(seconds, "draining; a second signal stops at once");
    tokio::select! {
        _ = &mut *serving => return,
        () = server.drain() => {}
        () = ends.next() => server.stop(),
    }
    let _ = serving.await;
}

/// What a server consists of.
struct Parts {
    server: Server,
    metrics: Arc<Metrics>,
    files: Option<tokio::sync::watch::Receiver<Arc<trunkline_store::FilesStatus>>>,
}

impl Parts {
    fn new(settings: &Settings) -> Result<Self> {
        let metrics = Metrics::new();
        let audit = Audit::open(settings.audit_log.as_deref()).map_err(|error| {
            let path = settings.audit_log.as_deref().unwrap_or(Path::new(""));
            Failure::wrong(format!("--audit-log {}: {error}", path.display()))
        })?;
        let mut builder = Server::builder()
            .options(|options| settings.fill(options))
            .hooks(Count(Arc::clone(&metrics)))
            .hooks(audit)
            .hooks(Journal);
        let mut files = None;
        if !settings.config.is_empty() {
            let contents = FromFiles::watch(settings)
                .map_err(|error| Failure::wrong(format!("files cannot be watched: {error}")))?;
            files = Some(contents.status());
            builder = builder.contents(contents);
        }
        Ok(Self {
            server: builder.build(),
            metrics,
            files,
        })
    }

    fn admin(self, settings: &Settings) -> Result<Admin> {
        let guard = Guard::new(settings.admin_token_file.clone());
        guard
            .token()
            .map_err(|error| Failure::wrong(format!("--admin-token-file: {error}")))?;
        Ok(Admin {
            server: self.server,
            metrics: self.metrics,
            files: self.files,
            guard,
            dangling: settings.dangling,
            body_limit: settings.limits.admin_body.0,
            writes: Arc::new(Mutex::new(())),
        })
    }
}

async fn bind(address: &Address, flag: &str) -> Result<(SocketAddr, TcpListener)> {
    let bound = TcpListener::bind(address.as_str()).await;
    let listener = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
    listener.map_err(|error| {
        Failure::wrong(format!(
            "cannot listen on {address}: {error}; choose another with {flag}"
        ))
    })
}

fn tls(settings: &Settings) -> Result<Option<Tls>> {
    let (Some(cert), Some(key)) = (&settings.tls_cert, &settings.tls_key) else {
        return Ok(None);
    };
    let files = TlsFiles {
        cert: cert.clone(),
        key: key.clone(),
        client_ca: settings.tls_client_ca.clone(),
    };
    Tls::load(files).map(Some).map_err(Failure::wrong)
}

fn reloaded(result: std::result::Result<(), trunkline::tls::TlsError>) {
    match result {
        Ok(()) => tracing::info!("new TLS certificates are in use"),
        Err(error) => tracing::error!(%error, "the TLS files cannot be used; the old ones stay"),
    }
}

/// The one line that says that clients are served.
async fn say_when_ready(server: &Server, xds: SocketAddr, web: SocketAddr, start: Instant) {
    if !server.is_ready() {
        tracing::info!(listen = %xds, admin = %web, "waiting for the first contents");
    }
    server.ready().await;
    let resources: usize = server.read(|db| db.types().map(|(id, _)| db.len(id)).sum());
    let millis = start.elapsed().as_millis();
    tracing::info!(listen = %xds, admin = %web, resources, millis, "ready");
}

/// Signals that end the server. SIGHUP does nothing: files are watched, and a
/// terminal that goes away must not take the server with it.
struct Ends {
    term: Signal,
    int: Signal,
    _hup: Signal,
}

impl Ends {
    fn new() -> Result<Self> {
        let on = |kind| {
            signal(kind).map_err(|error| Failure::wrong(format!("no signal handler: {error}")))
        };
        Ok(Self {
            term: on(SignalKind::terminate())?,
            int: on(SignalKind::interrupt())?,
            _hup: on(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
