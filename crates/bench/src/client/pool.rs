//! Connections that clients share, or have one each.

use std::io;

use tokio::sync::Mutex;

use super::call::{Call, Connection};
use super::tls::Tls;

/// Bytes that a stream may send before they are read.
const WINDOW: u32 = 1 << 20;
/// The same for one that does not read, as an HTTP/2 client has it by itself.
const SMALL_WINDOW: u32 = 65_535;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Pool {
    address: String,
    tls: Option<Tls>,
    /// None: one each.
    shared: Vec<Mutex<Option<Connection>>>,
}

impl Pool {
    /// So many that are shared; zero is one each.
    pub(crate) fn new(address: String, tls: Option<Tls>, connections: usize) -> Self {
        Self {
            address,
            tls,
            shared: (0..connections).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// A stream of a client.
    pub(crate) async fn call(&self, client: usize, path: &str, alone: bool) -> io::Result<Call> {
        if self.shared.is_empty() || alone {
            let window = if alone { SMALL_WINDOW } else { WINDOW };
            let connection = self.open(window, false).await?;
            return Ok(connection.call(&self.address, path));
        }
        let mut slot = self.shared[client % self.shared.len()].lock().await;
        if let Some(connection) = slot.as_ref().filter(|c| !c.is_closed()) {
            return Ok(connection.call(&self.address, path));
        }
        let connection = self.open(WINDOW, true).await?;
        let call = connection.call(&self.address, path);
        *slot = Some(connection);
        Ok(call)
    }

    async fn open(&self, window: u32, shared: bool) -> io::Result<Connection> {
        Connection::open(&self.address, self.tls.as_ref(), window, shared).await
    }

    /// Whether the server can be trusted. A server that does not run yet, or no
    /// longer, may start: only what will not change is an error.
    ///
    /// # Errors
    /// If one side does not trust the other, or the server speaks no TLS.
    pub(crate) async fn try_tls(&self) -> io::Result<()> {
        if self.tls.is_none() {
            return Ok(());
        }
        match self.open(WINDOW, false).await {
            // What the TLS library finds wrong is wrong data to it.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error),
            _ => Ok(()),
        }
    }

    /// Drops all connections; those that have no stream end.
    pub(crate) async fn forget(&self) {
        for slot in &self.shared {
            *slot.lock().await = None;
        }
    }
}
