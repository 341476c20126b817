//! The backend of requests through a proxy: an HTTP/1 server that always
//! answers with the same text.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::http;

const PATIENCE: Duration = Duration::from_secs(5);

/// A server on a free port of loopback; it stops when dropped.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    text: String,
    answered: AtomicUsize,
    stopping: AtomicBool,
}

impl Backend {
    /// Starts a server that answers every request with this text.
    ///
    /// # Panics
    ///
    /// When no port of loopback can be had.
    #[must_use]
    pub fn start(text: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap_or_else(|error| panic!("no port for a backend: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("a backend without an address: {error}"));
        let shared = Arc::new(Shared {
            text: text.to_owned(),
            answered: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        });
        let listening = Some(thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        }));
        Self {
            address,
            shared,
            listening,
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has answered.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().flatten() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        // A connection ends with its peer, or when nothing comes for a while.
        thread::spawn(move || serve(stream, &shared));
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut requests = BufReader::new(stream.try_clone()?);
    let mut answers = stream;
    loop {
        http::read_line(&mut requests)?;
        http::read_headers(&mut requests)?;
        shared.answered.fetch_add(1, Ordering::SeqCst);
        let text = &shared.text;
        let length = text.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}");
        answers.write_all(answer.as_bytes())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_gets_the_text() {
        let backend = Backend::start("hello");
        for n in 1..=3 {
            let response = http::get(backend.address(), "/any").unwrap();
            assert_eq!((response.status, response.body.as_str()), (200, "hello"));
            assert_eq!(backend.answered(), n);
        }
    }

    #[test]
    fn nothing_listens_afterwards() {
        let address = Backend::start("gone").address();
        assert!(http::get(address, "/").is_err());
    }
}
