//! A client of HTTP/1.1 that sends what it is told and nothing else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::Seen;
use super::random::RandomRequest;

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
        let connect = || BufReader::new(TcpStream::connect(address).unwrap());
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
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let (mut location, mut length, mut is_kept) = (None, 0, true);
        loop {
            let header = line(&mut stream);
            let Some((name, value)) = header.split_once(": ") else {
                break;
            };
            match name {
                "location" => location = Some(value.to_owned()),
                "content-length" => length = value.parse().unwrap(),
                "connection" => is_kept = value != "close",
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        if is_kept {
            self.stream = Some(stream);
        }
        Seen {
            status,
            location,
            body: String::from_utf8(body).unwrap(),
        }
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
