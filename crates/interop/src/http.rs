//! As much of an HTTP/1.1 client as tests need: GETs, on a connection for each
//! or on one that is kept, and PUTs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a peer may take for each step of an exchange.
const PATIENCE: Duration = Duration::from_secs(20);

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
    let mut stream = connect(address)?;
    // In one piece: a peer takes its time to acknowledge a small one.
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    Ok(Asked(stream))
}

/// Puts a body at a path.
///
/// # Errors
///
/// As for [`get`].
pub fn put(address: SocketAddr, path: &str, body: &[u8]) -> io::Result<Response> {
    let mut stream = connect(address)?;
    let length = body.len();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    Asked(stream).answer()
}

/// A connection for one request after another.
#[derive(Debug)]
pub struct Kept {
    stream: BufReader<TcpStream>,
    /// Requests that were answered.
    answered: usize,
}

impl Kept {
    /// Connects to a peer.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = BufReader::new(connect(address)?);
        let answered = 0;
        Ok(Self { stream, answered })
    }

    /// Asks for a path, with a host by name. There is no response when the peer
    /// had ended the connection before, which it may do between two requests.
    ///
    /// # Errors
    ///
    /// When the peer is too slow, or does not speak HTTP/1.
    pub fn get_as(&mut self, host: &str, path: &str) -> io::Result<Option<Response>> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        let read = sent.and_then(|()| Ok(self.stream.fill_buf()?.is_empty()));
        match read {
            Ok(false) => {}
            Err(error) if !is_end(&error) => return Err(error),
            // An end without a word is none between two requests if there was
            // none before.
            Ok(true) | Err(_) if self.answered == 0 => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(true) | Err(_) => return Ok(None),
        }
        let response = read_response(&mut self.stream)?;
        self.answered += 1;
        Ok(Some(response))
    }
}

/// Whether an error is the end of a connection.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset
    )
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
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
    use std::net::TcpListener;

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

    /// A peer that answers one request on each connection, and then ends it.
    fn answers_once() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            while !read_line(&mut stream).unwrap().is_empty() {}
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
            stream.get_mut().write_all(answer).unwrap();
        });
        address
    }

    #[test]
    fn a_kept_connection_may_end_between_two_requests() {
        let mut kept = Kept::open(answers_once()).unwrap();
        let answer = kept.get_as("any", "/").unwrap().unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "hi"));
        assert_eq!(kept.get_as("any", "/").unwrap(), None);
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
