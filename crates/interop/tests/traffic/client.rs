//! A client of HTTP/1.1 that sends what it is told and nothing else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::requests::RandomRequest;
use super::seen::{Body, Seen, Upstream};

/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that is made anew when the other end closes it.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
        }
    }

    pub(crate) fn send(&mut self, request: &RandomRequest) -> Seen {
        let address = self.address;
        let connect = || {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            BufReader::new(stream)
        };
        let mut stream = self.stream.take().unwrap_or_else(connect);
        let mut head = format!(
            "GET {} HTTP/1.1\r\nhost: {}\r\n",
            request.path, request.host
        );
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.get_mut().write_all(head.as_bytes()).unwrap();
        let status = line(&mut stream);
        let mut seen = Seen {
            status: status.split(' ').nth(1).unwrap().parse().unwrap(),
            ..Seen::default()
        };
        let (mut length, mut is_kept) = (0, true);
        loop {
            let header = line(&mut stream);
            let Some((name, value)) = header.split_once(':') else {
                break;
            };
            let value = value.trim();
            match name {
                "location" => seen.location = Some(value.to_owned()),
                "content-length" => length = value.parse().unwrap(),
                "connection" => is_kept = value != "close",
                name if Seen::compares(name) => {
                    seen.headers.push((name.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        seen.headers.sort_by(|a, b| a.0.cmp(&b.0));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        if is_kept {
            self.stream = Some(stream);
        }
        let body = String::from_utf8(body).unwrap();
        seen.body = match Upstream::read(&body) {
            Some(upstream) => Body::Upstream(upstream),
            None => Body::Text(body),
        };
        seen
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
