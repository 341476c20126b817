//! A way to a server that can be shut, that can be long, and on which the
//! server's responses can be held up.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::late::Late;

const PAUSE: Duration = Duration::from_millis(5);

/// Stands before a server on loopback; shut when dropped.
#[derive(Debug)]
pub struct Gate {
    /// Where it listens, on loopback.
    pub port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    inner: Mutex<Inner>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    gone: bool,
    shut: bool,
    held: bool,
    passing: Vec<TcpStream>,
}

impl Gate {
    /// An open gate before the server on this port.
    ///
    /// # Panics
    ///
    /// When there is no port to be had.
    #[must_use]
    pub fn before(server: u16) -> Self {
        Self::far_from(server, Duration::ZERO)
    }

    /// The same at a distance: bytes of either side reach the other after this
    /// latency.
    ///
    /// # Panics
    ///
    /// When there is no port to be had.
    #[must_use]
    pub fn far_from(server: u16, latency: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.unwrap_or_else(|error| panic!("no port for a gate: {error}"));
        let port = listener.local_addr().map_or(0, |address| address.port());
        let waits = listener.set_nonblocking(true);
        waits.unwrap_or_else(|error| panic!("a gate cannot wait: {error}"));
        let state = Arc::new(State::default());
        thread::spawn({
            let state = Arc::clone(&state);
            move || stand(&listener, server, latency, &state)
        });
        Self { port, state }
    }

    /// Ends all connections, and lets no other pass.
    pub fn shut(&self) {
        let mut inner = self.state.lock();
        inner.shut = true;
        end(&mut inner.passing);
    }

    /// Lets connections pass again.
    pub fn open(&self) {
        self.state.lock().shut = false;
    }

    /// Keeps back the server's bytes.
    pub fn hold(&self) {
        self.state.lock().held = true;
    }

    /// Lets all of them through.
    pub fn release(&self) {
        self.state.lock().held = false;
        self.state.released.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut inner = self.state.lock();
        (inner.gone, inner.held) = (true, false);
        end(&mut inner.passing);
        self.state.released.notify_all();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_released(&self) {
        let mut inner = self.lock();
        while inner.held {
            let woken = self.released.wait(inner);
            inner = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn end(passing: &mut Vec<TcpStream>) {
    for stream in passing.drain(..) {
        // It may have ended by itself.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Takes connections until the gate is dropped.
fn stand(listener: &TcpListener, server: u16, latency: Duration, state: &Arc<State>) {
    while !state.lock().gone {
        match listener.accept() {
            Ok((peer, _)) => {
                // A client that does not get through sees its connection end.
                let _ = pass(peer, server, latency, state);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) => panic!("a gate takes no connections: {error}"),
        }
    }
}

fn pass(
    peer: TcpStream,
    server: u16,
    latency: Duration,
    state: &Arc<State>,
) -> std::io::Result<()> {
    let mut inner = state.lock();
    if inner.shut {
        return Ok(());
    }
    let server = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, server)))?;
    peer.set_nonblocking(false)?;
    for stream in [&peer, &server] {
        stream.set_nodelay(true)?;
        inner.passing.push(stream.try_clone()?);
    }
    let (from_peer, to_server) = (peer.try_clone()?, Late::new(server.try_clone()?, latency));
    let to_peer = Late::new(peer, latency);
    let held = Arc::clone(state);
    thread::spawn(move || carry(from_peer, to_server, || ()));
    thread::spawn(move || carry(server, to_peer, || held.wait_until_released()));
    Ok(())
}

/// Carries one direction to its end, which the other side sees when all before
/// it has arrived. That side then ends the other direction.
fn carry(mut from: TcpStream, mut to: Late, before: impl Fn()) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        before();
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
}
