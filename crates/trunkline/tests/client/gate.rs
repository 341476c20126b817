//! A gate before a server, which can be shut and can cut what goes through it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

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
        Self::delayed(target, Duration::ZERO).await
    }

    /// A gate through which every byte takes so long, in either direction.
    pub(crate) async fn delayed(target: SocketAddr, delay: Duration) -> Self {
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
                    state.open.spawn(carry(socket, target, delay));
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

async fn carry(socket: TcpStream, target: SocketAddr, delay: Duration) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let (client_out, client_in) = socket.into_split();
    let (server_out, server_in) = server.into_split();
    tokio::select! {
        () = copy(client_out, server_in, delay) => {}
        () = copy(server_out, client_in, delay) => {}
    }
}

/// Copies what is read, each piece after a delay of its own.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (pieces, mut late) = tokio::sync::mpsc::unbounded_channel();
    let read = async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let due = Instant::now() + delay;
            let _ = pieces.send((due, buffer[..length].to_vec()));
        }
    };
    let write = async move {
        while let Some((due, piece)) = late.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}
