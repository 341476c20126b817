//! A gate before a server, which can be shut and can cut what goes through it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The gate. It ends when it is dropped.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    target: SocketAddr,
    is_shut: bool,
    open: JoinSet<()>,
}

impl Gate {
    pub(crate) async fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            target,
            is_shut: false,
            open: JoinSet::new(),
        }));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let mut state = shared.lock().unwrap();
                let target = state.target;
                if !state.is_shut {
                    state.open.spawn(carry(socket, target));
                }
            }
        });
        Self {
            address,
            state,
            task,
        }
    }

    /// Cuts all connections; new ones lead to this server.
    pub(crate) fn cut(&self, target: SocketAddr) {
        let mut state = self.state.lock().unwrap();
        state.target = target;
        state.open.abort_all();
    }

    /// Shuts or opens the gate; connections that are there are cut.
    pub(crate) fn set_shut(&self, is_shut: bool) {
        let mut state = self.state.lock().unwrap();
        state.is_shut = is_shut;
        state.open.abort_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
        self.state.lock().unwrap().open.abort_all();
    }
}

async fn carry(mut socket: TcpStream, target: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(target).await {
        let _ = tokio::io::copy_bidirectional(&mut socket, &mut server).await;
    }
}
