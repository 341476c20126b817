//! An admin page that always answers the same, as that of an Envoy.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A page that is there until it is dropped.
pub struct EnvoyAdmin {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EnvoyAdmin {
    /// Starts a page that answers with this body.
    pub fn start(body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for socket in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                answer(socket.unwrap(), &body);
            }
        });
        Self {
            address,
            is_over,
            thread: Some(thread),
        }
    }
}

/// Answers one request.
fn answer(mut socket: TcpStream, body: &str) {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        match socket.read(&mut part).unwrap() {
            0 => return,
            read => request.extend(&part[..read]),
        }
    }
    let status = match request.starts_with(b"GET /config_dump?include_eds HTTP/1.1\r\n") {
        true => "200 OK",
        false => "404 Not Found",
    };
    let length = body.len();
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    socket.write_all(response.as_bytes()).unwrap();
}

impl Drop for EnvoyAdmin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes it.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
