//! A running server with its contents and its admin API: the common part of
//! `serve` and `demo`. `apis` is the latter, which `mcp source` has too.

mod apis;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use trunkline::checked;
use trunkline::events::EventLog;
use trunkline::listen::{self, Lanes};
use trunkline::memory::Memory;
use trunkline::tls::{Tls, TlsError, TlsFiles};
use trunkline::{Builder, Kept, Server};
use trunkline_store::{EmbeddedStore, FileContents, FilesStatus};

pub(crate) use self::apis::{Apis, HEALTH_CONNECTIONS};
use crate::admin::{self, Admin, Guard};
use crate::applied::AppliedContents;
use crate::audit::Audit;
use crate::contents::{self, Reading};
use crate::data::{self, OpenStore};
use crate::failure::{Failure, Result};
use crate::journal::Journal;
use crate::mcp::{self, Role};
use crate::metrics::{Count, Metrics};
use crate::plaintext::PlaintextLog;
use crate::settings::{Address, LogFormat, Settings};

/// A server on its addresses.
pub(crate) struct Running {
    pub(crate) server: Server,
    /// The address of xDS.
    pub(crate) listen: SocketAddr,
    /// The address of the admin API.
    pub(crate) admin: SocketAddr,
    /// The address of `--health`, if there is one.
    pub(crate) health: Option<SocketAddr>,
    /// Ends when no client is served any more.
    pub(crate) serving: JoinHandle<()>,
    apis: Apis,
}

impl Running {
    /// Binds the addresses of the settings and begins to serve. Clients get
    /// nothing before the first contents are complete.
    ///
    /// # Errors
    /// An address cannot be bound, or a file of the settings cannot be used.
    pub(crate) async fn start(settings: &Settings, lanes: Lanes) -> Result<Self> {
        let server_lanes = lanes.clone();
        let customize =
            |builder: Builder| builder.options(|options| options.lanes = Some(server_lanes));
        Self::start_with(settings, Some(lanes), customize).await
    }

    /// Binds the addresses of the settings and begins to serve. `customize` may add
    /// to the builder of the server. `lanes` are those of the admin API.
    ///
    /// # Errors
    /// An address cannot be bound, or a file of the settings cannot be used.
    pub(crate) async fn start_with(
        settings: &Settings,
        lanes: Option<Lanes>,
        customize: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self> {
        let plaintext_log = Arc::new(PlaintextLog::default());
        let load_for = |client_ca: Option<&PathBuf>| load_tls(settings, client_ca, &plaintext_log);
        let tls = load_for(settings.tls_client_ca.as_ref())?;
        let admin_tls = load_for(settings.admin_tls_client_ca.as_ref())?;

        // The checks load their tables on first use, which should not delay a
        // client.
        checked::warm_up();

        let (listen, xds) = bind_xds(settings).await?;
        let (admin, admin_listener) = bind(&settings.admin, "--admin").await?;
        let health = match &settings.health {
            Some(address) => Some(bind(address, "--health").await?),
            None => None,
        };
        warn_of_admin_access(settings, admin);

        let role = start_sink(settings, tls.clone(), lanes.clone()).await?;
        let (server, api) = build(settings, Reading::Resources, role, customize)?;
        watch_tls([("xDS", &tls), ("admin", &admin_tls)]);

        let api = Arc::new(api);
        let apis = Apis::start(&api, admin_listener, admin_tls, health, lanes);
        let serving = tokio::spawn(serve(server.clone(), xds, tls));
        Ok(Self {
            server,
            listen,
            admin,
            health: apis.health,
            serving,
            apis,
        })
    }

    /// Waits until streams have ended, then ends the admin API, which tells of
    /// the server until then.
    pub(crate) async fn finish(self) {
        // An error of a task is a panic, which was logged.
        if !self.serving.is_finished() {
            let _ = self.serving.await;
        }
        self.apis.finish().await;
    }
}

/// Warns of an admin address on which others can read, or nobody can write
/// although the settings look as if. Does nothing for an address of loopback.
fn warn_of_admin_access(settings: &Settings, admin: SocketAddr) {
    if admin.ip().is_loopback() {
        return;
    }
    if settings.tls_cert.is_none() {
        tracing::warn!(
            %admin,
            "whoever reaches the admin address can read what is served; secrets are not shown"
        );
    }
    let has_rights = settings.admin_tls_client_ca.is_some() || settings.admin_token_file.is_some();
    if settings.tls_client_ca.is_some() && !has_rights {
        tracing::warn!(
            %admin,
            "a certificate of --tls-client-ca gives no right at the admin address, so nobody can \
             write there from another machine; name operators with --admin-tls-client-ca, or give \
             them a token with --admin-token-file"
        );
    }
}

/// Serves xDS on all listeners until the server stops.
async fn serve(server: Server, listeners: Vec<TcpListener>, tls: Option<Tls>) {
    let tasks = listeners.into_iter().map(|listener| {
        let (server, tls) = (server.clone(), tls.clone());
        async move { server.serve_with(listener, tls).await }
    });
    let mut serving: JoinSet<()> = tasks.collect();

    // A task fails only by a panic, which the log has.
    while serving.join_next().await.is_some() {}
}

/// Builds a server with its hooks and contents, and the state of its admin API,
/// but binds no address. The contents come from the files of the settings;
/// without files, over the API.
///
/// # Errors
/// The audit log, the token file or the files of contents cannot be used.
pub(crate) fn build(
    settings: &Settings,
    reading: Reading,
    role: Option<Role>,
    customize: impl FnOnce(Builder) -> Builder,
) -> Result<(Server, Admin)> {
    let metrics = Metrics::new();
    let events = EventLog::default();
    let audit = open_audit(settings, &metrics)?;
    let guard = Guard::new(settings)
        .map_err(|error| Failure::wrong(format!("--admin-token-file: {error}")))?;

    let builder = Server::builder()
        .options(|options| settings.fill(options))
        .hooks(Count(Arc::clone(&metrics)))
        .hooks(events.clone())
        .hooks(audit.clone())
        .hooks(Journal::default());
    let ServerParts {
        server,
        files,
        applied,
    } = build_server(settings, reading, role.as_ref(), builder, customize)?;

    let body_limit = settings.limits.admin_body.0;
    let memory = Memory::new(settings.limits.memory.bytes());
    let admin = Admin {
        server: server.clone(),
        metrics,
        events,
        files,
        guard,
        audit,
        applied,
        role,
        dangling: settings.dangling,
        hold_removals: settings.hold_removals,
        body_limit,
        bodies: admin::Bodies::new(body_limit, &memory),
        stage: Arc::default(),
        waits: Semaphore::new(admin::MOST_WAITS),
    };
    Ok((server, admin))
}

/// A server, and what the admin API shows of its contents.
struct ServerParts {
    server: Server,
    /// The status of the files; `None` if the settings name no files.
    files: Option<watch::Receiver<Arc<FilesStatus>>>,
    applied: Arc<AppliedContents>,
}

/// Builds a server with the contents of its store, of files, of `apply` and of
/// a source. `builder` has the options and the hooks.
///
/// # Errors
/// The store or the files cannot be used.
fn build_server(
    settings: &Settings,
    reading: Reading,
    role: Option<&Role>,
    mut builder: Builder,
    customize: impl FnOnce(Builder) -> Builder,
) -> Result<ServerParts> {
    let OpenStore {
        store,
        kept,
        file_store,
    } = data::open_store(settings)?;
    builder = builder.store(store);

    let awaited_origins = missing_origins(settings, &kept);
    let applied = Arc::new(AppliedContents::new(&awaited_origins));
    let is_empty = settings.config.is_empty()
        && settings.await_origins.is_empty()
        && !settings.mcp.is_on()
        && kept.is_new();
    if (is_empty && !settings.allow_empty) || !awaited_origins.is_empty() {
        builder = builder.contents(Arc::clone(&applied));
    }

    let mut files = None;
    if !settings.config.is_empty() {
        let contents = watch_files(settings, reading, file_store)?;
        files = Some(contents.status());
        builder = builder.contents(contents);
    }
    if let Some(Role::Sink(contents)) = role {
        builder = builder.contents(Arc::clone(contents));
    }

    let server = customize(builder).build();
    server.restore(kept).map_err(|error| {
        Failure::wrong(format!(
            "the contents that are kept cannot be served: {error}; use the release that kept them"
        ))
    })?;
    Ok(ServerParts {
        server,
        files,
        applied,
    })
}

/// Returns the awaited origins that have not applied yet. An origin that the
/// store has was applied before the restart.
fn missing_origins(settings: &Settings, kept: &Kept) -> Vec<String> {
    let origins = settings.await_origins.iter();
    let missing_origins = origins.filter(|origin| !kept.has_origin(origin));
    missing_origins.cloned().collect()
}

/// Begins to watch the files of the settings, and to log their problems.
///
/// # Errors
/// The files cannot be watched.
fn watch_files(
    settings: &Settings,
    reading: Reading,
    file_store: Option<Arc<EmbeddedStore>>,
) -> Result<FileContents> {
    let contents = contents::watch_files(settings, reading, file_store)
        .map_err(|error| Failure::wrong(format!("files cannot be watched: {error}")))?;
    let shows_lines = settings.log_format == LogFormat::Text && std::io::stderr().is_terminal();
    tokio::spawn(contents::log_problems(contents.status(), shows_lines));
    Ok(contents)
}

/// Makes the sink of the settings, and binds the address where its source may
/// connect. Returns `None` if the settings name no source.
async fn start_sink(
    settings: &Settings,
    tls: Option<Tls>,
    lanes: Option<Lanes>,
) -> Result<Option<Role>> {
    let listener = match &settings.mcp.listen {
        None => None,
        Some(address) => {
            let (bound_address, listener) = bind(address, "--mcp-listen").await?;
            if !mcp::is_local(bound_address) && settings.tls_client_ca.is_none() {
                return Err(Failure::usage(format!(
                    "--mcp-listen {bound_address}: whoever reaches it would bring contents for all \
                     clients; name the authorities of sources with --tls-client-ca"
                )));
            }
            tracing::info!(address = %bound_address, "sources may connect");
            Some(listener)
        }
    };

    let contents = mcp::make_contents(settings, listener, tls, lanes);
    if contents.is_some() && settings.data.is_none() {
        tracing::info!("contents of MCP are not kept: a server that starts again asks its source");
    }
    Ok(contents.map(Role::Sink))
}

/// Opens the audit log of the settings.
fn open_audit(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Audit> {
    let path = settings.audit_log.as_deref();
    let audit = Audit::open(path, settings.audit_required, Arc::clone(metrics));
    audit.map_err(|error| {
        let path = path.unwrap_or(Path::new("")).display();
        Failure::wrong(format!("--audit-log {path}: {error}"))
    })
}

/// Binds all addresses of xDS. Returns the main address, and all listeners, the
/// main one first.
async fn bind_xds(settings: &Settings) -> Result<(SocketAddr, Vec<TcpListener>)> {
    let (main_address, listener) = bind(&settings.listen, "--listen").await?;
    let mut listeners = vec![listener];
    for address in &settings.also_listen {
        let (_, listener) = bind(address, "--also-listen").await?;
        listeners.push(listener);
    }
    Ok((main_address, listeners))
}

/// Binds an address, whose port may be 0. Returns the bound address and its
/// listener. The error advises the user to change `flag`.
pub(crate) async fn bind(address: &Address, flag: &str) -> Result<(SocketAddr, TcpListener)> {
    let listener = listen::bind(address.as_str()).await;
    let result = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    result.map_err(|error| {
        Failure::wrong(format!(
            "cannot listen on {address}: {error}; choose another with {flag}"
        ))
    })
}

/// Loads the TLS files of the settings, for an address whose clients need a
/// certificate of `client_ca`, if that is given. Returns `None` if the settings
/// name no certificate.
pub(crate) fn load_tls(
    settings: &Settings,
    client_ca: Option<&PathBuf>,
    plaintext_log: &Arc<PlaintextLog>,
) -> Result<Option<Tls>> {
    let (Some(cert), Some(key)) = (&settings.tls_cert, &settings.tls_key) else {
        return Ok(None);
    };
    let files = TlsFiles {
        cert: cert.clone(),
        key: key.clone(),
        client_ca: client_ca.cloned(),
    };
    let plaintext_log = Arc::clone(plaintext_log);
    let tls = Tls::load(files).map_err(Failure::wrong)?;
    let tls = tls.on_plaintext(move |peer, local| plaintext_log.log_client(peer, local));
    Ok(Some(tls))
}

/// Begins to watch the TLS files of addresses, each with its name for the log.
/// Does nothing for an address without TLS.
pub(crate) fn watch_tls<const N: usize>(addresses: [(&'static str, &Option<Tls>); N]) {
    for (address, tls) in addresses {
        if let Some(tls) = tls.clone() {
            let log = move |result| log_reload(address, result);
            tokio::spawn(async move { tls.watch(log).await });
        }
    }
}

/// Logs the outcome of loading the TLS files of an address again. After an
/// error, the old ones stay in use.
fn log_reload(address: &str, result: std::result::Result<(), TlsError>) {
    match result {
        Ok(()) => tracing::info!(address, "new TLS certificates are in use"),
        Err(error) => {
            tracing::error!(address, %error, "the TLS files cannot be used; the old ones stay");
        }
    }
}
