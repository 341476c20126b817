//! Connections that clients share, or have one each.

use std::io;

use tokio::sync::Mutex;

use super::call::{Call, Connection};

/// Bytes that a stream may send before they are read.
const WINDOW: u32 = 1 << 20;
/// The same for one that does not read, as an HTTP/2 client has it by itself.
const SMALL_WINDOW: u32 = 65_535;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Pool {
    address: String,
    /// None: one each.
    shared: Vec<Mutex<Option<Connection>>>,
}

impl Pool {
    /// So many that are shared; zero is one each.
    pub(crate) fn new(address: String, connections: usize) -> Self {
        Self {
            address,
            shared: (0..connections).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// A stream of a client.
    pub(crate) async fn call(&self, client: usize, path: &str, alone: bool) -> io::Result<Call> {
        if self.shared.is_empty() || alone {
            let window = if alone { SMALL_WINDOW } else { WINDOW };
            let connection = Connection::open(&self.address, window, false).await?;
            return Ok(connection.call(&self.address, path));
        }
        let mut slot = self.shared[client % self.shared.len()].lock().await;
        if let Some(connection) = slot.as_ref().filter(|c| !c.is_closed()) {
            return Ok(connection.call(&self.address, path));
        }
        let connection = Connection::open(&self.address, WINDOW, true).await?;
        let call = connection.call(&self.address, path);
        *slot = Some(connection);
        Ok(call)
    }

    /// Gives up all connections; those that have no stream end.
    pub(crate) async fn forget(&self) {
        for slot in &self.shared {
            *slot.lock().await = None;
        }
    }
}
