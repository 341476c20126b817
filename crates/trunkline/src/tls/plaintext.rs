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
    /// Calls `told` for each client that speaks plain text, with its address and
    /// that of the port. Its connection is closed in any case.
    #[must_use]
    pub fn on_plaintext(
        self,
        told: impl Fn(SocketAddr, SocketAddr) + Send + Sync + 'static,
    ) -> Self {
        Self {
            on_plaintext: Some(Arc::new(told)),
            ..self
        }
    }

    /// Tells of a client whose handshake failed, if it spoke plain text.
    pub(crate) fn note_failed(
        &self,
        error: &io::Error,
        peer: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) {
        if let (Some(told), Some(peer), Some(local)) = (&self.on_plaintext, peer, local)
            && is_plaintext(error)
        {
            told(peer, local);
        }
    }
}

/// Returns whether a handshake failed because the first bytes were none of TLS.
fn is_plaintext(error: &io::Error) -> bool {
    let held = error.get_ref().and_then(|held| held.downcast_ref());
    matches!(held, Some(rustls::Error::InvalidMessage(_)))
}
