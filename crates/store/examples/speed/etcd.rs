//! The same of etcd: one member in the same directory, over its HTTP gateway,
//! each writer with a connection of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that names a program, in place of that of `PATH`.
const PROGRAM: &str = "TRUNKLINE_ETCD";
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A member that runs until it is dropped.
pub(crate) struct Etcd {
    child: Child,
    client: SocketAddr,
}

impl Etcd {
    /// Starts one; `None` if there is no such program.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let program = std::env::var(PROGRAM).unwrap_or_else(|_| "etcd".to_owned());
        let (client, peer) = (free_address(), free_address());
        let (client_url, peer_url) = (format!("http://{client}"), format!("http://{peer}"));
        let started = Command::new(program)
            .arg("--data-dir")
            .arg(dir)
            .args(["--listen-client-urls", &client_url])
            .args(["--advertise-client-urls", &client_url])
            .args(["--listen-peer-urls", &peer_url])
            .args(["--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("default={peer_url}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let etcd = Self {
            child: started.ok()?,
            client,
        };
        let deadline = Instant::now() + PATIENCE;
        while !etcd.is_ready() {
            assert!(Instant::now() < deadline, "etcd does not start");
            thread::sleep(Duration::from_millis(50));
        }
        Some(etcd)
    }

    fn is_ready(&self) -> bool {
        let writer = TcpStream::connect(self.client).ok();
        let writer = writer.map(|socket| Writer(BufReader::new(socket)));
        writer.is_some_and(|mut writer| writer.put("cmVhZHk=", "").is_some())
    }

    /// Opens the connection of a writer.
    pub(crate) fn writer(&self) -> Writer {
        let socket = TcpStream::connect(self.client).unwrap();
        socket.set_nodelay(true).unwrap();
        Writer(BufReader::new(socket))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection on which keys are written, one after the other.
pub(crate) struct Writer(BufReader<TcpStream>);

impl Writer {
    /// Writes a key; `None` if the answer is not a good one. Both texts are
    /// base64, as the gateway takes them.
    pub(crate) fn put(&mut self, key: &str, value: &str) -> Option<()> {
        let body = format!("{{\"key\":\"{key}\",\"value\":\"{value}\"}}");
        let request = format!(
            "POST /v3/kv/put HTTP/1.1\r\nhost: etcd\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).ok()?;
        let (mut is_good, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).ok().filter(|read| *read > 0)?;
            is_good.get_or_insert_with(|| line.starts_with("HTTP/1.1 200"));
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        is_good?.then_some(())
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
