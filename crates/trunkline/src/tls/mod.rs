//! TLS and mutual TLS for a listener, from files that may change.
//!
//! ```text
//! files ── read ── material ── config ──▶ current ──▶ accept
//!   ▲                                        ▲
//!   └── watch: looks each second, and swaps ─┘  a bad pair changes nothing
//! ```
//!
//! Open connections keep the certificate that they began with. Nothing here
//! prints a key, and no provider of cryptography is installed for the process:
//! a program that embeds this one may have its own.

mod config;
mod files;
mod peer;
mod plaintext;
mod reload;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

pub use crate::pem::TlsError;
pub use files::TlsFiles;
pub use peer::PeerCertificate;
use plaintext::OnPlaintext;
use reload::FileHistory;

use crate::bounds::HANDSHAKE;

/// The interval at which the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// TLS for a listener. Clones share it.
///
/// ```no_run
/// use trunkline::Server;
/// use trunkline::tls::{Tls, TlsFiles};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::load(TlsFiles {
///     cert: "server.pem".into(),
///     key: "server.key".into(),
///     client_ca: Some("clients.pem".into()),
/// })?;
/// let watched = tls.clone();
/// tokio::spawn(async move {
///     let told = |reloaded| eprintln!("certificates changed: {reloaded:?}");
///     watched.watch(told).await;
/// });
/// let listener = trunkline::listen::bind("0.0.0.0:18000").await?;
/// Server::default().serve_with(listener, Some(tls)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
    on_plaintext: Option<OnPlaintext>,
}

struct Inner {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    history: Mutex<FileHistory>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.inner.files).finish()
    }
}

impl Tls {
    /// Reads the files and builds the TLS configuration. Blocks while it reads.
    ///
    /// # Errors
    /// A file cannot be read or has other contents, or the key is not that of
    /// the certificate.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        // Files that change after this have other stamps at the first check.
        let stamps = files.stamps();
        let contents = files.read()?;
        let config = config::build(&files, &contents)?;
        let history = FileHistory::new(stamps, contents.fingerprint());
        Ok(Self {
            inner: Arc::new(Inner {
                files,
                current: RwLock::new(config),
                history: Mutex::new(history),
            }),
            on_plaintext: None,
        })
    }

    /// Returns the files.
    #[must_use]
    pub fn files(&self) -> &TlsFiles {
        &self.inner.files
    }

    /// Returns an acceptor with the current certificate.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        let current = self.inner.current.read();
        TlsAcceptor::from(Arc::clone(&current.unwrap_or_else(PoisonError::into_inner)))
    }

    /// Does the handshake of one connection, with the current certificate.
    ///
    /// # Errors
    /// The client does not speak TLS, has no certificate where one is required,
    /// or takes longer than ten seconds.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = self.acceptor().accept(stream);
        match tokio::time::timeout(HANDSHAKE, handshake).await {
            Ok(outcome) => outcome,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the peer did not finish the TLS handshake in time",
            )),
        }
    }

    /// Checks the files each second, for as long as the future is awaited.
    /// Calls `on_reload` when new files are in use, or with the reason why they
    /// are not.
    ///
    /// A bad pair is reported only if it is still there at the next check,
    /// because files are often replaced one after the other, and only once.
    pub async fn watch(&self, mut on_reload: impl FnMut(Result<(), TlsError>)) {
        let mut interval = tokio::time::interval(CHECK_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let tls = self.clone();
            // Files may be on a slow disk.
            let outcome = tokio::task::spawn_blocking(move || tls.check_files()).await;
            if let Ok(Some(result)) = outcome {
                on_reload(result);
            }
        }
    }

    /// Checks the files once, and puts new ones into use. Returns the outcome
    /// to report; `None` if there is nothing to report.
    fn check_files(&self) -> Option<Result<(), TlsError>> {
        let Inner {
            files,
            current,
            history,
        } = &*self.inner;
        let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = history.check(files)?;
        Some(outcome.map(|new_config| {
            if let Some(config) = new_config {
                *current.write().unwrap_or_else(PoisonError::into_inner) = config;
            }
        }))
    }
}
