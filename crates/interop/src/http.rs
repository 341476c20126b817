//! As much of an HTTP/1.1 client as tests need: one GET on one connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a peer may take for each step of an exchange.
const PATIENCE: Duration = Duration::from_secs(5);

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body; bytes that are not UTF-8 are replaced.
    pub body: String,
}

impl Response {
    /// The first header of this name, given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Asks for a path, with the address as the host.
///
/// # Errors
///
/// When the peer is not there, is too slow, or does not speak HTTP/1.
pub fn get(address: SocketAddr, path: &str) -> io::Result<Response> {
    get_as(address, &address.to_string(), path)
}

/// Asks for a path of a host by name, as routes choose by it.
///
/// # Errors
///
/// As for [`get`].
pub fn get_as(address: SocketAddr, host: &str, path: &str) -> io::Result<Response> {
    ask_as(address, host, path)?.answer()
}

/// A request whose answer nobody has read yet.
#[derive(Debug)]
pub struct Asked(TcpStream);

impl Asked {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// When the peer is too slow, or does not speak HTTP/1.
    pub fn answer(self) -> io::Result<Response> {
        read_response(&mut BufReader::new(self.0))
    }
}

/// Asks as [`get_as`] does, without waiting for the answer.
///
/// # Errors
///
/// When the peer is not there.
pub fn ask_as(address: SocketAddr, host: &str, path: &str) -> io::Result<Asked> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // In one piece: a peer takes its time to acknowledge a small one.
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    Ok(Asked(stream))
}

fn read_response(from: &mut impl BufRead) -> io::Result<Response> {
    let status = read_line(from)?
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| malformed("no status line"))?;
    let mut response = Response {
        status,
        headers: read_headers(from)?,
        body: String::new(),
    };
    let mut body = Vec::new();
    if response.header("transfer-encoding") == Some("chunked") {
        read_chunks(from, &mut body)?;
    } else if let Some(length) = response.header("content-length") {
        let length = length.parse().map_err(|_| malformed("content-length"))?;
        from.take(length).read_to_end(&mut body)?;
    } else {
        from.read_to_end(&mut body)?;
    }
    response.body = String::from_utf8_lossy(&body).into_owned();
    Ok(response)
}

/// Header lines up to the empty one.
pub(crate) fn read_headers(from: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_chunks(from: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let line = read_line(from)?;
        let size = u64::from_str_radix(&line, 16).map_err(|_| malformed("size of a chunk"))?;
        from.take(size).read_to_end(body)?;
        read_line(from)?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// One line without its end; no line at all is an error.
pub(crate) fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not HTTP/1: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Response> {
        read_response(&mut text.as_bytes())
    }

    #[test]
    fn a_body_ends_by_length_by_chunks_or_with_the_connection() {
        let by_length = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhimore";
        let by_chunks =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n";
        let by_close = "HTTP/1.1 200 OK\r\n\r\nhi";
        for text in [by_length, by_chunks, by_close] {
            let response = read(text).unwrap();
            assert_eq!(
                (response.status, response.body.as_str()),
                (200, "hi"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_http_is_an_error() {
        for text in [
            "",
            "\r\n",
            "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
