//! Clients that speak plain text to a port of TLS: they see a closed connection
//! and no reason, so the server has to tell.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio_rustls::rustls;

use super::Tls;

/// Called with the address of a client and that of the port.
pub(super) type OnPlaintext = Arc<dyn Fn(SocketAddr, SocketAddr) + Send + Sync>;

impl Tls {
    /// Sets the function that is called for each client which speaks plain
    /// text, with the client's address and that of the port. Such a connection
    /// is closed.
    #[must_use]
    pub fn on_plaintext(
        self,
        callback: impl Fn(SocketAddr, SocketAddr) + Send + Sync + 'static,
    ) -> Self {
        Self {
            on_plaintext: Some(Arc::new(callback)),
            ..self
        }
    }

    /// Reports a client whose handshake failed because it spoke plain text.
    /// Other errors are not reported.
    pub(crate) fn report_failed_handshake(
        &self,
        error: &io::Error,
        peer: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) {
        if let (Some(callback), Some(peer), Some(local)) = (&self.on_plaintext, peer, local)
            && is_plaintext(error)
        {
            callback(peer, local);
        }
    }
}

/// Returns whether a handshake failed because the first bytes were none of TLS.
fn is_plaintext(error: &io::Error) -> bool {
    let tls_error = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(tls_error, Some(rustls::Error::InvalidMessage(_)))
}
