//! As much of HTTP/1.1 as a trial needs: a client that sees when the first byte
//! of an answer comes, and a backend behind a proxy.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};

/// An answer that takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(20);
const END: &[u8] = b"\r\n\r\n";

/// A connection that is kept.
pub(super) struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// What came, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// From the request to the first byte of the answer.
    pub(super) first_byte: Duration,
}

impl Client {
    pub(super) fn connect(to: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(&to, PATIENCE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            socket,
            buffer: Vec::new(),
        })
    }

    /// Asks for the root of a host.
    pub(super) fn get(&mut self, host: &str, path: &str) -> io::Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        self.buffer.clear();
        let begun = Instant::now();
        self.socket.write_all(request.as_bytes())?;
        self.more()?;
        let first_byte = begun.elapsed();
        loop {
            if let Some((status, all)) = head(&self.buffer)
                && self.buffer.len() >= all
            {
                return Ok(Answer { status, first_byte });
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> io::Result<()> {
        match read(&mut self.socket, &mut self.buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Reads what there is; a signal is no reason to stop.
fn read(socket: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut part = [0; 4096];
    loop {
        match socket.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(some) => {
                into.extend_from_slice(&part[..some]);
                return Ok(some);
            }
        }
    }
}

/// Whether an address answers a path with 200.
pub(super) fn is_ready(at: SocketAddr, path: &str) -> bool {
    let answer = Client::connect(at).and_then(|mut client| client.get("trial", path));
    answer.is_ok_and(|answer| answer.status == 200)
}

/// The status of an answer, and how long the whole of it is; none while its
/// head is not complete.
fn head(bytes: &[u8]) -> Option<(u16, usize)> {
    let end = bytes.windows(END.len()).position(|part| part == END)?;
    let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = text.split_whitespace().nth(1)?.parse().ok()?;
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    // Without a length its head is all that is looked at.
    Some((status, end + END.len() + length.unwrap_or(0)))
}

/// Answers every request with 200, until the process ends.
pub(super) fn backend() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A connection ends when the proxy ends it.
            thread::spawn(move || drop(answer(socket)));
        }
    });
    Ok(address)
}

fn answer(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut seen = Vec::new();
    while read(&mut socket, &mut seen)? > 0 {
        // Requests have no bodies here.
        while let Some(end) = seen.windows(END.len()).position(|part| part == END) {
            seen.drain(..end + END.len());
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")?;
        }
    }
    Ok(())
}

/// An address of loopback on which nothing listens.
pub(in super::super) fn free() -> Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| Failure::new(format!("no address is free: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_keeps_its_connection_to_the_backend() {
        let mut client = Client::connect(backend().unwrap()).unwrap();
        for _ in 0..3 {
            assert_eq!(client.get("a.example", "/").unwrap().status, 200);
        }
    }

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let text = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(head(text), Some((404, text.len() + 3)));
        assert_eq!(head(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
