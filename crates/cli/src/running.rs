//! A running server with its contents and its admin API: the common part of
//! `serve` and `demo`.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use trunkline::checked;
use trunkline::events::EventLog;
use trunkline::listen::{self, Listening};
use trunkline::tls::{Tls, TlsError, TlsFiles};
use trunkline::{Builder, Server};
use trunkline_store::FilesStatus;

use crate::admin::{self, Admin, Guard};
use crate::applied::AppliedContents;
use crate::audit::Audit;
use crate::contents;
use crate::failure::{Failure, Result};
use crate::journal::Journal;
use crate::metrics::{Count, Metrics};
use crate::plaintext::PlaintextLog;
use crate::settings::{Address, LogFormat, Settings};

/// A server on its two addresses.
pub(crate) struct Running {
    pub(crate) server: Server,
    /// The address of xDS.
    pub(crate) listen: SocketAddr,
    /// The address of the admin API.
    pub(crate) admin: SocketAddr,
    /// Ends when no client is served any more.
    pub(crate) serving: JoinHandle<()>,
    api: JoinHandle<()>,
    api_stopped: CancellationToken,
}

impl Running {
    /// Binds the addresses of the settings and begins to serve. Clients get
    /// nothing before the first contents are complete.
    ///
    /// # Errors
    /// An address cannot be bound, or a file of the settings cannot be used.
    pub(crate) async fn start(settings: &Settings) -> Result<Self> {
        Self::start_with(settings, |builder| builder).await
    }

    /// Binds the addresses of the settings and begins to serve. `more` may add
    /// to the server before it is built.
    ///
    /// # Errors
    /// An address cannot be bound, or a file of the settings cannot be used.
    pub(crate) async fn start_with(
        settings: &Settings,
        more: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self> {
        let tls = load_tls(settings)?;
        // Loaded on first use, which should not be a client's.
        checked::warm_up();

        let (listen, xds) = bind_xds(settings).await?;
        let (admin, admin_listener) = bind(&settings.admin, "--admin").await?;
        if tls.is_none() && !admin.ip().is_loopback() {
            tracing::warn!(
                %admin,
                "whoever reaches the admin address can read what is served; secrets are not shown"
            );
        }

        let (server, api) = build(settings, more)?;
        if let Some(tls) = tls.clone() {
            tokio::spawn(async move { tls.watch(log_reload).await });
        }

        let listening = Listening {
            tls: tls.clone(),
            ..Listening::default()
        };
        let api_stopped = listening.stopped.clone();
        let api = tokio::spawn(listening.serve(admin_listener, admin::router(api), || {}));
        let serving = tokio::spawn(serve(server.clone(), xds, tls));
        Ok(Self {
            server,
            listen,
            admin,
            serving,
            api,
            api_stopped,
        })
    }

    /// Waits until streams have ended, then ends the admin API, which tells of
    /// the server until then.
    pub(crate) async fn finish(self) {
        // An error of a task is a panic, which was logged.
        if !self.serving.is_finished() {
            let _ = self.serving.await;
        }
        self.api_stopped.cancel();
        let _ = self.api.await;
    }
}

/// Serves xDS on all listeners until the server stops.
async fn serve(server: Server, listeners: Vec<TcpListener>, tls: Option<Tls>) {
    let tasks = listeners.into_iter().map(|listener| {
        let (server, tls) = (server.clone(), tls.clone());
        async move { server.serve_with(listener, tls).await }
    });
    let mut serving: JoinSet<()> = tasks.collect();
    // An error of a task is a panic, which was logged.
    while serving.join_next().await.is_some() {}
}

/// Builds a server with its hooks and contents, and the state of its admin API.
/// Contents come from the files of the settings, if these name any, and else
/// over the API. Nothing listens yet.
///
/// # Errors
/// The audit log, the token file or the files of contents cannot be used.
fn build(settings: &Settings, more: impl FnOnce(Builder) -> Builder) -> Result<(Server, Admin)> {
    let metrics = Metrics::new();
    let events = EventLog::default();
    let audit = Audit::open(settings.audit_log.as_deref()).map_err(|error| {
        let path = settings.audit_log.as_deref().unwrap_or(Path::new(""));
        Failure::wrong(format!("--audit-log {}: {error}", path.display()))
    })?;
    let guard = Guard::new(settings.admin_token_file.clone());
    // The token is read for each write; here, a mistake in its file is found
    // early.
    guard
        .read_token()
        .map_err(|error| Failure::wrong(format!("--admin-token-file: {error}")))?;

    let mut builder = Server::builder()
        .options(|options| settings.fill(options))
        .hooks(Count(Arc::clone(&metrics)))
        .hooks(events.clone())
        .hooks(audit)
        .hooks(Journal::default());
    let mut files: Option<watch::Receiver<Arc<FilesStatus>>> = None;
    let origins = &settings.await_origins;
    let applied = Arc::new(AppliedContents::new(origins));
    let awaits_any = settings.config.is_empty() && !settings.allow_empty;
    if awaits_any || !origins.is_empty() {
        builder = builder.contents(Arc::clone(&applied));
    }
    if !settings.config.is_empty() {
        let contents = contents::watch(settings)
            .map_err(|error| Failure::wrong(format!("files cannot be watched: {error}")))?;
        let lines = settings.log_format == LogFormat::Text && std::io::stderr().is_terminal();
        tokio::spawn(contents::log_problems(contents.status(), lines));
        files = Some(contents.status());
        builder = builder.contents(contents);
    }

    let server = more(builder).build();
    let admin = Admin {
        server: server.clone(),
        metrics,
        events,
        files,
        guard,
        applied,
        dangling: settings.dangling,
        hold_removals: settings.hold_removals,
        body_limit: settings.limits.admin_body.0,
        bodies: admin::Bodies::new(settings.limits.admin_body.0),
        stage: Arc::default(),
        waits: Semaphore::new(admin::MOST_WAITS),
    };
    Ok((server, admin))
}

/// Binds all addresses of xDS; returns the main one, and the listeners of all,
/// of which the first is the main one's.
async fn bind_xds(settings: &Settings) -> Result<(SocketAddr, Vec<TcpListener>)> {
    let (listen, listener) = bind(&settings.listen, "--listen").await?;
    let mut listeners = vec![listener];
    for address in &settings.also_listen {
        listeners.push(bind(address, "--also-listen").await?.1);
    }
    Ok((listen, listeners))
}

/// Binds an address, whose port may be 0; returns the one that was bound, with
/// its listener. The error advises `flag`, by which the address was given.
async fn bind(address: &Address, flag: &str) -> Result<(SocketAddr, TcpListener)> {
    let listener = listen::bind(address.as_str()).await;
    let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    bound.map_err(|error| {
        Failure::wrong(format!(
            "cannot listen on {address}: {error}; choose another with {flag}"
        ))
    })
}

/// Loads the TLS files of the settings; returns `None` if they name none.
fn load_tls(settings: &Settings) -> Result<Option<Tls>> {
    let (Some(cert), Some(key)) = (&settings.tls_cert, &settings.tls_key) else {
        return Ok(None);
    };
    let files = TlsFiles {
        cert: cert.clone(),
        key: key.clone(),
        client_ca: settings.tls_client_ca.clone(),
    };
    let plaintext = PlaintextLog::default();
    let tls = Tls::load(files).map_err(Failure::wrong)?;
    let tls = tls.on_plaintext(move |peer, local| plaintext.note(peer, local));
    Ok(Some(tls))
}

/// Logs that the TLS files were loaded again, or why the old ones stay in use.
fn log_reload(result: std::result::Result<(), TlsError>) {
    match result {
        Ok(()) => tracing::info!("new TLS certificates are in use"),
        Err(error) => tracing::error!(%error, "the TLS files cannot be used; the old ones stay"),
    }
}
